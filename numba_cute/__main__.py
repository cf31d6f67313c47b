# SPDX-License-Identifier: Apache-2.0
"""`python -m numba_cute`: the command line. Each command has a file of `cli/`; docs/cli.md shows what they say."""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from . import __version__
from .cli import about, caching, compiling, documents, explaining, intermediate, showing, simulating
from .seam import CuteError
from .seam.ground.packages import is_library_file

ABOUT = """\
CuTe for Numba, at the command line.

A kernel is named as FILE.py:KERNEL, and its arguments as Python: 'float32[64, 128]' is an array. Without arguments the
file is run and its own launches are taken; nothing needs a GPU.
"""
START = """\
to begin with:
  python -m numba_cute info                        what is here, what is missing, and what installs it
  python -m numba_cute simulate examples/FILE.py   a program on the CPU, with all checks
  python -m numba_cute compile examples/FILE.py    registers, spills, shared memory and notes of its kernels
  python -m numba_cute COMMAND --help              a command, with examples
"""


def _is_above(frame: FrameType) -> bool:
    """Say whether a frame stands above those of a file that is run."""
    module = frame.f_globals.get("__name__", "").partition(".")[0]
    return is_library_file(frame.f_code.co_filename) or module in ("runpy", "importlib", "contextlib")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code. arguments: in place of the process's."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["opt"]:
        return intermediate.run_opt(words[1:])
    if words[:2] == ["ir", "lift"]:
        words[1] = "--lift"
    made = parser()
    given, more = made.parse_known_args(words)
    if more and (any(w.startswith("--") for w in more) or not hasattr(given, "arguments")):
        made.error(f"unrecognized arguments: {' '.join(more)}")
    if more:  # arguments of a kernel that stand behind an option
        given.arguments = [*given.arguments, *more]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Grid size .* will likely result in GPU under-utilization")
            return int(given.run(given))
    except CuteError as e:
        print(e, file=sys.stderr)
        return 1
    except OSError as e:
        print(f"{e.filename or given.command}: {e.strerror or e}", file=sys.stderr)
        return 1
    except Exception as e:  # of the file that was run
        if not _begins_with_users(e):
            raise
        traceback.print_exception(type(e), e, e.__traceback__)
        return 1


def _begins_with_users(e: Exception) -> bool:
    """Have a traceback begin with the file that a command runs; False where it never comes there."""
    at = e.__traceback__
    while at is not None and _is_above(at.tb_frame):
        at = at.tb_next
    if at is not None:
        e.__traceback__ = at
    return at is not None


def parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
    made = argparse.ArgumentParser(
        prog="python -m numba_cute", description=ABOUT, epilog=START,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("--version", action="version", version=f"numba_cute {__version__}")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, options: Callable[[argparse.ArgumentParser], None], run: Any, about: str, example: str) -> None:
        one = commands.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=example,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        options(one)
        one.set_defaults(run=run)

    for name, module in (
        ("compile", compiling), ("simulate", simulating), ("explain", explaining), ("show", showing), ("info", about),
        ("cache", caching), ("docs", documents),
    ):  # fmt: skip
        add(name, module.add, module.run, module.HELP, module.EXAMPLE)
    add("run", intermediate.add_run, intermediate.run_program, intermediate.HELP_RUN, intermediate.EXAMPLE_RUN)
    add("ir", intermediate.add_ir, intermediate.run_ir, intermediate.HELP_IR, intermediate.EXAMPLE_IR)
    commands.add_parser("opt", help=intermediate.HELP_OPT)
    return made


if __name__ == "__main__":
    sys.exit(main())
