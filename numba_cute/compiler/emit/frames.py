# SPDX-License-Identifier: Apache-2.0
"""The objects in the frame of a function that is being lowered."""

from __future__ import annotations

import functools
from typing import Any

from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.llvmlite import alloca_once

_SLOTS = "_cute_slots"


@functools.cache
def index_of(at: int) -> ir.Constant:
    """Return the constant of an index, which is one for all that have it."""
    return ir.Constant(ir.IntType(32), at)


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
