# SPDX-License-Identifier: Apache-2.0
"""What `make quick`, `make slow` and a release decide, without running anything."""

from __future__ import annotations

import pytest

from . import quick, release, slow, slow_lines
from .each import each

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


IDS = {"a": ["a::1", "a::2", "a::3"], "b": ["b::1", "b::2"], "c": ["c::1"], "new": ["new::1"]}
BEGUN = {"date": "2026-11-04", "commit": "4", "tests": {file: len(ids) for file, ids in IDS.items()}}


def test_files_that_passed_longest_ago_run_first_in_pieces_of_a_minute():
    cut = [piece.ids for piece in slow.pieces(IDS, RECORD)]
    assert cut == [["c::1"], ["new::1"], ["b::1", "b::2"], ["a::1", "a::2"], ["a::3"]]


def test_shards_are_of_about_the_same_time_and_have_every_test_once():
    shards = [slow.shard_of(slow.pieces(IDS, RECORD), part, 2) for part in (1, 2)]
    assert [sum(piece.seconds for piece in shard) for shard in shards] == [92.0, 95.0]
    assert sorted(test for shard in shards for piece in shard for test in piece.ids) == sorted(sum(IDS.values(), []))


def lines(**outcomes):
    return [BEGUN, *({"test": f"a::{n[1:]}", "outcome": what, "seconds": 10.0} for n, what in outcomes.items())]


@pytest.mark.parametrize(
    ("runs", "missing", "want"),
    [
        (lines(_1="passed", _2="passed", _3="skipped"), {}, {"passed": "4"}),
        (lines(_1="passed", _2="passed"), {"a": 1}, {"passed": "1"}),
        (lines(_1="passed") + lines(_2="passed", _3="passed"), {}, {"passed": "4"}),
        (lines(_2="failed"), {}, {"passed": "1", "failed": "4"}),
        (lines(_1="passed", _2="failed", _3="passed") + lines(_2="passed"), {}, {"passed": "4"}),
    ],
    ids=["whole", "not whole", "in two runs", "failed", "passed when it was run again"],
)
def test_a_file_passed_when_each_of_its_tests_has(runs, missing, want):
    record = {"a": RECORD["a"]}
    assert slow.joined(record, runs) == missing
    assert {kind: record["a"][kind]["commit"] for kind in ("passed", "failed") if kind in record["a"]} == want
    assert ("FAILED" in slow.listed(record)) is ("failed" in want)


def test_a_run_of_an_earlier_day_does_not_count():
    record = {"a": RECORD["a"]}
    slow.joined(record, [BEGUN | {"date": "2026-10-01"}, *lines(_1="passed", _2="passed", _3="passed")[1:]])
    assert record == {"a": RECORD["a"]}


def test_lines_that_a_killed_process_left_are_passed_over(tmp_path):
    (out := tmp_path / "out").write_text('{"test": "a::1"}\n{"test": "a:')
    assert [*slow_lines.read(out)] == [{"test": "a::1"}]


PROJECT, PACKAGE = 'version = "1.2.3"', '__version__ = "1.2.3"'
CHANGES = "# Changelog\n\n## 1.2.3\n### Added\n- A thing.\n\n## 1.2.2\n- Older.\n"


def test_a_release_says_one_version_everywhere():
    assert release.differences("v1.2.3", PROJECT, PACKAGE, CHANGES) == []
    assert release.notes_of("1.2.3", CHANGES) == "### Added\n- A thing."


def test_the_changelog_has_each_version_once():
    changelog = (release.ROOT / "CHANGELOG.md").read_text()
    assert [w for w in release.differences("v1.2.3", PROJECT, PACKAGE, changelog) if "twice" in w] == []


@pytest.mark.parametrize(
    ("tag", "project", "package", "changes", "said"),
    [
        ("1.2.3", PROJECT, PACKAGE, CHANGES, "not a tag of a release"),
        ("v1.2.3", 'version = "1.2.4"', PACKAGE, CHANGES, "pyproject.toml says 1.2.4"),
        ("v1.2.3", PROJECT, "", CHANGES, "numba_cute/__init__.py says None"),
        ("v1.2.3", PROJECT, PACKAGE, "## 1.2.30\n- Later.", "nothing under ## 1.2.3"),
        ("v1.2.3", PROJECT, PACKAGE, CHANGES + "## 1.2.2\n- Again.\n", "has ## 1.2.2 twice"),
    ],
)  # fmt: skip
def test_a_release_that_disagrees_is_refused(tag, project, package, changes, said):
    (wrong,) = release.differences(tag, project, package, changes)
    assert said in wrong


def test_a_check_of_many_things_lists_all_that_fail():
    @each("n, of", [(1, "a"), (2, "b"), (3, "c")], ids=lambda x: x[1])
    def check(n, of, tmp_path):
        assert tmp_path == "folder"
        if n != 2:
            raise AssertionError(f"{n} is odd")

    with pytest.raises(AssertionError) as caught:
        check(tmp_path="folder")
    assert "a: 1 is odd" in str(caught.value) and "c: 3 is odd" in str(caught.value) and "2" not in str(caught.value)
