# SPDX-License-Identifier: Apache-2.0
"""Atomic read-modify-write of global or shared memory. Any thread; the atomic_ functions give what was there before.

ptr: a Pointer to global memory or to the block's shared memory. sem: "relaxed" (the default), "acquire", "release" or
"acq_rel"; scope: "gpu" (the default), "cta", "cluster" (sm_90) or "sys". Targets are sm_70 unless stated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes, isa, layout, seam
from ..dtypes import DType, Float32, Int32, Uint32
from ..seam import CuteError, traced
from ..seam.guards.messages import how_static
from ..tensor.pointer import Pointer, check_writable, physical
from ..tensor.ssa import TensorSSA, bitcast
from ..tensor.tensor import ATOMICS
from .access import from_word, space_of, to_word

__all__ = [
    "atomic_add", "atomic_and", "atomic_cas", "atomic_exch", "atomic_fmax", "atomic_fmin", "atomic_max",
    "atomic_max_float32", "atomic_min", "atomic_or", "atomic_xor", "red",
]  # fmt: skip

_INTEGERS = (dtypes.Int32, dtypes.Uint32, dtypes.Int64, dtypes.Uint64)
_FLOATS = (dtypes.Float32, dtypes.Float64, dtypes.Float16, dtypes.BFloat16)
_SCOPES = ("gpu", "cta", "cluster", "sys")


def _order(sem: str | None, scope: str | None, what: str, sems: tuple[str, ...]) -> dict[str, str]:
    sem, scope = sem or "relaxed", scope or "gpu"
    if sem not in sems:
        raise CuteError(f"{what}: sem {sem!r} must be {', '.join(map(repr, sems))}")
    if scope not in _SCOPES:
        raise CuteError(f"{what}: scope {scope!r} must be {', '.join(map(repr, _SCOPES))}")
    return {"sem": sem, "scope": scope}


_ALL = ("relaxed", "acquire", "release", "acq_rel")


def _checked(ptr: Any, types: tuple[Any, ...], what: str) -> Pointer:
    space_of(ptr, None, what)
    check_writable(ptr, what)
    if ptr.dtype not in types:
        raise CuteError(f"{what}: ptr {ptr!r} must point to {' or '.join(map(repr, types))}")
    return ptr  # type: ignore[no-any-return]


def _kind(dtype: DType, op: str) -> str:
    """The PTX type of an operation on integers of this type."""
    return dtype.ptx if op in ("min", "max") else f"{'u' if op == 'add' else 'b'}{dtype.width}"


def _updated(ptr: Any, val: Any, op: str, sem: str | None, scope: str | None, types: tuple[Any, ...]) -> Any:
    what = f"atomic_{op}"
    p, order = _checked(ptr, types, what), _order(sem, scope, what, _ALL)
    integer = p.dtype.is_integer
    kind = _kind(p.dtype, op) if integer else p.dtype.ptx
    value = p.dtype(val) if p.dtype.is_float and p.dtype.width >= 32 else to_word(val, p.dtype)
    old = isa.atom(physical(p), value, space=space_of(p, None, what), op=op, type=kind, **order)
    return old if p.dtype.is_float and p.dtype.width >= 32 else from_word(old, p.dtype)


@traced
def atomic_add(ptr: Pointer, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Add `val` to what `ptr` points to, and return what was there before. Any thread.

    ptr: a Pointer to global or shared memory, to Int32, Uint32, Int64, Uint64, Float32 (in global memory subnormal
    numbers count as zero), Float64, Float16 or BFloat16 (sm_90). sem: "relaxed" (the default), "acquire", "release" or
    "acq_rel". scope: "gpu" (the default), "cta", "cluster" (sm_90) or "sys". PTX atom.add, sm_70.

    >>> seen = np.zeros(1, np.int32)
    >>> def kernel(x):
    ...     arch.atomic_add(x.iterator, 1)
    >>> cute.simulate(kernel)[2, 32](cute.runtime.from_dlpack(seen))
    >>> seen
    array([64], dtype=int32)
    """
    return _updated(ptr, val, "add", sem, scope, (*_INTEGERS, *_FLOATS))


