# SPDX-License-Identifier: Apache-2.0
"""Starting ranks: what they print, how they end, and that none is waited for in vain."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks import ranks


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run some Python as so many ranks."""

    def start(code, count=2, timeout=20.0, **how):
        (tmp_path / "a_rank.py").write_text("import os, sys, time\nrank = int(os.environ['RANK'])\n" + code)
        monkeypatch.setattr(ranks, "ROOT", Path(tmp_path))
        return ranks.start("a_rank", ["x"], count, timeout, **how)

    return start


def test_each_has_its_number_and_they_share_a_port(run):
    e = "os.environ['"
    code = f"print(rank, {e}LOCAL_RANK'], {e}WORLD_SIZE'], {e}MASTER_PORT'], sys.argv[1])\n"
    ended = run(code + "print('late', file=sys.stderr)")
    assert ended.codes == [0, 0] and ended.in_time
    first, second = (said.splitlines()[0].split() for said in ended.said)
    assert first[:3] == ["0", "0", "2"] and second[:3] == ["1", "1", "2"] and first[3:] == second[3:]
    assert all("late" in said for said in ended.said)


def test_what_they_say_is_shown_as_they_say_it(run, capsys):
    run("print('here')", show=True)
    assert sorted(capsys.readouterr().out.splitlines()) == ["[0] here", "[1] here"]


def test_one_that_hangs_is_ended(run):
    began = time.monotonic()
    ended = run("print('hangs', flush=True); time.sleep(60 * (rank == 1))", timeout=0.7)
    assert not ended.in_time and ended.codes[1] == -9 and "hangs" in ended.said[1]
    assert time.monotonic() - began < 10


def test_one_that_fails_is_not_waited_for_by_the_others(run, monkeypatch):
    monkeypatch.setattr(ranks, "_GRACE", 0.1)
    ended = run("sys.exit(3) if rank == 0 else time.sleep(60)")
    assert not ended.in_time and ended.codes == [3, -9]
    assert "rank 0 (exit code 3):" in ended.text
