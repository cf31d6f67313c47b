# SPDX-License-Identifier: Apache-2.0
"""Numba's propagation of literals, which decides `isinstance` and `hasattr`, but by settled types alone: typed in part,
a variable whose type is another on another way looks like what one of them gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from ..ground.numba_cuda import (
    DeadBranchPrune,
    LiteralPropagationSubPipelinePass,
    PartialTypeInference,
    PassManager,
    PropagateLiterals,
    RewriteSemanticConstants,
    ir,
    register_pass,
)
from .definitions import instructions
from .typed_constants import is_settled


@register_pass(mutates_CFG=True, analysis_only=False)
class PropagateSettled(PropagateLiterals):
    _name = "numba_cute_propagate_settled"

    def run_pass(self, state: Any) -> bool:
        assigned = {i.target.name: i.value for i in instructions(state.func_ir.blocks) if isinstance(i, ir.Assign)}
        found = state.typemap
        state.typemap = {n: t for n, t in found.items() if is_settled(n, found, assigned, state.typingctx)}
        with _named(assigned.values()):
            return bool(super().run_pass(state))


@contextmanager
def _named(values: Iterable[Any]) -> Iterator[None]:
    """Let what is not set on a way to a phi have a name, for which Numba asks, and no type."""
    phis = [v.incoming_values for v in values if isinstance(v, ir.Expr) and v.op == "phi"]
    unset = [(incoming, at) for incoming in phis for at, x in enumerate(incoming) if x is ir.UNDEFINED]
    for incoming, at in unset:
        incoming[at] = SimpleNamespace(name=None)
    yield
    for incoming, at in unset:
        incoming[at] = ir.UNDEFINED


@register_pass(mutates_CFG=True, analysis_only=False)
class Propagation(LiteralPropagationSubPipelinePass):
    _name = "numba_cute_literal_propagation"

    def run_pass(self, state: Any) -> bool:
        if not any(_asks(inst) for inst in instructions(state.func_ir.blocks)):
            return False
        steps = PassManager(self._name)
        for step in (PartialTypeInference, PropagateSettled, RewriteSemanticConstants, DeadBranchPrune):
            steps.add_pass(step, step.__name__)
        steps.finalize()
        steps.run(state)
        return True


def _asks(inst: Any) -> bool:
    """Say whether a statement names a function whose result Numba propagates."""
    named = isinstance(inst, ir.Assign) and isinstance(inst.value, (ir.Global, ir.FreeVar))
    return named and (inst.value.value is isinstance or inst.value.value is hasattr)
