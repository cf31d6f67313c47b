# SPDX-License-Identifier: Apache-2.0
"""The fastest configuration is found, whatever the others do, and is kept with all that was measured."""

import json
import multiprocessing
import os
import threading
import warnings
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import config
from numba_cute.testing import JitArguments, autotune_jit, tune
from numba_cute.testing.measuring import Pace

from . import fake
from .fake import FakeGPU, RealTime

PACE = Pace(turn=1e-3, least=2e-3, most=0.02)
TILES = {64: 3e-5, 128: 1e-5, 256: 2e-5}


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.override(tuned=str(tmp_path / "tuned")):
        yield tmp_path / "tuned"


def tuned(gpu, configs=None, **options):
    """A function with a tile, of which 128 is the fastest, and the tiles that it was called with."""
    called = []
    options = {"pace": PACE, "device": gpu, "progress": False, **options}

    @cute.autotune(configs or {"tile": [64, 128, 256]}, **options)
    def multiply(a, n=1, tile=64):
        called.append(tile)
        if tile not in TILES:
            raise cute.CuteError(f"tile {tile} is too large")
        gpu.launch(f"tile {tile}", TILES[tile] * n)()
        return tile

    return multiply, called


def test_the_fastest_is_found_once_and_launched():
    multiply, called = tuned(FakeGPU(throttle=0.3))
    assert multiply(np.zeros(8)) == 128 and len(called) > 10
    measured = len(called)
    assert multiply(np.ones(8)) == 128 and len(called) == measured + 1
    found = multiply.tune(np.zeros(8))
    assert found.best == {"tile": 128} and found.slower({"tile": 256}) == pytest.approx(1, rel=0.02)
    assert str(found).splitlines()[1].split()[0] == "tile=128"


def test_another_shape_or_type_is_another_key_and_other_values_are_not():
    multiply, called = tuned(FakeGPU())
    seen = []
    for a in (np.zeros(8), np.ones(8), np.zeros(9), np.zeros(8, np.float32), np.zeros((8, 8)), np.zeros((8, 8)).T):
        before = len(called)
        multiply(a)
        seen.append(len(called) - before > 1)
    assert seen == [True, False, True, True, True, True]


@pytest.mark.parametrize("key", ["n", ("n",), lambda a, n: n], ids=["name", "names", "function"])
def test_the_key_says_what_matters(key):
    multiply, called = tuned(FakeGPU(), key=key)
    multiply(np.zeros(8), 1)
    before = len(called)
    multiply(np.zeros(9), 1)
    assert len(called) == before + 1
    multiply(np.zeros(8), 2)
    assert len(called) > before + 2


def test_results_are_kept_on_disk_with_all_that_was_measured(folder):
    gpu = FakeGPU()
    first, _ = tuned(gpu)
    first(np.zeros(8))
    (file,) = folder.iterdir()
    held = json.loads(file.read_text())
    assert held["best"] == "tile=128" and held["machine"]["gpu"] == "a fake" and held["machine"]["date"]
    assert held["machine"]["versions"]["numba"] and held["seconds"] > 0
    assert {n: len(t["samples_us"]) for n, t in held["measured"].items()} == {f"tile={t}": 5 for t in TILES}
    again, called = tuned(FakeGPU())
    assert again(np.zeros(8)) == 128 and called == [128]


def test_a_result_does_not_hold_for_other_configurations_gpus_or_functions(folder):
    class Other(FakeGPU):
        def facts(self):
            return {**super().facts(), "gpu": "another"}

    for gpu, configs in ((FakeGPU(), None), (FakeGPU(), {"tile": [64, 128]}), (Other(), None)):
        _, called = made = tuned(gpu, configs)
        made[0](np.zeros(8))
        assert len(called) > 1
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "identity": {}, "best": 3}'])
def test_a_broken_file_is_measured_anew(folder, text):
    tuned(FakeGPU())[0](np.zeros(8))
    (file,) = folder.iterdir()
    file.write_text(text)
    multiply, called = tuned(FakeGPU())
    assert multiply(np.zeros(8)) == 128 and len(called) > 1
    assert json.loads(file.read_text())["best"] == "tile=128"


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    multiply, _ = tuned(FakeGPU(), store=tmp_path / "file" / "below")
    with pytest.warns(RuntimeWarning, match="autotune: the result cannot be kept in"):
        assert multiply(np.zeros(8)) == 128


