# SPDX-License-Identifier: Apache-2.0
"""Device functions of Numba's that this library's kernels call: each compilation compiles them for itself.

So what they read is read anew, what this library makes of them (as its own, or while a timeline is recorded) is never
plain Numba's, and no plain kernel finds another outcome for having come later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ground.memory import compiling, compiling_anything, memory, remembering
from ..ground.ownership import owns
from .lasting import is_lasting_function, lasts


def keeping_apart(compile_device: Callable[..., Any]) -> Callable[..., Any]:
    """Make of a dispatcher's `compile_device` one that keeps what a compilation of this library's makes apart."""

    def compiled(self: Any, args: Any, return_type: Any = None) -> Any:
        def compile() -> Any:
            return compile_device(self, args, return_type)

        if compiling():
            ours = is_lasting_function(self.py_func)
            return memory().device(self, args, (lambda: all(map(lasts, args))) if ours else None, compile)
        if compiling_anything() or not owns(self.py_func, args):
            return compile()
        with remembering():
            return compile()

    return compiled


def renew(dispatcher: Any) -> None:
    """Compile a user's device function that has its signatures, which Numba compiled when it was made, anew."""
    if compiling() and not dispatcher._can_compile and not is_lasting_function(dispatcher.py_func):
        for args, made in list(dispatcher.overloads.items()):
            dispatcher.compile_device(args, made.signature.return_type)
