# SPDX-License-Identifier: Apache-2.0
"""RMSNorm and LayerNorm against float64: every spread in the simulator with all checks; entries on a GPU."""

from types import SimpleNamespace

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.kernels.rows import norm
from numba_cute.kernels.rows.spread import Spread

from .arrays import BF16, F32, SPREADS, near, work

try:
    import torch
except ImportError:
    torch = None


OFFSET = 1.0
"""Of the weights of cases without a mean."""


def number(centred):
    """The offset as the kernels take it."""
    return None if centred else np.float32(OFFSET)


def case(rng, rows, length, dtype, centred, residual):
    """The arguments of the forward, its results in float64, and poisoned arrays for them."""
    x, r = (rng.standard_normal((rows, length)).astype(dtype) for _ in range(2))
    w, b = (rng.standard_normal(length).astype(dtype) for _ in range(2))
    s = (x.astype(np.float32) + r.astype(np.float32)).astype(dtype) if residual else x
    s = s.astype(np.float64)
    mean = s.mean(1) * centred
    h = s - mean[:, None]
    rstd = 1 / np.sqrt((h * h).mean(1) + 1e-5)
    h = h * rstd[:, None]
    y = h * (w.astype(np.float64) + (0 if centred else OFFSET)) + (b.astype(np.float64) if centred else 0)
    return (x, r if residual else None, w, b if centred else None), (y, s, mean, rstd, h)


def forward(given, spread, groups, dtype, centred):
    """The forward in the simulator: y, summed, mean, rstd."""
    x, residual, _, _ = given
    y, summed = np.full_like(x, np.nan), None if residual is None else np.full_like(x, np.nan)
    mean, rstd = (np.full(len(x), np.nan, np.float32) for _ in range(2))
    mean = mean if centred else None
    made = work(norm.forward, spread, groups, np.float32(1e-5), number(centred), cute.Constexpr(centred))
    made.simulate(*given, y, summed, mean, rstd)
    return y, summed, mean, rstd


def backward(rng, s, given, found, spread, groups, dtype, centred, residual):
    """The backward in the simulator, and its results in float64."""
    _, _, w, _ = given
    _, _, mean, rstd = found
    dy, ds = (rng.standard_normal(s.shape).astype(dtype) for _ in range(2))
    dx, dw, db = np.full_like(s, np.nan), *(np.full((groups, s.shape[1]), np.nan, np.float32) for _ in range(2))
    made = work(norm.backward, spread, groups, number(centred), cute.Constexpr(centred))
    made.simulate(dy, s, w, mean, rstd, ds if residual else None, dx, dw, db if centred else None)
    h = (s.astype(np.float64) - (mean[:, None] if centred else 0)) * rstd[:, None].astype(np.float64)
    g = dy.astype(np.float64) * (w.astype(np.float64) + (0 if centred else OFFSET))
    want = g - h * (g * h).mean(1, keepdims=True) - g.mean(1, keepdims=True) * centred
    want = want * rstd[:, None] + (ds.astype(np.float64) if residual else 0)
    return (dx, dw.sum(0), db.sum(0)), (want, (dy.astype(np.float64) * h).sum(0), dy.astype(np.float64).sum(0))


CASES = [
    pytest.param(name, dtype, centred, residual, marks=[] if quick else pytest.mark.slow, id=f"{name}-{kind}")
    for name in SPREADS
    for kind, dtype, centred, residual, quick in (
        ("rms", BF16, False, False, False),
        ("layer with residual", F32 if SPREADS[name][0].vector < 8 else BF16, True, True, name == "a part of a warp"),
    )
]


@pytest.mark.parametrize("name, dtype, centred, residual", CASES)
def test_every_spread_is_right_in_the_simulator(rng, name, dtype, centred, residual):
    spread, rows, groups = SPREADS[name]
    given, (y, s, mean, rstd, _) = case(rng, rows, spread.length, dtype, centred, residual)
    found = forward(given, spread, groups, dtype, centred)
    near(found[0], y, dtype, 2)
    near(found[3], rstd, F32, 2)
    if centred:
        near(found[2], mean, F32)
    if residual:
        near(found[1], s, dtype)
    if spread.again:  # the backward's teams keep sums over rows
        return
    kept = found[1] if residual else given[0]
    got, want = backward(rng, kept, given, found, spread, groups, dtype, centred, residual)
    near(got[0], want[0], dtype, 2)
    near(got[1], want[1], F32, 4)
    if centred:
        near(got[2], want[2], F32, 4)


