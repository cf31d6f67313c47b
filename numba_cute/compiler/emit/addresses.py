# SPDX-License-Identifier: Apache-2.0
"""Addresses as LLVM likes them: pointers that step, rather than sums of integers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from ..ground import llvmlite as ir
from ..ground.builder import Builder


def kept(builder: Builder, value: Any) -> Any:
    """Return an integer as LLVM is to compute it once, and keep it: it takes it for the result of an assembly."""
    if isinstance(value, ir.Constant):
        return value
    kind = "l" if value.type.width == 64 else "r"
    empty = ir.InlineAsm(ir.FunctionType(value.type, [value.type]), "", f"={kind},0")
    return builder.call(empty, [value], attrs=("readnone", "nounwind"))


def shared(builder: Builder, value: Any, element: Any, space: int) -> Any:
    """Make a pointer of a 32-bit address of shared memory: a constant is stepped on by last, and so is part of the
    instruction. The address is small, so that it is the same sum of signed numbers in 64 bits."""
    op: str | None = getattr(value, "opname", None)
    operands: tuple[Any, ...] = getattr(value, "operands", ())
    constant = getattr(operands[1], "constant", None) if op == "add" else None
    if type(constant) is not int or not -_NEAR < constant < _NEAR:
        return builder.inttoptr(value, element.as_pointer(space))
    pointer = builder.inttoptr(builder.sext(operands[0], ir.IntType(64)), ir.IntType(8).as_pointer(space))
    return builder.bitcast(builder.gep(pointer, [ir.IntType(64)(constant)]), element.as_pointer(space))


_NEAR = 1 << 24
"""Constants below it are part of an instruction."""


def stepped(builder: Builder, value: Any, element: Any, space: int) -> Any:
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
                pointer = builder.inttoptr(kept(builder, builder.ptrtoint(pointer, value.type)), pointer.type)
    if constant:
        pointer = builder.gep(builder.bitcast(pointer, ir.IntType(8).as_pointer(space)), [ir.IntType(64)(constant)])
    return builder.bitcast(pointer, element.as_pointer(space))


def _steps(builder: Builder, value: Any, element: Any, space: int) -> tuple[Any, int]:
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


def _without_constant(builder: Builder, value: Any) -> tuple[Any, int]:
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


def apart(builder: Builder, value: Any, period: int) -> tuple[Any, list[Any]]:
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


def without_constant(builder: Builder, value: Any) -> tuple[Any, int]:
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
    return _power_in(value) % period == 0


def _power_in(value: Any) -> int:
    """Return a power of two that divides a value, the greatest that is known; 0 of 0."""
    if isinstance(value, ir.Constant):
        return int(value.constant & -value.constant) if isinstance(value.constant, int) else 1
    op: str | None = getattr(value, "opname", None)
    operands: tuple[Any, ...] = getattr(value, "operands", ())
    if op == "mul":
        return _power_in(operands[0]) * _power_in(operands[1])
    if op == "shl" and isinstance(operands[1], ir.Constant):
        return _power_in(operands[0]) << int(operands[1].constant)
    return _power_in(operands[0]) if op in ("sext", "zext", "trunc") else 1
