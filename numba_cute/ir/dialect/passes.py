# SPDX-License-Identifier: Apache-2.0
"""The passes of `opt`, by name: ours, and those of xDSL that know of the dialect only which operations are pure."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination
from xdsl.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass

from .folding import fold_static

Pass = Callable[[Context, ModuleOp], None]


def _of_xdsl(cls: type[ModulePass]) -> Pass:
    return lambda ctx, module: cls().apply(ctx, module)


PASSES: dict[str, Pass] = {
    "cute-fold-static": lambda ctx, module: fold_static(module),
    "canonicalize": _of_xdsl(CanonicalizePass),
    "cse": _of_xdsl(CommonSubexpressionElimination),
    "dce": _of_xdsl(DeadCodeElimination),
    "loop-invariant-code-motion": _of_xdsl(LoopInvariantCodeMotionPass),
}
"""The passes by name; each changes a module in place."""

__all__ = ["PASSES"]
