# SPDX-License-Identifier: Apache-2.0
"""What each value of a function's code is computed from: its basic blocks, run on symbols.

Where ways through the code meet, a variable (or a value on the stack) that may have come from several is a phi, as in
Numba, which gives it one type. What raises is not followed.
"""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from ....seam.ground.bytecode import operations
from .bytecode import Body, Instruction

ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_ALWAYS = ("JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")


class Node:
    """A value. kind: how it comes about (see `opcodes`); args: from which others; data: from what else."""

    __slots__ = ("kind", "args", "data", "same", "by")

    def __init__(self, kind: str, args: tuple[Node, ...] = (), data: Any = None) -> None:
        self.kind, self.args, self.data = kind, args, data
        self.same: Node | None = None  # of a phi all of whose values are one
        self.by: Instruction | None = None  # which makes it

    def found(self) -> Node:
        """The node itself, or the one that a phi without a choice stands for."""
        node = self
        while node.same is not None:
            node = node.same
        return node

    def __repr__(self) -> str:
        return f"{self.kind}({self.data!r}, {len(self.args)})"


NULL = Node("null")
"""What Python's code puts before a function that it calls, on the stack."""
_GIVEN = ("param", "phi", "undefined", "unknown", "null")
UNDEFINED, UNKNOWN = Node("undefined"), Node("unknown")


class State:
    """The stack and the variables at one place."""

    def __init__(self, stack: list[Node], variables: dict[str, Node]) -> None:
        self.stack, self.variables = stack, variables
        self.names: tuple[str, ...] = ()  # of the call to come (KW_NAMES)
        self.made: list[Node] = []
        self.by: Instruction | None = None  # the instruction that runs

    def copy(self) -> State:
        new = State(list(self.stack), dict(self.variables))
        new.made, new.by = self.made, self.by
        return new

    def pop(self, count: int = 1) -> list[Node]:
        """The topmost values, the lowest first."""
        taken = self.stack[len(self.stack) - count :] if count else []
        del self.stack[len(self.stack) - count :]
        return taken

    def push(self, *nodes: Node) -> None:
        self.stack.extend(nodes)
        for n in nodes:
            if n.by is None and n.kind not in _GIVEN:
                n.by = self.by
                self.made.append(n)


