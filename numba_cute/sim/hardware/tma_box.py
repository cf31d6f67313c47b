# SPDX-License-Identifier: Apache-2.0
"""Tensor maps at work: the box of a tensor as it lies in shared memory, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dtypes import DType, TFloat32
from ...isa.facts import packed_maps
from ...isa.facts.fragments import nearest_tf32
from ...isa.facts.packed_maps import CHUNK
from ...isa.facts.reduction import combine
from ...isa.facts.tensormap import SWIZZLE_SPAN, Im2col, Im2colWide, TensorMapRecord, check_reduction
from ...isa.form.machine import Bytes
from ..ground.access import Box
from ..ground.report import OutOfBoundsError, SimError
from . import tma_coordinates

_GRAINS = {"128B_ATOM_32B": 2, "128B_ATOM_32B_FLIP_8B": 2, "128B_ATOM_64B": 4}


def _nan(dtype: DType) -> Any:
    """The NaN that an H200 fills with (2026-11-21): of every type 0x7FF7, as often as it goes into an element."""
    return np.full(dtype.bytes // 2, 0x7FF7, np.uint16).view(dtype.numpy)[0]


def _filled(shape: tuple[int, ...], r: TensorMapRecord) -> NDArray[Any]:
    """Return the box that a load gives outside the tensor: zero bits (for e8m0 not the number 0), or NaNs."""
    box: NDArray[Any] = np.zeros(shape, r.dtype.numpy)
    if r.oob_fill == "nan":
        box[...] = _nan(r.dtype)
    return box


def swizzle_chunks(nbytes: int, swizzle: str, line: int) -> NDArray[np.int64]:
    """Return the place of each 16-byte chunk of a box that begins in this line of 128 bytes: its place in its line, in
    grains of the swizzle's atoms, exclusive or the line's number, as many bits as the span has grains (PTX ISA,
    "Swizzling Modes")."""
    chunk = np.arange(8 * line, 8 * line - (-nbytes // 16))
    grain = _GRAINS.get(swizzle, 1)
    grains = SWIZZLE_SPAN[swizzle] // (16 * grain)
    return (chunk ^ (((chunk >> 3) & (grains - 1)) * grain)) - 8 * line


class Image:
    """The layout of a box's rows in shared memory: each row is padded to the swizzle's span, and chunks are permuted by
    the bits of the address; `line` (0 to 7) is the number of the first line."""

    def __init__(self, record: TensorMapRecord) -> None:
        self.inner = record.box_shape[0] * record.shared_bits // 8  # of an interleaved map a slice
        self.packed = CHUNK * record.dtype.width // 8 if record.unpacked else 0
        """Bytes of elements in each 16 of shared memory; 0: all."""
        self.pitch = record.row_bytes
        self.swizzle = record.swizzle
        self._chunks: dict[tuple[int, int], NDArray[np.int64]] = {}

    def _places(self, nbytes: int, line: int) -> NDArray[np.int64]:
        key = nbytes, line
        if key not in self._chunks:
            self._chunks[key] = swizzle_chunks(nbytes, self.swizzle, line)
        return self._chunks[key]

    def _flipped(self, chunks: Bytes, line: int) -> Bytes:
        """With the 8-byte halves of every chunk of each odd line exchanged."""
        if not self.swizzle.endswith("FLIP_8B"):
            return chunks
        out = chunks.copy().reshape(-1, 2, 8)
        odd = ((np.arange(len(out)) >> 3) + line) & 1 == 1
        out[odd] = out[odd, ::-1]
        return out.reshape(-1, 16)

    def lay(self, box: NDArray[Any], line: int) -> Bytes:
        """The box's elements, innermost last, as shared memory holds them."""
        data: Bytes = np.ascontiguousarray(box).reshape(-1).view(np.uint8)
        if self.packed:
            data = np.pad(data.reshape(-1, self.packed), ((0, 0), (0, 16 - self.packed))).reshape(-1)
        if self.swizzle == "none":
            return data
        rows = data.reshape(-1, self.inner)
        if self.pitch > self.inner:
            rows = np.pad(rows, ((0, 0), (0, self.pitch - self.inner)))
        chunks = rows.reshape(-1, 16)
        places = self._places(chunks.size, line)
        out = np.zeros((max(len(chunks), int(places.max()) + 1), 16), np.uint8)  # more: a part of a line, spread out
        out[places] = chunks
        return self._flipped(out, line).reshape(-1)

    def take(self, data: Bytes, dtype: Any, shape: tuple[int, ...], line: int) -> NDArray[Any]:
        """The other way."""
        if self.swizzle != "none":
            chunks = self._flipped(data.reshape(-1, 16), line)
            rows = chunks[self._places(data.size, line)].reshape(-1, self.pitch)
            data = np.ascontiguousarray(rows[:, : self.inner]).reshape(-1)
        if self.packed:
            data = np.ascontiguousarray(data.reshape(-1, 16)[:, : self.packed]).reshape(-1)
        box: NDArray[Any] = data.view(dtype)[: math.prod(shape)].reshape(shape)
        return box


