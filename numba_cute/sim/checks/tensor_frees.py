# SPDX-License-Identifier: Apache-2.0
"""The check `tensor_frees`: tensor memory that is given back while it may still be accessed."""

from __future__ import annotations

from typing import Any

from ..hardware.watch import Check
from .races import Races


class TensorFrees(Check):
    """Reports a tcgen05.dealloc that does not come after all accesses to the columns that it gives back."""

    name = "tensor_frees"
    summary = "tensor memory that is given back while an access to it may still be under way"
    needs = (Races,)

    def frees_in_use(self, m: Any, error: Exception) -> None:
        raise error
