# SPDX-License-Identifier: Apache-2.0
"""Bytecode as Numba's IR, with the walrus.

Numba takes `$1 = f(); k = $1` for `k = f()`, since a value on Python's stack is read once. The walrus reads it twice:
`(k := f()) > 5` would compare a value that is never set.
"""

from __future__ import annotations

from typing import Any

from numba.cuda.compiler import CUDABytecodeInterpreter, CUDATranslateBytecode
from numba.cuda.core import ir
from numba.cuda.core.compiler_machinery import register_pass

from .uses import read_in


@register_pass(mutates_CFG=True, analysis_only=False)
class ReadCode(CUDATranslateBytecode):
    _name = "numba_cute_read_code"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = _Reader(state.func_id).interpret(state.bc)
        return True


class _Reader(CUDABytecodeInterpreter):
    """Numba's interpreter of bytecode, which keeps a value that is read again after a variable was given it."""

    def _remove_unused_temporaries(self) -> None:
        made = {id(s): s.target for s in self.current_block.body if isinstance(s, ir.Assign) and s.target.is_temp}
        super()._remove_unused_temporaries()
        read = set().union(*map(read_in, self.current_block.body))
        body = []
        for inst in self.current_block.body:
            body.append(inst)
            first = made.get(id(inst))
            if first is not None and first is not inst.target and first.name in read:
                body.append(ir.Assign(first, inst.target, inst.loc))
                inst.target = first
        self.current_block.body = body
