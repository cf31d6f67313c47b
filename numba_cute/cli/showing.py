# SPDX-License-Identifier: Apache-2.0
"""`show`: a picture of a layout, a swizzle, an atom, a kernel's memory: as text, SVG or a page."""

from __future__ import annotations

import argparse
from typing import Any

from . import naming

HELP = "draw a layout, a swizzle, an atom, a tiled copy or MMA: as text, SVG, or a page that needs nothing else"
EXAMPLE = """\
examples:
  python -m numba_cute show '(4,8):(8,1)'
  python -m numba_cute show 'cute.make_layout((4, 8), stride=(1, 4))'
  python -m numba_cute show 'S<3,4,3>' --html swizzle.html
  python -m numba_cute show gemm.py:tiled_copy --svg copy.svg
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", help="CuTe's notation, Python that makes an object, or FILE.py:NAME")
    parser.add_argument("--svg", metavar="FILE", help="write the picture")
    parser.add_argument("--html", metavar="FILE", help="write a page")


def run(given: argparse.Namespace) -> int:
    """Run it; gives the exit code."""
    import numba_cute as cute

    picture = cute.show(_value(given.what))
    if given.svg:
        picture.svg(given.svg)
    if given.html:
        picture.html(given.html)
    if not given.svg and not given.html:
        print(picture)
    return 0


def _value(text: str) -> Any:
    """Give what the command line names."""
    import numba_cute as cute

    file, name = naming.split(text)
    if name and (file.endswith(".py") or file.replace(".", "").isidentifier()):
        return naming.evaluated(name, naming.module_of(file), text)
    if text.lstrip().startswith(("(", "S<")) or text.replace(":", "").isdigit():
        return cute.layout_from_str(text)
    return naming.evaluated(text, cute, "show")
