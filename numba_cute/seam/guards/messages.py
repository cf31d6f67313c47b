# SPDX-License-Identifier: Apache-2.0
"""Messages that the compiler and the simulator share, each raised in its own place; standard library only."""

from __future__ import annotations

import ast
import functools
import linecache
from typing import Any

from ..ground.error import CuteError
from ..ground.naming import article, shown
from ..marks.decorators import HOW_STATIC, is_frozen_class, is_static


class FalseAssertion(CuteError, AssertionError):
    """The error of a kernel's `assert` that is false: as one of its threads runs in the simulator, or for whatever it
    will be given."""


@functools.lru_cache(maxsize=64)
def _asserts(file: str) -> list[ast.Assert]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def assertion_at(file: str, line: int) -> ast.Assert | None:
    """Return the `assert` of a line of source; None if the source is not there."""
    found = [a for a in _asserts(file) if a.lineno <= line <= (a.end_lineno or a.lineno)]
    return max(found, key=lambda a: a.lineno, default=None)


def of_assertion(e: AssertionError, at: tuple[str, int]) -> FalseAssertion:
    """Return the error of an `assert`, at a file and line of the user's, that Python found false."""
    return FalseAssertion(false_assertion(assertion_at(*at), e.args[0] if e.args else None))


def false_assertion(statement: ast.Assert | None, message: Any = None) -> str:
    """Write the message of an `assert` that is false."""
    text = "assert …" if statement is None else f"`assert {ast.unparse(statement.test)}`"
    return f"{text} is false" + (f": {message}" if message else "")


NO_STATIC_BOUNDS = (
    "range_constexpr: its arguments must be static ints (literals, globals, closure variables, arithmetic on them, "
    "sizes of static layouts), the same on every path to the loop; use range() for a run-time count"
)
NO_ALIGNMENT = "array: its alignment must be a power of two from 8 (bytes) on"
NO_NEW_ARRAY = (
    "this makes a new array, for which kernels have no memory: compute its elements one by one, or write them to one "
    "of cuda.local.array"
)
NO_STATIC_UNROLLING = "range: unroll_full must be static, True or False"

READ_ONLY_ARRAY = (
    "the array is read-only, and cannot be written: write to another, or pass a copy, as np.array(x) makes one; what "
    "is captured as a global or closure variable is a constant"
)
"""The remedy that both engines name for an array of NumPy's or Numba's."""


def no_static_shape(what: str) -> str:
    """Write the message for an array whose shape is not known while the kernel is compiled."""
    return (
        f"{what}: its shape is not an int, or is known only at run time, and must be static here: pass a literal or a "
        "constant"
    )


_OF_FLOATS = ("add", "sub", "mul", "truediv")


def check_traced_operator(op: str, dtype: Any) -> None:
    """Raise a CuteError if traced code has no such operator of two numbers. op: its name in `operator`. dtype: the type
    in which they meet."""
    symbol = {"truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "divmod": "divmod"}.get(op, op.rstrip("_"))
    if dtype.is_float and op not in _OF_FLOATS:
        raise CuteError(f"operator {symbol} is not for floating-point values ({dtype})")
    if op == "truediv" and not dtype.is_float:
        raise CuteError(f"operator / is not for integers ({dtype}) in traced code; convert one to a float")
    if op in ("pow", "divmod"):
        raise CuteError(f"operator {symbol} is not for run-time numbers in traced code ({dtype})")


def negative(a: Any, b: Any, op: str) -> str:
    """Write the message for a negative number where a layout divides coordinates. op: "floordiv" or "mod"."""
    sign = "//" if op == "floordiv" else "%"
    return (
        f"{a} {sign} {b}: a coordinate, index or extent that a layout divides is negative; "
        "compiled code divides these as unsigned numbers: give one of at least 0, or leave it out by a condition"
    )


def no_number(x: Any) -> str:
    """Write the message for what stands where a number is needed."""
    return f"{shown(x)} is not a number: {article(type(x).__name__)}"


def how_static(value: Any) -> str:
    """Write how to make `value` static, at the end of a message that it must be; nothing where it is, and of a wrong
    kind or out of range."""
    return "" if is_static(value) else f"; it is known only at run time: {HOW_STATIC}"


def matters(result: Any) -> bool:
    """Return whether a result should be reported where it is dropped: a vector, a tensor, an atom. Layouts cost
    nothing, and whoever makes one may only want to know that there is one."""
    kind = type(result)
    return is_frozen_class(kind) and not kind.__module__.startswith("numba_cute.layout")


def dropped(fn: Any) -> str:
    """Write the message for a result of `fn` that is dropped."""
    owner, _, name = fn.__qualname__.rpartition(".")
    if not owner or owner.endswith("<locals>"):
        return f"{name}(…): its result is dropped, and the call does nothing else: write y = {name}(x, …)"
    return (
        f"{owner}.{name}(…): its result is dropped, and the call does nothing else, for {article(owner)} is immutable: "
        f"write x = x.{name}(…)"
    )


def no_array(atomic: str, x: Any) -> str:
    """Write the message for `cuda.atomic.<atomic>(x, …)` where `x` is an object without elements in memory."""
    return f"cuda.atomic.{atomic}: {x!r} is neither an array nor a tensor"


SMEM_TWICE = (
    "experimental.allocate gives out the dynamic shared memory from its beginning on, and so does SmemAllocator: use "
    "one of them in a kernel"
)


def no_extreme(name: str) -> str:
    """Write the message for `min` or `max` of integers whose type no integer type holds both of."""
    return (
        f"{name} of a signed and an unsigned integer of 64 bits: no type holds all that it may give; convert one of "
        "them, as cute.Int64(x)"
    )


NO_DIGITS = (
    "round(x, n): a kernel rounds to whole numbers; write round(x * 100) / 100, which may differ in the last digit"
)
