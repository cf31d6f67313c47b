# SPDX-License-Identifier: Apache-2.0
"""Top-k against a sort: every spread in the simulator with all checks, also with short lists; entries on a GPU."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.rows import topk
from numba_cute.kernels.rows.bound import Choice, choice_of
from numba_cute.kernels.rows.spread import Spread

from .arrays import BF16, F16, F32, SPREADS, near, work

try:
    import torch
except ImportError:
    torch = None


def rows_of(rng, rows, length, dtype):
    """Random rows; one of few values, with zeros of either sign, one that is sorted, one mostly of minus infinity, and
    one with NaN of either sign and infinity."""
    x = rng.standard_normal((rows, length)).astype(dtype)
    x[0] = np.trunc(x[0].astype(np.float32))
    if rows > 1:
        x[1] = np.sort(x[1].astype(np.float32))
    if rows > 2:
        x[2, 2:] = -np.inf
    if rows > 3:
        x[3, length // 2] = np.nan
        x[3, 1], x[3, 0] = -np.float32(np.nan), np.inf
    return x


def chosen(x, k):
    """The columns of the greatest k: NaN first, of equal ones the first; zeros of either sign are equal."""
    f = x.astype(np.float32) + 0.0
    order = f.view(np.int32) ^ ((f.view(np.int32) >> 31) & 0x7FFFFFFF)
    order = np.where(np.isnan(f), 2**31 - 1, order).astype(np.int64)
    return np.argsort(-order, 1, kind="stable")[:, :k]


def simulated(rng, spread, rows, groups, dtype, choice, softmax):
    """Run forward and backward in the simulator, and check both."""
    x = rows_of(rng, rows, spread.length, dtype)
    values, indices = np.full((rows, choice.k), np.nan, dtype), np.full((rows, choice.k), -1, np.int64)
    flag = cute.Constexpr(softmax)
    work(topk.topk_forward, spread, groups, flag, choice).simulate(x, values, indices)
    want = chosen(x, choice.k)
    assert np.array_equal(indices, want)
    found = np.take_along_axis(x.astype(np.float64), want, 1)
    if softmax:
        powers = np.exp(found[:3] - found[:3, :1])
        near(values[:3], powers / powers.sum(1, keepdims=True), dtype)
    else:
        assert np.array_equal(values.astype(np.float64), found, equal_nan=True)
    return values, indices


def gradients(rng, spread, groups, values, indices, softmax):
    rows, k = values.shape
    p = rng.random((rows, k)).astype(values.dtype)
    dvalues, dx = rng.standard_normal((rows, k)).astype(values.dtype), np.full((rows, spread.length), np.nan, p.dtype)
    static = cute.Constexpr(softmax), cute.Constexpr(k)
    work(topk.topk_backward, spread, groups, *static).simulate(dvalues, p, indices, dx)
    g, p = dvalues.astype(np.float64), p.astype(np.float64)
    want = np.zeros(dx.shape)
    np.put_along_axis(want, indices, p * (g - (g * p).sum(1, keepdims=True)) if softmax else g, 1)
    near(dx, want, dx.dtype, k)


def test_a_row_and_its_gradient_are_right_in_the_simulator(rng):
    spread = Spread(16, 4, 8, 1, 4)
    values, indices = simulated(rng, spread, 3, 1, F32, Choice(3, 16, 2, 3), True)
    gradients(rng, spread, 1, values, indices, True)


CASES = [
    pytest.param(name, F32 if SPREADS[name][0].vector < 8 else BF16, short, softmax, id=f"{name}-{kind}")
    for name in SPREADS
    for kind, short, softmax in (("as planned", False, False), ("a short list, softmax", True, True))
    if not (SPREADS[name][0].stages and not SPREADS[name][0].again)  # teams have one row each
]


@pytest.mark.slow
@pytest.mark.parametrize("name, dtype, short, softmax", CASES)
def test_every_spread_is_right_in_the_simulator(rng, name, dtype, short, softmax):
    spread, rows, groups = SPREADS[name]
    k = 9
    choice = choice_of(k, spread)
    if short:
        choice = Choice(k, 16, choice.group, choice.each)
    rows = min(rows, 5)
    values, indices = simulated(rng, spread, rows, groups, dtype, choice, softmax)
    if not spread.again:
        gradients(rng, spread, groups, values, indices, softmax)


def test_lists_and_groups_are_chosen_by_the_row():
    wide = Spread(32768, 8, 512, 8, 1, 1, 1, True)
    assert choice_of(128, wide) == Choice(128, 256, 64, 128)  # a group for each thread
    assert choice_of(8, wide) == Choice(8, 64, 64, 8)
    small = Spread(64, 8, 8, 1, 32)
    assert choice_of(8, small) == Choice(8, 64, 2, 8)
    assert choice_of(60, small) == Choice(60, 128, 0, 60)  # all of them are listed
    assert choice_of(16, Spread(131072, 8, 512, 8, 1, 4, 1, True)).each == 4  # of each block


GPU = [
    (64, 64, "bfloat16", False), (100, 7, "bfloat16", True), (256, 8, "bfloat16", True), (257, 128, "bfloat16", False),
    (1000, 1, "bfloat16", False), (4096, 32, "bfloat16", True), (5120, 256, "bfloat16", False),
    (50008, 100, "bfloat16", True), (65537, 8, "bfloat16", False), (131072, 128, "bfloat16", False),
    (262144, 64, "bfloat16", True), (128, 8, "float32", True), (4098, 64, "float16", False),
    (131072, 128, "float32", False),
]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("length, k, dtype, softmax", GPU)
def test_entries_and_their_gradients_are_right(rng, length, k, dtype, softmax):
    rows = max(5, min(700, (1 << 21) // length))
    kind = {"bfloat16": BF16, "float16": F16, "float32": F32}[dtype]
    made = rows_of(rng, rows, length, kind)
    x = torch.from_numpy(made.astype(np.float32)).cuda().to(getattr(torch, dtype)).requires_grad_()
    values, indices = cute.kernels.topk(x, k, softmax=softmax)
    want = torch.from_numpy(chosen(made, k)).cuda()
    assert indices.dtype is torch.int64 and torch.equal(indices, want)
    dv = torch.randn_like(values)
    values.backward(dv)
    found = x.detach().gather(1, want).cpu()
    theirs = x.detach().cpu().topk(k).values  # of torch's columns who knows
    assert torch.equal(found.nan_to_num(7.0), theirs.nan_to_num(7.0))
    if softmax:
        z = x.detach().double().requires_grad_()
        exact = z.gather(1, want).softmax(-1)
        exact.backward(dv.double())
        finite = [i for i in range(rows) if i != 3]
        unit = {"bfloat16": 2.0**-8, "float16": 2.0**-10, "float32": 2.0**-20}[dtype]
        assert ((values.double() - exact).abs() <= unit * exact + 1e-7)[finite].all()
        assert (x.grad.double() - z.grad)[finite].abs().max() <= 8 * unit * z.grad[finite].abs().max() + 1e-6
    else:
        given = values.detach().cpu()
        assert torch.equal(given.nan_to_num(7.0), found.nan_to_num(7.0)) and torch.equal(given.isnan(), found.isnan())
        assert torch.equal(x.grad, torch.zeros_like(x).scatter_(1, want, dv))


@pytest.mark.gpu
def test_what_is_out_traced_or_refused():
    x = torch.randn(3, 5, 1000, device="cuda", dtype=torch.bfloat16)
    want = x.topk(8)
    traced = torch.compile(lambda x: cute.kernels.topk(x, 8)[0] + 1, fullgraph=True)
    assert torch.equal(traced(x), want.values + 1)
    out = torch.empty_like(want.values), torch.empty_like(want.indices)
    assert cute.kernels.topk(x, 8, out=out)[0] is out[0] and torch.equal(out[0], want.values)
    half = x[..., :500]
    assert torch.equal(cute.kernels.topk(half[0], 8)[0], half[0].topk(8).values)
    with pytest.raises(cute.CuteError, match="k is 0"):
        cute.kernels.topk(x, 0)
    with pytest.raises(cute.CuteError, match="from 1 to 256, which is the most that this kernel sorts"):
        cute.kernels.topk(x, 257)
