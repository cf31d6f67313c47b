# SPDX-License-Identifier: Apache-2.0
"""The check `coordinates`: run-time coordinates of tensors in memory that lie beyond the tensor's shape."""

from __future__ import annotations

from typing import Any

from ..hardware.watch import Check


class Coordinates(Check):
    """Reports run-time coordinates beyond the shape of a tensor in memory. Without it a layout is the function that it
    is there too, as in compiled code; what lies outside of memory is found all the same."""

    name = "coordinates"
    summary = "run-time coordinates beyond the shape of a tensor in memory"

    def leaves_shape(self, thread: Any, error: Exception) -> None:
        raise error
