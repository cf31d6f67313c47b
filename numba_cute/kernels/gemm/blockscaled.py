# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit floats with scales of blocks, as DeepSeek trains with: each 128 along K of a row of A has one, and
each 128 by 128 of B. The kernel is that of `grouped.py`: the tensor cores sum 128 along K, and `multiply.scaled` adds
these sums, scaled, in float32. A product without groups is one of a single group. Scale factors of 8 bits, of 16 or 32
along K, are of Blackwell (`microscaled.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba_cute.seam import CuteError

from .. import entry
from . import grouped
from .multiply import BLOCK

if TYPE_CHECKING:
    import torch

_KINDS = ("float8_e4m3fn",)


def check_scales(what, a, b, scales_a, scales_b):
    """Refuse scales that are not those of A's and B's blocks."""
    (rows, k), (groups, n, _) = a.shape, b.shape
    blocks_k, blocks_n = -(-k // BLOCK), -(-n // BLOCK)
    entry.check(what, "scales_a", scales_a, dtypes=("float32",), shape=(rows, blocks_k), last=False, like=a)
    entry.check(what, "scales_b", scales_b, dtypes=("float32",), shape=(groups, blocks_n, blocks_k), last=False, like=a)


def _result(
    a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor | None, scales_a: torch.Tensor, scales_b: torch.Tensor
):  # fmt: skip
    what = "blockscaled_gemm"
    grouped.check_groups(what, a, b, ends, _KINDS, optional=True)
    check_scales(what, a, b, scales_a, scales_b)
    return a.new_empty((a.shape[0], b.shape[1]), dtype=entry.pytorch().bfloat16)


def plan(a, b, ends, scales_a, scales_b, c, cut=None):
    """Plan the launch. The arguments are `blockscaled_gemm`'s, with groups; `c` is its result. cut: a `grouped.Cut`."""
    return grouped.plan(a, b, ends, c, scales_a, scales_b, cut=cut)


BLOCKSCALED = entry.Operator("numba_cute::blockscaled_gemm", plan, _result)


def blockscaled_gemm(a, b, scales_a, scales_b, ends=None, *, epilogue=None, out=None):
    """Multiply matrices whose blocks have scales: `(a * scales_a) @ (b * scales_b).T`, in bfloat16.

    On Hopper, a: (M, K) of float8_e4m3fn. b: (N, K) of the same. scales_a: (M, ceil(K / 128)) float32, of each row's
    128 along K, of any strides. scales_b: (ceil(N / 128), ceil(K / 128)) float32. K is a multiple of 16, N of 8. ends:
    None, or of rows sorted by group the row after each group's last one, as for `grouped_gemm`: `b` is then (groups, N,
    K), and `scales_b` (groups, ceil(N / 128), ceil(K / 128)). out: (M, N) bfloat16, to write to. Gives the result.
    CuteError says what is not so.

    On Blackwell, a and b of float8_e4m3fn or float8_e5m2 (MXFP8) or float4_e2m1fn_x2 (MXFP4, NVFP4), with scales for
    each 32 along K of float8_e8m0fnu, or, of NVFP4, for each 16 of float8_e4m3fn: (M, ceil(K / 32)) and
    (N, ceil(K / 32)), or of one mode, as `chunked_scales` puts them, which saves a launch for each. epilogue: what
    becomes of the sums, as of `matmul`, without pairs: a scale of the whole of NVFP4, a bias, ….

    >>> import torch
    >>> a, b = [torch.ones(64, 128).to(torch.float8_e4m3fn) for _ in range(2)]
    >>> with cute.simulation():
    ...     c = cute.kernels.blockscaled_gemm(a, b, torch.full((64, 1), 0.5), torch.ones(1, 1))
    >>> c[0, 0]
    tensor(64., dtype=torch.bfloat16)
    """
    if hasattr(scales_a, "dtype") and entry.type_name(scales_a).startswith("float8"):  # factors of blocks along K
        from . import microscaled

        if ends is not None:
            raise CuteError("blockscaled_gemm: ends is given: groups there are of scales in float32: leave it out")
        return microscaled.microscaled(a, b, scales_a, scales_b, epilogue, out)
    if epilogue is not None:
        raise CuteError("blockscaled_gemm: epilogue is given, which scales of 8 bits have alone: leave it out")
    if ends is None:
        what = "blockscaled_gemm"
        entry.check(what, "a", a, dtypes=_KINDS, rank=2)
        entry.check(what, "b", b, dtypes=_KINDS, rank=2, shape=(None, a.shape[1]), like=a)
        entry.check(what, "scales_b", scales_b, dtypes=("float32",), rank=2, last=False, like=a)
        b, scales_b = b[None], scales_b[None]
    return BLOCKSCALED(a, b, ends, scales_a, scales_b, into=(out,))
