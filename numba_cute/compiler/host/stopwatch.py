# SPDX-License-Identifier: Apache-2.0
"""Time as the GPU keeps it: events on a stream, graphs of launches, and a cache that can be emptied."""

from __future__ import annotations

import ctypes
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver as bindings

from ...seam import CuteError
from ...seam.marks.constexpr import LAUNCHER
from . import absent
from .streams import core_stream

Launches = Sequence[Callable[[], Any]]
LEGACY, PER_THREAD = (0, 1), 2
"""The handles that mean default streams: the one that all threads share, and a thread's own."""
_L2_TIMES, _LEAST_FLUSH = 4, 32 << 20


def _use_the_gpu(what: str) -> None:
    """Make Numba's context current; CuteError where there is no GPU. what: what needs one."""
    from ..ground.numba import CudaAPIError, CudaSupportError, devices
    from .refused import no_gpu

    try:
        devices.get_context()
    except (CudaSupportError, CudaAPIError) as e:
        raise CuteError(
            f"{what} needs a GPU, and there is none here ({no_gpu(e) or e}): in `with cute.simulation():` launches run "
            "on the CPU, and autotuning takes the first configuration that works; cute.simulate(kernel) runs one"
        ) from e


def checked(result: Any, what: str) -> Any:
    """Return what a call of the driver gave beside its error code. what: the words of the CuteError if it failed."""
    error, *values = result
    if error != bindings.CUresult.CUDA_SUCCESS:
        raise CuteError(f"{what}: the GPU's driver says {error.name}")
    return values[0] if len(values) == 1 else values


def handle_of(stream: Any) -> int:
    """Return the handle of a stream. stream: as for `launch`; None is torch's current one where torch is used, and the
    default one elsewhere."""
    if stream is None:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return 0
        return int(torch.cuda.current_stream().cuda_stream)
    found = core_stream(stream)
    if isinstance(found, int):
        return found
    handle = getattr(found, "handle", found)
    if isinstance(handle, ctypes.c_void_p):
        return handle.value or 0
    try:
        return int(handle)
    except (TypeError, ValueError):
        raise CuteError(f"stream={stream!r} is not a stream: give torch's, CuPy's, Numba's, an int, or None") from None


class Graph:
    """A graph of launches, captured once; calling it launches all of them. count: how many calls it holds."""

    def __init__(self, executable: Any, stream: int, count: int) -> None:
        self._executable, self._stream, self.count = executable, stream, count
        self._end = weakref.finalize(self, bindings.cuGraphExecDestroy, executable)

    def __call__(self) -> None:
        """Launch the graph on the stream it was captured from."""
        checked(bindings.cuGraphLaunch(self._executable, self._stream), "launching a graph")


