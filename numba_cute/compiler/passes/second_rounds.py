# SPDX-License-Identifier: Apache-2.0
"""Find the statements that make an object again while the one that they made in an earlier round may still be used."""

from __future__ import annotations

from typing import Any

from ..ground.numba_cuda import ir
from .copied import Copied
from .uses import of_block, read_by


def second_rounds(found: Any) -> list[tuple[Any, list[str]]]:
    """Return the statements that make an object in a loop while the one of an earlier round may still be used, each
    with the variables that may hold that one."""
    into: dict[int, list[int]] = {label: [] for label in found.blocks}
    for label, block in found.blocks.items():
        for target in block.terminator.get_targets():
            into[target].append(label)
    repeated = {s: i for s, i in found.sites.items() if s.label in _before(s.label, into)}
    if not repeated:
        return []
    again, after = [], _live_after(found)
    for site, inst in repeated.items():
        live = set(after[site.label])
        for later in reversed(found.blocks[site.label].body[site.at + 1 :]):
            _step_back(later, live)
        live.discard(inst.target.name)
        reach = (lambda held: held) if _is_replaced(found, site, inst, into) else found.reach
        holders = sorted(n for n in live if site in reach(found.vars[n]))
        if holders:
            again.append((inst, holders))
    return again


def _is_replaced(found: Any, site: Any, inst: Any, into: dict[int, list[int]]) -> bool:
    """Say whether a copy is made for a field of one object, the same in all rounds, and nothing else is ever given it:
    then the copy of an earlier round is gone with this one."""
    put = found.blocks[site.label].body[site.at + 1]
    if not isinstance(inst, Copied) or not isinstance(put, ir.SetAttr) or put.value.name != inst.target.name:
        return False
    owners = found.owners(put)
    holds = {x for x, held in found.inside.items() if site in held}
    stored = [i for _, what, i in found.stores if site in found.reach(what)]
    made = _label_of(found.blocks, put.target.name)
    once = made is not None and site.label not in _before(made, into)
    return len(owners) == 1 and holds <= {*owners, site} and all(i is put for i in stored) and once


def _label_of(blocks: dict[int, Any], name: str) -> int | None:
    """Return the block in which the value of a variable is made, whatever it is called later; None of several."""
    found = [
        (label, i.value) for label, block in blocks.items() for i in block.body
        if isinstance(i, ir.Assign) and i.target.name == name
    ]  # fmt: skip
    if len(found) != 1:
        return None
    label, value = found[0]
    return _label_of(blocks, value.name) if isinstance(value, ir.Var) else label


def _before(label: int, into: dict[int, list[int]]) -> set[int]:
    """Return the blocks that run before a block, itself only if it runs again."""
    found: set[int] = set()
    todo = list(into[label])
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += into[at]
    return found


def _step_back(inst: Any, live: set[str]) -> None:
    if isinstance(inst, ir.Assign):
        live.discard(inst.target.name)
        if not (isinstance(inst.value, ir.Expr) and inst.value.op == "phi"):
            live |= read_by(inst.value)
    elif not isinstance(inst, ir.Del):
        live |= {v.name for v in inst.list_vars()}


def _live_after(found: Any) -> dict[int, set[str]]:
    """Return the variables with objects that are used after each block."""
    matters = {n for n, held in found.vars.items() if held}
    coming: dict[int, set[str]] = {}  # what phis take at the end of a block
    phis: dict[int, set[str]] = {}
    used: dict[int, set[str]] = {}
    for label, block in found.blocks.items():
        phis[label] = set()
        for inst in block.find_insts(ir.Assign):
            if isinstance(inst.value, ir.Expr) and inst.value.op == "phi":
                phis[label].add(inst.target.name)
                for v, at in zip(inst.value.incoming_values, inst.value.incoming_blocks):
                    if v is not ir.UNDEFINED:  # the name has no value on this way
                        coming.setdefault(at, set()).add(v.name)
        live: set[str] = set()
        for inst in reversed(block.body):
            _step_back(inst, live)
        used[label] = live & matters
    defined = {label: of_block(block)[1] for label, block in found.blocks.items()}
    after = {label: coming.get(label, set()) & matters for label in found.blocks}
    changed = True
    while changed:
        changed = False
        for label in sorted(found.blocks, reverse=True):
            for target in found.blocks[label].terminator.get_targets():
                new = (used[target] | (after[target] - defined[target])) - phis[target] - after[label]
                if new:
                    after[label] |= new
                    changed = True
    return after
