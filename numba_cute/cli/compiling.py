# SPDX-License-Identifier: Apache-2.0
"""`compile`: a kernel for any target, with what it uses, what was noted of it, and its code beside the source."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..seam import CuteError
from . import launched, naming

HELP = "compile a kernel for a target, with no GPU: registers, spills, shared memory, notes, PTX, SASS"
EXAMPLE = """\
examples:
  python -m numba_cute compile saxpy.py                         all kernels that saxpy.py launches
  python -m numba_cute compile saxpy.py:saxpy                   one of them, with the arguments of that launch
  python -m numba_cute compile saxpy.py:saxpy 2.0 'float32[1024]' 'float32[1024]' --arch sm_80 --sass
  python -m numba_cute compile 'gemm.py:make_kernel(stages=4)' 'bf16[64, 64]' --arch sm_90a,sm_100a
"""


def add(parser: argparse.ArgumentParser) -> None:
    naming.add_kernel(parser)
    parser.add_argument("--arch", default="sm_90a", metavar="ARCH[,ARCH]", help='the targets: "sm_90a", "sm_100a"')
    parser.add_argument("--ptx", action="store_true", help="print the PTX under each line of the source")
    parser.add_argument("--sass", action="store_true", help="print the machine code under each line (needs nvdisasm)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the kernel to FILE.cubin or FILE.ptx")
    parser.add_argument("--strict", action="store_true", help="fail where a note says that speed is lost")


def run(given: argparse.Namespace) -> int:
    """Run it; gives the exit code."""
    for arch in given.arch.split(","):
        for kernel, args in kernels_of(given.kernel, given.arguments, arch):
            for made, dispatcher, types in compiled(kernel, args, arch, given.strict):
                print(summary(made, dispatcher, args))
                print_code(given, dispatcher, types, arch)
                if given.output:
                    _write(given.output, made)
    return 0


def kernels_of(spec: str, arguments: list[str], arch: str) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Give the kernels that the command line names, each with its arguments."""
    for found in launches(spec, arguments, arch):
        yield found.kernel, found.arguments


def launches(spec: str, arguments: list[str], arch: str) -> list[launched.Launched]:
    """Give the launches that the command line names: of a kernel with its arguments, of a call, or of the file."""
    file, name = naming.split(spec)
    if not arguments and (not name or name.isidentifier()):
        return launched.launches_of(file, name, arch)
    if not arguments and name.endswith(")"):
        value, found = launched.called(spec, arch)
        if found and not callable(value):
            return found
    kernel, module = naming.kernel_of(spec)
    return [launched.Launched(kernel, naming.arguments_of(arguments, module), {})]


def compiled(kernel: Any, args: Any, arch: str, strict: bool = False) -> Iterator[tuple[Any, Any, Any]]:
    """Compile a kernel, or all that a function launches; gives each with its kernel and its arguments."""
    import numba_cute as cute
    from numba_cute.seam.marks.constexpr import is_host

    notes = "error" if strict else "keep"
    if not is_host(kernel):
        yield cute.compile(kernel, tuple(args), arch=arch, notes=notes), kernel, args
        return
    made = cute.compile(kernel, *args, arch=arch, notes=notes)
    for one in made.kernels:
        yield one, one.kernel, None


def summary(made: Any, kernel: Any, args: Any) -> str:
    """Write what a compiled kernel uses, and its notes, a line each."""
    used = made.resources
    name = getattr(getattr(kernel, "py_func", kernel), "__name__", made.name)
    given = ", ".join(map(naming.shown, args)) if args is not None else ""
    groups = f" ({', '.join(map(str, used.group_registers))} of its warpgroups)" if used.group_registers else ""
    lines = [
        f"{name}({given}) for {made.arch}",
        f"  registers      {used.registers}{groups}",
        f"  spills         {used.spill_stores} bytes stored, {used.spill_loads} bytes loaded",
        f"  local memory   {used.local} bytes",
        f"  shared memory  {used.shared} bytes static, {used.dynamic_shared} bytes dynamic",
        f"  code           {len(made.ptx.splitlines())} lines of PTX, {len(made.cubin)} bytes",
    ]
    return "\n".join([*lines, *(f"  note: {note}" for note in made.notes)])


def print_code(given: argparse.Namespace, kernel: Any, args: Any, arch: str) -> None:
    """Print a kernel's code beside its source, as far as that is asked for."""
    import numba_cute as cute
    from numba_cute.compiler.inspection.sass_lines import sass_of

    if (given.ptx or given.sass) and args is None:
        raise CuteError("--ptx and --sass take a kernel, and not a function that launches some: name the kernel")
    if given.ptx:
        print(cute.inspect_ptx(kernel, tuple(args), arch).text(limit=None), end="")
    if given.sass:
        print(sass_of(kernel, tuple(args), arch), end="")


def _write(file: str, made: Any) -> None:
    data = made.ptx.encode() if file.endswith(".ptx") else made.cubin
    with open(file, "wb") as out:
        out.write(data)
