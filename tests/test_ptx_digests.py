# SPDX-License-Identifier: Apache-2.0
"""The suite notices at its end that a kernel's PTX is not the one that was recorded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .ptx_digests import KEY, RECORDED, Digests, digest, versions

ROOT = Path(__file__).resolve().parents[1]
TESTED = "tests/compiler/test_launch.py::test_clusters_of_the_launch[assembler]"
OTHER = "tests/kernels/test_elementwise.py::test_other[assembler]"
HERE = versions()


def report(test, *digests, outcome="passed", when="call"):
    return pytest.TestReport(test, ("", 0, ""), {}, outcome, None, when, user_properties=[(KEY, d) for d in digests])


def session(recorded, *reports, made_with=HERE):
    found = Digests({"with": HERE, "digests": recorded}, made_with)
    for r in reports:
        found.pytest_runtest_logreport(r)
    return found


def test_names_of_a_run_and_comments_make_no_difference():
    a = "// V13.5.37\n.shared .b8 _cudapy_smem_1[8];\n.entry _Z4fooB2v1()\n add"
    b = "// V13.5.38\n.shared .b8 _cudapy_smem_2[8];\n.entry _Z4fooB2v2()\n add"
    assert digest(a) == digest(b) != digest(a.replace("add", "sub"))


@pytest.mark.parametrize(
    "reports, changed",
    [
        ([report(TESTED, "aa", "bb")], []),
        ([report(TESTED, "aa", "cc"), report(OTHER, "dd")], [TESTED]),
        ([report(TESTED, "aa")], [TESTED]),
        ([report(TESTED, "cc", outcome="failed")], []),
        ([report(TESTED, "cc", when="teardown")], []),
        ([report("tests/new.py::test_new[assembler]", "cc")], []),
        ([], []),
    ],
    ids=["same", "another", "one less", "failed", "told twice", "not recorded", "not run"],
)
def test_what_ran_is_compared_with_what_was_recorded(reports, changed):
    found = session({TESTED: "aa bb", OTHER: "dd"}, *reports)
    assert found.changed == changed
    said = "\n".join(found.said())
    assert bool(said) == bool(changed)
    if changed:
        assert f"the PTX of 1 kernel tests is not as recorded in tests/{RECORDED.name}:\n  {TESTED}" in said
        assert "python tests/compare_ptx.py $(git log -1 --format=%h -- tests/ptx_digests.json) tests/compiler" in said
        assert "python tests/compare_ptx.py --record" in said


def test_of_other_versions_nothing_is_compared_and_that_is_said():
    found = session({TESTED: "aa"}, report(TESTED, "cc"), made_with={**HERE, "numba-cuda": "0.31.7"})
    assert found.changed == []
    assert found.said() == [
        f"PTX is not compared with {RECORDED.name}, which is of numba-cuda {HERE['numba-cuda']} (here 0.31.7)"
    ]


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow), "1"])
def test_a_session_fails_by_its_changed_kernels(workers, tmp_path):
    recorded = tmp_path / "digests.json"
    recorded.write_text(json.dumps({"with": HERE, "digests": {TESTED: "not its digest", OTHER: "not run"}}))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "no:cacheprovider", TESTED],
        env={**os.environ, "CUTE_TEST_PTX_DIGESTS": str(recorded)}, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "1 passed" in done.stdout
    assert f"is not as recorded in tests/{RECORDED.name}:\n  {TESTED}\n" in done.stdout
