# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a function that is being lowered, and the objects in its frame."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.llvmlite import alloca_once

_SLOTS, _PARTS = "_cute_slots", "_cute_parts"


@functools.cache
def index_of(at: int) -> ir.Constant:
    """Return the constant of an index, which is one for all that have it."""
    return ir.Constant(ir.IntType(32), at)


def members(builder: Builder, value: Any, count: int) -> list[Any]:
    """Take the members of an LLVM aggregate: what was put there itself where that is seen (the IR stays small, and the
    tracer sees how an address came about)."""
    found: dict[int, Any] = {}
    at = value
    while isinstance(at, ir.InsertValue) and len(at.indices) == 1:
        found.setdefault(at.indices[0], at.operands[1])
        at = at.operands[0]
    if isinstance(at, ir.Constant) and type(at.constant) is list:
        found = {**dict(enumerate(at.constant)), **found}
    if getattr(value, "parent", None) is builder.block:  # what is taken here is there wherever the value is
        found = value.__dict__.setdefault(_PARTS, found)
    for i in range(count):
        if i not in found:
            found[i] = builder.extract_value(value, i)
    return [found[i] for i in range(count)]


def make_aggregate(builder: Builder, ty: Any, values: Sequence[Any]) -> Any:
    """Return a value of an LLVM aggregate's type: a constant of constants."""
    if all(type(v) is ir.Constant for v in values):
        return ir.Constant(ty, list(values))
    made = ir.Constant(ty, ir.Undefined)
    for i, v in enumerate(values):
        made = builder.insert_value(made, v, i)
    return made


def make_slot(builder: Builder, contents: ir.Type, name: str = "", model: Any = None) -> Any:
    """Return the address of a new slot in the frame. model: that of the object in it, which may hold others."""
    slot = alloca_once(builder, contents, name=name)
    builder.function.__dict__.setdefault(_SLOTS, []).append((model, slot))
    return slot


def make_registers(builder: Builder, contents: ir.Type) -> Any:
    """Return the address of a slot for registers, which hold nothing yet: what Numba makes holds zeros, to which
    accumulators that a multiply begins were set by a move each."""
    with builder.goto_entry_block():
        slot = builder.alloca(contents, name="registers")
    builder.function.__dict__.setdefault(_SLOTS, []).append((None, slot))
    return slot


def slots_of(function: Any) -> list[tuple[Any, Any]]:
    """Return the models and addresses of a function's slots."""
    return function.__dict__.get(_SLOTS, [])  # type: ignore[no-any-return]
