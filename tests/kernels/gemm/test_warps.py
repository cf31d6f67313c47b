# SPDX-License-Identifier: Apache-2.0
"""The GEMM of mma.sync: right against float64 in the simulator, with all checks; no spills for any of its targets."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError

from numba_cute.kernels.gemm import (  # isort: skip
    Warps, amax, bias, gelu, matmul, relu, residual, scale, swiglu, total,
)  # fmt: skip
from numba_cute.kernels.gemm import warps_plan
from numba_cute.kernels.gemm.launches import simulate
from numba_cute.kernels.gemm.plan import RESULTS

from .test_epilogue import gelu_of
from .test_matmul import assert_close, operands

SLOW = pytest.mark.slow
BF16, F32, TF32, S8 = cute.BFloat16, cute.Float32, cute.TFloat32, cute.Int8
E4M3, E5M2 = cute.Float8E4M3FN, cute.Float8E5M2
LEAST = Warps((32, 32), (1, 1), 64)
SMALL = Warps((32, 64), (1, 2), 64)
TARGETS = ("sm_80", "sm_86", "sm_89", "sm_120a")
OFF = {BF16: 2.0**-7, cute.Float16: 2.0**-10, TF32: 1e-3, S8: 0.0, E4M3: 2.0**-7, E5M2: 2.0**-7}


def placed(rows, columns, dtype, turned, values=None):
    """A matrix whose rows (or columns, if turned) have room to multiples of 16 bytes, where NaN stands."""
    width = -(-(rows if turned else columns) // (16 // dtype.itemsize)) * (16 // dtype.itemsize)
    whole = np.full((columns if turned else rows, width), 99 if dtype.kind == "i" else np.nan, np.float32).astype(dtype)
    x = whole[:, :rows].T if turned else whole[:, :columns]
    if values is not None:
        x[...] = values.astype(dtype)
    return x, whole


def problem(m, n, k, dtype=BF16, majors="kkn", halves=1, c_dtype=None):
    """A, B, C, what C lies in, A B^T in float64, and a generator."""
    rng = np.random.default_rng(0)
    kind = np.dtype(np.float32 if dtype == TF32 else dtype.numpy)
    c_kind = np.dtype((c_dtype or RESULTS[dtype]).numpy)
    random = (lambda s: rng.integers(-128, 128, s)) if dtype == S8 else rng.standard_normal
    a, _ = placed(m, k, kind, majors[0] == "m", random((m, k)))
    b, _ = placed(n, k, kind, majors[1] == "n", random((n, k)))
    c, whole = placed(m, n // halves, c_kind, majors[2] == "m")
    return a, b, c, whole, a.astype(np.float64) @ b.astype(np.float64).T, rng


def check(c, whole, want, dtype=BF16):
    """Compare with float64, and see that nothing was written beside C."""
    assert np.abs(c.astype(np.float64) - want).max() <= OFF[dtype] * np.abs(want).max()
    beside = whole[:, len(c) if c.strides[0] == c.itemsize and c.base is not None else c.shape[1] :].astype(np.float64)
    assert (np.isnan(beside) | (beside == 99)).all()


@pytest.mark.parametrize(
    "shape, majors, dtype, cut",
    [
        ((33, 40, 40), "kkn", BF16, LEAST),  # of each edge a part; K's tiles are fewer than stages
        ((40, 35, 37), "mnn", BF16, LEAST),  # edges inside of vectors
        pytest.param((37, 51, 167), "kkn", BF16, SMALL, marks=SLOW),
        pytest.param((37, 51, 67), "kkm", BF16, SMALL, marks=SLOW),
        pytest.param((1, 1, 1), "kkn", BF16, SMALL, marks=SLOW),
        pytest.param((40, 72, 72), "mkn", cute.Float16, SMALL, marks=SLOW),
        pytest.param((33, 70, 37), "kkn", TF32, SMALL, marks=SLOW),
        pytest.param((64, 64, 165), "kkn", S8, SMALL, marks=SLOW),
        *(pytest.param((40, 72, 165), "kk" + c, F8, SMALL, marks=SLOW) for c, F8 in (("n", E4M3), ("m", E5M2))),
        pytest.param((200, 264, 136), "kkn", BF16, Warps(row=128, stages=3), marks=SLOW),
        pytest.param((136, 264, 200), "mnn", BF16, Warps(), marks=SLOW),
        pytest.param((200, 136, 264), "knm", BF16, Warps((128, 128), (2, 2), 64, ctas=2), marks=SLOW),
        pytest.param((72, 136, 264), "kkn", BF16, Warps((64, 128), (2, 2), 64, ctas=2), marks=SLOW),
        pytest.param((72, 136, 264), "mkn", BF16, Warps((64, 64), (2, 2), 128, ctas=2), marks=SLOW),
    ],
    ids=str,
)
def test_it_is_right_in_every_order(shape, majors, dtype, cut):
    a, b, c, whole, want, _ = problem(*shape, dtype, majors)
    simulate(a, b, c, dtype, cut, arch="sm_89" if dtype.width == 8 else "sm_80")
    check(c, whole, want, dtype)


def test_float32_is_rounded_to_tf32_and_not_cut():
    a, b, c, _, _, _ = problem(8, 8, 8, TF32)
    a[...], b[...] = 1 + 3 * 2.0**-12, 1.0  # nearer to 1 + 2^-10
    simulate(a, b, c, TF32, LEAST)
    assert (c == 8 * (1 + 2.0**-10)).all()


@SLOW
@pytest.mark.parametrize("cut", [LEAST, Warps((128, 128), (2, 2), 64)], ids=str)
@pytest.mark.parametrize("majors", ["kkn", "mnm"])
def test_steps_follow_each_other(cut, majors):
    shape = (40, 35, 40) if cut == LEAST else (136, 152, 72)
    a, b, c, whole, x, rng = problem(*shape, majors=majors)
    m, n = c.shape
    v, w = rng.standard_normal(n).astype(BF16.numpy), rng.standard_normal(m).astype(np.float32)
    r, _ = placed(m, n, c.dtype, majors[2] == "m", rng.standard_normal((m, n)))
    of_rows, of_columns, most = (np.zeros(i, np.float32) for i in (m, n, 1))
    epilogue = scale(w, "rows") | bias(v) | gelu() | residual(r, 2.0) | total(of_rows) | total(of_columns, "columns")
    simulate(a, b, c, BF16, cut, epilogue | amax(most))
    want = gelu_of(x * w[:, None] + v.astype(np.float64)) + 2 * r.astype(np.float64)
    check(c, whole, want)
    np.testing.assert_allclose(of_rows, want.sum(1), rtol=1e-2, atol=0.05)  # by the fast tanh
    np.testing.assert_allclose(of_columns, want.sum(0), rtol=1e-2, atol=0.05)
    np.testing.assert_allclose(most[0], np.abs(want).max(), rtol=1e-2)


@SLOW
@pytest.mark.parametrize("cut", [LEAST, Warps((64, 128), (2, 2), 64)], ids=str)
@pytest.mark.parametrize("majors", ["kkn", "mnn", "kkm"])
def test_a_column_may_be_made_of_two(cut, majors):
    a, b, c, whole, x, rng = problem(72, 272, 40, majors=majors, halves=2)
    v = rng.standard_normal(272).astype(np.float32)
    r, _ = placed(72, 136, c.dtype, majors[2] == "m", rng.standard_normal((72, 136)))
    simulate(a, b, c, BF16, cut, scale(0.25) | bias(v) | swiglu() | residual(r))
    left, right = np.split(x / 4 + v, 2, axis=1)
    check(c, whole, left / (1 + np.exp(-left)) * right + r.astype(np.float64))


@SLOW
def test_matrices_of_a_batch_have_vectors_of_their_own():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, r, 40)).astype(BF16.numpy) for r in (40, 72))
    c, v = np.full((2, 40, 72), np.nan, BF16.numpy), rng.standard_normal((2, 72)).astype(np.float32)
    simulate(a, b, c, BF16, SMALL, bias(v))
    want = a.astype(np.float64) @ b.astype(np.float64).swapaxes(1, 2) + v[:, None]
    assert np.abs(c.astype(np.float64) - want).max() <= 2.0**-7 * np.abs(want).max()


def test_nan_stays_in_what_is_reduced_and_bent():
    a, b, c, _, _, _ = problem(8, 16, 40)
    a[3, 5], most = np.nan, np.zeros((2, 16), np.float32)
    simulate(a, b, c, BF16, LEAST, amax(most[0, :1]) | amax(most[1, :8], "rows") | relu())
    assert np.isnan(most[0, 0]) and np.isnan(c.astype(np.float32)[3]).all()
    assert np.isnan(most[1, :8]).tolist() == [i == 3 for i in range(8)]


def compiled(cut, target, dtype=BF16, majors="kkn", epilogue=None, odd=0):
    """Compile for a problem of whole vectors, or of odd extents. epilogue: makes one of (m, n, C)."""
    m, n, k = 256 - odd, 512 - odd, 128 - odd
    a, b, c, _, _, _ = problem(m, n, k, dtype, majors)
    made = epilogue and epilogue(m, n, c)
    args, _ = warps_plan.arguments(a, b, c, dtype, cute.target(target), cut, made)
    return cute.compile(warps_plan.kernel_of(cut), args, arch=target)


def many(m, n, c):
    of_rows, of_columns = np.zeros(m, np.float32), np.zeros(n, np.float32)
    return scale(of_rows, "rows") | bias(of_columns) | gelu() | residual(c) | total(of_rows) | amax(of_columns[:1])


FORMS = [{}, {"majors": "mnn"}, {"epilogue": many}, {"odd": 1}, {"dtype": TF32, "epilogue": many}, {"dtype": S8},
         {"majors": "mnn", "odd": 1}, {"epilogue": many, "odd": 1}]  # fmt: skip


@SLOW
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cut", warps_plan.CUTS, ids=str)
def test_sums_stay_in_registers(cut, target):
    first = TARGETS.index(target) + warps_plan.CUTS.index(cut)
    for form in (FORMS[0], FORMS[first % len(FORMS)], FORMS[(first + 4) % len(FORMS)]):
        r = compiled(cut, target, **form)
        assert (r.resources.spill_stores, r.resources.local, r.notes) == (0, 0, ()), form
        assert r.resources.registers * cut.threads * cut.ctas <= 65536


@pytest.mark.parametrize(
    "cut",
    [Warps(stages=9), Warps((48, 128), (2, 2)), Warps(row=32), Warps((128, 16), (2, 1)), Warps(warps=(4, 4))],
    ids=str,
)
def test_a_cut_that_does_not_fit_is_refused(cut):
    a, b, c, _, _, _ = problem(8, 8, 8)
    with pytest.raises(CuteError, match="do not fit|a warp has"):
        warps_plan.arguments(a, b, c, BF16, cute.target("sm_86"), cut)


def test_every_target_has_cuts_that_fit_and_small_problems_small_tiles():
    c = np.zeros((4096, 4096), BF16.numpy)
    for target in map(cute.target, ("sm_80", "sm_86", "sm_87", "sm_89", "sm_120")):
        assert warps_plan.cuts(target) == list(warps_plan.CUTS)
        assert warps_plan.plan(c, 4096, BF16, 108, target) == Warps()
        assert warps_plan.plan(c[:64, :2048], 4096, BF16, 108, target).tile == (64, 64)


# ---------------------------------------------------------------- the entry, with torch


@pytest.fixture
def on(request):
    """Run entries in the simulator as on a GPU of a target."""
    pytest.importorskip("torch").manual_seed(0)
    with cute.simulation(request.param, checks=False, sms=4):
        yield request.param


@SLOW
@pytest.mark.parametrize("on", ["sm_80", "sm_86", "sm_120"], indirect=True)
def test_the_entry_chooses_by_the_target_and_has_gradients(on):
    import torch

    a, b = torch.randn(8, 40, dtype=torch.bfloat16), torch.randn(40, 16, dtype=torch.bfloat16)
    v = torch.randn(16)
    given = [t.requires_grad_() for t in (a, b, v)]
    made = matmul(a, b, epilogue=bias(v) | relu())
    made.float().sum().backward()
    exact = [t.detach().double().requires_grad_() for t in given]
    want = (exact[0] @ exact[1] + exact[2]).relu()
    want.sum().backward()
    for got, x in zip([made, *(t.grad for t in given)], [want, *(t.grad for t in exact)]):
        assert (got.double() - x).abs().max() <= 2.0**-6 * x.abs().max()


@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
def test_what_this_family_has_not_is_refused_by_name(on):
    import torch

    from numba_cute import kernels
    from numba_cute.kernels.gemm import Plan

    a, b = torch.zeros(8, 16, dtype=torch.bfloat16), torch.zeros(16, 8, dtype=torch.bfloat16)
    refused = {
        "on sm_86 mma.sync multiplies .* and float8 on sm_89, sm_120 and sm_121": lambda: matmul(
            a.to(torch.float8_e4m3fn), b.mT.contiguous().to(torch.float8_e4m3fn).mT
        ),
        "of wgmma, which sm_86 has not": lambda: matmul(a, b, cut=Plan()),
        "blockscaled_gemm: its kernel is for Hopper GPUs": lambda: kernels.blockscaled_gemm(
            a.to(torch.float8_e4m3fn), b.mT.contiguous().to(torch.float8_e4m3fn), torch.ones(8, 1), torch.ones(1, 1)
        ),
    }
    for says, call in refused.items():
        with pytest.raises(CuteError, match=says):
            call()


def test_a_target_of_no_family_is_refused():
    torch = pytest.importorskip("torch")
    a = torch.zeros(8, 8, dtype=torch.bfloat16)
    with cute.simulation("sm_110a"), pytest.raises(CuteError, match="and this is sm_110a"):
        matmul(a, a)


# ---------------------------------------------------------------- on whatever GPU there is


@pytest.mark.gpu
@pytest.mark.parametrize("cut", warps_plan.CUTS, ids=str)
@pytest.mark.parametrize("majors", ["kk", "mn"])
def test_it_is_right_on_a_gpu(cut, majors):
    torch = pytest.importorskip("torch")
    a, b = operands(torch, 1000, 1048, 1016, majors=majors)
    v, r = torch.randn(1048, device="cuda"), torch.randn(1000, 1048, device="cuda", dtype=torch.bfloat16)
    assert_close(torch, matmul(a, b, cut=cut), a.double() @ b.double(), a, b)
    made = matmul(a, b, epilogue=bias(v) | residual(r), cut=cut)
    assert_close(torch, made, a.double() @ b.double() + v.double() + r.double(), a, b)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_it_takes_every_type_on_a_gpu(dtype):
    torch = pytest.importorskip("torch")
    a, b = operands(torch, 200, 264, 528, dtype)
    assert_close(torch, matmul(a, b, cut=Warps()), a.double() @ b.double(), a, b)