def test_nothing_is_kept_where_that_is_not_wanted(folder):
    tuned(FakeGPU(), store=False)[0](np.zeros(8))
    assert not folder.exists()


def test_a_configuration_that_fails_is_left_out():
    multiply, _ = tuned(FakeGPU(), {"tile": [64, 128, 512]})
    assert multiply(np.zeros(8)) == 128
    record = multiply.tune(np.zeros(8)).record
    assert record["failed"] == {"tile=512": "CuteError: tile 512 is too large"} and "failed" in str(
        multiply.tune(np.zeros(8))
    )
    with pytest.raises(cute.CuteError, match="no configuration of .*multiply works: tile=512: CuteError: tile 512"):
        tuned(FakeGPU(), {"tile": [512, 1024]})[0](np.zeros(8))


def test_models_spare_measurements():
    drop = lambda c, arguments: c["tile"] > 4 * arguments["n"]  # noqa: E731
    multiply, _ = tuned(FakeGPU(), prune=drop)
    assert [c["tile"] for c in multiply.candidates(np.zeros(8), 32)] == [64, 128]
    assert multiply(np.zeros(8), 16) == 64  # the only one
    with pytest.raises(cute.CuteError, match="prune dropped all of 3 configurations"):
        multiply(np.zeros(8), 1)
    multiply, _ = tuned(FakeGPU(), cost=lambda c, arguments: -c["tile"], keep=2)
    assert [c["tile"] for c in multiply.candidates(np.zeros(8))] == [256, 128]


class Cut(NamedTuple):
    tile: int
    n: int = 1


def test_configurations_are_dicts_tuples_with_names_or_made_of_the_arguments():
    by_size = lambda a: [{"tile": 2 * len(a)}, {"tile": 64}]  # noqa: E731
    multiply, _ = tuned(FakeGPU(), by_size, key=lambda n: n)
    assert multiply(np.zeros(64)) == 128 and multiply(np.zeros(64), tile=64) == 64  # by defaults, and by name
    for configs in (
        [{"tile": 64}, {"tile": 128}],
        [Cut(64), Cut(128)],
        lambda a, **_: [{"tile": 2 * len(a)}, {"tile": 64}],
    ):
        multiply, _ = tuned(FakeGPU(), configs)
        assert multiply(np.zeros(64)) == 128


def test_what_is_given_by_name_holds():
    multiply, called = tuned(FakeGPU())
    assert multiply(np.zeros(8), tile=256) == 256 and set(called) == {256}
    multiply, _ = tuned(FakeGPU(), {"tile": [64, 256], "n": [1, 9]})
    assert multiply(np.zeros(8), tile=64) == 64
    assert multiply.tune(np.zeros(8), tile=64).best == {"tile": 64, "n": 1}


def test_arguments_that_launches_change_are_put_back():
    gpu = FakeGPU()

    @cute.autotune({"step": [1, 2]}, restore="x", pace=PACE, device=gpu, progress=False, key="n")
    def add(x, n, step=1):
        x += step
        gpu.launch("add", 1e-5 * step)()

    x = np.arange(4.0)
    add(x, 1)
    assert (x == np.arange(4.0) + 1).all()


def test_a_function_may_give_its_launch():
    gpu = FakeGPU()

    @cute.autotune({"tile": [64, 128]}, makes_launch=True, pace=PACE, device=gpu, progress=False)
    def launcher(a, tile=64):
        return gpu.launch(f"tile {tile}", TILES[tile])

    launch = launcher(np.zeros(8))
    gpu.log.clear()
    launch()
    assert gpu.log == ["tile 128"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"configs": []}, "configs is empty"),
        ({"configs": "fast"}, "configs 'fast' must be a list of dicts"),
        ({"configs": [3]}, "configuration 3 must be a dict, a NamedTuple or a dataclass"),
        ({"configs": [{"stages": 2}]}, "configuration stages=2 sets stages, for which the function has no parameter"),
        ({"configs": [{}], "keep": 0}, "keep 0 must be an int from 1 on"),
        ({"configs": [{}], "isolate": -1}, "isolate -1 must be a positive number of seconds"),
        ({"configs": [{}], "regime": "hot"}, "regime 'hot' must be one of"),
        ({"configs": {"tile": [1, 2]}, "key": "m"}, "key 'm' is not an argument of the function; it has a"),
        ({"configs": {"tile": [1, 2]}, "restore": "m"}, "restore 'm' is not an argument"),
    ],
    ids=lambda p: None if isinstance(p, str) else "-".join(p),
)
def test_what_cannot_be_tuned_is_refused(given, words):
    with pytest.raises(cute.CuteError, match=f"autotune: {words}"):
        cute.autotune(**given, device=FakeGPU(), progress=False)(lambda a, tile=1: None)(np.zeros(3))


