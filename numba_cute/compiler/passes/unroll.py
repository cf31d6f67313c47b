# SPDX-License-Identifier: Apache-2.0
"""Unrolling of `for i in range_constexpr(...)` in Numba IR, before SSA: the body is copied, one copy an index.

Before SSA a variable may be assigned many times, so copies that follow each other mean what the loop meant; SSA
then gives each copy its own literal index. `break`, `continue`, `return` and nested loops work: blocks are copied
whole.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from ... import seam
from ...seam import CuteError
from ...seam.guards.messages import NO_STATIC_BOUNDS
from ...seam.marks.decorators import no_step
from ..ground.errors import located
from ..ground.numba_cuda import (
    compute_cfg_from_blocks,
    ir,
    merge_adjacent_blocks,
    rename_labels,
    replace_vars_inner,
    replace_vars_stmt,
)
from ..ground.places import place_copy
from .constants import Constants, NotConstant
from .definitions import Place, unreached
from .typed_constants import TypedConstants, copied_statement
from .uses import of_block
from .wholes import computing

LIMIT = 4096
Items = list[Any]
"""The right-hand sides that a loop's variable gets in its copies; those that a copy makes itself are Late."""


class NoStaticBounds(CuteError):
    """The bounds of a loop that is to be unrolled are known only at run time."""


class Late(NamedTuple):
    """An item that its copy makes when it begins."""

    statements: list[Any]
    value: Any


def ranges(known: Constants) -> set[Place]:
    """Return the places of the calls of `range_constexpr`."""
    return {place for place, inst in known.expressions("call") if _is_range(inst.value, place, known)}


def undecided(func_ir: Any, ranges: set[Place], known: Constants) -> list[Place]:
    """Return those of the calls of `range_constexpr` whose bounds are not known before typing."""

    def is_known(var: Any, place: Place) -> bool:
        try:
            known.of(var, place)
        except NotConstant:
            return False
        return True

    return [p for p in ranges if not all(is_known(a, p) for a in func_ir.blocks[p.label].body[p.index].value.args)]


def pending(func_ir: Any, ranges: set[Place]) -> set[int]:
    """Return the labels of the blocks in loops that are yet to be unrolled."""
    before = [func_ir.blocks[label] for label in {place.label for place in ranges}]
    entered = [block.terminator.target for block in before if isinstance(block.terminator, ir.Jump)]
    cfg = compute_cfg_from_blocks(func_ir.blocks) if entered else None
    return {label for header in entered for label in _blocks(func_ir.blocks, cfg, header)}


def tidy(func_ir: Any) -> None:
    """Make one block of copies that follow each other: Numba's analyses are quadratic in the number of blocks."""
    merge_adjacent_blocks(func_ir.blocks)
    func_ir.blocks = rename_labels(func_ir.blocks)


def _is_range(expr: Any, place: Place, known: Constants) -> bool:
    try:
        return known.of(expr.func, place) is seam.range_constexpr
    except NotConstant:
        return False


def indices(
    expr: Any, place: Place, known: Constants, typed: TypedConstants, unknown: CuteError | None = None
) -> range:
    """Return the indices of a loop, from the arguments of its `range_constexpr`. unknown: what is raised if they are
    not static, in place of what is said of that function."""
    try:
        bounds = [_bound(a, place, known, typed) for a in expr.args]
    except NotConstant:
        raise unknown or located(NoStaticBounds(NO_STATIC_BOUNDS), expr.loc) from None
    if not _CHANGES_NOTHING.issuperset(dict(expr.kws)) or expr.vararg is not None or not 1 <= len(bounds) <= 3:
        raise _refusal("it takes a stop, or a start, a stop and a step, as range does, each by its place", expr)
    if len(bounds) == 3 and bounds[2] == 0:
        raise located(CuteError(no_step(_written(expr, place, known))), expr.loc)
    found = range(*bounds)
    if len(found) > LIMIT:
        raise _refusal(f"{len(found)} copies; the limit is {LIMIT}", expr)
    return found


_CHANGES_NOTHING = frozenset(("unroll", "unroll_full"))
"""Options that the CuTe DSL's `range` has: all rounds are unrolled here."""


