# SPDX-License-Identifier: Apache-2.0
"""wgmma with a structured sparse A, of which half is stored along K.

A's tensors and fragments are (M, K / 2), those of B (N, K); instruction_shape is (64, n, K), K twice that of the dense
operation. `nvgpu.compress` makes A's stored half and its metadata, and `thr_mma.partition_E` gives a thread's words of
it, which `tiled_mma.set(Field.METADATA, words)` hands to `cute.gemm`; they must not change before the product is
waited for. PTX wgmma.mma_async.sp, sm_90a.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa
from ...atoms.op import Field, MmaTraits
from ...dtypes import DType
from ...isa.facts import fragment_layouts
from ...seam import frozen
from ..common.choices import OperandMajorMode, OperandSource
from ..common.matrix import metadata_word, mma_traits
from ..common.sparse import SparseOp
from .warpgroup_mma import WarpgroupMma

__all__ = ["MmaF16BF16SparseOp", "MmaF8SparseOp", "MmaI8SparseOp", "MmaTF32SparseOp"]


class SparseWarpgroupMma(SparseOp, WarpgroupMma):
    """Base of the sparse operations of a warpgroup. The product's sign is A's, Field.NEGATE_A."""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.NEGATE_A, Field.METADATA)
    stored_rows = 64

    @property
    def stored_bits(self) -> int:
        return self.a_type.width

    def traits(self) -> MmaTraits:
        _, n, k = self.instruction_shape
        return mma_traits(fragment_layouts.wgmma_sparse, n, k, 512 // k, self.a_src is OperandSource.RMEM)

    def more_operands(self, words: dict[str, Any]) -> tuple[Any, ...]:
        return (metadata_word(self, words),)


@frozen
class MmaF16BF16SparseOp(SparseWarpgroupMma):
    """Multiply a 2:4-sparse f16 or bf16 matrix A by a dense B, by a warpgroup. PTX wgmma.mma_async.sp, sm_90a.

    ab_dtype, acc_dtype, a_src, a_major_mode, b_major_mode: as of `MmaF16BF16Op`. instruction_shape: (64, n, 32) or
    (64, n). selector: 0 or 1, the pair of threads, of each four, that gives the metadata. Raises CuteError for others.

    >>> K, SMEM = nvgpu.warpgroup.OperandMajorMode.K, nvgpu.warpgroup.OperandSource.SMEM
    >>> op = nvgpu.warpgroup.MmaF16BF16SparseOp(cute.BFloat16, cute.Float32, (64, 128, 32), SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 128, 32)
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    selector: int = 0

    rows = (isa.wgmma_sp_ss, isa.wgmma_sp_f16_ss, isa.wgmma_sp_rs, isa.wgmma_sp_f16_rs)


@frozen
class MmaTF32SparseOp(SparseWarpgroupMma):
    """Multiply a 1:2-sparse tf32 matrix A by a dense B, accumulated in Float32, by a warpgroup.
    PTX wgmma.mma_async.sp, sm_90a.

    instruction_shape: (64, n, 16) or (64, n). a_src, a_major_mode, b_major_mode: as of `MmaTF32Op`. selector: 0 or 1,
    the pair of threads, of each four, that gives the metadata. Raises CuteError for others.

    >>> K, SMEM = nvgpu.warpgroup.OperandMajorMode.K, nvgpu.warpgroup.OperandSource.SMEM
    >>> op = nvgpu.warpgroup.MmaTF32SparseOp((64, 128, 16), SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 128, 16)
    """

    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    selector: int = 0

    rows = (isa.wgmma_sp_k_ss, isa.wgmma_sp_k_rs)
    bits = 32


@frozen
class MmaF8SparseOp(SparseWarpgroupMma):
    """Multiply a 2:4-sparse fp8 matrix A by a dense B, by a warpgroup. PTX wgmma.mma_async.sp, sm_90a.

    a_dtype, b_dtype, acc_dtype, a_src, a_major_mode, b_major_mode: as of `MmaF8Op`. instruction_shape: (64, n, 64) or
    (64, n). selector: 0, all threads give the metadata. Raises CuteError for others.

    >>> K, SMEM = nvgpu.warpgroup.OperandMajorMode.K, nvgpu.warpgroup.OperandSource.SMEM
    >>> op = nvgpu.warpgroup.MmaF8SparseOp(cute.Float8E4M3FN, cute.Float8E5M2, cute.Float32, (64, 128, 64), SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 128, 64)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    selector: int = 0

    rows = (isa.wgmma_sp_k_ss, isa.wgmma_sp_k_f16_ss, isa.wgmma_sp_k_rs, isa.wgmma_sp_k_f16_rs)
    bits = 8


@frozen
class MmaI8SparseOp(SparseWarpgroupMma):
    """Multiply a 2:4-sparse matrix A of 8-bit integers by a dense B, by a warpgroup. PTX wgmma.mma_async.sp, sm_90a.

    a_dtype, b_dtype, acc_dtype, a_src, a_major_mode, b_major_mode, saturate: as of `MmaI8Op`. instruction_shape:
    (64, n, 64) or (64, n). selector: 0, all threads give the metadata. Raises CuteError for others.

    >>> K, SMEM = nvgpu.warpgroup.OperandMajorMode.K, nvgpu.warpgroup.OperandSource.SMEM
    >>> op = nvgpu.warpgroup.MmaI8SparseOp(cute.Int8, cute.Int8, cute.Int32, (64, 128, 64), SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (64, 128, 64)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    saturate: bool = True
    selector: int = 0

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.METADATA)
    rows = (isa.wgmma_sp_s32_ss, isa.wgmma_sp_s32_rs)
