# SPDX-License-Identifier: Apache-2.0
"""Mutated texts of every kind end in their result or in a CuteError (`tests.fuzz.texts`)."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import warnings

import pytest

from .pool import ROOT
from .texts import Guard, Hang, Outside, Reader, judged

QUICK = ("Archives", "Locks", "Printed", "Timelines", "Tunings", "Types")
"""Kinds that compile nothing."""
COUNT = int(os.environ.get("CUTE_FUZZ_TEXTS", "400"))


def test_mutated_texts_end_in_results_or_cute_errors(tmp_path, monkeypatch):
    """A few, in this process; `python -m tests.fuzz.texts` reads as many as are wanted, in processes of their own."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = Reader(0, tmp_path, QUICK)
        found = [reader.run(number) for number in range(COUNT)]
    assert [f for f in found if f["kind"] != "good"] == []
    ends = {(f["of"], f["end"]) for f in found}
    assert {(of, "result") for of in reader.kinds} <= ends and ("Archives", "CuteError") in ends


def struct_of_other_fields():
    """What the text itself may do: Python's own dataclasses refuse it."""
    dataclasses.make_dataclass("S", [("n", int, 0), ("t", int)])


@pytest.mark.parametrize("error", [Hang, Outside, AssertionError, ValueError, TypeError, RecursionError, None])
def test_what_ends_otherwise_is_wrong_wherever_it_was_raised(error):
    def fails():
        if error is None:
            struct_of_other_fields()
        raise error

    with pytest.raises((Exception, Hang, Outside)) as caught:
        fails()
    assert ("kind" in judged(caught.value)) is (error is not None)


def test_a_write_outside_is_noticed(tmp_path):
    guard = Guard(tmp_path / "inside")
    guard.reading = True
    try:
        with pytest.raises(Outside):
            (tmp_path / "outside").write_text("")
    finally:
        guard.reading = False
    assert not (tmp_path / "outside").exists()


@pytest.mark.slow
def test_none_of_ten_thousand_texts_ends_otherwise():
    command = [sys.executable, "-m", "tests.fuzz.texts", "--count", "10000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
