# SPDX-License-Identifier: Apache-2.0
"""Run the suite on every Python that is promised: `python -m tests.pythons [3.10 3.13 …] [--venvs DIR] [-- pytest's]`.

Without Pythons all of them. Each has an environment in DIR (by default out/pythons, which git ignores), named as the
Python is; one that is not there is made of an interpreter on the PATH, of pyenv or of uv, with `-e .[cu13]` and the
group `test`. What follows `--` goes to pytest in the place of `-n 2 --dist loadscope`. A table of the results is
printed. A run of the whole suite is recorded, with the commit and the date, in benchmarks/results/pythons.json. The
exit status is 1 if a test failed or a Python is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..installs.__main__ import PYTHONS, python

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "pythons.json"
ALL = ("-n", "2", "--dist", "loadscope")
OUTCOMES = ("passed", "failed", "error", "skipped")


def environment(wanted: str, folder: Path) -> Path | None:
    """The Python of the environment for a version, made if it is not there; None where there is no interpreter."""
    inside = folder / wanted / "bin" / "python"
    if inside.exists():
        return inside
    interpreter = python(wanted)
    if interpreter is None:
        return None
    home = inside.parents[1]
    print(f"{wanted}: installing in {home}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("uv"):
        made = [["uv", "venv", "-q", "-p", interpreter, home]]
        install = ["uv", "pip", "install", "-q", "-p", inside]
    else:
        made = [[interpreter, "-m", "venv", home], [inside, "-m", "pip", "install", "-q", "--upgrade", "pip>=25.1"]]
        install = [inside, "-m", "pip", "install", "-q"]
    try:
        for command in (*made, [*install, "-e", f"{ROOT}[cu13]", "--group", f"{ROOT / 'pyproject.toml'}:test"]):
            subprocess.run([*map(str, command)], check=True, cwd=ROOT)
    except BaseException:  # interrupted too: one that is not whole is made again
        shutil.rmtree(home, ignore_errors=True)
        raise
    return inside


def counted(said: str) -> dict[str, int]:
    """How many tests had each outcome, by the last line in which pytest says so."""
    lines = [line for line in said.splitlines() if re.search(r"\d+ (passed|failed|error|skipped).* in [\d.]+s", line)]
    found = {kind: 0 for kind in OUTCOMES}
    for number, kind in re.findall(r"(\d+) (passed|failed|error|skipped)", lines[-1] if lines else ""):
        found[kind] = int(number)
    return found


def tried(wanted: str, folder: Path, options: list[str]) -> dict[str, Any]:
    """What the suite gives on one Python."""
    try:
        inside = environment(wanted, folder)
    except subprocess.CalledProcessError as e:
        return {"result": f"not installed: {e}"}
    if inside is None:
        return {"result": "no such Python here"}
    begun = time.monotonic()
    asked = [str(inside), "-m", "pytest", "-q", *options]
    # the worktree's own package, whichever one the environment was made for
    where = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(asked, cwd=ROOT, env=where, capture_output=True, text=True)
    version = subprocess.run([inside, "-V"], capture_output=True, text=True).stdout.split()[-1]
    made = {"version": version, **counted(done.stdout), "seconds": round(time.monotonic() - begun)}
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode:
        print("\n".join(told) or f"{done.stdout[-4000:]}{done.stderr[-4000:]}", flush=True)
    return {"result": "failed" if done.returncode else "passed", **made}


def table(found: dict[str, Any]) -> str:
    """The results, one Python a line."""
    rows = [("python", *OUTCOMES, "seconds", "")]
    for wanted, made in found.items():
        numbers = (str(made.get(name, "")) for name in (*OUTCOMES, "seconds"))
        rows.append((made.get("version", wanted), *numbers, "" if made["result"] == "passed" else made["result"]))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:-1]), row[-1]]) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def record(found: dict[str, Any], results: Path = RESULTS) -> None:
    """Keep what each Python gave, with the commit and the date; of the others what they gave before."""
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    of = {"commit": asked.stdout.strip(), "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}
    held = json.loads(results.read_text()) if results.exists() else {}
    held |= {wanted: {**of, **made} for wanted, made in found.items() if "version" in made}
    results.write_text(json.dumps(held, indent=1) + "\n")


def main(arguments: list[str]) -> int:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser("tests.pythons", description=__doc__, allow_abbrev=False)
    parser.add_argument("pythons", nargs="*", metavar="3.x", help=f"of {', '.join(PYTHONS)}")
    parser.add_argument("--venvs", type=Path, default=ROOT / "out" / "pythons", help="where the environments are")
    asked, given = parser.parse_args(arguments[:at]), arguments[at + 1 :]
    unknown = [p for p in asked.pythons if p not in PYTHONS]
    if unknown:
        parser.error(f"{', '.join(unknown)}: not a Python of {', '.join(PYTHONS)}")
    found: dict[str, Any] = {}
    for wanted in asked.pythons or PYTHONS:
        found[wanted] = tried(wanted, asked.venvs, given or [*ALL])
        if not given:
            record({wanted: found[wanted]})
    print(table(found))
    return int(any(made["result"] != "passed" for made in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
