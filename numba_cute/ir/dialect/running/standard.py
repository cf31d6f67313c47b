# SPDX-License-Identifier: Apache-2.0
"""MLIR's own operations, as programs of the dialect use them: numbers, control flow, calls, and C's `printf`, `getenv`
and `atoi`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, StringAttr, SymbolRefAttr

from .machine import Branch, Frame, Left, Machine, Runs, Stopped, fitted, runs, width

# ------------------------------------------------------------------ numbers


def _towards_zero(a: int, b: int) -> int:
    if b == 0:
        raise Stopped("a division by zero")
    return -(-a // b) if (a < 0) != (b < 0) and a % b else a // b


def _unsigned(x: int, bits: int) -> int:
    return x & ((1 << bits) - 1)


_BINARY: dict[str, Callable[[int, int, int], int]] = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    "divsi": lambda a, b, w: _towards_zero(a, b),
    "remsi": lambda a, b, w: a - b * _towards_zero(a, b),
    "divui": lambda a, b, w: _towards_zero(_unsigned(a, w), _unsigned(b, w)),
    "remui": lambda a, b, w: _unsigned(a, w) - _unsigned(b, w) * _towards_zero(_unsigned(a, w), _unsigned(b, w)),
    "ceildivsi": lambda a, b, w: -_floor(-a, b),
    "floordivsi": lambda a, b, w: _floor(a, b),
    "shli": lambda a, b, w: a << _shift(b, w),
    "shrsi": lambda a, b, w: a >> _shift(b, w),
    "shrui": lambda a, b, w: _unsigned(a, w) >> _shift(b, w),
    "minsi": lambda a, b, w: min(a, b),
    "maxsi": lambda a, b, w: max(a, b),
    "minui": lambda a, b, w: min(_unsigned(a, w), _unsigned(b, w)),
    "maxui": lambda a, b, w: max(_unsigned(a, w), _unsigned(b, w)),
}


def _floor(a: int, b: int) -> int:
    if b == 0:
        raise Stopped("a division by zero")
    return a // b


def _shift(by: int, bits: int) -> int:
    if not 0 <= by < bits:
        raise Stopped(f"a shift of {bits} bits by {by}")
    return by


@runs(*(f"arith.{name}" for name in _BINARY))
def _binary(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    t = op.results[0].type
    a, b = operands
    found = _BINARY[op.name.removeprefix("arith.")](a, b, width(t))
    return [fitted(found, t)]


@runs("arith.constant")
def _constant(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    value = op.properties["value"]
    if not isinstance(value, IntegerAttr):
        raise Stopped(f"the constant {value} cannot be run here: integers can")
    return [fitted(value.value.data, op.results[0].type)]


@runs("arith.extsi", "arith.trunci", "arith.index_cast")
def _resized(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    bits = width(op.operands[0].type)
    signed = -operands[0] if bits == 1 and op.name == "arith.extsi" else operands[0]
    return [fitted(signed, op.results[0].type)]


@runs("arith.extui", "arith.index_castui")
def _extended(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    return [fitted(_unsigned(operands[0], width(op.operands[0].type)), op.results[0].type)]


_COMPARED: tuple[tuple[Callable[[int, int], bool], bool], ...] = (
    (lambda a, b: a == b, False), (lambda a, b: a != b, False),
    (lambda a, b: a < b, False), (lambda a, b: a <= b, False),
    (lambda a, b: a > b, False), (lambda a, b: a >= b, False),
    (lambda a, b: a < b, True), (lambda a, b: a <= b, True),
    (lambda a, b: a > b, True), (lambda a, b: a >= b, True),
)  # fmt: skip
"""By the number of the predicate: what it tells, and whether of unsigned numbers."""


@runs("arith.cmpi")
def _compared(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    test, unsigned = _COMPARED[op.properties["predicate"].value.data]
    a, b = operands
    if unsigned:
        bits = width(op.operands[0].type)
        a, b = _unsigned(a, bits), _unsigned(b, bits)
    return [int(test(a, b))]


@runs("arith.select")
def _selected(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    return [operands[1] if operands[0] else operands[2]]


@runs("math.absi")
def _absolute(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    return [fitted(abs(operands[0]), op.results[0].type)]


# ------------------------------------------------------------------ control flow


@runs("func.return", "gpu.return", "gpu.terminator", "scf.yield", "llvm.return")
def _left(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    raise Left(operands)


@runs("func.call")
def _called(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    return machine.call(machine.function(path(op.properties["callee"]), op), operands)


def path(symbol: SymbolRefAttr) -> tuple[str, ...]:
    """Return the names of a symbol, from the outermost."""
    return (symbol.root_reference.data, *(s.data for s in symbol.nested_references.data))


@runs("scf.if")
def _if(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    region = op.regions[0 if operands[0] else 1]
    return machine.region(region, [], frame) if region.blocks else []


@runs("scf.for")
def _for(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    start, stop, step, *carried = operands
    if step <= 0:
        raise Stopped(f"scf.for steps by {step}: a step is positive")
    for i in range(start, stop, step):
        carried = machine.region(op.regions[0], [i, *carried], frame)
    return carried


@runs("scf.condition")
def _condition(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    raise Left(operands)


@runs("scf.while")
def _while(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    carried = operands
    while True:
        go_on, *values = machine.region(op.regions[0], carried, frame)
        if not go_on:
            return values
        carried = machine.region(op.regions[1], values, frame)


@runs("cf.br")
def _jump(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    raise Branch(op.successors[0], operands)


@runs("cf.cond_br")
def _jump_if(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    way = op.successors[0] if operands[0] else op.successors[1]
    values = op.then_arguments if operands[0] else op.else_arguments
    raise Branch(way, [frame[v] for v in values])


# ------------------------------------------------------------------ what C has


@runs("llvm.mlir.addressof")
def _address(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    found = machine.function(path(op.properties["global_name"]), op)
    value = found.properties.get("value")
    if not isinstance(value, StringAttr):
        raise Stopped(f"the global of {op.properties['global_name']} cannot be run here: texts can")
    return [value.data]


@runs("llvm.getelementptr")
def _element(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    constants = op.properties["rawConstantIndices"].get_values()
    if len(operands) > 1 or any(constants):
        raise Stopped("llvm.getelementptr cannot be run here but for the start of a text")
    return [operands[0]]


@runs("llvm.call")
def _c_function(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    callee = op.properties.get("callee")
    name = path(callee)[-1] if isinstance(callee, SymbolRefAttr) else ""
    function = _C.get(name)
    if function is None:
        raise Stopped(f"the C function {name!r} cannot be run here: {', '.join(_C)} can")
    found = function(machine, operands)
    return [found] if op.results else []


def _getenv(machine: Machine, operands: list[Any]) -> Any:
    return machine.environment.get(_text(operands[0]))


def _text(x: Any) -> str:
    if not isinstance(x, str):
        raise Stopped("a text is read at a null pointer")
    return x.partition("\0")[0]


def _atoi(machine: Machine, operands: list[Any]) -> int:
    found = re.match(r"\s*[-+]?\d+", _text(operands[0]))
    return 0 if found is None else int(found[0])


def _printf(machine: Machine, operands: list[Any]) -> int:
    text = formatted(_text(operands[0]), operands[1:])
    machine.printed(text)
    return len(text)


_C: dict[str, Callable[[Machine, list[Any]], Any]] = {"getenv": _getenv, "atoi": _atoi, "printf": _printf}
_DIRECTIVE = re.compile(r"%([-+ #0]*\d*)(?:hh|h|ll|l|z)?([dixXucs%])")


def formatted(form: str, values: Sequence[Any]) -> str:
    """Write values as C's `printf` does: integers, characters and texts."""
    left = list(values)

    def one(found: re.Match[str]) -> str:
        if found[2] == "%":
            return "%"
        if not left:
            raise Stopped(f"printf: {form!r} names more values than it is given")
        value = left.pop(0)
        directive = "%" + found[1] + found[2].replace("i", "d").replace("u", "d")
        return str(directive % value)

    text = _DIRECTIVE.sub(one, form)
    if left:
        raise Stopped(f"printf: {form!r} names fewer values than it is given, or one that is not an integer")
    return text


__all__ = ["Runs", "formatted", "path"]
