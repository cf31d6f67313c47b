# SPDX-License-Identifier: Apache-2.0
"""`dce`: operations that do nothing but give results which nobody uses are left out."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import region_dce


class DeadCode(ModulePass):
    """Leave out operations whose results are not used and that do nothing else.

    What an operation does is found by running what it calls (`effects`): one that reads memory is left out too, one
    that issues an instruction or writes stays. What Numba compiles may do anything."""

    name = "dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        region_dce(op.body)
