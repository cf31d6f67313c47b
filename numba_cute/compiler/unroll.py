# SPDX-License-Identifier: Apache-2.0
"""Unrolling of `for i in range_constexpr(...)` in Numba IR, before SSA: the body is copied, one copy an index.

Before SSA a variable may be assigned many times, so copies that follow each other mean what the loop meant; SSA
then gives each copy its own literal index. `break`, `continue` and nested loops work: blocks are copied whole.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from numba.cuda.core import ir
from numba.cuda.core.analysis import compute_cfg_from_blocks, compute_use_defs
from numba.cuda.core.ir_utils import build_definitions, merge_adjacent_blocks, rename_labels, replace_vars_stmt

from .. import seam
from ..seam import CuteError

LIMIT = 4096


class Refused(Exception):
    """Typing does not reach a variable: another statement is wrong, as the error in `args` says."""


def unroll_loops(func_ir: Any, constant: Callable[[Any], Any], typed: Callable[[Any], Any]) -> bool:
    """Unroll every `range_constexpr` loop, outermost first, so that an inner bound may be an outer index's copy.

    constant, typed: the value of a variable, from the source or (slower) from its type; they raise if it has none.
    """
    changed, flow = False, _Flow()
    while True:
        found = _find(func_ir, constant, typed)
        if found is None:
            if changed:  # copies that follow each other are one block: Numba's analyses are quadratic in their number
                merge_adjacent_blocks(func_ir.blocks)
                func_ir.blocks = rename_labels(func_ir.blocks)
            return changed
        _unroll(func_ir, flow, *found)
        func_ir._definitions = build_definitions(func_ir.blocks)
        changed = True


def _call_args(block: Any, constant: Callable[[Any], Any], typed: Callable[[Any], Any]) -> tuple[int, Any] | None:
    """The position in the block of a `range_constexpr(...)` call, and its range."""
    for at, inst in enumerate(block.body):
        expr = inst.value if isinstance(inst, ir.Assign) else None
        if not isinstance(expr, ir.Expr) or expr.op != "call":
            continue
        try:
            if constant(expr.func) is not seam.range_constexpr:
                continue
        except Exception:  # not a constant: some other call
            continue
        try:
            indices = range(*(_either(constant, typed, a) for a in expr.args))
        except Refused as e:
            raise e.args[0] from None
        except Exception:
            raise CuteError(
                f"range_constexpr at line {inst.loc.line}: its arguments must be static ints (literals, globals, "
                "closure variables, arithmetic on them, sizes of static layouts); use range() for a run-time count"
            ) from None
        if len(indices) > LIMIT:
            raise CuteError(f"range_constexpr at line {inst.loc.line}: {len(indices)} copies; the limit is {LIMIT}")
        return at, indices
    return None


def _either(constant: Callable[[Any], Any], typed: Callable[[Any], Any], var: Any) -> Any:
    try:
        return constant(var)
    except Exception:
        return typed(var)


def _find(func_ir: Any, constant: Callable[[Any], Any], typed: Callable[[Any], Any]) -> Any:
    """The entry block, the loop's blocks and the indices of one `range_constexpr` loop, outermost first."""
    cfg = compute_cfg_from_blocks(func_ir.blocks)
    for label in sorted(func_ir.blocks):
        block = func_ir.blocks[label]
        found = _call_args(block, constant, typed)
        if found is None:
            continue
        header = block.terminator.target if isinstance(block.terminator, ir.Jump) else None
        loop = cfg.loops().get(header)
        if loop is None:
            raise CuteError(
                f"range_constexpr at line {block.body[found[0]].loc.line}: use it as `for i in range_constexpr(n):`"
            )
        return label, found, header, loop
    return None


def _unroll(func_ir: Any, flow: _Flow, entry: int, found: tuple[int, Any], header: int, loop: Any) -> None:
    blocks, (at, indices) = func_ir.blocks, found
    chain = _headers(blocks, header)
    head = blocks[chain[-1]]
    first, after = head.terminator.truebr, head.terminator.falsebr
    body = sorted(set(loop.body) - set(chain))
    own = _own_variables(flow, blocks, header, loop)
    step = max(blocks) + 1
    exit_label = (len(indices) + 1) * step
    for k, index in enumerate(indices):
        relabel = {label: (k + 1) * step + label for label in body}
        relabel.update(dict.fromkeys(chain, (k + 2) * step + header if k + 1 < len(indices) else exit_label))
        names = {name: head.scope.redefine(name, head.loc) for name in own}
        blocks[(k + 1) * step + header] = _opening(head, index, relabel[first], names)
        for label in body:
            blocks[relabel[label]] = _copied(blocks[label], relabel, names)
    blocks[exit_label] = _opening(head, None, after, {})
    for label in [*chain, *body]:
        del blocks[label]
    before = blocks[entry]
    flow.changed(before)
    before.body = _without_iterator(before.body[:-1], at)
    before.append(ir.Jump(step + header if indices else exit_label, before.loc))
    func_ir.blocks = rename_labels(blocks)


