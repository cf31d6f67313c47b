# SPDX-License-Identifier: Apache-2.0
"""Device functions of Numba's that this library's kernels call: they are compiled for those alone.

So what this library makes of them (as its own, or while a timeline is recorded) is never plain Numba's, and no plain
kernel finds another outcome for having come later. One that was compiled for a kernel before is taken again if all that
compiling it may read is as it was (`reads`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...seam.hooks.recording import recording
from ..ground.asserting import ASSERTS
from ..ground.memory import Question, compiling, compiling_anything, memory, remembering
from ..ground.nvvm import LEFT_OUT
from ..ground.ownership import owns
from ..ground.taught import registered
from . import settings
from .lasting import is_lasting_function, lasts, setting
from .reads import given_by, reads_of


def keeping_apart(compile_device: Callable[..., Any]) -> Callable[..., Any]:
    """Make of a dispatcher's `compile_device` one that keeps what a compilation of this library's makes apart."""

    def compiled(self: Any, args: Any, return_type: Any = None) -> Any:
        def compile() -> Any:
            return compile_device(self, args, return_type)

        if compiling():
            ours = is_lasting_function(self.py_func)
            asking = functools.partial(_question, self, args, return_type)
            return memory().device(self, args, (lambda: all(map(lasts, args))) if ours else None, compile, asking)
        if compiling_anything() or not owns(self.py_func, args):
            return compile()
        with remembering():
            return compile()

    return compiled


def _question(dispatcher: Any, args: Any, return_type: Any) -> Question | None:
    """Return what tells whether a device function of the user's that was compiled before will do; None of one whose
    arguments' types do not tell all that it is given, or while more is read than its code says."""
    given = given_by(args)
    if given is None or ASSERTS or recording() is not None:
        return None
    taught = registered()
    options, where = repr(sorted(dispatcher.targetoptions.items())), (*setting(), bool(LEFT_OUT), memory().ours)
    key = dispatcher.py_func, args, return_type, tuple(map(id, taught)), options, where
    return Question(key, lambda: reads_of(dispatcher.py_func, (*given, *taught), bool(LEFT_OUT)), settings.set_by)


def renew(dispatcher: Any) -> None:
    """Compile a user's device function that has its signatures, which Numba compiled when it was made, anew."""
    if compiling() and not dispatcher._can_compile and not is_lasting_function(dispatcher.py_func):
        for args, made in list(dispatcher.overloads.items()):
            dispatcher.compile_device(args, made.signature.return_type)
