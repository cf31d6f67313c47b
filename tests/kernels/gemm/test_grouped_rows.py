# SPDX-License-Identifier: Apache-2.0
"""Grouped GEMMs with epilogues, whose rows an index names: a layer of experts in three calls, against float64."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.gemm import (
    Epilogue,
    Umma,
    Warps,
    bias,
    columns,
    grouped,
    matrix,
    scale,
    silu,
    swiglu,
    total,
    warps_grouped,
    warps_plan,
)
from numba_cute.kernels.gemm.epilogue import Given

from . import problems

try:
    import torch
except ImportError:
    torch = None

SLOW = pytest.mark.slow
BF16, F16, E5M2 = cute.BFloat16, cute.Float16, cute.Float8E5M2
NARROW, ROWS, ALONE = (grouped.Cut(*x) for x in ((128, (1, 1), True), (256, (2, 1)), (256, (1, 1), True)))
PAIR = Umma(256, 2)
LEAST, SMALL = Warps((32, 32), (1, 1), 64), Warps((32, 64), (1, 2), 64)


def problem(rows, n, k, dtype, of_a=None, of_c=None, pairs=False, vectors=False, b_turned=False):
    """Operands, ends, C that is 7, the indices, an epilogue, and what C must be. rows: of each group. of_a, of_c: how
    many rows A and C have, if an index names them. vectors: of rows, and of columns for each group."""
    a, b, ends, _, c, _ = problems.grouped(rows, n, k, dtype, b_turned=b_turned)
    rng, m, width = np.random.default_rng(1), len(a), n // (1 + pairs)
    index_a = index_c = epilogue = None
    if of_a:
        a = rng.standard_normal((of_a, k), dtype=np.float32).astype(dtype.numpy)
        index_a = rng.integers(0, of_a, m).astype(np.int32)
        index_a[1], index_a[2], index_a[4] = -1, of_a, index_a[0]  # two that are none, and one twice
    index_c = rng.permutation(of_c)[:m].astype(np.int64) if of_c else None
    if of_c:
        index_c[0], index_c[3] = -5, of_c
    c = np.full((of_c or m, width), 7, c.dtype)
    wide = a.astype(np.float64)
    if of_a:
        there = (index_a >= 0) & (index_a < of_a)
        wide = np.where(there[:, None], wide[np.clip(index_a, 0, of_a - 1)], np.nan)
    group = np.searchsorted(ends, np.arange(m), side="right")
    inside = group < len(rows)
    group = np.minimum(group, len(rows) - 1)
    made = np.stack([x @ b[g].astype(np.float64).T for x, g in zip(wide, group)]) if m else np.zeros((0, n))
    if pairs:
        left, right = made[:, :width], made[:, width:]
        made, epilogue = left / (1 + np.exp(-left)) * right, swiglu()
    if vectors:
        factor = rng.standard_normal(m).astype(np.float32)
        shift = rng.standard_normal((len(rows), width)).astype(np.float32)
        added = Epilogue(_moved, Given(factor, "rows"), columns(shift))
        made, epilogue = made * factor[:, None] + shift[group], added if epilogue is None else epilogue | added
    want, place = np.full(c.shape, 7.0), np.arange(m) if index_c is None else index_c
    kept = inside & (place >= 0) & (place < len(c))
    want[place[kept]] = made[kept]
    return a, b, ends, c, (index_a, index_c), epilogue, want


def _moved(x, factor, shift):
    return x * factor + shift


def compare(c, want):
    got = c.astype(np.float64)
    assert (np.isnan(got) == np.isnan(want)).all()
    assert np.nanmax(np.abs(got - want)) <= 2.0**-7 * np.nanmax(np.abs(want))


CASES = [
    ((5, 0, 3), 16, 16, BF16, {"of_a": 9, "of_c": 14, "pairs": True, "vectors": True}),
    *(pytest.param(*case, marks=SLOW) for case in [
        ((5, 0, 36), 32, 16, BF16, {"of_a": 9, "of_c": 60, "pairs": True, "vectors": True}),
        ((3, 0, 70, 33), 72, 168, BF16, {"of_a": 30}),
        ((3, 0, 70, 33), 72, 168, BF16, {"of_c": 300}),
        ((3, 0, 70, 33), 144, 168, F16, {"pairs": True, "b_turned": True}),
        ((140, 1), 272, 72, BF16, {"vectors": True, "b_turned": True}),
        ((1,) * 40, 48, 40, BF16, {"of_a": 7, "of_c": 50, "vectors": True}),
        ((0, 0), 16, 40, BF16, {"of_c": 9}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cut", "arch"), [pytest.param(NARROW, "sm_90a", marks=SLOW), (LEAST, "sm_80"),
                      pytest.param(Umma(64, 2), "sm_100a", marks=SLOW)], ids=str,
)  # fmt: skip
@pytest.mark.parametrize(("rows", "n", "k", "dtype", "how"), CASES, ids=str)
def test_rows_are_those_that_an_index_names(rows, n, k, dtype, how, cut, arch):
    if sum(rows) + 3 < 5:
        how = {key: value for key, value in how.items() if key not in ("of_a", "of_c")}
    a, b, ends, c, named, epilogue, want = problem(rows, n, k, dtype, **how)
    grouped.plan(a, b, ends, c, cut=cut, epilogue=epilogue, rows=named).simulate(arch=arch, checks=n == 32)
    compare(c, want)


@SLOW
@pytest.mark.parametrize(
    ("cut", "dtype"), [(ROWS, BF16), (ALONE, BF16), (ALONE, E5M2), (PAIR, BF16), (PAIR, E5M2)], ids=str
)
def test_wide_tiles_are_gathered_and_scattered(cut, dtype):
    how = {"of_a": 50, "of_c": 700, "pairs": dtype == BF16, "vectors": True}
    a, b, ends, c, named, epilogue, want = problem((300, 0, 130), 528, 400, dtype, **how)
    arch = "sm_100a" if cut == PAIR else "sm_90a"
    grouped.plan(a, b, ends, c, cut=cut, epilogue=epilogue, rows=named).simulate(arch=arch, checks=False)
    compare(c, want)


HOWS = ({"of_a": 500}, {"of_c": 500}, {"pairs": True}, {"vectors": True},
        {"of_a": 500, "of_c": 500, "pairs": True, "vectors": True})  # fmt: skip


@SLOW
@pytest.mark.parametrize("how", HOWS, ids=str)
def test_sums_stay_in_registers(how):
    for cut, dtype in ((NARROW, BF16), (ROWS, F16), (ALONE, BF16), (ALONE, E5M2)):
        a, b, ends, c, named, epilogue, _ = problem((300,), 512, 512, dtype, **how)
        found = grouped.plan(a, b, ends, c, cut=cut, epilogue=epilogue, rows=named).compile()
        assert found.resources.local == 0 and not found.notes, (cut, dtype)


@SLOW
@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_120a"])
@pytest.mark.parametrize("how", HOWS, ids=str)
def test_sums_of_warps_stay_in_registers(how, target, monkeypatch):
    monkeypatch.setattr(warps_grouped, "_target", lambda a: cute.target(target))
    a, b, ends, c, named, epilogue, _ = problem((300,), 512, 512, BF16, b_turned=target == "sm_86", **how)
    for cut in warps_plan.cuts(cute.target(target), "of_a" in how or "of_c" in how):
        found = grouped.plan(a, b, ends, c, cut=cut, epilogue=epilogue, rows=named).compile(arch=target)
        assert (found.resources.spill_stores, found.resources.local) == (0, 0), cut


@SLOW
@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("how", HOWS, ids=str)
def test_sums_of_tensor_memory_stay_in_registers(how, target):
    for cut, dtype in ((Umma(128, 1), BF16), (Umma(256, 1), F16), (PAIR, BF16), (PAIR, E5M2)):
        a, b, ends, c, named, epilogue, _ = problem((300,), 512, 512, dtype, **how)
        found = grouped.plan(a, b, ends, c, cut=cut, epilogue=epilogue, rows=named).compile(arch=target)
        assert (found.resources.spill_stores, found.resources.local) == (0, 0), (cut, dtype)


# ---------------------------------------------------------------- the entry


@pytest.fixture
def on(request):
    """Run entries in the simulator as on a GPU of a target."""
    pytest.importorskip("torch").manual_seed(0)
    with cute.simulation(getattr(request, "param", "sm_90a"), checks=False, sms=4):
        yield


def routed(tokens, experts, each):
    """Route tokens: their weights, the experts' ends, and of each row of theirs the token and the place among all
    choices. Of the last expert there are no rows."""
    scores = torch.randn(tokens, experts)
    scores[:, -1] = -9.0
    weights, chosen = scores.topk(each)
    order = chosen.flatten().argsort(stable=True)
    ends = torch.bincount(chosen.flatten(), minlength=experts).cumsum(0).int()
    return weights.softmax(-1), chosen, order, ends


def layer(x, gate_and_up, down, weights, order, ends, each):
    """A layer of experts, in three calls."""
    factor = weights.flatten()[order]
    h = kernels.grouped_gemm(x, gate_and_up, ends, rows_of_a=order // each, epilogue=swiglu())
    y = kernels.grouped_gemm(h, down, ends, rows_of_c=order, epilogue=scale(factor, "rows"))
    return y.view(len(x), each, -1).sum(1)


def exact_layer(x, gate_and_up, down, weights, chosen):
    out = torch.zeros(len(x), down.shape[1], dtype=torch.float64)
    for t, k in np.ndindex(*chosen.shape):
        e = int(chosen[t, k])
        left, right = (gate_and_up[e] @ x[t]).chunk(2)
        made = down[e] @ (torch.nn.functional.silu(left) * right)
        out = out.index_add(0, torch.tensor([t]), weights[t, k] * made[None])
    return out


@SLOW
@pytest.mark.parametrize("how", ["plain", "traced"])
@pytest.mark.parametrize("on", ["sm_90a", "sm_86", "sm_100a"], indirect=True)
def test_a_layer_of_experts_is_three_calls_with_all_gradients(on, how):
    each, normal = 2, lambda *s: torch.randn(s).to(torch.bfloat16)
    x, gate_and_up, down = normal(11, 24), normal(4, 32, 24) / 4, normal(4, 40, 16) / 4
    weights, chosen, order, ends = routed(11, 4, each)
    mine = [t.detach().requires_grad_() for t in (x, gate_and_up, down, weights)]
    exact = [t.detach().double().requires_grad_() for t in mine]
    call = lambda *given: layer(*given, order, ends, each)  # noqa: E731
    y = (torch.compile(call, fullgraph=True, backend="aot_eager") if how == "traced" else call)(*mine)
    dy, right = normal(*y.shape), exact_layer(*exact, chosen)
    found, want = torch.autograd.grad(y, mine, dy), torch.autograd.grad(right, exact, dy.double())
    for got, good in zip((y, *found), (right, *want), strict=True):
        assert got.shape == good.shape and (got.double() - good).norm() <= 0.01 * good.norm()
    assert not found[1][3].any() and not found[2][3].any()  # of the expert without rows


@SLOW
@pytest.mark.parametrize("on", ["sm_90a", "sm_80", "sm_100a"], indirect=True)
def test_all_that_an_epilogue_reads_has_a_gradient(on):
    """A vector for all groups, before a pair is one; one for each group, after; rows of no group; indices that name
    none."""
    a, b = torch.randn(9, 16).bfloat16(), torch.randn(3, 32, 16).bfloat16()
    ends, rows = torch.tensor([4, 4, 10], dtype=torch.int32), torch.tensor([1, 8, 1, -1, 0, 3, 4, 5, 30, 2, 2, 2])
    place = torch.tensor([11, 3, -1, 0, 1, 2, 4, 5, 6, 7, 8, 9])
    first, each, factor = torch.randn(32), torch.randn(3, 16), torch.randn(12)
    mine = [t.clone().requires_grad_() for t in (a, b, first, each, factor)]
    exact = [t.detach().double().requires_grad_() for t in mine]

    def call(a, b, first, each, factor):
        epilogue = bias(first) | swiglu() | bias(each) | scale(factor, "rows")
        return kernels.grouped_gemm(a, b, ends, rows_of_a=rows, rows_of_c=place, epilogue=epilogue)

    y, out = call(*mine), torch.zeros(12, 16, dtype=torch.float64)
    given = exact[0][rows.clamp(0, 8)]
    for r in (0, 1, 4, 5, 6, 7, 9):  # in a group, named, and with a place
        g = int(r >= 4) * 2
        left, right = (exact[1][g] @ given[r] + exact[2]).chunk(2)
        made = (torch.nn.functional.silu(left) * right + exact[3][g]) * exact[4][r]
        out = out.index_add(0, place[r : r + 1], made[None])
    assert y[0].isnan().all() and y[6].isnan().all() and not y[9].any()  # named nowhere; after the last group
    own = torch.tensor([11, 3, 1, 2, 4, 5, 7])
    dy = torch.randn(7, 16).bfloat16()
    found, want = torch.autograd.grad(y[own], mine, dy), torch.autograd.grad(out[own], exact, dy.double())
    assert (y[own].double() - out[own]).norm() <= 0.01 * out.norm()
    assert (found[0].double() - want[0]).norm() <= 0.01 * want[0].norm()
    for got, good in zip(found[2:4], want[2:4], strict=True):
        assert got.shape == good.shape
    assert (found[4].double() - want[4])[[0, 1, 4, 5, 6, 7, 9]].norm() <= 0.01 * want[4].norm()


@SLOW
def test_rows_that_nothing_goes_to_are_zero_or_what_out_holds(on):
    a, b = torch.ones(3, 8).bfloat16(), torch.ones(1, 8, 8).bfloat16()
    ends, place = torch.tensor([3], dtype=torch.int32), torch.tensor([4, 0, 2])
    out = torch.full((6, 8), 7.0).bfloat16()
    assert kernels.grouped_gemm(a, b, ends, rows_of_c=place, out=out) is out
    assert out[:, 0].tolist() == [8, 7, 8, 7, 8, 7]
    assert kernels.grouped_gemm(a, b, ends, rows_of_c=place.clamp(max=2))[:, 0].tolist() == [8, 0, 8]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"rows_of_a": "float"}, "rows_of_a is .*; its elements must be int32"),
        ({"rows_of_c": "short"}, r"rows_of_c is .* its shape must be \(4,\)"),
        ({"epilogue": 3}, "epilogue is int 3; give an Epilogue"),
        ({"epilogue": "matrix"}, "it reads numbers, rows.* alone, and gives nothing beside"),
        ({"epilogue": "total"}, "it reads numbers, rows.* alone, and gives nothing beside"),
        ({"epilogue": "rows"}, r"its shape must be \(4,\), a value for each row of the product"),
        ({"epilogue": "columns"}, r"along 'columns': its shape must be \(24,\), or \(2, 24\)"),
        ({"epilogue": "pairs"}, "its N is a multiple of 16: fill both halves up"),
        ({"rows_of_c": "own", "out": "narrow"}, r"out is .* its shape must be \(any, 24\)"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_words(on, how, says):
    a, b, ends = torch.zeros(4, 8).bfloat16(), torch.zeros(2, 24, 8).bfloat16(), torch.tensor([1, 4]).int()
    given = {
        "float": torch.zeros(4), "short": torch.zeros(3).int(), "own": torch.arange(4), "matrix": silu() | Epilogue(
            _moved, matrix(torch.zeros(4, 24).bfloat16()), 1.0), "total": total(torch.zeros(4)),
        "rows": scale(torch.zeros(5), "rows"), "columns": bias(torch.zeros(25)), "pairs": swiglu(),
        "narrow": torch.zeros(9, 16).bfloat16(),
    }  # fmt: skip
    with pytest.raises(CuteError, match=says):
        kernels.grouped_gemm(a, b, ends, **{name: given.get(x, x) for name, x in how.items()})


def test_out_knows_no_gradient(on):
    a, b, ends = torch.zeros(4, 8).bfloat16().requires_grad_(), torch.zeros(2, 24, 8).bfloat16(), torch.tensor([1, 4])
    with pytest.raises(CuteError, match="out is given, and a gradient is asked for"):
        kernels.grouped_gemm(a, b, ends.int(), rows_of_c=torch.arange(4), out=torch.zeros(9, 24).bfloat16())


def test_fake_tensors_have_its_shape():
    pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        a, b, ends = torch.empty(9, 16).bfloat16(), torch.empty(3, 32, 16).bfloat16(), torch.empty(3).int()
        y = kernels.grouped_gemm(a, b, ends, rows_of_a=torch.empty(20).int(), epilogue=swiglu())
        assert (tuple(y.shape), y.dtype) == ((20, 16), torch.bfloat16)
