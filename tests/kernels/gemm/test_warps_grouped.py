# SPDX-License-Identifier: Apache-2.0
"""Grouped GEMMs of mma.sync: right whatever rows a group has, nobody's rows but its own, no spills, with gradients."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.gemm import Warps, grouped, grouped_outer, warps_plan

from . import problems

try:
    import torch
except ImportError:
    torch = None

SLOW = pytest.mark.slow
BF16, F16 = cute.BFloat16, cute.Float16
LEAST, SMALL = Warps((32, 32), (1, 1), 64), Warps((32, 64), (1, 2), 64)


@pytest.mark.parametrize(
    ("rows", "n", "k", "dtype", "cut", "how"),
    [
        ((5, 0, 36), 24, 16, BF16, LEAST, {}),
        pytest.param((3, 0, 70, 33), 72, 168, BF16, SMALL, {}, marks=SLOW),
        pytest.param((3, 0, 40, 33), 72, 176, cute.Float8E4M3FN, SMALL, {}, marks=SLOW),
        pytest.param((40, 33), 72, 40, F16, SMALL, {"b_turned": True}, marks=SLOW),
        pytest.param((1,) * 40, 24, 40, BF16, LEAST, {}, marks=SLOW),  # more groups than lanes
        pytest.param((0, 0), 24, 40, BF16, LEAST, {}, marks=SLOW),
        pytest.param((130, 3), 264, 136, BF16, Warps(), {}, marks=SLOW),
        pytest.param((64, 1), 136, 136, BF16, warps_plan.CUTS[3], {"b_turned": True}, marks=SLOW),
    ],
)
def test_each_group_is_multiplied_by_its_own_matrix(rows, n, k, dtype, cut, how):
    a, b, ends, _, c, want = problems.grouped(rows, n, k, dtype, **how)
    grouped.plan(a, b, ends, c, cut=cut).simulate(arch="sm_89" if dtype.width == 8 else "sm_80")
    assert not len(
        problems.wrong(c, want, 2 * k, 1e-5 if dtype.width == 16 else 1e-3)
    )  # rows of no group keep their NaN


@pytest.mark.parametrize(
    ("rows", "m", "n", "cut"),
    [
        ((5, 0, 33), 16, 24, LEAST),
        pytest.param((3, 70, 0, 32, 1), 72, 136, SMALL, marks=SLOW),
        pytest.param((3, 130, 0, 1), 136, 264, Warps(), marks=SLOW),
    ],
)
def test_products_over_the_rows_of_groups_are_right_and_see_no_others(rows, m, n, cut):
    x, _, ends, *_ = problems.grouped(rows, n, m, BF16)
    y, *_ = problems.grouped(rows, m, n, BF16)
    x[ends[-1] :], y[ends[-1] :] = np.inf, np.nan
    c = np.full((len(rows), m, n), np.nan, x.dtype)
    grouped_outer.plan(x, y, ends, c, cut).simulate(arch="sm_80")
    for group, end in enumerate(ends):
        first = ends[group - 1] if group else 0
        want = x[first:end].astype(np.float64).T @ y[first:end].astype(np.float64)
        assert not len(problems.wrong(c[group], want, 2 * (end - first)))


@pytest.mark.parametrize(
    ("cut", "target"),
    [pytest.param(cut, target, marks=SLOW) for cut in warps_plan.CUTS for target in ("sm_80", "sm_86", "sm_120a")],
    ids=str,
)
def test_sums_stay_in_registers(cut, target):
    a, b, ends, _, c, _ = problems.grouped((300,), 512, 512, BF16, b_turned=target == "sm_86", beyond=4)
    outer = np.zeros((1, 512, 512), c.dtype)
    for work in (grouped.plan(a, b, ends, c, cut=cut), grouped_outer.plan(a, c, ends, outer, cut)):
        found = work.compile(arch=target)
        assert (found.resources.spill_stores, found.resources.local, found.notes) == (0, 0, ())
        assert 64 < found.resources.registers <= 65536 // (cut.threads * cut.ctas)


@pytest.fixture
def on(request):
    """Run entries in the simulator as on a GPU of a target."""
    pytest.importorskip("torch").manual_seed(0)
    with cute.simulation(request.param, checks=False, sms=4):
        yield request.param


@SLOW
@pytest.mark.parametrize("on", ["sm_80", "sm_86", "sm_120"], indirect=True)
@pytest.mark.parametrize("turned", [False, True])
def test_the_entry_has_gradients(on, turned):
    ends, normal = torch.tensor([5, 5, 30], dtype=torch.int32), lambda *s: torch.randn(s).to(torch.bfloat16)
    a, b = normal(33, 24), normal(3, 16, 24)
    b = b.mT.contiguous().mT if turned else b
    mine, exact = [t.detach().requires_grad_() for t in (a, b)], [t.detach().double().requires_grad_() for t in (a, b)]
    y, dy = kernels.grouped_gemm(*mine, ends)[:30], normal(30, 16)
    found = torch.autograd.grad(y, mine, dy)
    groups = (slice(0, 5), slice(5, 5), slice(5, 30))
    right = torch.cat([exact[0][rows] @ exact[1][g].T for g, rows in enumerate(groups)])
    for got, want in zip((y, *found), (right, *torch.autograd.grad(right, exact, dy.double())), strict=True):
        assert got.shape == want.shape and (got.double() - want).norm() <= 0.004 * want.norm()


@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
def test_what_this_family_has_not_is_refused_by_name(on):
    a, b, ends = torch.zeros(8, 16), torch.zeros(2, 16, 16), torch.tensor([3, 8], dtype=torch.int32)
    with pytest.raises(CuteError, match="on sm_86 mma.sync multiplies .* float8 on sm_89"):
        kernels.grouped_gemm(a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), ends)
    a, b = a.bfloat16(), b.bfloat16()
    with pytest.raises(CuteError, match="cp.async takes rows that are multiples of 16 bytes"):
        kernels.grouped_gemm(a, b[:, :12], ends)


def test_a_cut_of_another_family_is_refused():
    a, b, ends, _, c, _ = problems.grouped((40,), 24, 24, BF16, beyond=0)
    with pytest.raises(CuteError, match="a warp has a multiple of 16 rows"):
        grouped.plan(a, b, ends, c, cut=Warps((48, 128), (2, 2)))


# ---------------------------------------------------------------- on whatever GPU there is


@pytest.mark.gpu
@pytest.mark.parametrize("cut", warps_plan.CUTS, ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_ragged_groups_are_right_on_a_gpu(cut, turned):
    pytest.importorskip("torch").manual_seed(0)
    rows = [int(x) for x in np.random.default_rng(0).integers(0, 300, 40)]
    rows[3] = rows[17] = rows[39] = 0
    ends = torch.tensor(np.cumsum(rows), dtype=torch.int32, device="cuda")
    a = torch.randn(sum(rows) + 3, 528, device="cuda").to(torch.bfloat16)
    b = torch.randn(40, 392, 528, device="cuda").to(torch.bfloat16)
    b = b.mT.contiguous().mT if turned else b
    out = torch.full((len(a), 392), -7.0, device="cuda", dtype=torch.bfloat16)
    outer = torch.full((40, 392, 528), -7.0, device="cuda", dtype=torch.bfloat16)
    grouped.plan(a, b, ends, out, cut=cut).launcher()(a, b, ends, out)
    assert (out[sum(rows) :] == -7).all(), "rows of no group were written"
    dy = torch.randn_like(out)
    grouped_outer.plan(dy, a, ends, outer, cut).launcher()(dy, a, ends, outer)
    first = 0
    for group, end in enumerate(np.cumsum(rows)):
        own = slice(first, end)
        torch.testing.assert_close(out[own].double(), a[own].double() @ b[group].double().T, rtol=2.0**-7, atol=1e-2)
        want = dy[own].double().T @ a[own].double()
        torch.testing.assert_close(outer[group].double(), want, rtol=2.0**-7, atol=1e-2)
        first = end