def _headers(blocks: dict[int, Any], header: int) -> list[int]:
    """The loop's header, through the empty blocks that a long jump in the bytecode (EXTENDED_ARG) leaves before it."""
    chain = [header]
    while isinstance(blocks[chain[-1]].terminator, ir.Jump) and len(blocks[chain[-1]].body) == 1:
        chain.append(blocks[chain[-1]].terminator.target)
    if not isinstance(blocks[chain[-1]].terminator, ir.Branch):
        raise CuteError("range_constexpr: this loop has a form that cannot be unrolled")
    return chain


class _Flow:
    """The variables that each block uses before it sets them, and those that it sets; remembered, since there are many
    loops and most blocks stay as they are from one to the next."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, set[str], set[str]]] = {}

    def of(self, block: Any) -> tuple[set[str], set[str]]:
        found = self._known.get(id(block))
        if found is None:
            maps = compute_use_defs({0: block})
            found = self._known[id(block)] = block, maps.usemap[0], maps.defmap[0]  # the block, so that its id stays
        return found[1], found[2]

    def changed(self, block: Any) -> None:
        self._known.pop(id(block), None)


def _own_variables(flow: _Flow, blocks: dict[int, Any], header: int, loop: Any) -> list[str]:
    """Variables that live within one iteration: each copy gets its own, so that its constants are constants."""
    inside = set(loop.body) | {header}
    defined = set().union(*(flow.of(blocks[label])[1] for label in inside))
    for label, block in blocks.items():
        if label not in inside:
            defined -= flow.of(block)[0]
    return sorted(defined - _needed_at(flow, blocks, header, inside))


def _needed_at(flow: _Flow, blocks: dict[int, Any], header: int, inside: set[int]) -> set[str]:
    """The variables whose value at the loop's header some block of the loop uses: those carried between iterations."""
    needed: dict[int, set[str]] = {label: set() for label in inside}
    changed = True
    while changed:
        changed = False
        for label in inside:
            uses, sets = flow.of(blocks[label])
            after = (needed[t] for t in blocks[label].terminator.get_targets() if t in inside)
            now = uses | (set().union(*after) - sets)
            if now != needed[label]:
                needed[label], changed = now, True
    return needed[header]


def _without_iterator(body: list[Any], at: int) -> list[Any]:
    """The entry block's statements but for the call, the iterator made from it, and copies of that."""
    gone, kept = {body[at].target.name}, []
    for i, inst in enumerate(body):
        value = inst.value if isinstance(inst, ir.Assign) else None
        source = value.value if isinstance(value, ir.Expr) and value.op == "getiter" else value
        if i == at or (isinstance(source, ir.Var) and source.name in gone):
            gone.add(inst.target.name)
        else:
            kept.append(inst)
    return kept


def _opening(head: Any, index: int | None, target: int, names: dict[str, Any]) -> Any:
    """The loop's header in one copy: the item is a literal (or, on the way out, nothing)."""
    new = ir.Block(head.scope, head.loc)
    item: set[str] = set()
    for inst in head.body[:-1]:
        value = inst.value if isinstance(inst, ir.Assign) else None
        if isinstance(value, ir.Expr) and value.op in ("iternext", "pair_second"):
            continue
        if isinstance(value, ir.Expr) and value.op == "pair_first":
            item.add(inst.target.name)
            if index is not None:
                new.append(_renamed(ir.Assign(ir.Const(index, inst.loc), inst.target, inst.loc), names))
        elif index is None and isinstance(value, ir.Var) and value.name in item:
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
    """A copy of a statement with its variables renamed."""
    new = copy.copy(inst)
    value = getattr(new, "value", None)
    if isinstance(value, ir.Expr):
        new.value = copy.copy(value)
        new.value._kws = dict(value._kws)
    replace_vars_stmt(new, names)
    return new


def _relabelled(inst: Any, relabel: dict[int, int]) -> Any:
    if isinstance(inst, ir.Jump):
        return ir.Jump(relabel.get(inst.target, inst.target), inst.loc)
    if isinstance(inst, ir.Branch):
        true, false = (relabel.get(t, t) for t in (inst.truebr, inst.falsebr))
        return ir.Branch(inst.cond, true, false, inst.loc)
    return inst
