# SPDX-License-Identifier: Apache-2.0
"""Errors of launches as the CuTe DSL has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cuda.bindings import runtime

from ..isa.form.limits import NoRoomAtOnce
from ..seam import CuteError


class DSLCudaRuntimeError(CuteError):
    """The error of a launch in the CuTe DSL. error_code: the runtime's, as `cuda.bindings` has it; None for none."""

    error_code: Any = None


@contextmanager
def launching() -> Iterator[None]:
    """Raise of a launch that has no room for all its CTAs at once what the CUDA runtime says of it."""
    try:
        yield
    except NoRoomAtOnce as e:
        raised = DSLCudaRuntimeError(str(e))
        raised.error_code = runtime.cudaError_t.cudaErrorCooperativeLaunchTooLarge
        raise raised from e
