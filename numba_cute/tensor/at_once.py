# SPDX-License-Identifier: Apache-2.0
"""Elements of the host's arrays, found without detours: host functions go through whole tensors one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import seam
from ..dtypes import Scalar
from ..layout import Layout
from ..layout.int_tuple import values
from .address import Address
from .pointer import Pointer, check_writable, moved_bytes

_MODES = "_cute_modes"


def pointer_at(t: Any, coord: Any) -> Pointer | None:
    """Return the place of a tensor's element in an array of the host; None of anything else, as of a slice, of other
    memory and of a coordinate that is out of the shape, which the general way finds or refuses."""
    if not seam.computes_on_host():
        return None
    offset = _offset(coord, _modes_of(t))
    return None if offset is None else moved_bytes(t.iterator, offset * t.iterator.dtype.bytes)


def elements_at_once(t: Any, writes: bool = False) -> tuple[Any, Any] | None:
    """Return an array over the memory of a tensor in an array of the host, and the indices there of the tensor's
    elements, in coordinate order; None of anything else. writes: what the array is for."""
    modes = _modes_of(t) if seam.computes_on_host() else None
    if modes is None or not modes[0]:
        return None
    if writes:
        check_writable(t.iterator, "store")
    places, p, backend = _places(modes), t.iterator, seam.current()
    first, size = int(places.min()), p.dtype.bytes
    nbytes = (int(places.max()) + 1 - first) * size
    memory = backend.view(p.address.plus(first * size), nbytes, writes)  # type: ignore[attr-defined]
    return None if memory is None else (memory.view(p.dtype.numpy), places - first)


def _modes_of(t: Any) -> Any:
    """The modes of a tensor in an array of the host; None of any other, and where an extent or stride is not known."""
    lay, p = t.layout, t.iterator
    if type(lay) is not Layout or type(p) is not Pointer or type(p.address) is not Address:
        return None
    if p.swizzle is not None or p.dtype.width < 8:
        return None
    modes = lay.__dict__.get(_MODES)
    if modes is None:
        modes = lay.__dict__[_MODES] = _modes(values(lay.shape), values(lay.stride))
    return modes


def _places(mode: Any) -> Any:
    """The offsets of a mode, in coordinate order."""
    size, stride, inner = mode
    if inner is None:
        return np.arange(size, dtype=np.int64) * stride
    found = np.zeros(1, np.int64)
    for m in inner:
        found = (_places(m)[:, None] + found).ravel()
    return found


def _modes(shape: Any, stride: Any) -> Any:
    """The modes of a layout: of each an extent, a stride and the modes in it; None if one is not known."""
    if isinstance(shape, tuple):
        inner = tuple(_modes(s, d) for s, d in zip(shape, stride))
        if None in inner:
            return None
        size = 1
        for m in inner:
            size *= m[0]
        return size, 0, inner
    return (shape, stride, None) if type(shape) is int and type(stride) is int else None


def _offset(coord: Any, mode: Any) -> int | None:
    """The offset of a coordinate; None if it is none of one element, or lies outside."""
    if mode is None:
        return None
    size, stride, inner = mode
    if type(coord) is tuple:
        if inner is None or len(coord) != len(inner):
            return None
        total = 0
        for c, m in zip(coord, inner):
            found = _offset(c, m)
            if found is None:
                return None
            total += found
        return total
    at = coord.value if type(coord) is Scalar else coord
    if type(at) is not int or not 0 <= at < size:
        return None
    if inner is None:
        return at * stride  # type: ignore[no-any-return]
    total = 0
    for m in inner:
        at, here = divmod(at, m[0])
        found = _offset(here, m)
        if found is None:
            return None
        total += found
    return total
