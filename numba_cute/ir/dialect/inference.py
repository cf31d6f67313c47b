# SPDX-License-Identifier: Apache-2.0
"""The types that an operation gives, from the types that it takes: what it means, on values of which no more is known
than their types say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from ...layout.basis import ScaledBasis
from ...layout.layout import ComposedLayout, Layout
from .attributes import CuteType, type_of
from .checked import Refused, checked, leaves_of, raw
from .definitions import Definition
from .leaves import Dynamic
from .meaning import FUNCTIONS, Value


def value_of_type(t: Attribute) -> Value:
    """Return the value of which a type says all that is known."""
    if isinstance(t, CuteType):
        return Value(t.kind, t.data)
    if isinstance(t, IntegerType):
        return Value(str(t), Dynamic(t.width.data))
    raise Refused(f"'{t}' is not a type of the dialect")


def type_of_value(value: Value) -> Attribute:
    """Return the type that says of a value all that is known of it before a program runs."""
    if value.kind[0] == "i" and value.kind[1:].isdigit():
        return IntegerType(int(value.kind[1:]))
    return type_of(value.kind, checked(value.kind, raw(value.value)))


def with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Replace the integers of a value, in the order in which they are written."""
    if isinstance(value, tuple):
        return tuple(with_leaves(x, change) for x in value)
    if isinstance(value, ComposedLayout):
        parts = [with_leaves(x, change) for x in (value.inner, value.offset, value.outer)]
        return ComposedLayout(*parts)
    if isinstance(value, Layout):
        return Layout(with_leaves(value.shape, change), with_leaves(value.stride, change))
    if isinstance(value, ScaledBasis):
        return ScaledBasis(change(value.value), value.mode)
    return change(value) if isinstance(value, (int, Dynamic)) else value


def _plain(leaf: Any) -> Any:
    return Dynamic(leaf.width, 1, leaf.value) if isinstance(leaf, Dynamic) else leaf


def _promises(values: Sequence[Value]) -> bool:
    return any(isinstance(x, Dynamic) and x.divisor > 1 for v in values for x in leaves_of(v.value))


def inferred(d: Definition, types: Sequence[Attribute], attributes: Mapping[str, Any]) -> list[Attribute]:
    """Return the types of an operation's results, as they are written where nobody says them: what divides them is told
    where it is told of an operand. Raises Refused where the operation does not take such operands."""
    told = _promises([value_of_type(t) for t in types])
    return [t if told else without_promises(t) for t in most_known(d, types, attributes)]


def most_known(d: Definition, types: Sequence[Attribute], attributes: Mapping[str, Any]) -> list[Attribute]:
    """Return the types of an operation's results with all that is known of what divides them: 8 divides `?` times 8."""
    operands = [value_of_type(t) for t in types]
    return [type_of_value(v) for v in FUNCTIONS[d.name](operands, attributes)]


def without_promises(t: Attribute) -> Attribute:
    """Return a type that says nothing of what divides its `?`."""
    return type_of_value(Value(t.kind, with_leaves(t.data, _plain))) if isinstance(t, CuteType) else t


def compatible(found: Attribute, given: Attribute) -> bool:
    """Return whether a result may have the type that the text gives it: the one of which most is known, or one that
    promises less of what divides it."""
    if found == given:
        return True
    if not isinstance(found, CuteType) or not isinstance(given, CuteType) or found.kind != given.kind:
        return False
    more, less = leaves_of(found.data), leaves_of(given.data)
    if len(more) != len(less) or with_leaves(found.data, _plain) != with_leaves(given.data, _plain):
        return False
    return all(not isinstance(b, Dynamic) or a.divisor % b.divisor == 0 for a, b in zip(more, less, strict=True))


__all__ = ["compatible", "inferred", "most_known", "type_of_value", "value_of_type", "with_leaves"]
