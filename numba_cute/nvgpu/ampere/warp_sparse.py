# SPDX-License-Identifier: Apache-2.0
"""mma.sp: `warp_mma` with a structured sparse A, of which half is stored along K.

A's tensors and fragments are (M, K / 2), those of B (N, K). `compress` makes A's stored half and its metadata, and
`thr_mma.partition_E` gives a thread's words of it, which `tiled_mma.set(Field.METADATA, words)` hands to `cute.gemm`.
PTX mma.sp::ordered_metadata.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa
from ...atoms.mma_atom import Field, MmaTraits
from ...dtypes import (
    BFloat16,
    DType,
    Float4E2M1FN,
    Float8E4M3FN,
    Float8E8M0FNU,
    Float16,
    Float32,
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
from ..operand_types import OneType, TwoTypes
from .warp_mma import FP8, NARROW, BlockScaled, WarpMma, _names, _need

__all__ = [
    "MmaF16BF16SparseOp", "MmaF8F6F4SparseOp", "MmaFP8SparseOp", "MmaI4SparseOp", "MmaI8SparseOp",
    "MmaMXF4NVF4SparseOp", "MmaMXF4SparseOp", "MmaMXF8F6F4SparseOp", "MmaTF32SparseOp",
]  # fmt: skip


@pure
def _traits(k: int, width: int) -> MmaTraits:
    atom = atoms.mma_sparse(k, width)
    return MmaTraits(atom.shape_mnk, make_layout(atom.threads), atom.a, atom.b, atom.c, atom.sparsity)


def metadata_word(op: Any, metadata: Any) -> Any:
    """The word of metadata that a sparse operation needs."""
    if metadata is None:
        raise CuteError(f"gemm: {op!r} needs A's metadata; give tiled_mma.set(Field.METADATA, words)")
    return Uint32(metadata)


class SparseWarpMma(WarpMma):
    """What the sparse operations share: `selector` is the group of lanes whose words count, of each four lanes the
    first (0), second, …"""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.METADATA)
    sparsity: ClassVar[int] = 2
    rows: ClassVar[int] = 16

    def traits(self) -> MmaTraits:
        return _traits(self.shape_mnk[2], self._width())  # type: ignore[attr-defined, no-any-return]

    def _more_operands(self, metadata: Any = None) -> tuple[Any, ...]:
        return (metadata_word(self, metadata),)

    def _check(self, *ks: int) -> None:
        legal = tuple((16, 8, k) for k in ks)
        _need(self, self.shape_mnk in legal, "shape_mnk", f"must be {_names(legal)}")  # type: ignore[attr-defined]
        width = self._width()
        count = 512 // (self.shape_mnk[2] * width) * (2 if width >= 16 else 1)  # type: ignore[attr-defined]
        ok = type(self.selector) is int and 0 <= self.selector < count  # type: ignore[attr-defined]
        _need(self, ok, "selector", f"must be in [0, {count - 1}] for K {self.shape_mnk[2]}")  # type: ignore[attr-defined]


@static
class MmaF16BF16SparseOp(OneType, SparseWarpMma):
    """`MmaF16BF16Op` with a 2:4-sparse A: shape_mnk (16, 8, 32), selector 0 or 1, or (16, 8, 16), selector 0 to 3. A
    whole converged warp. PTX mma.sp, sm_80."""

    ab_dtype: DType
    acc_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 32)
    selector: int = 0

    def __post_init__(self) -> None:
        _need(self, self.ab_dtype in (Float16, BFloat16), "ab_dtype", "must be Float16 or BFloat16")
        accs = (Float32, Float16) if self.ab_dtype == Float16 else (Float32,)
        _need(self, self.acc_dtype in accs, "acc_dtype", f"must be {_names(accs)} for {self.ab_dtype}")
        self._check(32, 16)

    def row(self) -> tuple[Any, dict[str, Any]]:
        statics, ab = {"k": self.shape_mnk[2], "selector": self.selector}, self.ab_dtype.ptx
        if self.acc_dtype == Float16:
            return isa.mma_sp_f16, statics
        return isa.mma_sp_f32, {**statics, "a_type": ab, "b_type": ab}


@static
class MmaTF32SparseOp(SparseWarpMma):
    """`MmaTF32Op` with a 1:2-sparse A: shape_mnk (16, 8, 16), selector 0 or 1, or (16, 8, 8), selector 0 to 3. A whole
    converged warp. PTX mma.sp, sm_80."""

    shape_mnk: tuple[int, int, int] = (16, 8, 16)
    selector: int = 0

    a_type: ClassVar[DType] = TFloat32
    b_type: ClassVar[DType] = TFloat32
    accumulator: ClassVar[DType] = Float32

    def __post_init__(self) -> None:
        self._check(16, 8)

    def row(self) -> tuple[Any, dict[str, Any]]:
        types = {"a_type": "tf32", "b_type": "tf32"}
        return isa.mma_sp_f32, {"k": self.shape_mnk[2], "selector": self.selector, **types}


class _Pair(TwoTypes, SparseWarpMma):
    """Operations with a type for each operand."""

    def _check_types(self, types: tuple[DType, ...]) -> None:
        for name in ("a_dtype", "b_dtype"):
            _need(self, getattr(self, name) in types, name, f"must be {_names(types)}")

    def _statics(self) -> dict[str, Any]:
        types = {"a_type": self.a_type.ptx, "b_type": self.b_type.ptx}
        return {"k": self.shape_mnk[2], "selector": self.selector, **types}  # type: ignore[attr-defined]


@static
class MmaFP8SparseOp(_Pair):
    """mma.sp of e4m3 or e5m2 operands, each its own, accumulated in Float32: (16, 8, 64), A 2:4-sparse. A whole
    converged warp. PTX mma.sp, sm_89."""

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 64)
    selector: int = 0

    accumulator: ClassVar[DType] = Float32

    def __post_init__(self) -> None:
        self._check_types(FP8)
        self._check(64)

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_sp_f32_fp8, self._statics()


@static
class MmaI8SparseOp(_Pair):
    """`MmaI8Op` with a 2:4-sparse A: shape_mnk (16, 8, 64), or (16, 8, 32), selector 0 or 1. A whole converged warp.
    PTX mma.sp, sm_80."""

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 64)
    saturate: bool = False
    selector: int = 0

    accumulator: ClassVar[DType] = Int32

    def __post_init__(self) -> None:
        self._check_types((Int8, Uint8))
        _need(self, type(self.saturate) is bool, "saturate", "must be True or False")
        self._check(64, 32)

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_sp_s32, {**self._statics(), "saturate": self.saturate}


@static
class MmaI4SparseOp(_Pair):
    """`MmaI4Op` with a sparse A, of each four pairs of elements two stored: shape_mnk (16, 8, 128), or (16, 8, 64),
    selector 0 or 1. Fragments of A and B are Uint32 words of 8 elements along K. A whole converged warp.
    PTX mma.sp, sm_80."""

    a_dtype: DType
    b_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 128)
    saturate: bool = False
    selector: int = 0

    accumulator: ClassVar[DType] = Int32
    element_bits: ClassVar[int] = 4

    def __post_init__(self) -> None:
        self._check_types((Int4, Uint4))
        _need(self, type(self.saturate) is bool, "saturate", "must be True or False")
        self._check(128, 64)

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_sp_s32, {**self._statics(), "saturate": self.saturate}


@static
class MmaF8F6F4SparseOp(_Pair):
    """`MmaF8F6F4Op` with a 2:4-sparse A: (16, 8, 64), accumulated in Float32 or Float16; each element takes a byte. A
    whole converged warp. PTX mma.sp.kind::f8f6f4, sm_120a."""

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 64)
    selector: ClassVar[int] = 0
    element_bits: ClassVar[int] = 8

    def __post_init__(self) -> None:
        self._check_types((*FP8, *NARROW))
        _need(self, self.acc_dtype in (Float32, Float16), "acc_dtype", "must be Float32 or Float16")

    def row(self) -> tuple[Any, dict[str, Any]]:
        return (isa.mma_sp_f16_f8f6f4 if self.acc_dtype == Float16 else isa.mma_sp_f32_f8f6f4), self._statics()


class SparseBlockScaled(SparseWarpMma, BlockScaled):
    """What the sparse operations with factors share: Field.METADATA, and SFA and SFB as for `BlockScaled`. The factors
    go with the columns of the whole A, of which half are stored."""

    fields: ClassVar[tuple[Field, ...]] = (Field.ACCUMULATE, Field.METADATA, Field.SFA, Field.SFB)
    accumulator: ClassVar[DType] = Float32
    selector: ClassVar[int] = 0

    def _more_operands(self, metadata: Any = None, sfa: Any = None, sfb: Any = None) -> tuple[Any, ...]:
        return (metadata_word(self, metadata), *BlockScaled._more_operands(self, sfa, sfb))


@static
class MmaMXF4SparseOp(SparseBlockScaled):
    """`MmaMXF4Op` with a sparse A, of each four pairs of elements two stored: (16, 8, 128), a ue8m0 factor for each 64
    columns. Fragments of A and B are Uint32 words of 8 elements. A whole converged warp.
    PTX mma.sp.kind::mxf4.block_scale, sm_120a."""

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 128)
    a_type: ClassVar[DType] = Float4E2M1FN
    b_type: ClassVar[DType] = Float4E2M1FN

    def __post_init__(self) -> None:
        self._check_scaled((Float4E2M1FN,), (Float8E8M0FNU,))

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_sp_mxf4, {"vec": 2}


@static
class MmaMXF4NVF4SparseOp(SparseBlockScaled):
    """`MmaMXF4SparseOp` with a ue4m3 (Float8E4M3FN) factor for each 32 columns.
    PTX mma.sp.kind::mxf4nvf4.block_scale, sm_120a."""

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 128)
    a_type: ClassVar[DType] = Float4E2M1FN
    b_type: ClassVar[DType] = Float4E2M1FN

    def __post_init__(self) -> None:
        self._check_scaled((Float4E2M1FN,), (Float8E4M3FN,))

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_sp_mxf4nvf4, {"vec": 4}


@static
class MmaMXF8F6F4SparseOp(TwoTypes, SparseBlockScaled):
    """`MmaF8F6F4SparseOp`, of any two of its types, with a ue8m0 factor for each row of 64 columns: (16, 8, 64),
    accumulated in Float32. A whole converged warp. PTX mma.sp.kind::mxf8f6f4.block_scale, sm_120a."""

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    sf_type: DType

    shape_mnk: ClassVar[tuple[int, int, int]] = (16, 8, 64)
    element_bits: ClassVar[int] = 8

    def __post_init__(self) -> None:
        self._check_scaled((*FP8, *NARROW), (Float8E8M0FNU,))

    def row(self) -> tuple[Any, dict[str, Any]]:
        return isa.mma_sp_mxf8f6f4, {"a_type": self.a_dtype.ptx, "b_type": self.b_dtype.ptx}
