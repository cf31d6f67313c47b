# SPDX-License-Identifier: Apache-2.0
"""Tensor maps at work: the box of a tensor as it lies in shared memory, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..isa.machine import Bytes
from ..isa.tensormap import SWIZZLE_SPAN, TensorMapRecord
from .report import SimError

_REDUCE = {"add": np.add, "min": np.minimum, "max": np.maximum,
           "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}  # fmt: skip


def swizzle_chunks(nbytes: int, span: int) -> NDArray[np.int64]:
    """Where each 16-byte chunk of a box lies: bits 4 and up of its offset, exclusive or bits 7 and up, as many as
    the span has chunks (PTX ISA, "Swizzling Modes")."""
    chunk = np.arange(-(-nbytes // 16))
    return chunk ^ ((chunk >> 3) & (span // 16 - 1)) if span else chunk


class SimTensorMap:
    """A tensor map that an instruction uses (isa.machine.TensorMap)."""

    def __init__(self, record: TensorMapRecord, run_memory: Any, name: str) -> None:
        self.record, self.memory, self.name = record, run_memory, name
        self.rank, self.box, self.box_bytes = record.rank, record.box, record.box_bytes
        span = SWIZZLE_SPAN[record.swizzle]
        self.align = span * 8 if span else 128
        self._chunks = swizzle_chunks(self.box_bytes, span) if span else None

    def on(self, machine: Any) -> BoundTensorMap:
        return BoundTensorMap(self, machine)

    def part(
        self, at: tuple[int, ...], machine: Any, write: bool, atomic: bool = False
    ) -> tuple[NDArray[Any], tuple[slice, ...]]:
        """The elements of the box that lie inside the tensor, as a view of memory with the outermost dimension
        first, and where they are in the box."""
        r = self.record
        if len(at) != r.rank:
            raise SimError(
                f"{self.name}: {len(at)} coordinates {at} for a tensor map of rank {r.rank}; {machine.place}"
            )
        size = r.dtype.bytes
        address, shape, strides, where = r.address, [], [], []
        for c, n, box, step, stride in zip(at, r.dims, r.box_shape, r.element_strides, (size, *r.strides_bytes)):
            first = max(0, -(c // step))  # the least i with c + i * step >= 0
            last = min(box, max(first, -(-(n - c) // step)))
            address += (c + first * step) * stride
            shape.append(last - first)
            strides.append(step * stride)
            where.append(slice(first, last))
        where.reverse()
        if 0 in shape or min(shape) < 0:
            return np.empty((0,) * r.rank, r.dtype.numpy), tuple(slice(0, 0) for _ in where)
        reach = sum((n - 1) * s for n, s in zip(shape, strides)) + size
        a = self.memory.at(address, reach, machine)
        if machine.run.races is not None:
            where_in = tuple(reversed(shape)), tuple(reversed(strides))
            by = machine.op.global_access if machine.op else None
            if by is not None:
                machine.run.races.accesses[by].atomic = atomic
            a.check_box(machine, address, *where_in, size, write, by=by, atomic=atomic)
        raw = a.data[address - a.address :]
        view: NDArray[Any] = np.ndarray(
            tuple(reversed(shape)),
            r.dtype.numpy,
            raw,
            0,
            tuple(reversed(strides)),
        )
        return view, tuple(where)

    def gather(self, at: tuple[int, ...], machine: Any) -> Bytes:
        r = self.record
        inside, where = self.part(at, machine, False)
        fill = np.nan if r.oob_fill == "nan" else 0
        box = np.full(tuple(reversed(r.box_shape)), fill, r.dtype.numpy)
        box[where] = inside
        data: Bytes = box.reshape(-1).view(np.uint8)
        if self._chunks is None:
            return data
        out = np.empty((self._chunks.max() + 1, 16), np.uint8)
        out[self._chunks] = data.reshape(-1, 16)
        return out.reshape(-1)

    def scatter(self, at: tuple[int, ...], data: Bytes, reduce: str | None, machine: Any) -> None:
        r = self.record
        if self._chunks is not None:
            data = data.reshape(-1, 16)[self._chunks].reshape(-1)
        box = data.view(r.dtype.numpy).reshape(tuple(reversed(r.box_shape)))
        inside, where = self.part(at, machine, True, reduce is not None)
        if reduce is None:
            inside[...] = box[where]
        elif reduce in _REDUCE:
            inside[...] = _REDUCE[reduce](inside, box[where])
        else:  # inc and dec wrap at the operand (PTX ISA, "red")
            old, limit = inside.copy(), box[where]
            up = np.where(old >= limit, 0, old + 1)
            inside[...] = up if reduce == "inc" else np.where((old == 0) | (old > limit), limit, old - 1)


class BoundTensorMap:
    """A tensor map and the issue that uses it, for reports."""

    __slots__ = ("map", "machine", "rank", "box", "box_bytes", "align")

    def __init__(self, tensor_map: SimTensorMap, machine: Any) -> None:
        self.map, self.machine = tensor_map, machine
        self.rank, self.box = tensor_map.rank, tensor_map.box
        self.box_bytes, self.align = tensor_map.box_bytes, tensor_map.align

    def gather(self, at: tuple[int, ...]) -> Bytes:
        return self.map.gather(at, self.machine)

    def scatter(self, at: tuple[int, ...], data: Bytes, reduce: str | None = None) -> None:
        self.map.scatter(at, data, reduce, self.machine)
