# SPDX-License-Identifier: Apache-2.0
"""Each tutorial's page and script are one, print what the page shows, and quote what is there."""

import pytest

from website import tutorials

LONG = {"20_gemm": "types a kernel of 440 lines"}


def lines(code):
    return [line for line in code.splitlines() if line]


@pytest.mark.parametrize("name", tutorials.NAMES)
def test_script_is_the_code_of_its_page(name):
    script = (tutorials.SCRIPTS / f"{name}.py").read_text()
    assert lines(script) == lines(tutorials.script(tutorials.page(name))), f"python -m website.tutorials {name}"


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in tutorials.NAMES])
def test_script_prints_what_its_page_shows(name):
    """What it prints, and what it asserts."""
    page = tutorials.page(name)
    shown = [output for _, output in tutorials.blocks(page)]
    assert tutorials.printed(page, tutorials.SCRIPTS / f"{name}.py") == shown, f"python -m website.tutorials {name}"


@pytest.mark.parametrize("name", tutorials.NAMES)
def test_what_a_page_quotes_is_there(name):
    assert not tutorials.not_in_their_file(tutorials.page(name))


def test_lines_that_a_file_has_not_are_found():
    text = "```py\n# website/tutorials.py\nfrom __future__ import annotations\n...\nimport re\nimport ast\n```\n"
    assert tutorials.not_in_their_file(text) == ["website/tutorials.py: import ast"]


def test_every_lesson_leads_to_the_next():
    for name, following in zip(tutorials.NAMES, tutorials.NAMES[1:]):
        assert f"({following}.md)\n" == tutorials.page(name)[-len(following) - 6 :], name
