# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma with scale factors: products of matrices that have one for each block of K, in tensor memory."""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa
from ...atoms.op import Field
from ...dtypes import DType, Float8E4M3FN, Float8E8M0FNU
from ...isa.rows.tcgen05_cases import scaled_instruction
from ...seam import CuteError, frozen, known_as
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor
from ..common.by_row import Choice, form
from ..common.choices import CtaGroup, OperandMajorMode, OperandSource
from ..common.matrix import A_SRC, TILE
from .mma import GROUP, UnitMma

__all__ = [
    "MmaMXF4NVF4Op", "MmaMXF4Op", "MmaMXF8F6F4Op", "MmaMXF8Op", "SM103MmaMXF4NVF4Op", "SM103MmaMXF4Op",
]  # fmt: skip

FACTOR_TYPES = {"ue8m0": Float8E8M0FNU, "ue4m3": Float8E4M3FN}
SF = Choice("sf_dtype", ("sf",), FACTOR_TYPES)


@known_as("cute_nvgpu.tcgen05")
class ScaledMma(UnitMma):
    """Base of the operations with scale factors. `tiled_mma.set(Field.SFA, pointer)` and SFB say where those of the
    first row lie in tensor memory; so does a tensor with a factor's place for each instruction, (V, MMA_M, MMA_K)."""

    fields: ClassVar[tuple[Field, ...]] = (
        Field.ACCUMULATE, Field.NEGATE_A, Field.NEGATE_B, Field.SFA, Field.SFB, Field.COLLECTOR
    )  # fmt: skip
    rows = (isa.tcgen05_mma_scaled_ss, isa.tcgen05_mma_scaled_ts)

    @property
    def sf_vec_size(self) -> int:
        """The elements along K that have one factor."""
        return int(form(self)[1]["block"]) * self.sparsity

    @property
    def factor_type(self) -> DType:
        """The type of the factors."""
        return FACTOR_TYPES[form(self)[1]["sf"]]

    def word(self, part: Tensor) -> Any:
        return part.iterator

    def _told(self, statics: dict[str, Any], negated: tuple[bool, bool], words: dict[str, Any]) -> tuple[Any, Any]:
        (scale_a, id_a), (scale_b, id_b) = (
            self._factors(words["sfa"], Field.SFA),
            self._factors(words["sfb"], Field.SFB),
        )
        return scaled_instruction(statics, id_a, id_b, *negated), {"scale_a": scale_a, "scale_b": scale_b}

    def _factors(self, p: Any, field: Field) -> tuple[Any, int]:
        """The address of the scale factors, and the byte of its word at which they begin; the address has it in its
        upper two bits too, as CUTLASS has."""
        if p is None:
            raise CuteError(
                f"gemm: {type(self).__name__} needs scale factors; give tiled_mma.set(tcgen05.Field.{field.name}, "
                "pointer), or [a, sfa] and [b, sfb] in place of a and b"
            )
        right = isinstance(p, Pointer) and p.space is AddressSpace.tmem and p.dtype == self.factor_type
        if not right or type(p.offset) is not int:
            raise CuteError(
                f"gemm: Field.{field.name} {p!r} must be a pointer to {self.factor_type} in tensor memory, at a byte "
                "of its word that is known when the kernel is compiled"
            )
        return (p.address | p.offset << 30 if p.offset else p.address), p.offset


class PackedMma(ScaledMma):
    """Base of the operations of K-major e2m1 matrices."""

    packed: ClassVar[bool] = True
    choices = (SF, TILE, GROUP, A_SRC)
    a_major_mode = b_major_mode = OperandMajorMode.K


@frozen
class MmaMXF8Op(ScaledMma):
    """Multiply fp8 matrices of one type with an e8m0 factor for each 32 of a row, in Float32, by the matrix unit.
    One lane of a warp issues it.
    PTX tcgen05.mma.block_scale, sm_100f.

    ab_dtype: Float8E4M3FN or Float8E5M2. instruction_shape: (m, n, 32) or (m, n), m of all CTAs: 128 (n a multiple
    of 8 up to 256), of a pair 128 or 256 (of 16). cta_group: CtaGroup.ONE or TWO. a_src: SMEM or TMEM.
    a_major_mode, b_major_mode: K or MN; A in tensor memory is K, and each CTA's part of an MN-major B has a
    multiple of 16 of n. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaMXF8Op(cute.Float8E4M3FN, (128, 128, 32), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 32)
    """

    ab_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fixed = {"kind": "mxf8f6f4", "sparse": False, "vec": "block32"}
    bits = 8


