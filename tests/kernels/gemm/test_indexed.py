# SPDX-License-Identifier: Apache-2.0
"""Rows of A and C that an index names, and rows of C that TMA cannot write, in the simulator, against float64."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.gemm import Plan, Umma, bias, entry, matmul, picked, residual, umma_plan, warps_plan
from numba_cute.kernels.gemm.dense import THREADS
from numba_cute.kernels.gemm.indexed import Named, in_vectors, of_product
from numba_cute.kernels.gemm.plan import arguments, cuts, kernel_of, scratch_of

SLOW = pytest.mark.slow
BF16, F16, F32, TF32, E5M2 = cute.BFloat16, cute.Float16, cute.Float32, cute.TFloat32, cute.Float8E5M2
SMALL, LEAST = Plan(64, 1), Umma(64, 1)


def problem(m, n, k, of_a=None, of_c=None, dtype=BF16, wide=0):
    """Operands, C that is 7, the indices, and what C must be. of_a, of_c: rows that A and C have, if they are named."""
    rng = np.random.default_rng(0)
    kind = np.dtype(np.float32 if dtype == TF32 else dtype.numpy)
    room = -(-k // (16 // kind.itemsize)) * (16 // kind.itemsize)
    a, b = (np.full((rows, room), np.nan, np.float32).astype(kind)[:, :k] for rows in (of_a or m, n))
    for x in (a, b):
        x[...] = rng.standard_normal(x.shape).astype(kind)
    c = np.full((of_c or m, n + wide), 7, np.float32).astype(np.float32 if dtype == TF32 else BF16.numpy)
    index_a = rng.integers(0, of_a, m).astype(np.int32) if of_a else None
    index_c = rng.permutation(of_c)[:m].astype(np.int64) if of_c else None
    if of_a and m > 4:
        index_a[1], index_a[2], index_a[4] = -1, of_a, index_a[0]  # two that are none, and one twice
    if of_c and m > 4:
        index_c[0], index_c[3] = -5, of_c
    x = a.astype(np.float64)
    if of_a:
        there = (index_a >= 0) & (index_a < of_a)
        x = np.where(there[:, None], x[np.clip(index_a, 0, of_a - 1)], np.nan)
    made, want = x @ b.astype(np.float64).T, np.full(c.shape, 7.0)
    rows = np.arange(m) if index_c is None else index_c
    there = (rows >= 0) & (rows < len(c))
    want[rows[there], :n] = made[there]
    return a, b, c, index_a, index_c, want


def launched(a, b, c, index_a, index_c, n, cut, dtype, clusters=1, epilogue=None):
    """Give the kernel's arguments, and the grid."""
    m = next((len(i) for i in (index_a, index_c) if i is not None), len(c))
    x, y = of_product(a, m), of_product(c[:, :n], m)
    sums, counts = (umma_plan.scratch_of if isinstance(cut, Umma) else scratch_of)(y, cut, clusters)
    scratch = np.full(sums, np.nan, np.float32), np.zeros(counts, np.int32)
    named = [i if i is None else Named(i, len(t), t.strides[0] // t.itemsize) for i, t in ((index_a, a), (index_c, c))]
    c_dtype = F32 if dtype == TF32 else BF16
    if isinstance(cut, Umma):
        at = cute.target("sm_100a")
        return umma_plan.arguments(x, b, y, dtype, at, cut, epilogue, c_dtype, clusters, None, scratch, *named)
    return arguments(x, b, y, dtype, clusters, cut, epilogue, scratch, c_dtype, *named)


def compare(c, want, dtype=BF16):
    got = c.astype(np.float64)
    assert (np.isnan(got) == np.isnan(want)).all()
    assert np.nanmax(np.abs(got - want)) <= (2e-3 if dtype == TF32 else 2.0**-7) * np.nanmax(np.abs(want))


def check(m, n, k, of_a=None, of_c=None, cut=SMALL, dtype=BF16, clusters=1, wide=0, added=False, **options):
    """added: a matrix of the product's own rows is added."""
    a, b, c, index_a, index_c, want = problem(m, n, k, of_a, of_c, dtype, wide)
    other = np.random.default_rng(1).standard_normal((m, n)).astype(c.dtype)
    if added:
        rows = np.arange(m) if index_c is None else index_c
        there = (rows >= 0) & (rows < len(c))
        want[rows[there], :n] += other[there]
    epilogue = residual(other) if added else None
    args, grid = launched(a, b, c, index_a, index_c, n, cut, dtype, clusters, epilogue)
    if isinstance(cut, Umma):
        cute.simulate(umma_plan.kernel_of(cut), arch="sm_100a", **options)[grid, cut.threads](*args)
    else:
        cute.simulate(kernel_of(cut), **options)[grid, THREADS](*args)
    compare(c, want, dtype)


@pytest.mark.parametrize("n, wide", [(9, 0), pytest.param(10, 0, marks=SLOW), pytest.param(12, 3, marks=SLOW)])
def test_rows_of_any_bytes_are_written(n, wide):
    check(20, n, 24, wide=wide, checks=False)


@SLOW
@pytest.mark.parametrize(
    "shape, of_a, of_c, cut, dtype",
    [
        ((20, 16, 40), 30, None, SMALL, BF16),
        ((20, 16, 40), None, 30, SMALL, BF16),
        ((150, 18, 300), 30, 200, SMALL, BF16),  # tiles of which some rows are beyond; more of K than stages
        ((5, 7, 1), 3, 5, SMALL, F16),
        ((1, 1, 8), 9, 9, SMALL, BF16),
        ((40, 33, 70), 9, 64, SMALL, TF32),
        ((40, 33, 70), 9, 64, SMALL, E5M2),
        ((300, 72, 600), 30, 400, Plan(64, 2, splits=2), BF16),
        ((140, 136, 300), 30, 400, Plan(128, 1, 2), BF16),
    ],
    ids=str,
)
def test_rows_are_those_that_an_index_names(shape, of_a, of_c, cut, dtype):
    check(*shape, of_a, of_c, cut, dtype, cut.sharers)


@pytest.mark.parametrize(
    "shape, of_a, of_c, cut, dtype",
    [
        ((20, 16, 40), 30, 24, LEAST, BF16),
        *(pytest.param(*x, marks=SLOW) for x in (
            ((20, 16, 40), None, 30, LEAST, BF16),
            ((150, 24, 300), 30, 200, Umma(64, 2), BF16),  # rows beyond; more of K than stages
            ((5, 8, 1), 3, 5, LEAST, F16),
            ((1, 8, 8), 1, 1, LEAST, BF16),
            ((40, 40, 70), 9, 64, LEAST, TF32),
            ((40, 40, 70), 9, 64, Umma(128, 2), E5M2),
            ((300, 72, 600), 30, 400, Umma(64, 1, splits=2), BF16),
            ((300, 264, 72), 30, 400, Umma(), BF16),
            ((300, 264, 136), 30, 400, Umma(64, 1, splits=2, tail=True), BF16),
        )),
    ],
    ids=str,
)  # fmt: skip
def test_tma_brings_and_takes_rows_that_an_index_names(shape, of_a, of_c, cut, dtype):
    check(*shape, of_a, of_c, cut, dtype, 4 if cut.tail else 1, checks=shape[0] != 20)


@SLOW
@pytest.mark.parametrize(
    "cut", [Plan(256, 1, slots=1), Plan(256, 1, slots=2), *(Umma(256, 1, slots=n) for n in (1, 2))]
)
def test_a_matrix_that_is_added_has_the_products_rows(cut):
    check(20, 200, 24, None, 30, cut, added=True)


def test_what_is_gathered_nobody_shares():
    with pytest.raises(CuteError, match="2 CTAs would share what is gathered"):
        check(20, 16, 40, 30, None, Umma(64, 1, (1, 2)))


@SLOW
@pytest.mark.parametrize("dtype", [BF16, TF32, E5M2], ids=str)
@pytest.mark.parametrize("of_a, of_c, n", [(300, None, 512), (None, 300, 512), (300, 300, 513), (None, None, 513)])
def test_nothing_is_spilled(of_a, of_c, n, dtype):
    a, b, c, index_a, index_c, _ = problem(256, n, 128, of_a, of_c, dtype)
    named = [i if i is None else Named(i, len(t), t.strides[0] // t.itemsize) for i, t in ((index_a, a), (index_c, c))]
    x, y, c_dtype = of_product(a, 256), of_product(c, 256), F32 if dtype == TF32 else BF16
    found = cuts(y, 128, dtype, None, c_dtype.width, of_a is not None or of_c is not None)
    assert not any(cut.turned for cut in found)
    for cut in (found[0], found[-1], Plan(128, 2), Plan(256, 2)):
        scratch = tuple(np.zeros(s, t) for s, t in zip(scratch_of(y, cut, 66), (np.float32, np.int32)))
        args, _ = arguments(x, b, y, dtype, 66, cut, None, scratch, c_dtype, *named)
        r = cute.compile(kernel_of(cut), args, arch="sm_90a").resources
        assert (r.spill_stores, r.local) == (0, 0), cut


@SLOW
@pytest.mark.parametrize("target", ["sm_80", "sm_120a"])
@pytest.mark.parametrize("dtype", [BF16, TF32], ids=str)
def test_nothing_is_spilled_by_warps(dtype, target):
    a, b, c, _, _, _ = problem(256, 512, 128, None, None, dtype)
    index, c = np.zeros(256, np.int64), c.astype(F32.numpy if dtype == TF32 else BF16.numpy)
    epilogue = bias(np.zeros(512, np.float32)) | residual(c)
    for cut in warps_plan.cuts(cute.target(target), True):
        named = Named(index, 300, 128), Named(index, 300, 512)
        args, _ = warps_plan.arguments(a, b, c, dtype, cute.target(target), cut, epilogue, None, *named)
        r = cute.compile(warps_plan.kernel_of(cut), args, arch=target).resources
        assert (r.spill_stores, r.local) == (0, 0), cut


def test_what_threads_write_is_not_turned():
    assert in_vectors(np.empty((8, 16), np.float16), 16) and not in_vectors(np.empty((8, 9), np.float16), 16)
    a, b, c, _, _, _ = problem(8, 9, 8)
    with pytest.raises(CuteError, match="stay the kernel's rows: leave turned out"):
        arguments(a, b, c, BF16, 1, Plan(64, 1, turned=True))


@SLOW
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_rows_are_copied_first_where_that_takes_less_time(dtype, monkeypatch):
    """What an index has no row for is NaN, as where the kernel gathers rows."""
    torch = pytest.importorskip("torch")
    a, b = (torch.randn(s).to(getattr(torch, dtype)) for s in ((50, 72), (72, 64)))
    index = torch.tensor([3, 49, -1, 0, 50, 7, 7])
    monkeypatch.setattr(picked, "pays", lambda *args: True)
    entry._known.clear()
    with cute.simulation():
        got = matmul(a, b, rows_of_a=index)
        put = matmul(a, b, rows_of_a=index, rows_of_c=torch.arange(7).flip(0), epilogue=bias(torch.ones(64)))
    entry._known.clear()
    there = (index >= 0) & (index < 50)
    want = torch.where(there[:, None], a[index.clamp(0, 49)].double() @ b.double(), torch.nan)
    for made, wanted in ((got, want), (put, (want + 1).flip(0))):
        compare(made.double().numpy(), wanted.numpy(), TF32 if dtype == "float32" else BF16)


@pytest.mark.parametrize("columns", [16, pytest.param(9008, marks=SLOW)])
def test_rows_are_copied(columns):
    source, made = np.random.default_rng(0).integers(0, 99, (9, columns), np.uint8), np.zeros((5, columns), np.uint8)
    index = np.array([3, -1, 9, 8, 3], np.int64)
    picked.picking(source, index, made).simulate(source, index, made)
    want = np.where(((index >= 0) & (index < 9))[:, None], source[index.clip(0, 8)], 255)
    assert (made == want).all()


def test_rows_are_copied_first_for_many_columns():
    torch = pytest.importorskip("torch")
    with cute.simulation():
        says = [
            picked.pays(torch.empty(9, k).bfloat16(), np.empty((9, n), np.float16), m, BF16, 132, None, False)
            for m, n, k in ((8192, 4096, 4096), (16, 4096, 4096), (8192, 512, 4096), (8192, 4096, 4095))
        ]
    assert says == [True, True, False, False], "few columns; rows that are no whole vectors"


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1000, 1001])
@pytest.mark.parametrize("named", ["a", "c", "ac"])
def test_rows_are_those_that_an_index_names_on_a_gpu(named, n):
    torch = pytest.importorskip("torch")
    m, k = 3000, 1016
    a = torch.randn(700 if "a" in named else m, k, device="cuda").bfloat16()
    b, rows_c = torch.randn(n, k, device="cuda").bfloat16().mT, torch.randperm(m, device="cuda")
    rows_a = torch.randint(0, 700, (m,), device="cuda") if "a" in named else None
    y = matmul(a, b, rows_of_a=rows_a, rows_of_c=rows_c if "c" in named else None)
    want = (a if rows_a is None else a[rows_a]).double() @ b.double()
    got = y[rows_c] if "c" in named else y
    assert (got.double() - want).norm() <= 0.004 * want.norm()
