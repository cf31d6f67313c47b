# SPDX-License-Identifier: Apache-2.0
"""`show`: a picture of a layout, a swizzle, an atom, a kernel's shared memory: as text, SVG or a page."""

from __future__ import annotations

import argparse
from typing import Any

from ..seam import CuteError
from . import naming, simulating

HELP = "draw a layout, a swizzle, an atom, a tiled copy or MMA, a kernel's shared memory: as text, SVG, or a page"
EXAMPLE = """\
examples:
  python -m numba_cute show '(4,8):(8,1)'
  python -m numba_cute show 'make_layout((4, 8), stride=(1, 4))'
  python -m numba_cute show 'S<3,4,3>' --html swizzle.html
  python -m numba_cute show gemm.py:tiled_copy --svg copy.svg
  python -m numba_cute show gemm.py:gemm --html gemm.html       roles, barriers and shared memory of a launch
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernel", metavar="WHAT", help="CuTe's notation; Python that makes an object; FILE.py:NAME, an object or kernel"
    )
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help=f"of a kernel: {naming.ABOUT_ARGUMENTS}")
    parser.add_argument("--svg", metavar="FILE", help="write the picture")
    parser.add_argument("--html", metavar="FILE", help="write a page")
    simulating.add_launch(parser)


def run(given: argparse.Namespace) -> int:
    """Run it; gives the exit code."""
    import numba_cute as cute

    pictures = [cute.show(x) for x in _shown(given)]
    for name in ("svg", "html"):
        file = getattr(given, name)
        if file and len(pictures) > 1 and name == "svg":
            raise CuteError("--svg takes one picture, and there are several: write a page, with --html")
        if file:
            _write(file, pictures, name)
    if not given.svg and not given.html:
        print("\n\n".join(map(str, pictures)))
    return 0


def _write(file: str, pictures: list[Any], name: str) -> None:
    from ..seam.ground.drawing import page, written

    if len(pictures) == 1:
        getattr(pictures[0], name)(file)
    else:
        written(page("numba_cute", "".join(p._repr_html_() for p in pictures)), file)


def _shown(given: argparse.Namespace) -> list[Any]:
    """Give what the command line names: of a kernel the roles of its warps, its barriers, and its shared memory."""
    import numba_cute as cute

    text = given.kernel
    file, name = naming.split(text)
    if name and (file.endswith(".py") or file.replace(".", "").isidentifier()):
        if not _is_kernel(text, name):
            return [naming.evaluated(name, naming.module_of(file), text)]
        proofs = [_proved(one, given.arch) for one in simulating.launches(given)]
        return [picture for proof in proofs for picture in (proof.roles, proof.barriers, proof.memory)]
    if text.lstrip().startswith(("(", "S<")) or text.replace(":", "").isdigit():
        return [cute.layout_from_str(text)]
    return [naming.evaluated(text, cute, "show")]


def _is_kernel(spec: str, name: str) -> bool:
    if not name.isidentifier():
        return False
    found = getattr(naming.module_of(naming.split(spec)[0]), name, None)
    return hasattr(found, "py_func")


def _proved(one: Any, arch: str) -> Any:
    """The proof of a launch, which has seen all that its threads did."""
    import numba_cute as cute

    made = cute.simulate(one.kernel, arch=arch, cluster=one.options.get("cluster")).prove()
    return made[one.options["grid"], one.options["block"], 0, one.options.get("smem", 0)](*one.arguments)
