# SPDX-License-Identifier: Apache-2.0
"""Vectors. In a module all are flat; here one that was loaded has the shape of its tensor, so that where two meet the
other takes its shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import SSAValue

from ...dtypes import Boolean, DType
from ...layout.int_tuple import product
from ..python.arithmetic import constant as scalar_constant
from ..python.writer import Literal
from .spelling import dtype_text, element, tuple_text
from .values import BIT, COMPARE, PLUS, SHIFT, TIMES, UNARY, Expr, Vector
from .writer import Lifter, lifts

SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def elements(w: Lifter, op: Any, t: Any) -> DType:
    """Return the element type of a vector's type."""
    found = element(str(t.element_type))
    if found is None:
        w.refuse(op, f"kernels have no element type {t.element_type}")
    return found


def count(t: Any) -> int:
    """Count the elements of a vector's type."""
    return int(product(tuple(t.get_shape())))


def meeting(w: Lifter, values: Sequence[SSAValue]) -> tuple[list[Expr], Any]:
    """Return several values as operands of one operation, and the shape that the vectors among them have there."""
    found = [w.expr(v) for v in values]
    shape = next((x.shape for x in found if isinstance(x, Vector) and x.shape is not None), None)
    return [_shaped(x, shape, v) if w.is_vector(v) else x for x, v in zip(found, values, strict=True)], shape


def _shaped(x: Expr, shape: Any, value: SSAValue) -> Expr:
    own = getattr(x, "shape", None)
    if own == shape:
        return x
    text = str(count(value.type)) if shape is None else tuple_text(shape)
    if isinstance(x, Vector) and x.splat:
        return Expr(f"cute.full({text}, {', '.join(x.splat)})")
    return Expr(f"{x.at(95)}.reshape({text})")


def flat(w: Lifter, value: SSAValue) -> Expr:
    """Return a vector with its elements one after the other."""
    return _shaped(w.expr(value), None, value)


def call(w: Lifter, op: Any, function: str, more: str = "") -> None:
    """Write a function of vectors."""
    found, shape = meeting(w, op.operands)
    w.bind(op.results[0], Vector(f"{function}({', '.join(found)}{more})", shape=shape))


def operator(w: Lifter, op: Any, symbol: str) -> None:
    """Write an operator of two vectors."""
    level = {"+": PLUS, "-": PLUS, "*": TIMES, "/": TIMES, "//": TIMES, "<<": SHIFT, ">>": SHIFT}.get(symbol, BIT)
    (a, b), shape = meeting(w, op.operands)
    w.bind(op.results[0], Vector(f"{a.at(level)} {symbol} {b.at(level + 5)}", level, shape=shape))


def compared(w: Lifter, op: Any, sign: str) -> None:
    """Write a comparison of two vectors."""
    (a, b), shape = meeting(w, op.operands)
    w.bind(op.results[0], Vector(f"{a.at(BIT)} {sign} {b.at(BIT)}", COMPARE, shape=shape))


def convert(w: Lifter, op: Any, name: str) -> None:
    """Write a conversion of a vector. name: of the operation."""
    source, target = elements(w, op, op.operands[0].type), elements(w, op, op.results[0].type)
    if name in ("extui", "uitofp", "fptoui") and source is not Boolean:
        w.refuse(op, "unsigned vectors are not lifted")
    (x,), shape = meeting(w, op.operands)
    if source is Boolean and name == "extsi":
        text = f"-{x.at(UNARY)}.to({dtype_text(target)})"
        w.bind(op.results[0], Vector(text, UNARY, shape=shape))
        return
    w.bind(op.results[0], Vector(f"{x.at(95)}.to({dtype_text(target)})", shape=shape))


@lifts("nvgpu.cvt_fptrunc")
def packed(w: Lifter, op: Any) -> None:
    """A conversion of a vector to floats of a byte or less."""
    convert(w, op, "truncf")


# ------------------------------------------------------------------ constants


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
    dtype = elements(w, op, op.result.type)
    _full(w, op, str(Literal(bool(number) if dtype is Boolean else number, dtype)))


@lifts("llvm.mlir.zero")
def zero(w: Lifter, op: Any) -> None:
    """A vector of zeros."""
    if not w.is_vector(op.results[0]):
        w.refuse(op, "LLVM's own constants are lifted where they are vectors")
    _full(w, op, "0")


def _full(w: Lifter, op: Any, text: str) -> None:
    t = op.results[0].type
    splat = text, dtype_text(elements(w, op, t))
    w.values[w.root(op.results[0])] = Vector(f"cute.full({count(t)}, {', '.join(splat)})", splat=splat)


@lifts("vector.broadcast", "vector.splat")
def broadcast(w: Lifter, op: Any) -> None:
    """A vector of one number."""
    found = w.get(op.operands[0])
    _full(w, op, str(found) if isinstance(found, Literal) else str(w.expr(op.operands[0])))


