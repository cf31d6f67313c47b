# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma with a structured sparse A, of which half is stored along K.

A's tensors and fragments are (M, K / 2), those of B (N, K); instruction_shape is (m, n, K), K twice that of the dense
operation. `nvgpu.compress` makes A's stored half and its metadata, which lies in tensor memory: a word of Uint32 in
each lane for each 16- or 32-bit multiply, two neighbouring ones making a pair of columns, and two words for others.
`tiled_mma.set(Field.METADATA, pointer)` says where, or a tensor with a place for each instruction, (V, MMA_M, MMA_K).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...atoms.op import Field
from ...dtypes import DType, Uint32
from ...isa.facts.tensor_operands import container, metadata, metadata_columns
from ...seam import CuteError, frozen, known
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor
from ..common.choices import CtaGroup, OperandMajorMode, OperandSource
from ..common.sparse import SparseOp
from .mma import UnitMma
from .mma_scaled import PackedMma, ScaledMma

__all__ = [
    "MmaF16BF16SparseOp", "MmaF8F6F4SparseOp", "MmaFP8SparseOp", "MmaI8SparseOp", "MmaMXF4NVF4SparseOp",
    "MmaMXF4SparseOp", "MmaMXF8F6F4SparseOp", "MmaMXF8SparseOp", "MmaTF32SparseOp",
]  # fmt: skip


