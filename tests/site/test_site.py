# SPDX-License-Identifier: Apache-2.0
"""What makes the site is right where it needs no package; with MkDocs, the site builds and leads nowhere else."""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import api
from website import links, reference, versions
from website.docstrings import as_markdown
from website.flavour import as_python_markdown

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages():
    return dict(reference.pages_with_text())


def test_every_public_name_has_its_place_in_the_reference(pages):
    anchors = {a for text in pages.values() for a in re.findall(r"^## .* \{#(.*)\}$", text, re.MULTILINE)}
    named = {f"{m}.{n}" for m, n, v in api.names() if not inspect.ismodule(v)}
    assert named == anchors


def test_links_inside_of_the_reference_have_their_anchor(pages):
    for text in pages.values():
        for page, anchor in re.findall(r"\]\((\w+\.md)#([\w.]+)\)", text):
            assert f"{{#{anchor}}}" in pages[f"reference/{page}"]


def test_a_docstring_becomes_a_list_of_parameters_with_its_ptx_errors_and_examples():
    doc = "Do it.\n\nx: a * b. y, z: two\nlines. Raises CuteError for none. PTX ld.global, sm_80.\n\n>>> f(1)\n2"
    assert as_markdown(doc, ["x", "y", "z"]) == (
        "Do it.\n\n- `x`: a \\* b.\n- `y`, `z`: two lines.\n\n*Raises* CuteError for none.\n\n"
        "*PTX* `ld.global`, from sm_80.\n\n```python\n>>> f(1)\n2\n```"
    )  # fmt: skip
    assert as_markdown("Do it. PTX abs and setp, any\ntarget.", []) == "Do it.\n\n*PTX* `abs and setp`, any target."


def test_a_tag_is_the_version_that_comes_without_one_unless_a_later_is_there():
    assert versions.names("main", ["0.2.0"]) == ["dev"]
    assert versions.names("v0.2.0", []) == versions.names("v0.2.0", ["dev", "0.1.9"]) == ["0.2.0", "latest"]
    assert versions.names("v0.10.0", ["0.9.0"]) == ["0.10.0", "latest"]
    assert versions.names("v0.2.1", ["0.3.0", "0.2.0"]) == ["0.2.1"]
    with pytest.raises(SystemExit, match="'v0.3' is neither main nor a release's tag"):
        versions.names("v0.3", [])


def test_long_signatures_have_a_line_for_each_parameter():
    head = "function (a: Callable[[int, int], int] = None, bbbbbbbbbbbbbbbb: int = 0, cccccccccccc: int = 1) -> int"
    assert reference.signature("f", head).split("\n") == [
        "f(",
        "    a: Callable[[int, int], int] = None,",
        "    bbbbbbbbbbbbbbbb: int = 0,",
        "    cccccccccccc: int = 1,",
        ") -> int",
    ]


FLAVOURS = {
    "a list behind a line": ("Tried:\n- a\n  b\n- c", "Tried:\n\n- a\n  b\n- c"),
    "a table behind a comment": ("<!-- t -->\n| a |\n| - |\n<!-- e -->", "<!-- t -->\n\n| a |\n| - |\n\n<!-- e -->"),
    "a list within a list": ("- a\n  - b", "- a\n    - b"),
    "code": ("```\na\n- b\n```", "```\na\n- b\n```"),
    "code with a name": ("```python hangs\nx\n```", '```python title="hangs.py"\nx\n```'),
}


@pytest.mark.parametrize("what", FLAVOURS)
def test_markdown_of_github_is_read_as_there(what):
    given, wanted = FLAVOURS[what]
    assert as_python_markdown(given) == wanted


def test_links_out_of_the_pages_lead_to_pages_of_the_site():
    page = links.DOCS / "index.md"
    text = "[a](../README.md#x) [`b`](../examples/reduce.py) `[c](../no.py)` [d](layouts.md) [e](https://f.g) [h](#i)"
    assert links.moved(page, text) == (
        "[a](repo/README.md#x) [`b`](repo/examples/reduce.py.md) `[c](../no.py)` [d](layouts.md) [e](https://f.g) "
        "[h](#i)"
    )
    assert {ROOT / "README.md", ROOT / "examples" / "reduce.py"} <= set(links.reached())


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="needs the dependencies of the group docs")
def test_the_site_builds_strictly(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-d", str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "reference" / "index.html").exists()
