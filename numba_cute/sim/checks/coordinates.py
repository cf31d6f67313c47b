# SPDX-License-Identifier: Apache-2.0
"""The check `coordinates`: run-time coordinates of tensors in memory that lie beyond the tensor's shape."""

from __future__ import annotations

from ..hardware.watch import Check


class Coordinates(Check):
    """Has an element or a part of a tensor in memory be asked for within its shape. Where it alone is left out, a layout
    is the function that it is beyond its shape, as in compiled code; what lies outside of memory is found all the
    same. With no checks at all it is on."""

    name = "coordinates"
    summary = "run-time coordinates beyond the shape of a tensor in memory"