class SimTensorMap:
    """A tensor map that an instruction uses (isa.machine.TensorMap)."""

    def __init__(self, record: TensorMapRecord, run_memory: Any, name: str) -> None:
        self.stated, self.memory, self.name = record, run_memory, name
        self.record = record.in_bytes  # what is walked over
        self.rank, self.box, self.box_bytes = record.rank, record.box, record.box_bytes
        self.axes = self.record.axes
        self.image = Image(record)
        self.shared_bytes = record.shared_bytes

    def on(self, machine: Any) -> BoundTensorMap:
        return BoundTensorMap(self, machine)

    def part(
        self, at: tuple[int, ...], machine: Any, write: bool, atomic: bool = False
    ) -> tuple[NDArray[Any], tuple[slice, ...]]:
        """The elements of the box that lie inside the tensor, as a view of memory with the outermost dimension
        first, and where they are in the box."""
        return self._view(at, self.record.box_shape, machine, write, atomic)

    def _view(
        self, at: tuple[int, ...], extents: tuple[int, ...], machine: Any, write: bool, atomic: bool
    ) -> tuple[NDArray[Any], tuple[slice, ...]]:
        r = self.record
        size = r.dtype.bytes
        address, shape, strides, where = r.address, [], [], []
        if r.interleave != "none":
            at = (0, *at)  # the beginning of a slice
        if self.stated.dtype.width < 8:
            at = (at[0] * self.stated.dtype.width // 8, *at[1:])
        for c, most, (n, stride, step) in zip(at, extents, self.axes):
            first = max(0, -(c // step))  # the least i with c + i * step >= 0
            last = min(most, max(first, -(-(n - c) // step)))
            address += (c + first * step) * stride
            shape.append(last - first)
            strides.append(step * stride)
            where.append(slice(first, last))
        address %= 1 << 64  # which is as wide as addresses are: maps of ragged tensors go once around
        where.reverse()
        if 0 in shape or min(shape) < 0:
            return np.empty((0,) * len(shape), r.dtype.numpy), tuple(slice(0, 0) for _ in where)
        reach = sum((n - 1) * s for n, s in zip(shape, strides)) + size
        a = self._allocation(address, reach, machine, write)
        for tell in machine.run.watch.accesses:
            box = Box(address - a.address, tuple(reversed(shape)), tuple(reversed(strides)), size)
            tell(machine, a, box, write, "gpu" if atomic else None, asynchronous=True)
        raw = a.data[address - a.address :]
        view: NDArray[Any] = np.ndarray(
            tuple(reversed(shape)),
            r.dtype.numpy,
            raw,
            0,
            tuple(reversed(strides)),
        )
        return view, tuple(where)

    def _allocation(self, address: int, nbytes: int, machine: Any, write: bool) -> Any:
        """The memory that holds a box."""
        try:
            return self.memory.at(address, nbytes, machine, write)
        except OutOfBoundsError as e:
            first, stated = self.memory.find(self.record.address), self.stated
            beyond = 0 if first is None else self.record.address + self.record.extent_bytes - first.end
            if beyond <= 0:
                raise
            raise OutOfBoundsError(
                f"{e}; the tensor map of {self.name} (dims {stated.dims}, strides {stated.strides_bytes} bytes) "
                f"reaches {beyond} bytes beyond the end of {first.label}"
            ) from None

    def _check(
        self, at: tuple[int, ...], offsets: tuple[int, ...] | None, machine: Any, wide: str | None = None
    ) -> None:
        tma_coordinates.check(self.stated, self.name, at, offsets, wide, machine)

    def _gathered(
        self, at: tuple[int, ...], offsets: tuple[int, ...] | None, machine: Any, wide: str | None = None
    ) -> NDArray[Any]:
        r = self.record
        self._check(at, offsets, machine, wide)
        self._check_loads(machine)
        if r.im2col is None or offsets is None:
            box = _filled(tuple(reversed(r.box_shape)), r)
            inside, where = self.part(at, machine, False)
            box[where] = inside
            return box
        found = tma_coordinates.runs(r, at, offsets)
        box = _filled((found[-1][0] + found[-1][1], r.box_shape[0]), r)
        for first, count, place in found:
            extents = (r.box_shape[0], count, *(1,) * (len(self.axes) - 2))
            inside, where = self._view(place, extents, machine, False, False)
            row = box[first : first + count].reshape(tuple(reversed(extents)))
            row[where] = inside
        return box

    def gather(
        self, at: tuple[int, ...], offsets: tuple[int, ...] | None, line: int, wide: str | None, machine: Any
    ) -> Bytes:
        self._tell(at, True, machine)
        return self._laid(self._gathered(at, offsets, machine, wide), line)

    def _laid(self, box: NDArray[Any], line: int) -> Bytes:
        return self.image.lay(nearest_tf32(box) if self.record.dtype is TFloat32 else box, line)

    def _tell(self, at: tuple[int, ...], loads: bool, machine: Any) -> None:
        """Tell the checks of a box, and whether some of it lies inside; not of one that begins where the tensor ends,
        as one of no rows does."""
        r = self.stated
        for tell in machine.run.watch.copies_box if r.im2col is None and r.interleave == "none" else ():
            each = [*zip(at, r.box_shape, r.dims, r.element_strides)]
            if all(c != n for c, _, n, _ in each):
                tell(machine, self, at, loads, all(max(0, -(c // s)) < min(b, -((c - n) // s)) for c, b, n, s in each))

    def wide_bytes(self, halo: int) -> tuple[int, int]:
        r = self.record
        if not isinstance(r.im2col, Im2colWide):
            return self.box_bytes, self.shared_bytes  # another map: the copy says so
        pixels = r.im2col.pixels_with(halo)
        return pixels * r.im2col.channels * r.dtype.bytes, pixels * r.row_bytes

    def prefetch(self, at: tuple[int, ...], offsets: tuple[int, ...] | None, wide: str | None, machine: Any) -> None:
        self._check(at, offsets, machine, wide)

    def gather4(self, at: tuple[int, ...], line: int, machine: Any) -> Bytes:
        self._check_rows(machine)
        rows = [self._gathered((at[0], row), None, machine) for row in at[1:]]
        return self._laid(np.concatenate(rows), line)

    def _check_rows(self, machine: Any) -> None:
        if self.rank != 2 or self.box[1] != 1:
            raise SimError(
                f"{self.name}: gather4 and scatter4 take a tensor map of rank 2 whose box is one row high, not the box "
                f"{self.box}; {machine.place}"
            )

    def scatter(
        self, at: tuple[int, ...], data: Bytes, reduce: str | None, offsets: tuple[int, ...] | None, line: int,
        machine: Any,
    ) -> None:  # fmt: skip
        r = self.record
        self._check(at, offsets, machine)
        self._tell(at, False, machine)
        self._check_stores(machine)
        if reduce is not None:
            check_reduction(reduce, self.stated.dtype)
        box = self.image.take(data, r.dtype.numpy, tuple(reversed(r.box_shape)), line)
        self._check_begins_inside(at, machine)
        if r.im2col is None or offsets is None:
            self._put(*self.part(at, machine, True, reduce is not None), box, reduce)
            return
        for first, count, place in tma_coordinates.runs(r, at, offsets):
            extents = (r.box_shape[0], count, *(1,) * (len(self.axes) - 2))
            row = box[first : first + count].reshape(tuple(reversed(extents)))
            self._put(*self._view(place, extents, machine, True, reduce is not None), row, reduce)

    def _check_loads(self, machine: Any) -> None:
        r = self.stated
        if r.dtype.width < 8 and r.swizzle not in packed_maps.form(r.dtype, r.unpacked).loads:
            raise SimError(
                f"{self.name}: {machine.row.name} by a map of {r.dtype} and swizzle {r.swizzle!r}, which only stores "
                f"have; make another map for it; {machine.place}"
            )

    def _check_stores(self, machine: Any) -> None:
        r = self.stated
        if r.dtype.width < 8 and r.swizzle not in packed_maps.form(r.dtype, r.unpacked).stores:
            raise SimError(
                f"{self.name}: {machine.row.name} by a map of {r.dtype}"
                f"{' whose elements are unpacked in shared memory' if r.unpacked else ''} and swizzle {r.swizzle!r}, "
                f"which only loads have; make another map for it; {machine.place}"
            )
        if self.record.swizzle.endswith("FLIP_8B"):  # PTX ISA, "Swizzling Modes"
            raise SimError(
                f"{self.name}: {machine.row.name} by a map of swizzle {self.record.swizzle!r}, which only loads have; "
                f"make another map for it; {machine.place}"
            )

    def _check_begins_inside(self, at: tuple[int, ...], machine: Any) -> None:
        """Loads may begin before the tensor, stores may not: an illegal instruction (seen on an H200, 2026-11-21)."""
        if min(at) < 0:
            raise SimError(
                f"{self.name}: {machine.row.name} at coordinates {at} (innermost first): the box of a store or a "
                f"reduction may end outside of the tensor, but it cannot begin before it: the GPU ends the kernel with "
                f"an illegal instruction; use coordinates of 0 or more; {machine.place}"
            )
        walk = self.record.im2col
        if isinstance(walk, Im2col) and (min(walk.lower) < 0 or max(walk.upper) > 0):
            raise SimError(
                f"{self.name}: {machine.row.name} by an im2col map whose lower corner is {walk.lower} and whose upper "
                f"one is {walk.upper}: stores and reductions have no padding, and the GPU ends the kernel with an "
                f"illegal instruction; make a map without for them; {machine.place}"
            )

    @staticmethod
    def _put(inside: NDArray[Any], where: tuple[slice, ...], box: NDArray[Any], reduce: str | None) -> None:
        inside[...] = box[where] if reduce is None else combine(reduce, inside, box[where])

    def scatter4(self, at: tuple[int, ...], data: Bytes, line: int, machine: Any) -> None:
        self._check_rows(machine)
        self._check_stores(machine)
        for row in at[1:]:
            self._check((at[0], row), None, machine)
            self._check_begins_inside((at[0], row), machine)
        r = self.record
        rows = self.image.take(data, r.dtype.numpy, (4, r.box[0]), line)
        for i, row in enumerate(at[1:]):
            self._put(*self.part((at[0], row), machine, True), rows[i : i + 1], None)


class BoundTensorMap:
    """A tensor map and the issue that uses it, for reports."""

    __slots__ = ("map", "machine", "rank", "box", "box_bytes", "shared_bytes")

    def __init__(self, tensor_map: SimTensorMap, machine: Any) -> None:
        self.map, self.machine = tensor_map, machine
        self.rank, self.box = tensor_map.rank, tensor_map.box
        self.box_bytes, self.shared_bytes = tensor_map.box_bytes, tensor_map.shared_bytes

    def gather(
        self, at: tuple[int, ...], offsets: tuple[int, ...] | None = None, line: int = 0, wide: str | None = None
    ) -> Bytes:
        return self.map.gather(at, offsets, line, wide, self.machine)

    def wide_bytes(self, halo: int) -> tuple[int, int]:
        return self.map.wide_bytes(halo)

    def prefetch(self, at: tuple[int, ...], offsets: tuple[int, ...] | None, wide: str | None) -> None:
        self.map.prefetch(at, offsets, wide, self.machine)

    def gather4(self, at: tuple[int, ...], line: int = 0) -> Bytes:
        return self.map.gather4(at, line, self.machine)

    def scatter(
        self, at: tuple[int, ...], data: Bytes, reduce: str | None = None, offsets: tuple[int, ...] | None = None,
        line: int = 0,
    ) -> None:  # fmt: skip
        self.map.scatter(at, data, reduce, offsets, line, self.machine)

    def scatter4(self, at: tuple[int, ...], data: Bytes, line: int = 0) -> None:
        self.map.scatter4(at, data, line, self.machine)
