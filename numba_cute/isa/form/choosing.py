# SPDX-License-Identifier: Apache-2.0
"""Choose the case of a row that a caller means by the static parameters that it names.

What is left out has the default that the row states, or the one value that goes with the others; anything else is
refused: no case is taken because it comes first. A parameter that nothing asks for (neither the text nor an operand,
the body, the order or the target), such as the extents that an instruction descriptor tells at run time, stays out of
the case if it is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...seam import CuteError
from ...seam.ground.records import dataclass
from .assembly import conditions_in, statics_in
from .cases import Cases, Each

if TYPE_CHECKING:
    from .instr import Instr

_NONE = object()


@dataclass(frozen=True)
class By:
    """A default by the values of other parameters. names: theirs. values: from these, one or a tuple, to the default.
    other: for those that are not among `values`; there is none unless it is given."""

    names: tuple[str, ...]
    values: Mapping[Any, Any]
    other: Any = _NONE


def by(names: str | tuple[str, ...], values: Mapping[Any, Any], *other: Any) -> By:
    """Let a default hang on other parameters: `by("space", {"dsmem": "cluster"}, "gpu")`."""
    return By((names,) if isinstance(names, str) else names, values, *other)


class _Left:
    """The cases that are still possible: of each block the index, and what is left of it."""

    def __init__(self, row: Instr, statics: Mapping[str, Any]) -> None:
        self.numbers = {k: v for k, v in statics.items() if k in row.ranges and v in row.ranges[k]}
        self.given, self.ranges = dict(statics), row.ranges
        self.blocks = row.cases.having({k: v for k, v in statics.items() if k not in self.numbers})
        for name in self.numbers:
            self._number(name)

    def _number(self, name: str) -> None:
        """Keep the cases in which a parameter may be any number of its range."""
        self.blocks = [(i, b) for i, b in self.blocks if b.choices.get(name, (None,))[0] is not None]

    def values(self, name: str) -> list[Any]:
        """The values that a parameter may have."""
        if name in self.numbers:
            return [self.numbers[name]]
        return list(dict.fromkeys(v for _, b in self.blocks for v in b.choices.get(name, (None,))))

    def is_open(self, name: str) -> bool:
        """Say whether a parameter may still have several values: one of a range does not follow from that in a case."""
        values = self.values(name)
        return len(values) > 1 or (name in self.ranges and name not in self.numbers and values != [None])

    def set(self, name: str, value: Any) -> None:
        """Keep the cases with this value, if there are any."""
        if value not in self.values(name) and value not in self.ranges.get(name, ()):
            return
        if name in self.ranges and value in self.ranges[name]:
            self.numbers[name] = value
            self._number(name)
        else:
            self.blocks = [(i, left) for i, b in self.blocks if (left := b.narrowed({name: value})) is not None]

    def default(self, default: Any) -> Any:
        """Return what a stated default is here; `_NONE` without one."""
        if not isinstance(default, By):
            return default
        of = [self.values(name) for name in default.names]
        if any(len(values) != 1 for values in of):
            return _NONE
        key = tuple(values[0] for values in of)
        return default.values.get(key if len(key) > 1 else key[0], default.other)


def chosen(row: Instr, statics: dict[str, Any]) -> dict[str, Any]:
    """Return the case of `row` with these static parameters. Raises CuteError if the row has no such case, or several
    that differ in what is left out."""
    left = _Left(row, statics)
    if not left.blocks:
        raise _lacking(row, statics)
    for name, stated in row.defaults.items():
        if name not in statics and left.is_open(name):
            value = left.default(stated)
            if value is not _NONE:
                left.set(name, value)
    unsaid = [n for n in dict.fromkeys(n for _, b in left.blocks for n in b.choices) if left.is_open(n)]
    asked = [n for n in unsaid if n in _asked(row)]
    if asked:  # what the body asks for goes before what follows from it, such as how the text spells it
        raise _unsaid(row, min(unsaid, key=lambda n: (n not in row.statics, n not in asked, n == "target")), left)
    return _case(row, left, unsaid)


def _case(row: Instr, left: _Left, unsaid: list[str]) -> dict[str, Any]:
    """The one case that is left, without what is `unsaid`."""
    exact = [(i, b) for i, b in left.blocks if b.narrowed(left.numbers) is not None]
    at, block = (exact or left.blocks)[0]
    found = row.cases.at(at, {**block.first(), **left.numbers} if exact else block.first())
    if not unsaid and (exact or not left.numbers):
        return found
    return {k: left.numbers.get(k, v) for k, v in found.items() if k not in unsaid}


def _asked(row: Instr) -> set[str]:
    """The static parameters that something asks for."""
    names = statics_in(row.ptx) | conditions_in(row.ptx) | {*row.statics, *row.ranges, "sem", "scope", "target"}
    for o in row.operands:
        names |= {n for n in (o.count, o.by, *(o.where or ())[:1]) if isinstance(n, str)}
    return names


def _said(statics: Mapping[str, Any]) -> str:
    return f" with {', '.join(f'{k}={v!r}' for k, v in statics.items())}" if statics else ""


def _unsaid(row: Instr, name: str, left: _Left) -> CuteError:
    """The error for a parameter that is left out and may be several things."""
    why = ", and has no default"
    if name in row.defaults:
        value = left.default(row.defaults[name])
        why = why if value is _NONE else f", and its default {value!r} does not go with the others"
    choices = legal_values(row, name, _Left(row, left.given).values(name))
    return CuteError(f"{row.name}{_said(left.given)}: {name} is left out{why}; name it, of {choices}")


def _lacking(row: Instr, statics: dict[str, Any]) -> CuteError:
    """The error for parameters that no case has together."""
    legal = {k: legal_values(row, k, row.cases.values(k, {})) for k in row.cases.blocks[0].choices}
    near = {}
    for k in statics if len(statics) > 1 else ():
        others = _Left(row, {n: v for n, v in statics.items() if n != k})
        if values := [v for i, b in others.blocks for v in b.choices.get(k, ())]:
            near[k] = legal_values(row, k, values)
    hint = f"; where the others stay as they are, {' or '.join(f'{k} of {v}' for k, v in near.items())}" if near else ""
    return CuteError(f"{row.name}: no form with {statics}; the PTX ISA has {legal}{hint}")


def legal_values(row: Instr, name: str, values: list[Any]) -> list[Any] | str:
    """Values of a static parameter as an error names them: in order, or the range of its numbers."""
    found = set(values)
    numbers = row.ranges.get(name)
    if numbers is not None and found - {None}:
        return f"{numbers[0]} to {numbers[-1]}"
    listed = sorted(found, key=lambda v: (v is None, v) if isinstance(v, int) else (v is None, repr(v)))
    if len(listed) > 16 and all(type(v) is int for v in listed):
        step = listed[-1] - listed[-2]
        if listed == list(range(listed[0], listed[-1] + 1, step)):
            return f"{listed[0]} to {listed[-1]}" + (f" in steps of {step}" if step > 1 else "")
    return listed


def check_defaults(
    cases: Cases, ranges: Mapping[str, range], defaults: Mapping[str, Any], need: Callable[[bool, str], None]
) -> None:
    """Check that each default is of a parameter of some case, and one of its values. need: what raises otherwise."""
    for name, default in defaults.items():
        legal = {
            v
            for case in cases.given
            for held in (case.get(name),)
            for v in (held if isinstance(held, Each) else (held,))
        }
        need(any(name in case for case in cases.given), f"a default is stated for {name!r}, which no case has")
        stated = [*default.values.values(), default.other] if isinstance(default, By) else [default]
        wrong = [v for v in stated if v is not _NONE and v not in legal and v not in ranges.get(name, ())]
        need(not wrong, f"the default {wrong} of {name} is not among {sorted(map(repr, legal))}")
