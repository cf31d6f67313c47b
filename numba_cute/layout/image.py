# SPDX-License-Identifier: Apache-2.0
"""Find the CTAs of a cluster along one mode of its layout: the masks of multicast."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, is_static
from ..seam.guards.messages import how_static
from .int_tuple import IntTuple, static_int, text
from .layout import Layout, domain, rank, size
from .pure import pure

__all__ = ["make_layout_image_mask"]


@pure
def make_layout_image_mask(lay: Layout, coord: IntTuple, mode: int) -> Any:
    """Make the 16-bit mask of the offsets that the layout `lay` reaches from `coord` along mode `mode`: of a multicast,
    the CTAs that lie along that mode of a cluster. The offsets must be below 16; `coord` may be known only at run
    time.

    >>> bin(cute.make_layout_image_mask(cute.make_layout((2, 4)), (1, 0), 1))
    '0b10101010'
    """
    n = rank(lay)
    mode = static_int(mode, "mode")
    if not 0 <= mode < n or not isinstance(coord, tuple) or len(coord) != n:
        raise CuteError(f"make_layout_image_mask: mode={mode}, coord={text(coord)} of the layout {lay} of rank {n}")
    if not is_static(lay):
        raise CuteError(
            f"make_layout_image_mask: {lay} must be static: a cluster's shape is known at compile time{how_static(lay)}"
        )
    if size(lay, (mode,)) > 16:
        raise CuteError(f"make_layout_image_mask: mode {mode} of {lay} has more than 16 CTAs: a mask has 16 bits")
    if any(x is None for x in coord):
        raise CuteError(f"make_layout_image_mask: coord {text(coord)} must say where the CTA is along each mode")
    base = lay((*coord[:mode], 0, *coord[mode + 1 :])) if isinstance(domain(lay), tuple) else 0
    row = [
        lay(tuple(i if j == mode else 0 for j in range(n))) if isinstance(domain(lay), tuple) else lay(i)
        for i in range(size(lay, (mode,)))
    ]
    for offset in (min(row), max(row)):
        if not 0 <= offset < 16:
            raise CuteError(f"make_layout_image_mask: mode {mode} of {lay} reaches offset {offset}: a mask has 16 bits")
    mask = 0
    for offset in row:
        mask |= 1 << offset
    if not is_static(base):
        return mask << base
    if base < 0:
        raise CuteError(f"make_layout_image_mask: {lay} has CTA {base} at {text(coord)}: CTAs are numbered from 0")
    return (mask << base) & 0xFFFF
