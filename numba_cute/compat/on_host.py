# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver and runtime of `cuda.bindings` without a GPU: memory is the host's, and all work is done."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cuda.bindings import driver, runtime

from ..seam.ground.replaced import replaced
from ..seam.hooks.driver import DRIVER


class _Allocation:
    """Memory that stands for a GPU's. nbytes: how many there are, from the first multiple of 256 in the buffer on."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._buffer = (ctypes.c_char * (nbytes + 256))()
        self.address = -(-ctypes.addressof(self._buffer) // 256) * 256


class _Memory:
    """Hold allocations by their addresses."""

    def __init__(self) -> None:
        self.held: dict[int, _Allocation] = {}

    def take(self, nbytes: int) -> int:
        """Allocate bytes at a multiple of 256; gives their address."""
        made = _Allocation(int(nbytes))
        self.held[made.address] = made
        return made.address

    def pieces(self) -> Iterator[tuple[int, int, str, Any]]:
        """Yield what kernels may access, as `Driver` has it."""
        for address, made in self.held.items():
            yield address, made.nbytes, "memory of the driver", made

    def free(self, address: Any) -> None:
        """Free what begins at an address."""
        self.held.pop(int(address), None)


def _copy(dst: Any, src: Any, nbytes: int) -> None:
    ctypes.memmove(_address(dst), _address(src), int(nbytes))


def _address(x: Any) -> int:
    return int(x) if hasattr(x, "__int__") else ctypes.addressof(ctypes.c_char.from_buffer(x))


def _of(prefix: str, good: Any, memory: _Memory) -> dict[str, Any]:
    """The functions that stand for those of the driver ("cu") or the runtime ("cuda")."""
    done = {"StreamSynchronize", "CtxSynchronize", "DeviceSynchronize", "Init", "SetDevice", "EventRecord",
            "EventSynchronize", "EventDestroy", "StreamDestroy", "CtxSetCurrent"}  # fmt: skip

    def memset(address: Any, value: int, nbytes: int, *_: Any) -> Any:
        ctypes.memset(int(address), int(value), int(nbytes))
        return (good,)

    def copy(dst: Any, src: Any, nbytes: int, *_: Any) -> Any:
        _copy(dst, src, nbytes)
        return (good,)

    def free(address: Any, *_: Any) -> Any:
        memory.free(address)
        return (good,)

    found: dict[str, Any] = {name: lambda *_: (good,) for name in done}
    found |= {"DeviceGetCount": lambda: (good, 1), "GetDeviceCount": lambda: (good, 1), "Memcpy": copy, "Free": free}
    found |= {"MemcpyAsync": copy, "MemcpyDtoH": copy, "MemcpyHtoD": copy, "MemFree": free, "Memset": memset}
    found |= {"MemAlloc": lambda n: (good, memory.take(n)), "Malloc": lambda n: (good, memory.take(n))}
    found |= {"MemsetAsync": memset, "MemsetD8": memset, "GetDevice": lambda: (good, 0)}
    return {prefix + name: value for name, value in found.items()}


@contextmanager
def on_host() -> Iterator[None]:
    """Have `cuda.bindings` be of the host: allocations, copies and waits."""
    memory = _Memory()
    drivers = _of("cu", driver.CUresult.CUDA_SUCCESS, memory)
    runtimes = _of("cuda", runtime.cudaError_t.cudaSuccess, memory)
    known = ({n: f for n, f in found.items() if hasattr(m, n)} for m, found in ((driver, drivers), (runtime, runtimes)))
    with replaced(driver, next(known)), replaced(runtime, next(known)), replaced(DRIVER, {"held": memory.pieces}):
        yield
