# SPDX-License-Identifier: Apache-2.0
"""`while` loops with one test again: Python's bytecode has it twice, in front of the loop and at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .descriptions import Description
from .form import (
    Attribute,
    Block,
    Branch,
    Build,
    Call,
    Copy,
    Function,
    Invoke,
    Item,
    Iterate,
    Jump,
    Known,
    Method,
    Next,
    Operator,
    Raise,
    Set,
    SetAttribute,
    SetItem,
    Source,
    Statement,
    Terminator,
)  # fmt: skip
from .graph import Graph

Rename = Callable[[str], str]


def unrotated(function: Function) -> Function:
    """Give a function in which the tests in front of loops and at their end, where they are the same, are one block."""
    blocks = dict(function.blocks)
    _skip_empty(blocks, function.entry)
    _join_latches(blocks, function.entry)
    while _one(function.variables, blocks, function.entry):
        pass
    return replace(function, blocks=blocks)


def _one(variables: dict[str, Description], blocks: dict[int, Block], entry: int) -> bool:
    """Make one block of two tests, if there are any; tells whether there were."""
    _skip_empty(blocks, entry)
    targets = {label: _targets(b.terminator) for label, b in blocks.items()}
    loops = Graph(targets, entry).loops
    for header in sorted(loops):
        before = [label for label in sorted(blocks) if header in targets[label]]
        for outside in (label for label in before if label not in loops[header]):
            for inside in (label for label in before if label in loops[header]):
                merged = _merged(variables, blocks, outside, inside)
                if merged is not None:
                    test = max(blocks) + 1
                    blocks[outside], blocks[inside], blocks[test] = (
                        Block(merged[0], Jump(test)), Block(merged[1], Jump(test)), merged[2],
                    )  # fmt: skip
                    return True
    return False


def _targets(end: Terminator) -> tuple[int, ...]:
    if isinstance(end, Jump):
        return (end.target,)
    return (end.then, end.otherwise) if isinstance(end, Branch) else ()


def _skip_empty(blocks: dict[int, Block], entry: int) -> None:
    """Leave out blocks that only go on to others."""
    for label in sorted(blocks):
        block = blocks[label]
        end = block.terminator
        if block.statements or not isinstance(end, Jump) or end.target == label or label == entry:
            continue
        del blocks[label]
        for other, b in blocks.items():
            blocks[other] = replace(b, terminator=_redirected(b.terminator, label, end.target))


def _join_latches(blocks: dict[int, Block], entry: int) -> None:
    """Set in front of the test at a loop's end what is only copied between it and the next iteration: from Python 3.12
    on the way back to the loop's beginning is a block of its own."""
    targets = {label: _targets(b.terminator) for label, b in blocks.items()}
    for header, inside in Graph(targets, entry).loops.items():
        for label in sorted(inside - {header, entry}):
            before = [other for other in blocks if label in targets[other]]
            copies = blocks[label].statements
            if targets[label] != (header,) or len(before) != 1 or not all(map(_is_copy, copies)):
                continue
            test = blocks[before[0]]
            out = [t for t in targets[before[0]] if t != label]
            if len(out) != 1 or out[0] in inside or not isinstance(test.terminator, Branch):
                continue
            made = {s.target for s in copies if isinstance(s, Set)}
            if made & (_read_from(blocks, out[0]) | {test.terminator.condition}):
                continue
            end = _redirected(test.terminator, label, header)
            blocks[before[0]] = Block((*test.statements, *copies), end)
            targets[before[0]] = _targets(end)
            del blocks[label], targets[label]


def _is_copy(s: Statement) -> bool:
    return isinstance(s, Set) and isinstance(s.source, Copy)


def _read_from(blocks: dict[int, Block], start: int) -> set[str]:
    """Find the variables that are read in a block or in one that may follow it."""
    found: set[str] = set()
    seen, todo = {start}, [start]
    while todo:
        block = blocks[todo.pop()]
        found.update(*map(_reads, block.statements))
        found |= {str(v) for v in (getattr(block.terminator, n, None) for n in ("condition", "value")) if v is not None}
        new = [t for t in _targets(block.terminator) if t in blocks and t not in seen]
        seen.update(new)
        todo += new
    return found


def _redirected(end: Terminator, of: int, to: int) -> Terminator:
    if isinstance(end, Jump):
        return Jump(to) if end.target == of else end
    if isinstance(end, Branch):
        then, otherwise = (to if t == of else t for t in (end.then, end.otherwise))
        return replace(end, then=then, otherwise=otherwise)
    return end


# ---------------------------------------------------------------- two tests


def _merged(
    variables: dict[str, Description], blocks: dict[int, Block], outside: int, inside: int
) -> tuple[tuple[Statement, ...], tuple[Statement, ...], Block] | None:
    """Take the same test from the ends of two blocks: gives what remains of them, and a block with the test."""
    a, b = blocks[outside], blocks[inside]
    if not (isinstance(a.terminator, Branch) and isinstance(b.terminator, Branch)):
        return None
    if _targets(a.terminator) != _targets(b.terminator):
        return None
    joined = _joined(variables, a.statements, b.statements)
    first, second = (_without(s, joined) for s in (a.statements, b.statements))
    most = 0
    while most < min(len(first), len(second)) and _shape(first[-1 - most]) == _shape(second[-1 - most]):
        most += 1
    for count in range(most, 0, -1):
        tails = first[len(first) - count :], second[len(second) - count :]
        test = _test(variables, joined, *tails, a.terminator, b.terminator)
        if test is not None and _alone(blocks, (outside, inside), (a, b), tails, joined):
            rest = [
                tuple(s for s in block.statements if not any(s is t for t in tail))
                for block, tail in zip((a, b), tails, strict=True)
            ]
            return rest[0], rest[1], test
    return None