class SparseUnit(SparseOp, UnitMma):
    """Base of the sparse operations of the matrix unit."""

    fields: ClassVar[tuple[Field, ...]] = (*UnitMma.fields, Field.METADATA)

    @property
    def stored_rows(self) -> int:  # type: ignore[override]
        rows: int = self.shape_mnk[0]
        return rows

    @property
    def stored_bits(self) -> int:
        return int(container(self.a_type, self.packed))

    def metadata_places(self) -> tuple[Any, Any, tuple[int, ...]]:
        (m, _, k), ctas = self.shape_mnk, self.cta_group.value
        row = np.arange(m // ctas)
        lanes = row if m // ctas == 128 else row // 16 * 32 + row % 16
        lane, column, bit = metadata(lanes, k, self.stored_bits)
        shape = ctas, 128, metadata_columns(self.stored_bits)
        word = np.concatenate([(c * 128 + lane) * shape[2] + column for c in range(ctas)])
        return word, np.concatenate([bit] * ctas), shape

    def word(self, part: Tensor) -> Any:
        return part.iterator

    def _metadata(self, p: Any) -> tuple[Any, Any]:
        """The address of the metadata, from an even column on, and of which of two columns it is."""
        if p is None:
            raise CuteError(
                f"gemm: {type(self).__name__} needs A's metadata; give tiled_mma.set(tcgen05.Field.METADATA, pointer)"
            )
        if not isinstance(p, Pointer) or p.space is not AddressSpace.tmem or p.dtype != Uint32:
            raise CuteError(f"gemm: Field.METADATA {p!r} must be a pointer to Uint32 in tensor memory")
        at = known(p.address)
        if metadata_columns(self.stored_bits) == 1:
            return at & ~1 if isinstance(at, int) else at & 0xFFFFFFFE, at & 1
        return at, 0

    def _told(self, statics: dict[str, Any], negated: tuple[bool, bool], words: dict[str, Any]) -> tuple[Any, Any]:
        form, more = super()._told(statics, negated, words)
        meta, selector = self._metadata(words["metadata"])
        return form | selector, {**more, "meta": meta}


class SparseScaled(SparseUnit, ScaledMma):
    """Base of the sparse operations with scale factors."""

    fields: ClassVar[tuple[Field, ...]] = (*ScaledMma.fields, Field.METADATA)


@frozen
class MmaF16BF16SparseOp(SparseUnit):
    """Multiply a 2:4-sparse f16 or bf16 matrix A by a dense B, by the matrix unit. One lane of a warp issues it.
    PTX tcgen05.mma.sp, sm_100f.

    instruction_shape: (m, n, 32) or (m, n). The others: as for MmaF16BF16Op. Raises CuteError for others. ab_dtype,
    acc_dtype, cta_group, a_src, a_major_mode, b_major_mode.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaF16BF16SparseOp(cute.BFloat16, cute.Float32, (128, 128, 32), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 32)
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fields: ClassVar[tuple[Field, ...]] = (*SparseUnit.fields, Field.SCALE_D)
    fixed = {"kind": "f16", "sparse": True}


@frozen
class MmaTF32SparseOp(SparseUnit):
    """Multiply a 1:2-sparse tf32 matrix A by a dense B, accumulated in Float32, by the matrix unit. One lane of a warp
    issues it. PTX tcgen05.mma.sp, sm_100f.

    instruction_shape: (m, n, 16) or (m, n). cta_group, a_src, a_major_mode, b_major_mode: as for MmaTF32Op. Raises
    CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaTF32SparseOp((128, 64, 16), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 16)
    """

    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fields: ClassVar[tuple[Field, ...]] = (*SparseUnit.fields, Field.SCALE_D)
    fixed = {"kind": "tf32", "sparse": True}


@frozen
class MmaI8SparseOp(SparseUnit):
    """Multiply a 2:4-sparse matrix A of 8-bit integers by a dense B, by the matrix unit; sums are clamped to Int32. One
    lane of a warp issues it. PTX tcgen05.mma.sp, sm_100a.

    instruction_shape: (m, n, 64) or (m, n). ab_dtype, cta_group, a_src, a_major_mode, b_major_mode: as for MmaI8Op.
    Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaI8SparseOp(cute.Int8, (128, 64, 64), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 64)
    """

    ab_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fields: ClassVar[tuple[Field, ...]] = (
        Field.ACCUMULATE, Field.COLLECTOR, Field.DISABLED_LANES, Field.METADATA
    )  # fmt: skip
    saturates = True
    fixed = {"kind": "i8", "sparse": True}


@frozen
class MmaFP8SparseOp(SparseUnit):
    """Multiply a 2:4-sparse fp8 matrix A by a dense B of the same type, by the matrix unit. One lane of a warp issues
    it. PTX tcgen05.mma.sp, sm_100f.

    instruction_shape: (m, n, 64) or (m, n). ab_dtype, acc_dtype, cta_group, a_src, a_major_mode, b_major_mode: as for
    MmaFP8Op. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaFP8SparseOp(cute.Float8E4M3FN, cute.Float32, (128, 64, 64), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 64)
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fixed = {"kind": "f8f6f4", "sparse": True}
    bits = 8


@frozen
class MmaF8F6F4SparseOp(SparseUnit):
    """Multiply a 2:4-sparse matrix A of floats of 8, 6 or 4 bits by a dense B of such, each of its own type, by the
    matrix unit. One lane of a warp issues it. PTX tcgen05.mma.sp, sm_100f.

    instruction_shape: (m, n, 64) or (m, n). a_dtype, b_dtype, acc_dtype, cta_group, a_src, a_major_mode,
    b_major_mode: as
    for MmaF8F6F4Op. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> types = cute.Float8E4M3FN, cute.Float8E5M2, cute.Float32
    >>> op = nvgpu.tcgen05.MmaF8F6F4SparseOp(*types, (128, 64, 64), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 64)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fixed = {"kind": "f8f6f4", "sparse": True}


@frozen
class MmaMXF8SparseOp(SparseScaled):
    """Multiply a 2:4-sparse fp8 matrix A by a dense B of the same type, with an e8m0 factor for each 64 of a row, in
    Float32, by the matrix unit. One lane of a warp issues it. PTX tcgen05.mma.sp.block_scale, sm_100f.

    instruction_shape: (m, n, 64) or (m, n), m 128, of a pair 256. ab_dtype, cta_group, a_src, a_major_mode,
    b_major_mode: as for MmaMXF8Op. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaMXF8SparseOp(cute.Float8E4M3FN, (128, 64, 64), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 64)
    """

    ab_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fixed = {"kind": "mxf8f6f4", "sparse": True, "vec": "block32"}
    bits = 8


@frozen
class MmaMXF8F6F4SparseOp(SparseScaled):
    """Multiply a 2:4-sparse matrix A of floats of 8, 6 or 4 bits by a dense B of such, each of its own type, with an
    e8m0 factor for each 64 of a row, in Float32, by the matrix unit. One lane of a warp issues it.
    PTX tcgen05.mma.sp.block_scale, sm_100f.

    instruction_shape: (m, n, 64) or (m, n), m 128, of a pair 256. a_dtype, b_dtype, cta_group, a_src, a_major_mode,
    b_major_mode: as for MmaMXF8F6F4Op. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaMXF8F6F4SparseOp(cute.Float8E4M3FN, cute.Float8E5M2, (128, 64, 64), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 64)
    """

    a_dtype: DType
    b_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fixed = {"kind": "mxf8f6f4", "sparse": True, "vec": "block32"}


@frozen
class MmaMXF4SparseOp(SparseScaled, PackedMma):
    """Multiply a K-major e2m1 matrix A, of which of each 8 elements 2 pairs are stored, by a dense B, with an e8m0
    factor
    for each 64 of a row, in Float32, by the matrix unit. One lane of a warp issues it.
    PTX tcgen05.mma.sp.block_scale, sm_100a.

    instruction_shape: (m, n, 128) or (m, n), m 128, of a pair 256. cta_group, a_src: as for MmaMXF4Op. Raises CuteError
    for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaMXF4SparseOp((128, 64, 128), ONE, SMEM)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 128)
    """

    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource

    fixed = {"kind": "mxf4nvf4", "sparse": True, "vec": "block32"}


@frozen
class MmaMXF4NVF4SparseOp(SparseScaled, PackedMma):
    """Multiply a K-major e2m1 matrix A, of which of each 8 elements 2 pairs are stored, by a dense B, with a factor for
    each 32 of a row, in Float32, by the matrix unit. One lane of a warp issues it.
    PTX tcgen05.mma.sp.block_scale, sm_100a.

    instruction_shape: (m, n, 128) or (m, n), m 128, of a pair 256. sf_dtype, cta_group, a_src: as for MmaMXF4NVF4Op.
    Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaMXF4NVF4SparseOp(cute.Float8E4M3FN, (128, 64, 128), ONE, SMEM)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 128)
    """

    sf_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource

    fixed = {"kind": "mxf4nvf4", "sparse": True, "vec": "block16"}
