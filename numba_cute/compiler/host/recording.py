# SPDX-License-Identifier: Apache-2.0
"""Launches that are recorded: a kernel's twin that tells its events, and the buffer that they are written to.

A twin is compiled beside the kernel, and so are the device functions that it calls (`bridge.devices`): neither the
kernel nor what others compile of those functions is ever the recorded one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver as bindings

from ...seam import CuteError
from ...seam.hooks.recording import KINDS, NAMES, Event, Recorder
from ..emit.tracer import TIMELINE_SYMBOL
from ..ground.numba import cuda, devices

HEADER, RECORD, HAS_PAYLOAD = 16, 32, 8
"""As arch/events.py writes them."""
_RECORD = np.dtype([("clock", "<u8"), ("time", "<u8"), ("sm", "<u4"), ("what", "<u4"), ("payload", "<i8")])


def _twin(kernel: Any) -> Any:
    """The kernel compiled to tell its events; it remembers it."""
    found = getattr(kernel, "_cute_twin", None)
    if found is None:
        # link-time optimisation keeps no symbol for the host to find
        options = {**kernel._cute_options, "lto": False}
        found = kernel._cute_twin = type(kernel)(kernel.py_func, kernel.argtypes, **options)
        found._cute_records = True
    return found


def _checked(result: Any) -> Any:
    """Return the result of a driver call; CuteError with the driver's word if it failed."""
    error, *values = result
    if error != bindings.CUresult.CUDA_SUCCESS:
        raise CuteError(f"timeline: the driver says {error.name}")
    return values[0] if len(values) == 1 else values


def _symbol(kernel: Any) -> int | None:
    """The address of what tells a compiled kernel where to write; None if it tells nothing."""
    if TIMELINE_SYMBOL not in kernel._codelibrary.get_asm_str():
        return None
    library = _checked(bindings.cuKernelGetLibrary(kernel._codelibrary.get_cufunc().handle))
    address, _ = _checked(bindings.cuLibraryGetGlobal(library, TIMELINE_SYMBOL.encode()))
    return int(address)


def _set(address: int, buffer: int, most: int, blocks: int) -> None:
    words = np.array([buffer, most | blocks << 32], np.uint64)
    _checked(bindings.cuMemcpyHtoD(address, words.ctypes.data, words.nbytes))


def launch_recorded(
    kernel: Any, grid: tuple[int, ...], block: tuple[int, ...], recorder: Recorder, launch: Callable[[Any], object]
) -> None:
    """Launch a kernel's twin by `launch(twin)` with a buffer of its own, and give the recorder its events."""
    twin = _twin(kernel)
    address = _symbol(twin)
    if address is None:
        launch(twin)
        return
    blocks = min(grid[0] * grid[1] * grid[2], recorder.blocks)
    warps = (block[0] * block[1] * block[2] + 31) // 32
    part = HEADER + RECORD * recorder.most
    buffer = cuda.to_device(np.zeros(blocks * warps * part, np.uint8))
    devices.get_context().synchronize()
    _set(address, buffer.__cuda_array_interface__["data"][0], recorder.most, blocks)
    try:
        launch(twin)
        devices.get_context().synchronize()
    finally:
        _set(address, 0, 0, 0)
    name = kernel.py_func.__name__
    events, lost = decode(buffer.copy_to_host(), grid, warps, recorder.most, name)
    recorder.events += events
    recorder.lost += lost


def decode(data: Any, grid: tuple[int, ...], warps: int, most: int, kernel: str) -> tuple[list[Event], int]:
    """Read a buffer: the events in it, in the order of the GPU's timer, and how many had no room.

    data: its bytes. grid: the blocks of the launch along x, y and z. warps: of a block. most: events of a warp that
    there is room for. kernel: its name."""
    names = {number: name for name, number in NAMES.items()}
    parts = np.frombuffer(data, np.uint8).reshape(-1, HEADER + RECORD * most)
    events, lost = [], 0
    for at, part in enumerate(parts):
        told = int(part[:4].view("<u4")[0])
        lost += max(0, told - most)
        block, warp = divmod(at, warps)
        index = (block % grid[0], block // grid[0] % grid[1], block // grid[0] // grid[1])
        for r in part[HEADER:].view(_RECORD)[: min(told, most)]:
            what = int(r["what"])
            payload = int(r["payload"]) if what & HAS_PAYLOAD else None
            if what & 7 >= len(KINDS) or what >> 4 not in names:
                raise CuteError(f"timeline: an event of {kernel} was written over: the kernel writes where it must not")
            kind, name = KINDS[what & 7], names[what >> 4]
            times = int(r["clock"]), int(r["time"]), int(r["sm"])
            events.append(Event(*times, index, warp, kind, name, payload, kernel))
    return sorted(events, key=lambda e: e.time), lost
