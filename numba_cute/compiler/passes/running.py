# SPDX-License-Identifier: Apache-2.0
"""The list of passes of this library's functions, made once for functions of one kind, and its running.

Numba makes the list for each function, works out for each change of it what each pass needs of others, and tells
listeners of each pass what all its options are, if there is a listener or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ... import promotion
from ...seam.ground.stack import with_room
from ..ground.numba_cuda import CUDACompiler, DefaultPassBuilder, PassManager, event, new_error_context

LEANS_ON = (
    PassManager.__init__,
    PassManager._runPass,
    PassManager.run,
    PassManager.finalize,
    PassManager._debug_init,
    CUDACompiler.define_cuda_lowering_pipeline,
    DefaultPassBuilder.define_untyped_pipeline,
    DefaultPassBuilder.define_typed_pipeline,
)
_RUNS = "numba-cuda:run_pass"


class Passes(PassManager):
    """A list of passes that runs by the CuTe DSL's rule of numbers (`reference`), or by Numba's."""

    def __init__(self, name: str, reference: bool) -> None:
        super().__init__(name)
        self._reference = reference

    @with_room
    def run(self, state: Any) -> None:
        with promotion.following(self._reference):
            super().run(state)

    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:
        if event._registered[_RUNS] or self._print_before or self._print_after or self._print_wrap:
            super()._runPass(index, pss, internal_state)
            return
        pss.analysis = self._analysis
        with new_error_context(f"Pass {pss.name()}"):
            pss.run_initialization(internal_state)
            pss.run_pass(internal_state)
            pss.run_finalizer(internal_state)


_LISTS: dict[Any, list[tuple[str, tuple[Any, ...], Any]]] = {}
"""By the kind of functions: of each list of passes the name, the passes, and what each needs of others."""


def passes(kind: Any, reference: bool, make: Callable[[], Iterable[Any]]) -> list[Passes]:
    """Return the passes of a function. kind: of the functions that have the same; None: of this one alone. reference:
    whether they run by the CuTe DSL's rule of numbers. make: gives them as Numba's lists."""
    lists = _LISTS.get(kind)
    if lists is None:
        lists = [(m.pipeline_name, tuple(m.passes), m.dependency_analysis()) for m in make()]
        if kind is not None:
            _LISTS[kind] = lists
    found = []
    for name, listed, analysis in lists:
        made = Passes(name, reference)
        made.passes, made._analysis = list(listed), analysis
        made._print_after, made._print_before, made._print_wrap = made._debug_init()
        made._finalized = True
        found.append(made)
    return found
