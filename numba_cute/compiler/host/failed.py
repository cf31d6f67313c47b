# SPDX-License-Identifier: Apache-2.0
"""The error of a launch that the driver refuses."""

from __future__ import annotations

from typing import Any

from cuda.bindings import runtime

from ...seam import CuteError
from ..ground.numba import CudaAPIError


class LaunchFailed(CuteError, CudaAPIError):
    """The driver refused a launch. code: its CUresult. msg: what it said, and of which launch."""

    def __init__(self, code: int, msg: str) -> None:
        super().__init__(code, msg)
        self.code, self.msg = code, msg

    def __str__(self) -> str:
        return f"[{self.code}] {self.msg}"

    @property
    def error_code(self) -> Any:
        """The error as the CUDA runtime names it: its numbers are the driver's."""
        return runtime.cudaError_t(self.code)
