# SPDX-License-Identifier: Apache-2.0
"""`explain`: what a kernel's lines become, an instruction is, a check finds, a target has."""

from __future__ import annotations

import argparse
import inspect
from difflib import get_close_matches
from typing import Any

from ..seam import CuteError
from . import compiling, naming

HELP = "say what a kernel's lines become, what an instruction of PTX does, a check finds, or a target has"
EXAMPLE = """\
examples:
  python -m numba_cute explain saxpy.py:saxpy                   layouts, operations and PTX, line by line
  python -m numba_cute explain races                            a check of the simulator
  python -m numba_cute explain mbarrier.try_wait                an instruction of PTX
  python -m numba_cute explain sm_90a                           a target
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", help=f"a kernel, {naming.SPEC}; or a check, an instruction, a target")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help=f"of a kernel: {naming.ABOUT_ARGUMENTS}")
    parser.add_argument("--arch", default="sm_90a", metavar="ARCH", help="of a kernel: the target")
    parser.add_argument("--limit", type=int, default=8, metavar="N", help="instructions that an operation shows (8)")


def run(given: argparse.Namespace) -> int:
    """Run it; gives the exit code."""
    if ":" in given.what or given.what.endswith(".py"):
        for kernel, args in compiling.kernels_of(given.what, given.arguments, given.arch):
            _explain_kernel(kernel, args, given.arch, given.limit)
        return 0
    print(word(given.what))
    return 0


def _explain_kernel(kernel: Any, args: Any, arch: str, limit: int) -> None:
    import numba_cute as cute

    from ..seam.marks.constexpr import is_host

    if is_host(kernel):
        raise CuteError("explain takes a kernel, and not a function that launches some: name the kernel")
    print(cute.inspect_ptx(kernel, tuple(args), arch).text(limit=limit))
    held = cute.inspect_layouts(kernel, tuple(args), arch)
    if held:
        print(f"layouts, tensors and atoms that its variables hold:\n{held}\n")
    made = cute.compile(kernel, tuple(args), arch=arch)
    print(compiling.summary(made, kernel, args))


def word(name: str) -> str:
    """Explain a check, an instruction or a target by its name. CuteError: it is none."""
    from ..isa.form.instr import TABLE
    from ..isa.form.targets import TARGETS, target
    from ..sim.checks import CHECKS

    if name in TARGETS:
        return repr(target(name))
    if name in CHECKS:
        return f"{name}: a check of the simulator\n\n{_doc(CHECKS[name])}"
    rows = [row for row in TABLE.values() if name in (row.name, row.mnemonic)]
    if not rows:
        rows = [row for row in TABLE.values() if row.mnemonic.startswith(name)]
    if rows:
        return "\n\n".join(map(_row, rows[:8])) + (f"\n\nand {len(rows) - 8} more" if len(rows) > 8 else "")
    known = [*TARGETS, *CHECKS, *TABLE]
    near = get_close_matches(name, known, 3)
    raise CuteError(
        f"explain {name}: it is no check, instruction or target; "
        + (f"did you mean {', '.join(near)}?" if near else f"the checks are {', '.join(CHECKS)}")
    )


def _doc(value: Any) -> str:
    return inspect.getdoc(value) or ""


def _row(row: Any) -> str:
    """Write an instruction as the table has it."""
    said = "as sem and scope say" if "{sem}" in row.in_a_line else "weak: it orders nothing"
    order = f"{row.sem} at {row.scope}" if row.sem else said
    lines = {
        "PTX": row.in_a_line,
        "target": f"{row.target} and later" if not row.target.endswith("a") else row.target,
        "issued by": f"a {row.issuer}",
        "operands": "; ".join(o.name for o in row.operands) or "none",
        "memory": f"by the {row.proxy} proxy; {order}",
        "complete": f"when its {row.done_by} is" if row.done_by else "when it is issued",
    }
    facts = "\n".join(f"  {name:<10} {text}" for name, text in lines.items())
    return f"{row.name}: an instruction\n\n{_doc(row.run)}\n\n{facts}"
