# SPDX-License-Identifier: Apache-2.0
"""Run PTX instructions in the simulator that compute with registers, by the first word of each (PTX ISA, "Instruction
Set").

An operation takes the registers and the instruction, and gives False for a form that is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import arch, math
from ..dtypes import Int32, Int64, Uint32
from ..seam import current
from ..tensor.ssa import bitcast
from .ptx_memory import MEMORY
from .ptx_registers import NARROW, TYPES, UNSIGNED, Operation, Registers, Step, as_type

_PAIRS = {"f32x2": "f32", "f16x2": "f16", "bf16x2": "bf16"}
"""Types of two numbers in one register, with the type of one."""


def _select(when: Any, a: Any, b: Any) -> Any:
    return current().select(when, a, b)


def _of_type(function: Callable[..., Any], *others: str) -> Operation:
    """An instruction that computes with numbers of its last word's type, or with pairs of them. others: the words that
    may stand between."""

    def apply(r: Registers, step: Step) -> bool:
        kind = step.words[-1]
        if not set(step.words[1:-1]) <= set(others):
            return False
        target, *sources = step.operands
        if kind in TYPES:
            r.held[target] = function(*(r.read(s, kind) for s in sources))
            return True
        return kind in _PAIRS and _halves(r, target, [r.halves(s, _PAIRS[kind]) for s in sources], function)

    return apply


def _halves(r: Registers, target: str, sources: list[list[Any]], function: Callable[..., Any]) -> bool:
    r.held[target] = r.joined([function(*parts) for parts in zip(*sources)])
    return True


def _fused(r: Registers, step: Step) -> bool:
    """fma: rounded once, of pairs of 16-bit floats too."""
    half: Any = {"f16x2": arch.fma_packed_f16x2, "bf16x2": arch.fma_packed_bf16x2}.get(step.words[-1])
    if half is None:
        return _of_type(math.fma, "rn", "ftz")(r, step)
    target, *sources = step.operands
    r.held[target] = half(*(r.read(s, "b32") for s in sources))
    return set(step.words[1:-1]) <= {"rn"}


def _is_signed(kind: str) -> bool:
    return kind[0] == "s"


def _width(kind: str) -> int:
    return int(kind.lstrip("subf"))


def _high(a: Any, b: Any, kind: str) -> Any:
    return arch.mul_hi(a, b, signed=_is_signed(kind), width=_width(kind))


def _wide(a: Any, b: Any, kind: str) -> Any:
    """Return the whole product: of 16 bits in 32, of 32 in 64."""
    if _width(kind) == 16:
        return Int32(a) * Int32(b) if _is_signed(kind) else Uint32(a) * Uint32(b)
    product = arch.mul_wide(a, b, signed=_is_signed(kind))
    return Int64(product) if _is_signed(kind) else product


def _product(r: Registers, step: Step) -> bool:
    """mul and mad: the low half, as of floats, the high one, or all of the product; mad adds to it."""
    which, kind = step.words[1], step.words[-1]
    if which not in ("hi", "wide") or len(step.words) != 3:
        return _LOW[step.words[0]](r, step)
    target, a, b, *c = step.operands
    made = (_high if which == "hi" else _wide)(r.read(a, kind), r.read(b, kind), kind)
    wide = kind if which == "hi" else f"{kind[0]}{2 * _width(kind)}"
    r.held[target] = made + r.read(c[0], wide) if c else made
    return True


_LOW = {"mul": _of_type(lambda a, b: a * b, "rn", "ftz", "lo"), "mad": _of_type(lambda a, b, c: a * b + c, "lo")}


def _divided(r: Registers, step: Step) -> bool:
    """div and rem: of integers toward zero."""
    kind, rest = step.words[-1], step.words[0] == "rem"
    target, a, b = step.operands
    if kind not in TYPES or not set(step.words[1:-1]) <= {"rn", "full", "approx", "ftz"}:
        return False
    x, y = r.read(a, kind), r.read(b, kind)
    if kind[0] == "f":
        r.held[target] = x / y
        return not rest
    p, q = (_select(n < 0, -n, n) for n in (x, y)) if _is_signed(kind) else (x, y)
    made = p % q if rest else p // q
    falls = (x < 0) if rest else (x < 0) != (y < 0)
    r.held[target] = _select(falls, -made, made) if _is_signed(kind) else made
    return True


def _shifted(r: Registers, step: Step) -> bool:
    """shl and shr: by as many bits as there are at most."""
    kind = step.words[-1]
    target, a, n = step.operands
    x, by, last = r.read(a, kind), r.read(n, "u32"), _width(kind) - 1
    near = _select(by > last, last, by)
    if step.words[0] == "shr" and _is_signed(kind):
        r.held[target] = x >> near
    else:
        made = x << near if step.words[0] == "shl" else x >> near
        r.held[target] = _select(by > last, TYPES[kind](0), TYPES[kind](made))
    return len(step.words) == 2


def _extreme(r: Registers, step: Step) -> bool:
    """min and max: of Float32 and a NaN the other, or with NaN the NaN."""
    *how, kind = step.words[1:]
    least = step.words[0] == "min"
    target, a, b = step.operands
    x, y = r.read(a, kind), r.read(b, kind)
    if kind == "f32":
        r.held[target] = (arch.fmin if least else arch.fmax)(x, y, nan="NaN" in how)
        return set(how) <= {"ftz", "NaN"}
    r.held[target] = _select(x < y if least else x > y, x, y)
    return not how and kind[0] in "su"


def _move(r: Registers, step: Step) -> bool:
    """mov: a number, or two halves to a whole and back."""
    target, source = step.operands
    kind = step.words[-1]
    if kind == "pred":
        r.held[target] = r.predicate(source)
    elif kind not in TYPES:
        return False
    elif source.startswith("{"):
        parts = r.several(source)
        half = int(kind[1:]) // len(parts)
        r.held[target] = r.joined([r.read(p, f"b{half}") for p in parts])
    elif target.startswith("{"):
        parts = r.several(target)
        half, whole = int(kind[1:]) // len(parts), r.read(source, kind)
        for i, name in enumerate(parts):
            r.held[name] = UNSIGNED[half]((whole >> (half * i)) & ((1 << half) - 1))
    else:
        r.held[target] = r.read(source, kind)
    return True


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: (a < b) | (a > b), "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "nan": lambda a, b: (a != a) | (b != b),
}  # fmt: skip
_COMPARED |= {"lo": _COMPARED["lt"], "ls": _COMPARED["le"], "hi": _COMPARED["gt"], "hs": _COMPARED["ge"]}


def _comparison(word: str) -> Callable[[Any, Any], Any] | None:
    """Return the comparison of a word; one with u behind it holds of NaN too."""
    if word in _COMPARED:
        return _COMPARED[word]
    if word == "num":
        return lambda a, b: (a == a) & (b == b)
    if word[-1:] == "u" and word[:-1] in _COMPARED:
        return lambda a, b: _COMPARED[word[:-1]](a, b) | _COMPARED["nan"](a, b)
    return None


def _compare(r: Registers, step: Step) -> bool:
    """setp: a predicate of two numbers, with a third predicate if one is given."""
    word, *others, kind = step.words[1:]
    compare = _comparison(word)
    joins = [o for o in others if o in _LOGICAL]
    if compare is None or kind not in TYPES or set(others) - {"ftz", *joins}:
        return False
    target, a, b, *given = step.operands
    holds = compare(r.read(a, kind), r.read(b, kind))
    first, _, second = target.partition("|")
    for name, value in ((first, holds), (second, _not(holds))):
        if name:
            r.held[name] = _LOGICAL[joins[0]](value, r.predicate(given[0])) if joins else value
    return True


def _not(p: Any) -> Any:
    return current().compare("==", p, 0)


_LOGICAL: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b
}  # fmt: skip


def _logical(r: Registers, step: Step) -> bool:
    """and, or, xor, not: of words, or of predicates."""
    name, kind = step.words[0], step.words[-1]
    if kind != "pred":
        return _of_type(_LOGICAL.get(name, lambda a: ~a))(r, step)
    target, *sources = step.operands
    read = [r.predicate(s) for s in sources]
    r.held[target] = _not(read[0]) if name == "not" else _LOGICAL[name](*read)
    return True


def _chosen(r: Registers, step: Step) -> bool:
    """selp: one of two numbers, by a predicate."""
    target, a, b, p = step.operands
    r.held[target] = _select(r.predicate(p), r.read(a, step.words[1]), r.read(b, step.words[1]))
    return True


def _bits(function: Callable[..., Any], *, signed: bool = False) -> Operation:
    """An instruction of arch's on the bits of words. signed: whether it takes signed numbers."""

    def apply(r: Registers, step: Step) -> bool:
        kind = step.words[-1]
        if len(step.words) != 2 or kind not in TYPES:
            return False
        target, first, *rest = step.operands
        how = {"signed": _is_signed(kind)} if signed else {}
        words = [r.read(first, kind), *(r.read(s, "u32") for s in rest)]
        r.held[target] = function(*words, width=_width(kind), **how)
        return True

    return apply


