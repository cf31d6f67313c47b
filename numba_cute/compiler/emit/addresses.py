# SPDX-License-Identifier: Apache-2.0
"""Addresses as LLVM likes them: pointers that step, rather than sums of integers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from llvmlite import ir

_KEPT = ir.InlineAsm(ir.FunctionType(ir.IntType(64), [ir.IntType(64)]), "", "=l,0")
"""An address that libNVVM computes once and keeps: it would compute it again in each block that a predicate guards."""


def stepped(builder: Any, value: Any, element: Any, space: int) -> Any:
    """Make a pointer of a 64-bit address: if that is a sum, its first term as a pointer, stepped on by the others and,
    last, by what is constant in them.

    LLVM makes one addition of each step from row to row of a tile where it sees pointers; of sums of integers it
    makes three (tests/algebra/test_address_arithmetic.py: 45 integer instructions for `tiles`, and 102). The steps are
    made where the sum was: an access in another block is guarded, and others of its row are so by predicates of theirs.
    """
    block = getattr(value, "parent", None)
    if getattr(value, "opname", None) != "add" or block is builder.block:
        pointer, constant = _steps(builder, value, element, space)
    else:
        with builder.goto_block(block):
            pointer, constant = _steps(builder, value, element, space)
            if constant:
                kept = builder.call(_KEPT, [builder.ptrtoint(pointer, value.type)], attrs=("readnone", "nounwind"))
                pointer = builder.inttoptr(kept, pointer.type)
    if constant:
        pointer = builder.gep(builder.bitcast(pointer, ir.IntType(8).as_pointer(space)), [ir.IntType(64)(constant)])
    return builder.bitcast(pointer, element.as_pointer(space))


def _steps(builder: Any, value: Any, element: Any, space: int) -> tuple[Any, int]:
    """Make the pointer of `stepped`, but for what is constant in the address; gives both."""
    scalar = element.element if isinstance(element, ir.VectorType) else element
    size = scalar.width // 8 if isinstance(scalar, ir.IntType) else 8 if isinstance(scalar, ir.DoubleType) else 4
    steps, constant = [], 0
    while getattr(value, "opname", None) == "add":
        value, step = value.operands
        steps.append(step)
    pointer = builder.inttoptr(value, element.as_pointer(space))
    for step in reversed(steps):
        unit, scale = ir.IntType(8), 1
        if getattr(step, "opname", None) == "mul" and getattr(step.operands[1], "constant", None) == size:
            unit, scale, step = scalar, size, step.operands[0]
        step, known = _without_constant(builder, step)
        constant += known * scale
        pointer = builder.gep(builder.bitcast(pointer, unit.as_pointer(space)), [step])
    return pointer, constant


def _without_constant(builder: Any, value: Any) -> tuple[Any, int]:
    """Split a 64-bit value into a sum of another and a constant.

    A 32-bit product or sum with a constant that does not overflow is widened before, not after: one instruction.
    """
    if isinstance(value, ir.Constant):
        return ir.IntType(64)(0), value.constant
    inner: Any = value.operands[0] if getattr(value, "opname", None) == "sext" else None
    if getattr(inner, "opname", None) in ("add", "mul") and "nsw" in inner.flags:
        first, second = inner.operands
        if isinstance(second, ir.Constant):
            op = getattr(builder, inner.opname)
            value = op(builder.sext(first, value.type), value.type(second.constant))
    if getattr(value, "opname", None) == "add" and isinstance(value.operands[1], ir.Constant):
        rest, known = _without_constant(builder, value.operands[0])
        return rest, known + value.operands[1].constant
    return value, 0


def apart(builder: Any, value: Any, period: int) -> tuple[Any, list[Any]]:
    """Split a sum in two: what is no known multiple of `period`, and the terms that are, constants last.

    What a swizzle does to an address repeats with its period. So the stage of a pipeline is added after it, and the
    swizzle itself does not change from iteration to iteration; constants that come last are part of the instruction.
    """
    terms = list(_terms(value, period))
    beyond = sorted((t for t in terms if _divides(period, t)), key=lambda t: isinstance(t, ir.Constant))
    if not beyond:
        return value, []
    rest = [t for t in terms if not _divides(period, t)] or [value.type(0)]
    return functools.reduce(builder.add, rest), beyond


def without_constant(builder: Any, value: Any) -> tuple[Any, int]:
    """Split a sum in what is not constant, and the constant."""
    terms = list(_terms(value, 1))
    rest = [t for t in terms if not isinstance(t, ir.Constant)] or [value.type(0)]
    known = sum(t.constant for t in terms if isinstance(t, ir.Constant))
    return (functools.reduce(builder.add, rest), known) if known else (value, 0)


def _terms(value: Any, period: int) -> Iterator[Any]:
    """Give the terms of a sum; a constant as its part below the period, and the rest."""
    if getattr(value, "opname", None) == "add":
        for operand in value.operands:
            yield from _terms(operand, period)
    elif isinstance(value, ir.Constant) and isinstance(value.constant, int):
        yield from (value.type(c) for c in (value.constant % period, value.constant - value.constant % period) if c)
    else:
        yield value


def _divides(period: int, value: Any) -> bool:
    """Say whether a value is known to be a multiple of `period`, a power of two (so that wrapping does no harm)."""
    if isinstance(value, ir.Constant):
        return isinstance(value.constant, int) and value.constant % period == 0
    op: str | None = getattr(value, "opname", None)
    operands: tuple[Any, ...] = getattr(value, "operands", ())
    if op == "mul":
        return any(isinstance(x, ir.Constant) and _divides(period, x) for x in operands)
    if op == "shl" and isinstance(operands[1], ir.Constant):
        return bool((1 << operands[1].constant) % period == 0)
    return op in ("sext", "zext", "trunc") and _divides(period, operands[0])
