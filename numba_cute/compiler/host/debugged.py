# SPDX-License-Identifier: Apache-2.0
"""Call the driver for `cute.debug`: load a kernel's twin, share memory between a kernel and the host, and ask whether a
kernel still runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver as bindings
from cuda.core import ObjectCode

from ...seam import CuteError
from ..ground.asserting import ASSERTS
from ..ground.numba import cuda
from ..ground.numba_cuda import get_cudalib
from ..ground.target import arch_name, compiling_for
from . import linking, ptxas
from .native import arrays, packing
from .offline import ptx_of, types_of
from .streams import core_stream


def checked(result: Any) -> Any:
    """Return what a call of the driver gives. CuteError with the driver's word if it failed."""
    error, *values = result
    if error != bindings.CUresult.CUDA_SUCCESS:
        raise CuteError(f"debug: the driver says {error.name}")
    return values[0] if len(values) == 1 else values


# ---------------------------------------------------------------------- code
def twin(kernel: Any, options: dict[str, Any], rewrite: Callable[[str], str]) -> Any:
    """Compile a kernel once more, with lines and with what stands for `assert`, and make its PTX another. options:
    those of `cuda.jit`, for a kernel that is plain Numba's."""
    given = {**getattr(kernel, "_cute_options", options), "lineinfo": True, "lto": False}
    with ASSERTS:
        made = type(kernel)(kernel.py_func, kernel.argtypes, **given)
    made._cute_records = True
    library = made._codelibrary
    cc, registers = library._ensure_cc(None), library._max_registers
    parts = sorted(library._linking_files, key=lambda p: str(getattr(p, "name", p)))
    parts += [get_cudalib("cudadevrt", static=True)] if library.use_cooperative or library.needs_cudadevrt else []
    cubin, _ = ptxas.assemble(rewrite(library.get_asm_str()), arch_name(cc), registers, relocatable=bool(parts))
    cubin = linking.link(cubin, parts, arch_name(cc), cc, registers) if parts else cubin
    library._cubin_cache[cc] = ObjectCode.from_cubin(cubin, name=kernel.py_func.__name__)
    return made


def twin_ptx(kernel: Any, args: Any, arch: str) -> str:
    """Return the PTX of a kernel's twin before it is made another, with no GPU."""
    types = types_of(kernel, args, arch)
    with compiling_for(arch, False) as cc, ASSERTS:
        return ptx_of(kernel.py_func, types, {**kernel.targetoptions, "lineinfo": True}, cc)[1]


def symbol_of(kernel: Any, name: str) -> tuple[int, int] | None:
    """Return the address and the bytes of a variable of a compiled kernel's module; None if it has none."""
    library = checked(bindings.cuKernelGetLibrary(kernel._codelibrary.get_cufunc().handle))
    error, address, nbytes = bindings.cuLibraryGetGlobal(library, name.encode())
    return (int(address), int(nbytes)) if error == bindings.CUresult.CUDA_SUCCESS else None


def set_symbol(kernel: Any, name: str, words: Any) -> None:
    """Set a variable of a compiled kernel's module to an array's words."""
    found = symbol_of(kernel, name)
    if found is None:
        raise CuteError(f"debug: the debugged kernel has no {name}")
    checked(bindings.cuMemcpyHtoD(found[0], words.ctypes.data, words.nbytes))


def parameters_of(kernel: Any, args: Any) -> bytes:
    """Return the parameters of a launch as they lie in memory."""
    found: list[Any] = []
    for t, v in zip(kernel.argument_types, args):
        kernel._prepare_args(t, v, core_stream(0), [], found)
    return packing.block(found)[0]


# ---------------------------------------------------------------------- memory
GUARD = 1 << 16
"""Bytes beside a copy of an array on the GPU in which nothing lies: what is accessed there is in no argument."""


def on_gpu(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[tuple[Any, Any]]]:
    """Copy NumPy arrays among arguments to the GPU; return the arguments, and each array with its copy."""
    copies = [(a, _copied(a)) if isinstance(a, np.ndarray) else None for a in args]
    made = tuple(a if c is None else c[1] for a, c in zip(args, copies))
    return made, [c for c in copies if c is not None]


def _copied(a: Any) -> Any:
    """Copy an array, with nothing of others' beside it."""
    if not a.flags.c_contiguous or not a.size or a.dtype.names:
        return cuda.to_device(a)
    room = cuda.device_array(a.nbytes + 2 * GUARD, np.uint8)
    made = room[GUARD : GUARD + a.nbytes].view(a.dtype)
    made = made.reshape(a.shape) if a.ndim != 1 else made
    made.copy_to_device(a)
    return made


def allocation_of(address: int) -> tuple[int, int] | None:
    """Return the start and the bytes of the driver's allocation that holds an address; None if no allocation does."""
    kinds = bindings.CUpointer_attribute
    values = []
    for kind in (kinds.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, kinds.CU_POINTER_ATTRIBUTE_RANGE_SIZE):
        error, value = bindings.cuPointerGetAttribute(kind, address)
        if error != bindings.CUresult.CUDA_SUCCESS:
            return None
        values.append(int(value))
    return (values[0], values[1]) if values[1] else None


def contents(start: int, count: int, dtype: Any) -> Any:
    """Copy `count` elements of the GPU's memory to an array."""
    held = np.empty(count, dtype)
    checked(bindings.cuMemcpyDtoH(held.ctypes.data, start, held.nbytes))
    return held


def fill(start: int, nbytes: int, half: int) -> None:
    """Fill memory of the GPU with 16 bits again and again."""
    checked(bindings.cuMemsetD16(start, half, nbytes // 2))


class Board:
    """Memory of one launch: `records`, which the host sees while the kernel runs, and `control`, on the GPU; both are
    addresses for the kernel, and 0 at first."""

    def __init__(self, nbytes: int, control: int) -> None:
        flags = bindings.CU_MEMHOSTALLOC_DEVICEMAP | bindings.CU_MEMHOSTALLOC_PORTABLE
        self._host, self._nbytes = int(checked(bindings.cuMemHostAlloc(nbytes, flags))), nbytes
        ctypes.memset(self._host, 0, nbytes)
        self.records = int(checked(bindings.cuMemHostGetDevicePointer(self._host, 0)))
        self.control = int(checked(bindings.cuMemAlloc(control)))
        checked(bindings.cuMemsetD8(self.control, 0, control))

    def data(self) -> bytes:
        """Return the records as they are now."""
        return bytes((ctypes.c_char * self._nbytes).from_address(self._host))

    def end(self) -> None:
        """Set the first control word while the kernel runs."""
        word = np.ones(1, np.uint32)
        stream = checked(bindings.cuStreamCreate(bindings.CUstream_flags.CU_STREAM_NON_BLOCKING))
        checked(bindings.cuMemcpyHtoDAsync(self.control, word.ctypes.data, word.nbytes, stream))

    def free(self) -> None:
        """Give the memory back: no kernel may run that has it."""
        bindings.cuMemFreeHost(self._host)
        bindings.cuMemFree(self.control)


def stream_of(setting: Any, args: Any) -> int:
    """Return the handle of the stream in which a launch runs."""
    return arrays.current_stream(args) if setting.stream is None else setting.stream


def state_of(stream: int) -> str | None:
    """Return "" for a stream that has done all, None for one that runs, and the driver's word for an error."""
    (code,) = bindings.cuStreamQuery(stream)
    if code == bindings.CUresult.CUDA_SUCCESS:
        return ""
    return None if code == bindings.CUresult.CUDA_ERROR_NOT_READY else str(code.name)
