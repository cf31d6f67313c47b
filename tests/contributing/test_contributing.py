# SPDX-License-Identifier: Apache-2.0
"""The worked examples of CONTRIBUTING.md run, in the simulator and through the assembler, and touch few places."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
EXAMPLES = dict(re.findall(r"^## ([^\n]+)\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


ALL = """
import runpy, sys, traceback

for file in sys.argv[1:]:
    try:
        runpy.run_path(file, run_name="__main__")
    except BaseException:
        print(file, traceback.format_exc(), sep="\\n", end="\\0")
"""


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """What the examples fail with, each a file of its own, by title; one process for all, since it starts slowly."""
    files = {str(tmp_path_factory.mktemp("example") / f"{i}.py"): title for i, title in enumerate(EXAMPLES)}
    for file, title in files.items():
        Path(file).write_text(EXAMPLES[title])
    done = subprocess.run([sys.executable, "-c", ALL, *files], env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [text.partition("\n") for text in done.stdout.split("\0")[:-1]]
    return {files[file]: text for file, _, text in said}


@pytest.mark.parametrize("title", EXAMPLES)
def test_worked_example_runs_as_it_stands(title, failed):
    assert title not in failed, failed[title]


def test_there_is_an_example_of_each_kind_of_addition():
    kinds = re.findall(r"^\| ([a-z ]+) \| its", PAGE, re.MULTILINE)
    assert [re.sub("^An? ", "", title) for title in EXAMPLES] == kinds


@pytest.mark.parametrize("title", EXAMPLES)
def test_worked_example_touches_at_most_four_places_that_there_are(title):
    places = re.findall(r"^# (\d)\. ([\w/.]+)", EXAMPLES[title], re.MULTILINE)
    assert [int(n) for n, _ in places] == list(range(1, len(places) + 1))
    assert len(places) <= 4
    for _, path in places:
        assert (ROOT / path).parent.is_dir(), path


def test_the_page_is_a_page():
    assert len(PAGE.partition("# Worked examples")[0].splitlines()) <= 80
