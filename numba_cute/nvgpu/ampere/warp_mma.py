# SPDX-License-Identifier: Apache-2.0
"""mma.sync: matrix multiply-accumulate by one warp, operands and accumulator in registers, complete when issued.

All 32 lanes call `cute.gemm`, converged. A is (M, K) and B (N, K), both as ldmatrix of K-major tiles gives them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa, layout, seam
from ...atoms.fragments import fragment_registers, operand_layout, partition_shape, register_fragment, side_by_side
from ...atoms.op import Field, MmaTraits
from ...dtypes import DType, Float4E2M1FN, Uint8, Uint32
from ...isa.facts import fragment_layouts
from ...layout.pure import pure
from ...seam import CuteError, frozen, known_as
from ...tensor.tensor import Tensor, make_rmem_tensor, recast_tensor
from ..common.by_row import Case, Choice, cases
from ..common.matrix import AB, ACC, SATURATE, SELECTOR, SF, SHAPE, A, B, RowMma, mma_traits

__all__ = [
    "MXF8F6F4_SUPPORTED_PAIRS", "MmaB1Op", "MmaF16BF16Op", "MmaF64Op", "MmaF8F6F4Op", "MmaFP8Op", "MmaI4Op", "MmaI8Op",
    "MmaMXF4NVF4Op", "MmaMXF4Op", "MmaMXF8F6F4Op", "MmaMXF8Op", "MmaTF32Op",
]  # fmt: skip


@pure
def _in_words(shape: Any, width: int) -> Any:
    """The layout of a fragment of `shape` in words of 32 bits."""
    return layout.recast_layout(32, width, operand_layout(shape, (1, 0, *range(2, len(shape) - 1))))


@known_as("cute_nvgpu.warp")
class WarpMma(RowMma):
    """Base of the operations of a warp. Elements narrower than a byte have fragments of Uint32 words."""

    choices = (AB, A, B, ACC, SHAPE, SF, SATURATE, Choice("bit_op", ("op",)), SELECTOR)
    element_bits: ClassVar[int] = 0
    """The width of an element in a register, if it is not the type's."""

    def _width(self) -> int:
        return self.element_bits or self.a_type.width

    def held(self, operand: str) -> DType:
        """Give the type of the registers of `operand` "A", "B" or "C"."""
        if operand == "C":
            return self.accumulator
        dtype = self.a_type if operand == "A" else self.b_type
        if self._width() == dtype.width and dtype.width >= 8:
            return dtype
        return Uint8 if self._width() == 8 else Uint32

    def traits(self) -> MmaTraits:
        m, _, k = self.shape_mnk
        return mma_traits(fragment_layouts.mma_sync, m, k, self._width())

    def fragment(self, operand: str, input: Tensor | tuple[Any, ...]) -> Tensor:
        held = self.held(operand)
        if operand == "C" or self._width() >= 8:
            return register_fragment(operand, input, held)
        return make_rmem_tensor(_in_words(partition_shape(operand, input), self._width()), held)

    def _span(self, t: Tensor, operand: str, extent: int) -> seam.Regs:
        held, k = self.held(operand), self.shape_mnk[2]
        k //= self.sparsity if operand == "A" else 1
        elements = extent * (8 if operand == "C" else k) // 32
        count = elements * self._width() // 32 if held is Uint32 and operand != "C" else elements
        if operand == "C":
            return fragment_registers(t, held, count, "d")
        return fragment_registers(side_by_side(t), held, count, operand.lower())

    def issue(self, d: Tensor, a: Tensor, b: Tensor, accumulate: Any, **words: Any) -> None:
        m = self.shape_mnk[0]
        acc = self._span(d, "C", m)
        if accumulate is not True:  # the instruction always adds
            backend = seam.current()
            backend.when(_not(accumulate), lambda: backend.fill(acc, self.accumulator(0)))
        row, statics = self.row()
        row(acc, self._span(a, "A", m), self._span(b, "B", 8), *self.more_operands(words), **statics)

    def more_operands(self, words: dict[str, Any]) -> tuple[Any, ...]:
        """Give the instruction's operands after A and B, from `words`, the values of the atom's fields."""
        return ()