def _inserted(r: Registers, step: Step) -> bool:
    """bfi: bits of one word in another."""
    target, a, b, start, length = step.operands
    kind = step.words[-1]
    words = r.read(a, kind), r.read(b, kind), r.read(start, "u32"), r.read(length, "u32")
    r.held[target] = arch.bfi(*words, width=_width(kind))
    return len(step.words) == 2


def _permuted(r: Registers, step: Step) -> bool:
    """prmt: four of eight bytes."""
    target, *words = step.operands
    r.held[target] = arch.prmt(*(r.read(w, "b32") for w in words))
    return step.words[1:] == ("b32",)


def _funnel(r: Registers, step: Step) -> bool:
    """shf: a word of the 64 bits of two."""
    target, low, high, by = step.operands
    kinds: dict[tuple[str, ...], str] = {
        ("l", "wrap"): "l",
        ("r", "wrap"): "r",
        ("l", "clamp"): "clamp_left",
        ("r", "clamp"): "clamp_right",
    }
    kind = kinds.get(tuple(step.words[1:3]))
    if kind is None:
        return False
    r.held[target] = arch.shf(r.read(high, "b32"), r.read(low, "b32"), r.read(by, "u32"), kind)
    return step.words[3:] == ("b32",)


def _logic3(r: Registers, step: Step) -> bool:
    """lop3: any function of three bits."""
    target, *words, table = step.operands
    a, b, c = (r.read(w, "b32") for w in words)
    r.held[target] = arch.lop3(a, b, c, int(table, 0))
    return step.words[1:] == ("b32",)


