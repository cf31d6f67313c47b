# SPDX-License-Identifier: Apache-2.0
"""Install the wheel in fresh environments and use it there: `python -m tests.installs [3.12 …] [cu13 …] [--record]`.

--wheel FILE is one that is built already.

Without arguments all Pythons and kinds: "none" (no extra, no CUDA), "cu12", "cu13", "ir" (cu13 and xDSL), "mlir" (cu13
and numba-cuda-mlir), "oldest" (cu12, each dependency at the oldest version that it allows) and "bare" (none of CUDA's
packages and no numba-cuda, as on macOS). Each has an environment of its own, made by uv if there is one and else by
venv and pip, and runs `uses.py` in it. --record writes benchmarks/results/installs.json. Needs a package index; a
Python that is not here is told, and is no failure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .build import ROOT, build, clean_environment

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
KINDS = {
    "none": "", "cu12": "[cu12]", "cu13": "[cu13]", "ir": "[cu13,ir]", "mlir": "[cu13,mlir]", "oldest": "[cu12]",
    "bare": "",
}  # fmt: skip
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


def dependencies() -> list[str]:
    """List what pyproject.toml says that the package needs, a line each."""
    text = (ROOT / "pyproject.toml").read_text()  # Python 3.10 has no tomllib
    return re.findall(r'^    "([^"]+)"', re.findall(r"^dependencies = \[\n(.*?)^\]", text, re.M | re.S)[0], re.M)


def wanted_of(wheel: Path, kind: str) -> list[str]:
    """List what an environment of this kind is asked to install."""
    if kind == "bare":
        return ["--no-deps", wheel.as_uri()]
    oldest = [re.sub(r">=([^,;]+)(,[^;]+)?", r"==\1", line) for line in dependencies()] if kind == "oldest" else []
    return [f"numba-cute{KINDS[kind]} @ {wheel.as_uri()}", *oldest]


def install(interpreter: str, wheel: Path, kind: str, folder: Path) -> Path:
    """Make an environment with the wheel; gives its Python."""
    inside = folder / "environment" / "bin" / "python"
    what = wanted_of(wheel, kind)
    everywhere = [line for line in dependencies() if ";" not in line] if kind == "bare" else []
    if shutil.which("uv"):
        run("uv", "venv", "-q", "-p", interpreter, "environment", cwd=folder)
        command: tuple[Any, ...] = ("uv", "pip", "install", "-q", "-p", inside)
    else:
        run(interpreter, "-m", "venv", "environment", cwd=folder)
        command = inside, "-m", "pip", "install", "-q"
    run(*command, *what, cwd=folder)
    if everywhere:
        run(*command, *everywhere, cwd=folder)
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


def python_or_kind(text: str) -> str:
    if text not in PYTHONS and text not in KINDS:
        raise argparse.ArgumentTypeError(
            f"{text}: neither a Python of {', '.join(PYTHONS)} nor a kind of {', '.join(KINDS)}"
        )
    return text


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("of", nargs="*", metavar="PYTHON|KIND", type=python_or_kind)
    parser.add_argument("--record", action="store_true", help=f"add what comes of it to {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--wheel", type=Path, help="a wheel that is built already")
    options = parser.parse_args(arguments)
    pythons = [a for a in options.of if a in PYTHONS] or PYTHONS
    kinds = [a for a in options.of if a in KINDS] or KINDS
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        wheel = options.wheel.resolve() if options.wheel else build("wheel", Path(folder))
        for wanted in pythons:
            for kind in kinds:
                found[f"{wanted} {kind}"] = made = tried(wanted, kind, wheel)
                print(f"{wanted} {kind}: {made['result']} {made.get('error', '')}", flush=True)
    if options.record:
        held = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**held, **found}, indent=1) + "\n")
    return int(any(made["result"] == "failed" for made in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
