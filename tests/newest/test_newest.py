# SPDX-License-Identifier: Apache-2.0
"""What the weekly trial of the newest releases says of what it finds, and that its page is what was recorded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from . import __main__ as newest, page

WORKFLOW = newest.ROOT / ".github" / "workflows" / "newest.yml"
RIGHT = {"python": "3.13.1", "versions": {"numba": "0.68.1"}, "result": "right"}
WRONG = {"python": "3.13.1", "versions": {"numba": "0.69.0", "numpy": "2.6.0"}, "result": "failed", "step": "import",
         "said": "CuteError: numba-cuda 0.31.0: …"}  # fmt: skip


def test_the_page_is_what_was_recorded():
    assert page.PAGE.read_text() == page.page(), "python -m tests.newest.page writes it"


def test_a_right_environment_needs_no_issue_and_a_failed_one_says_all_there_is():
    assert newest.told({"promised": RIGHT, "numpy": {**RIGHT, "result": "no release"}}) == ""
    said = newest.told({"promised": RIGHT, "all": WRONG})
    assert said.startswith("## all: import\nPython 3.13.1; numba 0.69.0, numpy 2.6.0\n") and WRONG["said"] in said
    assert "python -m tests.newest all" in said and "promised" not in said


@pytest.mark.parametrize(
    "fails, what, result, step",
    [
        ("pip", "numpy", "no release", "pip"),
        ("pip", "promised", "failed", "pip"),
        ("import", "numpy", "failed", "import"),
        ("tests", "all", "failed", "tests"),
        ("", "numba", "right", None),
    ],
)
def test_what_fails_is_told_from_what_cannot_be_installed(fails, what, result, step, monkeypatch, tmp_path):
    asked, held = [], {"Numba": "0.68.1", "numpy": "2.4.6", "cuda_core": "1.2", "other": "1"}

    def run(step, *command):
        asked.append([step, *map(str, command)])
        if step == fails:
            raise newest.Failed(step, "why")
        return json.dumps(held) if step == "versions" else ""

    monkeypatch.setattr(newest, "run", run)
    made = newest.tried(what, tmp_path)
    assert (made["result"], made.get("step")) == (result, step)
    assert ("versions" in made) is (fails != "pip") and made.get("said") == ("why" if step else None)
    upgrades = [command[command.index("--upgrade") + 1 :] for command in asked if "numba" in command]
    pinned = {"numba": [["numba", "cuda-core==1.2", "numpy==2.4.6"]], "all": [[*newest.PACKAGES.values()]]}
    assert upgrades == pinned.get(what, [])


def test_records_are_joined_by_day(tmp_path):
    files = [tmp_path / name for name in ("a.json", "b.json")]
    newest.record({"all": WRONG, "numba": RIGHT}, files[0])
    newest.record({"all": RIGHT}, files[1])
    held = json.loads(files[1].read_text())
    held["all"]["date"] = "2020-01-01"
    files[1].write_text(json.dumps(held))
    found = newest.joined(files)
    assert found["all"]["result"] == "failed" and found["numba"]["result"] == "right" and found["all"]["commit"]


def test_the_workflow_tries_all_that_can_be_asked_for():
    text = WORKFLOW.read_text()
    listed = re.search(r"^ +what: \[(.*)\]$", text, re.MULTILINE)[1].split(", ")
    assert {*listed, "python"} == {*newest.WHAT} and "what: python" in text
    assert [test for test in newest.TESTS[:-1] if not (newest.ROOT / test).exists()] == []


@pytest.mark.skipif(sys.platform != "linux", reason="a script of the workflow's machine")
@pytest.mark.parametrize("open_issue", ["", "17"], ids=["none is open", "one is open"])
def test_an_issue_is_opened_once(open_issue, tmp_path):
    fake = tmp_path / "gh"
    fake.write_text(f"""#!/bin/sh
case "$2" in list) echo {open_issue};; *) printf '%s\\n' "$@" > {tmp_path}/told; tail -n 5 "$#" ;; esac
for last; do :; done
[ "$2" = list ] || cat "$last" > {tmp_path}/body
""")
    fake.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [newest.ROOT / ".ci" / "tell", "Newest releases fail", "https://a.run"]
    subprocess.run(command, input="## all: import\n", env=env, text=True, check=True, capture_output=True)
    told = (tmp_path / "told").read_text().split("\n")
    assert told[:3] == (["issue", "comment", "17"] if open_issue else ["issue", "create", "--title"])
    assert (tmp_path / "body").read_text() == "## all: import\nhttps://a.run\n"
