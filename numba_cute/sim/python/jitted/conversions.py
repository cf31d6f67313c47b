# SPDX-License-Identifier: Apache-2.0
"""Functions of a kernel with the conversions that the front end found (`typed.meetings`): where ways through the code
meet, a value gets the type that the variable has there; so too what a function returns.

A function that the front end made for several types of arguments has code for each. One that it did not compile (it was
traced, or the kernel is a plain function) converts nothing.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from ....dtypes import DType, Int32, Int64
from ....seam import CuteError
from ....seam.ground.error import PLEASE_REPORT, InternalError
from ....seam.marks.plain import fields_of
from ....typed.meetings import (
    LITERALS,
    NOWHERE,
    WHOLE,
    Call,
    Fields,
    Kind,
    Meeting,
    Meetings,
    Site,
    Static,
    Version,
    Way,
    differs,
)
from ..arithmetic.lanes import Lanes
from ..arithmetic.number import Number
from ..arithmetic.operators import casts as casts_to, type_of_class
from ..arithmetic.undefined import Undefined
from .ways import chosen, running

Pairs = tuple[tuple[Kind, Kind], ...]
"""The types that values have, and those that they get."""


class Cast(NamedTuple):
    """Casts a value. at: the offset of the instruction before which it is, or `after` it. variable: its name, or
    None for what lies on top of the stack. to: how, by the ways that have led to the code; one where all are alike."""

    at: int
    variable: str | None
    after: bool
    to: tuple[tuple[Way, Pairs], ...]


class Handed(NamedTuple):
    """Holds the versions of a function that a kernel makes and hands on, and their plans, which differ."""

    plans: tuple[tuple[Version, Any], ...]


Plan = tuple[tuple[CodeType, "tuple[Cast, ...] | Handed"], ...]
"""The casts of a function's code, and of the code in it."""


class Conversions:
    """The conversions of a kernel's functions. meetings: as the front end found them."""

    def __init__(self, meetings: Meetings) -> None:
        self._meetings = meetings

    def function(self, code: CodeType, make: Callable[[Plan], FunctionType]) -> Any:
        """Return what a run calls: `make` gives the function with casts."""
        plans = {v: _plan(code, v, self._meetings) for v in self._meetings.get(code, ())}
        if len(set(plans.values())) < 2:
            return make(next(iter(plans.values()), ()))
        return Versions(code, plans, make, self._calls)

    def compiled(self, member: Any) -> bool:
        """Say whether the front end compiled a class's member: a function of its own."""
        return getattr(member, "__code__", None) in self._meetings

    @functools.cached_property
    def _calls(self) -> dict[Site, set[Call]]:
        """The calls at each place."""
        found: dict[Site, set[Call]] = {}
        for call in (c for versions in self._meetings.values() for v in versions for c in v.calls):
            found.setdefault(call.site, set()).add(call)
        return found


class Versions:
    """A function of which there is code for several types of arguments. calls: those at each place."""

    def __init__(
        self, code: CodeType, plans: dict[Version, Plan], make: Callable[[Plan], FunctionType],
        calls: dict[Site, set[Call]],
    ) -> None:  # fmt: skip
        self._code, self._plans, self._make, self._calls = code, plans, make, calls
        self._made: dict[Plan, FunctionType] = {}
        self._plain = self._function(())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        bound = inspect.signature(self._plain, follow_wrapped=False).bind(*args, **named)
        bound.apply_defaults()
        given = tuple(bound.arguments.values())
        fitting = [version for version in self._plans if _fit(version.given, given)]
        found = {self._plans[version] for version in fitting}
        if len(found) > 1:  # what is undefined is a number
            objects = [[type(x) is Undefined and k is None for k, x in zip(v.given, given)] for v in fitting]
            fitting = [v for v, wrong in zip(fitting, objects) if not any(wrong)]
            found = {self._plans[v] for v in fitting}
        if len(found) > 1:  # an object may hold what is static in one of them
            fitting = [v for v in fitting if all(map(_holds, v.held, given))] or fitting
            found = {self._plans[v] for v in fitting}
        if len(found) > 1:  # a number may be known here that the front end does not know, as one of a variable
            site = running(sys._getframe(1))
            asked = self._calls.get(site, ()) if site else ()
            fitting = [v for v in fitting if any(_ends_with(v.given, c.given) for c in asked)]
            found = {self._plans[v] for v in fitting}
        if len(found) > 1:  # of objects alone the types differ
            found = {self._plans[v] for v in fitting if any(_ends_with(v.types, c.types) for c in asked)}
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
    return CuteError(
        f"{code.co_name}: it is compiled in several ways, which convert its variables to different types, and the "
        f"simulator cannot tell them apart by {what}: convert to one type where the variable is set, as cute.Int64(x)"
    )


