# SPDX-License-Identifier: Apache-2.0
"""No process loads a kernel of which something that compiling it reads has changed, whatever it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .processes import NEW, NOT_KEPT, OLD, kinds

ROOT = Path(__file__).resolve().parents[2]
KINDS = list(kinds())
IN_EACH_RUN = KINDS[::60]
REMEMBERS = {"a cached property", "a function that will remember"}
"""Kinds whose own code keeps, when compiling reads them, what the next reader gets: a part of their keys."""


def outcomes(what, folder, names):
    command = [sys.executable, "-m", "tests.compiler.processes", what, str(folder), *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    return outcomes("compiled", tmp_path_factory.mktemp("some"), IN_EACH_RUN)


@pytest.fixture(scope="module")
def all_others(tmp_path_factory):
    return outcomes("compiled", tmp_path_factory.mktemp("all"), [k for k in KINDS if k not in IN_EACH_RUN])


@pytest.mark.parametrize("kind", [k if k in IN_EACH_RUN else pytest.param(k, marks=pytest.mark.slow) for k in KINDS])
def test_a_value_that_changed_is_compiled_anew_and_one_that_did_not_is_loaded(kind, request):
    first, again, changed = request.getfixturevalue("some" if kind in IN_EACH_RUN else "all_others")[kind]
    assert (first.get("values"), again.get("values"), changed.get("values")) == ([OLD], [OLD], [NEW]), changed
    assert first["compiled"] and changed["compiled"] and again["compiled"] is (kind in NOT_KEPT)
    for told in (first, again, changed):  # what compiling notes of objects is not part of them
        assert (len(set(told["keys"])) == 1) is not (kind in REMEMBERS and told["compiled"])
    assert any("is not kept" in note for note in first["notes"]) is (kind in NOT_KEPT)


def test_a_value_that_changed_makes_another_key(tmp_path):
    keys = outcomes("keys", tmp_path, ())
    assert {kind for kind, found in keys.items() if found == [None, None]} == NOT_KEPT
    alike = [kind for kind, (before, after) in keys.items() if kind not in NOT_KEPT and before == after]
    assert alike == []
