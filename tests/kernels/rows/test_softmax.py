# SPDX-License-Identifier: Apache-2.0
"""Softmax and cross-entropy against float64: every spread in the simulator with all checks; entries on a GPU."""

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.rows import softmax

from .arrays import BF16, F32, SPREADS, near, work

try:
    import torch
except ImportError:
    torch = None

LEAST = {d: ml_dtypes.finfo(d).min for d in (BF16, F32)}


def simulated(kernel, spread, groups, *arrays, static=()):
    work(kernel, spread, groups, *static).simulate(*arrays)


def logits(rng, rows, length, dtype):
    """Random rows, of which one has mostly minus infinity, and one the least number alone; and each row's results."""
    x = (3 * rng.standard_normal((rows, length))).astype(dtype)
    x[0, length // 2 :] = -np.inf
    x[1] = LEAST[dtype]
    z = x.astype(np.float64)
    most = z.max(1, keepdims=True)
    powers = np.exp(z - most)
    return x, powers / powers.sum(1, keepdims=True), (most + np.log(powers.sum(1, keepdims=True)))[:, 0]


OPTIONS = {"plain": (None, None), "z": (None, 0.01), "smooth": (0.2, 0.01)}
"""Label smoothing and the weight of lse ** 2, of a forward."""
CASES = [
    pytest.param(name, dtype, *OPTIONS[options], marks=[] if name == "a part of a warp" and options != "z" else
                 pytest.mark.slow, id=f"{name}-{options}")
    for name in SPREADS
    for dtype in (F32 if SPREADS[name][0].vector < 8 else BF16,)
    for options in OPTIONS
]  # fmt: skip


LENGTHS = (1000, 4096, 8192, 12000, 16384, 65536)
"""Of a row in registers, in shared memory, and in a cluster's; of whole vectors for all threads, and not."""


@pytest.mark.parametrize("length", [n if n == 16384 else pytest.param(n, marks=pytest.mark.slow) for n in LENGTHS])
@pytest.mark.parametrize("dtype", [BF16, pytest.param(F32, marks=pytest.mark.slow)])
def test_no_plan_of_the_gradients_spills_registers(length, dtype):
    x = np.zeros((8, length), dtype)
    made = softmax.softmax_backward_work(x, x, x).compile(x, x, x)
    assert (made.resources.spill_stores, made.resources.spill_loads, made.resources.local) == (0, 0, 0)


@pytest.mark.parametrize("name, dtype, smoothing, z", CASES)
def test_every_spread_is_right_in_the_simulator(rng, name, dtype, smoothing, z):
    spread, rows, groups = SPREADS[name]
    x, p, lse = logits(rng, rows, spread.length, dtype)
    if smoothing:
        x[0] = x[2]  # of a row with minus infinity the loss is infinite
        p[0], lse[0] = p[2], lse[2]
    y, dx = np.full_like(x, np.nan), np.full_like(x, np.nan)
    simulated(softmax.softmax_forward, spread, groups, x, y)
    near(y, p, dtype)
    dy = rng.standard_normal(x.shape).astype(dtype)
    simulated(softmax.softmax_backward, spread, groups, dy, y, dx)
    q, g = y.astype(np.float64), dy.astype(np.float64)
    near(dx, q * (g - (q * g).sum(1, keepdims=True)), dtype)
    target = rng.integers(0, spread.length // 2, rows)
    target[2], target[3], target[4] = -100, spread.length, 2**32 + 1
    loss, found = (np.full(rows, np.nan, np.float32) for _ in range(2))
    given = (None if smoothing is None else np.float32(smoothing), None if z is None else np.float32(z))
    ignored = (np.int64(-100), *given)
    simulated(softmax.cross_entropy_forward, spread, groups, x, target, loss, found, static=ignored)
    assert np.allclose(found, lse, rtol=1e-6, atol=1e-5)
    assert loss[2] == 0 and np.isnan(loss[3:5]).all()
    inside = np.clip(target, 0, spread.length - 1)
    exact, (smooth, square) = x.astype(np.float64), (smoothing or 0.0, z or 0.0)
    want = lse - exact[np.arange(rows), inside] * (1 - smooth) + square * lse**2
    want -= smooth * exact.mean(1) if smooth else 0
    there = [i for i in range(rows) if i not in (1, 2, 3, 4)]
    near(loss[there], want[there], F32)
    if z is None:
        assert loss[1] == 0  # of what is 3e38, the logarithm of the columns is nothing
    dloss, dlogits = rng.standard_normal(rows).astype(np.float32), np.full_like(x, np.nan)
    ignored = (np.int64(-100), *(None if z is None else np.float32(v) for v in (smooth, square)), None)
    simulated(softmax.cross_entropy_backward, spread, groups, x, target, found, dloss, dlogits, static=ignored)
    hot = np.eye(spread.length)[inside] * (1 - smooth) + smooth / spread.length
    probability = np.exp(np.maximum(x.astype(np.float64), -1e300) - found[:, None].astype(np.float64))
    bent = probability * (1 + 2 * square * found[:, None].astype(np.float64))
    want = (bent - hot) * np.where(target == -100, 0, dloss)[:, None]
    assert np.isnan(dlogits[3:5].astype(np.float32)).all()  # as their loss
    apart = (3, 4) if z is None else (1, 3, 4)  # of 3e38 the gradient of a square is as large
    near(np.delete(dlogits, apart, 0), np.delete(want, apart, 0), dtype, 4)


LENGTHS = [1, 7, 100, 257, 1000, 1024, 4096, 5120, 32768, 50008, 65537, 131072, 262144]
GPU = [
    *[(n, "bfloat16") for n in LENGTHS],
    *[(n, t) for n in (96, 4098, 262144) for t in ("float16", "float32")],
]


@pytest.mark.gpu
@pytest.mark.parametrize("length, dtype", GPU)
def test_entries_and_their_gradients_are_right(length, dtype):
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    rows = max(3, min(700, (1 << 21) // length))
    x = torch.randn(rows, length, device="cuda").to(kind).requires_grad_()
    z = x.detach().double().requires_grad_()
    dy = torch.randn(rows, length, device="cuda").to(kind)
    y, want = cute.kernels.softmax(x), z.softmax(-1)
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-10, "float32": 2.0**-20}[dtype]
    assert ((y.double() - want).abs() <= unit * want + 1e-7).all()
    y.backward(dy)
    want.backward(dy.double())
    assert (x.grad.double() - z.grad).abs().max() <= 4 * unit * z.grad.abs().max() + 1e-6
    for reduction in ("mean", "none"):
        x.grad = z.grad = None
        target = torch.randint(0, length, (rows,), device="cuda")
        target[0] = -100
        loss = cute.kernels.cross_entropy(x, target, reduction=reduction)
        want = torch.nn.functional.cross_entropy(z, target, reduction=reduction)
        assert (loss.double() - want).abs().max() <= 1e-5
        loss.sum().backward()
        want.sum().backward()
        assert (x.grad.double() - z.grad).abs().max() <= 2 * unit * z.grad.abs().max() + 1e-6


@pytest.mark.gpu
def test_what_is_in_place_traced_or_refused():
    x = torch.randn(5, 7, 1000, device="cuda", dtype=torch.bfloat16)
    want = x.double().softmax(-1)
    traced = torch.compile(lambda x: cute.kernels.softmax(x) + 1, fullgraph=True)
    assert (traced(x).double() - want - 1).abs().max() < 0.01
    assert cute.kernels.softmax(x, out=x) is x and (x.double() - want).abs().max() < 0.01
    with pytest.raises(cute.CuteError, match="target is int64 of shape"):
        cute.kernels.cross_entropy(x, torch.zeros(5, device="cuda", dtype=torch.int64))
    with pytest.raises(cute.CuteError, match="reduction 'max' must be"):
        cute.kernels.cross_entropy(x, torch.zeros(5, 7, device="cuda", dtype=torch.int64), reduction="max")
