# SPDX-License-Identifier: Apache-2.0
"""Functions of a kernel with the conversions that the front end found (`typed.meetings`): where ways through the code
meet, a value gets the type that the variable has there; so too what a function returns.

A function that the front end made for several types of arguments has code for each. One that it did not compile (it was
traced, or the kernel is a plain function) converts nothing.
"""

from __future__ import annotations

import bisect
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from ....dtypes import DType
from ....seam import CuteError
from ....seam.ground.error import InternalError
from ....typed.meetings import LITERALS, NOWHERE, Fields, Kind, Meeting, Meetings, Static, Version, Way, differs
from ..arithmetic.lanes import Lanes
from ..arithmetic.number import Number
from ..arithmetic.operators import casts as casts_to, type_of_class
from ..arithmetic.undefined import Undefined
from ..unrolled import copy_of

Pairs = tuple[tuple[Kind, Kind], ...]
"""The types that values have, and those that they get."""


class Cast(NamedTuple):
    """What is cast where. at: the offset of the instruction before which it is, or `after` it. variable: its name, or
    None for what lies on top of the stack. to: how, by the ways that have led to the code; one where all are alike."""

    at: int
    variable: str | None
    after: bool
    to: tuple[tuple[Way, Pairs], ...]


Plan = tuple[tuple[CodeType, tuple[Cast, ...]], ...]
"""The casts of a function's code, and of the code in it."""


class Unclear(CuteError):
    """The simulator cannot tell which of several conversions is meant."""


class Conversions:
    """The conversions of a kernel's functions. meetings: as the front end found them."""

    def __init__(self, meetings: Meetings) -> None:
        self._meetings = meetings
        self._plans: dict[CodeType, dict[Version, Plan]] = {}

    def function(self, code: CodeType, make: Callable[[Plan], FunctionType]) -> Any:
        """Return what a run calls: `make` gives the function with casts."""
        versions = self._meetings.get(code, ())
        plans = {v: _plan(code, v, self._meetings) for v in versions}
        if len(set(plans.values())) < 2:
            return make(next(iter(plans.values()), ()))
        return Versions(code, plans, make)


class Versions:
    """A function of which there is code for several types of arguments."""

    def __init__(self, code: CodeType, plans: dict[Version, Plan], make: Callable[[Plan], FunctionType]) -> None:
        self._code, self._plans, self._make = code, plans, make
        self._made: dict[Plan, FunctionType] = {}
        self._plain = self._function(())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        bound = inspect.signature(self._plain).bind(*args, **named)
        bound.apply_defaults()
        given = tuple(bound.arguments.values())
        fitting = {version: plan for version, plan in self._plans.items() if _fit(version.given, given)}
        found = set(fitting.values())
        if len(found) > 1:  # a literal and a number at run time are one here: the latter's code has all branches
            found = {plan for version, plan in fitting.items() if not version.literal}
        if len(found) != 1:
            raise _unclear(self._code, "its arguments' types")
        return self._function(found.pop())(*args, **named)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def _function(self, plan: Plan) -> FunctionType:
        if plan not in self._made:
            self._made[plan] = self._make(plan)
        return self._made[plan]


def _unclear(code: CodeType, what: str) -> CuteError:
    return Unclear(
        f"{code.co_name}: it is compiled in several ways, which convert its variables to different types, and the "
        f"simulator cannot tell them apart by {what}: convert to one type where the variable is set, as cute.Int64(x)"
    )


def _fit(kinds: Sequence[Any], given: Sequence[Any]) -> bool:
    """Say whether arguments may be those that a version was made for: their numbers are of its types."""
    return len(kinds) != len(given) or all(map(_fits, kinds, given))


def _fits(kind: Any, value: Any) -> bool:
    if isinstance(kind, Fields):
        held = getattr(value, "__dict__", {})
        return all(_fits(k, held[name]) for name, k in kind.kinds if name in held)
    if isinstance(kind, Static):
        return value == kind.value if type(value) is type(kind.value) else True
    if type(kind) is tuple:
        return isinstance(value, (tuple, list)) and len(value) == len(kind) and all(map(_fits, kind, value))
    return isinstance(value, Undefined) or kind_of(value) == kind


def kind_of(value: Any) -> Kind:
    """Return the type of a number, or of those of a tuple or list; None for anything else."""
    if isinstance(value, Number):
        return value.dtype
    if type(value) is Lanes:
        return value.dtype or LITERALS[int]
    if isinstance(value, (tuple, list)):
        kinds = tuple(map(kind_of, value))
        return kinds if any(k is not None for k in kinds) else None
    return LITERALS.get(type(value)) or (type_of_class(type(value)) if isinstance(value, np.generic) else None)


# ---------------------------------------------------------------- casts


def _plan(code: CodeType, version: Version, meetings: Meetings) -> Plan:
    """Return the casts of a function made for some types, and of the functions in it, inlined or not."""
    held = dict(version.meetings)
    found = [(code, _casts(code, held.get(code, ())))]
    for inner in _inside(code):
        if inner in held:
            found.append((inner, _casts(inner, held[inner])))
        elif inner in meetings:
            found += _of_handed_on(inner, meetings)
    return tuple((c, made) for c, made in found if made)


