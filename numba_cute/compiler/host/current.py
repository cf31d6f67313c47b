# SPDX-License-Identifier: Apache-2.0
"""Make a GPU current for some calls, and leave what was current as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cuda.bindings import driver as bindings

from ...seam import CuteError
from ..ground.numba import devices


def _asked(result: Any, ordinal: int) -> Any:
    code, *values = result
    if code != bindings.CUresult.CUDA_SUCCESS:
        raise CuteError(f"GPU {ordinal} cannot be made current: the driver says {code.name}")
    return values[0] if values else None


@contextmanager
def current_device(ordinal: int) -> Iterator[None]:
    """Make a GPU's primary context current.

    Numba's `with cuda.gpus[i]` does so too, but the first time that it asks for a GPU's context it takes the one that
    was current off the thread (numba-cuda 0.30, `get_primary_context`): whoever made that current, as torch, has none
    then. Where the context is current already, it does not; so it is asked for it here."""
    device = _asked(bindings.cuDeviceGet(ordinal), ordinal)
    context = _asked(bindings.cuDevicePrimaryCtxRetain(device), ordinal)
    try:
        _asked(bindings.cuCtxPushCurrent(context), ordinal)
        try:
            devices.get_context()
            yield
        finally:
            bindings.cuCtxPopCurrent()
    finally:
        bindings.cuDevicePrimaryCtxRelease(device)
