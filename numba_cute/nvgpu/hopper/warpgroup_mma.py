# SPDX-License-Identifier: Apache-2.0
"""The matrix operations of `warpgroup`: wgmma by a warpgroup (128 threads), B and perhaps A in shared memory."""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa
from ...atoms.mma_atom import Field, MmaTraits, fragment_registers, register_fragment
from ...dtypes import BFloat16, DType, Float8E4M3FN, Float8E5M2, Float16, Float32, Int8, Int32, TFloat32, Uint8
from ...isa.facts import atoms
from ...layout import make_layout
from ...layout.pure import pure
from ...seam import CuteError, StaticEnum, static
from ...tensor.tensor import Tensor
from ..common import OperandMajorMode
from ..operand_types import OneType, TwoTypes
from .descriptor import SmemDescriptor, descriptor_tensor

__all__ = ["MmaB1Op", "MmaF16BF16Op", "MmaF8Op", "MmaI8Op", "MmaTF32Op", "OperandSource"]


class OperandSource(StaticEnum):
    """Where an operand lies: registers or shared memory."""

    RMEM = "rmem"
    SMEM = "smem"


@pure
def _traits(n: int, k: int, width: int, a_in_registers: bool) -> MmaTraits:
    atom = atoms.wgmma(n, k, width, a_in_registers)
    return MmaTraits(atom.shape_mnk, make_layout(atom.threads), atom.a, atom.b, atom.c)


def _need(op: Any, ok: bool, name: str, rule: str) -> None:
    if not ok:
        raise CuteError(f"warpgroup.{type(op).__name__}: {name} {getattr(op, name)!r} {rule}")


