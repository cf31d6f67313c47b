# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of integers. That of single floats is `ir/python/arithmetic.py`'s, that of vectors `vectors.py`'s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, SSAValue

from ...dtypes import Boolean, Int32, Int64
from ..python import numbers
from ..python.numbers import number_of
from ..python.writer import Literal
from . import vectors
from .values import AND, BIT, COMPARE, NOT, OR, PLUS, SHIFT, TIMES, UNARY, Expr
from .vectors import SIGNS
from .writer import Lifter, lifts


def _fold(w: Lifter, op: Any, apply: Callable[[int, int], int]) -> bool:
    """Compute with two constants."""
    a, b = w.constant(op.operands[0]), w.constant(op.operands[1])
    if type(a) is not int or type(b) is not int:
        return False
    dtype = w.dtype(op.results[0])
    bits = apply(a, b) & ((1 << dtype.width) - 1)
    w.values[op.results[0]] = Literal(bits - (1 << dtype.width) if bits >> (dtype.width - 1) else bits, dtype)
    return True


_WRAPPING: dict[str, tuple[str, int, int, int, Callable[[int, int], int]]] = {
    "arith.addi": ("+", PLUS, PLUS, PLUS, lambda a, b: a + b),
    "arith.subi": ("-", PLUS, PLUS, TIMES, lambda a, b: a - b),
    "arith.muli": ("*", TIMES, TIMES, TIMES, lambda a, b: a * b),
    "arith.andi": ("&", BIT, SHIFT, SHIFT, lambda a, b: a & b),
    "arith.ori": ("|", BIT, SHIFT, SHIFT, lambda a, b: a | b),
    "arith.xori": ("^", BIT, SHIFT, SHIFT, lambda a, b: a ^ b),
    "arith.shli": ("<<", SHIFT, PLUS, PLUS, lambda a, b: a << b),
}
"""Operations that may be computed in 64 bits and cut to their width at the end: sign, level, the operands' levels."""


@lifts(*_WRAPPING)
def wrapping(w: Lifter, op: Any) -> None:
    """Sums, products and bits."""
    result = op.results[0]
    if w.is_vector(result):
        vectors.operator(w, op, _WRAPPING[op.name][0])
        return
    if w.dtype(result) is Boolean:
        _booleans(w, op)
        return
    symbol, level, left, right, apply = _WRAPPING[op.name]
    if _fold(w, op, apply):
        return
    a, b = w.raw(op.operands[0]), w.raw(op.operands[1])
    if op.name == "arith.shli":
        b = w.expr(op.operands[1])
    raw = Expr(f"{a.at(left)} {symbol} {b.at(right)}", level)
    neutral = {"+": "0", "*": "1"}.get(symbol)
    if neutral is not None and neutral in (a, b):
        kept = op.operands[0] if b == neutral else op.operands[1]
        w.values[w.root(result)] = w.get(kept)
        return
    _cut(w, result, raw, a.static and b.static)


def _cut(w: Lifter, result: Any, raw: Expr, static: bool) -> None:
    """Give an integer its expression, cut to its width; on the host, and where it is static, it is Python's."""
    if static or w.host:
        w.bind(result, Expr(raw, raw.level, static=static))
    else:
        w.bind(result, Expr(w.cast(raw, w.dtype(result)), raw=raw))


def _booleans(w: Lifter, op: Any) -> None:
    """`and`, `or` and `not` of conditions."""
    a, b = op.operands
    known = [w.constant(a), w.constant(b)]
    symbol, level = {"arith.andi": ("and", AND), "arith.ori": ("or", OR)}.get(op.name, ("!=", COMPARE))
    if op.name == "arith.xori" and True in known:
        other = a if known[1] is True else b
        w.bind(op.results[0], Expr(f"not {w.expr(other).at(NOT)}", NOT))
        return
    if symbol in ("and", "or") and (symbol == "and") in known:  # what the other is
        w.values[w.root(op.results[0])] = w.get(b if known[0] is (symbol == "and") else a)
        return
    strict = level + 5 if symbol == "!=" else level
    w.bind(op.results[0], Expr(f"{w.expr(a).at(strict)} {symbol} {w.expr(b).at(strict)}", level))


@lifts("arith.floordivsi", "arith.shrsi")
def floors(w: Lifter, op: Any) -> None:
    """Python's own division, and its shift."""
    symbol, level, left, right = (
        ("//", TIMES, TIMES, UNARY) if op.name.endswith("floordivsi") else (">>", SHIFT, SHIFT, PLUS)
    )
    if w.is_vector(op.results[0]):
        vectors.operator(w, op, symbol)
        return
    if symbol == "//" and w.flow.patterns.is_warp_index(op):
        w.bind(op.results[0], Expr("cute.arch.warp_idx()"))
        return
    a, b = w.expr(op.operands[0]), w.expr(op.operands[1])
    _cut(w, op.results[0], Expr(f"{a.at(left)} {symbol} {b.at(right)}", level), a.static and b.static)