@frozen
class MmaMXF8F6F4Op(ScaledMma):
    """Multiply matrices of floats of 8, 6 or 4 bits, each of its own type, with an e8m0 factor for each 32 of a
    row, in Float32, by the matrix unit. One lane of a warp issues it.
    PTX tcgen05.mma.block_scale, sm_100f.

    a_dtype, b_dtype: Float8E4M3FN, Float8E5M2, Float6E2M3FN, Float6E3M2FN or Float4E2M1FN. instruction_shape,
    cta_group, a_src, a_major_mode, b_major_mode: as for MmaMXF8Op. Elements narrower than a byte lie in shared
    memory as Uint8 tensors, 16 of them packed into the first bytes of each 16. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaMXF8F6F4Op(cute.Float8E4M3FN, cute.Float4E2M1FN, (128, 128, 32), ONE, SMEM, K, K)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 32)
    """

    a_dtype: DType
    b_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    fixed = {"kind": "mxf8f6f4", "sparse": False, "vec": "block32"}


@frozen
class MmaMXF4Op(PackedMma):
    """Multiply K-major e2m1 matrices with an e8m0 factor for each 32 of a row, in Float32, by the matrix unit. One
    lane of a warp issues it.
    PTX tcgen05.mma.block_scale, sm_100f.

    instruction_shape: (m, n, 64) or (m, n), and cta_group, a_src: as for MmaMXF8Op. Operands in shared memory are
    Float4E2M1FN tensors, two elements to a byte. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaMXF4Op((128, 128, 64), ONE, SMEM)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 64)
    """

    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource

    fixed = {"kind": "mxf4nvf4", "sparse": False, "k": 64, "vec": "block32"}


@frozen
class MmaMXF4NVF4Op(PackedMma):
    """Multiply K-major e2m1 matrices with a factor for each 16 of a row, in Float32, by the matrix unit. One lane
    of a warp issues it.
    PTX tcgen05.mma.block_scale, sm_100f.

    sf_dtype: the factors' type, Float8E4M3FN (whose sign is not used) or Float8E8M0FNU. instruction_shape,
    cta_group, a_src: as for MmaMXF4Op. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.MmaMXF4NVF4Op(cute.Float8E4M3FN, (128, 128, 64), ONE, SMEM)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 128, 64)
    """

    sf_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource

    fixed = {"kind": "mxf4nvf4", "sparse": False, "k": 64, "vec": "block16"}


@frozen
class SM103MmaMXF4Op(PackedMma):
    """Multiply as MmaMXF4Op, 96 elements along K at once. One lane of a warp issues it.
    PTX tcgen05.mma.block_scale, sm_103a.

    instruction_shape: (m, n, 96) or (m, n), and cta_group, a_src: as for MmaMXF4Op. Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.SM103MmaMXF4Op((128, 64, 96), ONE, SMEM)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 96)
    """

    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource

    fixed = {"kind": "mxf4nvf4", "sparse": False, "k": 96, "vec": "block32"}


@frozen
class SM103MmaMXF4NVF4Op(PackedMma):
    """Multiply as MmaMXF4NVF4Op, 96 elements along K at once. One lane of a warp issues it.
    PTX tcgen05.mma.block_scale, sm_103a.

    sf_dtype: as for MmaMXF4NVF4Op. instruction_shape: (m, n, 96) or (m, n), and cta_group, a_src: as for MmaMXF4Op.
    Raises CuteError for others.

    >>> K, SMEM, ONE = nvgpu.OperandMajorMode.K, nvgpu.OperandSource.SMEM, nvgpu.CtaGroup.ONE
    >>> op = nvgpu.tcgen05.SM103MmaMXF4NVF4Op(cute.Float8E4M3FN, (128, 64, 96), ONE, SMEM)
    >>> cute.make_mma_atom(op).shape_mnk
    (128, 64, 96)
    """

    sf_dtype: DType
    instruction_shape: tuple[int, ...]
    cta_group: CtaGroup
    a_src: OperandSource

    fixed = {"kind": "mxf4nvf4", "sparse": False, "k": 96, "vec": "block16"}
