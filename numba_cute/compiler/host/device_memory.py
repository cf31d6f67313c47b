# SPDX-License-Identifier: Apache-2.0
"""A GPU's memory as the host reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda.bindings import driver as bindings

from ...seam.hooks.driver import DRIVER
from ..ground.numba import CudaSupportError, devices
from ..ground.numba_cuda import driver


def known_to_cuda(address: int) -> bool | None:
    """Say whether an address is one that the driver gave, or was told of: of a GPU, managed, pinned or registered
    memory. None if there is no driver to ask."""
    try:
        devices.get_context()
    except (CudaSupportError, driver.CudaAPIError):
        return None
    kind = bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    return bool(bindings.cuPointerGetAttribute(kind, address % (1 << 64))[0] == bindings.CUresult.CUDA_SUCCESS)


def from_device(address: int, nbytes: int) -> Any:
    """Copy the bytes at an address of the current device, once all that it was given to do is done."""
    devices.get_context()
    out = np.empty(nbytes, np.uint8)
    driver.driver.cuCtxSynchronize()
    driver.driver.cuMemcpyDtoH(out.ctypes.data, address, nbytes)
    return out


DRIVER.known, DRIVER.read = known_to_cuda, from_device
