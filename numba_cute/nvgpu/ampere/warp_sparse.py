# SPDX-License-Identifier: Apache-2.0
"""mma.sp: `warp_mma` with a structured sparse A, of which half is stored along K.

A's tensors and fragments are (M, K / 2), those of B (N, K). `compress` makes A's stored half and its metadata, and
`thr_mma.partition_E` gives a thread's words of it, which `tiled_mma.set(Field.METADATA, words)` hands to `cute.gemm`.
PTX mma.sp::ordered_metadata.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa
from ...atoms.op import Field, MmaTraits
from ...dtypes import DType
from ...isa.facts import fragment_layouts
from ...seam import frozen
from ..common.matrix import metadata_word, mma_traits
from ..common.sparse import SparseOp
from .warp_mma import BlockScaled, WarpMma

__all__ = [
    "MmaF16BF16SparseOp", "MmaF8F6F4SparseOp", "MmaFP8SparseOp", "MmaI4SparseOp", "MmaI8SparseOp",
    "MmaMXF4NVF4SparseOp", "MmaMXF4SparseOp", "MmaMXF8F6F4SparseOp", "MmaTF32SparseOp",
]  # fmt: skip


class SparseWarpMma(SparseOp, WarpMma):
    """Base of the sparse operations of a warp. selector: the group of lanes whose words of metadata count, of each four
    lanes the first (0), second, …"""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.METADATA)
    selector: Any = 0
    stored_rows = 16

    @property
    def stored_bits(self) -> int:
        return self._width()

    def traits(self) -> MmaTraits:
        return mma_traits(fragment_layouts.mma_sparse, self.shape_mnk[2], self._width())

    def more_operands(self, words: dict[str, Any]) -> tuple[Any, ...]:
        return (metadata_word(self, words), *super().more_operands(words))


@frozen
class MmaF16BF16SparseOp(SparseWarpMma):
    """Multiply a 2:4-sparse f16 or bf16 matrix A by a dense B, by a whole converged warp. PTX mma.sp, sm_80.

    ab_dtype, acc_dtype: as of `MmaF16BF16Op`. shape_mnk: (16, 8, 32) or (16, 8, 16). selector: which of each four lanes
    give the metadata: 0 or 1 the first or the second two (K 32), 0 to 3 that one (K 16). Raises CuteError for
    others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaF16BF16SparseOp(cute.Float16, cute.Float32)).shape_mnk
    (16, 8, 32)
    """

    ab_dtype: DType
    acc_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    selector: int = 0

    rows = (isa.mma_sp_f32, isa.mma_sp_f16)
    bits = 16


@frozen
class MmaTF32SparseOp(SparseWarpMma):
    """Multiply a 1:2-sparse tf32 matrix A by a dense B, accumulated in Float32, by a whole converged warp.
    PTX mma.sp, sm_80.

    shape_mnk: (16, 8, 16) or (16, 8, 8). selector: which of each four lanes give the metadata: 0 or 1 the first or the
    second two (K 16), 0 to 3 that one (K 8). Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaTF32SparseOp()).shape_mnk
    (16, 8, 16)
    """

    shape_mnk: tuple[int, int, int] = (16, 8, 16)
    selector: int = 0

    rows = (isa.mma_sp_f32,)
    bits = 32


@frozen
class MmaFP8SparseOp(SparseWarpMma):
    """Multiply a 2:4-sparse fp8 matrix A by a dense B, accumulated in Float32, by a whole converged warp.
    PTX mma.sp, sm_89.

    a_dtype, b_dtype: Float8E4M3FN or Float8E5M2, each its own. shape_mnk: (16, 8, 64). selector: 0, all lanes give the
    metadata. Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaFP8SparseOp(cute.Float8E4M3FN, cute.Float8E5M2)).shape_mnk
    (16, 8, 64)
    """

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 64)
    selector: int = 0

    rows = (isa.mma_sp_f32_fp8,)


@frozen
class MmaI8SparseOp(SparseWarpMma):
    """Multiply a 2:4-sparse matrix A of 8-bit integers by a dense B, accumulated in Int32, by a whole converged warp.
    PTX mma.sp, sm_80.

    a_dtype, b_dtype: Int8 or Uint8, each its own. shape_mnk: (16, 8, 64) or (16, 8, 32). saturate: clamp where the sum
    would wrap. selector: which of each four lanes give the metadata: 0 all (K 64); 0 or 1 the first or the second two
    (K 32). Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaI8SparseOp(cute.Int8, cute.Int8)).shape_mnk
    (16, 8, 64)
    """

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 64)
    saturate: bool = False
    selector: int = 0

    rows = (isa.mma_sp_s32,)
    bits = 8


@frozen
class MmaI4SparseOp(SparseWarpMma):
    """Multiply a sparse matrix A of 4-bit integers, of each four pairs of elements two stored, by a dense B,
    accumulated in Int32, by a whole converged warp. PTX mma.sp, sm_80.

    a_dtype, b_dtype: Int4 or Uint4, each its own. shape_mnk: (16, 8, 128) or (16, 8, 64). saturate: clamp where the sum
    would wrap. selector: which of each four lanes give the metadata: 0 all (K 128); 0 or 1 the first or the second two
    (K 64). Fragments of A and B are Uint32 words of 8 elements along K. Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaI4SparseOp(cute.Int4, cute.Int4)).shape_mnk
    (16, 8, 128)
    """

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 128)
    saturate: bool = False
    selector: int = 0

    rows = (isa.mma_sp_s32,)
    bits = 4


@frozen
class MmaF8F6F4SparseOp(SparseWarpMma):
    """Multiply a 2:4-sparse matrix A of 8-, 6- or 4-bit floats by a dense B, (16, 8, 64), by a whole converged warp.
    PTX mma.sp.kind::f8f6f4, sm_120f.

    a_dtype, b_dtype: each of the types of `MmaF8F6F4Op`, in a byte as there. acc_dtype: Float32 or Float16. Raises
    CuteError for others.

    >>> op = nvgpu.warp.MmaF8F6F4SparseOp(cute.Float8E4M3FN, cute.Float8E4M3FN, cute.Float32)
    >>> cute.make_mma_atom(op).shape_mnk
    (16, 8, 64)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType

    rows = (isa.mma_sp_f32_f8f6f4, isa.mma_sp_f16_f8f6f4)
    element_bits = 8


