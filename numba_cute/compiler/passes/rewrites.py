# SPDX-License-Identifier: Apache-2.0
"""Numba's rewrites, where there is something to rewrite. For those after inference it writes `del` statements, and
takes them away again, in each function. For calls of `print` before, it asks of each call which constant it calls, and
writes a message for each that calls none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ..ground.numba_cuda import (
    ConstantInference,
    ConstantInferenceError,
    GenericRewrites,
    NopythonRewrites,
    RewriteArrayOfConsts,
    RewritePrintCalls,
    RewriteRegistry,
    RewriteStringLiteralGetitems,
    RewriteStringLiteralSetitems,
    ir,
    postproc,
    register_pass,
    rewrite_registry,
    types,
)
from .definitions import instructions

_KNOWN = {RewriteArrayOfConsts, RewriteStringLiteralGetitems, RewriteStringLiteralSetitems}
"""Those of Numba's own: an array of a list, and an index that is a string."""
LEANS_ON = (
    NopythonRewrites, RewriteRegistry.apply, *sorted(_KNOWN, key=lambda cls: cls.__name__),
    GenericRewrites, RewritePrintCalls, ConstantInference,
)  # fmt: skip
_BEFORE = "before-inference"


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


class _Quiet(ConstantInference):
    """Find constants as Numba does, and raise its errors without a piece of the source, which is slow to write."""

    def infer_constant(self, name: str, loc: Any = None) -> Any:
        return super().infer_constant(name)


@contextmanager
def quietly(func_ir: Any) -> Iterator[None]:
    """Let what asks whether variables are constants, and catches that they are not, be answered in less time."""
    before, func_ir._consts = func_ir._consts, _Quiet(func_ir)
    func_ir._consts._cache = before._cache
    quiet = func_ir._consts
    try:
        yield
    finally:
        if func_ir._consts is quiet:
            func_ir._consts = before


@register_pass(mutates_CFG=True, analysis_only=False)
class RewritesBefore(GenericRewrites):
    _name = "numba_cute_generic_rewrites"

    def run_pass(self, state: Any) -> bool:
        try:
            with quietly(state.func_ir):
                return self._rewritten(state)
        except ConstantInferenceError:  # which is to say where
            return bool(super().run_pass(state))

    def _rewritten(self, state: Any) -> bool:
        if RewritePrintCalls not in rewrite_registry.rewrites[_BEFORE] or _may_print(state.func_ir):
            return bool(super().run_pass(state))
        others = RewriteRegistry()
        others.rewrites[_BEFORE] = [r for r in rewrite_registry.rewrites[_BEFORE] if r is not RewritePrintCalls]
        others.apply(_BEFORE, state)
        return True


def _may_print(func_ir: Any) -> bool:
    """Say whether a function calls `print`, as far as Numba finds constants: through names and members of modules."""
    found: dict[str, Any] = {}

    def value(name: str) -> Any:
        if name not in found:
            found[name] = None
            made = func_ir._definitions.get(name, ())
            found[name] = of(made[0]) if len(made) == 1 else None
        return found[name]

    def of(made: Any) -> Any:
        if isinstance(made, (ir.Global, ir.FreeVar, ir.Const)):
            return made.value
        if isinstance(made, ir.Var):
            return value(made.name)
        owner = value(made.value.name) if type(made) is ir.Expr and made.op == "getattr" else None
        return getattr(owner, made.attr, None) if isinstance(owner, (ModuleType, type)) else None

    calls = [i.value for i in instructions(func_ir.blocks) if isinstance(i, ir.Assign) and type(i.value) is ir.Expr]
    return any(c.op == "call" and value(c.func.name) is print for c in calls)
