# SPDX-License-Identifier: Apache-2.0
"""The check `tensor_fences`: accesses to tensor memory that a barrier orders, without the fences of tcgen05."""

from __future__ import annotations

from typing import Any

from ..hardware.watch import Check
from .races import Races


class TensorFences(Check):
    """Reports accesses to tensor memory by two threads that lack tcgen05.fence::before_thread_sync or
    ::after_thread_sync around the barrier that orders them. Without it `races` reports those alone that no barrier
    orders, or that nothing waited for."""

    name = "tensor_fences"
    summary = "accesses to tensor memory that a barrier orders, without the tcgen05.fence that is to stand beside it"
    needs = (Races,)

    def lacks_tensor_fence(self, m: Any, error: Exception) -> None:
        raise error