def versions_of(code: CodeType, handed: Handed, rewritten: Callable[[CodeType, Plan], CodeType]) -> Any:
    """Return what makes of a function that code made, from `code`, one that has a version for each type of arguments.
    rewritten: gives the code with casts."""

    def versions(function: FunctionType) -> Versions:
        def make(plan: Plan) -> FunctionType:
            return FunctionType(
                rewritten(code, plan), function.__globals__, function.__name__, function.__defaults__,
                function.__closure__,
            )  # fmt: skip

        return Versions(code, dict(handed.plans), make, {})

    return versions


def _ends_with(given: tuple[Any, ...], asked: tuple[Any, ...]) -> bool:
    """Say whether a version was made for a call's arguments, behind those that the call does not name, as `self`."""
    return given[len(given) - len(asked) :] == asked


def _fit(kinds: Sequence[Any], given: Sequence[Any]) -> bool:
    """Say whether arguments may be those that a version was made for: their numbers are of its types."""
    return len(kinds) == len(given) and all(map(_fits, kinds, given))


def _fits(kind: Any, value: Any, widened: bool = False) -> bool:
    """Say whether a value may be of a kind. widened: it is in an object's tuple, whose integers the front end widens
    (`compiler/bridge/values.py`)."""
    if isinstance(kind, Fields):
        held = fields_of(value)
        return all(_fits(k, held[name], True) for name, k in kind.kinds if name in held)
    if isinstance(kind, Static):
        alike = kind_of(value) == LITERALS.get(type(kind.value))  # the front end may know what is a number here
        return alike and (type(value) is Lanes or bool(value == kind.value))
    if type(kind) is tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(kind):
            return False
        return all(
            _fits(k, x, widened) or (widened and k == Int64 and kind_of(x) == Int32) for k, x in zip(kind, value)
        )
    return isinstance(value, Undefined) or kind_of(value) == kind


def _holds(fields: tuple[tuple[str, Any], ...], value: Any) -> bool:
    """Say whether an object's fields are the static numbers that a version knows, and of run time where it has none."""
    held = getattr(value, "__dict__", {})
    return all(
        _fits(known, held[name]) if known is not None else isinstance(held[name], (Number, Lanes))
        for name, known in fields
        if name in held
    )


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


class Unset(NamedTuple):
    """Stands for the value of a variable that is cast where it may not be set."""

    name: str


def is_set(value: Any) -> Any:
    """Return the value of a variable that code reads. UnboundLocalError: it was not set."""
    if type(value) is Unset:
        raise UnboundLocalError(f"cannot access local variable '{value.name}' where it is not associated with a value")
    return value


# ---------------------------------------------------------------- casts


def _plan(code: CodeType, version: Version, meetings: Meetings) -> Plan:
    """Return the casts of a function made for some types, and of the functions in it, inlined or not."""
    held = dict(version.meetings)
    found: list[tuple[CodeType, tuple[Cast, ...] | Handed]] = [(code, _casts(code, held.get(code, ())))]
    for inner in _inside(code):
        if inner in held:
            found.append((inner, _casts(inner, held[inner])))
        elif inner in meetings:
            found += _of_handed_on(inner, meetings)
    return tuple((c, made) for c, made in found if made)