def _written(expr: Any, place: Place, known: Constants) -> str:
    """Return the name by which a call's function is written."""
    made, _ = known.assignment(expr.func, place) or (None, place)
    name = made.attr if isinstance(made, ir.Expr) else getattr(made, "name", "range")
    return str(name).rpartition(".")[2]


def _refusal(why: str, expr: Any) -> CuteError:
    return located(CuteError(f"range_constexpr: {why}"), expr.loc)


def _bound(var: Any, place: Place, known: Constants, typed: TypedConstants) -> int:
    try:
        value = known.of(var, place)
    except NotConstant:
        try:
            value = typed.of(var, place)
        except NotConstant:
            value = computing(known, typed)(var, place)
        known.settle(var, place, value)
    if not isinstance(value, int):
        raise NotConstant
    return int(value)


def follows(func_ir: Any, block: Any) -> bool:
    """Say whether a loop follows a block."""
    loops = compute_cfg_from_blocks(func_ir.blocks).loops()
    return isinstance(block.terminator, ir.Jump) and block.terminator.target in loops


class Loop(NamedTuple):
    """A loop that is to be copied. entry, at: the block before it and the position in it of what makes the iterator,
    which is left out. chain: its header, through the empty blocks that a long jump in the bytecode (EXTENDED_ARG)
    leaves before it. body: the labels of one iteration."""

    entry: int
    at: int
    chain: list[int]
    body: list[int]

    @property
    def inside(self) -> set[int]:
        """The labels of its blocks."""
        return {*self.chain, *self.body}


def loop_at(blocks: dict[int, Any], cfg: Any, entry: int, at: int) -> Loop:
    """Return the loop that follows a block, whose statement at `at` makes its iterator. cfg: the blocks' graph.
    CuteError: no loop follows, or one over something else."""
    before = blocks[entry]
    loop = _blocks(blocks, cfg, before.terminator.target) if isinstance(before.terminator, ir.Jump) else None
    chain = header_chain(blocks, before.terminator.target) if loop else []
    over = takes_next(blocks[chain[-1]]) if loop else None
    if not loop or over is None or over.value.name not in _iterator(before.body, at)[0]:
        raise located(CuteError("range_constexpr: use it as `for i in range_constexpr(n):`"), before.body[at].loc)
    return Loop(entry, at, chain, sorted(_iteration(cfg, loop, blocks[chain[-1]].terminator.truebr) - set(chain)))


def _blocks(blocks: dict[int, Any], cfg: Any, header: int) -> set[int]:
    """Return the labels of the loop with that header; none if there is no loop. Where each way of the body leaves it
    (by `break` or `return`) nothing comes back, and the header is the loop."""
    loop = cfg.loops().get(header)
    if loop is not None:
        return set(loop.body)
    chain = header_chain(blocks, header)
    return set() if takes_next(blocks[chain[-1]]) is None else set(chain)


def takes_next(head: Any) -> Any:
    """Return the expression by which a loop's header takes the next item; None if it takes none."""
    exprs = (s.value for s in head.body if isinstance(s, ir.Assign))
    return next((e for e in exprs if isinstance(e, ir.Expr) and e.op == "iternext"), None)


def unroll(func_ir: Any, entry: int, at: int, items: Items, guard: Any = None) -> None:
    """Copy a loop's body, one copy an item.

    entry, at: as for `loop_at`. items: right-hand sides, which the loop's variable gets one after the other. guard: a
    variable; where it is false no copy runs. CuteError: no loop follows.
    """
    loop = loop_at(func_ir.blocks, compute_cfg_from_blocks(func_ir.blocks), entry, at)
    _copy(func_ir.blocks, loop, items, guard, _Flow(func_ir.blocks))
    _number(func_ir)


def unroll_all(func_ir: Any, found: list[tuple[Loop, Items]]) -> None:
    """Copy the bodies of loops that have no block in common, each for its items."""
    flow = _Flow(func_ir.blocks)
    for loop, items in found:
        _copy(func_ir.blocks, loop, items, None, flow)
    _number(func_ir)