ISOLATED = {"isolate": 4.0, "workers": 5, "device": RealTime(), "progress": False, "store": False, "key": (),
            "pace": Pace(turn=5e-3, least=0.01, most=0.05)}  # fmt: skip


@cute.autotune({"kind": ["slow", "fast", "fails", "hangs", "dies"]}, **ISOLATED)
def isolated(folder, kind="slow"):
    return fake.work(folder, kind)


@pytest.mark.slow
def test_in_a_process_of_its_own_a_configuration_may_fail_hang_or_die(tmp_path):
    found = isolated.tune(str(tmp_path))
    assert found.best == {"kind": "fast"} and set(found.record["measured"]) == {"kind=fast", "kind=slow"}
    failed = found.record["failed"]
    assert failed["kind=fails"] == "CuteError: this tile is too large"
    assert failed["kind=hangs"] == "it took longer than 4 s to compile and launch, and its process was ended"
    assert failed["kind=dies"] == "its process ended with exit code 7"
    assert found.record["isolated"] and len(list(tmp_path.iterdir())) == 5


class Threads:
    """What multiprocessing's context is, with threads in place of processes."""

    exitcode = None

    def __init__(self, target=None, args=(), daemon=True):
        if target is None:
            return
        self._thread = threading.Thread(target=target, args=args, daemon=daemon)
        self.start, self.join, self.is_alive = self._thread.start, self._thread.join, lambda: False

    Process = property(lambda self: Threads)

    @staticmethod
    def Pipe():
        ours, theirs = multiprocessing.Pipe()
        return ours, SimpleNamespace(send=theirs.send, recv=theirs.recv, close=lambda: None)  # a thread's own end


@cute.autotune({"kind": ["slow", "fast", "fails", "hangs"]}, **{**ISOLATED, "isolate": 1.0})
def beside(folder, kind="slow"):
    return fake.work(folder, kind)


def test_children_answer_in_turns_and_those_that_do_not_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: Threads())
    monkeypatch.setattr(fake, "HANGS", 3.0)
    found = beside.tune(str(tmp_path))
    assert found.best == {"kind": "fast"} and found.slower({"kind": "slow"}) > 0
    assert found.record["failed"] == {
        "kind=fails": "CuteError: this tile is too large",
        "kind=hangs": "it took longer than 1 s to compile and launch, and its process was ended",
    }


def test_what_no_other_process_finds_is_refused():
    options = {"isolate": 1.0, "device": RealTime(), "progress": False}
    with pytest.raises(cute.CuteError, match="is defined inside of a function, where no other process finds it"):
        cute.autotune({"tile": [1, 2]}, **options)(lambda a, tile=1: None)(3)
    with pytest.raises(cute.CuteError, match="argument <object object at .* cannot be sent to another process"):
        isolated.tune(object(), again=True)


