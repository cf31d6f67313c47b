# SPDX-License-Identifier: Apache-2.0
"""Find the range of an LLVM integer: its least and its greatest value, which may be narrower than its type's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...isa.rows.special import sreg
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.building import known_block, known_launch
from ..ground.memory import memory

_DEPTH = 6
"""`known` looks at no more than so many instructions in a chain."""


def known(value: Any, depth: int = _DEPTH) -> tuple[int, int]:
    """Give the least and the greatest that an integer may be as a signed number: of its type, at worst."""
    whole = _of_type(value.type)
    if isinstance(value, ir.Constant):
        return (value.constant, value.constant) if _is_signed(value) else whole
    found = getattr(value, "metadata", {}).get("range")
    if found is not None:
        return found.operands[0].constant, found.operands[1].constant - 1
    op, operands = getattr(value, "opname", None), getattr(value, "operands", ())
    if not depth or op not in _RULES:
        return whole
    least, most = _RULES[op](value.type, *((lambda x=x: known(x, depth - 1)) for x in operands), *operands)
    return (least, most) if whole[0] <= least and most <= whole[1] else whole


def _is_signed(value: Any) -> bool:
    """Say whether a constant is written as a signed number: one of as many bits may be, or as an unsigned one."""
    least, most = _of_type(value.type)
    return type(value.constant) is int and least <= value.constant <= most


def _of_type(ty: Any) -> tuple[int, int]:
    return -(1 << ty.width - 1), (1 << ty.width - 1) - 1


def _zext(ty: Any, of: Any, x: Any) -> tuple[int, int]:
    least, most = of()
    return (least, most) if least >= 0 else (0, (1 << x.type.width) - 1)


def _product(ty: Any, of_a: Any, of_b: Any, *_: Any) -> tuple[int, int]:
    ends = [a * b for a in of_a() for b in of_b()]
    return min(ends), max(ends)


def _and(ty: Any, of_a: Any, of_b: Any, *_: Any) -> tuple[int, int]:
    tops = [most for least, most in (of_a(), of_b()) if least >= 0]
    return (0, min(tops)) if tops else _of_type(ty)


def _sum(ty: Any, of_a: Any, of_b: Any, *_: Any) -> tuple[int, int]:
    (a, b), (c, d) = of_a(), of_b()
    return a + c, b + d


def _difference(ty: Any, of_a: Any, of_b: Any, *_: Any) -> tuple[int, int]:
    (a, b), (c, d) = of_a(), of_b()
    return a - d, b - c


_RULES: dict[str, Callable[..., tuple[int, int]]] = {
    "sext": lambda ty, of, x: of(),
    "zext": _zext,
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "and": _and,
}


def narrowed(builder: Builder, value: Any, width: int) -> Any:
    """Return an integer of `width` bits that is the same signed number; None if its value is not known to fit."""
    least, most = known(value)
    low, high = _of_type(ir.IntType(width))
    if not low <= least <= most <= high:
        return None
    if isinstance(value, ir.Constant):
        return ir.IntType(width)(value.constant)
    inner = value.operands[0] if value.opname in ("sext", "zext") else value
    if inner.type.width == width:
        return inner
    if inner.type.width < width:
        return getattr(builder, value.opname)(inner, ir.IntType(width))
    return builder.trunc(value, ir.IntType(width))


def mark(builder: Builder, call: Any, bounds: tuple[int, int]) -> None:
    """Say in LLVM's IR from what on, and up to what, a call's result is. Not where variables are told to debuggers: of
    what LLVM 7 makes of some of them libNVVM then says "Symbol name with unsupported characters"."""
    if builder.debug_metadata is not None and not memory().lowers[-1].flags.dbg_directives_only:
        return
    ends = [call.type(n - (1 << call.type.width) if n > _of_type(call.type)[1] else n) for n in bounds]
    call.set_metadata("range", builder.module.add_metadata(ends))


def of_launch(register: str, bounds: tuple[int, int]) -> tuple[int, int]:
    """Give the bounds of a special register in the kernel that is being compiled: what is known of its blocks."""
    name, _, axis = register.partition(".")
    threads, block = known_launch()[1], known_block()
    if name not in ("tid", "ntid") or not isinstance(threads, int):
        return bounds
    most = threads if block is None else block["xyz".index(axis)]
    least = 0 if name == "tid" else 1 if block is None else most
    return least, most + (name == "ntid")


def of_registers(call_sreg: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Make of Numba's `call_sreg`, which reads a special register, one that says what values it may have, in a function
    of this library."""

    def call(builder: Builder, name: str) -> Any:
        bounds = _registers().get(name) if memory().lowers else None
        if bounds is None:
            return call_sreg(builder, name)
        bounds = of_launch(name, bounds)
        if bounds[1] - bounds[0] == 1:
            return ir.IntType(32)(bounds[0])
        found = call_sreg(builder, name)
        mark(builder, found, bounds)
        return found

    return call


@functools.cache
def _registers() -> dict[str, tuple[int, int]]:
    return {case["register"]: case["range"] for case in sreg.cases.given if "range" in case}
