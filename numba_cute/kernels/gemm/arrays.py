# SPDX-License-Identifier: Apache-2.0
"""Tensors of the arrays that a GEMM takes: with run-time extents, kept alive or not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.runtime import from_dlpack


class Loose(NamedTuple):
    """An array on the device by where it lies: what is made of it does not keep it alive. address: bytes. shape,
    stride: in elements. element_type: of this library."""

    address: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    element_type: Any

    def swapaxes(self, i: int, j: int) -> Loose:
        """Exchange two modes. i, j: which."""
        order = list(range(len(self.shape)))
        order[i], order[j] = order[j], order[i]
        return self._replace(shape=tuple(self.shape[x] for x in order), stride=tuple(self.stride[x] for x in order))


class Source:
    """An operand with a way of its own to shared memory, as `dense.py` takes it: rows by K, which is contiguous. A
    subclass has `shape`, (rows, K), where K counts whole tiles."""

    shape: tuple[int, int]

    def loads(self, dtype: Any, smem: Any, tile: tuple[int, int], ctas: int, rows: int) -> tuple[Any, Any]:
        """Give the TMA atom that loads its tiles, and its coordinates: (rows, K), K perhaps of several modes, whose
        tiles are counted along the first one first. dtype: what its elements are taken for. smem: of a tile in shared
        memory. tile: its extents. ctas: how many share it by multicast. rows: how many the coordinates must have."""
        raise NotImplementedError


def tensor_of(array: Any, align: int | None = None) -> Any:
    """Give the tensor of an array, or of a `Loose` one. array: it begins at a multiple of `align` bytes, or of those of
    an element."""
    if not isinstance(array, Loose):
        return from_dlpack(array, assumed_align=align)
    there = cute.make_ptr(array.element_type, array.address, cute.AddressSpace.gmem, assumed_align=align)
    return cute.make_tensor(there, cute.make_layout(array.shape or 1, stride=array.stride or 0))


def operand(array: Any, dtype: Any) -> tuple[Any, int]:
    """Give a tensor of an array with run-time extents, the batch last, and its contiguous mode. dtype: what its
    elements are taken for, of the same width. A `Source` is given as it is."""
    if isinstance(array, Source):
        return array, 1
    t = tensor_of(array, 16)
    if cute.rank(t) == 3:
        t = cute.make_tensor(t.iterator, cute.select(t.layout, mode=[1, 2, 0]))
    mode = contiguous(array)
    return cute.recast_tensor(t.mark_layout_dynamic(leading_dim=mode), dtype), mode  # Numba's arrays say int16


def contiguous(array: Any) -> int:
    """Give the mode, 0 or 1 of the last two, along which an array's elements follow one another."""
    t = tensor_of(array)
    shape, stride = t.shape[-2:], t.stride[-2:]
    return int(cute.leading_dim(shape, stride))