@pytest.mark.slow
def test_many_processes_keep_the_same_result(folder):
    processes = [multiprocessing.get_context("spawn").Process(target=_tune, args=(str(folder),)) for _ in range(4)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    assert [p.exitcode for p in processes] == [0] * 4
    assert len([f for f in os.listdir(folder) if f.endswith(".json")]) == 1


def _tune(folder):
    with config.override(tuned=folder), warnings.catch_warnings(action="error"):
        for _ in range(20):
            assert tuned(FakeGPU())[0].tune(np.zeros(8), again=True).best == {"tile": 128}


def test_the_references_tune_gives_parameters():
    gpu = FakeGPU()

    def compiled(a, n, tile=64):
        if tile == 1:
            raise ValueError("no such tile")
        return gpu.launch(f"tile {tile}", TILES[tile] * n)

    best = tune(compiled, params_dict={"tile": [1, 64, 128, 256]}, kernel_arguments=JitArguments(3, n=1), device=gpu)
    assert best == {"tile": 128}


def test_the_references_decorator_tunes_a_host_function():
    gpu = FakeGPU()

    @autotune_jit(params_dict={"tile": [64, 128]}, update_on_change=["n"], device=gpu)
    @cute.jit
    def host(a, n, tile: cute.Constexpr = 64):
        gpu.launch(f"tile {tile}", TILES[tile])()

    host(None, 5)
    assert gpu.log[-1] == "tile 128" and {"tile 64", "tile 128"} == set(gpu.log)


def limited(gpu, limit, helper=lambda: 0):
    @cute.autotune({"tile": [64, 128]}, pace=PACE, device=gpu, progress=False)
    def multiply(a, epilogue=None, tile=64):
        if tile > limit + helper():
            raise cute.CuteError(f"tile {tile} is beyond {limit}")
        launches(gpu, tile)
        return tile

    return multiply


def launches(gpu, tile):
    gpu.launch(f"tile {tile}", TILES[tile])()


def test_closures_with_other_values_share_no_result(folder):
    assert limited(FakeGPU(), 128)(np.zeros(8)) == 128
    assert limited(FakeGPU(), 64)(np.zeros(8)) == 64
    assert limited(FakeGPU(), 64, lambda: 64)(np.zeros(8)) == 128
    assert len(list(folder.iterdir())) == 3


class Scale:
    def __init__(self, by):
        self.by = by


def test_arguments_that_differ_within_are_other_keys(folder):
    def by(n):
        return lambda x: x * n

    multiply = limited(FakeGPU(), 128)
    keys = {multiply.tune(np.zeros(8), e).key for e in (by(1), by(2), Scale(1), Scale(2), Scale, len)}
    assert len(keys) == 6 and multiply.tune(np.zeros(8), by(1)).key in keys


def test_what_cannot_be_described_holds_for_this_process_alone(folder):
    multiply = limited(FakeGPU(), 128)
    with open(__file__) as file, open(__file__) as other:
        assert multiply.tune(np.zeros(8), file).key != multiply.tune(np.zeros(8), other).key
    assert not folder.exists()


def test_another_version_of_the_library_measures_again(folder, monkeypatch):
    limited(FakeGPU(), 128)(np.zeros(8))
    monkeypatch.setattr("numba_cute.testing.tuned.version", lambda: "another")
    limited(FakeGPU(), 128)(np.zeros(8))
    assert len(list(folder.iterdir())) == 2


BAD_RESULTS = {
    "no JSON": lambda held: "{", "a list": lambda held: "[]", "deep": lambda held: "[" * 100_000,
    "no times": lambda held: json.dumps({**held, "measured": {}}),
    "times of texts": lambda held: json.dumps({**held, "measured": {"tile=128": {"median_us": "x"}}}),
    "another best": lambda held: json.dumps({**held, "best": "tile=1"}),
    "no failures": lambda held: json.dumps({k: v for k, v in held.items() if k != "failed"}),
}  # fmt: skip


@pytest.mark.parametrize("spoil", BAD_RESULTS.values(), ids=BAD_RESULTS)
def test_a_result_that_is_none_is_measured_again(folder, spoil):
    limited(FakeGPU(), 128)(np.zeros(8))
    (file,) = folder.iterdir()
    file.write_text(spoil(json.loads(file.read_text())))
    found = limited(FakeGPU(), 128).tune(np.zeros(8))
    assert found.table() and found.slower(found.best) == 0 and json.loads(file.read_text())["best"] == "tile=128"


def test_a_result_that_others_may_have_written_is_measured_again(folder):
    limited(FakeGPU(), 128)(np.zeros(8))
    (file,) = folder.iterdir()
    held = json.loads(file.read_text())
    file.write_text(json.dumps({**held, "best": "tile=64"}))
    assert limited(FakeGPU(), 128)(np.zeros(8)) == 64  # ours is believed
    file.chmod(0o666)
    assert limited(FakeGPU(), 128)(np.zeros(8)) == 128
    file.chmod(0o600), folder.chmod(0o777)
    file.write_text(json.dumps({**held, "best": "tile=64"}))
    with pytest.warns(RuntimeWarning, match="the result cannot be kept in .*nobody else may write"):
        assert limited(FakeGPU(), 128)(np.zeros(8)) == 128


def test_an_interrupt_puts_arguments_back_and_keeps_nothing(folder):
    a, calls = np.zeros(4), []

    @cute.autotune({"tile": [64, 128]}, pace=PACE, device=FakeGPU(), progress=False, restore="a")
    def multiply(a, tile=64):
        a += 1
        calls.append(tile)
        if len(calls) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        multiply.tune(a)
    assert not a.any() and not folder.exists() and not multiply._known
