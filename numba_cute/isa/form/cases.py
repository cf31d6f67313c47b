# SPDX-License-Identifier: Apache-2.0
"""The cases of a row: its legal static parameters, one by one, or as products of independent choices.

A case is a dict of a value for each static parameter. `over` of `instr` gives them; where a value is `each(…)`, the
dict stands for a case with every one of these values, whatever the others are. A row with many independent parameters
so costs nothing until a case is asked for, and what is legal can be asked without making the cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, overload


class Each(tuple[Any, ...]):
    """The values that a static parameter may have."""

    __slots__ = ()


def each(*values: Any) -> Each:
    """Let a static parameter of `over` have any of these values."""
    return Each(values)


class Block:
    """Cases that are all combinations of the values of their parameters. choices: these, by name."""

    __slots__ = ("choices",)

    def __init__(self, choices: Mapping[str, tuple[Any, ...]]) -> None:
        self.choices = dict(choices)

    def narrowed(self, given: Mapping[str, Any]) -> Block | None:
        """The cases with these values; None if there is none. What a case lacks is None."""
        found = self.choices
        for name, value in given.items():
            held = found.get(name)
            if held is None:
                if value is not None:
                    return None
            elif len(held) > 1 or held[0] != value:
                if value not in held:
                    return None
                if found is self.choices:
                    found = dict(found)
                found[name] = (value,)
        return self if found is self.choices else Block(found)

    def within(self, name: str, values: Iterable[Any]) -> Block | None:
        """The cases in which the parameter `name` has one of these values; None if there is none."""
        left = tuple(v for v in self.choices.get(name, ()) if v in values)
        return Block({**self.choices, name: left}) if left else None

    def over(self, names: Iterable[str]) -> Iterator[dict[str, Any]]:
        """The combinations of the values of some parameters; those that the cases lack are left out."""
        some = {name: self.choices[name] for name in names if name in self.choices}
        for values in product(*some.values()):
            yield dict(zip(some, values))

    def first(self) -> dict[str, Any]:
        """The first case."""
        return {name: values[0] for name, values in self.choices.items()}


class Cases(Sequence[dict[str, Any]]):
    """All cases of a row, in order. Each is one dict, made when it is first asked for: cases are known by identity.

    given: as they were given. blocks: the same as products. plain: whether each is one case.
    """

    def __init__(self, over: Iterable[Mapping[str, Any]]) -> None:
        self.given = given = [dict(case) for case in over]
        self.plain = not any(isinstance(v, Each) for case in given for v in case.values())
        self._all: tuple[dict[str, Any], ...] | None = tuple(given) if self.plain else None
        self._made: dict[tuple[int, tuple[Any, ...]], dict[str, Any]] = {}
        self._blocks: tuple[Block, ...] | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        if self._blocks is None:
            self._blocks = tuple(
                Block({k: v if isinstance(v, Each) else (v,) for k, v in case.items()}) for case in self.given
            )
        return self._blocks

    def __len__(self) -> int:
        return len(self._every())

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._every()[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._every())

    def __bool__(self) -> bool:
        return bool(self.given)

    def _every(self) -> tuple[dict[str, Any], ...]:
        if self._all is None:
            self._all = tuple(self._case(i, case) for i, b in enumerate(self.blocks) for case in b.over(b.choices))
        return self._all

    def _case(self, block: int, case: dict[str, Any]) -> dict[str, Any]:
        return self._made.setdefault((block, tuple(case.values())), case)

    def having(self, given: Mapping[str, Any]) -> list[tuple[int, Block]]:
        """Return what is left of each block, with its index, by these values of parameters."""
        found = []
        if self.plain:  # without making all the blocks: rows have up to thousands of cases
            wanted = given.items()
            for i, case in enumerate(self.given):
                if wanted <= case.items():
                    found.append((i, Block({k: (v,) for k, v in case.items()})))
            return found
        for i, block in enumerate(self.blocks):
            if given.keys() <= block.choices.keys() and (left := block.narrowed(given)) is not None:
                found.append((i, left))
        return found

    def at(self, block: int, case: dict[str, Any]) -> dict[str, Any]:
        """The case of a block with these values."""
        return self.given[block] if self.plain else self._case(block, case)

    def differing(self, names: Iterable[str]) -> Sequence[dict[str, Any]]:
        """A case for each combination of the values of some parameters, the first that has it: all cases of a row that
        has no products."""
        if self._all is not None and self.plain:
            return self._all
        wanted, seen, found = tuple(names), set(), []
        for i, block in enumerate(self.blocks):
            first = block.first()
            for some in block.over(wanted):
                key = tuple(some.get(name) for name in wanted)
                if key not in seen:
                    seen.add(key)
                    found.append(self._case(i, {**first, **some}))
        return found

    def values(self, name: str, given: Mapping[str, Any]) -> list[Any]:
        """The values of a parameter in the cases that have those `given`, in order."""
        found: dict[Any, None] = {}
        for block in self.blocks:
            if name in block.choices:
                left = block.narrowed(given)
                if left is not None:
                    found.update(dict.fromkeys(left.choices[name]))
        return list(found)
