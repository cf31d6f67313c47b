# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of integers, and of vectors. That of single floats is `ir/python/arithmetic.py`'s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import BlockArgument, SSAValue

from ...dtypes import Boolean, DType, Int32, Int64
from ...layout.int_tuple import product
from ..python import numbers
from ..python.arithmetic import constant as scalar_constant
from ..python.numbers import number_of
from ..python.writer import HANDLERS, Literal
from .spelling import dtype_text, element
from .values import AND, BIT, COMPARE, NOT, OR, PLUS, SHIFT, TIMES, UNARY, Expr
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
"""What may be computed in 64 bits and cut to its width at the end: sign, level, the operands' levels."""


@lifts(*_WRAPPING)
def wrapping(w: Lifter, op: Any) -> None:
    """Sums, products and bits."""
    result = op.results[0]
    if w.is_vector(result):
        _vectors(w, op, _WRAPPING[op.name][0])
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
        _vectors(w, op, symbol)
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
    """Whether a number is known to be none below zero."""
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
        w.bind(op.results[0], Expr(f"cute.{name}({w.expr(op.operands[0])}, {w.expr(op.operands[1])})"))
        return
    text = Expr(f"{name}({w.expr(op.operands[0])}, {w.expr(op.operands[1])})")
    w.bind(op.results[0], text if w.host else Expr(w.cast(text, w.dtype(op.results[0])), raw=text))


_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@lifts("arith.cmpi")
def compare(w: Lifter, op: arith.CmpiOp) -> None:
    """A comparison of integers."""
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    signed = predicate in ("eq", "ne") or predicate[0] == "s"
    name = predicate if predicate in _SIGNS else predicate[1:]
    if not w.is_vector(op.lhs) and (not signed or w.dtype(op.lhs) is Boolean):
        HANDLERS[arith.CmpiOp](w, op)
        return
    if not signed:
        w.refuse(op, "unsigned comparisons of vectors are not lifted")
    a, b = w.constant(op.lhs), w.constant(op.rhs)
    if type(a) is int and type(b) is int:
        found = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[name]
        w.values[op.result] = Literal(found, Boolean)
        return
    x, y = w.expr(op.lhs), w.expr(op.rhs)
    w.bind(op.result, Expr(f"{x.at(BIT)} {_SIGNS[name]} {y.at(BIT)}", COMPARE, static=x.static and y.static))


@lifts("arith.select")
def select(w: Lifter, op: Any) -> None:
    """One of two values."""
    condition, yes, no = op.operands
    known = w.constant(condition)
    if known is not None:
        w.values[w.root(op.results[0])] = w.get(yes if known else no)
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
        _convert_vector(w, op, name)
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
        w.bind(
            result, Expr(f"{text.at(SHIFT)} & 1 != 0", COMPARE) if not src.is_float else Expr(f"{text} != 0", COMPARE)
        )
        return
    w.bind(result, text if w.host and dst is Int64 else Expr(w.cast(text, dst)))


def _elements(w: Lifter, op: Any, t: Any) -> DType:
    found = element(str(t.element_type))
    if found is None:
        w.refuse(op, f"kernels have no element type {t.element_type}")
    return found


def _convert_vector(w: Lifter, op: Any, name: str) -> None:
    source, target = _elements(w, op, op.operands[0].type), _elements(w, op, op.results[0].type)
    if name in ("extui", "uitofp", "fptoui") and source is not Boolean:
        w.refuse(op, "unsigned vectors are not lifted")
    if source is Boolean and name == "extsi":
        text = f"-{w.expr(op.operands[0]).at(UNARY)}.to({dtype_text(target)})"
        w.bind(op.results[0], Expr(text, UNARY))
        return
    w.bind(op.results[0], Expr(f"{w.expr(op.operands[0]).at(95)}.to({dtype_text(target)})"))


@lifts("nvgpu.cvt_fptrunc")
def packed(w: Lifter, op: Any) -> None:
    """A conversion of a vector to floats of a byte or less."""
    _convert_vector(w, op, "truncf")


# ------------------------------------------------------------------ constants and vectors


@lifts("arith.constant")
def constant(w: Lifter, op: arith.ConstantOp) -> None:
    """A constant is written where it is used; a vector of one number is made."""
    if not isinstance(op.result.type, VectorType):
        scalar_constant(w, op)
        return
    value = op.value
    if not isinstance(value, DenseIntOrFPElementsAttr) or not value.is_splat():
        w.refuse(op, "a vector of several constants is not lifted")
    number = value.get_values()[0]
    _full(w, op, repr(number))


def _full(w: Lifter, op: Any, text: str) -> None:
    t = op.results[0].type
    count = product(tuple(t.get_shape()))
    w.bind(op.results[0], Expr(f"cute.full({count}, {text}, {dtype_text(_elements(w, op, t))})"))


@lifts("vector.broadcast", "vector.splat")
def broadcast(w: Lifter, op: Any) -> None:
    """A vector of one number."""
    found = w.get(op.operands[0])
    _full(w, op, str(found) if isinstance(found, Literal) else str(w.expr(op.operands[0])))


_OF_VECTORS = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/"}


def _vectors(w: Lifter, op: Any, symbol: str) -> None:
    level = {"+": PLUS, "-": PLUS, "*": TIMES, "/": TIMES, "//": TIMES, "<<": SHIFT, ">>": SHIFT}.get(symbol, BIT)
    a, b = w.expr(op.operands[0]), w.expr(op.operands[1])
    w.bind(op.results[0], Expr(f"{a.at(level)} {symbol} {b.at(level + 5)}", level))