LONG = {
    "a part of a warp": (Spread(60, 4, 4, 5, 8), 5, 1),
    "two teams": (Spread(1000, 8, 32, 4, 2), 5, 1),
    "a ring": (Spread(768, 8, 32, 3, 1, 1, 1), 5, 2),
    "a ragged cluster with a ring": (Spread(1000, 8, 32, 3, 1, 2, 2, False, 63), 5, 1),
}
"""Of which a thread has no registers for both sums and a row: as of SPREADS."""


@pytest.mark.parametrize(
    "name, residual",
    [pytest.param(n, r, marks=[pytest.mark.slow] * (r or i > 0)) for i, n in enumerate(LONG) for r in (False, True)],
)
def test_gradients_of_rows_that_are_read_twice_are_right(rng, name, residual):
    spread, rows, groups = LONG[name]
    dtype = F32 if spread.vector == 4 else BF16
    assert norm.in_parts(spread, 0, 0) and not norm.in_parts(spread, 0, None)
    given, (_, s, mean, rstd, _) = case(rng, rows, spread.length, dtype, True, residual)
    s, found = s.astype(dtype), (None, None, mean.astype(np.float32), rstd.astype(np.float32))
    got, want = backward(rng, s, given, found, spread, groups, dtype, True, residual)
    near(got[0], want[0], dtype, 2)
    near(got[1], want[1], F32, 4)
    near(got[2], want[2], F32, 4)


