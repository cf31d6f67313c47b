# SPDX-License-Identifier: Apache-2.0
"""The tensor maps of a run: those that came as arguments, and those that the kernel made in global memory.

A map in global memory is seen through the tensor-map proxy: as it was when its user last acquired it. The simulator
reports where that differs from what lies there, and where a change was never released (PTX ISA, "membar / fence").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...isa.facts.tensormap import TensorMapRecord
from ...isa.facts.tensormap_bits import BYTES, pack, unpack
from ...seam import CuteError
from ..ground.report import SimError
from .address_spaces import GlobalMemory
from .tma_box import BoundTensorMap, SimTensorMap


class TensorMaps:
    def __init__(self, memory: GlobalMemory) -> None:
        self.memory = memory
        self._arguments: dict[int, SimTensorMap] = {}
        self._of_tensors: dict[Any, int] = {}
        self._rooms: dict[Any, int] = {}
        self._decoded: dict[tuple[int, bytes], SimTensorMap] = {}
        self._acquired: dict[tuple[Any, int], bytes] = {}
        self._changed: dict[int, str] = {}

    def room(self, key: Any, count: int) -> int:
        """The address of memory for `count` maps that the kernel makes. key: the block and the line that asks."""
        if key not in self._rooms:
            raw = np.empty((count + 1) * BYTES, np.uint8)
            start = -raw.ctypes.data % BYTES
            self._rooms[key] = int(raw.ctypes.data) + start
            self.memory.add(self._rooms[key], count * BYTES, "the tensor maps that a line makes", raw)
        return self._rooms[key]

    def add(self, record: TensorMapRecord, name: str) -> int:
        """The address of an argument's map: the kernel reads it there, and only there."""
        raw = np.zeros(2 * BYTES, np.uint8)
        start = -raw.ctypes.data % BYTES
        data = raw[start : start + BYTES]
        data[...] = pack(record)
        address = int(data.ctypes.data)
        self.memory.add(address, BYTES, f"the tensor map of {name}", raw)
        self._arguments[address] = SimTensorMap(record, self.memory, name)
        return address

    def of_tensor(self, form: Any, tensor: Any, numbers: Any) -> int:
        """The address of the map that `form` makes of a tensor of the kernel, whose address, shape and strides are
        `numbers`."""
        key = form, tensor.iterator.dtype, numbers
        found = self._of_tensors.get(key)
        if found is None:
            record = form.record(tensor)
            held = self.memory.find(record.address)
            found = self._of_tensors[key] = self.add(record, "a tensor" if held is None else held.label)
        return found

    def bind(self, address: int, machine: Any) -> BoundTensorMap:
        """The map at an address, for an instruction that uses it."""
        found = self._arguments.get(address)
        if found is None:
            found = self._in_memory(address, machine)
            machine.map_at = address
        return found.on(machine)

    def _bytes(self, address: int, machine: Any) -> bytes:
        if self.memory.find(address) is None:
            raise SimError(
                f"{address:#x} is not a tensor map: {machine.describe()} uses it as one at {machine.place}; pass the "
                "TMA atom to the kernel as an argument"
            )
        return self.memory.view(address, BYTES, machine).tobytes()

    def _in_memory(self, address: int, machine: Any) -> SimTensorMap:
        now = self._bytes(address, machine)
        seen = self._acquired.get((machine.cta, address))
        for tell in machine.run.watch.uses_map:
            tell(machine, address, seen, now)
        found = self._decoded.get((address, now))
        if found is None:
            try:
                record = unpack(np.frombuffer(now, np.uint8))
            except CuteError as e:
                raise SimError(f"the tensor map at {address:#x}, used at {machine.place}: {e}") from e
            found = self._decoded[address, now] = SimTensorMap(record, self.memory, f"the map at {address:#x}")
        return found

    def event(self, kind: str, address: int | None, machine: Any) -> None:
        """changed: the kernel replaced a field in global memory; released, acquired: by the fences."""
        if kind == "changed":
            if address in self._arguments:
                raise SimError(
                    f"tensormap.replace on a kernel's argument, at {machine.place}: arguments are constant; copy the "
                    "map to global memory first (cpasync.copy_tensormap)"
                )
            self._changed[address] = f"{machine.describe()} at {machine.place}"  # type: ignore[index]
        elif kind == "released":
            if address is None:
                self._changed.clear()
            else:
                self._changed.pop(address, None)
        elif address not in self._arguments:
            assert address is not None
            for tell in machine.run.watch.acquires_map:
                tell(machine, address, self._changed.get(address))
            self._acquired[machine.cta, address] = self._bytes(address, machine)
            for tell in machine.run.watch.accesses:
                a = self.memory.at(address, BYTES, machine)
                tell(machine, a, a.region(address, BYTES), False, remember=False)
