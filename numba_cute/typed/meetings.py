# SPDX-License-Identifier: Apache-2.0
"""Where a value of a kernel gets another type than it was computed in, as the front end found it.

A variable of a kernel has one type where ways through the code meet, and a function one type of result. The front end
decides on it; compiled code converts there because it says so, and the simulator by these lists.
"""

from __future__ import annotations

from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from .. import dtypes

Kind: TypeAlias = Any
"""The type of a number: a DType. A tuple of such and of None, which stands for what is no number."""
LITERALS: dict[type, dtypes.DType] = {bool: dtypes.Boolean, int: dtypes.Int64, float: dtypes.Float64}
"""The types of numbers that Python's own classes have in a kernel."""
NOWHERE = -1


Way: TypeAlias = tuple[tuple[int, ...], tuple[Any, ...]]


class Meeting(NamedTuple):
    """A conversion at one instruction, of the values that come there with one type.

    way: the offsets of the calls, outermost first, by which the code was inlined, and the indices of the unrolled loops
    around it, outermost first: which of its copies this is. at: the offset of the instruction;
    NOWHERE if it is no one instruction. variable: its name, None for what lies on top of the stack. after: it is
    converted behind the instruction, not before it. came: the type that a value has there. to: the type that it
    gets."""

    way: Way
    at: int
    variable: str | None
    after: bool
    came: Kind
    to: Kind


class Fields(NamedTuple):
    """An object, as an argument: the types of its fields, or what is in them."""

    kinds: tuple[tuple[str, Any], ...]


class Static(NamedTuple):
    """A field of an object that the front end knows: its value."""

    value: Any


class Version(NamedTuple):
    """What the front end made of a function for its arguments' types. given: those, in the order of its parameters; of
    an object a `Fields`. meetings: where it converts, by its code and that of each function that was inlined in it."""

    given: tuple[Kind, ...]
    meetings: frozenset[tuple[CodeType, frozenset[Meeting]]]
    literal: bool = False


Meetings: TypeAlias = "dict[CodeType, set[Version]]"
"""The versions of each function that a kernel runs, itself too, by its code."""


def differs(came: Kind, to: Kind) -> bool:
    """Say whether a value of one type is converted to another."""
    if type(to) is tuple:
        return type(came) is not tuple or any(map(differs, came, to))
    return to is not None and came is not to