def _number(func_ir: Any) -> None:
    """Number the blocks anew, without copies that nothing leads to: those after one that always leaves the loop."""
    for label in unreached(func_ir.blocks):
        del func_ir.blocks[label]
    func_ir.blocks = rename_labels(func_ir.blocks)


class _Flow:
    """The names that a function's blocks use and set, each found once while the block is as it was."""

    def __init__(self, blocks: dict[int, Any]) -> None:
        self._found: dict[int, tuple[list[Any], tuple[set[str], set[str]]]] = {}
        self._reading: Counter[str] = Counter()
        self._new = list(blocks.values())

    def of(self, block: Any) -> tuple[set[str], set[str]]:
        """Return the names that a block reads and does not set before, and those that it sets."""
        known = self._found.get(id(block.body))
        if known is None:
            known = self._found[id(block.body)] = block.body, of_block(block)
        return known[1]

    def read_elsewhere(self, inside: list[Any]) -> set[str]:
        """Return the names that blocks other than some of the function read and do not set before."""
        for block in self._new:
            self._reading.update(self.of(block)[0])
        self._new = []
        here = Counter(name for block in inside for name in self.of(block)[0])
        return {name for name, count in self._reading.items() if count > here[name]}

    def leave_out(self, blocks: list[Any]) -> None:
        """Note that blocks are no more in the function, or not as they are."""
        for block in blocks:
            self._reading.subtract(self.of(block)[0])

    def add(self, blocks: list[Any]) -> None:
        """Note that blocks are in the function, as they are."""
        self._new += blocks


def _copy(blocks: dict[int, Any], loop: Loop, items: Items, guard: Any, flow: _Flow) -> None:
    before, chain, body = blocks[loop.entry], loop.chain, loop.body
    header, head = chain[0], blocks[chain[-1]]
    first, after = head.terminator.truebr, head.terminator.falsebr
    own = _own_variables(blocks, header, loop.inside, flow)
    flow.leave_out([before, *(blocks[label] for label in loop.inside)])
    known = {*blocks} - loop.inside - {loop.entry}
    step = max(blocks) + 1
    exit_label = (len(items) + 1) * step
    begins = takes_next(head).loc
    for k, item in enumerate(items):
        relabel = {label: (k + 1) * step + label for label in body}
        relabel.update(dict.fromkeys(chain, (k + 2) * step + header if k + 1 < len(items) else exit_label))
        names = {name: head.scope.redefine(name, head.loc) for name in own}
        blocks[(k + 1) * step + header] = _opening(head, item, relabel[first], names)
        for label in body:
            blocks[relabel[label]] = _copied(blocks[label], relabel, names)
        place_copy((blocks[relabel[label]] for label in body), begins, k)
    blocks[exit_label] = _opening(head, None, after, {})
    for label in loop.inside:
        del blocks[label]
    before.body = _iterator(before.body[:-1], loop.at)[1]
    start = step + header if items else exit_label
    before.append(ir.Jump(start, before.loc) if guard is None else ir.Branch(guard, start, exit_label, before.loc))
    flow.add([blocks[label] for label in blocks.keys() - known])


def header_chain(blocks: dict[int, Any], header: int) -> list[int]:
    """Return a loop's header, through the empty blocks that a long jump in the bytecode (EXTENDED_ARG) leaves before
    it. An endless loop may be empty itself."""
    chain = [header]
    while isinstance(end := blocks[chain[-1]].terminator, ir.Jump) and len(blocks[chain[-1]].body) == 1:
        if end.target in chain:
            break
        chain.append(end.target)
    return chain


def _iteration(cfg: Any, loop: set[int], first: int) -> set[int]:
    """Find the blocks of one iteration: the loop's, and those before a `break` or `return`, which no graph counts as
    the loop's since they do not come back: what is reached by way of its body's first block alone."""
    return loop | {label for label, ways in cfg.dominators().items() if first in ways}


def _own_variables(blocks: dict[int, Any], header: int, inside: set[int], flow: _Flow) -> list[str]:
    """Find the variables that live within one iteration: each copy gets its own, whose constants are constants."""
    within = [blocks[label] for label in inside]
    defined = set().union(*(flow.of(block)[1] for block in within)) - flow.read_elsewhere(within)
    return sorted(defined - _needed_at(blocks, header, inside, flow))


