# SPDX-License-Identifier: Apache-2.0
"""Say which kernel is being compiled, and what is known of its launch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from ...seam import CuteError
from ...seam.ground.collecting import aging, seldom
from ...seam.ground.records import dataclass
from . import errors, memory
from .numba import NumbaExperimentalFeatureWarning
from .numba_cuda import global_compiler_lock

Cluster = tuple[int, int, int]

_LAUNCHES: list[tuple[Cluster | None, int | None]] = []
"""The cluster shape and the most threads of a block of the kernels being compiled, innermost last; None if unknown."""
_BLOCKS: list[Any] = []
"""The shape of all blocks of the same kernels; None if unknown."""


def known_launch() -> tuple[Cluster | None, int | None]:
    """Give the cluster shape and the most threads of a block of the kernel that is being compiled (see
    `seam.Backend.known_launch`); None for each that is not known."""
    return _LAUNCHES[-1] if _LAUNCHES else (None, None)


def known_block() -> tuple[int, int, int] | None:
    """Give the shape of every block of the kernel that is being compiled; None if it is not known."""
    return _BLOCKS[-1] if _BLOCKS else None


@dataclass
class Kernel:
    """The state of a kernel while it is lowered.

    function: the kernel's. lowered: the function that is lowered now, it or one that it calls. smem: bytes of dynamic
    shared memory that `allocate` gave out; allocator: whether an SmemAllocator gives out the same. map_bytes: bytes of
    tensor maps that it makes; room: the address of memory for them, and how much of it each block has; None while that
    is looked for. exits: what its threads do at its end."""

    function: Any
    lowered: Any = None
    smem: int = 0
    allocator: bool = False
    map_bytes: int = 0
    room: tuple[Any, int] | None = None
    exits: list[Any] = field(default_factory=list)


_KERNELS: list[Kernel] = []


def kernel() -> Kernel:
    """Give the kernel that is being compiled. Raises CuteError where a function alone is."""
    if not _KERNELS:
        raise CuteError("this needs a kernel that is being compiled: it cannot be in a function that is compiled alone")
    return _KERNELS[-1]


def building_kernel() -> bool:
    """Say whether a kernel is being compiled."""
    return bool(_KERNELS)


def lowering(function: Any) -> None:
    """Note that a function is lowered from now on: its types are known, and so all that it calls is compiled."""
    if _KERNELS:
        _KERNELS[-1].lowered = function


_WANTED: list[list[tuple[Any, Any]]] = []
"""The arguments that want a map, and its form, for the kernels whose tensor maps are looked for, innermost last."""


@contextmanager
def looking_for_maps() -> Iterator[list[tuple[Any, Any]]]:
    """Collect which tensor maps a kernel asks for while it is compiled (see `want_map`)."""
    _WANTED.append([])
    try:
        yield _WANTED[-1]
    finally:
        _WANTED.pop()


ROOM = "room"
"""In the place of an argument: memory for the tensor maps that a kernel makes, whose form is how many bytes."""


def want_map(argument: Any, form: Any) -> None:
    """Note that the kernel being compiled asks for a tensor map of `form` for `argument`."""
    if _WANTED and (argument, form) not in _WANTED[-1]:
        _WANTED[-1].append((argument, form))


class building:
    """While a kernel is compiled: what is known of its launch is at hand, calls are remembered, errors are explained,
    and the garbage collector runs seldom. One thread builds at a time.

    py_func: the kernel's function. launch_bounds: as `cuda.jit` takes it, the most threads of a block first.
    """

    def __init__(self, py_func: Any, launch_bounds: Any = None) -> None:
        self.py_func = py_func
        self.threads = launch_bounds[0] if isinstance(launch_bounds, tuple) else launch_bounds
        self.block = getattr(launch_bounds, "block", None)

    def __enter__(self) -> None:
        global_compiler_lock.acquire()
        memory.begin()
        if not _LAUNCHES:
            errors.forget()
        _LAUNCHES.append((getattr(self.py_func, "__cute_cluster__", None), self.threads))
        _BLOCKS.append(self.block)
        _KERNELS.append(Kernel(self.py_func))
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        # Of a tuple of functions, each of which a kernel calls by itself.
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        seldom.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if len(_LAUNCHES) == 1:
            aging()
        seldom.__exit__()
        self._warnings.__exit__(kind, error, trace)
        _LAUNCHES.pop()
        _BLOCKS.pop()
        _KERNELS.pop()
        memory.end()
        global_compiler_lock.release()
        try:
            if error is not None:
                errors.explain(error, self.py_func)
        finally:
            if not _LAUNCHES:
                errors.forget()