@traced
def atomic_min(ptr: Pointer, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Keep the smaller of `val` and what `ptr` points to, an integer of 32 or 64 bits; return what was there before.
    sem, scope: as for `atomic_add`. Any thread. PTX atom.min, sm_70.

    >>> seen = np.array([9], np.int32)
    >>> def kernel(x):
    ...     arch.atomic_min(x.iterator, arch.lane_idx())
    >>> cute.simulate(kernel)[1, 4](cute.runtime.from_dlpack(seen))
    >>> seen
    array([0], dtype=int32)
    """
    return _updated(ptr, val, "min", sem, scope, _INTEGERS)


@traced
def atomic_max(ptr: Pointer, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Keep the greater of `val` and what `ptr` points to, an integer of 32 or 64 bits; return what was there before.
    sem, scope: as for `atomic_add`. Any thread. PTX atom.max, sm_70.

    >>> seen = np.zeros(1, np.int32)
    >>> def kernel(x):
    ...     arch.atomic_max(x.iterator, arch.lane_idx())
    >>> cute.simulate(kernel)[2, 32](cute.runtime.from_dlpack(seen))
    >>> seen
    array([31], dtype=int32)
    """
    return _updated(ptr, val, "max", sem, scope, _INTEGERS)


@traced
def atomic_and(ptr: Pointer, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Clear the bits that `val` lacks in what `ptr` points to, an integer of 32 or 64 bits; return what was there
    before. sem, scope: as for `atomic_add`. Any thread. PTX atom.and, sm_70.

    >>> seen = np.array([15], np.int32)
    >>> def kernel(x):
    ...     arch.atomic_and(x.iterator, ~(1 << arch.lane_idx()))
    >>> cute.simulate(kernel)[1, 2](cute.runtime.from_dlpack(seen))
    >>> seen
    array([12], dtype=int32)
    """
    return _updated(ptr, val, "and", sem, scope, _INTEGERS)


@traced
def atomic_or(ptr: Pointer, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Set the bits of `val` in what `ptr` points to, an integer of 32 or 64 bits; return what was there before. sem,
    scope: as for `atomic_add`. Any thread. PTX atom.or, sm_70.

    >>> seen = np.zeros(1, np.int32)
    >>> def kernel(x):
    ...     arch.atomic_or(x.iterator, 1 << arch.lane_idx())
    >>> cute.simulate(kernel)[1, 4](cute.runtime.from_dlpack(seen))
    >>> seen
    array([15], dtype=int32)
    """
    return _updated(ptr, val, "or", sem, scope, _INTEGERS)


@traced
def atomic_xor(ptr: Pointer, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Flip the bits of `val` in what `ptr` points to, an integer of 32 or 64 bits; return what was there before. sem,
    scope: as for `atomic_add`. Any thread. PTX atom.xor, sm_70.

    >>> seen = np.array([0], np.int32)
    >>> def kernel(x):
    ...     arch.atomic_xor(x.iterator, 1)
    >>> cute.simulate(kernel)[1, 3](cute.runtime.from_dlpack(seen))
    >>> seen
    array([1], dtype=int32)
    """
    return _updated(ptr, val, "xor", sem, scope, _INTEGERS)


@traced
def atomic_exch(ptr: Pointer, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Put `val` where `ptr` points to, a number of 32 or 64 bits; return what was there before. sem, scope: as for
    `atomic_add`. Any thread. PTX atom.exch, sm_70.

    >>> seen = np.array([0], np.int32)
    >>> def kernel(x):
    ...     arch.atomic_exch(x.iterator, 5)
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(seen))
    >>> seen
    array([5], dtype=int32)
    """
    types = (*_INTEGERS, dtypes.Float32, dtypes.Float64)
    p, order = _checked(ptr, types, "atomic_exch"), _order(sem, scope, "atomic_exch", _ALL)
    how = {"space": space_of(p, None, "atomic_exch"), "op": "exch", "type": f"b{p.dtype.width}", **order}
    return from_word(isa.atom(physical(p), to_word(val, p.dtype), **how), p.dtype)


@traced
def atomic_cas(ptr: Pointer, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Any:
    """Put `val` where `ptr` points to if the bits of `cmp` are there; return what was there before. ptr: to a number of
    16, 32 or 64 bits. sem, scope: as for `atomic_add`. Any thread. PTX atom.cas, sm_70.

    >>> seen = np.array([0], np.int32)
    >>> def kernel(x):
    ...     arch.atomic_cas(x.iterator, 0, 5)
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(seen))
    >>> seen
    array([5], dtype=int32)
    """
    types = (*_INTEGERS, dtypes.Int16, dtypes.Uint16, *_FLOATS)
    p, order = _checked(ptr, types, "atomic_cas"), _order(sem, scope, "atomic_cas", _ALL)
    how = {"space": space_of(p, None, "atomic_cas"), "width": p.dtype.width, **order}
    return from_word(isa.atom_cas(physical(p), to_word(cmp, p.dtype), to_word(val, p.dtype), **how), p.dtype)


def _float_extreme(ptr: Any, val: Any, op: str, sign: Any, sem: Any, scope: Any) -> Any:
    """By the order of floats as integers: that of their bits if the sign is clear, the reverse if it is set."""
    what = f"atomic_f{op}"
    p, order = _checked(ptr, (Float32,), what), _order(sem, scope, what, _ALL)
    if sign is not None and not isinstance(sign, bool):
        raise CuteError(f"{what}: sign_bit {sign!r} must be static: None, True or False{how_static(sign)}")
    b = seam.current()
    word, address, how = (
        bitcast(Float32(val), Float32, Uint32),
        physical(p),
        {"space": space_of(p, None, what), **order},
    )
    file = b.registers(Uint32, 1)
    old = seam.Regs(file, Uint32, 0, 1)

    def positive() -> None:
        b.write(old, isa.atom(address, word, op=op, type="s32", **how))

    def negative() -> None:
        b.write(old, isa.atom(address, word, op="min" if op == "max" else "max", type="u32", **how))

    negated = b.compare("<", Int32(word), 0) if sign is None else sign
    b.when(negated, negative)
    b.when(b.compare("==", negated, False) if sign is None else not sign, positive)
    return bitcast(b.read(old), Uint32, Float32)


@traced
def atomic_fmax(
    ptr: Pointer, val: Any, sign_bit: bool | None = None, sem: str | None = None, scope: str | None = None
) -> Any:
    """Keep the greater of `val` and the Float32 that `ptr` points to, where +0 is more than -0; return what was there
    before.

    A NaN whose sign bit is clear counts as more than all numbers; others are not allowed. sign_bit: the sign bit of
    `val` if it is known (True: set), which saves a branch. sem, scope: as for `atomic_add`. Any thread. PTX
    atom.max.s32, atom.min.u32, sm_70.

    >>> seen = np.array([1.5], np.float32)
    >>> def kernel(x):
    ...     arch.atomic_fmax(x.iterator, cute.Float32(2))
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(seen))
    >>> seen
    array([2.], dtype=float32)
    """
    return _float_extreme(ptr, val, "max", sign_bit, sem, scope)


@traced
def atomic_fmin(
    ptr: Pointer, val: Any, sign_bit: bool | None = None, sem: str | None = None, scope: str | None = None
) -> Any:
    """Keep the smaller of `val` and the Float32 that `ptr` points to; return what was there before. sign_bit, and NaNs:
    as for `atomic_fmax`. sem, scope: as for `atomic_add`. Any thread. PTX atom.min.s32, atom.max.u32, sm_70.

    >>> seen = np.array([1.5], np.float32)
    >>> def kernel(x):
    ...     arch.atomic_fmin(x.iterator, cute.Float32(2))
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(seen))
    >>> seen
    array([1.5], dtype=float32)
    """
    return _float_extreme(ptr, val, "min", sign_bit, sem, scope)


@traced
def atomic_max_float32(ptr: Pointer, value: Any, positive_only: bool = True) -> Any:
    """Call `atomic_fmax(ptr, value)`: its older name. positive_only: promise that `value` and what is there have clear
    sign bits, as by default. PTX atom.max.s32, atom.min.u32, sm_70.

    >>> seen = np.array([1.5], np.float32)
    >>> def kernel(x):
    ...     arch.atomic_max_float32(x.iterator, cute.Float32(2))
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(seen))
    >>> seen
    array([2.], dtype=float32)
    """
    return _float_extreme(ptr, value, "max", False if positive_only else None, None, None)


def _sub(ptr: Any, val: Any) -> Any:
    return atomic_add(ptr, 0 - val)


def _extreme(op: str, of_integers: Callable[..., Any]) -> Callable[..., Any]:
    def update(ptr: Pointer, val: Any) -> Any:
        return _float_extreme(ptr, val, op, None, None, None) if ptr.dtype is Float32 else of_integers(ptr, val)

    return update


ATOMICS.update(
    sub=_sub, add=atomic_add, min=_extreme("min", atomic_min), max=_extreme("max", atomic_max), and_=atomic_and,
    or_=atomic_or, xor=atomic_xor, exch=atomic_exch, cas=atomic_cas,
)  # fmt: skip


_OPS = ("add", "min", "max", "umin", "umax", "and", "or", "xor", "inc", "dec")
_HALF = ("f16", "bf16", "f16x2", "bf16x2")
_WORDS = ("u32", "s32", "b32", "u64", "s64", "b64")


@traced
def red(ptr: Pointer, val: Any, op: str, dtype: Any, sem: str | None = None, scope: str | None = None) -> None:
    """Combine `val` with what `ptr` points to, giving nothing back, which is cheaper. Any thread.

    dtype: how the memory is read, whatever the pointer's type: "u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64",
    "f16", "bf16", or "f16x2", "bf16x2" (a Uint32 of two), or an element type. op: "add"; of integers "min", "max",
    "umin", "umax", "and", "or", "xor", and of "u32" "inc", "dec"; "min" and "max" of 16-bit floats only in tuples. val:
    a number, or a tuple or vector of 2 or 4 (8 of "f16", "bf16") in global memory, combined element by element (sm_90).
    sem: "relaxed" (the default) or "release". scope: as for `atomic_add`. PTX red, sm_70; bf16 sm_90.

    >>> seen = np.array([0], np.int32)
    >>> def kernel(x):
    ...     arch.red(x.iterator, 1, "add", cute.Int32)
    >>> cute.simulate(kernel)[1, 32](cute.runtime.from_dlpack(seen))
    >>> seen
    array([32], dtype=int32)
    """
    red_in(None, ptr, val, op, dtype, sem, scope)


def red_in(ss: str | None, ptr: Any, val: Any, op: str, dtype: Any, sem: str | None, scope: str | None) -> None:
    """Do what `red` does in this block's shared memory, or that of another block (ss "cluster")."""
    space = space_of(ptr, ss, "red")
    check_writable(ptr, "red")
    order = _order(sem, scope, "red", ("relaxed", "release"))
    kind = dtype.ptx if isinstance(dtype, DType) else dtype
    if op not in _OPS:
        raise CuteError(f"red: op {op!r} is none of {', '.join(_OPS)}")
    if op in ("umin", "umax"):
        op, kind = op[1:], f"u{kind[1:]}"
    if isinstance(val, TensorSSA):
        val = tuple(val[i] for i in range(layout.size(val.shape)))
    if isinstance(val, tuple):
        _red_vector(ptr, val, op, kind, order, space)
        return
    if kind not in (*_WORDS, "f32", "f64", *_HALF):
        raise CuteError(f"red: dtype {dtype!r} is none of {', '.join(_WORDS)}, f32, f64, {', '.join(_HALF)}")
    if kind in _WORDS:
        kind = f"b{kind[1:]}" if op in ("and", "or", "xor") else f"u{kind[1:]}" if op in ("add", "inc", "dec") else kind
    isa.red(physical(ptr), _operand(val, kind), space=space, op=op, type=kind, **order)


def _operand(val: Any, kind: str) -> Any:
    """A value as the operand of a reduction of this PTX type."""
    named = {"f16": dtypes.Float16, "bf16": dtypes.BFloat16}
    if kind in named:
        return to_word(val, named[kind])
    if kind in ("f32", "f64"):
        return {"f32": Float32, "f64": dtypes.Float64}[kind](val)
    return (dtypes.Uint64 if kind[1:] == "64" else Uint32)(val)


def _red_vector(ptr: Any, val: Any, op: str, kind: str, order: dict[str, str], space: str) -> None:
    if kind not in ("f32", *_HALF) or space != "global":
        raise CuteError(f"red: a tuple of {kind} in {space} memory: only f32, {', '.join(_HALF)} in global memory")
    isa.red_vector(physical(ptr), [_operand(v, kind) for v in val], op=op, type=kind, count=len(val), **order)
