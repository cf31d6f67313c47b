# SPDX-License-Identifier: Apache-2.0
"""Bank conflicts of tiled copies, found from static layouts and swizzles alone."""

from __future__ import annotations

from typing import Any

from .. import layout, seam
from ..isa.facts.banks import least_passes, passes
from ..layout import Layout
from ..layout.pure import pure
from ..tensor.move import WIDEST, first_of_vectors, offsets, vector_width
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.swizzled import by_address
from ..tensor.tensor import Tensor

_WARP = 32
_BAD = 2
"""Conflicts of so many ways are not worth a note."""
_WARPS, _ACCESSES = 4, 16
"""The number of a tiled copy's warps and accesses that are looked at: the rest meet the banks as these do."""


def bank_conflicts(what: str, atom: Any, whole: Tensor, part: Tensor) -> str | None:
    """Say that the lanes of a warp meet in the banks of shared memory; None if they do not, or it is not known.

    what: the call, for the text. atom: the copy's atom. whole: the tensor as (thread, values, …); part: one thread's.
    """
    _, lay = by_address(whole.iterator, whole.layout)
    pointer, own = by_address(part.iterator, part.layout)
    if not isinstance(pointer, Pointer) or pointer.space is not AddressSpace.smem or pointer.dtype.width < 8:
        return None
    if not isinstance(lay, Layout) or not isinstance(own, Layout):
        return None
    threads, values = lay[0], own[0]
    if not seam.is_static(threads) or not seam.is_static(values):
        return None
    limit = min(WIDEST, max(atom.num_bits, pointer.dtype.width) // 8) if atom.num_bits else WIDEST
    width = vector_width(pointer, values, pointer, values, limit)
    nbytes = width * pointer.dtype.width // 8
    found, least = _worst(threads, values, width, pointer.dtype.width // 8, pointer.swizzle)
    if found <= _BAD * least:
        return None
    return (
        f"{what}: the lanes of a warp meet in the banks of shared memory: {nbytes} bytes for each take {found} passes, "
        f"where {least} would do; swizzle or pad the tensor's layout, or give each lane other elements"
    )


@pure
def _worst(threads: Layout, values: Layout, width: int, nbytes: int, swizzle: Any) -> tuple[int, int]:
    """Return the passes of the worst access of a warp, and those that it would take without conflicts. threads, values:
    the elements' offsets of each. width: elements of an access. nbytes: of an element."""
    lanes = offsets(threads, tuple(range(int(layout.size(threads)))))
    firsts = offsets(values, first_of_vectors(values, values, width, int(layout.size(values))))
    warps = [lanes[at : at + _WARP] for at in range(0, len(lanes), _WARP)][:_WARPS]
    worst = (0, 1)
    for warp in warps:
        for first in firsts[:_ACCESSES]:
            at = [(lane + first) * nbytes for lane in warp]
            accesses = [(a if swizzle is None else swizzle(a), width * nbytes) for a in at]
            found = passes(accesses), least_passes(accesses)
            worst = max(worst, found, key=lambda f: f[0] / f[1])
    return worst
