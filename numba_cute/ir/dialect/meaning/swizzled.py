# SPDX-License-Identifier: Apache-2.0
"""Slices of swizzled layouts, and layouts in elements of another width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....layout.int_tuple import flatten_to_tuple, is_zero, mul
from ....layout.layout import ComposedLayout, Layout
from ....layout.mapping import slice_modes
from ....layout.swizzle import Swizzle
from ..checked import Refused
from ..leaves import Dynamic, ceil_divided
from . import canonical

# ------------------------------------------------------------------ slices


def sliced(layout: ComposedLayout, coord: Any) -> Any:
    """Keep the modes of a swizzled layout where `coord` is None. What the others add to the bits that the swizzle reads
    or changes stays in the offset; the rest is not part of the layout. Where the kept modes cannot meet it, the result
    is a layout without a swizzle."""
    swizzle, outer = layout.inner, layout.outer
    kept = Layout(slice_modes(coord, outer.shape), slice_modes(coord, outer.stride))
    if all(c is None for c in flatten_to_tuple(coord)):
        return ComposedLayout(swizzle, layout.offset, kept)
    mask = swizzle.y_mask | swizzle.z_mask
    inside: Any = 0
    for c, s, d in _picked(coord, outer.shape, outer.stride):
        inside = _xor(inside, _masked(c, s, d, mask))
    offset = _xor(layout.offset, inside)
    active = 0
    for s, d in canonical.modes_of(kept):
        active |= (s - 1) * d & mask
    if active & ~swizzle(active):
        return ComposedLayout(swizzle, offset, kept)
    return canonical.composed(_straightened(swizzle, offset), kept)


def _picked(coord: Any, shape: Any, stride: Any) -> Iterator[tuple[Any, Any, Any]]:
    """List the integers of a coordinate, each with the modes that it counts through."""
    if isinstance(coord, tuple):
        for c, s, d in zip(coord, shape, stride, strict=True):
            yield from _picked(c, s, d)
    elif coord is not None and not isinstance(shape, tuple):
        yield coord, shape, stride
    elif coord is not None:
        modes = canonical.modes_of(Layout(shape, stride))
        for i, (s, d) in enumerate(modes):
            last = i == len(modes) - 1
            yield (coord if last else coord % s), s, d
            coord = coord if last else coord // s


def _masked(coord: Any, extent: int, stride: int, mask: int) -> Any:
    """The bits of `mask` that a mode adds at a coordinate."""
    reach = (extent - 1) * stride
    if not reach & mask and type(coord) is not int:
        return 0
    if reach & mask and (extent & (extent - 1) or stride & (stride - 1)):
        raise Refused(f"the mode {extent}:{stride} meets the swizzle, and its extent and stride must be powers of two")
    return mul(coord, stride) & mask


def _xor(a: Any, b: Any) -> Any:
    return a if is_zero(b) else b if is_zero(a) else a ^ b


def _straightened(swizzle: Swizzle, offset: Any) -> Layout:
    """The layout that maps bits as a swizzle does behind an offset, where no element has a bit that is read and the one
    that it changes: a changed bit counts down where the offset sets what is read, and a bit that is read moves both."""
    z, y = swizzle.z_mask & -swizzle.z_mask, swizzle.y_mask & -swizzle.y_mask
    changed = [_step(offset, y << i, 0, z << i) for i in range(swizzle.bits)]
    reading = [_step(offset, z << i, y << i, z << i) for i in range(swizzle.bits)]
    low, high = (changed, reading) if z < y else (reading, changed)
    base, bits, gap = swizzle.base, swizzle.bits, abs(swizzle.shift) - swizzle.bits
    modes = [(1 << base, 1), *((2, d) for d in low), (1 << gap, 1 << (base + bits)), *((2, d) for d in high)]
    modes.append((1, 1 << (base + bits + abs(swizzle.shift))))
    return Layout(tuple(s for s, _ in modes), tuple(d for _, d in modes))


def _step(offset: Any, bit: int, by: int, other: int) -> Any:
    """`by` + `other` where the offset has not this bit, and `by` - `other` where it has."""
    if type(offset) is int:
        return by - other if offset & bit else by + other
    value = None if offset.value is None else by - other if offset.value & bit else by + other
    return Dynamic(offset.width, 1, value)


# ------------------------------------------------------------------ elements of another width


def recast(layout: Any, new: int, old: int) -> Any:
    """Return a layout of elements of `old` bits in elements of `new` bits."""
    if new == old:
        return layout
    if new % old == 0:
        return _widened(layout, new // old)
    if old % new == 0:
        return _narrowed(layout, old // new)
    common = _gcd(new, old)
    return _narrowed(_widened(layout, new // common), old // common)


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def _widened(x: Any, n: int) -> Any:
    """`n` elements become one."""
    if isinstance(x, Swizzle):
        return _moved(x, -_log2(n))
    if isinstance(x, ComposedLayout):
        if type(x.offset) is not int or x.offset % n:
            raise Refused(
                f"the offset must be a static multiple of the {n} elements that become one, and is {x.offset}"
            )
        return ComposedLayout(_widened(x.inner, n), x.offset // n, _widened(x.outer, n))
    if isinstance(x.shape, tuple):
        return canonical.stacked([_widened(m, n) for m in canonical.parts(x)])
    s, d = x.shape, x.stride
    if isinstance(d, Dynamic):
        return Layout(s, ceil_divided(d, n))
    if is_zero(d):
        return x
    step = ceil_divided(abs(d), n)
    return Layout(ceil_divided(s, ceil_divided(n, abs(d))), step if d > 0 else -step)


def _narrowed(x: Any, n: int) -> Any:
    """One element becomes `n`."""
    if isinstance(x, Swizzle):
        return _moved(x, _log2(n))
    if isinstance(x, ComposedLayout):
        if type(x.offset) is not int:
            raise Refused("the offset must be static")
        return ComposedLayout(_narrowed(x.inner, n), x.offset * n, _narrowed(x.outer, n))
    if isinstance(x.shape, tuple):
        return canonical.stacked([_narrowed(m, n) for m in canonical.parts(x)])
    if x.stride in (1, -1):
        return Layout(mul(x.shape, n), x.stride)
    return Layout(x.shape, mul(x.stride, n))


def _log2(n: int) -> int:
    if n & (n - 1):
        raise Refused(f"a swizzle counts elements by powers of two, and {n} is none")
    return n.bit_length() - 1


def _moved(swizzle: Swizzle, by: int) -> Swizzle:
    if swizzle.bits == 0:
        return swizzle
    if swizzle.base + by < 0:
        raise Refused(f"{swizzle} moves single elements, and {1 << -by} of them become one")
    return Swizzle(swizzle.bits, swizzle.base + by, swizzle.shift)


__all__ = ["recast", "sliced"]
