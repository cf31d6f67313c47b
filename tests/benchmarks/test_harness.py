# SPDX-License-Identifier: Apache-2.0
"""Benchmarks are found, kept with where they ran, and compared with the last ones."""

import argparse
import json

import pytest

from benchmarks import __main__ as command, harness, plots
from benchmarks.harness import Entry, Figure, Result

WHERE = {"gpu": "NVIDIA H200", "date": "2026-11-22T10:00:00+00:00", "commit": "abc1234"}
ENTRY = Entry("fake", "a fake", lambda options: Result({"x": Figure(1.0, "us")}), gpu=True)


def result(us, low=None, high=None):
    interval = None if low is None else (low, high)
    return Result({"time": Figure(us, "us", interval=interval), "rate": Figure(1 / us, "TB/s", True)}, {"more": [1]})


def test_each_script_of_the_folder_is_an_entry_with_its_own_name():
    found = harness.names()
    assert {"gemm", "layouts", "compile_time", "simulator", "plain_launch", "timeline"} <= set(found)
    for name in found:
        try:
            entry = harness.load(name)
        except ImportError as e:
            assert any(needed in str(e) for needed in ("torch", "triton", "numba-cuda-mlir"))
            continue
        assert entry.name == name and entry.about
        assert harness.parser(entry, None).parse_args([]).no_keep is False


def test_results_are_kept_by_machine_with_a_line_of_history(tmp_path):
    for us in (2.0, 3.0):
        file = harness.save(ENTRY, result(us), WHERE, tmp_path)
    held = json.loads(file.read_text())
    assert file.name == "fake_nvidia_h200.json" and held["machine"] == WHERE and held["more"] == [1]
    assert held["figures"]["time"]["value"] == 3
    lines = harness.past("fake", tmp_path)
    assert [line["figures"]["time"]["value"] for line in lines] == [2, 3] and lines[0]["commit"] == "abc1234"
    assert harness.last("fake", "nvidia_h200", tmp_path)["time"].value == 3
    assert harness.last("fake", "nvidia_h100", tmp_path) == {} == harness.last("other", "nvidia_h200", tmp_path)


@pytest.mark.parametrize(
    ("now", "before", "better", "certain"),
    [
        (Figure(1.0, "us"), Figure(2.0, "us"), 1.0, True),
        (Figure(2.0, "us"), Figure(1.0, "us"), -0.5, True),
        (Figure(2.0, "TB/s", True), Figure(1.0, "TB/s", True), 1.0, True),
        (Figure(1.01, "us"), Figure(1.0, "us"), -0.0099, False),
        (Figure(1.2, "us", interval=(1.0, 1.4)), Figure(1.0, "us", interval=(0.9, 1.1)), -0.1667, False),
        (Figure(1.01, "us", interval=(1.01, 1.02)), Figure(1.0, "us", interval=(0.99, 1.0)), -0.0099, True),
    ],
    ids=["faster", "slower", "rate", "noise", "intervals overlap", "intervals part"],
)
def test_a_change_is_told_where_it_is_more_than_noise(now, before, better, certain):
    assert harness.change(now, before) == (pytest.approx(better, abs=1e-3), certain)


def test_the_table_says_what_became_slower():
    text = harness.table(result(3.0).figures, result(2.0).figures)
    assert "was 2: 33.3% SLOWER" in text.splitlines()[0] and "was 0.5: 33.3% SLOWER" in text.splitlines()[1]
    assert "was" not in harness.table(result(3.0).figures, {})


def test_a_benchmark_is_run_shown_and_kept(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(harness, "machine", lambda: WHERE)
    for _ in range(2):
        harness.perform(ENTRY, argparse.Namespace(), tmp_path)
    assert "fake: a fake (nvidia_h200, abc1234)" in capsys.readouterr().out
    assert len(harness.past("fake", tmp_path)) == 2
    harness.perform(ENTRY, argparse.Namespace(), tmp_path, keep=False)
    assert len(harness.past("fake", tmp_path)) == 2


def test_one_that_fails_or_is_unknown_is_told(tmp_path, capsys, monkeypatch):
    def fail(options):
        raise RuntimeError("no luck")

    monkeypatch.setattr(harness, "load", lambda name: Entry(name, "fails", fail))
    monkeypatch.setattr(harness, "machine", lambda: WHERE)
    options = argparse.Namespace(results=tmp_path, no_keep=False)
    assert not command.attempted("layouts", options, asked=True)
    assert "layouts: FAILED: RuntimeError: no luck" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["nonsense"])
    assert "there is no benchmark nonsense; there are" in capsys.readouterr().err


def test_the_list_says_what_there_is(capsys):
    assert command.main(["--list"]) == 0
    assert "layouts" in capsys.readouterr().out


def test_pictures_are_drawn_of_what_is_kept(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need it")
    for us in (2.0, 3.0):
        harness.save(Entry("layouts", "", ENTRY.run), result(us), WHERE, tmp_path)
    contenders = {n: {"tflops": [600.0, 610.0, 620.0], "tflops_median": 610.0} for n in ("ours", "cublas")}
    problem = {"m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"}
    held = {"machine": WHERE, "results": [{**problem, "regimes": [{"regime": "sustained", "contenders": contenders}]}]}
    (tmp_path / "gemm_nvidia_h200.json").write_text(json.dumps(held))
    drawn = {f.name for f in plots.draw(tmp_path)}
    stems = ("gemm_nvidia_h200", "roofline_nvidia_h200", "history_layouts_x86_64")
    assert {f"{s}.{k}" for s in stems[:2] for k in ("png", "svg")} < drawn and any("history" in d for d in drawn)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(SystemExit, match="pip install --group bench"):
        plots.pyplot()
