# SPDX-License-Identifier: Apache-2.0
"""The functions of the CUDA driver that a launch calls, by their addresses."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from cuda.bindings import driver as bindings

from ....seam import CuteError
from ...ground.numba import config, devices

NAMES = ("cuLaunchKernelEx", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent")
"""The driver's functions that are called, in the order of words.py's words."""


class Driver:
    """Addresses of the driver's functions. addresses: in the order of NAMES."""

    def __init__(self, *addresses: int) -> None:
        self.words = (ctypes.c_int64 * len(addresses))(*addresses)
        self.launch = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(addresses[0])

    @property
    def address(self) -> int:
        return ctypes.addressof(self.words)


@functools.cache
def driver() -> Driver:
    """Find the driver's functions."""
    return Driver(*map(function_address, NAMES))


def function_of(kernel: Any) -> int:
    """Find the function in the current context of a kernel of a library: the driver launches that sooner, by 0.3 us
    with one parameter of an array and 0.6 us with eight (benchmarks/results/launch_floor_nvidia_h200.json)."""
    if isinstance(kernel, bindings.CUkernel):
        error, function = bindings.cuKernelGetFunction(kernel)
        if error == bindings.CUresult.CUDA_SUCCESS:
            return int(function)
    return int(kernel)


@functools.cache
def function_address(name: str) -> int:
    """Find a function of the driver; CuteError if it has none."""
    of_thread = getattr(config, "CUDA_PER_THREAD_DEFAULT_STREAM", 0)
    flags = bindings.CUdriverProcAddress_flags
    streams = flags.CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM if of_thread else flags.CU_GET_PROC_ADDRESS_DEFAULT
    return _address(name, 12000, streams)


def replacing() -> int:
    """Find the driver's function that changes the address of a tensor map; 0 if it has none."""
    try:
        return function_address("cuTensorMapReplaceAddress")
    except CuteError:
        return 0


def current_context() -> int:
    """The handle of the context that is current, of the device that Numba launches on."""
    return int(devices.get_context().handle)


def _address(name: str, version: int, flags: Any) -> int:
    error, address, _ = bindings.cuGetProcAddress(name.encode(), version, int(flags))
    if error != bindings.CUresult.CUDA_SUCCESS or not address:
        raise CuteError(f"the CUDA driver has no {name}: install one of CUDA 12 or newer")
    return int(address)
