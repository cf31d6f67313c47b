# SPDX-License-Identifier: Apache-2.0
"""Try the newest releases of what this package leans on: `python -m tests.newest [WHAT …] [--venvs DIR] [--record]`.

WHAT: "promised" (what pyproject.toml allows), the newest release of one package whatever pyproject.toml says of it
(numba, numba-cuda, numba-cuda-mlir, cuda-core, numpy), "all" of them at once, or "python" (promised, on the Python that
runs this, whatever pyproject.toml says of it); without WHAT all but the last. Each has an environment of its own, of
the Python that runs this, in which the package is imported and TESTS run. What pip cannot install, since the others do
not go with it or there is none for this Python, is told, and is no failure: nobody can use it.

--record writes benchmarks/results/newest.json. --join FILE… puts other machines' records into it. --told FILE… prints
the text of an issue for them, and nothing if none failed. .github/workflows/newest.yml does all of it each week.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..installs.build import ROOT, clean_environment

RECORD = ROOT / "benchmarks" / "results" / "newest.json"
PACKAGES = {"numba": "numba", "numba-cuda": "numba-cuda[cu13]", "numba-cuda-mlir": "numba-cuda-mlir[cu13]",
            "cuda-core": "cuda-core", "numpy": "numpy"}  # fmt: skip
"""The packages that are watched, each as pip is asked for it."""
WHAT = {
    "promised": [],
    **{name: [asked] for name, asked in PACKAGES.items()},
    "all": [*PACKAGES.values()],
    "python": [],
}
TOLD = ("numba-cute", *PACKAGES, "llvmlite", "cuda-bindings")
"""The packages whose versions are recorded."""
TESTS = (
    "tests/compiler/test_seam.py",  # every name, private or not, that is taken of Numba and llvmlite is there
    "tests/compiler/test_patches.py",  # what is replaced reads as it did
    "tests/compiler/test_numbas_own.py",  # Numba's numbers, types and conversions are what they were
    "tests/compiler/test_launches.py",  # launches, to the driver's door
    "tests/compiler/test_structs.py",  # typing, lowering and the assembler
    "tests/test_readme.py",  # the README's kernel, simulated and assembled
    "tests/numba_cuda_mlir",  # the bridge to numba-cuda-mlir: skipped where that is not installed
)
Result = dict[str, Any]


class Failed(Exception):
    """A step that failed. said: what it printed last."""

    def __init__(self, step: str, said: str) -> None:
        super().__init__(step)
        self.said = said


def run(step: str, *command: Any) -> str:
    """Run a command; gives what it printed. Failed: it failed."""
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, env=clean_environment())
    if done.returncode:
        lines = f"{done.stdout}\n{done.stderr}".strip().splitlines()
        raise Failed(step, "\n".join(lines[-30:]))
    return done.stdout


def install(what: str, folder: Path) -> Path:
    """Make an environment of this Python with the package in it; gives its Python."""
    inside = folder / what / "bin" / "python"
    run("venv", sys.executable, "-m", "venv", "--clear", folder / what)
    pip = inside, "-m", "pip", "install", "-q", "--prefer-binary"
    run("pip", *pip, "--upgrade", "pip>=25.1")
    any_python = ["--ignore-requires-python"] if what == "python" else []
    run("pip", *pip, *any_python, "-e", f"{ROOT}[cu13]", "--group", f"{ROOT / 'pyproject.toml'}:test")
    if WHAT[what]:  # pip says what that breaks of pyproject.toml's bounds, and does it; those of the others hold
        others = [f"{name}=={number}" for name, number in versions(inside).items() if name in PACKAGES]
        pinned = [other for other in others if other.partition("==")[0] != what] if what != "all" else []
        run("pip", *pip, "--upgrade", *WHAT[what], *pinned)
    return inside


def versions(inside: Path) -> dict[str, str]:
    """Give the versions of an environment, of the packages of TOLD that are there."""
    code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    listed = json.loads(run("versions", inside, "-c", code))
    there = {re.sub("[-_.]+", "-", name).lower(): number for name, number in listed.items()}
    return {name: there[name] for name in TOLD if name in there}


def use(inside: Path) -> None:
    """Import the package in an environment, and run the tests. Failed: it cannot be imported, or one of them failed."""
    run("import", inside, "-c", "import numba_cute")
    tests = [test for test in TESTS if (ROOT / test).exists()]
    run("tests", inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *tests)


def tried(what: str, folder: Path) -> Result:
    """Say what comes of one environment: "right", "failed" with the step, or "no release" for this Python."""
    made: Result = {"python": ".".join(map(str, sys.version_info[:3]))}
    try:
        inside = install(what, folder)
    except Failed as e:
        return {**made, "result": "failed" if what == "promised" else "no release", "step": str(e), "said": e.said}
    made["versions"] = versions(inside)
    try:
        use(inside)
    except Failed as e:
        return {**made, "result": "failed", "step": str(e), "said": e.said}
    return {**made, "result": "right"}


def record(found: dict[str, Result], file: Path = RECORD) -> None:
    """Keep what was found, with the commit and the day; of the others what was found before."""
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    of = {"commit": asked.stdout.strip(), "date": datetime.now(timezone.utc).strftime("%Y-%m-%d")}
    held = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**held, **{what: {**of, **made} for what, made in found.items()}}, indent=1) + "\n")


def joined(files: list[Path]) -> dict[str, Result]:
    """Put records together: of each environment the newest."""
    found: dict[str, Result] = {}
    for file in files:
        for what, made in json.loads(file.read_text()).items():
            if what not in found or made["date"] >= found[what]["date"]:
                found[what] = made
    return found


def told(found: dict[str, Result]) -> str:
    """Write the text of an issue about what failed; nothing if nothing did."""
    bad = {what: made for what, made in found.items() if made["result"] == "failed"}
    lines = []
    for what, made in bad.items():
        held = ", ".join(f"{name} {number}" for name, number in made.get("versions", {}).items())
        lines += [f"## {what}: {made['step']}", f"Python {made['python']}; {held or 'nothing was installed'}", ""]
        lines += ["```", made["said"], "```", ""]
    if bad:
        lines += ["To see it: `python -m tests.newest " + " ".join(bad) + "` (its `--help` says how). What is taken of "
                  "Numba stands in numba_cute/compiler/ground/numba_cuda.py, what is replaced in "
                  "numba_cute/compiler/patches.py.", ""]  # fmt: skip
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "tests.newest", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join(WHAT)}")
    parser.add_argument("--venvs", type=Path, help="where the environments are left")
    parser.add_argument("--record", nargs="?", type=Path, const=RECORD, metavar="FILE", help="write it there")
    parser.add_argument("--join", nargs="+", type=Path, metavar="FILE", help="put records into the one of the tree")
    parser.add_argument("--told", nargs="+", type=Path, metavar="FILE", help="print an issue's text for records")
    options = parser.parse_args(arguments)
    if unknown := [what for what in options.what if what not in WHAT]:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(WHAT)}")
    if options.told:
        print(told(joined(options.told)), end="")
        return 0
    if options.join:
        RECORD.write_text(json.dumps(joined([*filter(Path.exists, [RECORD]), *options.join]), indent=1) + "\n")
        return 0
    found: dict[str, Result] = {}
    with tempfile.TemporaryDirectory() as folder:
        for what in options.what or [w for w in WHAT if w != "python"]:
            found[what] = made = tried(what, options.venvs or Path(folder))
            print(f"{what}: {made['result']} {made.get('step', '')}\n{made.get('said', '')}".rstrip(), flush=True)
            if options.record:
                record({what: made}, options.record)
    return int(any(made["result"] == "failed" for made in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