# ------------------------------------------------------------------ arithmetic

_OPERATORS = {
    "arith.addf": ("+", PLUS),
    "arith.subf": ("-", PLUS),
    "arith.mulf": ("*", TIMES),
    "arith.divf": ("/", TIMES),
}


@lifts(*_OPERATORS)
def floats(w: Lifter, op: Any) -> None:
    """Arithmetic of floats, or of vectors of them."""
    symbol, level = _OPERATORS[op.name]
    if w.is_vector(op.results[0]):
        operator(w, op, symbol)
        return
    if w.dtype(op.results[0]).width < 32:  # computed as Float32
        w.shared(op)
        return
    a, b = (w.expr(v) for v in op.operands)
    w.bind(op.results[0], Expr(f"{a.at(level)} {symbol} {b.at(level + 5)}", level))


_FUNCTIONS = {
    "arith.maximumf": ("cute.max", ", propagate_nan=True"), "arith.minimumf": ("cute.min", ", propagate_nan=True"),
    "arith.maxnumf": ("cute.max", ""), "arith.minnumf": ("cute.min", ""),
}  # fmt: skip


@lifts(*_FUNCTIONS)
def functions(w: Lifter, op: Any) -> None:
    """The same of functions."""
    if w.is_vector(op.results[0]):
        call(w, op, *_FUNCTIONS[op.name])
    else:
        w.shared(op)


@lifts("arith.negf")
def negative(w: Lifter, op: Any) -> None:
    """The negative of a float, or of a vector of them."""
    if not w.is_vector(op.results[0]):
        w.shared(op)
        return
    (x,), shape = meeting(w, op.operands)
    w.bind(op.results[0], Vector(f"-{x.at(UNARY)}", UNARY, shape=shape))


@lifts("arith.cmpf")
def compare_floats(w: Lifter, op: Any) -> None:
    """A comparison of floats."""
    if not w.is_vector(op.lhs):
        w.shared(op)
        return
    predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
    ordered = predicate[0] == "o" and predicate[1:] in ("eq", "lt", "le", "gt", "ge") or predicate == "une"
    if not ordered:
        w.refuse(op, f"{predicate} of vectors is not lifted")
    compared(w, op, SIGNS[predicate[1:]])


@lifts("math.exp", "math.exp2", "math.log", "math.log2", "math.log10", "math.sqrt", "math.rsqrt", "math.sin",
       "math.cos", "math.tanh", "math.erf", "math.absf", "math.floor", "math.ceil", "math.powf",
       "math.fma")  # fmt: skip
def mathematics(w: Lifter, op: Any) -> None:
    """A function of `cute.math`, of a number or a vector."""
    if not w.is_vector(op.results[0]) and w.dtype(op.results[0]).width < 32:
        w.shared(op)
        return
    name = {"absf": "abs", "powf": "pow"}.get(op.name.rpartition(".")[2], op.name.rpartition(".")[2])
    flags = op.properties.get("fastmath")
    fast = name in ("exp", "exp2", "log", "log2", "log10", "rsqrt", "sin", "cos", "tanh", "sqrt", "pow")
    more = ", fastmath=True" if fast and flags is not None and {"fast", "afn"} & {f.value for f in flags.data} else ""
    if w.is_vector(op.results[0]):
        call(w, op, f"cute.math.{name}", more)
    else:
        w.bind(op.results[0], Expr(f"cute.math.{name}({', '.join(map(w.typed, op.operands))}{more})"))


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


# ------------------------------------------------------------------ parts


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
    name = _registers(w, op, op.results[0].type)
    for i, value in enumerate(op.operands):
        w.line(f"{name}[{i}] = {w.expr(value)}")
    w.bind(op.results[0], Expr(f"{name}.load()"))


def _registers(w: Lifter, op: Any, t: Any) -> str:
    name = w.temporary("elements")
    w.line(f"{name} = cute.make_rmem_tensor({count(t)}, {dtype_text(elements(w, op, t))})")
    return name


def _given(op: Any, name: str) -> Any:
    return {**op.attributes, **op.properties}[name]


def _place(w: Lifter, op: Any, part: Any, whole: Any) -> tuple[int, int, int]:
    """Return where a part lies in a vector: its size, how many such parts there are, and which one it is."""
    offsets, strides = ([n.value.data for n in _given(op, name)] for name in ("offsets", "strides"))
    if len(offsets) != 1 or strides != [1]:
        w.refuse(op, "parts of vectors of several dimensions, or of every other element, are not lifted")
    size, all_, offset = count(part), count(whole), offsets[0]
    if all_ % size or offset % size:
        w.refuse(op, f"{size} elements of {all_} that begin at {offset} are no whole part: it is not lifted")
    return size, all_ // size, offset // size