@lifts(*_OF_VECTORS)
def floats(w: Lifter, op: Any) -> None:
    """Arithmetic of floats, or of vectors of them."""
    if w.is_vector(op.results[0]):
        _vectors(w, op, _OF_VECTORS[op.name])
    else:
        HANDLERS[type(op)](w, op)


_FUNCTIONS = {
    "arith.maximumf": "cute.max({}, {}, propagate_nan=True)", "arith.minimumf": "cute.min({}, {}, propagate_nan=True)",
    "arith.maxnumf": "cute.max({}, {})", "arith.minnumf": "cute.min({}, {})", "arith.negf": "-{}",
}  # fmt: skip


@lifts(*_FUNCTIONS)
def functions(w: Lifter, op: Any) -> None:
    """The same of functions."""
    if not w.is_vector(op.results[0]):
        HANDLERS[type(op)](w, op)
        return
    w.bind(op.results[0], Expr(_FUNCTIONS[op.name].format(*(w.expr(v).at(UNARY) for v in op.operands)), UNARY))


@lifts("arith.cmpf")
def compare_floats(w: Lifter, op: Any) -> None:
    """A comparison of floats."""
    if not w.is_vector(op.lhs):
        HANDLERS[arith.CmpfOp](w, op)
        return
    predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
    ordered = predicate[0] == "o" and predicate[1:] in ("eq", "lt", "le", "gt", "ge") or predicate == "une"
    if not ordered:
        w.refuse(op, f"{predicate} of vectors is not lifted")
    sign = _SIGNS[predicate[1:]]
    w.bind(op.result, Expr(f"{w.expr(op.lhs).at(BIT)} {sign} {w.expr(op.rhs).at(BIT)}", COMPARE))


@lifts("math.exp", "math.exp2", "math.log", "math.log2", "math.log10", "math.sqrt", "math.rsqrt", "math.sin",
       "math.cos", "math.tanh", "math.erf", "math.absf", "math.floor", "math.ceil", "math.powf",
       "math.fma")  # fmt: skip
def mathematics(w: Lifter, op: Any) -> None:
    """A function of `cute.math`, of a number or a vector."""
    if not w.is_vector(op.results[0]):
        HANDLERS[type(op)](w, op)
        return
    name = {"absf": "abs", "powf": "pow"}.get(op.name.rpartition(".")[2], op.name.rpartition(".")[2])
    flags = op.properties.get("fastmath")
    fast = name in ("exp", "exp2", "log", "log2", "log10", "rsqrt", "sin", "cos", "tanh", "sqrt", "pow")
    more = ", fastmath=True" if fast and flags is not None and {"fast", "afn"} & {f.value for f in flags.data} else ""
    args = ", ".join(str(w.expr(v)) for v in op.operands)
    w.bind(op.results[0], Expr(f"cute.math.{name}({args}{more})"))


@lifts("vector.extract", "vector.extractelement")
def extract(w: Lifter, op: Any) -> None:
    """An element of a vector."""
    if op.name == "vector.extractelement":
        index = w.constant(op.operands[1])
        if type(index) is not int:
            w.refuse(op, "an element of a vector at an index that is known only at run time is not lifted")
    else:
        position = [n for n in op.static_position.get_values()]
        if len(position) != 1 or len(op.operands) > 1:
            w.refuse(op, "a part of a vector of several dimensions is not lifted")
        index = position[0]
    w.bind(op.results[0], Expr(f"{w.expr(op.operands[0]).at(95)}[{index}]"))


@lifts("vector.from_elements")
def from_elements(w: Lifter, op: Any) -> None:
    """A vector of several numbers: registers that are filled one by one."""
    t = op.results[0].type
    name = w.temporary("elements")
    w.line(f"{name} = cute.make_rmem_tensor({product(tuple(t.get_shape()))}, {dtype_text(_elements(w, op, t))})")
    for i, value in enumerate(op.operands):
        w.line(f"{name}[{i}] = {w.expr(value)}")
    w.bind(op.results[0], Expr(f"{name}.load()"))


_REDUCTIONS = {"add": "ADD", "mul": "MUL", "maximumf": "MAX", "minimumf": "MIN", "maxnumf": "MAX", "minnumf": "MIN",
               "maxsi": "MAX", "minsi": "MIN"}  # fmt: skip


@lifts("vector.reduction")
def reduction(w: Lifter, op: Any) -> None:
    """The sum, or another reduction, of a vector."""
    kind = str(op.properties.get("kind", "")).rpartition("<")[2].strip("> ")
    if kind not in _REDUCTIONS:
        w.refuse(op, f"the reduction {kind} is not lifted")
    if len(op.operands) > 1:
        first = w.get(op.operands[1])
        start = str(w.expr(op.operands[1])) if not isinstance(first, Literal) else w.cast(str(first), first.dtype)
    else:
        start = "0" if kind == "add" else "1"
        if kind not in ("add", "mul"):
            w.refuse(op, "a reduction without a first value is lifted for sums and products alone")
    value = w.expr(op.operands[0]).at(95)
    w.bind(op.results[0], Expr(f"{value}.reduce(cute.ReductionOp.{_REDUCTIONS[kind]}, {start}, 0)"))