_ROUNDED: dict[str, Callable[[Any], Any]] = {
    "rni": math.roundeven, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil
}  # fmt: skip


def _convert(r: Registers, step: Step) -> bool:
    """cvt: of one number, or of a pair to narrower or wider floats."""
    *how, to, of = step.words[1:]
    if to in NARROW and of == "f32":
        return set(how) <= {"rn", "satfinite"} and _narrowed(r, step, to)
    if to in ("f16x2", "bf16x2") and of in NARROW:
        return set(how) <= {"rn"} and _widened(r, step, to, of)
    if to not in TYPES or of not in TYPES:
        return False
    target, source = step.operands
    x, ways = r.read(source, of), [_ROUNDED[h] for h in how if h in _ROUNDED]
    whole = TYPES[to].is_integer
    r.held[target] = TYPES[to](ways[0](x) if ways else x)
    falls = TYPES[of].is_float and whole
    return set(how) <= {"rn", "ftz", *_ROUNDED} and bool(ways) == falls


def _narrowed(r: Registers, step: Step, to: str) -> bool:
    """The first source is the upper half."""
    target, high, low = step.operands
    dtype = NARROW[to]
    halves = [bitcast(dtype(r.read(s, "f32")), dtype, UNSIGNED[dtype.width]) for s in (low, high)]
    r.held[target] = r.joined(halves)
    return True


def _widened(r: Registers, step: Step, to: str, of: str) -> bool:
    target, source = step.operands
    dtype, wide = NARROW[of], NARROW[to]
    word = r.read(source, f"b{2 * dtype.width}")
    parts = (UNSIGNED[dtype.width]((word >> (dtype.width * i)) & ((1 << dtype.width) - 1)) for i in range(2))
    r.held[target] = r.joined([as_type(wide(bitcast(p, UNSIGNED[dtype.width], dtype)), wide) for p in parts])
    return True


_APPROX = ("approx", "ftz", "rn", "sat")
OPERATIONS: dict[str, Operation] = {
    **MEMORY, "mov": _move, "setp": _compare, "selp": _chosen, "cvt": _convert, "mul": _product, "mad": _product,
    "div": _divided, "rem": _divided, "shl": _shifted, "shr": _shifted, "min": _extreme, "max": _extreme,
    "and": _logical, "or": _logical, "xor": _logical, "not": _logical, "fma": _fused,
    "add": _of_type(lambda a, b: a + b, "rn", "ftz"), "sub": _of_type(lambda a, b: a - b, "rn", "ftz"),
    "neg": _of_type(lambda a: -a, "ftz"), "abs": _of_type(math.abs, "ftz"), "sqrt": _of_type(math.sqrt, *_APPROX),
    "popc": _bits(arch.popc), "clz": _bits(arch.clz), "brev": _bits(arch.brev), "bfi": _inserted,
    "bfind": _bits(arch.bfind, signed=True), "bfe": _bits(arch.bfe, signed=True), "prmt": _permuted, "shf": _funnel,
    "lop3": _logic3,
    "tanh": _of_type(lambda x: math.tanh(x, fastmath=True), *_APPROX),
    "sin": _of_type(lambda x: math.sin(x, fastmath=True), *_APPROX),
    "cos": _of_type(lambda x: math.cos(x, fastmath=True), *_APPROX),
    "ex2": _of_type(lambda x: math.exp2(x, fastmath=True), *_APPROX),
    "lg2": _of_type(lambda x: math.log2(x, fastmath=True), *_APPROX),
    "rsqrt": _of_type(lambda x: math.rsqrt(x, fastmath=True), *_APPROX),
    "rcp": _of_type(lambda x: arch.rcp_approx(x), *_APPROX),
}  # fmt: skip
