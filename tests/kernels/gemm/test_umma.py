# SPDX-License-Identifier: Apache-2.0
"""The GEMM of tcgen05: right against float64 in the simulator, with all checks; no spills for either of its targets."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError

from numba_cute.kernels.gemm import (  # isort: skip
    Plan, Umma, amax, bias, gelu, matmul, relu, residual, scale, swiglu, total,
)  # fmt: skip
from numba_cute.kernels.gemm import umma_plan
from numba_cute.kernels.gemm.launches import simulate
from numba_cute.kernels.gemm.operands import view

from .test_epilogue import gelu_of
from .test_warps import check, many, placed, problem

SLOW = pytest.mark.slow
BF16, F16, F32, TF32, S8 = cute.BFloat16, cute.Float16, cute.Float32, cute.TFloat32, cute.Int8
E4M3, E5M2 = cute.Float8E4M3FN, cute.Float8E5M2
LEAST, PAIR = Umma(64, 1), Umma(128, 2)
SHARED = PAIR._replace(cluster=(2, 2))
TARGETS = ("sm_100a", "sm_103a")


@pytest.mark.parametrize(
    "shape, majors, dtype, cut, clusters",
    [
        ((40, 72, 37), "mnn", BF16, LEAST, 1),  # edges everywhere
        *(pytest.param(*x, marks=SLOW) for x in (
            ((1, 1, 1), "kkn", BF16, LEAST, 1),
            ((136, 136, 1000), "kkn", BF16, LEAST, 1),  # more tiles of K than stages
            ((136, 264, 200), "mkn", BF16, Umma(128, 1), 1),
            ((136, 136, 72), "kkm", BF16, LEAST, 2),
            ((136, 264, 72), "knm", BF16, Umma(256, 1), 1),
            ((300, 136, 72), "kkn", BF16, PAIR, 1),
            ((300, 136, 72), "mnn", F16, Umma(64, 2), 1),
            ((300, 520, 72), "kkn", BF16, Umma(), 1),  # more tiles than stages of sums
            ((300, 520, 72), "mnm", BF16, Umma(), 2),
            ((300, 136, 72), "mnn", BF16, SHARED, 1),
            ((520, 264, 136), "kkn", BF16, Umma(128, 1, (2, 2)), 2),
            ((520, 264, 136), "kkn", BF16, Umma(128, 2, (4, 1)), 1),
            ((136, 136, 72), "kkn", TF32, LEAST, 1),
            ((264, 136, 72), "kkm", TF32, PAIR, 1),
            ((136, 136, 144), "kkn", S8, LEAST, 1),
            ((264, 136, 144), "kkm", S8, PAIR, 1),
            ((40, 72, 200), "kkn", BF16, LEAST._replace(splits=2), 1),
            ((300, 136, 520), "mnn", BF16, PAIR._replace(splits=4), 1),
            ((264, 136, 400), "kkm", BF16, Umma(64, 1, (2, 2), splits=3), 1),
            ((136, 264, 136), "knm", TF32, Umma(256, 1, splits=4), 1),
            ((136, 136, 400), "kkn", S8, LEAST._replace(splits=2), 1),
            ((136, 264, 200), "kkn", BF16, LEAST._replace(splits=2, tail=True), 3),
            ((136, 264, 200), "kkm", BF16, LEAST._replace(splits=4, tail=True), 4),  # some have two that they share
            ((520, 264, 136), "mnn", BF16, PAIR._replace(splits=2, tail=True), 4),
        )),
    ],
    ids=str,
)  # fmt: skip
def test_it_is_right_in_every_order(shape, majors, dtype, cut, clusters):
    a, b, c, whole, want, _ = problem(*shape, dtype, majors)
    simulate(a, b, c, dtype, cut, clusters=clusters)
    check(c, whole, want, dtype)


@SLOW
@pytest.mark.parametrize("dtype", [E4M3, E5M2], ids=str)
@pytest.mark.parametrize("cut", [LEAST, PAIR], ids=str)
def test_floats_of_8_bits_are_multiplied(dtype, cut):
    a, b, c, whole, want, _ = problem(136, 136, 144, dtype)
    simulate(a, b, c, dtype, cut)
    check(c, whole, want, BF16)


@SLOW
@pytest.mark.parametrize("shape, majors, cut, c_dtype", [
    ((40, 35, 40), "kkn", LEAST, None), ((40, 35, 40), "kkm", LEAST, F32), ((136, 72, 72), "mnm", LEAST, F16),
    ((136, 40, 72), "kkn", Umma(64, 2), None), ((40, 72, 40), "kkn", Umma(128, 1), F32),
    ((40, 136, 200), "kkn", Umma(128, 1, splits=2), None),
], ids=str)  # fmt: skip
def test_steps_follow_each_other(shape, majors, cut, c_dtype):
    a, b, c, whole, x, rng = problem(*shape, majors=majors, c_dtype=c_dtype)
    m, n = c.shape
    v, w = rng.standard_normal(n).astype(BF16.numpy), rng.standard_normal(m).astype(np.float32)
    r, _ = placed(m, n, c.dtype, majors[2] == "m", rng.standard_normal((m, n)))
    of_rows, of_columns, most = (np.zeros(i, np.float32) for i in (m, n, 1))
    epilogue = scale(w, "rows") | bias(v) | gelu() | residual(r, 2.0) | total(of_rows) | total(of_columns, "columns")
    simulate(a, b, c, BF16, cut, epilogue | amax(most), c_dtype=c_dtype)
    want = gelu_of(x * w[:, None] + v.astype(np.float64)) + 2 * r.astype(np.float64)
    check(c, whole, want)
    np.testing.assert_allclose(of_rows, want.sum(1), rtol=1e-2, atol=0.05)  # by the fast tanh
    np.testing.assert_allclose(of_columns, want.sum(0), rtol=1e-2, atol=0.05)
    np.testing.assert_allclose(most[0], np.abs(want).max(), rtol=1e-2)


@SLOW
@pytest.mark.parametrize("cut", [LEAST, Umma(128, 1, (2, 1)), PAIR, Umma(), PAIR._replace(splits=2)], ids=str)
@pytest.mark.parametrize("majors", ["kkn", "mnn", "kkm"])
def test_a_column_may_be_made_of_two(cut, majors):
    a, b, c, whole, x, rng = problem(72, 272, 40 * cut.splits, majors=majors, halves=2)
    v = rng.standard_normal(272).astype(np.float32)
    r, _ = placed(72, 136, c.dtype, majors[2] == "m", rng.standard_normal((72, 136)))
    simulate(a, b, c, BF16, cut, scale(0.25) | bias(v) | swiglu() | residual(r))
    left, right = np.split(x / 4 + v, 2, axis=1)
    check(c, whole, left / (1 + np.exp(-left)) * right + r.astype(np.float64))


@SLOW
@pytest.mark.parametrize("splits", [1, 2])
def test_matrices_of_a_batch_have_vectors_of_their_own(splits):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, r, 40 * splits)).astype(BF16.numpy) for r in (40, 72))
    c, v = np.full((2, 40, 72), np.nan, BF16.numpy), rng.standard_normal((2, 72)).astype(np.float32)
    simulate(a, b, c, BF16, LEAST._replace(splits=splits), bias(v))
    want = a.astype(np.float64) @ b.astype(np.float64).swapaxes(1, 2) + v[:, None]
    assert np.abs(c.astype(np.float64) - want).max() <= 2.0**-7 * np.abs(want).max()


@SLOW
def test_nan_stays_in_what_is_reduced_and_bent():
    a, b, c, _, _, _ = problem(8, 16, 40)
    a[3, 5], most = np.nan, np.zeros((2, 16), np.float32)
    simulate(a, b, c, BF16, LEAST, amax(most[0, :1]) | amax(most[1, :8], "rows") | relu())
    assert np.isnan(most[0, 0]) and np.isnan(c.astype(np.float32)[3]).all()
    assert np.isnan(most[1, :8]).tolist() == [i == 3 for i in range(8)]


@SLOW
@pytest.mark.parametrize("shape, cut", [((128, 192, 128), LEAST), ((256, 192, 128), Umma(64, 2))], ids=str)
def test_all_orders_are_one_and_the_multiplies_never_wait_for_the_epilogue(shape, cut):
    """Of three tiles of one CTA, or a pair: a step begins as soon as what it waits for is over."""
    a, b, c, whole, want, _ = problem(*shape)
    args, grid = umma_plan.arguments(a, b, c, BF16, cute.target("sm_100a"), cut, clusters=1)
    proof = cute.simulate(umma_plan.kernel_of(cut), arch="sm_100a").prove()[grid, cut.threads](*args)
    check(c, whole, want)
    shown = str(proof)
    assert ": proved. " in shown and "nothing else" in shown
    lines = str(proof.memory).splitlines()
    multiplies = next(line for line in lines if line.startswith("MMA")).split()[-1].strip(".")
    assert multiplies.count("m") == 3 * 2 * 4 and set(multiplies) <= set("ams")  # no bubble: it never waits
    of_sums = [line.split() for line in lines if line.startswith("tmem columns")]
    assert len(of_sums) == 2  # two tiles' sums, in turn


# ---------------------------------------------------------------- assembled


def compiled(cut, target="sm_100a", dtype=BF16, majors="kkn", epilogue=None, halves=1, c_dtype=None):
    """Compile for a problem. epilogue: makes one of (m, n, C)."""
    a, b, c, _, _, _ = problem(512, 512, 512, dtype, majors, halves, c_dtype)
    made = epilogue and epilogue(*c.shape, c)
    counts = umma_plan.scratch_of(view(c), cut, 4, made)
    memory = np.empty(counts[0], np.float32), np.zeros(counts[1], np.int32)
    args, _ = umma_plan.arguments(
        a, b, c, dtype, cute.target(target), cut, made, c_dtype, clusters=4, scratch=memory
    )  # fmt: skip
    return cute.compile(umma_plan.kernel_of(cut), args, arch=target)


def of_pairs(m, n, c):
    return bias(np.zeros(2 * n, np.float32)) | swiglu() | residual(c)


FORMS = [{}, {"epilogue": many}, {"majors": "mnm", "epilogue": many}, {"epilogue": of_pairs, "halves": 2},
         {"dtype": TF32, "epilogue": many}, {"dtype": E4M3, "c_dtype": F32}, {"majors": "mnn"}]  # fmt: skip


@SLOW
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cut", umma_plan.CUTS, ids=str)
def test_nothing_spills(cut, target):
    first = TARGETS.index(target) + umma_plan.CUTS.index(cut)
    for form in (FORMS[first % len(FORMS)], FORMS[(first + 3) % len(FORMS)]):
        for splits in (1, 4):
            r = compiled(cut._replace(splits=splits), target, **form)
            assert (r.resources.spill_stores, r.resources.local, r.notes) == (0, 0, ()), form
            assert r.resources.registers * cut.threads <= 65536


@SLOW
def test_the_sums_of_two_tiles_fill_tensor_memory():
    """As many columns as there are are allocated; the sums come out as the stores to shared memory take them."""
    ptx = compiled(Umma()).ptx
    assert "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32" in ptx and ptx.count("tcgen05.mma") == 4
    assert "tcgen05.ld.sync.aligned.16x256b.x8.b32" in ptx and "stmatrix.sync.aligned.m8n8.x4" in ptx


# ---------------------------------------------------------------- how a problem is cut


@pytest.mark.parametrize("cut", [Umma(stages=9), Umma(96), Umma(128, 3), Umma(cluster=(1, 1)), Umma(cluster=(4, 4)),
                                 Umma(slots=3)], ids=str)  # fmt: skip
def test_a_cut_that_does_not_fit_is_refused(cut):
    a, b, c, _, _, _ = problem(8, 8, 8)
    with pytest.raises(CuteError, match="do not fit|tile_n is"):
        umma_plan.arguments(a, b, c, BF16, cute.target("sm_100a"), cut)


@SLOW
@pytest.mark.parametrize("cut", [LEAST._replace(splits=4, tail=True), Plan(64, 1, splits=4, tail=True)], ids=str)
def test_who_shares_several_tiles_stores_each_once(cut):
    """What the warps with sums say of a tile, the one that stores may hear when they are at the next."""
    a, b, c, whole, want, _ = problem(8, 192, 512)
    simulate(a, b, c, BF16, cut, clusters=2)
    check(c, whole, want)


@pytest.mark.parametrize("cut", [LEAST._replace(splits=3), Plan(64, 1, splits=4), Plan(64, 1, 2, 2)], ids=str)
def test_more_parts_than_tiles_of_k_are_refused(cut):
    """Who has none of K would wait for ever."""
    a, b, c, _, _, _ = problem(8, 8, 128)
    with pytest.raises(CuteError, match="has 2 tiles of 128 bytes, and is cut into [34]: give fewer splits, or parts"):
        simulate(a, b, c, BF16, cut)


def test_int8_is_refused_where_tcgen05_has_it_not():
    a, b, c, _, _, _ = problem(16, 16, 16, S8)
    with pytest.raises(CuteError, match="int8 on sm_100a alone, not on sm_103a"):
        umma_plan.arguments(a, b, c, S8, cute.target("sm_103a"), LEAST)


def test_pairs_do_what_fills_the_gpu_and_small_tiles_the_rest():
    c, target = np.zeros((8192, 8192), BF16.numpy), cute.target("sm_100a")
    assert umma_plan.plan(c, 8192, BF16, 148, target) == Umma()
    assert umma_plan.plan(c[:128], 64, BF16, 148, target) == Umma(64, 1)


def test_few_tiles_share_k():
    c, target = np.zeros((8192, 8192), BF16.numpy), cute.target("sm_100a")
    assert umma_plan.plan(c[:128], 8192, BF16, 148, target).splits > 1
    few = umma_plan.plan(c[:256, :256], 16384, BF16, 148, target)
    assert umma_plan.plan(c[:4096, :4096], 4096, BF16, 148, target) == Umma(splits=2, tail=True)
    assert few.splits == 8 and umma_plan.clusters_of(c[:256, :256], few, 1) * few.splits * few.ctas <= 148
    assert umma_plan.plan(c[:64, :64], 64, BF16, 148, target).splits == 1, "K has one tile"


@pytest.mark.parametrize("cut", [*umma_plan.CUTS, SHARED], ids=str)
@pytest.mark.parametrize("modes", ["kk", "mn"])
@pytest.mark.parametrize("run", [None, 32])
def test_tma_and_the_tensor_cores_mean_the_same_place(cut, modes, run):
    """Each element of an operand has one place in shared memory, however it is counted."""
    a_mode, b_mode = (int(mode == "k") for mode in modes)
    mma = umma_plan.mma_of(BF16, cut, a_mode, b_mode)
    for of, mode, tile in (("A", a_mode, (128, 64)), ("B", b_mode, (cut.tile_n // cut.ctas, 64))):
        lies = umma_plan.matrices(BF16, mode, tile, 2, mma, of, run if of == "B" else None)
        assert lies.tiles.inner == lies.parts.inner
        (rows, k), more_rows, more_k, stages = lies.parts.shape
        rows, more_rows, k, more_k = map(cute.size, (rows, more_rows, k, more_k))
        assert (rows * more_rows, k * more_k, stages) == (*tile, 2)
        for row, column, stage in np.random.default_rng(0).integers(0, (*tile, 2), (20, 3)).tolist():
            part = (row % rows, column % k), row // rows, column // k, stage
            assert lies.tiles.outer((row, column, stage)) == lies.parts.outer(part)


# ---------------------------------------------------------------- the entry, with torch


@pytest.fixture
def torch():
    """PyTorch, whose entries run as on a B200."""
    found = pytest.importorskip("torch")
    found.manual_seed(0)
    with cute.simulation("sm_100a", checks=False, sms=4):
        yield found


@SLOW
def test_the_entry_chooses_by_the_target_and_has_gradients(torch):
    a, b = torch.randn(8, 40, dtype=torch.bfloat16), torch.randn(40, 16, dtype=torch.bfloat16)
    given = [t.requires_grad_() for t in (a, b, torch.randn(16))]
    made = matmul(a, b, epilogue=bias(given[2]) | relu())
    made.float().sum().backward()
    exact = [t.detach().double().requires_grad_() for t in given]
    want = (exact[0] @ exact[1] + exact[2]).relu()
    want.sum().backward()
    for got, x in zip([made, *(t.grad for t in given)], [want, *(t.grad for t in exact)]):
        assert (got.double() - x).abs().max() <= 2.0**-6 * x.abs().max()


@SLOW
@pytest.mark.parametrize("dtype", ["float16", "float32", "float8_e4m3fn", "float8_e5m2", "int8"])
def test_the_entry_takes_every_type(torch, dtype):
    kind = getattr(torch, dtype)
    x, y = (torch.randint(-9, 9, (2, r, 64)).to(kind) for r in (24, 16))
    made = matmul(x, y.mT, out_dtype=torch.float32 if dtype.startswith("float8") else None)
    assert torch.equal(made.double(), x.double() @ y.double().mT)
    made = matmul(x, y.mT, epilogue=scale(0.5), out_dtype=torch.float32)
    assert torch.equal(made.double(), x.double() @ y.double().mT / 2)


@SLOW
def test_the_entry_shares_k(torch):
    """The launch is prepared once, and each call has memory for its sums."""
    v = torch.randn(16)
    for _ in range(2):
        a, b = torch.randn(8, 200, dtype=torch.bfloat16), torch.randn(200, 16, dtype=torch.bfloat16)
        made, want = matmul(a, b, epilogue=bias(v), cut=Umma(64, 1, splits=3)), a.double() @ b.double() + v
        assert (made.double() - want).abs().max() <= 2.0**-7 * want.abs().max()
    assert torch.equal(made, matmul(a, b, epilogue=bias(v), cut=Umma(64, 1, splits=3))), "added in order"


def test_what_this_family_has_not_is_refused_by_name(torch):
    from numba_cute.kernels.gemm import Plan

    a = torch.zeros(16, 16, dtype=torch.bfloat16)
    refused = {
        "of wgmma, which sm_100a has not": lambda: matmul(a, a, cut=Plan()),
    }
    for says, call in refused.items():
        with pytest.raises(CuteError, match=says):
            call()
    with cute.simulation("sm_90a"), pytest.raises(CuteError, match="of tcgen05, which sm_90a has not"):
        matmul(a, a, cut=Umma())
    with cute.simulation("sm_103a"), pytest.raises(CuteError, match="not on sm_103a"):
        matmul(a.to(torch.int8), a.to(torch.int8).mT)
