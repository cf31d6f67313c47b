# SPDX-License-Identifier: Apache-2.0
"""Arguments of a simulated kernel: numbers with types, handles of tensor maps, and the memory that it may use."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import seam
from ..dtypes import DType, Scalar
from ..isa.facts.tensormap import TensorMapRecord
from ..seam import CuteError
from ..seam.marks.constexpr import Constexpr
from ..seam.source.language import no_argument
from .hardware.address_spaces import GlobalMemory
from .hardware.grid import Run
from .hardware.symmetric import parts_at
from .hardware.tma_table import TensorMaps
from .lanes.lane_memory import stepped
from .python.arithmetic.number import from_python
from .python.arrays import Record, array_of, tracked
from .python.values import cast
from .ranks import PerRank


def _like(given: tuple[Any, ...], items: Iterable[Any]) -> Any:
    """Return items in a tuple, or a named one, like the given one."""
    made = getattr(type(given), "_make", tuple)
    return made(items)


class Arguments:
    """Takes kernel arguments apart: run-time leaves become plain numbers, tensor maps handles; what memory the
    kernel may use is written down. rank: of the GPU whose kernel takes them."""

    def __init__(self, memory: GlobalMemory, maps: TensorMaps, run: Run, rank: int = 0) -> None:
        self.memory, self.maps, self.run, self.rank = memory, maps, run, rank
        self._handles: dict[TensorMapRecord, int] = {}
        self._begins: dict[Any, int] = {}  # the arrays behind atoms' maps
        self.records: list[tuple[Any, Any]] = []  # of the host, and what the kernel has of each

    def give_back(self) -> None:
        """Set the host's records to what the kernel has made of them."""
        for value, held in self.records:
            for field in value.dtype.names:
                value[field] = held[field][0]

    def numbers(self, args: Sequence[Any], names: Sequence[str]) -> list[Any]:
        """The kernel's arguments. names: of its parameters, which may be fewer."""
        return [self.number(a, names[i] if i < len(names) else f"argument {i}") for i, a in enumerate(args)]

    def number(self, value: Any, name: str) -> Any:
        """An argument of the kernel itself: Python's numbers, and those in tuples, have Numba's types."""
        if isinstance(value, tuple):
            return _like(value, (self.number(v, name) for v in value))
        if type(value) in (dict, set):
            raise CuteError(no_argument(value))
        if isinstance(value, Constexpr):
            return self.take(value.value, name)
        return from_python(value) if isinstance(value, (int, float)) else self.take(value, name)

    def take(self, value: Any, name: str, captured: bool = False) -> Any:
        """`value` as the kernel's threads see it; `name` is for reports. captured: as a global or closure variable,
        which a compiled kernel holds as a constant."""
        value = array_of(value)
        found = getattr(value, "__cute_allocations__", None)
        if found is not None and not isinstance(value, type):
            for address, nbytes, label, owner, readonly in found():
                self._check_captured(int(address), name, captured)
                self.memory.add(
                    int(address), int(nbytes), label or name, owner, readonly, None if captured else self.rank
                )
                self._begins[getattr(value, "tensor_map", None)] = int(address)
        if isinstance(value, Scalar):
            found = value.captured(simulated=True) if captured else value.checked(simulated=True)
            number = cast(found, value.dtype)
            return number.make(number.value, value.divisor) if value.dtype.is_integer else number
        if isinstance(value, np.void) and value.dtype.names:
            held = np.array([value])
            if not captured:
                self.records.append((value, held))
            return Record(self.take(held, name, captured), 0)
        if isinstance(value, np.generic):
            return from_python(value)
        if isinstance(value, np.ndarray):
            self._check_elements(value, name)
            if captured:
                value = value.view()
                value.flags.writeable = False
            self.memory.add_array(value, name, None if captured else self.rank)
            held = tracked(value, self.run)
            return stepped(held, self.run) if self.run.shared else held
        if isinstance(value, TensorMapRecord):
            return value.captured(simulated=True) if captured else self._handle(value, name)
        if isinstance(value, tuple):
            return _like(value, (self.take(v, name, captured) for v in value))
        if isinstance(value, DType):
            return value
        if seam.is_frozen_class(type(value)) and dataclasses.is_dataclass(value):
            return self._rebuilt(value, [f.name for f in dataclasses.fields(value)], name, captured)
        if seam.is_struct_class(type(value)):
            return self._rebuilt(value, list(vars(value)), name, captured)
        return value

    def _check_captured(self, address: int, name: str, captured: bool) -> None:
        """Refuse a tensor of a global, or of a closure, that several ranks would share."""
        if captured and self.memory.ranks > 1 and parts_at(address) is None:
            raise CuteError(
                f"{name}: a tensor that the kernel holds as a constant is memory of one GPU, but {self.memory.ranks} "
                f"ranks run it: pass it as an argument, cute.sim.PerRank(x0, x1, …)"
            )

    def _check_elements(self, value: NDArray[Any], name: str) -> None:
        """Refuse an array over a multicast mapping: elements of it are no memory."""
        parts = parts_at(int(value.ctypes.data))
        if parts is not None and value.ctypes.data >= parts.multicast:
            raise CuteError(f"{name}: elements of a multicast mapping: give cute.runtime.from_multicast(x), a tensor")

    def _field(self, value: Any, name: str, captured: bool) -> Any:
        if isinstance(value, np.ndarray):
            self.memory.add_array(value, name, None if captured else self.rank)
            return value
        if isinstance(value, np.generic):  # static, as compiled code has it
            return value
        if isinstance(value, PerRank):
            raise CuteError(
                f"{name}: {value!r} is a field of an object: give the object of each rank, PerRank(a, b, …)"
            )
        return self.take(value, name, captured)

    def _rebuilt(self, value: Any, fields: list[str], name: str, captured: bool) -> Any:
        new = {f: self._field(getattr(value, f), name, captured) for f in fields}
        if all(new[f] is getattr(value, f) for f in fields):
            return value
        copy = object.__new__(type(value))
        for f, v in new.items():
            object.__setattr__(copy, f, v)
        return copy

    def _handle(self, record: TensorMapRecord, name: str) -> int:
        if record in self._handles:
            return self._handles[record]
        # A map may begin before its array, or reach beyond it: where each box lies is checked as it is copied.
        if record.address >= self._begins.get(record, record.address) and self.memory.find(record.address) is None:
            self.memory.add(record.address, record.extent_bytes, name, None)
        handle = self._handles[record] = self.maps.add(record, name)
        return handle