def _of_handed_on(code: CodeType, meetings: Meetings) -> Plan:
    """Return the casts of a function in another that is compiled by itself: the same for all types of arguments."""
    plans = {_plan(code, v, meetings) for v in meetings[code]}
    if len(plans) > 1:
        raise _unclear(code, "where it is made")
    return plans.pop()


def _inside(code: CodeType) -> Iterable[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _inside(const)


def _casts(code: CodeType, meetings: Iterable[Meeting]) -> tuple[Cast, ...]:
    """Return casts in the order of the code. CuteError: an instruction has several for values of one type."""
    found: dict[tuple[int, bool, str | None], dict[Way, dict[Kind, Kind]]] = {}
    for m in meetings:
        pairs = found.setdefault((m.at, m.after, m.variable), {}).setdefault(m.way, {})
        if m.at == NOWHERE or pairs.setdefault(m.came, m.to) != m.to:
            raise _unclear(code, f"the way that led to {m.variable or 'here'}")
    made = (Cast(at, variable, after, _by_way(ways)) for (at, after, variable), ways in found.items())
    return tuple(sorted(made, key=lambda c: (c.at, c.after, c.variable or "")))


def _by_way(found: dict[Way, dict[Kind, Kind]]) -> tuple[tuple[Way, Pairs], ...]:
    """Return casts by the ways that led to them; one where they do not differ."""
    alike: dict[Kind, Kind] = {}
    for pairs in found.values():
        if any(alike.setdefault(came, to) != to for came, to in pairs.items()):
            return tuple((way, tuple(pairs.items())) for way, pairs in found.items())
    return ((next(iter(found)), tuple(alike.items())),)


def follows_calls(plan: Plan) -> bool:
    """Say whether some casts depend on the calls that led to them."""
    return any(len(cast.to) > 1 for _, made in plan for cast in made)


ORIGINS: weakref.WeakKeyDictionary[CodeType, list[tuple[int, int]]] = weakref.WeakKeyDictionary()
"""Of rewritten code whose functions ask by which call they run: the offsets of instructions, and what they were."""


def _origin(frame: FrameType) -> int:
    """Return the offset, in the code as it was written, of the instruction that a frame runs."""
    offsets = ORIGINS.get(frame.f_code)
    if offsets is None:
        return NOWHERE
    return offsets[bisect.bisect_right(offsets, (frame.f_lasti, sys.maxsize)) - 1][1]  # it may lie in its caches


def caster(code: CodeType, cast: Cast) -> Callable[[Any], Any]:
    """Return what casts values by the types that they have. InternalError, when it is called: a value has a type that
    the front end did not find there."""
    casters = {way: _of_pairs(code, cast, dict(pairs)) for way, pairs in cast.to}
    if len(casters) == 1:
        return next(iter(casters.values()))
    most = max(len(sites) for sites, _ in casters)

    def asking(x: Any) -> Any:
        frame: Any = sys._getframe(1)
        sites, copies = tuple[int, ...](), _indices(frame)
        while (sites, copies) not in casters:
            frame = frame.f_back
            if frame is None or len(sites) == most:
                raise _unclear(code, "the way that led to it")
            sites, copies = (_origin(frame), *sites), (*_indices(frame), *copies)
        return casters[sites, copies](x)

    return asking


def _indices(frame: FrameType) -> tuple[Any, ...]:
    """Return the indices of the unrolled loops that a frame is in."""
    return tuple(x for _, x in copy_of(frame))


def _of_pairs(code: CodeType, cast: Cast, to: dict[Kind, Kind]) -> Callable[[Any], Any]:
    casts = {came: _to(kind) if differs(came, kind) else _itself for came, kind in to.items()}

    def convert(x: Any) -> Any:
        kind = kind_of(x)
        if isinstance(x, Undefined):
            return x
        if kind not in casts:
            found = ", ".join(map(str, casts))
            raise InternalError(
                f"{code.co_name}: {cast.variable or 'a value'} is {kind} in the simulator, where the front end has "
                f"{found}: this is a fault of numba-cute, please report it with the function"
            )
        return casts[kind](x)

    return convert


def _to(kind: Kind) -> Callable[[Any], Any]:
    if isinstance(kind, DType):
        table = casts_to(kind)
        literal = next((c for c, k in LITERALS.items() if k is kind and c is not float), None)  # it computes as such
        return lambda x: x if type(x) is literal else table[type(x)](x)
    each = [_itself if k is None else _to(k) for k in kind]

    def cast(x: Any) -> Any:
        made = [f(y) for f, y in zip(each, x)]
        if isinstance(x, list):
            x[:] = made  # for all who hold it
            return x
        return tuple(made) if type(x) is tuple else type(x)._make(made)

    return cast


def _itself(x: Any) -> Any:
    return x
