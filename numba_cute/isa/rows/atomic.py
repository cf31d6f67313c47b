# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Atomic read-modify-write of memory (PTX ISA, "atom" and "red"; red gives nothing back). Any thread.

space: "global", "shared" (of the CTA) or "dsmem" (of any CTA of the cluster); sem, scope: the order, and the threads
that see it as one step (cluster: sm_90); left out, they are relaxed and gpu, or cluster of "dsmem". The simulator runs
one thread at a time, so that each is one step for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import dtypes
from ...seam import CuteError
from ..facts.rounding import exact_sum, flushed, half_bits
from ..form.choosing import by
from ..form.instr import ACQ_REL, ACQUIRE, RELAXED, RELEASE, instr
from ..form.kinds import Kind, choice, f32, f64, gmem, out, smem, u16, u32, u64
from ..form.machine import Machine
from .memory import ADDRESS, SPACES, place

_REF = "parallel-synchronization-and-communication-instructions"
_ORDER = {"sem": RELAXED, "scope": by("space", {"dsmem": "cluster"}, "gpu")}
_ATOM: dict[str, Any] = {"target": "sm_70", "ref": f"{_REF}-atom", "defaults": _ORDER}
_RED: dict[str, Any] = {"target": "sm_70", "ref": f"{_REF}-red", "defaults": _ORDER}
_SEMS = {"atom": (RELAXED, ACQUIRE, RELEASE, ACQ_REL), "red": (RELAXED, RELEASE)}
_HALVES = {"f16": dtypes.Float16, "bf16": dtypes.BFloat16}
_BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_FLOATS: dict[Any, Kind] = {
    "f32": f32, "f64": f64, "f16": u16, "bf16": u16, "f16x2": u32, "bf16x2": u32
}  # fmt: skip
_KINDS = {**{f"{s}{w}": kind for w, kind in ((32, u32), (64, u64)) for s in "usb"}, **_FLOATS}
_NUMPY = {u16: np.uint16, u32: np.uint32, u64: np.uint64, f32: np.float32, f64: np.float64}
_VALUE = choice("type", _KINDS)


