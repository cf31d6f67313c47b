# SPDX-License-Identifier: Apache-2.0
"""Places where a value of a kernel gets another type than it was computed in, as the front end found it.

A variable of a kernel has one type where ways through the code meet, and a function one type of result. The front end
decides on it; compiled code converts there because it says so, and the simulator by these lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from .. import dtypes

Kind: TypeAlias = Any
"""The type of a number: a DType. Of a tuple a tuple of kinds, of an immutable object its `Fields`. None stands for what
has no type at run time."""
LITERALS: dict[type, dtypes.DType] = {bool: dtypes.Boolean, int: dtypes.Int64, float: dtypes.Float64}
"""The types of numbers that Python's own classes have in a kernel."""
NOWHERE = -1

Site: TypeAlias = tuple[CodeType, int]
"""An instruction: the code that holds it, and its offset there."""


class Way(NamedTuple):
    """Tells one copy of a function's code from the others. sites: the calls by which the code was inlined, outermost
    first. rounds: the unrolled loops around it, by the instruction that begins a round, and which round of each it is,
    from 0."""

    sites: tuple[Site, ...] = ()
    rounds: frozenset[tuple[Site, int]] = frozenset()


class Meeting(NamedTuple):
    """Converts the values that come to one instruction with one type.

    way: which copy of the code it is in. at: the offset of the instruction; NOWHERE if it is no one instruction.
    variable: its name, None for what lies on top of the stack. after: it is converted behind the instruction, not
    before it. came: the type that a value has there; None of an object. to: the type that it gets; None where this copy
    of the code converts nothing, whatever comes."""

    way: Way
    at: int
    variable: str | None
    after: bool
    came: Kind
    to: Kind


class Fields(NamedTuple):
    """Describes an object: what is known of each field."""

    kinds: tuple[tuple[str, Any], ...]


class Static(NamedTuple):
    """Holds the value of an argument, or of a field, that the front end knows."""

    value: Any


WHOLE = Static("a whole number")
"""The type of a number that Python computes while a kernel is compiled, as `int(math.log2(cute.size(x)))`: whichever
it is."""


class Call(NamedTuple):
    """Describes a call. site: where it is. given: what is known of its arguments, by place. types: the names of their
    types, which tell objects apart too."""

    site: Site
    given: tuple[Any, ...]
    types: tuple[str, ...] = ()


class Version(NamedTuple):
    """Holds what the front end made of a function for some arguments. given: what is known of those, in the order of
    its parameters: a kind, a `Static`, a `Fields`, or a tuple of such. meetings: where it converts, by its code and
    that of each function that was inlined in it; none if it is traced. calls: those in it, where versions are chosen
    by them. types: as of a call. held: what is known of the fields of immutable objects among the arguments, each the
    names of their static numbers, with these, and of others."""

    given: tuple[Any, ...]
    meetings: frozenset[tuple[CodeType, frozenset[Meeting]]] = frozenset()
    calls: frozenset[Call] = frozenset()
    types: tuple[str, ...] = ()
    held: tuple[tuple[tuple[str, Any], ...], ...] = ()


Meetings: TypeAlias = "dict[CodeType, set[Version]]"
"""The versions of each function that a kernel runs, itself too, by its code."""


def outline(kind: Kind) -> Kind:
    """Return a kind without what is known of objects: None stands for each."""
    if isinstance(kind, Fields):
        return None
    return group(map(outline, kind)) if type(kind) is tuple else kind


def group(kinds: Iterable[Kind]) -> Kind:
    """Return the kind of a tuple of items of some kinds."""
    found = tuple(kinds)
    return found if any(k is not None for k in found) else None


def differs(came: Kind, to: Kind) -> bool:
    """Say whether a value of one type is converted to another."""
    if isinstance(to, Fields):
        held = dict(came.kinds) if isinstance(came, Fields) else {}
        return any(differs(held.get(name), kind) for name, kind in to.kinds)
    if type(to) is tuple:
        return type(came) is not tuple or any(map(differs, came, to))
    return to is not None and came is not to
