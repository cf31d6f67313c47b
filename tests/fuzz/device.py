# SPDX-License-Identifier: Apache-2.0
"""A kernel launched on the GPU of this machine, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

LIMIT = 10.0
"""Seconds that a kernel may run, far over what any needs."""


class Lost(Exception):
    """The kernel does not end, or the GPU's driver gave up on it: the process has no use of the GPU any more."""


def launched(kernel: Any, threads: int, host: tuple[Any, ...], taken: Callable[[tuple[Any, ...]], Any] = tuple) -> None:
    """Launch a kernel on copies of arrays, and copy back what it wrote. taken: makes the kernel's arguments of them."""
    from numba import cuda
    from numba.cuda.cudadrv.driver import CudaAPIError

    there = tuple(cuda.to_device(x) if isinstance(x, np.ndarray) else x for x in host)
    done = cuda.event()
    kernel[1, threads](*taken(there))
    done.record()
    end = time.monotonic() + LIMIT
    try:
        while not done.query():
            if time.monotonic() > end:
                raise Lost("does not end")
            time.sleep(0.0001)
        for here, copy in zip(host, there):
            if isinstance(here, np.ndarray):
                copy.copy_to_host(here)
    except CudaAPIError as e:
        raise Lost(f"a fault: {e}") from None