class Block:
    """Instructions that run one after the other. ways: (the block that follows, the state there) for each way on."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        self.ways: list[tuple[Block, State]] = []
        self.sources: list[Block] = []
        self.entry: State | None = None
        self.returned: Node | None = None
        self.made: list[Node] = []  # the values that the instructions make
        self.condition: tuple[Node, str] | None = None  # what the last instruction asks, and its name

    @property
    def first(self) -> Instruction:
        return self.instructions[0]

    @property
    def last(self) -> Instruction:
        return self.instructions[-1]


class Flow:
    """The blocks of a function's code that can be reached, each after one that leads to it."""

    def __init__(self, code: CodeType, body: Body, run: Callable[[Flow, Block], None]) -> None:
        self.code, self.body = code, body
        self.by_first = {id(b.first): b for b in _blocks(body)}
        self._after = dict(zip(map(id, body.instructions), body.instructions[1:]))
        self.cells: dict[str, list[Node]] = {}
        self.meetings: dict[int, frozenset[int]] = {}
        self.dominators: dict[int, set[int]] = {}
        self.blocks = self._ordered(self.by_first[id(body.instructions[0])])
        for block in self.blocks:
            for following in self._following(block):
                following.sources.append(block)
        self._run(run)
        self._join()
        self.places = self._places()

    def _following(self, block: Block) -> list[Block]:
        """The blocks that may come next: the one that the last instruction jumps to comes first."""
        last, out = block.last, []
        if last.target is not None and not last.name.startswith("SETUP_"):  # where it goes if something is raised
            out.append(self.by_first[id(last.target)])
        if last.name not in ENDS and last.name not in _ALWAYS and id(last) in self._after:
            out.append(self.by_first[id(self._after[id(last)])])
        return out

    def _ordered(self, start: Block) -> list[Block]:
        seen: set[int] = set()
        out: list[Block] = []
        todo: list[tuple[Block, Iterator[Block]]] = [(start, iter(self._following(start)))]
        seen.add(id(start))
        while todo:
            block, rest = todo[-1]
            following = next(rest, None)
            if following is None:
                out.append(block)
                todo.pop()
            elif id(following) not in seen:
                seen.add(id(following))
                todo.append((following, iter(self._following(following))))
        return out[::-1]

    def _run(self, run: Callable[[Flow, Block], None]) -> None:
        count = self.code.co_argcount + self.code.co_kwonlyargcount
        more = bool(self.code.co_flags & 4) + bool(self.code.co_flags & 8)
        names = self.code.co_varnames[: count + more]
        self.params = params = {n: Node("param", data=i) if i < count else UNKNOWN for i, n in enumerate(names)}
        for name in set(params) & set(self.code.co_cellvars):
            self.cells.setdefault(name, []).append(params[name])
        for name in _set_inside(self.code):
            self.cells.setdefault(name, []).append(UNKNOWN)
        for block in self.blocks:
            if block is self.blocks[0] and not block.sources:
                block.entry = State([], dict(params))
            elif len(block.sources) == 1 and block is not self.blocks[0]:
                block.entry = _state_at(block.sources[0], block).copy()
            else:
                block.entry = self._phis(block, params)
            run(self, block)

    def _places(self) -> dict[int, tuple[int, int]]:
        """By a value's id, its place in the code. Phis are where a block begins: those of later variables first, as
        Numba has them."""
        index = {id(i): 2 * at + 1 for at, i in enumerate(self.body.instructions)}
        found = {id(n): (index[id(n.by)], 0) for b in self.blocks for n in b.made}
        for block in self.blocks:
            entry = block.entry
            for at, n in enumerate((*entry.variables.values(), *entry.stack) if entry is not None else ()):
                if self.joins.get(id(n)) is block:
                    found[id(n)] = index[id(block.first)] - 1, -at
        return found

    def _phis(self, block: Block, params: dict[str, Node]) -> State:
        """The state where several ways meet: a phi for each variable and each value on the stack, on which what marks a
        call of a function (NULL) is the same on all ways."""
        stack: list[Node] = []
        for source in block.sources:
            if source.ways:
                stack = _state_at(source, block).stack
                break
        names = dict.fromkeys((*self.code.co_varnames, *params))
        return State([x if x is NULL else Node("phi") for x in stack], {n: Node("phi", data=n) for n in names})

    def _join(self) -> None:
        """Give the phis their values, and find those that have no choice."""
        phis: list[Node] = []
        self.joins: dict[int, Block] = {}  # by a phi's id, where it is
        for block in self.blocks:
            states = [_state_at(source, block) for source in block.sources]
            if block is self.blocks[0]:
                states.insert(0, State([], self.params))
            if len(states) < 2 or block.entry is None:
                continue
            for name, node in block.entry.variables.items():
                if node.kind == "phi" and node.data == name:
                    node.args = tuple(s.variables.get(name, UNDEFINED) for s in states)
                    phis.append(node)
                    self.joins[id(node)] = block
            for at, node in enumerate(block.entry.stack):
                if node is NULL:
                    continue
                node.args = tuple(s.stack[at] if at < len(s.stack) else UNKNOWN for s in states)
                phis.append(node)
                self.joins[id(node)] = block
        changed = True
        while changed:
            changed = False
            for node in phis:
                if node.same is None:
                    values = {id(a.found()): a.found() for a in node.args if a.found() is not node}
                    if len(values) == 1:
                        (node.same,) = values.values()
                        changed = True


