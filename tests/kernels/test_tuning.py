# SPDX-License-Identifier: Apache-2.0
"""What was measured of a GPU is data, by which plans choose; how it is measured, on a GPU that is none."""

import dataclasses
import inspect
import json
import warnings

import numpy as np
import pytest

import numba_cute as cute
from benchmarks import tune, tune_choices
from numba_cute import CuteError, kernels
from numba_cute.kernels import gemm, tuning
from numba_cute.kernels.gemm import Plan, entry as of_torch, launches, plan as gemm_plan, tuned as of_gemm
from numba_cute.testing import Autotuned
from numba_cute.testing.measuring import Pace

from ..testing.fake import FakeGPU
from . import choices

BF16, SMS = cute.BFloat16, 132
PACE = Pace(turn=1e-4, least=2e-4, most=1e-3)
OTHER = tuning.Gpu("NVIDIA H100 80GB HBM3", "9.0", SMS)


@pytest.mark.parametrize("part", [f.__name__ for f in choices.PARTS])
def test_an_h200_has_the_plans_that_were_measured_there(part):
    kept = json.loads(choices.KEPT.read_text())[part]
    assert getattr(choices, part)() == kept and len(kept) > 20


# ---------------------------------------------------------------- tables


def test_a_table_is_the_same_when_it_was_written_and_read():
    (file, *_), (table, *_) = sorted(tuning.FOLDER.glob("*.json")), tuning.tables()
    assert tuning.read(tuning.written(table)) == table and tuning.file_of(table.gpu) == file
    assert table.numbers["conv"].k_tile[64, 2] == 0.34 and table.date and table.by
    assert json.loads(tuning.written(table)) == json.loads(file.read_text())


def test_a_gpu_takes_its_own_table_or_the_nearest():
    (h200, *_) = tuning.tables()
    h100, small, b200 = (
        h200._replace(gpu=g) for g in (OTHER, tuning.Gpu("GH", "9.0", 66), tuning.Gpu("B200", "10.0", 148))
    )
    among = (b200, small, h100, h200)
    assert tuning.near(h200.gpu, among) is h200 and tuning.near(OTHER, among) is h100
    assert tuning.near(tuning.Gpu("NVIDIA H800 PCIe", "9.0", 114), (b200, small, h200)) is h200
    assert tuning.near(tuning.Gpu("GB300", "10.3", 148), among) is b200


def test_a_gpu_without_a_table_is_told_of_once(monkeypatch):
    monkeypatch.setattr(tuning, "here", lambda: tuning.Gpu("NVIDIA H100 NVL", "9.0", 131))
    with pytest.warns(cute.PerformanceWarning, match="H100 NVL .131 SMs.*by the table of NVIDIA H200.*benchmarks tune"):
        tuning.numbers("matmul")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tuning.numbers("rows").direct == 32768


def test_in_a_simulation_nothing_is_told(monkeypatch):
    with warnings.catch_warnings(), cute.simulation():
        warnings.simplefilter("error")
        assert tuning.here() == tuning.USUAL and tuning.numbers("grouped_gemm").narrow == 128


@pytest.fixture
def rows(monkeypatch):
    """A table with a row for one shape."""
    tuning._say_nearest.cache_clear()
    row = {"kind": "BFloat16, 16, 1", "extents": [1, 512, 4096, 1024], "cut": list(Plan(64, 2, 1, 4))}
    table = tuning.tables()[0]._replace(shapes={"matmul": [row]})
    monkeypatch.setattr(tuning, "table", lambda: table)


def chosen(m, n, k, **options):
    return gemm_plan.plan(np.empty((m, n), np.int8), k, BF16, SMS, **options)


