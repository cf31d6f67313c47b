# SPDX-License-Identifier: Apache-2.0
"""Numba's passes that inline closures and overloads, without the dead code elimination that follows them there.

That takes a store `t[i] = x` for dead if neither `t` nor what it knows as an alias of it is read later. It does not
know that the tensors of a kernel are views of memory that others read: `gC = cute.local_tile(…)`, `gC[i] = x` at a
kernel's end would be left out, because of a closure somewhere else in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from numba.cuda.core import inline_closurecall, ir, postproc, typed_passes
from numba.cuda.core.compiler_machinery import register_pass
from numba.cuda.core.typed_passes import InlineOverloads
from numba.cuda.core.untyped_passes import InlineClosureLikes

from .definitions import statements


def _drop_functions(func_ir: Any, *_: Any, **__: Any) -> None:
    """Remove functions that are made and not used any more (another pass would compile them), and copies of them. What
    else is dead LLVM removes."""
    while True:
        used = {v.name for _, inst in statements(func_ir.blocks) for v in _read(inst)}
        dead = [inst for _, inst in statements(func_ir.blocks) if _is_dead_function(inst, used)]
        if not dead:
            break
        gone = set(map(id, dead))
        for block in func_ir.blocks.values():
            block.body = [inst for inst in block.body if id(inst) not in gone]
    postproc.PostProcessor(func_ir).run()


def _read(inst: Any) -> Iterator[Any]:
    """The variables that a statement reads; a Del, which the analysis of closures puts in, reads none."""
    if isinstance(inst, ir.Del):
        return iter(())
    if isinstance(inst, ir.Assign):
        value = inst.value
        return iter([value] if isinstance(value, ir.Var) else value.list_vars() if isinstance(value, ir.Expr) else ())
    return iter(inst.list_vars())


def _is_dead_function(inst: Any, used: set[str]) -> bool:
    if not isinstance(inst, ir.Assign) or inst.target.name in used:
        return False
    return isinstance(inst.value, ir.Var) or isinstance(inst.value, ir.Expr) and inst.value.op == "make_function"


@contextmanager
def _stores_kept(module: ModuleType) -> Iterator[None]:
    """While a pass of this module runs (Numba compiles one function at a time), only functions are dead code."""
    original = module.dead_code_elimination  # type: ignore[attr-defined]
    module.dead_code_elimination = _drop_functions  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.dead_code_elimination = original  # type: ignore[attr-defined]


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineClosures(InlineClosureLikes):  # type: ignore[misc]
    _name = "numba_cute_inline_closures"

    def run_pass(self, state: Any) -> bool:
        with _stores_kept(inline_closurecall):
            return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineOverloaded(InlineOverloads):  # type: ignore[misc]
    _name = "numba_cute_inline_overloads"

    def run_pass(self, state: Any) -> bool:
        with _stores_kept(typed_passes):
            return bool(super().run_pass(state))