@lifts("vector.extract_strided_slice")
def extract_part(w: Lifter, op: Any) -> None:
    """Some elements of a vector, one after the other."""
    source = op.operands[0]
    size, parts, which = _place(w, op, op.results[0].type, source.type)
    w.bind(op.results[0], Vector(f"{w.expr(source).at(95)}.reshape(({size}, {parts}))[None, {which}]"))


@lifts("vector.insert_strided_slice")
def insert_part(w: Lifter, op: Any) -> None:
    """A vector with some elements set: registers, which a chain of such operations sets part by part."""
    part, whole = op.operands
    size, parts, which = _place(w, op, part.type, whole.type)
    found = w.expr(whole)
    begun = w.flow.patterns.made_by(whole, op.name) is not None and w.flow.uses[w.root(whole)] == 1
    if begun and found.endswith(".load()") and w.root(whole).owner.parent is op.parent:
        name = found.removesuffix(".load()")
    else:
        name = _registers(w, op, whole.type)
        splat = isinstance(found, Vector) and found.splat
        w.line(f"{name}.fill({splat[0]})" if splat else f"{name}.store({found})")
    w.line(f"cute.local_tile({name}, ({size},), ({which},)).store({w.expr(part)})")
    w.values[w.root(op.results[0])] = Vector(f"{name}.load()")


# ------------------------------------------------------------------ bits


def _bits(t: Any) -> int:
    found = element(str(getattr(t, "element_type", t)))
    return 0 if found is None else found.width


@lifts("vector.bitcast", "llvm.bitcast")
def bitcast(w: Lifter, op: Any) -> None:
    """The bits of a vector, or of an integer, as elements of another type: the first are the lowest."""
    source, target = op.operands[0].type, op.results[0].type
    old, new = _bits(source), _bits(target)
    if not old or not new or max(old, new) > 32 or not (w.is_vector(op.operands[0]) or w.is_vector(op.results[0])):
        w.refuse(op, f"the bits of {source} as {target} are not lifted")
    if old == new and w.is_vector(op.operands[0]) and w.is_vector(op.results[0]):
        (x,), shape = meeting(w, op.operands)
        w.bind(op.results[0], Vector(f"{x.at(95)}.bitcast({w.element(str(target.element_type))})", shape=shape))
    elif old < new:
        _joined(w, op, old, new)
    else:
        _parted(w, op, old, new)


def renamed(w: Lifter, op: Any) -> None:
    """Write a vector whose elements have another name: of as many bits."""
    source, target = op.operands[0].type, op.results[0].type
    if not _bits(source) or (_bits(source), count(source)) != (_bits(target), count(target)):
        w.refuse(op, f"a conversion of {source} to {target} is not lifted")
    if source == target:
        w.values[w.root(op.results[0])] = w.get(op.operands[0])
    else:
        bitcast(w, op)


def _joined(w: Lifter, op: Any, old: int, new: int) -> None:
    """Write wider elements, each of several narrow ones."""
    source, result = op.operands[0], op.results[0]
    parts = new // old
    whole = w.temporary("bits")
    w.line(
        f"{whole} = {flat(w, source).at(95)}.bitcast(cute.Uint{old}).to(cute.Int32)"
        f".reshape(({parts}, {count(source.type) // parts}))"
    )
    at = ", None" if w.is_vector(result) else ", 0"
    text = " | ".join(f"{whole}[{i}{at}]" + (f" << {old * i}" if i else "") for i in range(parts))
    if w.is_vector(result):
        made = f"({text}).to(cute.Int{new})"
        dtype = w.element(str(result.type.element_type))
        w.bind(result, Vector(made if dtype == f"cute.Int{new}" else f"{made}.bitcast({dtype})"))
    else:
        w.bind(result, Expr(w.cast(text, w.dtype(result))))


def _parted(w: Lifter, op: Any, old: int, new: int) -> None:
    """Write narrower elements, several of each wide one."""
    source, result = op.operands[0], op.results[0]
    parts = old // new
    x = w.expr(source)
    name = w.temporary("elements")
    w.line(f"{name} = cute.make_rmem_tensor({count(result.type)}, cute.Uint{new})")
    if w.is_vector(source):
        whole = w.temporary("bits")
        w.line(f"{whole} = {flat(w, source).at(95)}.bitcast(cute.Uint{old}).to(cute.Uint32)")
        for i in range(parts):
            w.line(
                f"cute.logical_divide({name}, {parts})[({i}, None)].store(({whole} >> {new * i}).to(cute.Uint{new}))"
            )
    else:
        for i in range(parts):
            moved = f"{x.at(SHIFT)} >> {new * i}" if i else str(x)
            w.line(f"{name}[{i}] = {f'({moved})' if i else moved} & {(1 << new) - 1}")
    w.bind(result, Vector(f"{name}.load().bitcast({w.element(str(result.type.element_type))})"))


__all__ = ["SIGNS", "call", "compared", "convert", "flat", "meeting", "operator", "renamed"]
