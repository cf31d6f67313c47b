# SPDX-License-Identifier: Apache-2.0
"""The compiler pipeline of functions of this library: Numba's, with the passes and the typing context of ours.

Any other function gets Numba's own pipeline as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import promotion
from ..seam.ground.packages import package_of
from ..seam.source.class_statements import without_classes
from ..seam.source.language import refuse_code
from ..seam.source.with_statements import without_with
from .bridge import contexts, settings
from .ground import memory, ownership
from .ground.numba_cuda import (
    CUDACompiler,
    CUDANativeLowering,
    CUDATranslateBytecode,
    ExtractByteCode,
    FunctionIdentity,
    GenericRewrites,
    InlineClosureLikes,
    InlineOverloads,
    LiteralPropagationSubPipelinePass,
    NopythonRewrites,
    NopythonTypeInference,
    ReconstructSSA,
)
from .inspection import operations
from .passes.audit import Audit
from .passes.comprehensions import HANDLERS
from .passes.identity import Identity
from .passes.inference import TypeInference
from .passes.inlining import InlineClosures, InlineOverloaded
from .passes.keep_constants import KeepConstants
from .passes.losses import NoteLosses
from .passes.lower import Lowering
from .passes.meetings import NoteMeetings
from .passes.methods import Methods
from .passes.propagation import Propagation
from .passes.reading import ReadCode
from .passes.rewrites import Rewrites, RewritesBefore
from .passes.running import passes
from .passes.settings import Settings
from .passes.ssa import SingleAssignments
from .passes.statements import Statements
from .passes.uses import mark
from .recorded import RecordedLowering, RecordedPlainLowering


def extending(define_pipelines: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make of Numba's `define_pipelines` one that gives a function of this library what it needs besides."""

    def define(self: Any) -> Any:
        state = self.state
        function, reference = state.func_id.func, promotion.follows(state.func_id.func)
        recorded, noting = operations.is_recorded(function), memory.compiling()
        memory.loosen()
        settings.begin_at(function, state.args)
        ours = _is_ours(function, state.args)
        if ours:
            _begin(state)
        options = state.func_ir is None, state.flags.no_rewrites, state.flags.enable_ssa
        kind = (options, ours, recorded, noting) if type(self) is CUDACompiler else None
        return passes(kind, reference, lambda: _changed(define_pipelines(self), ours, recorded, noting))

    return define


def _begin(state: Any) -> None:
    """Give a function of this library what its passes read."""
    _read(state)
    mark(state.func_id, state.flags)
    contexts.begin(state.flags)
    state.typingctx = contexts.typing_context()
    contexts.adapt(state.targetctx, state.typingctx)  # this compilation's own copy of the target context


def _changed(pipelines: Any, ours: bool, recorded: bool, noting: bool) -> Any:
    """Change Numba's lists of passes for a function. ours: it is of this library. recorded: what it does is recorded.
    noting: where it converts values is noted."""
    for manager in pipelines:
        if ours:
            _extend(manager, recorded)
        elif recorded:
            _replace(manager, CUDANativeLowering, RecordedPlainLowering)
        if noting:
            _note(manager)
    return pipelines


def _extend(manager: Any, recorded: bool) -> None:
    """Put the passes of this library into a list of Numba's."""
    _replace(manager, CUDATranslateBytecode, ReadCode)
    _replace(manager, InlineClosureLikes, InlineClosures)
    _replace(manager, InlineOverloads, InlineOverloaded)
    _replace(manager, NopythonTypeInference, TypeInference)
    _replace(manager, NopythonRewrites, Rewrites)
    _replace(manager, GenericRewrites, RewritesBefore)
    _replace(manager, ReconstructSSA, SingleAssignments)
    _replace(manager, LiteralPropagationSubPipelinePass, Propagation)
    _replace(manager, CUDANativeLowering, RecordedLowering if recorded else Lowering)
    # Closures are inlined first: until then an assignment by `nonlocal` is not seen.
    manager.add_pass_after(KeepConstants, InlineClosures)
    manager.add_pass_after(Methods, InlineClosures)
    manager.add_pass_after(Settings, InlineClosures)
    manager.add_pass_after(Identity, TypeInference)
    manager.add_pass_after(Audit, TypeInference)
    manager.add_pass_after(Statements, TypeInference)


def _is_ours(function: Any, args: Any) -> bool:
    """Say whether a function is this library's to compile: by itself, or because a function of this library calls it,
    which is never Numba's own."""
    known = memory.memory()
    if ownership.owns(function, args):
        known.ours = True
        return True
    return known.ours and package_of(function.__module__) != "numba"


def _read(state: Any) -> None:
    """Let Numba read the function's code as this library means it."""
    state.cute_function = state.func_id.func
    function = without_classes(without_with(state.func_id.func))
    refuse_code(function)
    if function is not state.func_id.func:
        state.func_id = FunctionIdentity.from_function(function)
    elif not getattr(state.bc, "exception_entries", ()):
        return
    with HANDLERS:
        ExtractByteCode().run_pass(state)


def _note(manager: Any) -> None:
    """Add what notes where values are converted, and where in float64."""
    for typing in [p for p, _ in manager.passes if issubclass(p, NopythonTypeInference)]:
        manager.add_pass_after(NoteLosses, typing)
        manager.add_pass_after(NoteMeetings, typing)


def _replace(manager: Any, old: type, new: type) -> None:
    manager.passes = [(new if p is old else p, text) for p, text in manager.passes]