def _not(flag: Any) -> Any:
    return not flag if isinstance(flag, (bool, int)) else seam.current().compare("==", flag, 0)


@frozen
class MmaF16BF16Op(WarpMma):
    """Multiply f16 or bf16 matrices by a whole converged warp. PTX mma.sync, sm_80.

    ab_dtype: Float16 or BFloat16. acc_dtype: Float32, or Float16 for f16 operands. shape_mnk: (16, 8, 8) or
    (16, 8, 16). Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16))).shape_mnk
    (16, 8, 16)
    """

    ab_dtype: DType
    acc_dtype: DType
    shape_mnk: tuple[int, int, int]

    rows = (isa.mma_f32, isa.mma_f16)
    bits = 16


@frozen
class MmaTF32Op(WarpMma):
    """Multiply tf32 matrices (floats, whose 13 low bits are ignored), accumulated in Float32, by a whole converged
    warp. PTX mma.sync, sm_80.

    shape_mnk: (16, 8, 4) or (16, 8, 8). Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaTF32Op((16, 8, 8))).shape_mnk
    (16, 8, 8)
    """

    shape_mnk: tuple[int, int, int]

    rows = (isa.mma_f32,)
    bits = 32


@frozen
class MmaF64Op(WarpMma):
    """Multiply f64 matrices by a whole converged warp. PTX mma.sync, sm_80; sm_90 with m 16.

    shape_mnk: (8, 8, 4), (16, 8, 4), (16, 8, 8) or (16, 8, 16). Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaF64Op((8, 8, 4))).shape_mnk
    (8, 8, 4)
    """

    shape_mnk: tuple[int, int, int] = (8, 8, 4)

    rows = (isa.mma_f64, isa.mma_f64_m16)


@frozen
class MmaFP8Op(WarpMma):
    """Multiply fp8 matrices of one type by a whole converged warp. PTX mma.sync, sm_89.

    ab_dtype: Float8E4M3FN or Float8E5M2. acc_dtype: Float32 or Float16. shape_mnk: (16, 8, 16) or (16, 8, 32). Raises
    CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaFP8Op(cute.Float8E4M3FN, cute.Float32, (16, 8, 32))).shape_mnk
    (16, 8, 32)
    """

    ab_dtype: DType
    acc_dtype: DType
    shape_mnk: tuple[int, int, int]

    rows = (isa.mma_f32_fp8, isa.mma_f16_fp8)


