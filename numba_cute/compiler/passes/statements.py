# SPDX-License-Identifier: Apache-2.0
"""Statements of kernels that use this library which Numba takes though their types say that they are wrong: assertions
that are false, arithmetic that raises, and atomics on arrays that may only be read."""

from __future__ import annotations

from typing import Any

from ...seam import CuteError
from ...seam.guards.messages import READ_ONLY_ARRAY
from ..ground.errors import located
from ..ground.numba import cuda
from ..ground.numba_cuda import AnalysisPass, ir, register_pass, types
from .assertions import check_assertions
from .static_faults import refuse_faults

_ATOMICS = frozenset(f for name, f in vars(cuda.atomic).items() if not name.startswith("_"))


def check_atomics(func_ir: Any, typemap: Any) -> None:
    """Raise a CuteError if an atomic writes an array that is read-only."""
    for block in func_ir.blocks.values():
        for inst in block.find_insts(ir.Assign):
            call = inst.value
            if not isinstance(call, ir.Expr) or call.op != "call" or not call.args:
                continue
            array = typemap[call.args[0].name]
            if not isinstance(array, types.Array) or array.mutable:
                continue
            if getattr(typemap[call.func.name], "typing_key", None) in _ATOMICS:
                raise located(CuteError(READ_ONLY_ARRAY), inst.loc)


@register_pass(mutates_CFG=False, analysis_only=True)
class Statements(AnalysisPass):
    _name = "numba_cute_statements"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        check_assertions(state.func_ir, state.typemap)
        refuse_faults(state.func_ir, state.typemap)
        check_atomics(state.func_ir, state.typemap)
        return False
