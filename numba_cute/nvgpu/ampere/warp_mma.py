# SPDX-License-Identifier: Apache-2.0
"""mma.sync: matrix multiply-accumulate by one warp, operands and accumulator in registers, complete when issued.

All 32 lanes call `cute.gemm`, converged. A is (M, K) and B (N, K), both as ldmatrix of K-major tiles gives them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa, layout, seam
from ...atoms.mma_atom import Field, MmaTraits, fragment_registers, operand_layout, register_fragment
from ...dtypes import (
    BFloat16,
    DType,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int32,
    TFloat32,
    Uint4,
    Uint8,
    Uint32,
)
from ...isa.facts import atoms
from ...layout import make_layout
from ...layout.pure import pure
from ...seam import CuteError, static
from ...tensor.tensor import Tensor, make_rmem_tensor
from ..operand_types import OneType, TwoTypes

__all__ = [
    "MXF8F6F4_SUPPORTED_PAIRS", "MmaB1Op", "MmaF16BF16Op", "MmaF64Op", "MmaF8F6F4Op", "MmaFP8Op", "MmaI4Op", "MmaI8Op",
    "MmaMXF4NVF4Op", "MmaMXF4Op", "MmaMXF8F6F4Op", "MmaMXF8Op", "MmaTF32Op",
]  # fmt: skip

FP8 = (Float8E4M3FN, Float8E5M2)
NARROW = (Float6E2M3FN, Float6E3M2FN, Float4E2M1FN)
MXF8F6F4_SUPPORTED_PAIRS = frozenset(
    (a, b)
    for a in (*FP8, *NARROW)
    for b in (*FP8, *NARROW)
    if not {a, b} <= set(FP8) and (a, b) != (Float4E2M1FN, Float4E2M1FN)
)
"""The types of A and B that `MmaMXF8F6F4Op` takes: `MmaMXF8Op` and `MmaMXF4Op` have the other two kinds."""


@pure
def _traits(m: int, k: int, width: int) -> MmaTraits:
    atom = atoms.mma_sync(m, k, width)
    return MmaTraits(atom.shape_mnk, make_layout(atom.threads), atom.a, atom.b, atom.c)


@pure
def _in_words(shape: Any, width: int) -> Any:
    """The layout of a fragment of `shape` in words of 32 bits."""
    return layout.recast_layout(32, width, operand_layout(shape, (1, 0, *range(2, len(shape) - 1))))


def _need(op: Any, ok: bool, name: str, rule: str) -> None:
    if not ok:
        raise CuteError(f"warp.{type(op).__name__}: {name} {getattr(op, name)!r} {rule}")


def _names(types: Any) -> str:
    return " or ".join(map(repr, types))


class WarpMma:
    """What the operations share. Each gives `a_type`, `b_type`, `accumulator` (element types), `shape_mnk` and
    `row()`: the instruction and its static parameters. Elements narrower than a byte have fragments of Uint32 words."""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE,)
    element_bits: ClassVar[int] = 0  # of an element in a register, where it is not the type's width
    sparsity: ClassVar[int] = 1  # of how many elements of A along K one is stored

    @property
    def accumulator(self) -> DType:
        """The type of C and D: the field `acc_dtype`, where an operation has that choice."""
        return self.acc_dtype  # type: ignore[attr-defined, no-any-return]

    def _width(self) -> int:
        return self.element_bits or self.a_type.width  # type: ignore[attr-defined, no-any-return]

    def _held(self, operand: str) -> DType:
        """The type of an operand's registers."""
        if operand == "C":
            return self.accumulator  # type: ignore[attr-defined, no-any-return]
        dtype = self.a_type if operand == "A" else self.b_type  # type: ignore[attr-defined]
        if self._width() == dtype.width and dtype.width >= 8:
            return dtype  # type: ignore[no-any-return]
        return Uint8 if self._width() == 8 else Uint32

    def traits(self) -> MmaTraits:
        m, _, k = self.shape_mnk  # type: ignore[attr-defined]
        return _traits(m, k, self._width())  # type: ignore[no-any-return]

    def fragment(self, operand: str, input: Any) -> Tensor:
        held = self._held(operand)
        if operand == "C" or self._width() >= 8:
            return register_fragment(operand, input, held)
        shape = input.shape if isinstance(input, Tensor) else input
        return make_rmem_tensor(_in_words(shape, self._width()), held)

    def _span(self, t: Tensor, operand: str, extent: int) -> seam.Regs:
        held, k = self._held(operand), self.shape_mnk[2]  # type: ignore[attr-defined]
        k //= self.sparsity if operand == "A" else 1
        elements = extent * (8 if operand == "C" else k) // 32
        count = elements * self._width() // 32 if held is Uint32 and operand != "C" else elements
        return fragment_registers(t, held, count, "d" if operand == "C" else operand.lower())

    def issue(self, d: Tensor, a: Tensor, b: Tensor, accumulate: Any, **words: Any) -> None:
        m = self.shape_mnk[0]  # type: ignore[attr-defined]
        acc = self._span(d, "C", m)
        if accumulate is not True:  # the instruction always adds
            backend = seam.current()
            backend.when(_not(accumulate), lambda: backend.fill(acc, self.accumulator(0)))  # type: ignore[attr-defined]
        row, statics = self.row()  # type: ignore[attr-defined]
        row(acc, self._span(a, "A", m), self._span(b, "B", 8), *self._more_operands(**words), **statics)

    def _more_operands(self) -> tuple[Any, ...]:
        return ()