def combined(op: str, type: str, old: Any, given: Any, flush: bool) -> Any:
    """The new bytes: `old` and `given` (bytes) combined element by element. flush: f32 subnormals count as zero."""
    half = _HALVES.get(type.removesuffix("x2"))
    if half is not None:
        return _halves(op, half, old.view(half.numpy), given.view(half.numpy))
    dtype = np.dtype({"u": "u", "s": "i", "b": "u", "f": "f"}[type[0]] + str(int(type[1:]) // 8))
    a, b = old.view(dtype), given.view(dtype)
    with np.errstate(all="ignore"):
        if op == "add" and flush and dtype == np.float32:
            return flushed(flushed(a) + flushed(b)).view(np.uint8)
        if op == "add":
            return (a + b).view(np.uint8)
        if op == "inc":
            return np.where(a >= b, 0, a + 1).astype(dtype).view(np.uint8)
        if op == "dec":
            return np.where((a == 0) | (a > b), b, a - 1).astype(dtype).view(np.uint8)
    if op == "exch":
        return given
    return (_BITS.get(op) or (np.minimum if op == "min" else np.maximum))(a, b).view(np.uint8)


def _halves(op: str, dtype: dtypes.DType, a: Any, b: Any) -> Any:
    x, y = a.astype(np.float64), b.astype(np.float64)
    if op == "add":
        return half_bits(exact_sum(x, y), dtype).view(np.uint8)
    less = np.where(np.signbit(x) != np.signbit(y), np.signbit(x), x < y)
    got = np.where(less if op == "min" else ~less, x, y)
    got = np.where(np.isnan(x), y, np.where(np.isnan(y), x, got))
    return half_bits(got, dtype).view(np.uint8)


def _update(m: Machine, space: str, addr: int, nbytes: int, change: Callable[[Any], Any]) -> Any:
    if addr % nbytes:
        raise CuteError(f"atomic: address {addr:#x} must be a multiple of the {nbytes} bytes that it changes")
    at, cta = place(m, space, addr)
    return m.atomic(at, nbytes, change, shared=space != "global", cta=cta)


def _orders(name: str, least: str, spaces: tuple[str, ...] = ("global", "shared", "dsmem")) -> Iterator[dict[str, Any]]:
    """Each order in each space, with its target."""
    for space in spaces:
        for sem in _SEMS[name]:
            for scope in ("cta", "cluster", "gpu", "sys"):
                late = space == "dsmem" or scope == "cluster"
                target = "sm_90" if late else least
                yield {"space": space, "ss": SPACES[space], "sem": sem, "scope": scope, "target": target}


def _ops(name: str) -> Iterator[tuple[str, str]]:
    """(op, type)"""
    for w in (32, 64):
        yield "add", f"u{w}"
        yield from ((op, f"{s}{w}") for op in ("min", "max") for s in "us")
        yield from (("inc", "u32"), ("dec", "u32")) if w == 32 else ()
        yield from ((op, f"b{w}") for op in (*_BITS, *(("exch",) if name == "atom" else ())))
    yield from (("add", t) for t in _FLOATS)


def _cases(name: str) -> Iterator[dict[str, Any]]:
    for op, type in _ops(name):
        for order in _orders(name, "sm_90" if type.startswith("bf16") else "sm_70"):
            pair = type.endswith("x2")
            half = type.removesuffix("x2") in _HALVES
            yield {"op": op, "type": type, "noftz": half, "by_cas": pair and order["space"] == "dsmem", **order}


# ptxas (13.0 and 13.5) makes atom.shared::cluster.add.noftz.f16x2 one ATOM.E.ADD.F16x2, which an H200 carries out in
# another CTA's memory as an integer addition of 32 bits (test_hardware, "dsmem cells", 2026-11-21); bf16x2 likewise.
_BY_CAS = (
    "{ .reg .pred done; .reg .b32 held, new, seen; ld.relaxed.{scope}.shared::cluster.b32 held, [$addr]; "
    "again: {op}.rn.{type} new, held, $value; "
    "atom.{sem}.{scope}.shared::cluster.cas.b32 seen, [$addr], held, new; "
    "setp.eq.b32 done, seen, held; mov.b32 held, seen; @!done bra again; "
)


def _combine(m: Machine, space: str, addr: int, value: Any, op: str, type: str) -> Any:
    """Update one element; gives what was there. In shared memory sums of f32 keep subnormals."""
    unit = np.dtype(_NUMPY[_KINDS[type]])
    given = np.array([value], unit).view(np.uint8)
    old = _update(m, space, addr, unit.itemsize, lambda b: combined(op, type, b, given, space == "global"))
    return old.view(unit)[0].item()


@instr("<by_cas:" + _BY_CAS + "mov.b32 $old, held; }|atom.{sem}.{scope}.{ss}.{op}<noftz:.noftz>.{type} $old, [$addr], "
       "$value;>", over=_cases("atom"), **_ATOM)  # fmt: skip
def atom(m: Machine, addr: ADDRESS, value: _VALUE, old: out(_VALUE), *, space: str, op: str, type: str) -> Any:
    """Replace what is at `addr` (a multiple of its size) by its combination with `value`, giving what was there: op
    add, min, max, inc, dec, exch, and, or, xor. Subnormal f32 count as zero in global memory. Pairs in "dsmem" by
    compare-and-swap: an H200 adds them in another CTA's memory as one integer."""
    return _combine(m, space, addr, value, op, type)


@instr("<by_cas:" + _BY_CAS + "}|red.{sem}.{scope}.{ss}.{op}<noftz:.noftz>.{type} [$addr], $value;>",
       over=_cases("red"), **_RED)  # fmt: skip
def red(m: Machine, addr: ADDRESS, value: _VALUE, *, space: str, op: str, type: str) -> None:
    """`atom` that gives nothing back; without exch."""
    _combine(m, space, addr, value, op, type)


_CELL = choice("width", {16: u16, 32: u32, 64: u64})


@instr("atom.{sem}.{scope}.{ss}.cas.b{width} $old, [$addr], $expected, $value;", **_ATOM,
       over=[{"width": w, **order} for w in (16, 32, 64) for order in _orders("atom", "sm_70")])  # fmt: skip
def atom_cas(
    m: Machine, addr: ADDRESS, expected: _CELL, value: _CELL, old: out(_CELL), *, space: str, width: int
) -> int:  # fmt: skip
    """Replace the `width` bits at `addr` (a multiple of their bytes) by `value` if they are `expected`; gives what was
    there."""
    unit = np.dtype(f"u{width // 8}")
    given = np.array([value], unit).view(np.uint8)
    change = lambda b: given if int(b.view(unit)[0]) == expected else b  # noqa: E731
    return int(_update(m, space, addr, unit.itemsize, change).view(unit)[0])


_WIDE = choice("space", {"global": gmem, "shared": smem})
_WIDE_OVER = list(_orders("atom", "sm_90", ("global", "shared")))


@instr("{ .reg .b128 v, w, o; mov.b128 v, $value; atom.{sem}.{scope}.{ss}.exch.b128 o, [$addr], v; mov.b128 $old, o; }",
       over=_WIDE_OVER, **_ATOM)  # fmt: skip
def atom_exch_b128(m: Machine, addr: _WIDE, value: u64[2], old: out(u64[2]), *, space: str) -> Any:
    """Put 16 bytes at `addr` (a multiple of 16), giving what was there."""
    given = np.array(value, np.uint64).view(np.uint8)
    return _update(m, space, addr, 16, lambda _: given).view(np.uint64).tolist()


@instr("{ .reg .b128 v, w, o; mov.b128 v, $value; mov.b128 w, $expected; atom.{sem}.{scope}.{ss}.cas.b128 o, [$addr], "
       "w, v; mov.b128 $old, o; }", over=_WIDE_OVER, **_ATOM)  # fmt: skip
def atom_cas_b128(
    m: Machine, addr: _WIDE, expected: u64[2], value: u64[2], old: out(u64[2]), *, space: str
) -> Any:  # fmt: skip
    """Put 16 bytes at `addr` if those `expected` are there; gives what was there."""
    held, given = (np.array(v, np.uint64).view(np.uint8) for v in (expected, value))
    return _update(m, space, addr, 16, lambda b: given if (b == held).all() else b).view(np.uint64).tolist()


_VECTORS = {"f32": (2, 4), "f16": (2, 4, 8), "bf16": (2, 4, 8), "f16x2": (2, 4), "bf16x2": (2, 4)}
_VALUES = choice("type", {t: _KINDS[t] for t in _VECTORS})["count"]


def _vector_cases(name: str) -> Iterator[dict[str, Any]]:
    for type, counts in _VECTORS.items():
        half = type != "f32"
        for op in ("add", "min", "max") if half else ("add",):
            for n in counts:
                for order in _orders(name, "sm_90", ("global",)):
                    yield {"op": op, "type": type, "count": n, "noftz": half, **order}


def _combine_vector(m: Machine, addr: int, values: Any, op: str, type: str) -> Any:
    unit = np.dtype(_NUMPY[_KINDS[type]])
    given = np.array(values, unit).view(np.uint8)
    return _update(m, "global", addr, given.size, lambda b: combined(op, type, b, given, True)).view(unit).tolist()


@instr("atom.{sem}.{scope}.global.{op}<noftz:.noftz>.v{count}.{type} $old, [$addr], $values;",
       over=_vector_cases("atom"), **_ATOM)  # fmt: skip
def atom_vector(m: Machine, addr: gmem, values: _VALUES, old: out(_VALUES), *, op: str, type: str) -> Any:
    """Combine `count` elements at `addr` in global memory (a multiple of their bytes) with `values`, each of them in
    one step, giving what was there: add; min and max of 16-bit floats."""
    return _combine_vector(m, addr, values, op, type)


@instr("red.{sem}.{scope}.global.{op}<noftz:.noftz>.v{count}.{type} [$addr], $values;", over=_vector_cases("red"),
       **_RED)  # fmt: skip
def red_vector(m: Machine, addr: gmem, values: _VALUES, *, op: str, type: str) -> None:
    """`atom_vector` that gives nothing back."""
    _combine_vector(m, addr, values, op, type)
