# SPDX-License-Identifier: Apache-2.0
"""Run benchmarks, print their figures beside the last ones, keep them, and draw them.

python -m benchmarks                        all that this machine can run
python -m benchmarks layouts simulator      these
python -m benchmarks gemm --sizes 4096      one, with its own options (--help lists them)
python -m benchmarks --list
python -m benchmarks --plots                draw what is kept, and run nothing (needs matplotlib)
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import harness


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; gives how many benchmarks failed."""
    given = sys.argv[1:] if arguments is None else arguments
    known = harness.names()
    if given and given[0] in known and any(a.startswith("-") for a in given[1:]):
        entry = harness.load(given[0])
        harness.main(entry, sys.modules[f"benchmarks.{given[0]}"].__doc__, given[1:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--plots", action="store_true", help="draw what is kept, beside what runs, if anything")
    parser.add_argument("--no-keep", action="store_true", help="print, and write nothing")
    parser.add_argument("--results", type=Path, default=harness.RESULTS, help="the folder of results")
    options = parser.parse_args(given)
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    if options.list:
        return listed(known)
    failed = 0
    for name in options.names or ([] if options.plots else known):
        failed += not attempted(name, options, asked=bool(options.names))
    if options.plots:
        from . import plots

        for file in plots.draw(options.results):
            print(f"drew {file}")
    return failed


def listed(known: list[str]) -> int:
    for name in known:
        try:
            entry = harness.load(name)
            print(f"{name:14} {'GPU' if entry.gpu else '   '}  {entry.about}")
        except ImportError as e:
            print(f"{name:14} needs what is not here: {e}")
    return 0


def attempted(name: str, options: argparse.Namespace, asked: bool) -> bool:
    """Whether a benchmark ran, or is none that this machine can run and nobody asked for by name."""
    try:
        entry = harness.load(name)
    except ImportError as e:
        print(f"{name}: left out: {e}")
        return not asked
    if entry.gpu and not harness.has_gpu():
        print(f"{name}: left out: it needs a GPU")
        return not asked
    try:
        own = harness.parser(entry, None).parse_args([])
        harness.perform(entry, own, options.results, not options.no_keep)
    except Exception as e:
        print(f"{name}: FAILED: {type(e).__name__}: {e}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