def _not(flag: Any) -> Any:
    return not flag if isinstance(flag, (bool, int)) else seam.current().compare("==", flag, 0)


@static
class MmaF16BF16Op(OneType, WarpMma):
    """mma.sync of f16 or bf16 operands: ab_dtype Float16 or BFloat16; acc_dtype Float32, or Float16 for f16 operands;
    shape_mnk (16, 8, 8) or (16, 8, 16). A whole converged warp. PTX mma.sync, sm_80."""

    ab_dtype: DType
    acc_dtype: DType
    shape_mnk: tuple[int, int, int]

    def __post_init__(self) -> None:
        _need(self, self.ab_dtype in (Float16, BFloat16), "ab_dtype", "must be Float16 or BFloat16")
        accs = (Float32, Float16) if self.ab_dtype == Float16 else (Float32,)
        _need(self, self.acc_dtype in accs, "acc_dtype", f"must be {_names(accs)} for {self.ab_dtype}")
        _need(self, self.shape_mnk in ((16, 8, 8), (16, 8, 16)), "shape_mnk", "must be (16, 8, 8) or (16, 8, 16)")

    def row(self) -> tuple[Any, dict[str, Any]]:
        k, ab = self.shape_mnk[2], self.ab_dtype.ptx
        if self.acc_dtype == Float16:
            return isa.mma_f16, {"k": k}
        return isa.mma_f32, {"k": k, "a_type": ab, "b_type": ab}


@static
class MmaTF32Op(WarpMma):
    """mma.sync of tf32 operands (floats, whose 13 low bits are ignored), accumulated in Float32: shape_mnk (16, 8, 4)
    or (16, 8, 8). A whole converged warp. PTX mma.sync, sm_80."""

    shape_mnk: tuple[int, int, int]

    a_type: ClassVar[DType] = TFloat32
    b_type: ClassVar[DType] = TFloat32
    accumulator: ClassVar[DType] = Float32

    def __post_init__(self) -> None:
        _need(self, self.shape_mnk in ((16, 8, 4), (16, 8, 8)), "shape_mnk", "must be (16, 8, 4) or (16, 8, 8)")

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_f32, {"k": self.shape_mnk[2], "a_type": "tf32", "b_type": "tf32"}


@static
class MmaF64Op(WarpMma):
    """mma.sync of f64: shape_mnk (8, 8, 4), (16, 8, 4), (16, 8, 8) or (16, 8, 16). A whole converged warp.
    PTX mma.sync, sm_80; sm_90 with m 16."""

    shape_mnk: tuple[int, int, int] = (8, 8, 4)

    a_type: ClassVar[DType] = Float64
    b_type: ClassVar[DType] = Float64
    accumulator: ClassVar[DType] = Float64

    def __post_init__(self) -> None:
        legal = ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16))
        _need(self, self.shape_mnk in legal, "shape_mnk", f"must be one of {legal}")

    def row(self) -> tuple[Any, dict[str, Any]]:
        m, _, k = self.shape_mnk
        return (isa.mma_f64, {}) if m == 8 else (isa.mma_f64_m16, {"k": k})


@static
class MmaFP8Op(OneType, WarpMma):
    """mma.sync of fp8 operands of one type: ab_dtype Float8E4M3FN or Float8E5M2; acc_dtype Float32 or Float16;
    shape_mnk (16, 8, 16) or (16, 8, 32). A whole converged warp. PTX mma.sync, sm_89."""

    ab_dtype: DType
    acc_dtype: DType
    shape_mnk: tuple[int, int, int]

    def __post_init__(self) -> None:
        _need(self, self.ab_dtype in FP8, "ab_dtype", f"must be {_names(FP8)}")
        _need(self, self.acc_dtype in (Float32, Float16), "acc_dtype", "must be Float32 or Float16")
        _need(self, self.shape_mnk in ((16, 8, 16), (16, 8, 32)), "shape_mnk", "must be (16, 8, 16) or (16, 8, 32)")

    def row(self) -> tuple[Any, dict[str, Any]]:
        row = isa.mma_f16_fp8 if self.acc_dtype == Float16 else isa.mma_f32_fp8
        return row, {"k": self.shape_mnk[2], "a_type": self.ab_dtype.ptx, "b_type": self.ab_dtype.ptx}


