# SPDX-License-Identifier: Apache-2.0
"""Say which kernel is being compiled, and what is known of its launch."""

from __future__ import annotations

from typing import Any

from . import errors

Cluster = tuple[int, int, int]

_LAUNCHES: list[tuple[Cluster | None, int | None]] = []
"""Of the kernels being compiled, innermost last: the cluster shape and the most threads of a block; None if unknown."""


def known_launch() -> tuple[Cluster | None, int | None]:
    """Give the cluster shape and the most threads of a block of the kernel that is being compiled (see
    `seam.Backend.known_launch`); None for each that is not known."""
    return _LAUNCHES[-1] if _LAUNCHES else (None, None)


class building:
    """While a kernel is compiled: what is known of its launch is at hand, and errors are explained.

    py_func: the kernel's function. launch_bounds: as `cuda.jit` takes it, the most threads of a block first.
    """

    def __init__(self, py_func: Any, launch_bounds: Any = None) -> None:
        self.py_func = py_func
        self.threads = launch_bounds[0] if isinstance(launch_bounds, tuple) else launch_bounds

    def __enter__(self) -> None:
        if not _LAUNCHES:
            errors.forget()
        _LAUNCHES.append((getattr(self.py_func, "__cute_cluster__", None), self.threads))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _LAUNCHES.pop()
        if error is not None:
            errors.explain(error, self.py_func)
