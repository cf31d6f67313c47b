# SPDX-License-Identifier: Apache-2.0
"""Numba's simulator is Numba's own with the import as without; and the program that says so finds what differs."""

import subprocess
import sys

import pytest

from .compare import Outcomes, compare, summary
from .run import Settings, missing, modules, watch

LONG = ("core.test_serialize", "cudapy.test_atomics", "cudapy.test_print", "cudapy.test_random")
"""Half of the suite's time in the simulator; the second to last is unsteady there."""


@pytest.mark.parametrize(
    ("but", "step", "least"),
    [
        (LONG, 16, 25),
        pytest.param(LONG, 1, 500, marks=pytest.mark.slow),
        pytest.param((), 1, 500, marks=pytest.mark.slow),
    ],
    ids=["a sixteenth", "most", "all"],
)
def test_numba_cudas_own_tests_give_the_same_in_its_simulator(tmp_path, but, step, least):
    assert not missing(), "the dependency group `test` has them"
    settings = Settings(tmp_path, cudasim=True, jobs=2)
    found = summary(compare(modules(settings, but=but)[::step], settings, retries=5))
    assert (found["different"], found["unfinished"]) == ([], [])
    passed = sum(arms["with"]["passed"] for arms in found["packages"].values())
    assert passed > least, f"only {passed} passed: does the suite still run in the simulator?"


SUITE = """
import os, signal, sys, unittest
from pathlib import Path

WITH = "strange_library" in sys.modules

def again(name):  # in the same way
    mark = Path(__file__).with_name(f"{name}-{WITH}")
    found = mark.exists()
    mark.touch()
    return found

class Tests(unittest.TestCase):
    def test_a_same(self):
        pass
    def test_b_bad_anyway(self):
        assert False
    def test_c_crashes(self):
        WITH and os.kill(os.getpid(), signal.SIGKILL)
    def test_d_fails(self):
        assert not WITH, "strangely"
    def test_e_is_skipped(self):
        if WITH: self.skipTest("no")
    def test_f_fails_in_part(self):
        for i in range(3):
            with self.subTest(i=i): assert not WITH or i
    def test_g_is_bad_at_first(self):
        assert not WITH or again("first")
    def test_h_is_bad_at_second(self):
        assert WITH or not again("second")
if WITH:
    def test_i_comes(): pass
else:
    def test_j_goes(): pass
"""
DIFFERENT = {
    "test_c_crashes": ("passed", "crashed (-9)"),
    "test_d_fails": ("passed", "failed"),
    "test_e_is_skipped": ("passed", "skipped"),
    "test_f_fails_in_part": ("passed", "failed, 1 of 3 subtests"),
    "test_i_comes": ("absent", "passed"),
    "test_j_goes": ("passed", "absent"),
}


@pytest.fixture
def strange(tmp_path, monkeypatch):
    """Settings for a suite that differs in every way with its library."""
    (tmp_path / "strange_library.py").touch()
    (tmp_path / "strange_suite").mkdir()
    (tmp_path / "strange_suite" / "__init__.py").touch()
    (tmp_path / "strange_suite" / "test_it.py").write_text(SUITE)
    (tmp_path / "strange_suite" / "test_other.py").write_text("def test_same(): pass")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return Settings(tmp_path, jobs=2, suite="strange_suite", library="strange_library")


@pytest.mark.slow
def test_every_kind_of_difference_is_found_and_what_is_unsteady_is_none(strange):
    outcomes = compare(modules(strange), strange, retries=2)
    different = {
        t.rpartition("::")[2]: (outcomes.seen["without"][t][0], outcomes.seen["with"][t][0])
        for t in outcomes.different()
    }
    assert different == DIFFERENT
    assert [t.rpartition("::")[2] for t in outcomes.unsteady()] == ["test_g_is_bad_at_first", "test_h_is_bad_at_second"]
    assert outcomes.unfinished == []
    assert outcomes.seen["with"]["test_other.py::test_same"] == ["passed"]  # no reason to run it again


def test_a_process_that_dies_outside_of_tests_is_told(strange):
    (strange.folder / "strange_suite" / "test_it.py").write_text("import os; os._exit(7)")
    found = compare(["test_it"], strange, retries=2).unfinished
    assert [(u["arm"], u["how"]) for u in found] == [("without", "crashed (7)"), ("with", "crashed (7)")]


def test_a_library_that_is_there_without_being_imported_is_told():
    outcomes = Outcomes("numba_cute")
    outcomes.add({"without": [{"loaded": ["numba_cute"]}], "with": [{"loaded": ["numba_cute"]}]})
    assert [u["arm"] for u in outcomes.unfinished] == ["without"]


@pytest.mark.parametrize(("limits", "how"), [({"limit": 0.3}, "hung"), ({"deadline": 0}, "out of time")])
def test_a_process_whose_record_does_not_grow_is_ended(tmp_path, limits, how):
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    assert watch(sleeper, tmp_path / "none.jsonl", Settings(tmp_path, **limits)) == how
    assert sleeper.poll() is not None


def test_what_was_cut_off_by_the_time_is_no_difference():
    outcomes = Outcomes("numba_cute")
    ran = {"test": "cudapy/test_sm.py::test_it", "outcome": "passed", "seconds": 1, "why": ""}
    outcomes.add({"without": [ran], "with": [{"unfinished": ["cudapy.test_sm"], "how": "out of time"}]})
    assert (outcomes.doubtful(), len(outcomes.unfinished)) == ([], 1)
