# SPDX-License-Identifier: Apache-2.0
"""Reading a GPU's memory from the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda.cudadrv import devices, driver


def from_device(address: int, nbytes: int) -> Any:
    """The bytes at an address of the current device, once all that it was given to do is done."""
    devices.get_context()
    out = np.empty(nbytes, np.uint8)
    driver.driver.cuCtxSynchronize()
    driver.driver.cuMemcpyDtoH(out.ctypes.data, address, nbytes)
    return out
