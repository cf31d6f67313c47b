# SPDX-License-Identifier: Apache-2.0
"""Operations whose legal types, shapes and parameters are those of rows of the instruction table.

A row's cases say all that its instruction can do, and its target who has it. An operation names its rows, and which of
their static parameters its fields choose; what it takes, what its errors name and what docs/nvgpu.md lists follow.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from ... import dtypes
from ...dtypes import DType
from ...isa import Instr
from ...isa.form.cases import Block
from ...seam import CuteError, part_of
from ...seam.ground.records import dataclass

TYPES: dict[str, DType] = {t.ptx: t for t in vars(dtypes).values() if isinstance(t, DType)}
"""The element types by the names that PTX has for them."""

Case = Mapping[str, Any]
"""Static parameters of a row, by name."""

F = TypeVar("F", bound=Callable[..., Any])


def remembered(fn: F) -> F:
    """`functools.cache` with the function's own types."""
    return functools.cache(fn)  # type: ignore[return-value]


@dataclass(frozen=True)
class Choice:
    """A field of operations, and the static parameters of a row that its value sets.

    field: its name. keys: the parameters. values: what users call a parameter's values, where that differs. spread:
    the field's value is a tuple with an entry for each parameter; if not, it is the value of all of them.
    """

    field: str
    keys: tuple[str, ...]
    values: Mapping[Any, Any] = dataclasses.field(default_factory=dict, compare=False)
    spread: bool = False

    def of(self, case: Case) -> tuple[Any, ...]:
        """The field's value in this case; none if its parameters differ."""
        held = tuple(self.values.get(case.get(k), case.get(k)) for k in self.keys)
        return (held,) if self.spread else held[:1] if len(set(held)) == 1 else ()

    def sets(self, value: Any) -> dict[str, Any]:
        """The parameters that the field's `value` stands for."""
        names = {v: k for k, v in self.values.items()}
        each = value if self.spread else (value,) * len(self.keys)
        return {k: names.get(v, v) for k, v in zip(self.keys, each)}


class ByRow:
    """Base of operations that are checked against their rows when they are made.

    rows: the instructions that it may be, the first of them that fits. choices: of operations of its kind, in the order
    in which they are checked; it has those that are among its fields. fixed: parameters that it leaves no choice of.
    """

    rows: ClassVar[tuple[Instr, ...]] = ()
    choices: ClassVar[tuple[Choice, ...]] = ()
    fixed: ClassVar[Case] = {}

    def __post_init__(self) -> None:
        if self._fits():
            return
        given: dict[str, Any] = {}
        for choice in choices(type(self)):
            legal = legal_values(type(self), choice, tuple(given.items()))
            value = self._chosen(choice, legal)
            if not any(type(v) is type(value) and v == value for v in legal):
                raise CuteError(
                    f"{known_name(self)}: {choice.field} {_shown(value)} {self._rule(choice, value, legal)}"
                )
            given |= self._sets(choice)

    def _fits(self) -> bool:
        """Say whether some case is what all fields say: the first rows are asked, and the others, which take long to
        read, only if these have none."""
        cls: type[ByRow] = type(self)
        given: dict[str, Any] = {}
        for choice in choices(cls):
            value = vars(self)[choice.field]
            if choice.spread and (not isinstance(value, tuple) or len(value) != len(choice.keys)):
                return False  # to be completed, or refused
            try:
                given |= self._sets(choice)
            except TypeError:  # what does not hash
                return False
        left = next(filter(None, (b.narrowed(given) for row in cls.rows for b in blocks_of(cls, row))), None)
        return left is not None and all(
            any(type(v) is type(vars(self)[c.field]) and v == vars(self)[c.field] for v in _values(c, left))
            for c in choices(cls)
        )

    @classmethod
    def _narrow(cls, block: Block) -> Block | None:
        """Return those cases of a `block` of its rows that are this operation's."""
        return block.narrowed(cls.fixed)

    def _chosen(self, choice: Choice, legal: tuple[Any, ...]) -> Any:
        """Give the value of a field, a `choice`. legal: those that it may have; so an operation can complete what its
        user left out."""
        return vars(self)[choice.field]

    def _sets(self, choice: Choice) -> dict[str, Any]:
        """Give the parameters that the value of a field, a `choice`, sets."""
        return choice.sets(vars(self)[choice.field])

    def row(self) -> tuple[Instr, dict[str, Any]]:
        """Give the row of the instruction table that it issues, and the static parameters that its fields choose."""
        row, case = form(self)
        return row, dict(case)

    def _rule(self, choice: Choice, value: Any, legal: tuple[Any, ...]) -> str:
        """The rule that a field breaks, and the other field that makes it."""
        because, cls = "", type(self)
        every = choices(cls)
        before = every[: every.index(choice)]
        if set(legal) != set(legal_values(cls, choice, ())):
            one = [c for c in before if legal_values(cls, choice, tuple(self._sets(c).items())) == legal]
            because = " for " + " and ".join(f"{c.field} {_shown(vars(self)[c.field])}" for c in one[:1] or before)
        return f"must {_needed(choice, value, legal)}{because}"