class WarpgroupMma:
    """What the operations share. Each has `instruction_shape`, `a_src`, `a_major_mode` and `b_major_mode`, gives
    `a_type`, `b_type`, `accumulator` (element types), and `row(rmem, …)`: the instruction and its static parameters.
    A in registers has no major mode: what `a_major_mode` says then is not used."""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.NEGATE_A, Field.NEGATE_B)
    asynchronous: ClassVar[bool] = True
    majors: ClassVar[bool] = False  # whether operands in shared memory may be MN-major
    integer: ClassVar[bool] = False
    sparsity: ClassVar[int] = 1  # of how many elements of A along K one is stored
    elements_in: ClassVar[int] = 1  # how many of the instruction's elements an element of a tensor holds

    instruction_shape: Any
    a_src: Any
    a_major_mode: Any
    b_major_mode: Any

    @property
    def accumulator(self) -> DType:
        """The type of C and D: the field `acc_dtype`, where an operation has that choice."""
        return self.acc_dtype  # type: ignore[attr-defined, no-any-return]

    @property
    def shape_mnk(self) -> tuple[int, ...]:
        *mn, k = self.instruction_shape
        return (*mn, k // self.elements_in)

    def _check_shape(self) -> None:
        """instruction_shape, a_src and the major modes; it completes (64, n) by k."""
        s, k = self.instruction_shape, 256 * self.sparsity * self.elements_in // self.a_type.width  # type: ignore[attr-defined]
        ok = isinstance(s, tuple) and len(s) in (2, 3) and all(type(x) is int for x in s)
        _need(self, ok and s[0] == 64 and s[2:] in ((), (k,)), "instruction_shape", f"must be (64, n, {k})")
        steps = (8, 16, 24, *range(32, 257, 16)) if self.integer else range(8, 257, 8)
        rule = "8, 16, 24, or a multiple of 16 in [32, 256]" if self.integer else "a multiple of 8 in [8, 256]"
        _need(self, s[1] in steps, "instruction_shape", f"must have n {rule}")
        source = isinstance(self.a_src, OperandSource)
        _need(self, source, "a_src", "must be OperandSource.SMEM or OperandSource.RMEM")
        for name in ("a_major_mode", "b_major_mode"):
            mode = getattr(self, name)
            _need(self, isinstance(mode, OperandMajorMode), name, "must be OperandMajorMode.K or .MN")
            only = self.majors or mode is OperandMajorMode.K
            _need(self, only, name, f"must be K: wgmma reads operands of {self.a_type} K-major alone")  # type: ignore[attr-defined]
        object.__setattr__(self, "instruction_shape", (*s[:2], k))

    def traits(self) -> MmaTraits:
        _, n, k = self.shape_mnk
        return _traits(n, k, 256 // k, self.a_src is OperandSource.RMEM)  # type: ignore[no-any-return]

    def fragment(self, operand: str, input: Any) -> Tensor:
        what = f"make_fragment_{operand}"
        if operand == "C":
            return register_fragment("C", input, self.accumulator)  # type: ignore[attr-defined]
        dtype = self.a_type if operand == "A" else self.b_type  # type: ignore[attr-defined]
        if operand == "A" and self.a_src is OperandSource.RMEM:
            return register_fragment("A", input, dtype)
        if not isinstance(input, Tensor):
            raise CuteError(f"{what}: {input!r} must be a partitioned tensor in shared memory")
        if not _reads(input.element_type, dtype):
            raise CuteError(f"{what}: elements are {input.element_type}, but the operation takes {dtype}")
        return descriptor_tensor(input, self.a_major_mode if operand == "A" else self.b_major_mode, what)

    def issue(
        self, d: Tensor, a: Tensor, b: Tensor, accumulate: Any, negate_a: Any = False, negate_b: Any = False,
        **words: Any,
    ) -> None:  # fmt: skip
        n = self.instruction_shape[1]
        acc = fragment_registers(d, self.accumulator, n // 2, "d")  # type: ignore[attr-defined]
        b_word = _descriptor(b, "b")
        rmem = self.a_src is OperandSource.RMEM
        held = 128 // self.a_type.width  # type: ignore[attr-defined]
        first = fragment_registers(a, self.a_type, held, "a") if rmem else _descriptor(a, "a")  # type: ignore[attr-defined]
        row, statics = self.row(rmem)  # type: ignore[attr-defined]
        statics = {"n": n, **statics, **self._signs(negate_a, negate_b)}
        row(acc, first, b_word, *self._more_operands(**words), accumulate, **statics)

    def _signs(self, negate_a: Any, negate_b: Any) -> dict[str, int]:
        if self.integer:
            return {}
        return {"scale_a": _sign(negate_a, "NEGATE_A"), "scale_b": _sign(negate_b, "NEGATE_B")}

    def _more_operands(self) -> tuple[Any, ...]:
        return ()


def _reads(element: DType, dtype: DType) -> bool:
    """Whether shared memory of `element`s is what an operand of `dtype` is read from: tf32 are floats."""
    return element == dtype or (dtype == TFloat32 and element == Float32)


def _sign(negate: Any, name: str) -> int:
    if type(negate) is not bool:
        raise CuteError(f"gemm: Field.{name} {negate!r} must be True or False, known when the kernel is compiled")
    return -1 if negate else 1


@static
class MmaF16BF16Op(OneType, WarpgroupMma):
    """wgmma of f16 or bf16 operands: (64, n, 16), n a multiple of 8 up to 256.

    ab_dtype: Float16 or BFloat16. acc_dtype: Float32, or Float16 for f16 operands. instruction_shape: (64, n, 16) or
    (64, n). a_src: where A lies; from registers it is K-major. PTX wgmma.mma_async, sm_90a.
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode
    b_major_mode: OperandMajorMode

    majors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _need(self, self.ab_dtype in (Float16, BFloat16), "ab_dtype", "must be Float16 or BFloat16")
        accs = (Float32, Float16) if self.ab_dtype == Float16 else (Float32,)
        rule = f"must be {' or '.join(map(repr, accs))} for {self.ab_dtype}"
        _need(self, self.acc_dtype in accs, "acc_dtype", rule)
        self._check_shape()

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        half = self.acc_dtype == Float16
        statics: dict[str, Any] = {"trans_b": int(self.b_major_mode is OperandMajorMode.MN)}
        if not half:
            statics["ab"] = self.ab_dtype.ptx
        if rmem:
            return (isa.wgmma_f16_rs if half else isa.wgmma_rs), statics
        statics["trans_a"] = int(self.a_major_mode is OperandMajorMode.MN)
        return (isa.wgmma_f16_ss if half else isa.wgmma_ss), statics


@static
class MmaTF32Op(WarpgroupMma):
    """wgmma of tf32 operands (floats, whose 13 low bits are ignored): (64, n, 8), n a multiple of 8 up to 256,
    accumulated in Float32. Both K-major. PTX wgmma.mma_async, sm_90a."""

    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    a_type: ClassVar[DType] = TFloat32
    b_type: ClassVar[DType] = TFloat32
    accumulator: ClassVar[DType] = Float32

    def __post_init__(self) -> None:
        self._check_shape()

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        return (isa.wgmma_k_rs if rmem else isa.wgmma_k_ss), {"a_type": "tf32", "b_type": "tf32"}


@static
class MmaF8Op(TwoTypes, WarpgroupMma):
    """wgmma of fp8 operands: (64, n, 32), n a multiple of 8 up to 256.

    a_dtype, b_dtype: Float8E4M3FN or Float8E5M2, each its own. acc_dtype: Float32 or Float16. Both K-major.
    PTX wgmma.mma_async, sm_90a. The hardware keeps fewer bits of its sums than Float32 has.
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    def __post_init__(self) -> None:
        for name in ("a_dtype", "b_dtype"):
            _need(self, getattr(self, name) in (Float8E4M3FN, Float8E5M2), name, "must be Float8E4M3FN or Float8E5M2")
        _need(self, self.acc_dtype in (Float32, Float16), "acc_dtype", "must be Float32 or Float16")
        self._check_shape()

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        half = self.acc_dtype == Float16
        from_registers, from_smem = (
            (isa.wgmma_k_f16_rs, isa.wgmma_k_f16_ss) if half else (isa.wgmma_k_rs, isa.wgmma_k_ss)
        )
        return (from_registers if rmem else from_smem), {"a_type": self.a_dtype.ptx, "b_type": self.b_dtype.ptx}


@static
class MmaI8Op(TwoTypes, WarpgroupMma):
    """wgmma of 8-bit integers, accumulated in Int32: (64, n, 32), n 8, 16, 24 or a multiple of 16 up to 256.

    a_dtype, b_dtype: Int8 or Uint8, each its own. saturate: clamp (as the CuTe DSL does) or wrap. Both K-major.
    PTX wgmma.mma_async, sm_90a.
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    saturate: bool = True

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE,)
    integer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("a_dtype", "b_dtype"):
            _need(self, getattr(self, name) in (Int8, Uint8), name, "must be Int8 or Uint8")
        _need(self, self.acc_dtype == Int32, "acc_dtype", "must be Int32")
        _need(self, type(self.saturate) is bool, "saturate", "must be True or False")
        self._check_shape()

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        types = {"a_type": self.a_dtype.ptx, "b_type": self.b_dtype.ptx, "saturate": self.saturate}
        return (isa.wgmma_s32_rs if rmem else isa.wgmma_s32_ss), types


@static
class MmaB1Op(WarpgroupMma):
    """wgmma of bits, counted in Int32: d[m, n] is the number of bits set in both row m of A and row n of B, of 256
    along K; (64, n, 256), n 8, 16, 24 or a multiple of 16 up to 256. Operands are Uint8 tensors of 8 bits an element,
    (M, K / 8) and (N, K / 8), the first bit lowest; `shape_mnk` counts bytes along K. Both K-major.
    PTX wgmma.mma_async.and.popc, sm_90a.
    """

    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE,)
    integer: ClassVar[bool] = True
    elements_in: ClassVar[int] = 8
    a_type: ClassVar[DType] = Uint8
    b_type: ClassVar[DType] = Uint8
    accumulator: ClassVar[DType] = Int32

    def __post_init__(self) -> None:
        self._check_shape()

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        return (isa.wgmma_b1_rs if rmem else isa.wgmma_b1_ss), {}


def _descriptor(t: Tensor, name: str) -> Any:
    if not isinstance(t.iterator, SmemDescriptor):
        raise CuteError(f"gemm: {name} {t!r} is not a fragment; take make_fragment_{name.upper()}(partitioned tensor)")
    return t.iterator.word()
