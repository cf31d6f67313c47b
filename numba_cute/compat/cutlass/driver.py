# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cuda` and `cutlass.base_dsl.runtime.cuda`: streams, the context, and the driver's answers."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver

from ...seam import CuteError
from ..runs import RUN

__all__ = ["checkCudaErrors", "default_stream", "initialize_cuda_context", "load_cubin_module_data", "stream_sync"]


def checkCudaErrors(result: Any) -> Any:  # noqa: N802 - the CuTe DSL's name
    """Return what a function of the driver gave beside its error: nothing, one value, or a tuple.

    result: what `cuda.bindings` returned. CuteError: the error is not that of success.
    """
    error, *rest = result
    if int(error):
        raise CuteError(f"the CUDA driver says {error.name if hasattr(error, 'name') else error}")
    return None if not rest else rest[0] if len(rest) == 1 else tuple(rest)


def default_stream() -> Any:
    """Return the default stream."""
    return driver.CUstream(0)


def initialize_cuda_context(device_id: int = 0) -> None:
    """Have a context on a GPU be current; nothing in a simulated run. device_id: its ordinal."""
    if RUN.get() is None:
        from cuda.core import Device

        Device(device_id).set_current()


def load_cubin_module_data(cubin_data: bytes) -> Any:
    """Load machine code. cubin_data: it. Gives the driver's library. CuteError: the driver refuses it."""
    return checkCudaErrors(driver.cuLibraryLoadData(cubin_data, None, None, 0, None, None, 0))


def stream_sync(stream: Any) -> None:
    """Wait until all work of a stream is done; nothing in a simulated run. stream: the driver's."""
    if RUN.get() is None:
        checkCudaErrors(driver.cuStreamSynchronize(stream))
