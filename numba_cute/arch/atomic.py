# SPDX-License-Identifier: Apache-2.0
"""Atomic read-modify-write of global memory. Any thread; each gives what was there before.

ptr: a Pointer to global memory, its elements Int32, Uint32, Int64, Uint64, or Float32 (add, exch). sem: "relaxed",
"acquire", "release", "acq_rel"; scope: "cta", "gpu", "sys"."""

from __future__ import annotations

from typing import Any

from .. import dtypes, isa
from ..dtypes import Float32, Uint32, Uint64
from ..pointer import AddressSpace, Pointer, physical
from ..seam import CuteError, traced

_INTEGERS = (dtypes.Int32, dtypes.Uint32, dtypes.Int64, dtypes.Uint64)
_ADD_TYPES = {32: "u32", 64: "u64"}


def _order(sem: str | None, scope: str | None, what: str) -> dict[str, str]:
    sem, scope = sem or "relaxed", scope or "gpu"
    if sem not in ("relaxed", "acquire", "release", "acq_rel"):
        raise CuteError(f'{what}: sem {sem!r} must be "relaxed", "acquire", "release" or "acq_rel"')
    if scope not in ("cta", "gpu", "sys"):
        raise CuteError(f'{what}: scope {scope!r} must be "cta", "gpu" or "sys"')
    return {"sem": sem, "scope": scope}


def _checked(ptr: Any, types: tuple[Any, ...], what: str) -> Pointer:
    if not isinstance(ptr, Pointer) or ptr.space not in (AddressSpace.gmem, AddressSpace.generic):
        raise CuteError(f"{what}: ptr {ptr!r} must point to global memory; use tensor.iterator + offset")
    if ptr.dtype not in types:
        raise CuteError(f"{what}: ptr {ptr!r} must point to {' or '.join(map(repr, types))}")
    return ptr


def _integer(ptr: Any, val: Any, op: str, sem: str | None, scope: str | None) -> Any:
    what = f"atomic_{op}"
    p, order = _checked(ptr, _INTEGERS, what), _order(sem, scope, what)
    width = p.dtype.width
    kind = p.dtype.ptx if op in ("min", "max") else _ADD_TYPES[width] if op == "add" else f"b{width}"
    row, word = (isa.atom_global_b32, Uint32) if width == 32 else (isa.atom_global_b64, Uint64)
    return p.dtype(row(physical(p), word(val), op=op, type=kind, **order))


@traced
def atomic_add(ptr: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Add `val`, an integer or a Float32. PTX atom.add."""
    if isinstance(ptr, Pointer) and ptr.dtype == Float32:
        p, order = _checked(ptr, (Float32,), "atomic_add"), _order(sem, scope, "atomic_add")
        return isa.atom_global_add_f32(physical(p), Float32(val), **order)
    return _integer(ptr, val, "add", sem, scope)


@traced
def atomic_min(ptr: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Keep the smaller of what is there and `val`. PTX atom.min."""
    return _integer(ptr, val, "min", sem, scope)


@traced
def atomic_max(ptr: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Keep the greater of what is there and `val`. PTX atom.max."""
    return _integer(ptr, val, "max", sem, scope)


@traced
def atomic_and(ptr: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Keep the bits that are set in `val` too. PTX atom.and."""
    return _integer(ptr, val, "and", sem, scope)


@traced
def atomic_or(ptr: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Set the bits of `val`. PTX atom.or."""
    return _integer(ptr, val, "or", sem, scope)


@traced
def atomic_xor(ptr: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Flip the bits of `val`. PTX atom.xor."""
    return _integer(ptr, val, "xor", sem, scope)


@traced
def atomic_exch(ptr: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Put `val` there. PTX atom.exch."""
    return _integer(ptr, val, "exch", sem, scope)


@traced
def atomic_cas(ptr: Any, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Put `val` there if `cmp` is there; Int32 or Uint32. PTX atom.cas."""
    p = _checked(ptr, (dtypes.Int32, dtypes.Uint32), "atomic_cas")
    order = _order(sem, scope, "atomic_cas")
    return p.dtype(isa.atom_global_cas_b32(physical(p), Uint32(cmp), Uint32(val), **order))
