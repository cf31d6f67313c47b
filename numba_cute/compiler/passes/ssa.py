# SPDX-License-Identifier: Apache-2.0
"""Numba's reconstruction of SSA form, which goes, for each variable that is set twice, over the blocks that name it.

Numba's own goes over all of them, for each such variable twice: of a function with many unrolled loops a third of the
time of all passes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from numba.cuda.core import ir, postproc, ssa
from numba.cuda.core.analysis import compute_cfg_from_blocks
from numba.cuda.core.compiler_machinery import register_pass
from numba.cuda.core.ir_utils import build_definitions
from numba.cuda.core.untyped_passes import ReconstructSSA

LEANS_ON = (
    ReconstructSSA.run_pass, ssa._run_ssa, ssa._fresh_vars, ssa._fix_ssa_vars, ssa._run_block_rewrite,
    ssa._FreshVarHandler, ssa._FixSSAVars, ssa._find_defs_violators,
)  # fmt: skip
"""The code of Numba's that this stands for, or that it calls."""


def in_ssa_form(blocks: dict[int, Any]) -> dict[int, Any]:
    """Return the blocks of a function in SSA form, as Numba's `reconstruct_ssa` makes them."""
    cfg = compute_cfg_from_blocks(blocks)
    frontiers = ssa._iterated_domfronts(cfg)
    listed = ssa._CacheListVars()
    naming: dict[str, list[int]] = defaultdict(list)
    for label, block in blocks.items():
        for name in {v.name for inst in block.body for v in inst.list_vars()}:
            naming[name].append(label)
    blocks = dict(blocks)
    for name in ssa._find_defs_violators(blocks, cfg):
        fresh, definitions = ssa._fresh_vars({label: blocks[label] for label in naming[name]}, name)
        phis: dict[int, list[Any]] = defaultdict(list)
        places = ssa._compute_phi_locations(frontiers, definitions)
        states = {**ssa._make_states(blocks), "varname": name, "defmap": definitions, "phimap": phis, "cfg": cfg,
                  "phi_locations": places}  # fmt: skip
        blocks.update(ssa._run_block_rewrite(fresh, states, ssa._FixSSAVars(listed)))
        for label, first in phis.items():
            block = ir.Block(scope=blocks[label].scope, loc=blocks[label].loc)
            block.body = first + blocks[label].body
            blocks[label] = block
    return blocks


@register_pass(mutates_CFG=True, analysis_only=False)
class SingleAssignments(ReconstructSSA):
    _name = "numba_cute_single_assignments"

    def run_pass(self, state: Any) -> bool:
        state.func_ir.blocks = in_ssa_form(state.func_ir.blocks)
        self._patch_locals(state)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        postproc.PostProcessor(state.func_ir).run(emit_dels=False)
        return True