@pytest.mark.usefixtures("rows")
def test_a_shape_of_the_table_takes_its_row_and_one_near_it_too_which_is_told_once():
    usual = Plan(64, 2, 1, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chosen(512, 4096, 1024) == usual
        assert usual not in (chosen(512, 4096, 4096), chosen(512, 4096, 1024, c_width=32))
    with pytest.warns(cute.PerformanceWarning, match="cut as the nearest ones.*tune=True"):
        assert chosen(700, 4096, 1024) == usual
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chosen(256, 4096, 1024) == usual
        assert chosen(512, 4096, 128 * 5, parts=1).splits == 1  # what is asked for holds
        assert chosen(1, 4096, 1024) != usual


# ---------------------------------------------------------------- measuring


def searching(truth, gpu, store=False):
    """`tuned.tuned` on a GPU that takes as long as the model says of other numbers. And the cuts that ran."""
    ran = []

    def launch(a, b, c, dtype, epilogue=None, c_dtype=None, **cut):
        made = Plan(**cut)
        ran.append(made)
        time = gemm_plan.modelled(made, tune.Shape(*c.shape), a.shape[-1], dtype, SMS, known=truth)
        return gpu.launch(str(made), time * 1e-6)

    launch.__signature__ = inspect.signature(of_gemm.tuned.function)
    options = dataclasses.replace(
        of_gemm.tuned.options, device=gpu, pace=PACE, store=store, progress=False, rounds=1, keep=6
    )
    return Autotuned(launch, options), ran


def slower():
    """The numbers of a GPU that multiplies, and adds up splits, more slowly."""
    known = tuning.tables()[0].numbers["matmul"]
    made = known
    for place, factor in ((("launch", None), 1.5), (("split_sum", None), 3.0), (("memory", None), 0.6)):
        made = tune.scaled(made, place, factor)
    for n in known.k_tile:
        made = tune.scaled(made, ("k_tile", n), 1.4)
    return made


def test_the_numbers_of_a_gpu_are_fitted_to_what_it_takes(monkeypatch, tmp_path):
    monkeypatch.setattr(launches, "sms_here", lambda: SMS)
    truth = slower()
    tuned, ran = searching(truth, FakeGPU())

    def search(extents):
        m, n, k = extents
        x, y, z = (np.zeros(s, BF16.numpy) for s in ((m, k), (n, k), (m, n)))
        return tuned.tune(x, y, z, BF16)

    sizes = [(64, 4096, 4096), (512, 1024, 2048), (3072, 3072, 512)]
    table, samples = tune.table(OTHER, search, sizes, BF16, "2026-11-29", rows=True)
    assert len(samples) == 18 and len(set(ran)) > 6 and {s.extents for s in samples} == set(sizes)
    known = tuning.tables()[0].numbers["matmul"]

    def off(numbers):
        said = [gemm_plan.modelled(s.cut, tune.Shape(*s.extents[:2]), s.extents[2], BF16, SMS, known=numbers)
                for s in samples]  # fmt: skip
        return max(abs(t / s.microseconds - 1) for t, s in zip(said, samples))

    assert off(known) > 0.2 and off(table.numbers["matmul"]) < 0.05
    assert table.numbers["rows"] == tuning.tables()[0].numbers["rows"] and "of NVIDIA H200" in table.by
    file = tuning.file_of(OTHER, tmp_path)
    file.write_text(tuning.written(table))
    assert file.name == "nvidia_h100_80gb_hbm3.json" and tuning.read(file.read_text()) == table
    best = min((s for s in samples if s.extents == sizes[0]), key=lambda s: s.microseconds)
    assert table.shapes["matmul"][0] == {
        "kind": "BFloat16, 16, 1", "extents": [1, 64, 4096, 4096], "cut": list(best.cut)
    }  # fmt: skip
    monkeypatch.setattr(tuning, "table", lambda: table)
    assert chosen(*sizes[0]) == best.cut


def test_thresholds_are_chosen_by_the_time_that_calls_take():
    """Of a GPU that likes half as large sections of L2, and of which softmax wants long rows loaded directly."""
    (h200, *_), planned = tuning.tables(), []

    def of(name, wanted, *place):
        def call():
            value = tuning.numbers(name)
            for part in place:
                value = value[part] if isinstance(value, dict) else getattr(value, part)
            planned.append(value)
            return 1 + abs(np.log2((value or 1) / wanted))

        return call

    cases = {
        "attention": of("flash_attention", 16 << 20, "l2"), "rotary": of("rotary", 3.9, "heads"),
        "softmax": of("rows", 32768, "habits", "softmax", "direct"),
    }  # fmt: skip
    said = []
    table = tune_choices.chosen(h200, cases, lambda call: call(), said=said.append)
    assert (
        table.numbers["flash_attention"].l2 == 16 << 20 and table.numbers["rows"].habits["softmax"]["direct"] == 32768
    )
    back = tuning.with_numbers(table, "flash_attention", l2=32 << 20)
    back = tuning.with_numbers(back, "rows", habits=h200.numbers["rows"].habits)
    assert back == h200 and h200.numbers["flash_attention"].l2 == 32 << 20  # all else stays, and heads, which are best
    assert {8 << 20, 64 << 20} <= set(planned) and any(s.startswith("flash_attention l2: 16777216") for s in said)
    assert tuning.numbers("flash_attention").l2 == 32 << 20


def test_every_number_that_is_chosen_is_in_every_table():
    for table in tuning.tables():
        for choice in tune_choices.CHOICES:
            assert type(tune_choices.held(table, choice)) in (int, float)
            other = tune_choices.replaced(table, choice, -1)
            assert tune_choices.held(other, choice) == -1 and tune_choices.held(table, choice) != -1
            assert tuning.read(tuning.written(other)) == other


def test_a_search_holds_for_its_epilogue_and_is_kept_on_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(launches, "sms_here", lambda: SMS)
    truth, gpu = slower(), FakeGPU()
    a, b, c = (np.zeros(s, BF16.numpy) for s in ((64, 512), (1024, 512), (64, 1024)))
    tuned, ran = searching(truth, gpu, str(tmp_path))
    v = np.zeros(1024, np.float32)
    first = tuned.tune(a, b, c, BF16, gemm.bias(v), BF16)
    costs = {x: gemm_plan.modelled(x, tune.Shape(64, 1024), 512, BF16, SMS, known=truth) for x in ran}
    assert costs[Plan(**first.best)] == min(costs.values()) and len(costs) == 6
    before = len(ran)
    assert tuned.tune(a, b, c, BF16, gemm.bias(v + 1), BF16) is first and len(ran) == before
    assert tuned.tune(a, b, c, BF16, gemm.relu(), BF16) is not first and len(ran) > before


# ---------------------------------------------------------------- matmul(…, tune=True)


@pytest.fixture
def torch(monkeypatch):
    monkeypatch.setattr(of_torch, "_winners", {})
    monkeypatch.setattr(of_torch, "_known", {})
    return pytest.importorskip("torch")


@pytest.mark.slow
def test_matmul_searches_once_and_uses_what_it_found_afterwards(monkeypatch, torch):
    monkeypatch.setattr(launches, "sms_here", lambda: SMS)
    monkeypatch.setattr(of_torch, "sms_here", lambda: SMS)
    tuned, ran = searching(slower(), FakeGPU())
    monkeypatch.setattr(of_gemm, "tuned", tuned)
    used, place = [], of_torch.launch_on
    monkeypatch.setattr(of_torch, "launch_on", lambda *args: used.append(args[3]) or place(*args))
    a, b, sums = torch.randn(8, 40), torch.randn(24, 40).mT, torch.zeros(8)
    epilogue = gemm.total(sums)
    with cute.simulation():
        y = kernels.matmul(a, b, epilogue=epilogue, tune=True)
        searched = len(ran)
        assert searched and torch.allclose(y, a @ b, atol=0.1) and torch.allclose(sums, (a @ b).sum(1), atol=0.5)
        kernels.matmul(a, b, epilogue=epilogue)
        kernels.matmul(a, b, epilogue=epilogue, tune=True)
        assert len(ran) == searched and set(used) == {next(iter(of_torch._winners.values()))}
        x = a.clone().requires_grad_()
        kernels.matmul(x, b, tune=True).sum().backward()
        assert len(ran) > searched and torch.allclose(x.grad, b.sum(1).expand_as(a), atol=0.1)


def test_what_cannot_be_measured_is_refused(torch):
    a, b = torch.zeros(8, 8), torch.zeros(8, 8)
    with cute.simulation(), pytest.raises(CuteError, match="tune=True, and the cut is given: leave one out"):
        kernels.matmul(a, b, tune=True, cut=Plan(64, 1))