Joined = dict[tuple[str, str], str]
"""Variables that get their value from one variable in front of the loop and another at its end: by these two."""


def _joined(variables: dict[str, Description], a: Sequence[Statement], b: Sequence[Statement]) -> Joined:
    copies = [
        {s.target: s.source.source for s in x if isinstance(s, Set) and isinstance(s.source, Copy)} for x in (a, b)
    ]
    found = {}
    for target, source in copies[0].items():
        other = copies[1].get(target)
        if other is not None and other != source and variables[target] == variables[source] == variables[other]:
            found[source, other] = target
    return found


def _without(statements: Sequence[Statement], joined: Joined) -> list[Statement]:
    targets = set(joined.values())
    return [s for s in statements if not (isinstance(s, Set) and isinstance(s.source, Copy) and s.target in targets)]


def _test(
    variables: dict[str, Description], joined: Joined, a: list[Statement], b: list[Statement], end_a: Branch,
    end_b: Branch,
) -> Block | None:  # fmt: skip
    """Make one block of two tests; None if they are not the same."""
    same: dict[str, str] = {}
    chosen: dict[str, str] = {}

    def agree(x: str, y: str) -> bool:
        if same.get(x, x) == y:
            return True
        if (x, y) in joined and x not in same:
            chosen[y] = joined[x, y]
            return True
        return False

    made: list[Statement] = []
    for s, t in zip(a, b, strict=True):
        if not all(agree(x, y) for x, y in zip(_reads(s), _reads(t), strict=True)):
            return None
        if isinstance(s, Set) and isinstance(t, Set):
            if variables[s.target] != variables[t.target]:
                return None
            same[s.target] = t.target
        made.append(replace(_renamed(t, lambda v: chosen.get(v, v)), marks=(*s.marks, *t.marks)))
    if not agree(end_a.condition, end_b.condition):
        return None
    condition = chosen.get(end_b.condition, end_b.condition)
    return Block(tuple(made), replace(end_b, condition=condition, marks=(*end_a.marks, *end_b.marks)))


def _alone(
    blocks: dict[int, Block], labels: tuple[int, int], ends: tuple[Block, Block],
    tails: tuple[list[Statement], list[Statement]], joined: Joined,
) -> bool:  # fmt: skip
    """Say whether nothing else depends on where the tests stood: what they set in front of the loop is read by them
    alone, and what is joined is set before them."""
    renamed = {s.target for s, t in zip(*tails, strict=True) if isinstance(s, Set) and s.target != t.target}  # type: ignore[union-attr]
    for label, block in blocks.items():
        for s in block.statements:
            if not any(s is t for t in tails[0]) and renamed & set(_reads(s)):
                return False
        if label != labels[0] and isinstance(block.terminator, Branch) and block.terminator.condition in renamed:
            return False
        if getattr(block.terminator, "value", None) in renamed:
            return False
    for i, (block, tail) in enumerate(zip(ends, tails, strict=True)):
        set_here = {s.target for s in tail if isinstance(s, Set)}
        if any(pair[i] in set_here for pair in joined):
            return False
        unset = set(joined.values()) & {s.target for s in block.statements if isinstance(s, Set)}
        for s in block.statements:
            if isinstance(s, Set) and isinstance(s.source, Copy):
                unset.discard(s.target)
            elif any(s is t for t in tail) and unset & set(_reads(s)):
                return False
    return True


# ---------------------------------------------------------------- what statements read


def _reads(s: Statement) -> list[str]:
    """List the variables that a statement reads, in the order in which it names them."""
    found: list[str] = []

    def note(variable: str) -> str:
        found.append(variable)
        return variable

    _renamed(s, note)
    return found


def _shape(s: Statement) -> Any:
    """Give what two statements have in common that differ in their variables alone."""
    bare = replace(_renamed(s, lambda v: ""), line=0, marks=())
    if isinstance(bare, Set):
        value = bare.source.value if isinstance(bare.source, Known) else None
        return replace(bare, target=""), type(value)
    return bare


def _renamed(s: Statement, name: Rename) -> Any:
    """Give a statement that reads other variables."""
    if isinstance(s, Set):
        return replace(s, source=_source_renamed(s.source, name))
    if isinstance(s, SetItem):
        index = None if s.index is None else name(s.index)
        return replace(s, of=name(s.of), index=index, value=name(s.value))
    if isinstance(s, SetAttribute):
        return replace(s, of=name(s.of), value=name(s.value))
    if isinstance(s, Next):
        return replace(s, iterator=name(s.iterator))
    assert isinstance(s, Raise)
    return s


def _source_renamed(source: Source, name: Rename) -> Source:
    if isinstance(source, Copy):
        return Copy(name(source.source))
    if isinstance(source, (Call, Method)):
        more: dict[str, Any] = {"of": name(source.of)} if isinstance(source, Method) else {}
        keywords = tuple((k, name(v)) for k, v in source.keywords)
        spread = None if source.spread is None else name(source.spread)
        return replace(source, args=tuple(map(name, source.args)), keywords=keywords, spread=spread, **more)
    if isinstance(source, Invoke):
        return replace(source, args=tuple(map(name, source.args)))
    if isinstance(source, Operator):
        return replace(source, operands=tuple(map(name, source.operands)))
    if isinstance(source, Build):
        return Build(tuple(map(name, source.items)))
    if isinstance(source, (Attribute, Iterate)):
        return replace(source, of=name(source.of))
    if isinstance(source, Item):
        return replace(source, of=name(source.of), index=None if source.index is None else name(source.index))
    return source