@static
class MmaF8F6F4Op(TwoTypes, WarpMma):
    """mma.sync of 8-, 6- and 4-bit floats, each operand its own type: (16, 8, 32), accumulated in Float32 or Float16.
    Each element takes a byte (Uint8 fragments, but Float8 ones are themselves): a 6-bit one its bits 0 to 5, an e2m1
    its bits 2 to 5. A whole converged warp. PTX mma.sync.kind::f8f6f4, sm_120a."""

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 32)
    element_bits: ClassVar[int] = 8

    def __post_init__(self) -> None:
        for name in ("a_dtype", "b_dtype"):
            _need(self, getattr(self, name) in (*FP8, *NARROW), name, f"must be {_names((*FP8, *NARROW))}")
        _need(self, self.acc_dtype in (Float32, Float16), "acc_dtype", "must be Float32 or Float16")

    def row(self) -> tuple[Any, dict[str, Any]]:
        row = isa.mma_f16_f8f6f4 if self.acc_dtype == Float16 else isa.mma_f32_f8f6f4
        return row, {"a_type": self.a_dtype.ptx, "b_type": self.b_dtype.ptx}


class IntegerMma(TwoTypes, WarpMma):
    """What the operations on 8-bit and 4-bit integers share."""

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int]
    saturate: bool

    accumulator: ClassVar[DType] = Int32

    def _check(self, dtypes: tuple[DType, ...], legal: tuple[tuple[int, int, int], ...]) -> None:
        rule = f"must be {' or '.join(map(repr, dtypes))}"
        for name in ("a_dtype", "b_dtype"):
            _need(self, getattr(self, name) in dtypes, name, rule)
        _need(self, self.shape_mnk in legal, "shape_mnk", f"must be one of {legal}")
        _need(self, type(self.saturate) is bool, "saturate", "must be True or False")

    def row(self) -> tuple[Any, dict[str, Any]]:
        m, _, k = self.shape_mnk
        types = {"a_type": self.a_dtype.ptx, "b_type": self.b_dtype.ptx}
        return isa.mma_s32, {"m": m, "k": k, "saturate": self.saturate, **types}


@static
class MmaI8Op(IntegerMma):
    """mma.sync of 8-bit integers, accumulated in Int32: a_dtype, b_dtype Int8 or Uint8, each its own; shape_mnk
    (16, 8, 32), (16, 8, 16) or (8, 8, 16); saturate: clamp where it would wrap. A whole converged warp.
    PTX mma.sync, sm_80."""

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    saturate: bool = False

    def __post_init__(self) -> None:
        self._check((Int8, Uint8), ((16, 8, 32), (16, 8, 16), (8, 8, 16)))


@static
class MmaI4Op(IntegerMma):
    """mma.sync of 4-bit integers, accumulated in Int32: a_dtype, b_dtype Int4 or Uint4, each its own; shape_mnk
    (16, 8, 64), (16, 8, 32) or (8, 8, 32); saturate: clamp where it would wrap. Fragments of A and B are Uint32 words
    of 8 elements along K, the first in the low bits. A whole converged warp. PTX mma.sync, sm_80."""

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 64)
    saturate: bool = False

    element_bits: ClassVar[int] = 4

    def __post_init__(self) -> None:
        self._check((Int4, Uint4), ((16, 8, 64), (16, 8, 32), (8, 8, 32)))


@static
class MmaB1Op(WarpMma):
    """mma.sync of bits, counted in Int32: d[m, n] += the number of bits set in `bit_op` ("xor", "and") of row m of A
    and row n of B; shape_mnk (16, 8, 256), (16, 8, 128) or (8, 8, 128). Fragments of A and B are Uint32 words of 32
    bits along K, the first lowest. A whole converged warp. PTX mma.sync, sm_80."""

    shape_mnk: tuple[int, int, int] = (16, 8, 256)
    bit_op: str = "xor"

    a_type: ClassVar[DType] = Uint32
    b_type: ClassVar[DType] = Uint32
    accumulator: ClassVar[DType] = Int32
    element_bits: ClassVar[int] = 1

    def __post_init__(self) -> None:
        legal = ((16, 8, 256), (16, 8, 128), (8, 8, 128))
        _need(self, self.shape_mnk in legal, "shape_mnk", f"must be one of {legal}")
        _need(self, self.bit_op in ("xor", "and"), "bit_op", 'must be "xor" or "and"')

    def row(self) -> tuple[Any, dict[str, Any]]:
        m, _, k = self.shape_mnk
        return isa.mma_b1, {"m": m, "k": k, "op": self.bit_op}


