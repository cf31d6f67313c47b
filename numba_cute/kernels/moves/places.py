# SPDX-License-Identifier: Apache-2.0
"""Reduce a permutation by coalescing its layout, and find where the data that a thread moves lies in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels import entry
from numba_cute.seam import traced
from numba_cute.seam.ground.records import dataclass

__all__ = ["VECTOR", "Moved", "bring", "divisor", "modes", "moved", "spread"]

VECTOR = 16
"""Bytes that a thread moves at once."""


@dataclass(frozen=True)
class Moved:
    """A permutation. shape: extents of its modes, y's innermost first. x, y: their strides in elements. width: bytes of
    an element. x_aligned, y_aligned: whether memory begins at a multiple of 16 bytes."""

    shape: tuple[int, ...]
    x: tuple[int, ...]
    y: tuple[int, ...]
    width: int
    x_aligned: bool
    y_aligned: bool

    @property
    def vector(self) -> int:
        """Elements of a vector."""
        return VECTOR // self.width

    @property
    def reach(self) -> int:
        """Elements from x's first to its last."""
        return sum((n - 1) * s for n, s in zip(self.shape, self.x)) + 1

    def in_x(self) -> list[int]:
        """Order the modes as they lie in x, those that are repeated last."""
        return sorted(range(len(self.shape)), key=lambda m: (self.x[m] == 0, self.x[m]))

    def size(self, some: Sequence[int]) -> int:
        """Count the elements of some modes."""
        return math.prod(self.shape[m] for m in some)


def moved(x: Any, y: Any, order: Sequence[int]) -> Moved:
    """Describe y = x.permute(order). Neighbours that stay neighbours become one element, of 16 bytes at most."""
    back, steps_of = order[::-1], entry.strides(x)
    of_x = cute.coalesce(cute.make_layout(tuple(x.shape[m] for m in back), stride=tuple(steps_of[m] for m in back)))
    shape, steps = cute.flatten_to_tuple(of_x.shape), cute.flatten_to_tuple(of_x.stride)
    width, aligned = entry.element_type(x).width // 8, (entry.aligned(x), entry.aligned(y))
    if steps[0] == 1 and all(aligned):
        f = math.gcd(VECTOR // width, shape[0], *steps[1:])
        shape, steps, width = (shape[0] // f, *shape[1:]), (1, *(s // f for s in steps[1:])), width * f
        if shape[0] == 1 and len(shape) > 1:
            shape, steps = shape[1:], steps[1:]
    if 1 not in steps:  # x's elements lie alone
        shape, steps = (*shape, 1), (*steps, 1)
    return Moved(shape, steps, tuple(math.prod(shape[:m]) for m in range(len(shape))), width, *aligned)


def divisor(n: int) -> Any:
    """Make a divisor of a kernel's numbers by n; n is not part of the kernel."""
    return cute.fast_divmod_create_divisor(cute.Int32(n))


def modes(extents: Sequence[int], strides: Sequence[int]) -> tuple[Any, Any]:
    """Give what `spread` takes of modes of such extents, the fastest first: (divisors by all but the last, strides)."""
    return tuple(map(divisor, extents[:-1])), tuple(map(cute.Int64, strides))


@traced
def spread(index: Any, of: tuple[Any, Any]) -> Any:
    """Find where element `index` of some modes lies, as an Int64. of: the modes, as `modes` gives them."""
    divisors, strides = of
    left, at = cute.Int32(index), cute.Int64(0)
    for d, stride in zip(divisors, strides):
        left, coordinate = d.divmod(left)
        at = at + cute.Int64(coordinate) * stride
    return at + cute.Int64(left) * strides[-1] if strides else at


@traced
def bring(source: cute.Tensor, target: cute.Tensor) -> None:
    """Load a vector of x into registers, and the 256 bytes in which it lies into L2: a tile whose rows begin anywhere
    shares them with its neighbours, and memory gives them faster at once than in the parts that tiles ask for."""
    there = cute.make_ptr(cute.Uint32, source.iterator.toint(), cute.AddressSpace.gmem, VECTOR)
    words = cute.make_tensor(cute.recast_ptr(target.iterator, dtype=cute.Uint32), cute.make_layout(VECTOR // 4))
    got = arch.load(there, cute.Uint32, level_prefetch_size="size_256b", count=VECTOR // 4)
    for i in range(VECTOR // 4):
        words[i] = got[i]
