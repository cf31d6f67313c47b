# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that keep the array which they are of, as TMA atoms do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from numba_cute import dtypes
from numba_cute.isa.facts.tensormap import TensorMapRecord
from numba_cute.sim.hardware.address_spaces import array_range


@dataclass(frozen=True)
class MapOf(TensorMapRecord):
    of: np.ndarray | None = field(default=None, compare=False)

    def __cute_allocations__(self):
        return [(*array_range(self.of), "", self.of, False)]


def map_of(a, box, **options):
    """The map of a C-contiguous array; box innermost first."""
    strides = tuple(reversed(a.strides[:-1]))
    return MapOf(
        dtypes.from_numpy(a.dtype), a.ctypes.data, tuple(reversed(a.shape)), strides, box, **options, of=a
    )  # fmt: skip
