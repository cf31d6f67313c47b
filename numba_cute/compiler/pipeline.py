# SPDX-License-Identifier: Apache-2.0
"""The compiler pipeline of functions of this library: Numba's, with the passes and the typing context of ours.

Any other function gets Numba's own pipeline as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba.cuda.compiler import CUDANativeLowering, CUDATranslateBytecode
from numba.cuda.core.bytecode import FunctionIdentity
from numba.cuda.core.typed_passes import InlineOverloads, NopythonRewrites, NopythonTypeInference
from numba.cuda.core.untyped_passes import (
    ExtractByteCode,
    InlineClosureLikes,
    LiteralPropagationSubPipelinePass,
    ReconstructSSA,
)

from .. import promotion
from ..seam.ground.packages import package_of
from ..seam.source.class_statements import without_classes
from ..seam.source.language import refuse_code
from ..seam.source.with_statements import without_with
from .bridge import contexts, settings
from .ground import memory, ownership
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
from .passes.rewrites import Rewrites
from .passes.settings import Settings
from .passes.ssa import SingleAssignments
from .passes.statements import Statements
from .passes.uses import mark
from .recorded import RecordedLowering, RecordedPlainLowering


def extending(define_pipelines: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make of Numba's `define_pipelines` one that gives a function of this library what it needs besides."""

    def define(self: Any) -> Any:
        pipelines = _extended(define_pipelines(self), self.state)
        if memory.compiling():
            _noting(pipelines)
        return pipelines

    return define


def _extended(pipelines: Any, state: Any) -> Any:
    _ruled(pipelines, promotion.follows(state.func_id.func))
    recorded = operations.is_recorded(state.func_id.func)
    memory.loosen()
    settings.begin_at(state.func_id.func, state.args)
    if not _is_ours(state.func_id.func, state.args):
        if recorded:
            _replace(pipelines, CUDANativeLowering, RecordedPlainLowering)
        return pipelines
    _read(state)
    mark(state.func_id, state.flags)
    contexts.begin(state.flags)
    state.typingctx = contexts.typing_context()
    contexts.adapt(state.targetctx, state.typingctx)  # this compilation's own copy of the target context
    _replace(pipelines, CUDATranslateBytecode, ReadCode)
    _replace(pipelines, InlineClosureLikes, InlineClosures)
    _replace(pipelines, InlineOverloads, InlineOverloaded)
    _replace(pipelines, NopythonTypeInference, TypeInference)
    _replace(pipelines, NopythonRewrites, Rewrites)
    _replace(pipelines, ReconstructSSA, SingleAssignments)
    _replace(pipelines, LiteralPropagationSubPipelinePass, Propagation)
    _replace(pipelines, CUDANativeLowering, RecordedLowering if recorded else Lowering)
    for manager in pipelines:
        # Closures are inlined first: until then an assignment by `nonlocal` is not seen.
        manager.add_pass_after(KeepConstants, InlineClosures)
        manager.add_pass_after(Methods, InlineClosures)
        manager.add_pass_after(Settings, InlineClosures)
        manager.add_pass_after(Identity, TypeInference)
        manager.add_pass_after(Audit, TypeInference)
        manager.add_pass_after(Statements, TypeInference)
        manager.finalize()
    return pipelines


def _ruled(pipelines: Any, reference: bool) -> None:
    """Have the passes run by the CuTe DSL's rule of numbers, or by Numba's, whichever their caller has."""
    for manager in pipelines:
        manager.run = functools.partial(_run_by, reference, manager.run)


def _run_by(reference: bool, run: Callable[[Any], None], state: Any) -> None:
    with promotion.following(reference):
        run(state)


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


def _noting(pipelines: Any) -> None:
    """Add what notes where values are converted, and where in float64."""
    for manager in pipelines:
        for typing in [p for p, _ in manager.passes if issubclass(p, NopythonTypeInference)]:
            manager.add_pass_after(NoteLosses, typing)
            manager.add_pass_after(NoteMeetings, typing)
        manager.finalize()


def _replace(pipelines: Any, old: type, new: type) -> None:
    for manager in pipelines:
        manager.passes = [(new if p is old else p, text) for p, text in manager.passes]
        manager.finalize()
