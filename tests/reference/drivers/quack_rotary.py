# SPDX-License-Identifier: Apache-2.0
"""Quack's rotary embedding."""

import torch
from compared import compare, judge
from quack.rotary import apply_rotary


def reference(x, cos, sin, interleaved):
    """Rotate the pairs of the last dimension."""
    half = cos.shape[-1]
    x, rest = x.double().split([2 * half, x.shape[-1] - 2 * half], dim=-1)
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    c, s = (t.double()[None, :, None, :] for t in (cos, sin))
    turned = (a * c - b * s, a * s + b * c)
    joined = torch.stack(turned, dim=-1).flatten(-2) if interleaved else torch.cat(turned, dim=-1)
    return torch.cat([joined, rest], dim=-1)


for interleaved in (False, True):
    torch.manual_seed(0)
    x = torch.randn(1, 32, 2, 64, device="cuda", dtype=torch.float16)
    angle = torch.rand(32, 32, device="cuda") * 6.28
    cos, sin = torch.cos(angle).half(), torch.sin(angle).half()
    given = apply_rotary(x, cos, sin, interleaved=interleaved)
    compare(given.double(), reference(x, cos, sin, interleaved), atol=1e-2, rtol=1e-3)

judge()
