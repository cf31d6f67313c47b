# SPDX-License-Identifier: Apache-2.0
"""Memory for the tensor maps that a kernel makes: the caller's workspace, or the launch's own."""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any

from cuda.bindings import driver as bindings

from ...isa.facts.tensormap_bits import BYTES
from ...seam import CuteError
from ...seam.ground.records import dataclass


@dataclass
class Workspace:
    """Memory that a caller gives. address: in global memory. nbytes: how much. asked: whether a launch has used it."""

    address: int
    nbytes: int
    asked: bool = False

    def give(self, need: int) -> int:
        """Return where the maps of a launch begin that takes `need` bytes. CuteError: there are fewer."""
        self.asked = True
        if self.nbytes < need:
            raise CuteError(
                f"workspace: {self.nbytes} bytes are given, and the maps that the kernel makes take {need}: ask "
                "compiled.get_aux_func(QueryDeviceWorkspaceFunc, kernel=…)(…).size_in_bytes with these arguments"
            )
        return -(-self.address // BYTES) * BYTES


WORKSPACE: ContextVar[Workspace | None] = ContextVar("WORKSPACE", default=None)
"""Holds the workspace that the caller gave to the launches that run now."""


def needed(of_block: int, grid: Any) -> int:
    """Return the bytes that the maps of a launch take, wherever the memory begins. of_block: those of a block."""
    blocks = grid if isinstance(grid, int) else math.prod(map(int, grid))
    return of_block * blocks + BYTES if of_block else 0


class MapMemory:
    """The memory of one launch, taken from the stream's pool while the launch is in the stream. grid, stream: the
    launch's."""

    def __init__(self, grid: Any, stream: int) -> None:
        self._grid, self._stream, self._own, self.used = grid, bindings.CUstream(stream), None, False

    def __call__(self, of_block: int) -> int:
        """Return the address of memory for so many bytes of each block."""
        self.used, need, given = True, needed(of_block, self._grid), WORKSPACE.get()
        if given is not None:
            return given.give(need)
        error, address = bindings.cuMemAllocAsync(need, self._stream)
        if error != bindings.CUresult.CUDA_SUCCESS:
            raise CuteError(f"no {need} bytes for the tensor maps that the kernel makes: {error.name}")
        self._own = address
        return -(-int(address) // BYTES) * BYTES

    def __enter__(self) -> MapMemory:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            bindings.cuMemFreeAsync(self._own, self._stream)


def no_memory(of_block: int) -> int:
    """Refuse a launch that takes no memory."""
    raise CuteError(
        "the kernel makes tensor maps, in memory that each launch takes for itself: launch it by "
        "kernel[grid, block](…), cute.launch or .launch(…), without prepare"
    )
