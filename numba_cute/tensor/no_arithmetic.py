# SPDX-License-Identifier: Apache-2.0
"""What is said of arithmetic on tensors: they are memory, and their elements are computed with."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError


class NotThat(CuteError, TypeError):
    """The error for asking a tensor for its length or its number: who tries that, as `list(t)` does, expects a
    TypeError."""


def settable(cls: type, settable: str) -> None:
    """Let one property of a frozen class be set."""
    frozen: Any = cls.__setattr__

    def set(self: Any, name: str, value: Any) -> None:
        if name == settable:
            object.__setattr__(self, name, value)
        else:
            frozen(self, name, value)

    setattr(cls, "__setattr__", set)  # noqa: B010 - a frozen dataclass has its own


def no_operand(t: Any, expression: str) -> CuteError:
    """Make the error of an operator on a tensor. expression: as it is written, with {} for the tensor."""
    return CuteError(
        f"`{expression.format('t')}` of {t!r}: a tensor is memory and has no arithmetic; load its elements, "
        f"`{expression.format('t.load()')}`, or one, `{expression.format('t[i]')}`"
    )


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


def refuse_operators(cls: type) -> None:
    """Have all arithmetic on objects of a class raise that error."""

    def refuse(name: str, expression: str) -> None:
        def operator(self: Any, *_: Any) -> Any:
            raise no_operand(self, expression)

        setattr(cls, f"__{name}__", operator)

    for name, sign in _SIGNS.items():
        refuse(name, f"{{}} {sign} x")
        if name not in ("lt", "le", "gt", "ge"):
            refuse(f"r{name}", f"x {sign} {{}}")
    for name, expression in (("neg", "-{}"), ("pos", "+{}"), ("abs", "abs({})"), ("invert", "~{}")):
        refuse(name, expression)
