# SPDX-License-Identifier: Apache-2.0
"""What `make quick`, `make slow` and a release decide, without running anything."""

from __future__ import annotations

import pytest

from . import quick, release, slow

KNOWN = {"numba_cute", "numba_cute.sim", "numba_cute.sim.run", "numba_cute.layout.core", "tests.sim.test_run"}


@pytest.mark.parametrize(
    ("text", "module", "used"),
    [
        ("import numba_cute.sim.run", "tests.a", {"numba_cute.sim.run"}),
        ("from numba_cute.sim import run", "tests.a", {"numba_cute.sim.run"}),
        ("from .run import go", "numba_cute.sim.other", {"numba_cute.sim.run"}),
        ("from . import run", "numba_cute.sim.other", {"numba_cute.sim.run"}),
        ("from ..layout import core", "numba_cute.sim.other", {"numba_cute.layout.core"}),
        ("import numpy", "tests.a", set()),
    ],
)
def test_what_a_file_imports(text, module, used):
    assert quick.imports(text, module, False, KNOWN) == used


def test_a_name_of_the_facade_counts_as_the_module_that_defines_it():
    import numba_cute as cute

    where = cute.make_layout.__module__
    text = "import numba_cute as cute\ncute.make_layout((4, 8))"
    assert quick.imports(text, "tests.a", False, {where, "numba_cute"}) == {where}


def test_the_nearest_tests_come_first_and_others_not_at_all():
    users = {
        "numba_cute.sim.run": {"numba_cute.sim.all", "tests.x.test_run"},
        "numba_cute.sim.all": {"tests.y.test_all"},
    }
    tests = ["tests/y/test_all.py", "tests/x/test_run.py", "tests/sim/test_more.py", "tests/z/test_none.py"]
    found = quick.ranked(["numba_cute/sim/run.py", "README.md"], users, tests)
    assert found == [(1, "tests/sim/test_more.py"), (1, "tests/x/test_run.py"), (2, "tests/y/test_all.py")]


def test_a_room_of_tests_mirrors_a_module():
    assert quick.mirrored("numba_cute.sim.run") == "tests.sim"
    assert quick.mirrored("numba_cute.seam.ground.error") == "tests.seam", "the room that its own stands in"
    assert quick.mirrored("numba_cute.ir.lift.host") == "tests.ir.lift"
    assert quick.mirrored("numba_cute.runtime") == "tests.core", "of no room"
    assert quick.mirrored("website.hooks") == quick.mirrored("setup") == ""


def test_files_run_as_long_as_there_is_time():
    found = [(0, "long"), (1, "too long"), (1, "short"), (2, "unknown")]
    assert [*quick.within(found, {"long": 50, "too long": 60, "short": 5}, 61)] == ["long", "short", "unknown"]


def test_the_record_of_seconds_names_files_that_there_are():
    import json

    assert all((quick.ROOT / file).exists() for file in json.loads(quick.SECONDS.read_text()))


RECORD = {
    "a": {"tests": 3, "seconds": 90.0, "passed": {"date": "2026-11-02", "commit": "1"}},
    "b": {"tests": 2, "seconds": 50.0, "passed": {"date": "2026-11-01", "commit": "2"}},
    "c": {"tests": 1, "seconds": 45.0, "failed": {"date": "2026-11-03", "commit": "3"}},
}


def test_files_that_passed_longest_ago_run_first():
    assert slow.oldest_first(["a", "b", "c"], RECORD) == ["c", "b", "a"]


def test_shards_are_of_about_the_same_time_and_have_every_file_once():
    shards = [slow.shard_of(["a", "b", "c", "new"], RECORD, part, 2) for part in (1, 2)]
    assert sorted(map(sorted, shards)) == [["a", "c"], ["b", "new"]]


def test_what_passed_last_stays_when_a_later_run_fails_until_one_passes():
    record = {"a": dict(RECORD["a"])}
    slow.noted(record, "a", 4, False, 80)
    assert record["a"]["passed"] == RECORD["a"]["passed"] and record["a"]["failed"]["date"]
    assert "FAILED" in slow.listed(record)
    slow.noted(record, "a", 4, True, 70)
    assert "failed" not in record["a"] and record["a"]["seconds"] == 70


def test_of_two_records_the_later_run_counts():
    record = {"a": dict(RECORD["a"])}
    slow.joined(
        record, {"a": {"tests": 3, "seconds": 1.0, "passed": {"date": "2026-10-01", "commit": "0"}}, "b": RECORD["b"]}
    )
    assert record == {"a": RECORD["a"], "b": RECORD["b"]}


PROJECT, PACKAGE = 'version = "1.2.3"', '__version__ = "1.2.3"'
CHANGES = "# Changelog\n\n## 1.2.3\n### Added\n- A thing.\n\n## 1.2.2\n- Older.\n"


def test_a_release_says_one_version_everywhere():
    assert release.differences("v1.2.3", PROJECT, PACKAGE, CHANGES) == []
    assert release.notes_of("1.2.3", CHANGES) == "### Added\n- A thing."


@pytest.mark.parametrize(
    ("tag", "project", "package", "changes", "said"),
    [
        ("1.2.3", PROJECT, PACKAGE, CHANGES, "no tag of a release"),
        ("v1.2.3", 'version = "1.2.4"', PACKAGE, CHANGES, "pyproject.toml says 1.2.4"),
        ("v1.2.3", PROJECT, "", CHANGES, "numba_cute/__init__.py says None"),
        ("v1.2.3", PROJECT, PACKAGE, "## 1.2.30\n- Later.", "nothing under ## 1.2.3"),
    ],
)  # fmt: skip
def test_a_release_that_disagrees_is_refused(tag, project, package, changes, said):
    (wrong,) = release.differences(tag, project, package, changes)
    assert said in wrong
