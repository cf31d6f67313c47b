# SPDX-License-Identifier: Apache-2.0
"""Memory that several GPUs share: that of all ranks of a group mapped side by side, and words that the host shares."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np
from cuda.bindings import driver as bindings

from ...seam import CuteError
from ...seam.hooks.driver import DRIVER
from ..ground.numba import CudaAPIError, CudaSupportError, devices
from .current import current_device

_NCCL = "use torch.distributed's collectives (NCCL) between them"


def _asked(result: Any, what: str) -> Any:
    """Return what a call of the driver gives. CuteError with the driver's word if it failed."""
    code, *values = result
    if code != bindings.CUresult.CUDA_SUCCESS:
        raise CuteError(f"{what}: the driver says {code.name}")
    return values[0] if len(values) == 1 else values


def range_of(address: int) -> tuple[int, int]:
    """Return the start and the bytes of the mapping of memory that holds an address."""
    base, nbytes = _asked(bindings.cuMemGetAddressRange(address), f"the memory at {address:#x}")
    return int(base), int(nbytes)


class Beside:
    """The memory of all ranks in one range of addresses. address: where it begins. distance: bytes from one rank's to
    the next's. bases: where the allocations begin that were mapped, at their other addresses."""

    def __init__(self, address: int, distance: int, bases: list[int], device: int) -> None:
        self.address, self.distance, self.bases = address, distance, bases
        done = weakref.finalize(self, _unmap, address, distance, len(bases), device)
        done.atexit = False  # the driver ends all mappings with the process, and may be gone by then


def _unmap(address: int, distance: int, count: int, device: int) -> None:
    """End a mapping, once no kernel uses it. Where the context is lost there is nothing to end."""
    with current_device(device):
        if bindings.cuCtxSynchronize()[0] != bindings.CUresult.CUDA_SUCCESS:
            return
        for i in range(count):
            _asked(bindings.cuMemUnmap(address + i * distance, distance), "unmapping the memory of several GPUs")
        _asked(bindings.cuMemAddressFree(address, distance * count), "giving back addresses")


def _handle(address: int, rank: int) -> Any:
    """Return the handle of the physical memory that lies at an address; it must be released."""
    return _asked(bindings.cuMemRetainAllocationHandle(address), f"the handle of rank {rank}'s memory at {address:#x}")


def _check_reached(handle: Any, rank: int, device: int) -> None:
    """Raise a CuteError if a device cannot access the physical memory of a handle."""
    where = _asked(bindings.cuMemGetAllocationPropertiesFromHandle(handle), f"rank {rank}'s memory").location
    if where.type != bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE or where.id == device:
        return
    if not _asked(bindings.cuDeviceCanAccessPeer(device, where.id), f"devices {device} and {where.id}"):
        raise CuteError(
            f"device {device} cannot access the memory of device {where.id}, where rank {rank}'s lies: they have no "
            f"NVLink and no peer-to-peer access over PCIe (nvidia-smi topo -p2p r); {_NCCL}"
        )


def beside(addresses: list[int], device: int) -> Beside:
    """Map the allocations that hold these addresses, of rank after rank, side by side for a device. CuteError: they
    have no handles, are not alike, or are out of the device's reach."""
    with current_device(device):
        handles: list[Any] = []
        try:
            ranges = [range_of(a) for a in addresses]
            for rank, address in enumerate(addresses):
                handles.append(_handle(address, rank))
                _check_reached(handles[-1], rank, device)
            _check_alike(addresses, ranges)
            address = _mapped(handles, ranges[0][1], device)
        finally:
            for handle in handles:  # the mapping holds the memory
                bindings.cuMemRelease(handle)
    return Beside(address, ranges[0][1], [base for base, _ in ranges], device)


def _check_alike(addresses: list[int], ranges: list[tuple[int, int]]) -> None:
    """Raise a CuteError if the ranks' buffers do not lie alike in allocations of the same size."""
    found = [(nbytes, address - base) for address, (base, nbytes) in zip(addresses, ranges, strict=True)]
    if len(set(found)) > 1:
        raise CuteError(
            "the ranks' buffers must lie alike in allocations of the same size, and do so at "
            + ", ".join(f"{at} of {nbytes} bytes" for nbytes, at in found)
            + ": call symm_mem.empty with the same shape and dtype on each rank, and the same size of signal pads"
        )


def _mapped(handles: list[Any], nbytes: int, device: int) -> int:
    """Map whole allocations one after another; return where."""
    what = f"{len(handles)} times {nbytes} bytes of several GPUs, side by side"
    start, done = int(_asked(bindings.cuMemAddressReserve(nbytes * len(handles), 0, 0, 0), what)), 0
    try:
        for i, handle in enumerate(handles):
            _asked(bindings.cuMemMap(start + i * nbytes, nbytes, 0, handle, 0), what)
            done += 1
        access = bindings.CUmemAccessDesc()
        access.location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = device
        access.flags = bindings.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        _asked(bindings.cuMemSetAccess(start, nbytes * len(handles), [access], 1), what)
    except CuteError:
        for i in range(done):
            bindings.cuMemUnmap(start + i * nbytes, nbytes)
        bindings.cuMemAddressFree(start, nbytes * len(handles))
        raise
    return start


def pinned(words: int) -> Any:
    """Return words of the host's memory that all GPUs see, as an array that is never freed; None without a GPU."""
    try:
        devices.get_context()
    except (CudaSupportError, CudaAPIError):
        return None
    flags = bindings.CU_MEMHOSTALLOC_DEVICEMAP | bindings.CU_MEMHOSTALLOC_PORTABLE
    at = int(_asked(bindings.cuMemHostAlloc(4 * words, flags), f"{4 * words} bytes of pinned memory"))
    made: Any = np.ctypeslib.as_array((ctypes.c_uint32 * words).from_address(at))
    made[:] = 0
    return made


def shareable(address: int) -> bool:
    """Say whether the memory at an address has a handle by which it can be mapped again."""
    code, handle = bindings.cuMemRetainAllocationHandle(address)
    if code != bindings.CUresult.CUDA_SUCCESS:
        return False
    bindings.cuMemRelease(handle)
    return True


def _base(address: int) -> int:
    return range_of(address)[0]


DRIVER.pinned, DRIVER.beside, DRIVER.shareable, DRIVER.base = pinned, beside, shareable, _base
