# SPDX-License-Identifier: Apache-2.0
"""Signals and memory that the kernels of several GPUs share: flags that count arrivals, and memory that stands for that
of all GPUs (multicast mappings). The simulator has one GPU: a multicast address is its own memory there.
"""

from __future__ import annotations

from typing import Any

from .. import isa
from ..arch import red
from ..dtypes import BFloat16, DType, Float8E4M3FN, Float8E5M2, Float16, Float32, Int32, Uint32
from ..seam import CuteError, Int, traced
from ..tensor.pointer import AddressSpace, Pointer, check_writable, physical
from ..tensor.ssa import bitcast

__all__ = [
    "multimem_ld_reduce", "multimem_ld_reduce_4xf32", "multimem_ld_reduce_8xbf16", "multimem_ld_reduce_8xf16",
    "multimem_ld_reduce_16xe4m3", "multimem_ld_reduce_16xe5m2", "multimem_red_add1", "multimem_st",
    "multimem_st_4xb32", "red_add1", "spin_lock_atom_cas_acquire_wait", "spin_lock_atom_cas_relaxed_wait",
    "spin_lock_ld_lt_relaxed_wait",
]  # fmt: skip

_SUMS = {
    Float32: ("f32", None), Float16: ("f16x2", "f32"), BFloat16: ("bf16x2", "f32"),
    Float8E4M3FN: ("e4m3x4", "f16"), Float8E5M2: ("e5m2x4", "f16"),
}  # fmt: skip
"""The words that hold elements of a type, and the type in which they are added."""


def _global(ptr: Any, what: str, name: str = "ptr") -> Any:
    if not isinstance(ptr, Pointer) or ptr.space not in (AddressSpace.gmem, AddressSpace.generic):
        raise CuteError(f"{what}: {name} {ptr!r} must be a Pointer to global memory")
    return physical(ptr)


def _flag(ptr: Any, what: str) -> Any:
    if not isinstance(ptr, Pointer) or ptr.dtype not in (Int32, Uint32):
        raise CuteError(f"{what}: lock_ptr {ptr!r} must be a Pointer to an Int32 or Uint32")
    return _global(ptr, what, "lock_ptr")


def _said(value: Any, legal: tuple[str, ...], name: str, what: str) -> str:
    if value not in legal:
        raise CuteError(f"{what}: {name} {value!r} must be {' or '.join(map(repr, legal))}")
    return str(value)


_SCOPES = ("sys", "gpu", "cluster", "cta")


