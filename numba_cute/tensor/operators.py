# SPDX-License-Identifier: Apache-2.0
"""Operators that a tensor has none of, for it is memory: what each says."""

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
    """Make the error for an operator on a tensor. expression: what was written, with {} for the tensor."""
    return CuteError(
        f"`{expression.format('t')}` of {t!r}: a tensor is memory and has no arithmetic; load its elements, "
        f"`{expression.format('t.load()')}`, or one, `{expression.format('t[i]')}`"
    )


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


def refuse_operators(cls: Any) -> None:
    """Have the operators of a class say what to do instead."""
    for name, sign in _SIGNS.items():
        _refuse(cls, name, f"{{}} {sign} x")
        if name not in ("lt", "le", "gt", "ge"):
            _refuse(cls, f"r{name}", f"x {sign} {{}}")
    for name, expression in (("neg", "-{}"), ("pos", "+{}"), ("abs", "abs({})"), ("invert", "~{}")):
        _refuse(cls, name, expression)


def _refuse(cls: Any, name: str, expression: str) -> None:
    def refuse(self: Any, *_: Any) -> Any:
        raise no_operand(self, expression)

    setattr(cls, f"__{name}__", refuse)