@lifts("arith.divsi", "arith.remsi")
def truncated(w: Lifter, op: Any) -> None:
    """Division towards zero: Python's, where neither number can be negative."""
    name = op.name.rpartition(".")[2]
    a, b = op.operands
    if w.is_vector(a):
        w.refuse(op, "Python's division of vectors rounds down")
    if w.host or _is_natural(w, a) and _is_natural(w, b):
        symbol = "//" if name == "divsi" else "%"
        x, y = w.expr(a), w.expr(b)
        _cut(w, op.results[0], Expr(f"{x.at(TIMES)} {symbol} {y.at(UNARY)}", TIMES), x.static and y.static)
        return
    function = w.names.of(getattr(numbers, name), name)
    text = f"{function}({w.cast(w.raw(a), w.dtype(a))}, {w.cast(w.raw(b), w.dtype(b))})"
    w.bind(op.results[0], Expr(text))


_NATURAL = ("nvvm.read.ptx.sreg.", "cute.size", "cute_nvgpu.arch.make_warp_uniform")


def _is_natural(w: Lifter, value: SSAValue) -> bool:
    """Say whether a number is known not to be negative."""
    value = w.root(value)
    known = w.constant(value)
    if type(known) is int:
        return known >= 0
    name = getattr(value.owner, "name", "")
    if isinstance(value, BlockArgument) and isinstance(op := value.block.parent_op(), scf.ForOp) and not value.index:
        return _is_natural(w, op.lb) and _is_natural(w, op.step)
    if value in w.values and w.expr(value).static and name in ("arith.addi", "arith.muli"):
        return all(_is_natural(w, v) for v in value.owner.operands)  # type: ignore[union-attr]
    if name in ("arith.floordivsi", "arith.divsi", "arith.remsi", "cute_nvgpu.arch.make_warp_uniform"):
        return all(_is_natural(w, v) for v in value.owner.operands)  # type: ignore[union-attr]
    return name.startswith(_NATURAL)


_EXTREMES = {"arith.minsi": "min", "arith.maxsi": "max"}


@lifts(*_EXTREMES)
def extremes(w: Lifter, op: Any) -> None:
    """The lesser or the greater of two integers."""
    name = _EXTREMES[op.name]
    if w.is_vector(op.results[0]):
        vectors.call(w, op, f"cute.{name}")
        return
    text = Expr(f"{name}({w.expr(op.operands[0])}, {w.expr(op.operands[1])})")
    w.bind(op.results[0], text if w.host else Expr(w.cast(text, w.dtype(op.results[0])), raw=text))


@lifts("arith.cmpi")
def compare(w: Lifter, op: arith.CmpiOp) -> None:
    """A comparison of integers."""
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    signed = predicate in ("eq", "ne") or predicate[0] == "s"
    name = predicate if predicate in SIGNS else predicate[1:]
    if not w.is_vector(op.lhs) and (not signed or w.dtype(op.lhs) is Boolean):
        w.shared(op)
        return
    if not signed:
        w.refuse(op, "unsigned comparisons of vectors are not lifted")
    a, b = w.constant(op.lhs), w.constant(op.rhs)
    if type(a) is int and type(b) is int:
        found = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[name]
        w.values[op.result] = Literal(found, Boolean)
        return
    if w.is_vector(op.lhs):
        vectors.compared(w, op, SIGNS[name])
        return
    x, y = w.expr(op.lhs), w.expr(op.rhs)
    w.bind(op.result, Expr(f"{x.at(BIT)} {SIGNS[name]} {y.at(BIT)}", COMPARE, static=x.static and y.static))


@lifts("arith.select")
def select(w: Lifter, op: Any) -> None:
    """One of two values."""
    condition, yes, no = op.operands
    known = w.constant(condition)
    if known is not None:
        w.values[w.root(op.results[0])] = w.get(yes if known else no)
        return
    if w.is_vector(yes):
        vectors.call(w, op, "cute.where")
        return
    parts = (str(w.expr(v)) for v in (condition, yes, no))
    text = Expr(f"cute.where({', '.join(parts)})")
    dtype = number_of(op.results[0].type)
    raw = text
    w.bind(op.results[0], Expr(w.cast(text, dtype), raw=raw) if dtype is Int32 else text)


# ------------------------------------------------------------------ conversions


@lifts("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.extf", "arith.truncf", "arith.sitofp",
       "arith.uitofp", "arith.fptosi", "arith.fptoui")  # fmt: skip
def convert(w: Lifter, op: Any) -> None:
    """A conversion of numbers, or of a vector's."""
    operand, result = op.operands[0], op.results[0]
    name = op.name.rpartition(".")[2]
    if w.is_vector(operand):
        vectors.convert(w, op, name)
        return
    src, dst = w.dtype(operand), w.dtype(result)
    known = w.constant(operand)
    if type(known) is int and name in ("extsi", "index_cast"):
        w.values[w.root(result)] = Literal(known, dst)
        return
    text = w.expr(operand)
    if src is Boolean:
        negative = name in ("extsi", "sitofp")
        w.bind(result, Expr(f"-{w.cast(text, dst)}", UNARY) if negative else Expr(w.cast(text, dst)))
        return
    if name in ("extui", "uitofp"):
        text = Expr(w.cast(text, numbers.UNSIGNED[src.width]))
    if name == "fptoui":
        text = Expr(w.cast(text, numbers.UNSIGNED[dst.width]))
    if dst is Boolean:
        text = Expr(f"{text.at(BIT)} != 0" if src.is_float else f"{text.at(SHIFT)} & 1 != 0", COMPARE)
        w.bind(result, text)
        return
    w.bind(result, text if w.host and dst is Int64 else Expr(w.cast(text, dst)))