class BlockScaled(WarpMma):
    """What the block-scaled operations share: `atom.set(Field.SFA, word)` and SFB give each lane's word of factors.

    A's factors of row r are in lane 4 * (r % 8) + r // 8, B's of row n in lane 4 * n; the first factor along K is in
    the low byte, and the other lanes' words are not used."""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.SFA, Field.SFB)
    accumulator: ClassVar[DType] = Float32

    def _more_operands(self, sfa: Any = None, sfb: Any = None) -> tuple[Any, ...]:
        for word, name in ((sfa, "SFA"), (sfb, "SFB")):
            if word is None:
                raise CuteError(f"gemm: {self!r} needs scale factors; give atom.set(warp.Field.{name}, word)")
        return Uint32(sfa), 0, 0, Uint32(sfb), 0, 0

    def _check_scaled(self, types: tuple[DType, ...], sf: tuple[DType, ...]) -> None:
        for name in ("ab_dtype", "a_dtype", "b_dtype"):
            if hasattr(self, name):
                _need(self, getattr(self, name) in types, name, f"must be {_names(types)}")
        _need(self, self.acc_dtype == Float32, "acc_dtype", "must be Float32")  # type: ignore[attr-defined]
        _need(self, self.sf_type in sf, "sf_type", f"must be {_names(sf)}")  # type: ignore[attr-defined]


@static
class MmaMXF4Op(BlockScaled):
    """mma.sync of e2m1 operands with a ue8m0 factor for each 32 of a row: (16, 8, 64), accumulated in Float32; see
    `BlockScaled` for the factors. Fragments of A and B are Uint32 words of 8 elements. A whole converged warp.
    PTX mma.sync.kind::mxf4.block_scale, sm_120a."""

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 64)
    a_type: ClassVar[DType] = Float4E2M1FN
    b_type: ClassVar[DType] = Float4E2M1FN

    def __post_init__(self) -> None:
        self._check_scaled((Float4E2M1FN,), (Float8E8M0FNU,))

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_mxf4, {"vec": 2}


@static
class MmaMXF4NVF4Op(BlockScaled):
    """`MmaMXF4Op` with a ue4m3 (Float8E4M3FN) factor for each 16 of a row.
    PTX mma.sync.kind::mxf4nvf4.block_scale, sm_120a."""

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 64)
    a_type: ClassVar[DType] = Float4E2M1FN
    b_type: ClassVar[DType] = Float4E2M1FN

    def __post_init__(self) -> None:
        self._check_scaled((Float4E2M1FN,), (Float8E4M3FN,))

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_mxf4nvf4, {"vec": 4}


@static
class MmaMXF8Op(OneType, BlockScaled):
    """mma.sync of e4m3 or e5m2 operands (one type) with a ue8m0 factor for each row of 32: (16, 8, 32), accumulated
    in Float32; see `BlockScaled` for the factors. A whole converged warp.
    PTX mma.sync.kind::mxf8f6f4.block_scale, sm_120a."""

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 32)

    def __post_init__(self) -> None:
        self._check_scaled(FP8, (Float8E8M0FNU,))

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_mxf8f6f4, {"a_type": self.ab_dtype.ptx, "b_type": self.ab_dtype.ptx}


@static
class MmaMXF8F6F4Op(TwoTypes, BlockScaled):
    """`MmaMXF8Op` of 8-, 6- and 4-bit operands, each its own type, not both of 8 bits (`MmaMXF8Op`) nor both e2m1
    (`MmaMXF4Op`). Each element takes a byte (Uint8 fragments): a 6-bit one its bits 0 to 5, an e2m1 its bits 2 to
    5."""

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    sf_type: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 32)
    element_bits: ClassVar[int] = 8

    def __post_init__(self) -> None:
        self._check_scaled((*FP8, *NARROW), (Float8E8M0FNU,))
        types = {self.a_dtype, self.b_dtype}
        _need(self, not types <= set(FP8), "b_dtype", "of 8 bits like a_dtype: use MmaMXF8Op")
        _need(self, types != {Float4E2M1FN}, "b_dtype", "is e2m1 like a_dtype: use MmaMXF4Op")

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_mxf8f6f4, {"a_type": self.a_dtype.ptx, "b_type": self.b_dtype.ptx}