def _set_inside(code: CodeType) -> Iterator[str]:
    """The variables of functions around that the functions inside a code set."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from (o.value for o in operations(const) if o.name in ("STORE_DEREF", "DELETE_DEREF"))
            yield from _set_inside(const)


def _state_at(source: Block, block: Block) -> State:
    """The state in which one block leads to another."""
    for target, state in source.ways:
        if target is block:
            return state
    return State([], {})


def _blocks(body: Body) -> list[Block]:
    """The instructions in blocks."""
    instructions = body.instructions
    starts = {id(instructions[0])} | {id(i.target) for i in instructions if i.target is not None}
    starts |= {id(h.target) for h in body.handlers}
    for i, following in zip(instructions, instructions[1:]):
        if i.target is not None or i.name in ENDS:
            starts.add(id(following))
    blocks: list[Block] = []
    for i in instructions:
        if id(i) in starts:
            blocks.append(Block([]))
        blocks[-1].instructions.append(i)
    return blocks


def meetings(flow: Flow, block: Block) -> frozenset[int]:
    """The blocks (by id) whose values may depend on which way `block` goes on: where its ways meet again, and the heads
    of the loops that it leads back to."""
    found = flow.meetings.get(id(block))
    if found is None:
        found = flow.meetings[id(block)] = _meetings(flow, block)
    return found


def _meetings(flow: Flow, block: Block) -> frozenset[int]:
    beyond = _after_all_ways(flow, block)
    each = [_reach(target, beyond) for target, _ in block.ways]
    seen = Counter(n for reach in each for n in reach)
    before = _dominators(flow)[id(block)]
    return frozenset(beyond | {n for n, times in seen.items() if times > 1 or n in before})


def _reach(start: Block, without: set[int]) -> set[int]:
    """The blocks to which one leads, itself too, but not beyond those `without`."""
    found: set[int] = set()
    todo = [start]
    while todo:
        block = todo.pop()
        if id(block) not in found and id(block) not in without:
            found.add(id(block))
            todo += [target for target, _ in block.ways]
    return found


def _after_all_ways(flow: Flow, block: Block) -> set[int]:
    """The blocks through which every way from `block` to an end leads."""
    ends = {id(b) for b in flow.blocks if not b.ways}
    shared = set.intersection(*(_reach(target, set()) for target, _ in block.ways)) - {id(block)}
    return {n for n in shared if not any(ends & _reach(target, {n}) for target, _ in block.ways)}


def _dominators(flow: Flow) -> dict[int, set[int]]:
    """By a block's id, the blocks through which every way to it leads, and itself."""
    if not flow.dominators:
        everything = {id(b) for b in flow.blocks}
        found = {id(b): set(everything) for b in flow.blocks}
        found[id(flow.blocks[0])] = {id(flow.blocks[0])}
        changed = True
        while changed:
            changed = False
            for b in flow.blocks[1:]:
                new = set.intersection(*(found[id(s)] for s in b.sources)) | {id(b)}
                if new != found[id(b)]:
                    found[id(b)], changed = new, True
        flow.dominators = found
    return flow.dominators


def live_variables(flow: Flow) -> dict[int, set[str]]:
    """By a block's id, the variables that are read after its beginning before they are set again."""
    reads: dict[int, set[str]] = {}
    sets: dict[int, set[str]] = {}
    for block in flow.blocks:
        used: set[str] = set()
        made: set[str] = set()
        for i in block.instructions:
            for kind, name in accesses(i):
                if kind == "read":
                    used |= {name} - made
                else:
                    made.add(name)
        reads[id(block)], sets[id(block)] = used, made
    live = dict(reads)
    changed = True
    while changed:
        changed = False
        for block in reversed(flow.blocks):
            after = set().union(*(live[id(target)] for target, _ in block.ways))
            found = reads[id(block)] | after - sets[id(block)]
            if found != live[id(block)]:
                live[id(block)], changed = found, True
    return live


def accesses(i: Instruction) -> list[tuple[str, str]]:
    """("read" or "set", variable) for each local variable that an instruction touches, in order."""
    if "_FAST" not in i.name:
        return []
    names = i.value if isinstance(i.value, tuple) else (i.value,)
    kinds = [part for part in i.name.split("_") if part in ("LOAD", "STORE", "DELETE")]
    return [("read" if kind == "LOAD" else "set", name) for kind, name in zip(kinds, names)]


def stack_effect(i: Instruction, jumps: bool) -> int:
    """By how much an instruction changes the height of the stack."""
    arg = i.arg if i.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(i.opcode, arg, jump=jumps)
