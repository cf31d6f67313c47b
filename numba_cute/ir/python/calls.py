# SPDX-License-Identifier: Apache-2.0
"""The operations of the dialects `cute`, `cute_nvgpu` and `numba` as Python: what they mean is a call, an attribute, an
item or an operator."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from ...compiler.inspection.inference import value_of
from ...typed.descriptions import Constant, Description, Group, Scalar
from ..library.calls import Operand
from ..library.foreign import NumbaValue
from ..library.operations import (
    ApiOp,
    Binary,
    CallOp,
    CastOp,
    GetAttr,
    Inferred,
    LoadElement,
    MakeTuple,
    MethodOp,
    SetAttr,
    SliceOp,
    StaticOp,
    StoreElement,
)
from ..library.rows import PtxOp
from ..library.types import description_of
from .writer import Writer, writes


def _arguments(w: Writer, op: Inferred) -> tuple[list[str], dict[str, str]]:
    """A call's arguments as Python."""
    positional = [_pattern(w, op, p) for p in op.arguments.positional]
    return positional, {name: _pattern(w, op, p) for name, p in op.arguments.keywords}


def _pattern(w: Writer, op: Inferred, pattern: Any) -> str:
    if isinstance(pattern, Operand):
        return w.typed(op.values[pattern.index])
    if isinstance(pattern, tuple):
        items = [_pattern(w, op, p) for p in pattern]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return w.expression(pattern)


def _result(w: Writer, op: Any, text: str) -> None:
    """Assign what an operation gives, or do it for its effect."""
    w.line(text if op.result is None else f"{w.variable(op.result)} = {text}")


def _call(w: Writer, op: Inferred, callee: str, positional: list[str], keywords: dict[str, str]) -> None:
    args = ", ".join([*positional, *(f"{name}={value}" for name, value in keywords.items())])
    _result(w, op, f"{callee}({args})")


@writes(ApiOp)
def api(w: Writer, op: ApiOp) -> None:
    """A call of a function, a class or a method of the API."""
    positional, keywords = _arguments(w, op)
    meant = op.DEFINITION
    if meant.attribute is not None:
        first, *positional = positional
        return _call(w, op, f"{first}.{meant.attribute}", positional, keywords)
    return _call(w, op, w.expression(meant.function), *_by_name(meant.function, positional, keywords))


def _by_name(function: Any, positional: list[str], keywords: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Give arguments that Python's function takes by name alone, and that the IR wrote in their places, their names:
    `numba_cute.make_layout %shape, %stride`."""
    if isinstance(function, type):
        return positional, keywords
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return positional, keywords
    most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    return positional[:most], {**dict(zip(named, positional[most:])), **keywords}


@writes(CallOp)
def call(w: Writer, op: CallOp) -> None:
    """A call of any other function."""
    if op.function is None:  # not all of Numba's are known as globals
        return _call(w, op, _path(w, op.callee.data.text), *_arguments(w, op))
    return _call(w, op, w.expression(op.function), *_arguments(w, op))


def _path(w: Writer, symbol: str) -> str:
    """Return what a symbol names, by its module."""
    module, _, path = symbol.partition(":")
    root = w.names.of(sys.modules[module], module.rpartition(".")[2])
    return f"{root}.{path}" if path else root


@writes(MethodOp)
def method(w: Writer, op: MethodOp) -> None:
    """A call of any other method."""
    (first, *positional), keywords = _arguments(w, op)
    name = op.attribute.data
    _call(w, op, first if name == "__call__" else f"{first}.{name}", positional, keywords)


@writes(GetAttr)
def get_attribute(w: Writer, op: GetAttr) -> None:
    """An attribute that is read."""
    _result(w, op, f"{_arguments(w, op)[0][0]}.{op.attribute}")


@writes(SetAttr)
def set_attribute(w: Writer, op: SetAttr) -> None:
    """A field that is set."""
    (of, _, value), _ = _arguments(w, op)
    w.line(f"{of}.{op.attribute} = {value}")


def _index(w: Writer, op: Inferred, pattern: Any) -> str:
    """Return the text between brackets: slices as Python writes them there."""
    if isinstance(pattern, tuple) and pattern:
        items = [_index(w, op, p) if isinstance(p, slice) else _pattern(w, op, p) for p in pattern]
        return f"{', '.join(items)}{',' if len(items) == 1 else ''}"
    if isinstance(pattern, slice):
        parts = [pattern.start, pattern.stop, *([] if pattern.step is None else [pattern.step])]
        return ":".join("" if p is None else _pattern(w, op, p) for p in parts)
    return _pattern(w, op, pattern)


@writes(SliceOp, LoadElement)
def get_item(w: Writer, op: Any) -> None:
    """An element or a part."""
    of, index = op.arguments.positional
    _result(w, op, f"{_pattern(w, op, of)}[{_index(w, op, index)}]")


@writes(StoreElement)
def set_item(w: Writer, op: StoreElement) -> None:
    """An element or a part that is written."""
    of, index, value = op.arguments.positional
    w.line(f"{_pattern(w, op, of)}[{_index(w, op, index)}] = {_pattern(w, op, value)}")


@writes(PtxOp)
def row(w: Writer, op: PtxOp) -> None:
    """A row of the instruction table."""
    issued, operands = op.row()
    _call(w, op, w.expression(issued), [_pattern(w, op, p) for p in operands], {})


_UNARY = {"neg": "-", "pos": "+", "~": "~", "not": "not "}


@writes(Binary)
def operator(w: Writer, op: Binary) -> None:
    """One of Python's operators."""
    symbol = op.arguments.positional[0]
    operands = [_pattern(w, op, p) for p in op.arguments.positional[1:]]
    if symbol in _UNARY:
        return _result(w, op, f"{_UNARY[symbol]}{operands[0]}")
    if symbol == "in":  # as `operator.contains` has them
        operands.reverse()
    return _result(w, op, f"{operands[0]} {symbol} {operands[1]}")


@writes(MakeTuple)
def make_tuple(w: Writer, op: MakeTuple) -> None:
    """A tuple."""
    _result(w, op, _arguments(w, op)[0][0])


@writes(StaticOp)
def static(w: Writer, op: StaticOp) -> None:
    """A value that its type says: a global."""
    _result(w, op, w.expression(value_of(description_of(op.result_type))))


@writes(NumbaValue)
def value(w: Writer, op: NumbaValue) -> None:
    """A value that is found by its symbol."""
    found = op.symbol.data.found
    _result(w, op, _path(w, op.symbol.data.text) if found is None else w.expression(found))


@writes(CastOp)
def cast(w: Writer, op: CastOp) -> None:
    """A conversion."""
    (given, *_), _ = op.described()
    wanted = description_of(op.result_type)
    _result(w, op, _converted(w, _arguments(w, op)[0][0], given, wanted))


def _converted(w: Writer, text: str, given: Description, wanted: Description) -> str:
    """An expression converted: the numbers within it."""
    if isinstance(wanted, Scalar):
        if isinstance(given, Scalar) and given.dtype is wanted.dtype and given.divisor % wanted.divisor == 0:
            return text if wanted.divisor > 1 or given == wanted else w.cast(text, wanted.dtype)
        return w.cast(text, wanted.dtype)
    if isinstance(wanted, Group) and isinstance(given, Group) and given != wanted:
        pairs = zip(given.items, wanted.items)
        items = [_converted(w, f"{text}[{i}]", *pair) for i, pair in enumerate(pairs)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return w.expression(wanted.value) if isinstance(wanted, Constant) else text
