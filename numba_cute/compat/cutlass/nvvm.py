# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass._mlir.dialects.nvvm`."""

from __future__ import annotations

from typing import Any

from ... import arch
from ...arch.atomic import red_in
from ...dtypes import DType
from ...seam import StaticEnum, traced
from .primitives import AtomicOp as AtomicOpKind, MemOrder as MemOrderKind, MemScope as MemScopeKind, atomicrmw

__all__ = [
    "AtomicOpKind", "MemOrderKind", "MemScopeKind", "ReductionOp", "ReductionType", "SharedSpace", "atomicrmw", "fmax",
    "fmin", "red",
]  # fmt: skip


class ReductionOp(StaticEnum):
    """Name the operation of `red`."""

    ADD, MIN, MAX, AND, OR, XOR, INC, DEC = "add", "min", "max", "and", "or", "xor", "inc", "dec"


class ReductionType(StaticEnum):
    """Name how `red` reads the memory."""

    F16, BF16, F16x2, BF16x2, F32, F64 = "f16", "bf16", "f16x2", "bf16x2", "f32", "f64"
    U32, S32, B32, U64, S64, B64 = "u32", "s32", "b32", "u64", "s64", "b64"


class SharedSpace(StaticEnum):
    """Name the shared memory of a pointer: of the block, or of the cluster."""

    shared_cta, shared_cluster = "cta", "cluster"


@traced
def red(
    op: Any, type_: Any, a: Any, b: Any, *, mem_order: Any = None, mem_scope: Any = None, shared_space: Any = None,
    loc: Any = None, ip: Any = None,
) -> None:  # fmt: skip
    """Combine a number with what a pointer points to, as `cute.arch.red`. op: a ReductionOp. type_: a ReductionType.
    a: the Pointer. b: the number. mem_order: a MemOrderKind, relaxed by default. mem_scope: a MemScopeKind, the GPU by
    default. shared_space: a SharedSpace; shared_cluster of a pointer that `mapa` gave.
    """
    ss, *how = (None if x is None else x.value for x in (shared_space, mem_order, mem_scope))
    red_in(ss, a, b, op.value, type_.value, *how)


@traced
def fmax(
    *operands: Any, c: Any = None, abs: bool = False, nan: bool = False, ftz: bool = False,
    loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Return the greatest of two or three Float32, as `cute.arch.fmax`. operands: two of them, in earlier releases
    behind the result's type. c: the third. abs, nan, ftz: as there."""
    return _extreme(arch.fmax, operands, c, abs=abs, nan=nan, ftz=ftz)


@traced
def fmin(
    *operands: Any, c: Any = None, abs: bool = False, nan: bool = False, ftz: bool = False,
    loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Return the smallest of two or three Float32, as `cute.arch.fmin`. operands: two of them, in earlier releases
    behind the result's type. c: the third. abs, nan, ftz: as there."""
    return _extreme(arch.fmin, operands, c, abs=abs, nan=nan, ftz=ftz)


def _extreme(of: Any, operands: tuple[Any, ...], c: Any, **how: bool) -> Any:
    a, b = operands[1:] if isinstance(operands[0], DType) else operands
    found = of(a, b, **how)
    return found if c is None else of(found, c, **how)
