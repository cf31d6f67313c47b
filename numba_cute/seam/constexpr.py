# SPDX-License-Identifier: Apache-2.0
"""Arguments of a kernel that are known when it is compiled, and who launches kernels that a host function calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from .error import CuteError


class Constexpr:
    """A parameter or argument of a kernel that is known when the kernel is compiled: each value compiles anew.

    `n: cute.Constexpr` or `n: cute.Constexpr[int]` marks a kernel's parameter: whatever a launch gives for it is
    static. `cute.Constexpr(3)` is such an argument of a parameter without a mark. value: an int, a bool, or what is
    static anyway (a layout, an atom, an element type). CuteError: anything else; close over it, or make it a global.
    """

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, Constexpr) else value
        if isinstance(self.value, (float, str)) or hasattr(self.value, "__array_interface__"):
            raise CuteError(
                f"Constexpr({self.value!r}): an argument that is static is an int, a bool or a CuTe object; close over "
                "it, or make it a global"
            )

    def __class_getitem__(cls, kind: Any) -> Any:
        return cls

    def __repr__(self) -> str:
        return f"Constexpr({self.value!r})"


def static_arguments(kernel: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return a launch's arguments, those of the parameters that are marked Constexpr as Constexpr objects."""
    marked = _marked(getattr(kernel, "py_func", getattr(kernel, "fn", kernel)))
    return tuple(Constexpr(a) if i in marked else a for i, a in enumerate(args)) if marked else tuple(args)


def _marked(fn: Any) -> frozenset[int]:
    """The positions of a function's parameters whose annotation is Constexpr, or names it."""
    found = getattr(fn, "__cute_constexpr__", None)
    if found is None:
        notes = getattr(fn, "__annotations__", None) or {}
        names = {n for n, note in notes.items() if note is Constexpr or _names_it(note)}
        at = [i for i, n in enumerate(inspect.signature(fn).parameters) if n in names] if names else []
        found = frozenset(at)
        if hasattr(fn, "__dict__"):
            fn.__cute_constexpr__ = found
    return found


def _names_it(note: Any) -> bool:
    return isinstance(note, str) and note.partition("[")[0].rpartition(".")[2].strip() == "Constexpr"


Launcher = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
LAUNCHER: ContextVar[Launcher | None] = ContextVar("LAUNCHER", default=None)
"""What runs the kernels that a host function launches, given kernel, arguments and launch configuration: None on a GPU,
and what the simulator sets while it runs such a function."""
