# SPDX-License-Identifier: Apache-2.0
"""Graphs of one launch: the driver launches one sooner than the kernel itself.

On an H200 that takes the host 1.2 us and not 3.2, and a kernel that is launched alone begins 2 us earlier. One after
the other they take up to 0.1 us longer than kernels do, if those take the GPU longer than they take the host.
"""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings import driver as bindings

from . import packing
from .driver import driver


class Graph:
    """A launch as a graph, to be repeated. handle: the driver's. It lives as long as this object."""

    def __init__(self, handle: Any) -> None:
        self._made = handle
        self.handle = int(handle)

    def __del__(self) -> None:
        if bindings is not None:  # when Python ends
            bindings.cuGraphExecDestroy(self._made)  # one that runs is freed when it is done


def is_captured(stream: int) -> bool:
    """Say whether a stream is being captured, or cannot be asked while another one is."""
    error, status = bindings.cuStreamIsCapturing(stream)
    return int(error) != 0 or int(status) != 0


def graph_of(config: packing.Config, kernel: int, pointers: int) -> Graph | None:
    """Make a graph of a launch, as cuLaunchKernelEx is given it, in the current context; None if the driver refuses.

    Nothing is launched. To be called while the thread captures no stream.
    """
    relaxed = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    error, before = bindings.cuThreadExchangeStreamCaptureMode(relaxed)
    if int(error):
        return None
    try:
        return _captured(config, kernel, pointers, relaxed)
    finally:
        bindings.cuThreadExchangeStreamCaptureMode(before)


def _captured(config: packing.Config, kernel: int, pointers: int, relaxed: Any) -> Graph | None:
    error, stream = bindings.cuStreamCreate(int(bindings.CUstream_flags.CU_STREAM_NON_BLOCKING))
    if int(error):
        return None
    graph = None
    try:
        if int(bindings.cuStreamBeginCapture(stream, relaxed)[0]):
            return None
        there = packing.Config.from_buffer_copy(config)
        there.stream = int(stream)
        refused = driver().launch(ctypes.addressof(there), kernel, pointers, None)
        error, graph = bindings.cuStreamEndCapture(stream)
        if refused or int(error):
            return None
        error, made = bindings.cuGraphInstantiate(graph, 0)
        return None if int(error) else Graph(made)
    finally:
        if graph is not None and int(graph):
            bindings.cuGraphDestroy(graph)
        bindings.cuStreamDestroy(stream)
