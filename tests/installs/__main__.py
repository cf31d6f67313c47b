# SPDX-License-Identifier: Apache-2.0
"""Install the wheel in fresh environments and use it there: `python -m tests.installs [3.12 …] [cu13 …] [--record]`.

Without arguments all Pythons and kinds: "none" (no extra, no CUDA), "cu12", "cu13", "ir" (cu13 and xDSL). Each has an
environment of its own, made by uv if there is one and else by venv and pip, and runs `uses.py` in it. --record writes
benchmarks/results/installs.json. Needs a package index; a Python that is not here is told, and is no failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .build import ROOT, build, clean_environment

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
KINDS = {"none": "", "cu12": "[cu12]", "cu13": "[cu13]", "ir": "[cu13,ir]"}
RESULTS = ROOT / "benchmarks" / "results" / "installs.json"


def python(wanted: str) -> str | None:
    """The path of a Python of this version: on the PATH, of pyenv, or of uv."""
    places = [shutil.which(f"python{wanted}")]
    places += sorted(
        map(str, Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{wanted}.*/bin/python"))
    )
    if shutil.which("uv"):
        places.append(subprocess.run(["uv", "python", "find", wanted], capture_output=True, text=True).stdout.strip())
    for place in filter(None, places):
        asked = subprocess.run(
            [place, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True, text=True
        )
        if asked.stdout.strip() == wanted:
            return place
    return None


def run(*command: Any, cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, env=clean_environment())
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(interpreter: str, wheel: Path, kind: str, folder: Path) -> Path:
    """Make an environment with the wheel; gives its Python."""
    inside = folder / "environment" / "bin" / "python"
    what = f"numba-cute{KINDS[kind]} @ {wheel.as_uri()}"
    if shutil.which("uv"):
        run("uv", "venv", "-q", "-p", interpreter, "environment", cwd=folder)
        run("uv", "pip", "install", "-q", "-p", inside, what, cwd=folder)
    else:
        run(interpreter, "-m", "venv", "environment", cwd=folder)
        run(inside, "-m", "pip", "install", "-q", what, cwd=folder)
    return inside


def tried(wanted: str, kind: str, wheel: Path) -> dict[str, Any]:
    """What comes of one Python and one kind."""
    interpreter = python(wanted)
    if interpreter is None:
        return {"result": "no such Python here"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            inside = install(interpreter, wheel, kind, Path(folder))
            said = run(inside, ROOT / "tests" / "installs" / "uses.py", ROOT / "README.md", kind, cwd=Path(folder))
        except RuntimeError as e:
            return {"result": "failed", "error": str(e).strip().splitlines()[-1]}
        return {"result": "right", **json.loads(said.splitlines()[-1])}


def main(arguments: list[str]) -> int:
    pythons = [a for a in arguments if a in PYTHONS] or PYTHONS
    kinds = [a for a in arguments if a in KINDS] or KINDS
    unknown = {*arguments} - {*PYTHONS, *KINDS, "--record"}
    if unknown:
        print(
            f"{', '.join(sorted(unknown))}: neither a Python of {', '.join(PYTHONS)} nor a kind of {', '.join(KINDS)}"
        )
        return 2
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        wheel = build("wheel", Path(folder))
        for wanted in pythons:
            for kind in kinds:
                found[f"{wanted} {kind}"] = made = tried(wanted, kind, wheel)
                print(f"{wanted} {kind}: {made['result']} {made.get('error', '')}", flush=True)
    if "--record" in arguments:
        held = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**held, **found}, indent=1) + "\n")
    return int(any(made["result"] == "failed" for made in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
