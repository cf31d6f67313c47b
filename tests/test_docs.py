# SPDX-License-Identifier: Apache-2.0
"""Pages lead to one another, words are explained, versions agree, and every way to run the checks runs the same."""

from __future__ import annotations

import re
from pathlib import Path

import numba_cute

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"),
                *(ROOT / ".github").rglob("*.md")})  # fmt: skip
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    return [link for link in LINK.findall(text) if not link.startswith(("http://", "https://"))]


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_links_of_pages_resolve():
    bad = []
    for page, link in [(p, found) for p in PAGES for found in links(p)]:
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or anchor and anchor not in anchors(target):
            bad.append(f"{relative(page)}: {link}")
    assert not bad


def test_an_index_leads_to_every_page_of_its_folder():
    folders = {p.parent for p in (ROOT / "docs").rglob("*.md")}
    assert len(folders) > 1
    for folder in folders:
        index = folder / "index.md"
        linked = {(folder / link.partition("#")[0]).resolve() for link in links(index)}
        assert {*folder.glob("*.md")} - linked == {index}


def test_the_page_of_the_architecture_has_every_mark():
    """Attributes of the user's objects, and names in the user's code, that this library sets."""
    used = {name for p in (ROOT / "numba_cute").rglob("*.py") for name in re.findall(r"__cute_\w+?__", p.read_text())}
    assert used == set(re.findall(r"__cute_\w+?__", (ROOT / "docs" / "architecture.md").read_text()))


GLOSSARY = ROOT / "docs" / "glossary.md"
TERMS = re.findall(r"^- \*\*([\w -]+)\*\*: ", GLOSSARY.read_text(), re.MULTILINE)


def test_the_glossary_is_in_order_and_names_each_word_once():
    assert len(TERMS) > 20
    assert sorted(set(TERMS)) == TERMS


def test_words_of_the_glossary_are_used_elsewhere():
    unused = set(TERMS)
    for source in (*PAGES, *(ROOT / "numba_cute").rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        if source not in (GLOSSARY, Path(__file__)):
            text = source.read_text()
            unused -= {term for term in unused if re.search(rf"\b{term}s?\b", text, re.IGNORECASE)}
    assert not unused


def test_changelog_and_package_are_of_the_version_of_the_project():
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]
    assert numba_cute.__version__ == version


def test_hosted_ci_runs_what_ci_runs_on_every_python_that_is_supported():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    pythons = re.findall(r'"Programming Language :: Python :: (\d\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert re.findall(r'"(\d\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1]) == pythons
    assert ".ci/run" in re.findall(r"^      - run: ([^#\n]*[^#\s])", workflow, re.MULTILINE)
    assert "exec make test" in (ROOT / ".ci" / "run").read_text()


def test_hooks_run_the_tools_of_make_test():
    hooks = re.findall(r"entry: \.venv/bin/(.*)", (ROOT / ".pre-commit-config.yaml").read_text())
    make = (ROOT / "Makefile").read_text().replace("$(BIN)/", "").replace("format --check .", "format")
    for hook in hooks:
        assert hook.partition(" -q")[0] in make, hook
    assert {h.split()[0] for h in hooks} == {"ruff", "mypy", "python"}


def test_readme_names_an_extra_that_there_is():
    (name, extra) = re.search(r'pip install "([\w-]+)\[(\w+)\]"', (ROOT / "README.md").read_text()).groups()
    project = (ROOT / "pyproject.toml").read_text()
    assert f'name = "{name}"' in project and re.search(rf"^{extra} = ", project, re.MULTILINE)
