# SPDX-License-Identifier: Apache-2.0
"""Rotary embedding against float64: in the simulator with all checks, and the entry on a GPU."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.rows.rotary import rotary_work

from .arrays import BF16, F32, near

try:
    import torch
except ImportError:
    torch = None


def turned(x, cos, sin, positions, neighbours, back):
    """What is right, in float64."""
    y, half = x.astype(np.float64), cos.shape[1]
    a = y[..., : 2 * half : 2] if neighbours else y[..., :half]
    b = y[..., 1 : 2 * half : 2] if neighbours else y[..., half : 2 * half]
    c, s = (t.astype(np.float64)[positions][:, None] for t in (cos, sin))
    s = -s if back else s
    new = a * c - b * s, b * c + a * s
    y = y.copy()
    if neighbours:
        y[..., : 2 * half : 2], y[..., 1 : 2 * half : 2] = new
    else:
        y[..., :half], y[..., half : 2 * half] = new
    return y


CASES = {
    "halves": (3, 4, 64, 32, BF16, BF16, False, False, False),
    "neighbours in place, back": (5, 3, 64, 16, BF16, F32, True, True, True),
    "a part, ragged": (7, 2, 50, 15, F32, F32, False, False, False),
}


@pytest.mark.parametrize("name", [n if n == "halves" else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_pairs_are_turned_in_the_simulator(rng, name):
    tokens, heads, size, half, dtype, table, neighbours, back, place = CASES[name]
    x = rng.standard_normal((tokens, heads, size)).astype(dtype)
    angles = rng.uniform(0, 7, (11, half))
    cos, sin = np.cos(angles).astype(table), np.sin(angles).astype(table)
    for positions in (None, rng.integers(0, 11, tokens)):
        y = x.copy() if place else np.full_like(x, np.nan)
        given = y if place else x
        rotary_work(given, cos, sin, positions, y, neighbours, back).simulate(given, cos, sin, positions, y)
        want = turned(x, cos, sin, np.arange(tokens) % 11 if positions is None else positions, neighbours, back)
        near(y, want, dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(
    "size, part, neighbours", [(128, 128, False), (128, 128, True), (64, 32, False), (100, 50, True)]
)
def test_the_entry_and_its_gradient_are_right(dtype, size, part, neighbours):
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    x = torch.randn(2, 300, 6, size, device="cuda").to(kind).requires_grad_()
    angles = 7 * torch.rand(512, part // 2, device="cuda")
    cos, sin = angles.cos(), angles.sin()
    positions = torch.randint(0, 512, (2, 300), device="cuda")
    unit = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-20}[dtype]
    for p in (None, positions):
        at = torch.arange(300, device="cuda").expand(2, 300) if p is None else p
        flat = at.reshape(-1).cpu().numpy()

        def right(t, back, flat=flat):
            host = [v.detach().float().cpu().numpy() for v in (t.reshape(600, 6, size), cos, sin)]
            return torch.from_numpy(turned(*host, flat, neighbours, back)).cuda().view(t.shape)

        y = cute.kernels.rotary(x, cos, sin, p, interleaved=neighbours)
        assert (y.double() - right(x, False)).abs().max() < 8 * unit
        g = torch.randn_like(y)
        (dx,) = torch.autograd.grad(y, x, g)
        assert (dx.double() - right(g, True)).abs().max() < 8 * unit
        with torch.no_grad():
            z = x.detach().clone()
            assert cute.kernels.rotary(z, cos, sin, p, interleaved=neighbours, out=z) is z and torch.equal(z, y)
    torch.library.opcheck(
        __import__("numba_cute.kernels.rows.rotary", fromlist=["ROTARY"]).ROTARY.made,
        (x, cos, sin, positions, neighbours, False),
    )
    with pytest.raises(cute.CuteError, match="it turns 512 elements of a head"):
        cute.kernels.rotary(x, torch.zeros(512, 256, device="cuda"), torch.zeros(512, 256, device="cuda"))
