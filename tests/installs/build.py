# SPDX-License-Identifier: Apache-2.0
"""The distributions of this tree, built of what git tracks (or of an unpacked sdist), beside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NOT_SOURCE = {
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "out",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
}
_MAKE = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])('dist'))"


def sources() -> list[str]:
    """The files of the tree: those that git tracks; in an unpacked sdist all."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
        return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    found = (path.relative_to(ROOT) for path in sorted(ROOT.rglob("*")) if path.is_file())
    return [path.as_posix() for path in found if not _NOT_SOURCE & {*path.parts} and ".egg-info" not in path.parts[0]]


def build(kind: str, into: Path) -> Path:
    """Build the "sdist" or the "wheel" of a copy of the tree in the folder `into`; gives its path."""
    tree = into / "tree"
    for name in sources():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
    done = subprocess.run([sys.executable, "-c", _MAKE, f"build_{kind}"], cwd=tree, capture_output=True, text=True,
                          env=clean_environment(), check=False)  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the {kind} cannot be built:\n{done.stdout}{done.stderr}")
    return tree / "dist" / done.stdout.splitlines()[-1]


def clean_environment(**more: str) -> dict[str, str]:
    """The environment variables without those that would show a Python other modules than its own."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")} | more