@frozen
class MmaF8F6F4Op(WarpMma):
    """Multiply matrices of 8-, 6- and 4-bit floats, (16, 8, 32), by a whole converged warp.
    PTX mma.sync.kind::f8f6f4, sm_120f.

    a_dtype, b_dtype: Float8E4M3FN, Float8E5M2, Float6E2M3FN, Float6E3M2FN or Float4E2M1FN, each its own. acc_dtype:
    Float32 or Float16. Each element takes a byte (Uint8 fragments, but Float8 ones are themselves): a 6-bit one its
    bits 0 to 5, an e2m1 its bits 2 to 5. Raises CuteError for other types.

    >>> cute.make_mma_atom(nvgpu.warp.MmaF8F6F4Op(cute.Float8E4M3FN, cute.Float4E2M1FN, cute.Float32)).shape_mnk
    (16, 8, 32)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType

    rows = (isa.mma_f32_f8f6f4, isa.mma_f16_f8f6f4)
    element_bits = 8


@frozen
class MmaI8Op(WarpMma):
    """Multiply matrices of 8-bit integers, accumulated in Int32, by a whole converged warp. PTX mma.sync, sm_80.

    a_dtype, b_dtype: Int8 or Uint8, each its own. shape_mnk: (16, 8, 32), (16, 8, 16) or (8, 8, 16). saturate: clamp
    where the sum would wrap. Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaI8Op(cute.Int8, cute.Int8, (16, 8, 32))).shape_mnk
    (16, 8, 32)
    """

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    saturate: bool = False

    rows = (isa.mma_s32,)
    bits = 8


@frozen
class MmaI4Op(WarpMma):
    """Multiply matrices of 4-bit integers, accumulated in Int32, by a whole converged warp. PTX mma.sync, sm_80.

    a_dtype, b_dtype: Int4 or Uint4, each its own. shape_mnk: (16, 8, 64), (16, 8, 32) or (8, 8, 32). saturate: clamp
    where the sum would wrap. Fragments of A and B are Uint32 words of 8 elements along K, the first in the low bits.
    Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaI4Op(cute.Int4, cute.Int4, (16, 8, 64))).shape_mnk
    (16, 8, 64)
    """

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 64)
    saturate: bool = False

    rows = (isa.mma_s32,)
    bits = 4


@frozen
class MmaB1Op(WarpMma):
    """Count bits in Int32 by a whole converged warp: d[m, n] += the number of bits set in `bit_op` of row m of A and
    row n of B. PTX mma.sync, sm_80.

    shape_mnk: (16, 8, 256), (16, 8, 128) or (8, 8, 128). bit_op: "xor" or "and". Fragments of A and B are Uint32 words
    of 32 bits along K, the first lowest. Raises CuteError for others.

    >>> cute.make_mma_atom(nvgpu.warp.MmaB1Op()).shape_mnk
    (16, 8, 256)
    """

    shape_mnk: tuple[int, int, int] = (16, 8, 256)
    bit_op: str = "xor"

    rows = (isa.mma_b1,)


class BlockScaled(WarpMma):
    """Base of the block-scaled operations: `atom.set(Field.SFA, word)` and SFB give each lane's word of factors.

    A's factors of row r are in lane 4 * (r % 8) + r // 8, B's of row n in lane 4 * n; the first factor along K is in
    the low byte, and the other lanes' words are not used."""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.SFA, Field.SFB)
    sf_type: DType

    def word(self, part: Tensor) -> Any:
        """Give a word of factors: one that is one, or one that those of a fragment make (stride 0 along the elements
        that share one), the first in the low byte."""
        if part.element_type.width != 8:
            return super().word(part)
        lay = layout.filter_zeros(part.layout)
        if part.element_type != self.sf_type or not 1 <= layout.size(lay) <= 4:
            raise CuteError(f"gemm: scale factors {part!r} must be 1 to 4 of {self.sf_type} for each instruction")
        held, word = recast_tensor(Tensor(part.iterator, lay), Uint8), Uint32(0)
        for i in range(layout.size(lay)):
            word = word | Uint32(held[i]) << 8 * i
        return word

    def more_operands(self, words: dict[str, Any]) -> tuple[Any, ...]:
        for name in ("sfa", "sfb"):
            if words[name] is None:
                raise CuteError(f"gemm: {self!r} needs scale factors; give atom.set(warp.Field.{name.upper()}, word)")
        return (*super().more_operands(words), Uint32(words["sfa"]), 0, 0, Uint32(words["sfb"]), 0, 0)


@frozen
class MmaMXF4Op(BlockScaled):
    """Multiply e2m1 matrices with a factor for each 32 of a row, (16, 8, 64), by a whole converged warp.
    PTX mma.sync.kind::mxf4.block_scale, sm_120f.

    ab_dtype: Float4E2M1FN. acc_dtype: Float32. sf_type: Float8E8M0FNU, the factors' type; each lane has a word of them,
    `atom.set(Field.SFA, word)` and SFB: of A's row r lane 4 * (r % 8) + r // 8, of B's row n lane 4 * n, the first
    along K in the low byte. Fragments of A and B are Uint32 words of 8 elements. Raises CuteError for other types.

    >>> op = nvgpu.warp.MmaMXF4Op(cute.Float4E2M1FN, cute.Float32, cute.Float8E8M0FNU)
    >>> cute.make_mma_atom(op).shape_mnk
    (16, 8, 64)
    """

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    rows = (isa.mma_mxf4,)


