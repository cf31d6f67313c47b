# SPDX-License-Identifier: Apache-2.0
"""Swizzles moved through layouts: which layouts map the bits that a swizzle reads and changes to bits again.

All is decided from strides and masks, in no more steps than there are modes and bits, however large the swizzle.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..seam import is_static
from .coalescing import Mode, filter, merged, modes_of
from .int_tuple import is_zero
from .layout import ComposedLayout, Layout, size
from .swizzle import Swizzle, swizzle_of_masks


def commuted(lhs: Layout, swizzle: Swizzle) -> ComposedLayout | None:
    """Move a swizzle through a layout: lhs o S as S' o lhs, the same function of [0, size(lhs)) and of what S makes of
    it; None where that cannot be shown: where lhs does not map the swizzle's bits to bits in order, or maps others
    among them."""
    if swizzle.bits == 0:
        return ComposedLayout(swizzle, 0, lhs)
    if not is_static(lhs) or lhs.maps_to_coordinates or size(lhs) == 0:
        return None
    fields = swizzle.y_mask | swizzle.z_mask
    split = _split(merged(modes_of(lhs), keep_last=True) or [(1, 0)], fields.bit_length())
    if split is None:
        return None
    weights, rest = split
    y, z = ([w for i, w in enumerate(weights) if mask >> i & 1] for mask in (swizzle.y_mask, swizzle.z_mask))
    if not (_ascending(y) and _ascending(z)):
        return None
    moved = swizzle_of_masks(sum(y), sum(z))
    others = [(2, w) for i, w in enumerate(weights) if not fields >> i & 1]
    mask = sum(y) | sum(z)
    if moved is None or reached_bits(others + rest, mask.bit_length()) & mask:
        return None
    return ComposedLayout(moved, 0, lhs)


def _split(modes: Sequence[Mode], bits: int) -> tuple[list[int], list[Mode]] | None:
    """Return the part that each of the lowest bits of an index adds to its offset, and the modes of the bits above;
    None where those bits are not independent: where a mode that is not a power of two lies among them."""
    weights: list[int] = []
    rest: list[Mode] = []
    for i, (s, d) in enumerate(modes):
        wanted = bits - len(weights)
        if i == len(modes) - 1:  # the last mode is not bounded
            weights += [d << k for k in range(wanted)]
            s, d = -(-s >> wanted), d << wanted
        else:
            taken = min(wanted, (s & -s).bit_length() - 1)
            weights += [d << k for k in range(taken)]
            s, d = s >> taken, d << taken
            if s > 1 and taken < wanted:
                return None
        if s > 1:
            rest.append((s, d))
    return weights, rest


def _ascending(weights: Sequence[int]) -> bool:
    """Return whether these are neighbouring bits, the lowest first."""
    first = weights[0]
    return first > 0 and first & (first - 1) == 0 and all(w == first << k for k, w in enumerate(weights))


def reached_bits(modes: Sequence[Mode], below: int) -> int:
    """Return the bits below bit `below` that are set in some sum of offsets of these static modes, as far as is known.
    Modes whose bits may carry into one another are taken together: for all bits from the lowest of theirs to the
    highest of their sum."""
    beyond = 1 << below
    groups: list[tuple[int, int]] = []  # the bits that may be set, and the largest sum
    for s, d in modes:
        if d < 0:
            return beyond - 1
        if s == 1 or d % beyond == 0:
            continue
        most = (s - 1) * d
        bits = d if s == 2 else _between(d, most)
        while clash := next((g for g in groups if g[0] & bits), None):
            groups.remove(clash)
            most += clash[1]
            bits = _between(bits | clash[0], most)
        groups.append((bits, most))
    return sum(bits for bits, _ in groups) & beyond - 1


def _between(lowest_of: int, most: int) -> int:
    """All bits from the lowest of one number to the highest of the other."""
    return (1 << most.bit_length()) - (lowest_of & -lowest_of)


def keeps_clear(layout: ComposedLayout) -> bool:
    """Return whether a composed layout is known to stay clear of what its outer layout leaves out. So does a swizzle
    without an offset where the outer layout sets bits: it changes an index by bits that it leaves there."""
    if not isinstance(layout.inner, Swizzle) or not is_zero(layout.offset) or not isinstance(layout.outer, Layout):
        return False
    if layout.inner.bits == 0:
        return True
    outer = filter(layout.outer)
    if not is_static(outer) or outer.maps_to_coordinates:
        return False
    modes = [(s, d) for s, d in modes_of(outer) if s > 1]
    bits = sum((s - 1) * d for s, d in modes)
    return all(x > 0 and x & (x - 1) == 0 for mode in modes for x in mode) and bits.bit_count() == sum(
        (s - 1).bit_count() for s, _ in modes
    )
