# SPDX-License-Identifier: Apache-2.0
"""Grouped GEMMs by tcgen05: right whatever rows a group has, and nobody's rows but its own."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.gemm import Umma, grouped, grouped_outer, umma_grouped, umma_outer, umma_plan

from . import problems

SLOW = pytest.mark.slow
BF16, F16, E4M3, E5M2 = cute.BFloat16, cute.Float16, cute.Float8E4M3FN, cute.Float8E5M2
ALONE, NARROW, PAIR = Umma(256, 1), Umma(128, 1), Umma(256, 2)


@SLOW
@pytest.mark.parametrize(
    ("rows", "n", "k", "dtype", "cut", "how"),
    [
        ((5, 0, 70), 24, 24, BF16, NARROW, {}),
        ((3, 0, 270, 130), 264, 72, BF16, PAIR, {}),  # of some pairs the second has no row
        ((70, 130), 136, 72, F16, Umma(128, 2), {"b_turned": True}),
        ((3, 0, 70, 1), 264, 144, E5M2, ALONE, {}),
        ((130, 3), 136, 272, E4M3, Umma(64, 2), {}),
        ((1,) * 40, 24, 72, BF16, NARROW, {}),  # more groups than lanes
        ((0, 0), 24, 72, BF16, NARROW, {}),
    ],
    ids=str,
)
def test_each_group_is_multiplied_by_its_own_matrix(rows, n, k, dtype, cut, how):
    a, b, ends, _, c, want = problems.grouped(rows, n, k, dtype, **how)
    grouped.plan(a, b, ends, c, cut=cut).simulate(arch="sm_100a")
    assert not len(problems.wrong(c, want, 2 * k, 1e-5 if dtype.width == 16 else 1e-3))


@SLOW
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("cut", [ALONE, PAIR], ids=str)
def test_nothing_spills(cut, arch):
    for dtype in (BF16, E4M3):
        a, b, ends, _, c, _ = problems.grouped((300,), 512, 512, dtype)
        made = grouped.plan(a, b, ends, c, cut=cut).compile(arch=arch)
        assert (made.resources.spill_stores, made.resources.local, made.notes) == (0, 0, ())


def test_tall_groups_have_pairs_and_others_are_alone():
    assert umma_grouped.choose(8 * 4096, 8, 4096, lambda ctas: 148 // ctas) == PAIR
    assert umma_grouped.choose(8 * 256, 8, 4096, lambda ctas: 148 // ctas) == ALONE
    assert umma_grouped.choose(8 * 256, 8, 128, lambda ctas: 148 // ctas) == NARROW


@pytest.mark.parametrize("cut", [Umma(96), Umma(cluster=(4, 1)), Umma(splits=2)], ids=str)
def test_a_cut_that_does_not_fit_is_refused_in_words(cut):
    a, b, ends, _, c, _ = problems.grouped((40,), 24, 144, BF16, beyond=0)
    with pytest.raises(CuteError, match="tile_n is|leave cluster and splits out"):
        grouped.plan(a, b, ends, c, cut=cut)


# ---------------------------------------------------------------- over the rows of groups


def over(rows, m, n, dtype=BF16):
    """Rows by groups, and some behind the last one, where the groups end, and a poisoned result."""
    rng, total = np.random.default_rng(0), sum(rows) + 3
    x, y = (rng.standard_normal((total, k), np.float32).astype(dtype.numpy) for k in (m, n))
    return x, y, np.cumsum(rows).astype(np.int32), np.full((len(rows), m, n), np.nan, dtype.numpy)


@pytest.mark.parametrize(
    ("rows", "m", "n", "dtype", "cut"),
    [
        ((5, 0, 70), 8, 16, BF16, Umma(64, 1)),
        *(pytest.param(*x, marks=SLOW) for x in (
            ((70, 0, 130, 64), 136, 264, BF16, Umma(128, 2)),  # the pair's second has few rows
            ((3, 0, 270), 264, 264, F16, PAIR),
            ((0, 0), 24, 72, BF16, NARROW),
            ((600,), 136, 264, BF16, ALONE),  # more stages than there are at once
        )),
    ],
    ids=str,
)  # fmt: skip
def test_rows_of_each_group_are_summed(rows, m, n, dtype, cut):
    x, y, ends, c = over(rows, m, n, dtype)
    grouped_outer.plan(x, y, ends, c, cut).simulate(arch="sm_100a")
    for got, end, count in zip(c, ends, rows):
        own = slice(end - count, end)
        want = x[own].astype(np.float64).T @ y[own].astype(np.float64)
        assert np.abs(got.astype(np.float64) - want).max() <= 2.0**-7 * np.abs(want).max(initial=1e-30)


@SLOW
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("cut", umma_plan.CUTS, ids=str)
def test_sums_over_rows_spill_nothing(cut, arch):
    made = grouped_outer.plan(*over((300, 40), 512, 512), cut).compile(arch=arch)
    assert (made.resources.spill_stores, made.resources.local, made.notes) == (0, 0, ())


def test_pairs_sum_over_rows_of_large_matrices():
    assert umma_outer.choose(8 * 4096, 8, 4096, 4096, 148, lambda ctas: 148 // ctas) == PAIR
    assert umma_outer.choose(8 * 256, 8, 128, 64, 148, lambda ctas: 148 // ctas) == Umma(64, 1)


@SLOW
def test_the_entry_chooses_by_the_target():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    a, b = torch.randn(40, 64).bfloat16().requires_grad_(), torch.randn(3, 16, 64).bfloat16().requires_grad_()
    ends = torch.tensor([30, 30, 40], dtype=torch.int32)
    exact, wide = (t.detach().double().requires_grad_() for t in (a, b))
    want = torch.cat((exact[:30] @ wide[0].T, exact[30:] @ wide[2].T))
    want.sum().backward()
    with cute.simulation("sm_100a", checks=False, sms=2):
        made = kernels.grouped_gemm(a, b, ends)
        made.float().sum().backward()
    for got, x in ((made, want), (a.grad, exact.grad), (b.grad, wide.grad)):
        assert (got.double() - x).abs().max() <= 2.0**-7 * np.abs(x.detach().numpy()).max()
