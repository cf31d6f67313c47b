# SPDX-License-Identifier: Apache-2.0
"""A kernel's source as a kernel, and the arguments that all of them take. Nothing here imports numba_cute but for the
kernels that do."""

from __future__ import annotations

import hashlib
import linecache
from typing import Any

import numpy as np

THREADS, ROWS = 8, 5


def kernel_of(source: str) -> Any:
    """The `kernel` of a module's source, whose lines errors and reports can show."""
    name = f"<fuzz {hashlib.sha256(source.encode()).hexdigest()[:12]}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {"__name__": "fuzz"}
    exec(compile(source, name, "exec", dont_inherit=True), space)
    return space["kernel"]


def arguments() -> tuple[Any, ...]:
    """(ints out, floats out, ints in, n, m), the outputs poisoned."""
    rng = np.random.default_rng(7)
    ints, floats = np.full((THREADS, ROWS), -77, np.int64), np.full((THREADS, 2), np.nan)
    return ints, floats, rng.integers(0, 50, 32).astype(np.int32), 5, 3


def with_tensor(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of kernels of this library: the ints in as a tensor of 8 by 4, too."""
    import numba_cute as cute
    from numba_cute.runtime import from_dlpack

    return *args, cute.make_tensor(from_dlpack(args[2]).iterator, cute.make_layout((8, 4)))
