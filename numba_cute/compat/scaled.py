# SPDX-License-Identifier: Apache-2.0
"""`torch._scaled_mm` of block-scaled matrices on the CPU, which torch has on a GPU alone: files compare with it.

Scale factors lie as cuBLAS has them ("1D Block Scaling Factors Layout"): tiles of 128 rows by 4 factors, 512 bytes
each, one after the other along K; in a tile row r and factor c are at (r % 32) * 16 + (r // 32) * 4 + c.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

_PACKED = getattr(torch, "float4_e2m1fn_x2", None)


def scaled_mm(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, bias: torch.Tensor | None = None,
    scale_result: Any = None, out_dtype: torch.dtype | None = None, use_fast_accum: bool = False,
) -> torch.Tensor:  # fmt: skip
    """Multiply block-scaled matrices in float64: a (M, K) by b (K, N).

    scale_a, scale_b: the factors of the rows of a, and of the columns of b. bias: added to each row. out_dtype: of the
    result, bfloat16 by default. scale_result, use_fast_accum: taken.
    """
    left, right = _numbers(a), _numbers(b.t())
    product = _scaled(left, scale_a) @ _scaled(right, scale_b).t()
    if bias is not None:
        product = product + bias
    return product.to(out_dtype or torch.bfloat16)


def is_block_scaled(args: Any, named: Any) -> bool:
    """Return whether a call of `torch._scaled_mm` has a factor for each block of a row."""
    a = args[0]
    scale = args[2] if len(args) > 2 else named.get("scale_a")
    wide = a.dtype == _PACKED
    per_block = {torch.float8_e8m0fnu, torch.float8_e4m3fn} if hasattr(torch, "float8_e8m0fnu") else set()
    return wide or (scale is not None and scale.dtype in per_block)


def _numbers(t: torch.Tensor) -> torch.Tensor:
    """A matrix with K contiguous as float64."""
    if t.dtype != _PACKED:
        return t.to(torch.float64)
    raw = t.contiguous().view(torch.uint8).numpy()
    pairs = np.stack([raw & 15, raw >> 4], axis=-1).reshape(raw.shape[0], -1)
    return torch.from_numpy(pairs.view(ml_dtypes.float4_e2m1fn).astype(np.float64))


def _scaled(t: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """A matrix with each block of its rows multiplied by its factor."""
    rows, k = t.shape
    flat = scale.contiguous().reshape(-1).to(torch.float64)
    tiles_m = -(-rows // 128)
    tiles_k = flat.numel() // (512 * tiles_m)
    tile = flat.reshape(tiles_m, tiles_k, 32, 4, 4)
    factors = tile.permute(0, 3, 2, 1, 4).reshape(tiles_m * 128, tiles_k * 4)[:rows]
    vector = next(v for v in (16, 32) if -(-k // (v * 4)) == tiles_k)
    return t * factors.repeat_interleave(vector, dim=1)[:, :k]
