# SPDX-License-Identifier: Apache-2.0
"""A source distribution holds what the repository does."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OF_THE_REPOSITORY = {".gitignore"}
BUILD = "from setuptools import build_meta; build_meta.build_sdist('dist')"


@pytest.fixture
def tracked():
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()} - OF_THE_REPOSITORY


def test_a_source_distribution_holds_every_file(tracked, tmp_path):
    tree = tmp_path / "tree"
    for name in tracked:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = (tree / "dist").iterdir()
    with tarfile.open(archive) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    assert tracked - names == set()