class Stopwatch:
    """A stopwatch for launches on a stream of the current GPU. stream: as for `launch`, or None, see `handle_of`.

    host: the seconds that the host took for the calls of the last `timed`.
    """

    host = 0.0

    def __init__(self, stream: Any = None) -> None:
        if absent.missing():
            absent.unavailable("testing")()
        if LAUNCHER.get() is not None:
            raise CuteError("timing: launches are simulated here, and their time says nothing: leave the simulation")
        _use_the_gpu("timing")
        self.stream = handle_of(stream)
        self._given = stream
        self._buffer: Any = None

    def now(self) -> float:
        """Return the host's clock, in seconds."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Let the GPU rest for so many `seconds`, once it has done what it was given."""
        self.synchronize()
        time.sleep(seconds)

    def synchronize(self) -> None:
        """Wait until the GPU has done what it was given; CuteError where that failed."""
        checked(bindings.cuCtxSynchronize(), "waiting for the GPU")

    def flush(self) -> None:
        """Put other data in the L2 cache, on the stream."""
        if self._buffer is None:
            nbytes = max(_L2_TIMES * self.l2_bytes(), _LEAST_FLUSH)
            address = checked(bindings.cuMemAlloc(nbytes), f"allocating {nbytes} bytes to empty the L2 cache with")
            self._buffer = (address, nbytes)
            weakref.finalize(self, bindings.cuMemFree, address)
        address, nbytes = self._buffer
        checked(bindings.cuMemsetD8Async(address, 0, nbytes, self.stream), "emptying the L2 cache")

    def timed(self, launches: Launches, count: int) -> float:
        """Return the seconds that the GPU takes for `count` calls, back to back, in turn from `launches`. What the host
        takes is in `host` then."""
        start, end = self._event(), self._event()
        self._record(start)
        began = time.perf_counter()
        _call(launches, count)
        self.host = time.perf_counter() - began
        self._record(end)
        return self._between(start, end)

    def each(self, launches: Launches, count: int, flush: bool) -> list[float]:
        """Return the seconds of each of `count` calls, in turn from `launches`. flush: empty the L2 cache before
        each; the GPU is then busy while the host prepares the call."""
        pairs = [(self._event(), self._event()) for _ in range(count)]
        for i, (start, end) in enumerate(pairs):
            if flush:
                self.flush()
            self._record(start)
            launches[i % len(launches)]()
            self._record(end)
        return [self._between(start, end) for start, end in pairs]

    def graph(self, launches: Launches, count: int) -> Graph:
        """Capture `count` calls, in turn from `launches`, in a graph. They launch on this watch's stream, which is not
        the default one (CuteError), and neither allocate nor wait."""
        if self.stream in LEGACY:
            raise CuteError(
                f"stream={self._given!r} is the default stream, whose launches no graph captures: make another, launch "
                "on it (kernel[grid, block, stream]), and give it as stream="
            )
        torch = sys.modules.get("torch")
        mode = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        checked(bindings.cuStreamBeginCapture(self.stream, mode), "beginning to capture a graph")
        graph, failed = None, True
        try:
            if torch is not None and torch.cuda.is_initialized():
                with torch.cuda.stream(torch.cuda.ExternalStream(self.stream)):
                    _call(launches, count)
            else:
                _call(launches, count)
            failed = False
        finally:
            result = bindings.cuStreamEndCapture(self.stream)
            if not failed:
                graph = checked(result, "capturing a graph")
        nodes = checked(bindings.cuGraphGetNodes(graph, 0), "counting a graph's launches")[-1]
        if not nodes:
            raise CuteError(
                f"stream={self._given!r}: nothing was launched on it, so that the graph is empty: launch on this stream"
            )
        executable = checked(bindings.cuGraphInstantiate(graph, 0), "instantiating a graph")
        checked(bindings.cuGraphDestroy(graph), "freeing a graph")
        return Graph(executable, self.stream, count)

    def l2_bytes(self) -> int:
        """Return the bytes of the GPU's L2 cache."""
        return self._attribute(bindings.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)

    def facts(self) -> dict[str, Any]:
        """Return what the GPU is: its name, UUID, compute capability, SMs, L2 cache, and the driver's CUDA."""
        device = self._device()
        name = checked(bindings.cuDeviceGetName(128, device), "asking for the GPU's name")
        uuid = bytes(checked(bindings.cuDeviceGetUuid(device), "asking for the GPU's UUID").bytes).hex()
        cuda = checked(bindings.cuDriverGetVersion(), "asking for the driver's version")
        attribute = bindings.CUdevice_attribute
        major = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        minor = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        return {
            "gpu": name.partition(b"\0")[0].decode().strip(),
            "uuid": f"GPU-{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}",
            "compute_capability": f"{major}.{minor}",
            "multiprocessors": self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            "l2_bytes": self.l2_bytes(),
            "cuda_of_driver": f"{cuda // 1000}.{cuda % 1000 // 10}",
        }

    def _device(self) -> Any:
        return checked(bindings.cuCtxGetDevice(), "asking for the current GPU")

    def _attribute(self, which: Any) -> int:
        return int(checked(bindings.cuDeviceGetAttribute(which, self._device()), "asking what the GPU is"))

    def _event(self) -> Any:
        event = checked(bindings.cuEventCreate(0), "making an event")
        return _Event(event)

    def _record(self, event: _Event) -> None:
        checked(bindings.cuEventRecord(event.handle, self.stream), "recording an event")

    def _between(self, start: _Event, end: _Event) -> float:
        checked(bindings.cuEventSynchronize(end.handle), "waiting for the launches that are timed")
        return float(checked(bindings.cuEventElapsedTime(start.handle, end.handle), "reading a time")) * 1e-3


class _Event:
    """An event of the driver's, destroyed with this."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def __del__(self) -> None:
        bindings.cuEventDestroy(self.handle)


def _call(launches: Launches, count: int) -> None:
    for i in range(count):
        launches[i % len(launches)]()


class Saved:
    """A copy of the bytes of memory of the GPU, to be put back. address, nbytes: of that memory."""

    def __init__(self, address: int, nbytes: int) -> None:
        _use_the_gpu("keeping a copy of an argument")
        self._address, self._nbytes = address, nbytes
        self._copy = checked(bindings.cuMemAlloc(max(1, nbytes)), f"allocating {nbytes} bytes for a copy")
        weakref.finalize(self, bindings.cuMemFree, self._copy)
        checked(bindings.cuCtxSynchronize(), "waiting for the GPU")
        checked(bindings.cuMemcpyDtoD(self._copy, address, nbytes), "copying an argument")

    def restore(self) -> None:
        """Put the bytes back, once the GPU has done what it was given."""
        checked(bindings.cuCtxSynchronize(), "waiting for the GPU")
        checked(bindings.cuMemcpyDtoD(self._address, self._copy, self._nbytes), "putting an argument back")
