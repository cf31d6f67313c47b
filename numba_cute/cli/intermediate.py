# SPDX-License-Identifier: Apache-2.0
"""`ir`, `opt` and `run`: modules of the CuTe IR, and programs."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..inspecting import load
from ..seam import CuteError

HELP_IR = "read a module of the CuTe IR, run passes over it, and print it"
EXAMPLE_IR = """\
examples:
  python -m numba_cute ir module.mlir --pass canonicalize,cse
  python -m numba_cute ir lift module.mlir -o kernel.py          the module as Python
  python -m numba_cute ir - --pass list < /dev/null              the passes that there are
"""
HELP_OPT = "the same for the dialect as NVIDIA published it: -split-input-file and the like (opt --help)"
HELP_RUN = "run a Python file of the CuTe DSL, or a program of its IR"
EXAMPLE_RUN = """\
examples:
  python -m numba_cute run dense_gemm.py --mnkl 512,512,256,1         its `import cutlass` is this library
  python -m numba_cute run --simulate --arch sm_100a dense_gemm.py    no GPU
  python -m numba_cute run program.mlir -e main
"""


def run_opt(words: Sequence[str]) -> int:
    """Run `opt`; gives the exit code."""
    try:
        load()
        from ..ir.dialect import opt

        options = opt.parsed(words)
        made = opt.run(_text(options.file), options)
    except CuteError as e:
        print(e, file=sys.stderr)
        return 1
    except OSError as e:
        print(f"opt: {e.filename}: {e.strerror or e}", file=sys.stderr)
        return 1
    print(made.text, end="")
    for problem in made.problems:
        print(problem, file=sys.stderr)
    return 1 if made.problems else 0


def add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("file", metavar="FILE", help="FILE.py, whose `import cutlass` is this library; or the text of a "
                     "program of the IR, which is run on the host; - is what comes in")  # fmt: skip
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="what FILE.py finds in sys.argv")
    run.add_argument("--simulate", action="store_true", help="of FILE.py: simulate its kernels; there need be no GPU")
    run.add_argument("--arch", default="sm_90a", metavar="ARCH", help='of --simulate: the GPU, as "sm_100a"')
    run.add_argument("--checks", metavar="NAME[,NAME]", help="of --simulate: these checks of the simulator alone; none")
    run.add_argument("--seed", type=int, metavar="N", help="of --simulate: another order of threads")
    run.add_argument("--sms", type=int, metavar="N", help="of --simulate: how many SMs the GPU has; persistent kernels "
                     "fill them all, a few take less time")  # fmt: skip
    run.add_argument("--compile", action="store_true", help="of --simulate: compile what cute.compile is given, too")
    run.add_argument("-e", "--entry", default="main", metavar="NAME", help="of the IR: the function that is run")


def run_program(given: argparse.Namespace) -> int:
    """Run `run`; gives the exit code."""
    return _run_python(given) if given.file.endswith(".py") else _run(given.file, given.entry)


def _run_python(given: argparse.Namespace) -> int:
    """Run a Python file; gives the exit code. What it raises is shown as Python shows it."""
    from ..compat.running import run_file
    from ..compat.runs import Run

    run = None
    names = None if given.checks is None else [n for n in given.checks.split(",") if n not in ("", "none")]
    checks = True if names is None else names or False
    try:
        if given.simulate:
            run = Run(given.arch, compiles=given.compile, checks=checks, seed=given.seed, sms=given.sms)
        run_file(given.file, given.arguments, run)
    except CuteError as e:
        print(e, file=sys.stderr)
        return 1
    for kernel in run.kernels if run is not None else ():
        used = kernel.resources
        print(f"{kernel.name}: {used.registers} registers, {used.spill_stores} bytes spilled, {used.shared} static and "
              f"{used.dynamic_shared} dynamic bytes of shared memory", file=sys.stderr)  # fmt: skip
    return 0


def _run(file: str, entry: str) -> int:
    """Run a program of the IR; gives the exit code."""
    try:
        load()
        from ..ir.dialect import modules, running

        found = modules.read(_text(file))
        for problem in found.problems:
            print(problem.shown(file), file=sys.stderr)
        if found.op is None or found.problems:
            return 1
        running.run(found.op, lambda text: print(text, end=""), os.environ, entry)
    except (CuteError, OSError) as e:
        print(f"{file}: {e.strerror if isinstance(e, OSError) else e}", file=sys.stderr)
        return 1
    return 0


def add_ir(ir: argparse.ArgumentParser) -> None:
    ir.add_argument("file", metavar="FILE", help="the module's text; - is what comes in")
    ir.add_argument(
        "--pass", dest="passes", action="append", default=[], metavar="NAME[,NAME]",
        help="passes, in this order; `list` lists them",
    )  # fmt: skip
    ir.add_argument(
        "--module", dest="modules", action="append", default=[], metavar="NAME",
        help="a module to import whose functions and classes the text may name; what it names of others stays a symbol",
    )  # fmt: skip
    ir.add_argument(
        "--lift", action="store_true", help="write the module as Python instead; `ir lift FILE` is the same"
    )
    ir.add_argument("--target", metavar="ARCH", help='the GPUs that it is for, in place of what it says: "sm_90a"')
    ir.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where the module goes, in place of what goes out"
    )


def run_ir(given: argparse.Namespace) -> int:
    """Run `ir`; gives the exit code."""
    text = _ir(given)
    if given.output is None:
        print(text, end="")
    else:
        given.output.write_bytes(text.encode())
    return 0


def _module(name: str, what: str = "--module ") -> Any:
    try:
        return importlib.import_module(name)
    except Exception as e:  # the user's module may do anything
        said = e if isinstance(e, ImportError) else f"{type(e).__name__}: {e}"
        raise CuteError(f"{what}{name}: {said}") from e


def _text(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode()
    except ValueError as e:  # no UTF-8, or no name of a file
        raise CuteError(f"{file}: {e}") from e


def _ir(given: argparse.Namespace) -> str:
    load()
    from ..ir import parse, passes, to_python

    names = [name for group in given.passes for name in group.split(",") if name]
    if names == ["list"]:
        return "".join(f"{name}: {(p.__doc__ or '').splitlines()[0]}\n" for name, p in passes.PASSES.items())
    text = _text(given.file)
    modules = [_module(name) for name in given.modules]
    module = parse(text, "<stdin>" if given.file == "-" else given.file, given.target, names=modules)
    module = passes.run(module, names) if names else module
    return to_python(module) if given.lift else str(module)
