# SPDX-License-Identifier: Apache-2.0
"""Triton, where it is not installed: packages import it for times and for kernels of its own, which no driver calls."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

import torch.utils._triton


class _Stub(ModuleType):
    """A module, each name of which is a class: a decorator, or what has nothing but its name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__new__": _decorated, "__call__": lambda self, fn=None, *_, **__: fn})


def _decorated(cls: type, *given: Any, **named: Any) -> Any:
    if not named and len(given) == 1 and callable(given[0]):
        return given[0]
    return object.__new__(cls)


def _once(fn: Any, *_: Any, **__: Any) -> float:
    """Call a function once; gives NaN for its time."""
    fn()
    return float("nan")


class _Finder:
    """The finder of `triton` and all modules below it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a module `name` of it; None of others."""
        if name.partition(".")[0] != "triton":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> ModuleType:
        """Make the module of a spec."""
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing."""


def stand_in() -> None:
    """Have `import triton` answered if it is not installed."""
    if importlib.util.find_spec("triton") is None:
        torch.utils._triton.has_triton_package()  # torch remembers that it is not there
        sys.meta_path.append(_Finder())
        for name in ("language", "runtime.cache", "testing"):
            importlib.import_module(f"triton.{name}")
        triton = sys.modules["triton"]
        triton.__version__ = "0"  # torch asks for it
        triton.testing.do_bench = _once
