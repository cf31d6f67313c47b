# SPDX-License-Identifier: Apache-2.0
"""Errors of launches as the CuTe DSL has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cuda.bindings import runtime

from ..compiler.host.failed import LaunchFailed
from ..isa.form.limits import NoRoomAtOnce

DSLCudaRuntimeError = LaunchFailed


@contextmanager
def launching() -> Iterator[None]:
    """Raise of a launch that has no room for all its CTAs at once what the driver would."""
    try:
        yield
    except NoRoomAtOnce as e:
        raise LaunchFailed(runtime.cudaError_t.cudaErrorCooperativeLaunchTooLarge.value, str(e)) from e
