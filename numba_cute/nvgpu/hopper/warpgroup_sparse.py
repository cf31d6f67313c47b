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
from ...atoms.mma_atom import Field, MmaTraits
from ...dtypes import BFloat16, DType, Float8E4M3FN, Float8E5M2, Float16, Float32, Int8, Int32, TFloat32, Uint8
from ...isa.facts import atoms
from ...layout import make_layout
from ...layout.pure import pure
from ...seam import static
from ..ampere.warp_sparse import metadata_word
from ..common import OperandMajorMode
from ..operand_types import OneType, TwoTypes
from .warpgroup_mma import OperandSource, WarpgroupMma, _need, _sign


@pure
def _traits(n: int, k: int, width: int, a_in_registers: bool) -> MmaTraits:
    atom = atoms.wgmma_sparse(n, k, width, a_in_registers)
    return MmaTraits(atom.shape_mnk, make_layout(atom.threads), atom.a, atom.b, atom.c, atom.sparsity)


class SparseWarpgroupMma(WarpgroupMma):
    """What the sparse operations share: `selector` 0 or 1 is the pair of threads, of each four, whose words count
    (8-bit operands have 0 alone: all count). The product's sign is A's, Field.NEGATE_A."""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.NEGATE_A, Field.METADATA)
    sparsity: ClassVar[int] = 2
    rows: ClassVar[int] = 64
    element_bits: ClassVar[int] = 0

    def traits(self) -> MmaTraits:
        _, n, k = self.instruction_shape
        return _traits(n, k, 512 // k, self.a_src is OperandSource.RMEM)  # type: ignore[no-any-return]

    def _check_sparse(self) -> None:
        self._check_shape()
        top = 1 if self.a_type.width >= 16 else 0  # type: ignore[attr-defined]
        ok = type(self.selector) is int and 0 <= self.selector <= top  # type: ignore[attr-defined]
        _need(self, ok, "selector", f"must be in [0, {top}] for {self.a_type}")  # type: ignore[attr-defined]

    def _more_operands(self, metadata: Any = None) -> tuple[Any, ...]:
        return (metadata_word(self, metadata),)

    def _signs(self, negate_a: Any, negate_b: Any) -> dict[str, int]:
        return {} if self.integer else {"scale_a": _sign(negate_a, "NEGATE_A")}


@static
class MmaF16BF16SparseOp(OneType, SparseWarpgroupMma):
    """`MmaF16BF16Op` with a 2:4-sparse A: (64, n, 32). PTX wgmma.mma_async.sp, sm_90a."""

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    selector: int = 0

    majors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _need(self, self.ab_dtype in (Float16, BFloat16), "ab_dtype", "must be Float16 or BFloat16")
        accs = (Float32, Float16) if self.ab_dtype == Float16 else (Float32,)
        _need(self, self.acc_dtype in accs, "acc_dtype", f"must be {' or '.join(map(repr, accs))} for {self.ab_dtype}")
        self._check_sparse()

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        half = self.acc_dtype == Float16
        statics: dict[str, Any] = {"trans_b": int(self.b_major_mode is OperandMajorMode.MN), "selector": self.selector}
        if not half:
            statics["ab"] = self.ab_dtype.ptx
        if rmem:
            return (isa.wgmma_sp_f16_rs if half else isa.wgmma_sp_rs), statics
        statics["trans_a"] = int(self.a_major_mode is OperandMajorMode.MN)
        return (isa.wgmma_sp_f16_ss if half else isa.wgmma_sp_ss), statics


@static
class MmaTF32SparseOp(SparseWarpgroupMma):
    """`MmaTF32Op` with a 1:2-sparse A: (64, n, 16). PTX wgmma.mma_async.sp, sm_90a."""

    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    selector: int = 0

    a_type: ClassVar[DType] = TFloat32
    b_type: ClassVar[DType] = TFloat32
    accumulator: ClassVar[DType] = Float32

    def __post_init__(self) -> None:
        self._check_sparse()

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        statics = {"a_type": "tf32", "b_type": "tf32", "selector": self.selector}
        return (isa.wgmma_sp_k_rs if rmem else isa.wgmma_sp_k_ss), statics


class _Pair(TwoTypes, SparseWarpgroupMma):
    """Operations with a type for each operand."""

    def _check_types(self, types: tuple[DType, ...], accs: tuple[DType, ...]) -> None:
        for name in ("a_dtype", "b_dtype"):
            _need(self, getattr(self, name) in types, name, f"must be {' or '.join(map(repr, types))}")
        _need(self, self.acc_dtype in accs, "acc_dtype", f"must be {' or '.join(map(repr, accs))}")  # type: ignore[attr-defined]
        self._check_sparse()

    def _statics(self) -> dict[str, Any]:
        types = {"a_type": self.a_type.ptx, "b_type": self.b_type.ptx}
        return {"selector": self.selector, **types}  # type: ignore[attr-defined]


@static
class MmaF8SparseOp(_Pair):
    """`MmaF8Op` with a 2:4-sparse A: (64, n, 64). PTX wgmma.mma_async.sp, sm_90a."""

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, ...]
    a_src: OperandSource
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K
    selector: int = 0

    def __post_init__(self) -> None:
        self._check_types((Float8E4M3FN, Float8E5M2), (Float32, Float16))

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        if self.acc_dtype == Float16:
            return (isa.wgmma_sp_k_f16_rs if rmem else isa.wgmma_sp_k_f16_ss), self._statics()
        return (isa.wgmma_sp_k_rs if rmem else isa.wgmma_sp_k_ss), self._statics()


@static
class MmaI8SparseOp(_Pair):
    """`MmaI8Op` with a 2:4-sparse A: (64, n, 64). PTX wgmma.mma_async.sp, sm_90a."""

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
    integer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_types((Int8, Uint8), (Int32,))
        _need(self, type(self.saturate) is bool, "saturate", "must be True or False")

    def row(self, rmem: bool) -> tuple[Any, dict[str, Any]]:
        statics = {**self._statics(), "saturate": self.saturate}
        return (isa.wgmma_sp_s32_rs if rmem else isa.wgmma_sp_s32_ss), statics


__all__ = ["MmaF8SparseOp", "MmaF16BF16SparseOp", "MmaI8SparseOp", "MmaTF32SparseOp"]