@pytest.mark.parametrize(
    "residual", [pytest.param(False, marks=pytest.mark.slow), pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("centred", [False, True])
def test_sums_over_far_rows_are_in_global_memory(rng, centred, residual):
    spread, rows, groups = Spread(1000, 8, 32, 4, 1, far=True), 5, 2
    given, (_, s, mean, rstd, _) = case(rng, rows, spread.length, BF16, centred, residual)
    s, found = s.astype(BF16), (None, None, mean.astype(np.float32) if centred else None, rstd.astype(np.float32))
    got, want = backward(rng, s, given, found, spread, groups, BF16, centred, residual)
    near(got[0], want[0], BF16, 2)
    near(got[1], want[1], F32, 4)
    if centred:
        near(got[2], want[2], F32, 4)


def test_rows_have_gradients_without_sums(rng):
    x, dy = rng.standard_normal((2, 11, 60)).astype(np.float32)
    dx, rstd = np.full_like(x, np.nan), (1 / np.sqrt((x * x).mean(1))).astype(np.float32)
    made, _, _ = norm.backward_works(dy, x, None, None, dx, False)
    made.simulate(dy, x, None, None, rstd, None, dx, None, None)
    h = x.astype(np.float64) * rstd[:, None]
    near(dx, (dy - h * (dy * h).mean(1, keepdims=True)) * rstd[:, None], F32, 4)


def test_bias_alone_has_a_gradient(rng):
    x, dy = rng.standard_normal((2, 11, 60)).astype(np.float32)
    made, groups, adding = norm.backward_works(dy, x, None, None, np.empty_like(x), True)
    parts, out = np.full((groups, 60), np.nan, np.float32), np.full(60, np.nan, np.float32)
    made.simulate(dy, x, None, x.mean(1), 1 / x.std(1), None, np.empty_like(x), None, parts)
    adding.simulate(parts, out)
    near(out, dy.sum(0, dtype=np.float64), F32, 4)


@pytest.mark.parametrize(
    "length", [8, pytest.param(60, marks=pytest.mark.slow), pytest.param(512, marks=pytest.mark.slow)]
)
def test_sums_over_no_rows_are_zero(length):
    none, line = np.empty((0, length), np.float32), np.empty(0, np.float32)
    made, groups, adding = norm.backward_works(none, none, None, None, none.copy(), False)
    parts, out = np.full((groups, length), np.nan, np.float32), np.full(length, np.nan, np.float32)
    made.simulate(none, none.copy(), None, None, line, None, none.copy(), parts, None)
    adding.simulate(parts, out)
    assert not out.any()


def test_columns_are_added(rng):
    parts, out = rng.standard_normal((11, 45)).astype(np.float32), np.zeros(45, BF16)
    entry.Work(norm.columns, 2, 256).simulate(parts, out)
    near(out, parts.sum(0, dtype=np.float64), BF16)


LENGTHS = [1, 7, 64, 100, 257, 1000, 1024, 4096, 5120, 16384, 20000, 32768, 50008, 65536, 65537, 131072, 262144]
GPU = [
    *[(n, "bfloat16", i % 2 == 0, i % 3 == 0) for i, n in enumerate(LENGTHS)],
    *[(n, t, c, r) for n, c, r in ((96, True, True), (4098, False, True), (32768, True, False), (262144, False, False))
      for t in ("float16", "float32")],
]  # fmt: skip


class Given:
    """What a gradient's function does to a tensor, of which nothing is known."""

    def contiguous(self):
        return self

    def to(self, dtype):
        return self


@pytest.mark.parametrize("residual_type", [None, "float32"])
def test_a_sum_has_a_gradient_where_there_was_a_residual_alone(monkeypatch, residual_type):
    taken = []
    monkeypatch.setattr(norm, "BACKWARD_ENTRY", lambda *given: taken.append(given) or (Given(),) * 3)
    ctx = SimpleNamespace(
        saved_tensors=(Given(), None, Given(), Given()), types=("bfloat16", residual_type, None),
        needs_input_grad=(True,) + 8 * (False,), centred=False, offset=0.0,
    )  # fmt: skip
    dsummed = Given()  # autograd under torch.compile gives one, without elements, of a result that nobody asked for
    norm._gradients(ctx, Given(), dsummed, None, None)
    assert taken[0][5] is (dsummed if residual_type else None)


@pytest.mark.gpu
@pytest.mark.parametrize("length, dtype, centred, residual", GPU)
def test_entries_and_their_gradients_are_right(length, dtype, centred, residual):
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    rows = max(3, min(700, (1 << 21) // length))

    def made(*shape):
        return torch.randn(shape, device="cuda", dtype=torch.float32).to(kind).requires_grad_()

    x, w, b, r = made(rows, length), made(length), made(length), made(rows, length)
    dy, ds = torch.randn(2, rows, length, device="cuda").to(kind)
    added = {"residual": r} if residual else {}
    got = cute.kernels.layernorm(x, w, b, **added) if centred else cute.kernels.rmsnorm(x, w, **added)
    y, s = got if residual else (got, None)
    torch.autograd.backward((y, s), (dy, ds)) if residual else y.backward(dy)
    exact = [t.detach().double().requires_grad_() for t in (x, w, b, r)]
    t = exact[0]
    if residual:  # the sum is rounded before it is normalised
        t = exact[0] + exact[3]
        t = t + ((x.detach().float() + r.detach().float()).to(kind).double() - t.detach())
    norm_of = torch.nn.functional.layer_norm if centred else torch.nn.functional.rms_norm
    want = norm_of(t, (length,), exact[1], *((exact[2],) if centred else ()), eps=1e-5 if centred else 1e-6)
    torch.autograd.backward((want, t), (dy.double(), ds.double())) if residual else want.backward(dy.double())
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-20}[dtype]
    pairs = {"y": (y, want), "dx": (x.grad, exact[0].grad), "dw": (w.grad, exact[1].grad)}
    if centred:
        pairs["db"] = b.grad, exact[2].grad
    if residual:
        pairs |= {"s": (s, t), "dr": (r.grad, exact[3].grad)}
    for name, (a, c) in pairs.items():
        # x's gradient sees s rounded, and h = 1 of rows of one element has none at all
        allowed = unit * (4 if residual else 2) * c.abs().max().item() + unit * (rows**0.5 if name[0] == "d" else 1)
        off = (a.double() - c).abs().max().item()
        assert off <= allowed, f"{name} is off by {off}, {allowed} is allowed"


@pytest.mark.gpu
def test_strides_out_types_and_torch_compile():
    x = torch.randn(3, 5, 2048, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(1024, device="cuda")
    half = x[..., :1024]  # rows with gaps
    with torch.no_grad():
        want = torch.nn.functional.rms_norm(half.double(), (1024,), w.double(), 1e-6)
        y = cute.kernels.rmsnorm(half[0], w, dtype=torch.float32)
        assert y.dtype is torch.float32 and (y - want[0]).abs().max() < 1e-4
        out = torch.empty(5, 1024, device="cuda", dtype=torch.bfloat16)
        assert cute.kernels.rmsnorm(half[1], w, out=out) is out and (out - want[1]).abs().max() < 0.05
        copied = cute.kernels.rmsnorm(half[:, ::2], w)  # no strides see it as rows
        assert copied.shape == (3, 3, 1024) and (copied - want[:, ::2]).abs().max() < 0.05
    with pytest.raises(cute.CuteError, match="rmsnorm: weight is float32 of shape"):
        cute.kernels.rmsnorm(x, w)
    x = x.requires_grad_()
    traced = torch.compile(lambda x: cute.kernels.rmsnorm(x) * 2, fullgraph=True)
    traced(x).sum().backward()
    torch.library.opcheck(norm.FORWARD_ENTRY.made, (x, None, None, None, 1e-5, 0.0, True, True, None))