@frozen
class MmaMXF4NVF4Op(BlockScaled):
    """Multiply e2m1 matrices with a factor for each 16 of a row, (16, 8, 64), by a whole converged warp.
    PTX mma.sync.kind::mxf4nvf4.block_scale, sm_120f.

    ab_dtype: Float4E2M1FN. acc_dtype: Float32. sf_type: Float8E4M3FN, the factors' type, where `MmaMXF4Op` has them.
    Fragments of A and B are Uint32 words of 8 elements. Raises CuteError for other types.

    >>> op = nvgpu.warp.MmaMXF4NVF4Op(cute.Float4E2M1FN, cute.Float32, cute.Float8E4M3FN)
    >>> cute.make_mma_atom(op).shape_mnk
    (16, 8, 64)
    """

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    rows = (isa.mma_mxf4nvf4,)
    fixed = {"vec": 4}


@frozen
class MmaMXF8Op(BlockScaled):
    """Multiply fp8 matrices of one type with a factor for each row of 32, (16, 8, 32), by a whole converged warp.
    PTX mma.sync.kind::mxf8f6f4.block_scale, sm_120f.

    ab_dtype: Float8E4M3FN or Float8E5M2. acc_dtype: Float32. sf_type: Float8E8M0FNU, the factors' type, where
    `MmaMXF4Op` has them. Raises CuteError for other types.

    >>> op = nvgpu.warp.MmaMXF8Op(cute.Float8E4M3FN, cute.Float32, cute.Float8E8M0FNU)
    >>> cute.make_mma_atom(op).shape_mnk
    (16, 8, 32)
    """

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    rows = (isa.mma_mxf8f6f4,)
    bits = 8


@frozen
class MmaMXF8F6F4Op(BlockScaled):
    """Multiply matrices of 8-, 6- and 4-bit floats with a factor for each row of 32, (16, 8, 32), by a whole converged
    warp. PTX mma.sync.kind::mxf8f6f4.block_scale, sm_120f.

    a_dtype, b_dtype: each of the types of `MmaF8F6F4Op`, not both of 8 bits (`MmaMXF8Op`) nor both e2m1 (`MmaMXF4Op`).
    acc_dtype: Float32. sf_type: Float8E8M0FNU, the factors' type, where `MmaMXF4Op` has them. Each element takes a byte
    (Uint8 fragments): a 6-bit one its bits 0 to 5, an e2m1 its bits 2 to 5. Raises CuteError for other types.

    >>> op = nvgpu.warp.MmaMXF8F6F4Op(cute.Float8E4M3FN, cute.Float4E2M1FN, cute.Float32, cute.Float8E8M0FNU)
    >>> cute.make_mma_atom(op).shape_mnk
    (16, 8, 32)
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    sf_type: DType

    rows = (isa.mma_mxf8f6f4,)
    element_bits = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.a_dtype, self.b_dtype) not in MXF8F6F4_SUPPORTED_PAIRS:
            other = "MmaMXF8Op" if self.a_dtype.width == 8 else "MmaMXF4Op"
            raise CuteError(f"warp.MmaMXF8F6F4Op: b_dtype {self.b_dtype!r} is like a_dtype: use {other}")


def _mixed(case: Case) -> bool:
    """Return whether no other operation has these types."""
    a, b = A.of(case)[0], B.of(case)[0]
    return (a.width, b.width) != (8, 8) and (a, b) != (Float4E2M1FN, Float4E2M1FN)


MXF8F6F4_SUPPORTED_PAIRS = frozenset(
    (A.of(case)[0], B.of(case)[0]) for _, case in cases(MmaMXF8F6F4Op, "a_type", "b_type") if _mixed(case)
)
"""The types of A and B that `MmaMXF8F6F4Op` takes: `MmaMXF8Op` and `MmaMXF4Op` have the other two kinds."""