def _of_handed_on(code: CodeType, meetings: Meetings) -> Plan:
    """Return the casts of a function in another that is compiled by itself."""
    plans = {v: _plan(code, v, meetings) for v in meetings[code]}
    if len(set(plans.values())) > 1:
        return ((code, Handed(tuple(plans.items()))),)
    return next(iter(plans.values()))


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
        if m.to is None:
            continue
        if m.at == NOWHERE or pairs.setdefault(m.came, m.to) != m.to:
            raise _unclear(code, f"the way that led to {m.variable or 'here'}")
    made = (Cast(at, variable, after, _by_way(ways)) for (at, after, variable), ways in found.items())
    return tuple(sorted(made, key=lambda c: (c.at, c.after, c.variable or "")))


def _by_way(found: dict[Way, dict[Kind, Kind]]) -> tuple[tuple[Way, Pairs], ...]:
    """Return casts by the ways that led to them, those that convert nothing too; one where they do not differ."""
    alike: dict[Kind, Kind] = {}
    for pairs in found.values():
        if not pairs or any(alike.setdefault(came, to) != to for came, to in pairs.items()):
            return tuple((way, tuple(pairs.items())) for way, pairs in found.items())
    return ((next(iter(found)), tuple(alike.items())),)


def loops_asked(plan: Plan) -> dict[CodeType, set[int]]:
    """Return where rounds of loops begin, by their code, on which casts depend."""
    casts = [cast for _, made in plan if not isinstance(made, Handed) for cast in made]
    ways = [way for cast in casts if len(cast.to) > 1 for way, _ in cast.to]
    found: dict[CodeType, set[int]] = {}
    for code, offset in (site for way in ways for site, _ in way.rounds):
        found.setdefault(code, set()).add(offset)
    return found


def caster(code: CodeType, cast: Cast) -> Callable[[Any], Any]:
    """Return what casts values by the types that they have. InternalError, when it is called: a value has a type that
    the front end did not find there."""
    casters = {way: _of_pairs(code, cast, dict(pairs)) for way, pairs in cast.to}
    if len(casters) == 1:
        return next(iter(casters.values()))

    def asking(x: Any) -> Any:
        found = chosen(casters, sys._getframe(1))
        if found is None:
            raise _unclear(code, "the way that led to it")
        return found(x)

    return asking


def _of_pairs(code: CodeType, cast: Cast, to: dict[Kind, Kind]) -> Callable[[Any], Any]:
    if not to:
        return _itself
    casts = {came: _to(kind) if differs(came, kind) else _itself for came, kind in to.items()}

    def convert(x: Any) -> Any:
        if isinstance(x, (Undefined, Unset)):
            return x
        kind = kind_of(x)
        if kind not in casts:
            found = ", ".join(map(str, casts))
            raise InternalError(
                f"{code.co_name}: {cast.variable or 'a value'} is {kind} in the simulator, where the front end has "
                f"{found}: {PLEASE_REPORT}"
            )
        return casts[kind](x)

    return convert


def _to(kind: Kind) -> Callable[[Any], Any]:
    if kind == WHOLE:
        return lambda x: int(x.value) if isinstance(x, Number) else x
    if isinstance(kind, Static):
        return lambda x: kind.value
    if isinstance(kind, DType):
        table = casts_to(kind)
        literal = next((c for c, k in LITERALS.items() if k is kind and c is not float), None)  # it computes as such
        return lambda x: x if type(x) is literal else table[type(x)](x)
    if isinstance(kind, Fields):
        return _object({name: _to(k) for name, k in kind.kinds if k is not None})
    each = [_itself if k is None else _to(k) for k in kind]

    def cast(x: Any) -> Any:
        made = [f(y) for f, y in zip(each, x)]
        if isinstance(x, list):
            x[:] = made  # for all who hold it
            return x
        return tuple(made) if type(x) is tuple else type(x)._make(made)

    return cast


def _object(casts: dict[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return what makes an immutable object anew, with fields cast."""

    def cast(x: Any) -> Any:
        if x is None:  # a field that is not set here, and elsewhere is an object
            return None
        made = copy.copy(x)
        for name, f in casts.items():
            object.__setattr__(made, name, f(getattr(x, name)))
        return made

    return cast if casts else _itself


def _itself(x: Any) -> Any:
    return x