class SparseBlockScaled(SparseWarpMma, BlockScaled):
    """Base of the sparse operations with factors: Field.METADATA, and SFA and SFB as for `BlockScaled`. The factors go
    with the columns of the whole A, of which half are stored."""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.METADATA, Field.SFA, Field.SFB)


@frozen
class MmaMXF4SparseOp(SparseBlockScaled):
    """Multiply a sparse e2m1 matrix A, of each four pairs of elements two stored, by a dense B, with a factor for each
    64 columns, (16, 8, 128), by a whole converged warp. PTX mma.sp.kind::mxf4.block_scale, sm_120a.

    ab_dtype: Float4E2M1FN. acc_dtype: Float32. sf_type: Float8E8M0FNU, the factors' type, where `MmaMXF4Op` has them.
    Fragments of A and B are Uint32 words of 8 elements. Raises CuteError for other types.

    >>> op = nvgpu.warp.MmaMXF4SparseOp(cute.Float4E2M1FN, cute.Float32, cute.Float8E8M0FNU)
    >>> cute.make_mma_atom(op).shape_mnk
    (16, 8, 128)
    """

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    rows = (isa.mma_sp_mxf4,)


@frozen
class MmaMXF4NVF4SparseOp(SparseBlockScaled):
    """Multiply a sparse e2m1 matrix A, of each four pairs of elements two stored, by a dense B, with a factor for each
    32 columns, (16, 8, 128), by a whole converged warp. PTX mma.sp.kind::mxf4nvf4.block_scale, sm_120a.

    ab_dtype: Float4E2M1FN. acc_dtype: Float32. sf_type: Float8E4M3FN, the factors' type, where `MmaMXF4Op` has them.
    Fragments of A and B are Uint32 words of 8 elements. Raises CuteError for other types.

    >>> op = nvgpu.warp.MmaMXF4NVF4SparseOp(cute.Float4E2M1FN, cute.Float32, cute.Float8E4M3FN)
    >>> cute.make_mma_atom(op).shape_mnk
    (16, 8, 128)
    """

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    rows = (isa.mma_sp_mxf4nvf4,)
    fixed = {"vec": 4}


@frozen
class MmaMXF8F6F4SparseOp(SparseBlockScaled):
    """Multiply a 2:4-sparse matrix A of 8-, 6- or 4-bit floats by a dense B, with a factor for each row of 64 columns,
    (16, 8, 64), by a whole converged warp. PTX mma.sp.kind::mxf8f6f4.block_scale, sm_120f.

    a_dtype, b_dtype: each of the types of `MmaF8F6F4Op`, in a byte as there. acc_dtype: Float32. sf_type:
    Float8E8M0FNU, the factors' type, where `MmaMXF4Op` has them. Raises CuteError for other types.

    >>> op = nvgpu.warp.MmaMXF8F6F4SparseOp(cute.Float8E4M3FN, cute.Float8E4M3FN, cute.Float32, cute.Float8E8M0FNU)
    >>> cute.make_mma_atom(op).shape_mnk
    (16, 8, 64)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    sf_type: DType

    rows = (isa.mma_sp_mxf8f6f4,)
    element_bits = 8
