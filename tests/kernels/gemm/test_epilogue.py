# SPDX-License-Identifier: Apache-2.0
"""Epilogues of the Hopper GEMM in the simulator, with all checks; and what they refuse."""

import functools
import operator

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError

from numba_cute.kernels.gemm import (  # isort: skip
    Epilogue, Plan, amax, bias, columns, geglu, gelu, magnitude, matrix, relu, residual, scale, sums, swiglu, total,
)  # fmt: skip
from numba_cute.kernels.gemm.launches import simulate
from numba_cute.kernels.gemm.plan import arguments, cuts, kernel_of, pieces_of

SLOW = pytest.mark.slow
BF16 = cute.BFloat16.numpy


def problem(m, n, k, halves=1, batch=(), order="C"):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((*batch, r, k), np.float32).astype(BF16) for r in (m, n))
    c = np.full((*batch, m, n // halves), np.nan, BF16, order=order)
    return a, b, c, a.astype(np.float64) @ b.astype(np.float64).swapaxes(-1, -2), rng


def assert_close(c, want):
    assert np.abs(c.astype(np.float64) - want).max() <= 2.0**-7 * np.abs(want).max()


def test_an_epilogue_is_known_by_what_it_does_and_not_by_its_tensors():
    of = [(bias(np.zeros(n)) | scale(x) | relu()).known for n in (1, 2) for x in (0.0, -0.0, 1, 1.0, True)]
    assert of[:5] == of[5:] and len(set(of)) == 5


def gelu_of(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    "cut, shape",
    [
        (Plan(64, 1), (40, 40, 72)),
        pytest.param(Plan(64, 1), (40, 72, 72), marks=SLOW),
        pytest.param(Plan(), (136, 264, 72), marks=SLOW),
        pytest.param(Plan(64, 1, 2, turned=True), (72, 40, 136), marks=SLOW),
        pytest.param(Plan(64, 1, 8, turned=True), (72, 40, 520), marks=SLOW),  # 8 columns for each CTA
        pytest.param(Plan(64, 1, splits=2), (40, 72, 136), marks=SLOW),
        pytest.param(Plan(64, 1, splits=2, tail=True), (136, 72, 136), marks=SLOW),  # one of four tiles is shared
        pytest.param(Plan(256, 1, slots=1), (40, 264, 72), marks=SLOW),
    ],
    ids=str,
)
def test_steps_follow_each_other(cut, shape):
    a, b, c, x, rng = problem(*shape)
    m, n = c.shape
    v, w = rng.standard_normal(n).astype(BF16), rng.standard_normal(m).astype(np.float32)
    r, of_rows, of_columns, most = (
        rng.standard_normal((m, n)).astype(BF16),
        *(np.zeros(i, np.float32) for i in (m, n, 1)),
    )
    epilogue = scale(w, "rows") | bias(v) | gelu() | residual(r, 2.0) | total(of_rows) | total(of_columns, "columns")
    simulate(a, b, c, cute.BFloat16, cut, epilogue | amax(most), clusters=3)
    want = gelu_of(x * w[:, None] + v.astype(np.float64)) + 2 * r.astype(np.float64)
    assert_close(c, want)
    np.testing.assert_allclose(of_rows, want.sum(1), rtol=1e-2, atol=0.05)  # by the fast tanh
    np.testing.assert_allclose(of_columns, want.sum(0), rtol=1e-2, atol=0.05)
    np.testing.assert_allclose(most[0], np.abs(want).max(), rtol=1e-2)


@SLOW
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_column_may_be_made_of_two(order):
    a, b, c, x, rng = problem(136, 272, 72, halves=2, order=order)
    v, r = rng.standard_normal(272).astype(np.float32), rng.standard_normal((136, 136)).astype(BF16)
    r = np.asarray(r, order=order)
    simulate(a, b, c, cute.BFloat16, Plan(), scale(0.25) | bias(v) | swiglu() | residual(r))
    left, right = np.split(x / 4 + v, 2, axis=1)
    assert_close(c, left / (1 + np.exp(-left)) * right + r.astype(np.float64))


@pytest.mark.parametrize(
    "cut, shape",
    [
        (Plan(64, 1), (8, 80, 64)),  # 40 columns of a half: runs of 8
        pytest.param(Plan(64, 1), (8, 96, 72), marks=SLOW),  # of 16
        pytest.param(Plan(), (136, 272, 72), marks=SLOW),
        pytest.param(Plan(192, 2), (136, 384, 136), marks=SLOW),
        pytest.param(Plan(128, 1, 2), (40, 256, 136), marks=SLOW),
        pytest.param(Plan(128, 1, splits=2), (40, 256, 136), marks=SLOW),
    ],
    ids=str,
)
def test_pairs_are_made_of_weights_of_either_order(cut, shape):
    a, b, c, x, _ = problem(*shape, halves=2)
    simulate(a, np.asarray(b, order="F"), c, cute.BFloat16, cut, geglu())
    left, right = np.split(x, 2, axis=1)
    assert_close(c, gelu_of(left) * right)


def test_nan_stays_in_what_is_reduced_and_bent():
    a, b, c, _, _ = problem(8, 16, 64)
    a[3, 5], b[9, 5] = np.nan, -np.inf
    most = np.zeros((3, 16), np.float32)
    simulate(
        a,
        b,
        c,
        cute.BFloat16,
        Plan(64, 1),
        amax(most[0, :1]) | amax(most[1, :8], "rows") | amax(most[2], "columns") | relu(),
    )
    assert np.isnan(most[0, 0]) and np.isnan(c.astype(np.float32)[3]).all()
    assert np.isnan(most[1, :8]).tolist() == [i == 3 for i in range(8)] and np.isnan(most[2]).all()


@pytest.mark.parametrize(
    "shape, batch, epilogue",
    [
        ((16,), (), bias),
        ((2, 8), (), bias),
        ((2, 8), (3,), bias),
        ((1, 8), (3,), bias),
        ((9,), (), lambda v: scale(v, "rows")),
        ((2,), (), scale),
        ((16,), (), lambda v: total(v, "columns")),
        ((2, 8), (3,), lambda v: total(v, "rows")),
        ((8,), (), lambda v: bias(v) | swiglu()),  # the sums have 16 columns there
        ((16,), (), lambda v: swiglu() | bias(v)),
    ],
    ids=range(10),
)
def test_vectors_that_are_not_of_the_result_are_refused(shape, batch, epilogue):
    made = epilogue(np.zeros(shape, np.float32))
    a, b, c, _, _ = problem(8, 8 * made.spread, 64, halves=made.spread, batch=batch)
    with pytest.raises(CuteError, match="its shape must be|one element"):
        arguments(a, b, c, cute.BFloat16, 1, Plan(64, 1), made)


@SLOW
def test_matrices_of_a_batch_have_vectors_of_their_own():
    a, b, c, x, rng = problem(40, 72, 72, batch=(2,))
    v = rng.standard_normal((2, 72)).astype(np.float32)
    simulate(a, b, c, cute.BFloat16, Plan(64, 1), bias(v))
    assert_close(c, x + v[:, None])


@SLOW
def test_an_epilogue_costs_no_spills():
    a, b, c, _, rng = problem(256, 512, 64)
    epilogue = bias(np.zeros(512, np.float32)) | gelu() | residual(c)
    compiled = cute.compile(
        kernel_of(Plan()), arguments(a, b, c, cute.BFloat16, 66, Plan(), epilogue)[0], arch="sm_90a"
    )
    assert (compiled.resources.spill_stores, compiled.resources.local, compiled.notes) == (0, 0, ())


def test_what_is_no_epilogue_is_refused():
    with pytest.raises(CuteError, match="not a function"):
        Epilogue(3)
    with pytest.raises(CuteError, match=r"rows\(v\), columns\(v\)"):
        Epilogue(max, np.zeros(3))
    with pytest.raises(CuteError, match=r"sums\(out\)"):
        Epilogue(max, results=columns(np.zeros(3)))
    with pytest.raises(CuteError, match="tanh"):
        gelu("fast")
    with pytest.raises(CuteError, match="one matrix"):
        residual(np.zeros(3)) | residual(np.zeros(3))
    with pytest.raises(CuteError, match="before a pair"):
        residual(np.zeros(3)) | swiglu()
    assert Epilogue(max, columns(np.zeros(3)), 2, matrix(np.zeros(3)), results=(sums(1), magnitude(1))).spread == 1


@pytest.mark.parametrize("cut", [Plan(64, 1, 16), Plan(256, stages=5), Plan(64, 1, 2, 2, tail=True)], ids=str)
def test_a_cut_that_does_not_fit_is_refused(cut):
    with pytest.raises(CuteError, match="multiple of 8|do not fit|a tail is behind others"):
        pieces_of(cut, 16)


@pytest.mark.parametrize("vectors", [0, 1, 3, 7])
@pytest.mark.parametrize("width", [16, 32])
def test_shared_memory_holds_the_vectors_of_every_cut_too(vectors, width):
    v = np.zeros(512, np.float32)
    epilogue = functools.reduce(operator.or_, [bias(v)] * vectors) if vectors else None
    assert (epilogue.vectors if epilogue else 0) == vectors
    found = cuts(np.empty((4096, 512), np.int8), 4096, cute.BFloat16, epilogue, width)
    assert len(found) > 50
    for cut in found:
        pieces = pieces_of(cut, width, 1, vectors)
        barriers = 8 * (2 * pieces.stages + 4 * pieces.slots + 2)
        slots = pieces.slots * (128 * pieces.columns * width // 8 + vectors * 2 * 64 * 4)
        stages = pieces.stages * (128 + cut.tile_n) * 128
        assert stages + slots + barriers + 240 <= cute.target("sm_90a").smem_per_block  # 240: gaps, and a flag


def test_vectors_of_columns_count_twice_before_pairs():
    v = np.zeros(512, np.float32)
    assert (scale(v, "rows") | bias(v) | swiglu() | bias(v) | residual(v[None])).vectors == 4
