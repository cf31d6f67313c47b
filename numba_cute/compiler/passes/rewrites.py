# SPDX-License-Identifier: Apache-2.0
"""Numba's rewrites after inference, where there is something to rewrite: it writes `del` statements for them, and takes
them away again, in each function."""

from __future__ import annotations

from typing import Any

from numba.cuda import types
from numba.cuda.core import ir, postproc
from numba.cuda.core.compiler_machinery import register_pass
from numba.cuda.core.inline_closurecall import RewriteArrayOfConsts
from numba.cuda.core.rewrites import rewrite_registry
from numba.cuda.core.rewrites.registry import RewriteRegistry
from numba.cuda.core.rewrites.static_getitem import RewriteStringLiteralGetitems, RewriteStringLiteralSetitems
from numba.cuda.core.typed_passes import NopythonRewrites

from .definitions import instructions

_KNOWN = {RewriteArrayOfConsts, RewriteStringLiteralGetitems, RewriteStringLiteralSetitems}
"""Those of Numba's own: an array of a list, and an index that is a string."""
LEANS_ON = (NopythonRewrites, RewriteRegistry.apply, *sorted(_KNOWN, key=lambda cls: cls.__name__))


@register_pass(mutates_CFG=True, analysis_only=False)
class Rewrites(NopythonRewrites):
    _name = "numba_cute_rewrites"

    def run_pass(self, state: Any) -> bool:
        if _may_match(state):
            return bool(super().run_pass(state))
        postproc.PostProcessor(state.func_ir).run()
        return True


def _may_match(state: Any) -> bool:
    """Say whether a function has anything that is rewritten. Of rewrites that others registered nothing is known."""
    if state.func_ir.is_generator or not _KNOWN.issuperset(rewrite_registry.rewrites["after-inference"]):
        return True
    for inst in instructions(state.func_ir.blocks):
        found = inst.value if type(inst) is ir.Assign else inst
        if type(found) is ir.Expr and found.op == "build_list":
            return True
        item = type(found) is ir.SetItem or (type(found) is ir.Expr and found.op == "getitem")
        if item and isinstance(state.typemap[found.index.name], types.StringLiteral):
            return True
    return False
