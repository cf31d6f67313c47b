# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on ints that only typing knows to be static, such as the result of `cute.size(tensor)`, is static too, and
so are sums of tuples of them, tuples that such an int repeats, and comparisons of texts.

What the source alone tells is folded before typing (see `passes`); here an operator on Numba's literals gives one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...seam import CuteError
from ...seam.source.language import NO_REPETITION
from ..bridge import contexts
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.llvmlite import unpack_tuple
from ..ground.numba_cuda import AbstractTemplate, TupleAdd, TupleConstructor, types, typing

_WIDEST = 1 << 63


def _register(op: Callable[..., Any], kinds: tuple[Any, ...]) -> None:
    @contexts.template(op)
    class Template(AbstractTemplate):
        prefer_literal = True

        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) != len(kinds) or not all(map(isinstance, args, kinds)):
                return None
            try:
                value = op(*(a.literal_value for a in args))
            except (ArithmeticError, ValueError):  # which is refused (see `static_faults`)
                return None
            if type(value) not in (int, bool) or not -_WIDEST <= value < 2 * _WIDEST:
                return None
            return typing.signature(types.literal(value), *args)

    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        ty = sig.return_type
        return context.get_constant(types.unliteral(ty), ty.literal_value)

    contexts.lower(op, *kinds)(lower)


for _name in ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and_", "or_", "xor"):
    _register(getattr(operator, _name), (types.IntegerLiteral, types.IntegerLiteral))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _register(getattr(operator, _name), (types.IntegerLiteral, types.IntegerLiteral))
_register(operator.neg, (types.IntegerLiteral,))
_register(operator.not_, (types.BooleanLiteral,))


_OF_TEXTS = tuple(getattr(operator, n) for n in ("eq", "ne", "lt", "le", "gt", "ge", "contains"))


@contexts.operator_rule
def _compare_texts(func: Any, args: Any) -> Any:
    """Compare texts, as of a field that an object was made with, while typing: Numba's own templates of texts, which
    compare at run time, go before ours."""
    key = func.typing_key
    if len(args) != 2 or key not in _OF_TEXTS or not all(map(_is_text, args)):
        return None
    values = [tuple(x.literal_value for x in a) if isinstance(a, types.BaseTuple) else a.literal_value for a in args]
    try:
        found = key(*values)
    except TypeError:  # as of a text and a tuple, which is refused
        return None
    func._impl_keys[tuple(args)] = key
    return typing.signature(types.literal(found), *args)


def _is_text(ty: Any) -> bool:
    several = isinstance(ty, types.BaseTuple) and len(ty) > 0 and all(isinstance(t, types.StringLiteral) for t in ty)
    return several or isinstance(ty, types.StringLiteral)


def _known(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    return context.get_constant(types.boolean, sig.return_type.literal_value)


for _op in _OF_TEXTS:
    for _texts in (types.StringLiteral, types.Tuple, types.UniTuple):
        contexts.lower(_op, _texts, types.StringLiteral)(_known)


@contexts.template(len)
class _TupleLength(AbstractTemplate):
    """A tuple's length is part of its type."""

    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) != 1 or not isinstance(args[0], types.BaseTuple):
            return None
        return typing.signature(types.literal(len(args[0])), *args)


@contexts.template(operator.add)
class _TupleAdd(TupleAdd):
    """`(1, *layout.shape)` is a sum of tuples: its static elements stay static."""

    prefer_literal = True


@contexts.template(operator.mul)
class _TupleRepeat(AbstractTemplate):
    """`n * (a, b)` for a static n is the tuple that Python makes: its items, and their types, again and again."""

    prefer_literal = True

    def generic(self, args: Any, kws: Any) -> Any:
        items, count = _repeated(args)
        if items is None or not isinstance(count, (types.Integer, types.Boolean)):
            return None
        if not isinstance(count, types.Literal):
            raise as_typing_error(CuteError(NO_REPETITION))
        return typing.signature(types.BaseTuple.from_types(tuple(items) * count.literal_value), *args)


def _repeated(args: Any) -> Any:
    """Return the tuple and the number of two operands, or two Nones."""
    if len(args) != 2 or isinstance(args[0], types.BaseTuple) is isinstance(args[1], types.BaseTuple):
        return None, None
    return args if isinstance(args[0], types.BaseTuple) else args[::-1]


@contexts.template(operator.imul)
class _TupleRepeatInPlace(_TupleRepeat):
    """A tuple does not change: `t *= n` gives another one."""


@contexts.lower(operator.imul, types.BaseTuple, types.Any)
@contexts.lower(operator.mul, types.BaseTuple, types.Any)
@contexts.lower(operator.mul, types.Any, types.BaseTuple)
def _repeat(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    value = args[0] if isinstance(sig.args[0], types.BaseTuple) else args[1]
    _, count = _repeated(sig.args)
    return context.make_tuple(builder, sig.return_type, unpack_tuple(builder, value) * count.literal_value)


@contexts.template(tuple)
class _TupleConstructor(TupleConstructor):
    prefer_literal = True
