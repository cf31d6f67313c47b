# SPDX-License-Identifier: Apache-2.0
"""`simulate`: a kernel, or a whole file, on the CPU."""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

from ..seam import CuteError
from . import compiling, launched, naming

HELP = "run a kernel, or a file with all that it launches, on the CPU: races, deadlocks, wrong addresses"
EXAMPLE = """\
examples:
  python -m numba_cute simulate saxpy.py                        the file as it stands, its launches simulated
  python -m numba_cute simulate saxpy.py:saxpy                  one launch, as the file makes it
  python -m numba_cute simulate saxpy.py:saxpy --grid 8 --block 128 2.0 'float32[1024]' 'float32[1024]'
  python -m numba_cute simulate saxpy.py:saxpy --trace run.html --seed 1
"""


def add(parser: argparse.ArgumentParser) -> None:
    naming.add_kernel(parser)
    add_launch(parser)
    parser.add_argument(
        "--checks", metavar="NAME[,NAME]", help='of the simulator, these alone; "none"; "-races": all but'
    )
    parser.add_argument("--seed", type=int, metavar="N", help="another order of threads")
    parser.add_argument("--sms", type=int, metavar="N", help="how many SMs the GPU has")
    parser.add_argument("--prove", action="store_true", help="fail if another order could do something else")
    parser.add_argument("--trace", metavar="FILE", help="write a timeline: FILE.html to read, FILE.json for Perfetto")


def add_launch(parser: argparse.ArgumentParser) -> None:
    """Add what a launch takes to a command's options."""
    parser.add_argument("--grid", metavar="N[,N[,N]]", help="blocks; those of the file's launch without")
    parser.add_argument("--block", metavar="N[,N[,N]]", help="threads of a block, likewise")
    parser.add_argument("--cluster", metavar="N[,N[,N]]", help="blocks of a cluster, likewise")
    parser.add_argument("--smem", type=int, metavar="BYTES", help="of dynamic shared memory, likewise")
    parser.add_argument("--arch", default="sm_90a", metavar="ARCH", help='the GPU, as "sm_100a"')


def run(given: argparse.Namespace) -> int:
    """Run it; gives the exit code."""
    import numba_cute as cute

    trace = cute.sim.Trace() if given.trace else None
    options: dict[str, Any] = {
        "arch": given.arch, "seed": given.seed, "sms": given.sms, "prove": given.prove, "trace": trace,
        "checks": _checks(given.checks),
    }  # fmt: skip
    file, name = naming.split(given.kernel)
    notes = _Notes()
    with notes:
        if not name and not given.arguments:
            began = time.monotonic()
            with cute.simulation(**options):
                launched.run_program(file)
            print(f"{file}: its launches did nothing wrong ({time.monotonic() - began:.1f} s)")
        else:
            for one in launches(given):
                _simulate(one, options)
    if trace is None:  # which asks for each thread's steps
        notes.write()
    else:
        print(trace)
        (trace.html if given.trace.endswith((".html", ".htm")) else trace.perfetto)(given.trace)
    return 0


def launches(given: argparse.Namespace) -> list[launched.Launched]:
    """Give the launches that the command line names, with grid and block."""
    asked = {n: _extents(n, getattr(given, n)) for n in ("grid", "block", "cluster") if getattr(given, n)}
    if given.smem is not None:
        asked["smem"] = given.smem
    from ..seam.marks.constexpr import is_host

    found = compiling.launches(given.kernel, given.arguments, given.arch)
    for one in found:
        if not is_host(one.kernel) and not {"grid", "block"} <= {*one.options, *asked}:
            raise CuteError(f"{given.kernel} with arguments: give --grid and --block, the launch configuration")
    return [one._replace(options={**one.options, **asked}) for one in found]


def _simulate(one: launched.Launched, options: dict[str, Any]) -> None:
    """Simulate a launch, and say what it was."""
    import numba_cute as cute
    from numba_cute.seam.marks.constexpr import is_host

    began = time.monotonic()
    given = ", ".join(map(naming.shown, one.arguments))
    if is_host(one.kernel):
        cute.simulate(one.kernel, **options)(*one.arguments)
        what = f"{getattr(one.kernel, '__name__', 'host function')}({given})"
    else:
        grid, block = one.options["grid"], one.options["block"]
        cluster, smem = one.options.get("cluster"), one.options.get("smem", 0)
        cute.simulate(one.kernel, cluster=cluster, **options)[grid, block, 0, smem](*one.arguments)
        what = f"{one.name}[{_plain(grid)}, {_plain(block)}]({given})"
    print(f"{what}: nothing wrong ({time.monotonic() - began:.1f} s)")


def _plain(extents: Any) -> Any:
    """Extents without ones at their end."""
    if not isinstance(extents, tuple):
        return extents
    while len(extents) > 1 and extents[-1] == 1:
        extents = extents[:-1]
    return extents[0] if len(extents) == 1 else extents


def _extents(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(n) for n in text.split(","))
    except ValueError:
        raise CuteError(f"--{name} {text}: give one to three numbers, as 8 or 8,4") from None


def _checks(text: str | None) -> Any:
    if text is None:
        return True
    return [name for name in text.split(",") if name not in ("", "none")] or False


class _Notes(logging.Handler):
    """A handler of the simulator's notes on launches that take longer than they need."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.said: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.said[record.getMessage()] = None

    def __enter__(self) -> None:
        logger = logging.getLogger("numba_cute.sim")
        self._level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger("numba_cute.sim")
        logger.setLevel(self._level)
        logger.removeHandler(self)

    def write(self) -> None:
        """Print what was said, each once."""
        for text in self.said:
            print(f"note: {text}")
