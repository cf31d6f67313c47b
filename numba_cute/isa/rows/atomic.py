# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Atomic read-modify-write of memory (PTX ISA, "atom" and "red"). Any thread.

Rows are named atom or red (which gives nothing back), by space (global; shared, of the CTA; dsmem, of any CTA of the
cluster), by register, and those of cluster scope apart, for they need sm_90. Static parameters: op, type, sem
("relaxed", "acquire", "release", "acq_rel") and scope ("cta", "cluster", "gpu", "sys": the threads that see it as one
step). The simulator runs one thread at a time, so that each is one step for all.
"""

# No `from __future__ import annotations`: the rows are made in a loop, and their annotations are its variables.
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...seam import CuteError
from ..facts.rounding import exact_sum, flushed, half_bits
from ..form.instr import f32, f64, instr, out, u16, u32, u64
from ..form.machine import Machine
from .memory import SPACES

_REF = "parallel-synchronization-and-communication-instructions"
_SEMS = {"atom": ("relaxed", "acquire", "release", "acq_rel"), "red": ("relaxed", "release")}
_WORDS = {"u": np.dtype("u4"), "s": np.dtype("i4"), "b": np.dtype("u4")}
_HALVES = {"f16": dtypes.Float16, "bf16": dtypes.BFloat16}
_BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


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


def _update(m: Machine, space: str, addr: int, nbytes: int, change: Callable[[Any], Any], sem: str, scope: str) -> Any:
    if addr % nbytes:
        raise CuteError(f"atomic: address {addr:#x} must be a multiple of the {nbytes} bytes that it changes")
    cta, at = m.owner(addr) if space == "dsmem" else (None, addr)
    return m.atomic(at, nbytes, change, shared=space != "global", cta=cta, sem=sem, scope=scope)


def _orders(name: str, scopes: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"sem": s, "scope": c} for s in _SEMS[name] for c in scopes]


def _ops(register: str) -> list[tuple[str, str]]:
    """(op, type) of what one register holds."""
    if register in ("b32", "b64"):
        width = register[1:]
        kinds = [("add", f"u{width}"), *((op, f"{s}{width}") for op in ("min", "max") for s in "us")]
        kinds += [("inc", "u32"), ("dec", "u32")] if width == "32" else []
        return kinds + [(op, f"b{width}") for op in ("exch", *_BITS)]
    return [("add", register)]


_KINDS = {"b32": u32, "b64": u64, "f32": f32, "f64": f64, "f16": u16, "bf16": u16, "f16x2": u32, "bf16x2": u32}
_TARGETS = {"bf16": "sm_90", "bf16x2": "sm_90"}
_NUMPY = {u16: np.uint16, u32: np.uint32, u64: np.uint64, f32: np.float32, f64: np.float64}


def _name(*parts: str) -> str:
    return "_".join(p for p in parts if p)


# ptxas (13.0 and 13.5) makes atom.shared::cluster.add.noftz.f16x2 one ATOM.E.ADD.F16x2, which an H200 carries out in
# another CTA's memory as an integer addition of 32 bits (test_hardware, "dsmem cells", 2026-11-21); bf16x2 likewise.
_PAIR_BY_CAS = (
    "{ .reg .pred done; .reg .b32 held, new, seen; ld.relaxed.{scope}.shared::cluster.b32 held, [$addr]; "
    "again: {op}.rn.{type} new, held, $value; "
    "atom.{sem}.{scope}.shared::cluster.cas.b32 seen, [$addr], held, new; "
    "setp.eq.b32 done, seen, held; mov.b32 held, seen; @!done bra again; GIVE}"
)


def _row(name: str, space: str, register: str, part: str, scopes: tuple[str, ...], target: str) -> None:
    """An update of one register."""
    address, ptx = SPACES[space]
    kind = _KINDS[register]
    noftz = ".noftz" if register.removesuffix("x2") in _HALVES else ""
    unit = np.dtype(_NUMPY[kind])
    flush = space == "global"  # in shared memory sums of f32 keep subnormals

    def change(m: Machine, addr: int, value: Any, op: str, type: str, sem: str, scope: str) -> Any:
        given = np.array([value], unit).view(np.uint8)
        old = _update(m, space, addr, unit.itemsize, lambda b: combined(op, type, b, given, flush), sem, scope)
        return old.view(unit)[0].item()

    def atom(
        m: Machine, addr: address, value: kind, old: out(kind), *, op: str, type: str, sem: str, scope: str
    ) -> Any:
        return change(m, addr, value, op, type, sem, scope)

    def red(m: Machine, addr: address, value: kind, *, op: str, type: str, sem: str, scope: str) -> None:
        change(m, addr, value, op, type, sem, scope)

    fn = atom if name == "atom" else red
    fn.__name__ = _name(name, space, register, part)
    ops = [(op, t) for op, t in _ops(register) if name == "atom" or op != "exch"]
    fn.__doc__ = (
        f"Replace what is at `addr` in {ptx} memory (a multiple of its size) by its combination with `value`"
        f"{', giving what was there' if name == 'atom' else ''}: op {', '.join(dict.fromkeys(o for o, _ in ops))}."
        + (" Subnormal floats count as zero." if register == "f32" and flush else "")
    )
    given = "$old, [$addr], $value" if name == "atom" else "[$addr], $value"
    text = f"{name}.{{sem}}.{{scope}}.{ptx}.{{op}}{noftz}.{{type}} {given};"
    if space == "dsmem" and register.endswith("x2"):
        text = _PAIR_BY_CAS.replace("GIVE", "mov.b32 $old, held; " if name == "atom" else "")
        fn.__doc__ += " By compare-and-swap: an H200 adds pairs in another CTA's memory as one integer."
    over = [{"op": op, "type": t, **order} for order in _orders(name, scopes) for op, t in ops]
    instr(text, target=target, ref=f"{_REF}-{name}", over=over)(fn)


def _cas(space: str, register: str, part: str, scopes: tuple[str, ...], target: str) -> None:
    address, ptx = SPACES[space]
    kind = {"b16": u16, "b32": u32, "b64": u64}[register]
    unit = np.dtype(_NUMPY[kind])

    def atom_cas(
        m: Machine, addr: address, expected: kind, value: kind, old: out(kind), *, sem: str, scope: str
    ) -> int:
        given = np.array([value], unit).view(np.uint8)
        change = lambda b: given if int(b.view(unit)[0]) == expected else b  # noqa: E731
        return int(_update(m, space, addr, unit.itemsize, change, sem, scope).view(unit)[0])

    atom_cas.__name__ = _name("atom", space, "cas", register, part)
    atom_cas.__doc__ = (
        f"Replace what is at `addr` in {ptx} memory (a multiple of its size) by `value` if it is `expected`; gives "
        "what was there."
    )
    instr(f"atom.{{sem}}.{{scope}}.{ptx}.cas.{register} $old, [$addr], $expected, $value;", target=target,
          ref=f"{_REF}-atom", over=_orders("atom", scopes))(atom_cas)  # fmt: skip


def _wide(space: str) -> None:
    """16 bytes at once, exchanged or compared and exchanged."""
    address, ptx = SPACES[space]
    over = _orders("atom", ("cta", "cluster", "gpu", "sys"))

    def atom_exch(m: Machine, addr: address, value: u64[2], old: out(u64[2]), *, sem: str, scope: str) -> Any:
        given = np.array(value, np.uint64).view(np.uint8)
        return _update(m, space, addr, 16, lambda _: given, sem, scope).view(np.uint64).tolist()

    def atom_cas(
        m: Machine, addr: address, expected: u64[2], value: u64[2], old: out(u64[2]), *, sem: str, scope: str
    ) -> Any:
        held, given = (np.array(v, np.uint64).view(np.uint8) for v in (expected, value))
        change = lambda b: given if (b == held).all() else b  # noqa: E731
        return _update(m, space, addr, 16, change, sem, scope).view(np.uint64).tolist()

    atom_exch.__name__, atom_cas.__name__ = f"atom_{space}_exch_b128", f"atom_{space}_cas_b128"
    atom_exch.__doc__ = f"Put 16 bytes at `addr` (a multiple of 16) in {ptx} memory, giving what was there."
    atom_cas.__doc__ = f"Put 16 bytes at `addr` in {ptx} memory if those `expected` are there; gives what was there."
    head = "{ .reg .b128 v, w, o; mov.b128 v, $value; "
    tail = "mov.b128 $old, o; }"
    instr(head + f"atom.{{sem}}.{{scope}}.{ptx}.exch.b128 o, [$addr], v; " + tail, target="sm_90",
          ref=f"{_REF}-atom", over=over)(atom_exch)  # fmt: skip
    instr(head + f"mov.b128 w, $expected; atom.{{sem}}.{{scope}}.{ptx}.cas.b128 o, [$addr], w, v; " + tail,
          target="sm_90", ref=f"{_REF}-atom", over=over)(atom_cas)  # fmt: skip


_VECTORS = {"f32": (2, 4), "f16": (2, 4, 8), "bf16": (2, 4, 8), "f16x2": (2, 4), "bf16x2": (2, 4)}


def _vector(name: str, register: str) -> None:
    """Several elements at once, each of them one step; in global memory alone."""
    kind, address = _KINDS[register], SPACES["global"][0]
    several = kind["count"]
    unit = np.dtype(_NUMPY[kind])
    half = register != "f32"

    def change(m: Machine, addr: int, values: Any, op: str, count: int, sem: str, scope: str) -> Any:
        given = np.array(values, unit).view(np.uint8)
        nbytes = count * unit.itemsize
        return _update(m, "global", addr, nbytes, lambda b: combined(op, register, b, given, True), sem, scope)

    def atom(
        m: Machine, addr: address, values: several, old: out(several), *, op: str, count: int,
        sem: str, scope: str
    ) -> Any:  # fmt: skip
        return change(m, addr, values, op, count, sem, scope).view(unit).tolist()

    def red(m: Machine, addr: address, values: several, *, op: str, count: int, sem: str, scope: str) -> None:
        change(m, addr, values, op, count, sem, scope)

    fn = atom if name == "atom" else red
    fn.__name__ = f"{name}_global_{register}_vector"
    fn.__doc__ = (
        f"Combine `count` elements of {register} at `addr` in global memory (a multiple of their bytes) with `values`, "
        f"each of them in one step{', giving what was there' if name == 'atom' else ''}."
    )
    given = "$old, [$addr], $values" if name == "atom" else "[$addr], $values"
    text = f"{name}.{{sem}}.{{scope}}.global.{{op}}{'.noftz' if half else ''}.v{{count}}.{register} {given};"
    over = [
        {"op": op, "count": n, **order}
        for order in _orders(name, ("gpu", "cta", "cluster", "sys"))
        for op in (("add", "min", "max") if half else ("add",))
        for n in _VECTORS[register]
    ]
    instr(text, target="sm_90", ref=f"{_REF}-{name}", over=over)(fn)


_NARROW = ("gpu", "cta", "sys")
for _space in ("global", "shared"):
    for _register in _KINDS:
        _least = _TARGETS.get(_register, "sm_70")
        for _op in ("atom", "red"):
            _row(_op, _space, _register, "", _NARROW, _least)
            _row(_op, _space, _register, "cluster", ("cluster",), "sm_90")
    for _register in ("b16", "b32", "b64"):
        _cas(_space, _register, "", _NARROW, "sm_70")
        _cas(_space, _register, "cluster", ("cluster",), "sm_90")
    _wide(_space)
for _register in _KINDS:
    for _op in ("atom", "red"):
        _row(_op, "dsmem", _register, "", ("cluster", *_NARROW), "sm_90")
for _register in ("b16", "b32", "b64"):
    _cas("dsmem", _register, "", ("cluster", *_NARROW), "sm_90")
for _register in _VECTORS:
    for _op in ("atom", "red"):
        _vector(_op, _register)
