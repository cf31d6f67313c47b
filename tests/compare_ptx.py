# SPDX-License-Identifier: Apache-2.0
"""Whether a change leaves the code of all kernels as it was: the PTX of every kernel test, at a commit and now.

    python tests/compare_ptx.py HEAD~3                     all kernel tests that both have: some minutes
    python tests/compare_ptx.py main tests/kernels         those of a folder
    python tests/compare_ptx.py --record                   the digests that every run of the tests compares with

Lists the tests whose PTX differs, with the first lines that do; exits with 1 if there are any.
"""

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ptx_digests import RECORDED, normalised

ROOT = Path(__file__).resolve().parents[1]
KEEPS_PTX = ("conftest.py", "ptx_digests.py", "ptx_digests.json", "thinned.py")
KERNELS = ("tests/compiler", "tests/kernels", "tests/pipeline")
"""The tests whose digests are recorded: of whole kernels, not of single instructions."""
NO_TESTS = (4, 5)  # pytest's exit codes for a path that is not there, and for a folder with nothing of the kind


def run_assembler(tree, tests, **environment):
    """Run the assembler's tests of a source tree."""
    env = {**os.environ, **environment, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "pytest", "-q", "-k", "assembler", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=tree, env=env, stdout=subprocess.DEVNULL, check=False).returncode


def collect(tree, tests, folder):
    """The PTX of the assembler's tests of a source tree, by the name of the test."""
    folder.mkdir()
    if run_assembler(tree, tests, CUTE_TEST_PTX=str(folder)) in NO_TESTS:
        sys.exit(f"{tree}: there are no such tests: {' '.join(tests)}")
    return {f.name: normalised(f.read_text()) for f in sorted(folder.glob("*.ptx"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="what to compare the working tree with")
    parser.add_argument("--record", action="store_true", help=f"write tests/{RECORDED.name} anew from the working tree")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or folders; default: all")
    args = parser.parse_args()
    if args.record == bool(args.commit):
        parser.error("name a commit to compare with, or --record")
    if args.record:
        return run_assembler(ROOT, KERNELS, CUTE_TEST_PTX_RECORD=str(RECORDED))
    with tempfile.TemporaryDirectory() as temporary:
        before = Path(temporary) / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", "-q", before, args.commit], cwd=ROOT, check=True)
        try:
            for name in KEEPS_PTX:
                (before / "tests" / name).write_text((ROOT / "tests" / name).read_text())
            old = collect(before, args.tests, Path(temporary) / "old")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", before], cwd=ROOT, check=True)
        new = collect(ROOT, args.tests, Path(temporary) / "new")
    both = sorted(old.keys() & new.keys())
    changed = [name for name in both if old[name] != new[name]]
    for name in changed:
        print(name)
        diff = difflib.unified_diff(old[name].splitlines(), new[name].splitlines(), "before", "now", lineterm="", n=1)
        print("\n".join(list(diff)[:12]))
    print(
        f"{len(both)} kernels compared, {len(changed)} changed; {len(old) - len(both)} gone, {len(new) - len(both)} new"
    )
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
