# SPDX-License-Identifier: Apache-2.0
"""How functions of this library are typed: Numba's typing context, and before its templates our own.

Templates of operators and builtins that Numba has too (`+`, `len`, `bool`) are kept here rather than registered with
Numba, where they would be tried, and named in errors, for every kernel of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.cuda import types
from numba.cuda.descriptor import cuda_target
from numba.cuda.target import CUDATypingContext

_TEMPLATES: dict[Any, list[Any]] = {}
_SETATTR: list[Callable[[Any, str, Any], Any]] = []


def template(op: Any) -> Callable[[Any], Any]:
    """Decorate a typing template of an operator or builtin that only functions of this library see."""

    def register(cls: Any) -> Any:
        cls.key = op
        _TEMPLATES.setdefault(op, []).append(cls)
        return cls

    return register


def setattr_rule(rule: Callable[[Any, str, Any], Any]) -> Callable[[Any, str, Any], Any]:
    """Decorate what types `target.attr = value` before Numba does: it gives a signature, or None for Numba's rule."""
    _SETATTR.append(rule)
    return rule


class CuteTypingContext(CUDATypingContext):
    """A view of Numba's typing context: the same state, with this library's templates before Numba's own."""

    def __init__(self, shared: CUDATypingContext) -> None:
        self.__dict__ = shared.__dict__

    def _lookup_global(self, gv: Any) -> Any:
        known = super()._lookup_global(gv)
        try:
            own = _TEMPLATES.get(gv)
        except TypeError:  # unhashable
            own = None
        if own is None:
            return known
        function = _FUNCTIONS.get(gv)
        if function is None or function[0] is not known:
            joined = types.Function((*own, *(known.templates if known is not None else ())))
            function = _FUNCTIONS[gv] = (known, joined)
        return function[1]

    def resolve_setattr(self, target: Any, attr: str, value: Any) -> Any:
        for rule in _SETATTR:
            found = rule(target, attr, value)
            if found is not None:
                return found
        return super().resolve_setattr(target, attr, value)


_FUNCTIONS: dict[Any, tuple[Any, Any]] = {}
"""By operator: Numba's function type, and the one that has our templates too."""


def typing_context() -> CuteTypingContext:
    """The typing context of functions of this library."""
    return CuteTypingContext(cuda_target.typing_context)