@traced
def multimem_ld_reduce(ptr: Pointer, *, dtype: DType, num_elements: int) -> tuple[Any, ...]:
    """Load the sums over all GPUs of elements in a multicast mapping: as words of 32 bits, which `multimem_st` takes
    (Int32; Float32 for Float32). Any thread.

    ptr: a Pointer into the mapping, at a multiple of all their bytes. dtype: Float32, or Float16 and BFloat16, added as
    Float32, or Float8E4M3FN and Float8E5M2, added as Float16 (sm_100f). num_elements: 4, 8 or 16 bytes of them. Raises
    CuteError for others. PTX multimem.ld_reduce, relaxed, of the system, sm_90.
    """
    what = "multimem_ld_reduce"
    at = _global(ptr, what)
    if dtype not in _SUMS:
        raise CuteError(f"{what}: dtype {dtype!r} must be {' or '.join(map(repr, _SUMS))}")
    bits = num_elements * dtype.width if type(num_elements) is int else 0
    if bits not in (32, 64, 128):
        raise CuteError(f"{what}: num_elements {num_elements!r} of {dtype} must make 4, 8 or 16 bytes")
    kind, acc = _SUMS[dtype]
    order: dict[str, Any] = {"op": "add", "acc": acc, "sem": "relaxed", "scope": "sys", "type": kind}
    if bits == 32:
        words = (isa.multimem_ld_reduce(at, **order),)
    else:
        words = tuple(isa.multimem_ld_reduce_vector(at, count=bits // 32, **order))
    return words if dtype == Float32 else tuple(Int32(w) for w in words)


@traced
def multimem_ld_reduce_4xf32(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of four Float32 at `ptr`, as four Float32. Any thread. PTX multimem.ld_reduce,
    sm_90."""
    return multimem_ld_reduce(ptr, dtype=Float32, num_elements=4)


@traced
def multimem_ld_reduce_8xf16(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of eight Float16 at `ptr`, as four words. Any thread. PTX multimem.ld_reduce,
    sm_90."""
    return multimem_ld_reduce(ptr, dtype=Float16, num_elements=8)


@traced
def multimem_ld_reduce_8xbf16(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of eight BFloat16 at `ptr`, as four words. Any thread. PTX multimem.ld_reduce,
    sm_90."""
    return multimem_ld_reduce(ptr, dtype=BFloat16, num_elements=8)


@traced
def multimem_ld_reduce_16xe4m3(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of sixteen Float8E4M3FN at `ptr`, as four words. Any thread. PTX multimem.ld_reduce,
    sm_100f."""
    return multimem_ld_reduce(ptr, dtype=Float8E4M3FN, num_elements=16)


@traced
def multimem_ld_reduce_16xe5m2(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of sixteen Float8E5M2 at `ptr`, as four words. Any thread. PTX multimem.ld_reduce,
    sm_100f."""
    return multimem_ld_reduce(ptr, dtype=Float8E5M2, num_elements=16)


def _as_float(word: Any) -> Any:
    """The bits of a word as a Float32: what multimem.st takes several of."""
    dtype = getattr(word, "dtype", None)
    if dtype == Float32 or isinstance(word, float):
        return Float32(word)
    return bitcast(Uint32(word), Uint32, Float32)


@traced
def multimem_st(ptr: Pointer, *words: Any) -> None:
    """Store 1, 2 or 4 `words` of 32 bits (Int32, Uint32 or Float32) to each GPU's memory of a multicast mapping. Any
    thread. ptr: a Pointer into the mapping, at a multiple of all their bytes. Raises CuteError for other numbers. PTX
    multimem.st, relaxed, of the system, sm_90."""
    at = _global(ptr, "multimem_st")
    check_writable(ptr, "multimem_st: ptr")
    if len(words) not in (1, 2, 4):
        raise CuteError(f"multimem_st: {len(words)} words must be 1, 2 or 4")
    floats = [_as_float(w) for w in words]
    if len(words) == 1:
        isa.multimem_st(at, floats[0], type="f32", sem="relaxed", scope="sys")
    else:
        isa.multimem_st_vector(at, floats, type="f32", count=len(words), sem="relaxed", scope="sys")


@traced
def multimem_st_4xb32(ptr: Pointer, x: Any, y: Any, z: Any, w: Any) -> None:
    """Store the words `x`, `y`, `z` and `w` to `ptr` in each GPU's memory, as `multimem_st` does. Any thread. PTX
    multimem.st, sm_90."""
    multimem_st(ptr, x, y, z, w)


@traced
def multimem_red_add1(lock_ptr: Pointer, *, order: str = "release", scope: str = "sys") -> None:
    """Add 1 to a flag in each GPU's memory of a multicast mapping: say to all that what came before is done. Any
    thread, after a barrier if others' writes are meant.

    lock_ptr: a Pointer to an Int32 or Uint32 in the mapping. order: "release" or "relaxed". scope: "sys", "gpu",
    "cluster" or "cta". Raises CuteError for others. PTX multimem.red, sm_90."""
    what = "multimem_red_add1"
    at = _flag(lock_ptr, what)
    check_writable(lock_ptr, f"{what}: lock_ptr")
    sem, seen = _said(order, ("relaxed", "release"), "order", what), _said(scope, _SCOPES, "scope", what)
    isa.multimem_red(at, Uint32(1), op="add", type="u32", sem=sem, scope=seen)


@traced
def red_add1(lock_ptr: Pointer, *, order: str = "release", scope: str = "sys") -> None:
    """Add 1 to a flag in global memory: say that what came before is done. Any thread. lock_ptr: a Pointer to an Int32
    or Uint32. order, scope: as for `multimem_red_add1`. PTX red, sm_70."""
    _flag(lock_ptr, "red_add1")
    red(lock_ptr, 1, "add", Uint32, sem=_said(order, ("relaxed", "release"), "order", "red_add1"), scope=scope)


def _wait(lock_ptr: Any, expected_val: Any, reset_val: Any, sem: str, scope: Any, what: str) -> None:
    at = _flag(lock_ptr, what)
    check_writable(lock_ptr, f"{what}: lock_ptr")
    isa.wait_for_flag(at, Uint32(expected_val), Uint32(reset_val), sem=sem, scope=_said(scope, _SCOPES, "scope", what))


@traced
def spin_lock_atom_cas_acquire_wait(
    lock_ptr: Pointer, *, expected_val: Int, reset_val: Int, scope: str = "gpu"
) -> None:
    """Wait until a flag is `expected_val`, and make it `reset_val` in the same step; later accesses see what was done
    before those who counted it up. One thread; a barrier lets the others go on.

    lock_ptr: a Pointer to an Int32 or Uint32 in global memory. scope: "gpu", "sys", "cluster" (sm_90) or "cta". Raises
    CuteError for others. PTX atom.acquire.cas, sm_70."""
    _wait(lock_ptr, expected_val, reset_val, "acquire", scope, "spin_lock_atom_cas_acquire_wait")


@traced
def spin_lock_atom_cas_relaxed_wait(
    lock_ptr: Pointer, *, expected_val: Int, reset_val: Int, scope: str = "gpu"
) -> None:
    """Wait as `spin_lock_atom_cas_acquire_wait` does, for `lock_ptr` to be `expected_val`, made `reset_val`, with no
    order for later accesses. scope: as there. One thread. PTX atom.relaxed.cas, sm_70."""
    _wait(lock_ptr, expected_val, reset_val, "relaxed", scope, "spin_lock_atom_cas_relaxed_wait")


@traced
def spin_lock_ld_lt_relaxed_wait(lock_ptr: Pointer, *, expected_val: Int, scope: str = "gpu") -> None:
    """Wait while the flag at `lock_ptr` is less than `expected_val`, with no order for later accesses. scope: as for
    `spin_lock_atom_cas_acquire_wait`. One thread. PTX ld.relaxed, sm_70."""
    what = "spin_lock_ld_lt_relaxed_wait"
    at = _flag(lock_ptr, what)
    isa.wait_for_count(at, Uint32(expected_val), sem="relaxed", scope=_said(scope, _SCOPES, "scope", what))
