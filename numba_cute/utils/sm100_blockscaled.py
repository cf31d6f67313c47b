# SPDX-License-Identifier: Apache-2.0
"""The usual tiled MMA of a block-scaled Blackwell GEMM."""

from __future__ import annotations

from typing import Any

from ..atoms.mma_atom import TiledMma, make_tiled_mma
from ..dtypes import DType, Float4E2M1FN, Float6E2M3FN, Float6E3M2FN, Float8E4M3FN, Float8E5M2, Float8E8M0FNU
from ..nvgpu import tcgen05
from ..nvgpu.common import CtaGroup
from ..nvgpu.tcgen05 import OperandMajorMode, OperandSource
from ..seam import CuteError, known_as, traced

__all__ = ["make_blockscaled_trivial_tiled_mma"]

_FLOATS = (Float8E4M3FN, Float8E5M2, Float6E2M3FN, Float6E3M2FN, Float4E2M1FN)
_WHAT = "sm100.make_blockscaled_trivial_tiled_mma"


@traced
@known_as("cute_utils.sm100")
def make_blockscaled_trivial_tiled_mma(
    ab_dtype: DType,
    a_leading_mode: Any,
    b_leading_mode: Any,
    sf_dtype: Any,
    sf_vec_size: Any,
    cta_group: Any,
    mma_tiler_mn: Any,
    a_source: Any = OperandSource.SMEM,
    b_dtype: DType | None = None,
) -> TiledMma:
    """Make the block-scaled tcgen05.mma of these types and this tile, for one CTA or a pair.

    ab_dtype: Float4E2M1FN, or another float of 8 or 6 bits. a_leading_mode, b_leading_mode: the contiguous modes of A
    and B, members of OperandMajorMode; of Float4E2M1FN K. sf_dtype: the factors' type, Float8E8M0FNU, or with
    Float4E2M1FN and sf_vec_size 16 Float8E4M3FN. sf_vec_size: the elements along K that have one factor, 32, or 16 with
    Float4E2M1FN. cta_group: a member of CtaGroup. mma_tiler_mn: (M, N) of one multiply, of all its CTAs. a_source: SMEM
    or TMEM. b_dtype: the type of B's elements where that is another; then neither is Float4E2M1FN alone. Raises
    CuteError for what the operation has not. PTX tcgen05.mma.block_scale, sm_100f.

    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> make = utils.sm100.make_blockscaled_trivial_tiled_mma
    >>> make(cute.Float4E2M1FN, K, K, cute.Float8E8M0FNU, 32, one, (128, 64)).shape_mnk
    (128, 64, 64)
    """
    if isinstance(a_leading_mode, DType):  # a_dtype, b_dtype, a_leading_mode, …
        b_dtype, a_leading_mode, b_leading_mode, sf_dtype, sf_vec_size, cta_group, mma_tiler_mn, a_source = (
            a_leading_mode, b_leading_mode, sf_dtype, sf_vec_size, cta_group, mma_tiler_mn, a_source,
            b_dtype if b_dtype is not None else OperandSource.SMEM,
        )  # fmt: skip
    b_dtype = ab_dtype if b_dtype is None else b_dtype
    for name, value, kind in (("ab_dtype", ab_dtype, DType), ("b_dtype", b_dtype, DType), ("sf_dtype", sf_dtype, DType),
                              ("a_leading_mode", a_leading_mode, OperandMajorMode),
                              ("b_leading_mode", b_leading_mode, OperandMajorMode), ("cta_group", cta_group, CtaGroup),
                              ("a_source", a_source, OperandSource)):  # fmt: skip
        if not isinstance(value, kind):
            raise CuteError(f"{_WHAT}: {name} {value!r} is not a {kind.__name__}")
    if not (isinstance(mma_tiler_mn, tuple) and len(mma_tiler_mn) == 2):
        raise CuteError(f"{_WHAT}: mma_tiler_mn {mma_tiler_mn!r} must be (M, N), the tile of one multiply")
    if sf_vec_size not in (16, 32):
        raise CuteError(f"{_WHAT}: sf_vec_size {sf_vec_size!r} must be 16 or 32")
    if ab_dtype not in _FLOATS or b_dtype not in _FLOATS:
        raise CuteError(f"{_WHAT}: no block-scaled multiply of {ab_dtype!r} by {b_dtype!r}: floats of 8, 6 or 4 bits")
    if sf_dtype not in (Float8E8M0FNU, Float8E4M3FN):
        raise CuteError(f"{_WHAT}: sf_dtype {sf_dtype!r} must be Float8E8M0FNU or Float8E4M3FN")
    places = mma_tiler_mn, cta_group, a_source
    majors = a_leading_mode, b_leading_mode
    if ab_dtype == b_dtype == Float4E2M1FN:
        if majors != (OperandMajorMode.K, OperandMajorMode.K):
            raise CuteError(f"{_WHAT}: a_leading_mode, b_leading_mode {majors} must be K: {Float4E2M1FN} has no other")
        op: Any = tcgen05.MmaMXF4NVF4Op(sf_dtype, *places) if sf_vec_size == 16 else tcgen05.MmaMXF4Op(*places)
    else:
        op = tcgen05.MmaMXF8F6F4Op(ab_dtype, b_dtype, *places, *majors)
    return make_tiled_mma(op)
