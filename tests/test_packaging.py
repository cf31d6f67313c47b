# SPDX-License-Identifier: Apache-2.0
"""What the distributions hold, and that a source distribution is whole: its own tests pass where it is unpacked.

`python -m tests.installs` installs the wheel in fresh environments.
"""

import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser

import pytest

from tests.installs.build import ROOT, build, clean_environment, sources

OF_THE_REPOSITORY = {".gitignore"}
FAST = ("tests/layout/test_examples.py", "tests/test_readme.py", "tests/test_docs.py", "tests/test_packaging.py",
        "tests/test_import.py", "tests/contributing", "tests/atoms/test_copy.py")  # fmt: skip
"""A fast part of the tests that reads the documentation and examples, compiles and simulates."""


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", tmp_path_factory.mktemp("sdist"))


def test_a_source_distribution_holds_every_file(sdist):
    with tarfile.open(sdist) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    assert {*sources()} - OF_THE_REPOSITORY - names == set()
    assert {"CHANGELOG.md", "LICENSE", "docs/index.md", "examples/hopper_gemm.py", "tests/conftest.py"} <= names


def test_a_wheel_holds_the_package_and_says_what_it_needs(tmp_path):
    with zipfile.ZipFile(build("wheel", tmp_path)) as held:
        names = set(held.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = Parser().parsestr(held.read(about).decode())
        (entries,) = (held.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    package = {name for name in sources() if name.startswith("numba_cute/")}
    others = {name for name in names - package if ".dist-info/" not in name}
    assert package - names == set() and others == {"numba_cute_pytest.py"}
    assert "numba_cute/py.typed" in names and "numba-cute-sim = numba_cute_pytest" in entries
    assert (
        said.get_all("Provides-Extra") == ["cu12", "cu13", "ir", "mlir"] and said["License-Expression"] == "Apache-2.0"
    )
    (xdsl,) = (line for line in said.get_all("Requires-Dist") if line.startswith("xdsl"))
    assert re.search(r'python_version >= "3.11"', xdsl)


def test_the_projects_addresses_agree_and_stand_in_one_place():
    """Where it will be published is not known yet: to say so is to change `[project.urls]` alone."""
    project = (ROOT / "pyproject.toml").read_text()
    urls = dict(
        re.findall(r'^(\w+) = "(https://[^"]+)"', project.partition("[project.urls]")[2].partition("\n[")[0], re.M)
    )
    owner, name = re.fullmatch(r"https://github\.com/([\w-]+)/([\w-]+)", urls["Source"]).groups()
    of_source = {"Issues": "issues", "Changelog": "blob/main/CHANGELOG.md"}
    assert urls == {
        "Documentation": f"https://{owner}.github.io/{name}/",
        "Source": urls["Source"],
        **{key: f"{urls['Source']}/{rest}" for key, rest in of_source.items()},
    }
    texts = (ROOT / file for file in sources() if file.endswith((".py", ".md", ".yml", ".json", ".txt")))
    assert [t for t in texts if re.search(rf"{owner}\.github\.io|github\.com/{owner}/", t.read_text("utf-8"))] == []


def test_the_readme_is_right_where_there_is_no_repository():
    """A package index shows it: what it links to is found from anywhere, and what it names stands in the sdist."""
    text = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert [to for to in re.findall(r"\[[^\]]*\]\(([^)]*)\)", re.sub(r"`[^`]*`", "", text)) if "://" not in to] == []
    named = set(re.findall(r"`((?:docs|examples)/[\w./]+|[A-Z]+\.md)`", text))
    assert len(named) > 4 and [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.slow
def test_a_source_distribution_passes_its_own_tests(sdist, tmp_path):
    with tarfile.open(sdist) as held:
        held.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *FAST]
    done = subprocess.run(
        command, cwd=root, env=clean_environment(PYTHONPATH=str(root)), capture_output=True, text=True
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr
