# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Accesses to the same memory of several GPUs at once, by one address that stands for all of it (PTX ISA, "multimem").
Any thread. sm_90.

addr: in a multicast mapping (CUDA driver API, "Multicast Object Management"). sem, scope: the order, and the threads
that see it; left out, they are relaxed and sys. Floats narrower than 32 bits come packed in words; acc: the type in
which their sums are made; None, the default, is their own. In the simulator a mapping stands for the memory of all
ranks; of one rank, for its own memory alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from ...dtypes import BFloat16, Float8E4M3FN, Float8E5M2, Float16, Float32, Float64
from ..facts.reduction import combine
from ..form.instr import ACQUIRE, RELAXED, RELEASE, instr
from ..form.kinds import choice, f32, f64, gmem, out, u32, u64
from ..form.machine import Bytes, Machine
from .atomic import combined
from .memory import check_aligned

_REF = "data-movement-and-conversion-instructions-multimem"
_FP8 = "sm_100f|sm_110f|sm_120a|sm_121a"
_INTEGERS = {"add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
             **{op: ("b32", "b64") for op in ("and", "or", "xor")}}  # fmt: skip
_KINDS = {t: u64 if t.endswith("64") else u32 for t in ("u32", "s32", "u64", "s64", "b32", "b64")}
_KINDS |= {"f32": f32, "f64": f64, **dict.fromkeys(("f16x2", "bf16x2", "e4m3x4", "e5m2x4"), u32)}
_VALUE = choice("type", _KINDS)
_VALUES = _VALUE["count"]
_SUMS = {"f32": (None,), "f64": (None,), "f16x2": (None, "f32"), "bf16x2": (None, "f32"),
         "e4m3x4": (None, "f16"), "e5m2x4": (None, "f16")}  # fmt: skip
_FLOATS = {"f32": Float32, "f64": Float64, "f16x2": Float16, "bf16x2": BFloat16, "e4m3x4": Float8E4M3FN,
           "e5m2x4": Float8E5M2}  # fmt: skip
_UNITS = {u32: np.uint32, u64: np.uint64, f32: np.float32, f64: np.float64}


def _orders(sided: str) -> list[dict[str, Any]]:
    return [{"sem": s, "scope": c} for s in (RELAXED, sided) for c in ("sys", "gpu", "cluster", "cta")]


def _sized(type: str, sided: str, **more: Any) -> Iterator[dict[str, Any]]:
    """An element in each order."""
    target = {"target": _FP8} if type.startswith("e") else {}
    yield from ({"type": type, **more, **target, **o} for o in _orders(sided))


def _integers(sided: str, **more: Any) -> Iterator[dict[str, Any]]:
    yield from (c for op, types in _INTEGERS.items() for t in types for c in _sized(t, sided, op=op, **more))


def _sums() -> Iterator[dict[str, Any]]:
    """List the cases of floats, as loads combine them."""
    for type, precisions in _SUMS.items():
        for acc in precisions:
            yield from _sized(type, ACQUIRE, op="add", acc=acc)
        for op in ("min", "max") if type not in ("f32", "f64") else ():
            yield from _sized(type, ACQUIRE, op=op, acc=None)


def _added() -> Iterator[dict[str, Any]]:
    yield from (c for t in ("f32", "f64", "f16x2", "bf16x2") for c in _sized(t, RELEASE, op="add"))


def _vectors(cases: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two and four of them."""
    return [{**c, "count": n} for c in cases if c["type"] != "f64" for n in (2, 4)]


def _stored() -> Iterator[dict[str, Any]]:
    yield from (c for t in _SUMS for c in _sized(t, RELEASE))


def _reduced(op: str, parts: list[Bytes], type: str, acc: str | None) -> Bytes:
    """Combine what lies in the GPUs' memory, the first rank's first: the order is the hardware's, and not told."""
    if type not in _FLOATS:
        return reduce(lambda a, b: combined(op, type, a, b, True), parts)
    own = np.dtype(_FLOATS[type].numpy)
    wide = own if acc is None else np.dtype(acc.replace("f", "float"))
    found = [p.view(own).astype(wide, copy=False) for p in parts]
    total = reduce(lambda a, b: combine(op, a, b, True), found).astype(own, copy=False)
    return total.view(np.uint8)  # type: ignore[no-any-return]


def _load(m: Machine, addr: int, op: str, type: str, acc: str | None, count: int) -> list[Any]:
    unit = np.dtype(_UNITS[_KINDS[type]])
    check_aligned(addr, unit.itemsize * count, "multimem.ld_reduce")
    found = m.atomic_everywhere(addr, unit.itemsize * count, None)
    return _reduced(op, found, type, acc).view(unit).tolist()  # type: ignore[no-any-return]


def _store(m: Machine, addr: int, values: list[Any], type: str, op: str | None, what: str) -> None:
    given = np.array(values, _UNITS[_KINDS[type]]).view(np.uint8)
    check_aligned(addr, given.size, what)
    change = lambda b: given if op is None else combined(op, type, b, given, True)  # noqa: E731
    m.atomic_everywhere(addr, given.size, change, reads=op is not None)


_ORDER = {"sem": RELAXED, "scope": "sys"}
_LOAD: dict[str, Any] = {"target": "sm_90", "ref": f"{_REF}-ld-reduce", "defaults": {**_ORDER, "acc": None}}
_STORE: dict[str, Any] = {"target": "sm_90", "ref": f"{_REF}-st", "defaults": _ORDER}
_RED: dict[str, Any] = {"target": "sm_90", "ref": f"{_REF}-red", "defaults": _ORDER}


@instr("multimem.ld_reduce.{sem}.{scope}.global.{op}<acc:.acc::{acc}>.{type} $value, [$addr];",
       over=[*_integers(ACQUIRE, acc=None), *_sums()], **_LOAD)  # fmt: skip
def multimem_ld_reduce(m: Machine, addr: gmem, value: out(_VALUE), *, op: str, type: str, acc: Any) -> Any:
    """Load an element from each GPU's memory, combined by `op`. addr: a multiple of its size."""
    return _load(m, addr, op, type, acc, 1)[0]


@instr("multimem.ld_reduce.{sem}.{scope}.global.{op}<acc:.acc::{acc}>.v{count}.{type} $value, [$addr];",
       over=_vectors(_sums()), **_LOAD)  # fmt: skip
def multimem_ld_reduce_vector(
    m: Machine, addr: gmem, value: out(_VALUES), *, op: str, type: str, acc: Any, count: int
) -> Any:
    """Load `count` elements from each GPU's memory, combined by `op`. addr: a multiple of all their bytes."""
    return _load(m, addr, op, type, acc, count)


@instr("multimem.st.{sem}.{scope}.global.{type} [$addr], $value;",
       over=[*(c for t in ("b32", "b64") for c in _sized(t, RELEASE)), *_stored()], **_STORE)  # fmt: skip
def multimem_st(m: Machine, addr: gmem, value: _VALUE, *, type: str) -> None:
    """Store an element to each GPU's memory. addr: a multiple of its size."""
    _store(m, addr, [value], type, None, "multimem.st")


@instr("multimem.st.{sem}.{scope}.global.v{count}.{type} [$addr], $value;", over=_vectors(_stored()), **_STORE)
def multimem_st_vector(m: Machine, addr: gmem, value: _VALUES, *, type: str) -> None:
    """Store `count` elements to each GPU's memory. addr: a multiple of all their bytes."""
    _store(m, addr, list(value), type, None, "multimem.st")


@instr("multimem.red.{sem}.{scope}.global.{op}.{type} [$addr], $value;", over=[*_integers(RELEASE), *_added()],
       **_RED)  # fmt: skip
def multimem_red(m: Machine, addr: gmem, value: _VALUE, *, op: str, type: str) -> None:
    """Combine an element of each GPU's memory with `value`, in one step. addr: a multiple of its size."""
    _store(m, addr, [value], type, op, "multimem.red")


@instr("multimem.red.{sem}.{scope}.global.{op}.v{count}.{type} [$addr], $value;", over=_vectors(_added()), **_RED)
def multimem_red_vector(m: Machine, addr: gmem, value: _VALUES, *, op: str, type: str) -> None:
    """Combine `count` elements of each GPU's memory with `value`, each in one step. addr: a multiple of all their
    bytes."""
    _store(m, addr, list(value), type, op, "multimem.red")
