# SPDX-License-Identifier: Apache-2.0
"""Numba's reconstruction of SSA form, which goes, for each variable that is set twice, over what names it.

Numba's own goes over all statements, for each such variable twice: of a function with many unrolled loops a third of
the time of all passes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..ground.numba_cuda import (
    ReconstructSSA,
    build_definitions,
    compute_cfg_from_blocks,
    ir,
    postproc,
    register_pass,
    ssa,
)

LEANS_ON = (
    ReconstructSSA.run_pass, ssa._run_ssa, ssa._fresh_vars, ssa._fix_ssa_vars, ssa._run_block_rewrite,
    ssa._FreshVarHandler, ssa._FixSSAVars, ssa._find_defs_violators, ssa._GatherDefsHandler,
)  # fmt: skip
"""The code of Numba's that this stands for, or that it calls."""

_Places = dict[str, dict[int, list[int]]]
"""By variable and block, the indices of statements."""


def in_ssa_form(blocks: dict[int, Any]) -> dict[int, Any]:
    """Return the blocks of a function in SSA form, as Numba's `reconstruct_ssa` makes them."""
    cfg = compute_cfg_from_blocks(blocks)
    frontiers = ssa._iterated_domfronts(cfg)
    listed = ssa._CacheListVars()
    sets, reads, elsewhere = _named(blocks)
    bodies = {label: list(block.body) for label, block in blocks.items()}
    scope = next(iter(blocks.values())).scope
    first: dict[int, list[Any]] = defaultdict(list)
    for name in _violators(sets, elsewhere, cfg):
        fix = _Fix(listed, _fresh(name, sets.get(name, {}), bodies, scope))
        definitions = {label: [new for _, new in made] for label, made in fix.made.items()}
        phis: dict[int, list[Any]] = defaultdict(list)
        states = {"scope": scope, "varname": name, "defmap": defaultdict(list, definitions), "phimap": phis,
                  "cfg": cfg, "phi_locations": ssa._compute_phi_locations(frontiers, definitions)}  # fmt: skip
        for label, places in reads.get(name, {}).items():
            states.update(label=label, block=blocks[label])
            body = bodies[label]
            for index in places:
                states["index"] = index
                on = fix.on_assign if isinstance(body[index], ir.Assign) else fix.on_other
                body[index] = on(states, body[index])
        for label, made in phis.items():
            first[label] = made + first[label]
    new = {}
    for label, block in blocks.items():
        new[label] = ir.Block(scope=block.scope, loc=block.loc)
        new[label].body = first[label] + bodies[label]
    return new


def _named(blocks: dict[int, Any]) -> tuple[_Places, _Places, dict[str, set[int]]]:
    """Return where each variable is set, where it is read, and the blocks that read it in a statement that does not set
    it."""
    sets: _Places = defaultdict(lambda: defaultdict(list))
    reads: _Places = defaultdict(lambda: defaultdict(list))
    elsewhere: dict[str, set[int]] = defaultdict(set)
    for label, block in blocks.items():
        for index, inst in enumerate(block.body):
            target, read = None, inst
            if type(inst) is ir.Assign:
                target, read = inst.target.name, inst.value
                sets[target][label].append(index)
            if type(read) is ir.Var:
                names = [read.name]
            else:
                names = [v.name for v in read.list_vars()] if isinstance(read, ir.inst_types) else []
            for name in dict.fromkeys(names):
                reads[name][label].append(index)
                if name != target:
                    elsewhere[name].add(label)
    return sets, reads, elsewhere


def _violators(sets: _Places, elsewhere: dict[str, set[int]], cfg: Any) -> list[str]:
    """Return the variables that are set more than once, or not on every way to where they are read."""
    found = [name for name, places in sets.items() if sum(map(len, places.values())) > 1]
    known, dominators = set(found), cfg.dominators()
    for name, labels in elsewhere.items():
        if name not in known and any(dominators[at].isdisjoint(sets.get(name, ())) for at in labels):
            found.append(name)
    return found


def _fresh(name: str, places: dict[int, list[int]], bodies: dict[int, list[Any]], scope: Any) -> Any:
    """Give each assignment but the first a variable of its own. Return them, by block with their indices."""
    made: dict[int, list[tuple[int, Any]]] = {}
    for label, indices in places.items():
        for index in indices:
            old = bodies[label][index]
            target = scope.redefine(name, loc=old.loc) if made else old.target
            new = bodies[label][index] = ir.Assign(old.value, target, old.loc)
            made.setdefault(label, []).append((index, new))
    return made


class _Fix(ssa._FixSSAVars):
    """Numba's, which is told at which index a statement stands. made: the assignments, by block with their indices."""

    def __init__(self, listed: Any, made: dict[int, list[tuple[int, Any]]]) -> None:
        super().__init__(listed)
        self.made = made

    def _find_def(self, states: Any, stmt: Any) -> Any:
        label, index = states["label"], states["index"]
        before = [new for at, new in self.made.get(label, ()) if at < index] or states["phimap"][label]
        return before[-1] if before else self._find_def_from_top(states, label, loc=stmt.loc)

    def _find_def_from_top(self, states: Any, label: int, loc: Any) -> Any:
        """Find the definition that reaches a block, as Numba's does, which calls itself for each block on the way: of
        a function with some hundred branches more often than Python lets it."""
        predecessors = states["cfg"].predecessors
        found, at = self._reaching(states, label, loc)
        phis = [] if at is None else [(found, predecessors(at))]
        while phis:
            phi, ways = phis[-1]
            before = next(ways, None)
            if before is None:
                phis.pop()
                continue
            defs = states["defmap"][before[0]]
            came, at = (defs[-1], None) if defs else self._reaching(states, before[0], loc)
            phi.value.incoming_values.append(came.target)
            phi.value.incoming_blocks.append(before[0])
            if at is not None:
                phis.append((came, predecessors(at)))
        return found

    def _reaching(self, states: Any, label: int, loc: Any) -> tuple[Any, int | None]:
        """Return the definition that reaches the top of a block, and the block of it if it is a new phi, which has no
        values yet."""
        dominators, defmap = states["cfg"].immediate_dominators(), states["defmap"]
        while label not in states["phi_locations"]:
            above = dominators[label]
            if above == label:
                ssa._warn_about_uninitialized_variable(states["varname"], loc)
                return ssa.UndefinedVariable, None
            if defmap[above]:
                return defmap[above][-1], None
            label = above
        loc = states["block"].loc
        phi = ir.Assign(
            target=states["scope"].redefine(states["varname"], loc=loc), value=ir.Expr.phi(loc=loc), loc=loc
        )
        defmap[label].insert(0, phi)
        states["phimap"][label].append(phi)
        return phi, label


@register_pass(mutates_CFG=True, analysis_only=False)
class SingleAssignments(ReconstructSSA):
    _name = "numba_cute_single_assignments"

    def run_pass(self, state: Any) -> bool:
        state.func_ir.blocks = in_ssa_form(state.func_ir.blocks)
        self._patch_locals(state)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        postproc.PostProcessor(state.func_ir).run(emit_dels=False)
        return True