@remembered
def choices(cls: type[ByRow]) -> tuple[Choice, ...]:
    """Return the choices of an operation, in the order in which they are checked."""
    fields = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return tuple(c for c in cls.choices if c.field in fields)


@remembered
def blocks_of(cls: type[ByRow], row: Instr) -> tuple[Block, ...]:
    """The cases of a row that an operation has, as products of choices."""
    return tuple(filter(None, map(cls._narrow, row.cases.blocks)))


@remembered
def blocks(cls: type[ByRow]) -> tuple[tuple[Instr, Block], ...]:
    """The cases of its rows that an operation has, as products of choices."""
    return tuple((row, block) for row in cls.rows for block in blocks_of(cls, row))


def cases(cls: type[ByRow], *names: str) -> list[tuple[Instr, Case]]:
    """The cases that an operation has, with the parameters `names` alone, each once."""
    found: dict[Any, tuple[Instr, Case]] = {}
    for row, block in blocks(cls):
        for case in block.over(names):
            found.setdefault((row.name, *case.items()), (row, case))
    return list(found.values())


def _facts(cls: type[ByRow]) -> tuple[str, ...]:
    """The parameters that say what an operation does."""
    chosen = (k for c in choices(cls) for k in c.keys)
    keys = ("m", "n", "k", "a_type", "b_type", "d_type", "sf", "block", *cls.fixed, *chosen)
    return tuple(dict.fromkeys(keys))


@remembered
def legal_values(cls: type[ByRow], choice: Choice, given: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    """The values that a field may have where parameters are `given`, in the order of the rows' cases."""
    found: dict[Any, None] = {}
    for _, block in blocks(cls):
        left = block.narrowed(dict(given))
        if left is not None:
            found.update(dict.fromkeys(_values(choice, left)))
    return tuple(found)


def _values(choice: Choice, block: Block) -> Iterator[Any]:
    """Yield the values that a field has in a block of cases."""
    for case in block.over(choice.keys):
        yield from choice.of(case)


_MOST = 4096
_known: dict[int, tuple[ByRow, tuple[Instr, Case]]] = {}


def form(op: ByRow) -> tuple[Instr, Case]:
    """Return the row and case of an operation. Looked up by the object, for every thread of a simulation asks anew, and
    to hash an operation takes longer than all else that is asked of it."""
    held = _known.get(id(op))
    if held is None or held[0] is not op:
        if len(_known) >= _MOST:
            _known.clear()
        given = tuple((k, v) for c in choices(type(op)) for k, v in op._sets(c).items())
        held = _known[id(op)] = op, _fitting(type(op), given)
    return held[1]


@remembered
def _fitting(cls: type[ByRow], given: tuple[tuple[str, Any], ...]) -> tuple[Instr, Case]:
    left = ((row, block.narrowed(dict(given))) for row in cls.rows for block in blocks_of(cls, row))
    row, block = next((row, block) for row, block in left if block is not None)
    return row, {name: values[0] for name, values in block.choices.items() if name in _facts(cls)}


def known_name(op: Any) -> str:
    """An operation's name with the part of `nvgpu` that it is of, as in "warp.MmaF16BF16Op"."""
    part = (part_of(type(op)) or "").partition(".")[2]
    return f"{part}.{type(op).__name__}" if part else type(op).__name__


# ---------------------------------------------------------------- what errors say


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, enum.Enum) else repr(value)


def alternatives(values: Iterable[Any]) -> str:
    """Values as a sentence has them: "1, 2 or 4", "OperandMajorMode.K or .MN"."""
    first, *others = values
    short = [f".{v.name}" if isinstance(v, enum.Enum) else repr(v) for v in others]
    *most, last = [_shown(first), *short]
    return f"{', '.join(most)} or {last}" if most else last


def numbers(values: list[int]) -> str:
    """Many numbers in order, the last of which are multiples: "8, 16, 24, or a multiple of 16 in [32, 256]"."""
    step, at = values[-1] - values[-2], len(values) - 1
    while at and values[at] - values[at - 1] == step and values[at - 1] % step == 0:
        at -= 1
    tail = f"a multiple of {step} in [{values[at]}, {values[-1]}]"
    return f"{', '.join(map(str, values[:at]))}, or {tail}" if at else tail


def _needed(choice: Choice, value: Any, legal: tuple[Any, ...]) -> str:
    if not choice.spread or len(legal) <= 4:
        return "be " + alternatives(legal)
    columns = [sorted(set(column)) for column in zip(*legal)]
    fits = isinstance(value, tuple) and len(value) == len(columns)
    if fits and all(len(column) > 1 or v == column[0] for v, column in zip(value, columns)):
        left = legal
        for i, (key, v) in enumerate(zip(choice.keys, value)):
            column = sorted({one[i] for one in left})
            if v not in column:
                said = numbers(column) if len(column) > 2 else alternatives(column)
                narrowed = [f"{k} {x}" for k, x in zip(choice.keys[:i], value)] if column != columns[i] else []
                return f"have {key} {said}{' with ' if narrowed else ''}{' and '.join(narrowed)}"
            left = tuple(one for one in left if one[i] == v)
    each = (str(column[0]) if len(column) == 1 else key for key, column in zip(choice.keys, columns))
    return f"be ({', '.join(each)})"