def _needed_at(blocks: dict[int, Any], header: int, inside: set[int], flow: _Flow) -> set[str]:
    """Return the variables whose value at the loop's header some block of the loop uses: those carried between
    iterations."""
    needed: dict[int, set[str]] = {label: set() for label in inside}
    changed = True
    while changed:
        changed = False
        for label in sorted(inside, reverse=True):
            after = (needed[t] for t in blocks[label].terminator.get_targets() if t in inside)
            used, defined = flow.of(blocks[label])
            now = used | (set().union(*after) - defined)
            if now != needed[label]:
                needed[label], changed = now, True
    return needed[header]


def _iterator(body: list[Any], at: int) -> tuple[set[str], list[Any]]:
    """Return the names of what the statement at a place of a block gives, of the iterator made from it, and of copies
    of these, and the other statements."""
    gone, kept = {body[at].target.name}, body[:at]
    for inst in body[at + 1 :]:
        value = inst.value if isinstance(inst, ir.Assign) else None
        source = value.value if isinstance(value, ir.Expr) and value.op == "getiter" else value
        if isinstance(source, ir.Var) and source.name in gone:
            gone.add(inst.target.name)
            continue
        kept.append(inst)
        if value is not None:
            gone.discard(inst.target.name)
    return gone, kept


def _opening(head: Any, given: Any, target: int, names: dict[str, Any]) -> Any:
    """Make the loop's header in one copy: the item is what is `given` (or, on the way out, nothing)."""
    new = ir.Block(head.scope, head.loc)
    item: set[str] = set()
    for inst in head.body[:-1]:
        value = inst.value if isinstance(inst, ir.Assign) else None
        if isinstance(value, ir.Expr) and value.op in ("iternext", "pair_second"):
            continue
        if isinstance(value, ir.Expr) and value.op == "pair_first":
            item.add(inst.target.name)
            if isinstance(given, Late):
                for made in given.statements:
                    new.append(_renamed(made, names))
                given = given.value
            if given is not None:
                new.append(_renamed(ir.Assign(given, inst.target, inst.loc), names))
        elif given is None and isinstance(value, ir.Var) and value.name in item:
            item.add(inst.target.name)
        else:
            new.append(_renamed(inst, names))
    new.append(ir.Jump(target, head.loc))
    return new


def _copied(block: Any, relabel: dict[int, int], names: dict[str, Any]) -> Any:
    new = ir.Block(block.scope, block.loc)
    for inst in block.body:
        new.append(_renamed(_relabelled(inst, relabel), names))
    return new


def _renamed(inst: Any, names: dict[str, Any]) -> Any:
    """Copy a statement with its variables renamed."""
    new = copied_statement(inst)
    if type(new) is not ir.Assign:
        replace_vars_stmt(new, names)
        return new
    new.target = names.get(new.target.name, new.target)
    value = new.value
    if type(value) is ir.Expr:
        for key, part in value._kws.items():
            value._kws[key] = _renamed_part(part, names)
    else:
        new.value = _renamed_part(value, names)
    return new


def _renamed_part(part: Any, names: dict[str, Any]) -> Any:
    """Return a part of an expression with its variables renamed: in less time than Numba's function, which knows parts
    of every kind."""
    kind = type(part)
    if kind is ir.Var:
        return names.get(part.name, part)
    if kind is list or kind is tuple:
        return kind([_renamed_part(p, names) for p in part])
    return replace_vars_inner(part, names) if isinstance(part, (ir.Expr, ir.Yield)) else part


def _relabelled(inst: Any, relabel: dict[int, int]) -> Any:
    if isinstance(inst, ir.Jump):
        return ir.Jump(relabel.get(inst.target, inst.target), inst.loc)
    if isinstance(inst, ir.Branch):
        true, false = (relabel.get(t, t) for t in (inst.truebr, inst.falsebr))
        return ir.Branch(inst.cond, true, false, inst.loc)
    return inst
