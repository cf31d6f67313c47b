# SPDX-License-Identifier: Apache-2.0
"""The simulator as what traced code asks (seam.Backend). Leaves are numbers with their types (arithmetic.number)."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import seam
from ...dtypes import DType, Scalar, Uint32, Uint64
from ...isa.form.instr import THREAD, Instr
from ...isa.form.targets import lacks
from ...isa.rows.sync import bar_warp_sync
from ...seam import CuteError, Regs
from ...seam.guards import facade
from ...seam.guards.messages import SMEM_TWICE
from ...seam.hooks.recording import KINDS, Event, recording
from ..ground.report import OutOfBoundsError
from ..hardware.address_spaces import SMEM_BASE, SMEM_WINDOW
from ..hardware.collective import issue_alone, issue_together, span
from ..hardware.machine import Machine
from ..hardware.special import special_register
from .arithmetic.number import CLASSES, elements, leaf_type
from .arithmetic.operators import cast as numba_cast
from .arrays import OwnArray
from .dropped import check_used
from .unrolled import copy_of
from .values import Values, as_number, printed


class SimBackend(Values):
    """Answers traced code in the simulator; `run.thread` is the thread that asks."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self.arch: str = run.arch
        self._supported: set[int] = set()  # cases, by id: they are the table's own
        self.struct_class: Any = None  # see seam.struct: what stands for a class of structs, set by who rebuilds them

    # structs
    def hold(self, kind: Any, value: Any) -> Any:
        """A value as a field of the annotated type holds it."""
        if not isinstance(kind, DType):
            return value
        if isinstance(value, Scalar):  # a field's default, `cute.Int32(0)`
            value = value.checked(simulated=True)
        held = leaf_type(kind)
        return value if type(value) is CLASSES[held] else numba_cast(value, held)

    def changes(self) -> None:
        """An object of Python's is about to be changed."""

    def leaves_shape(self, error: Exception) -> None:
        """A run-time coordinate lies beyond a tensor's shape."""
        for tell in self.run.watch.leaves_shape:
            tell(self.run.thread, error)

    # instructions
    def check_target(self, instr: Instr, case: dict[str, Any], operands: dict[str, Any]) -> None:
        """An error if the target does not have this form of the instruction."""
        if id(case) in self._supported and not instr.raising:
            return
        lacking = instr.lacking(self.arch, case, operands)
        if lacking is not None:
            what, target = lacking
            raise CuteError(lacks(what, target, self.arch))
        self._supported.add(id(case))

    def announce(self, instr: Instr, case: dict[str, Any], operands: dict[str, Any]) -> None:
        """An instruction is about to be issued."""
        self.check_target(instr, case, operands)
        if self.run.trace is not None:
            self.run.trace.issued(instr.name)

    def issue(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        self.announce(instr, statics, operands)
        if instr.issuer == THREAD:
            return issue_alone(self.run, instr, statics, operands)
        return issue_together(self.run, instr, statics, operands)

    def _machine(self) -> Machine:
        return Machine(self.run, None, [self.run.thread])

    # memory
    def _bytes(self, space: str, address: int, nbytes: int, align: int, write: bool) -> Any:
        """The memory of one access, checked and recorded."""
        m, address = self._machine(), int(address)
        if align > 1 and address % min(align, 16):
            raise OutOfBoundsError(
                f"misaligned: {m.describe()} accesses {space} address {address:#x} at {m.place}, "
                f"which was promised to be a multiple of {align} bytes"
            )
        if space == "generic" and self.run.memory.find(address) is None:
            own = self._numba_array(
                m, address, nbytes, write
            )  # before clusters: the host's heap may lie as low as they
            if own is not None:
                return own
        if space == "gmem" or (space == "generic" and (address >> 32 or self.run.memory.find(address))):
            a = self.run.memory.at(address, nbytes, m, write)
            for tell in self.run.watch.accesses:
                tell(m, a, a.region(address, nbytes), write)
            if self.run.trace is not None:
                self.run.trace.accessed(m, "global", address, nbytes, write)
            return a.data[address - a.address : address - a.address + nbytes]
        rank, at = m.owner(address)
        return m.shared(rank, at, nbytes, write)

    def _numba_array(self, m: Machine, address: int, nbytes: int, write: bool) -> Any:
        """The memory of `cuda.shared.array` or `cuda.local.array` that a tensor was made of, or None."""
        at = address - m.cta.smem.start
        if 0 <= at < SMEM_WINDOW:
            return m.shared(m.cta_rank, at, nbytes, write)
        for array in self.run.thread.locals:
            at = address - array.ctypes.data
            if at >= 0 and at + nbytes <= array.nbytes:
                return array.part(at, nbytes, write)
        return None

    def load(self, dtype: DType, space: str, address: int, count: int, align: int) -> tuple[Any, ...]:
        address = int(address)
        self._machine().polls(address)
        raw = self._bytes(space, address, count * dtype.bytes, align, False)
        make = CLASSES[leaf_type(dtype)].make
        return tuple(map(make, elements(raw.copy().view(dtype.numpy))))

    def store(self, dtype: DType, space: str, address: int, values: Sequence[Any], align: int) -> None:
        data = np.array([as_number(v, dtype) for v in values], dtype.numpy)
        self._bytes(space, address, data.nbytes, align, True)[...] = data.view(np.uint8)

    def swizzled(self, swizzle: Any, address: Any, width: int) -> Any:
        found = swizzle(address) if swizzle.bits else address
        for tell in self.run.watch.swizzles:
            tell(self.run.thread, swizzle, int(found), width)
        return found

    def part_by_swizzle(self, swizzle: Any, addresses: Any, width: int) -> None:
        for tell in self.run.watch.part_by_swizzle:
            tell(self.run.thread, swizzle, list(map(int, addresses)), width)

    def reinterprets(self, address: Any, width: int, other: int) -> None:
        for tell in self.run.watch.reinterprets:
            tell(self.run.thread, int(address), width, other)

    def copy_to_regs(self, space: str, address: int, dst: Regs, align: int) -> None:
        part = self._registers(dst, "written")
        part.view(np.uint8)[...] = self._bytes(space, address, part.nbytes, align, False)

    def copy_from_regs(self, src: Regs, space: str, address: int, align: int) -> None:
        part = self._registers(src, "read")
        self._bytes(space, address, part.nbytes, align, True)[...] = part.view(np.uint8)

    # registers
    def registers(self, dtype: DType, count: int) -> Any:
        """One row of a slab that the threads of a warpgroup share, so that its instructions gather nothing."""
        t = self.run.thread
        unit = t.warpgroup or t.warp
        kind = (dtype.name, count)
        nth = t.files.get(kind, 0)
        t.files[kind] = nth + 1
        slabs = t.cta.slabs
        key = (id(unit), kind, nth)
        entry = slabs.get(key)
        if entry is None:
            entry = slabs[key] = [new_slab(dtype, count, len(unit.threads)), 0]
        entry[1] += 1
        if entry[1] == len(unit.threads):
            del slabs[key]
        return entry[0][t.index - unit.threads[0].index]

    def _registers(self, regs: Regs, verb: str) -> Any:
        """A span of registers that the thread itself is about to read or write."""
        for tell in self.run.watch.touches:
            tell(self.run.thread, regs, verb)
        return span(regs)

    def flag(self) -> Regs:
        t = self.run.thread
        if t.carry is None:
            t.carry = Regs(self.registers(Uint32, 1), Uint32, 0, 1)
            self.write(t.carry, 0)
        return t.carry  # type: ignore[no-any-return]

    def text_register(self, name: str) -> Regs:
        """Return the register of a name that texts of PTX share, of 64 bits."""
        t = self.run.thread
        if name not in t.texts:
            t.texts[name] = Regs(self.registers(Uint64, 1), Uint64, 0, 1)
        return t.texts[name]  # type: ignore[no-any-return]

    # shared memory
    def _calling_line(self) -> Any:
        """The place in the kernel, or in a device function, whose traced call asks for memory; in which copies of
        unrolled loops, and which time."""
        t, frame, called = self.run.thread, sys._getframe(2), None
        while frame.f_back is not None and frame.f_builtins is vars(builtins):  # until the kernel's own, or a device's
            called, frame = frame, frame.f_back
        t.statics = (called, t.statics[1] + 1 if t.statics[0] is called else 0)  # which of those of one traced call
        return frame.f_code, frame.f_lasti, copy_of(frame), t.statics[1]

    def static_smem(self, nbytes: int, align: int) -> int:
        key, smem = (*self._calling_line(), align), self.run.thread.cta.smem
        room = smem.static_array(key, nbytes, np.uint8, align=align)
        start: int = int(room.ctypes.data) - smem.start
        return start

    def tensor_map(self, maps: Any, form: Any, tensor: Any) -> int:
        numbers = tensor.iterator.address, tensor.shape, tensor.stride
        return self.run.maps.of_tensor(form, tensor, seam.known(numbers))  # type: ignore[no-any-return]

    def made_tensor(self, tensor: Any) -> Any:
        return tensor if self.run.takes is None else self.run.takes.made(tensor)

    def map_room(self, count: int) -> tuple[int, int]:
        return self.run.maps.room((self.run.thread.cta, *self._calling_line()), count), 0

    def allocate_smem(self, nbytes: int, align: int) -> int:
        places, key = self.run.smem_places, self._calling_line()
        if self.run.smem_allocator:
            raise CuteError(SMEM_TWICE)
        if key not in places:
            end = max((start + size for start, size in places.values()), default=0)
            places[key] = -(-end // align) * align, nbytes
        start, size = places[key]
        self._needs(start + size)
        return start  # type: ignore[no-any-return]

    def allocates_smem(self) -> bool:
        return bool(self.run.smem_places)

    def at_exit(self, what: Callable[[], None]) -> None:
        self.run.thread.exits.append(what)

    def loses(self, why: Callable[[], str | None]) -> None:
        """Nothing is compiled here."""

    def known_launch(self) -> Any:
        x, y, z = self.run.block
        return self.run.thread.cta.cluster.shape, x * y * z

    def smem_base(self) -> int:
        return SMEM_BASE

    def smem_needs(self, total_bytes: int) -> None:
        if self.run.smem_places:
            raise CuteError(SMEM_TWICE)
        self.run.smem_allocator = True
        self._needs(total_bytes)

    def _needs(self, total_bytes: int) -> None:
        for cta in self.run.thread.cta.cluster.ctas:  # a launch gives every CTA the same
            cta.smem.needs(int(total_bytes))

    def note(self, address: int, nbytes: int, name: str) -> None:
        """Name `nbytes` of shared memory at `address`, for reports."""
        self.run.thread.cta.note(int(address), int(nbytes), name)

    def gave(self, fn: Any, result: Any) -> None:
        check_used(fn, result, facade.caller(sys._getframe(2)))

    def lanes_meet(self) -> None:
        if self.run.clocks and not self.run.watch.tells_lanes_apart:
            bar_warp_sync((1 << 32) - 1)

    def told(self, kind: int, name: str, payload: Any) -> bool:
        recorder, t, run = recording(), self.run.thread, self.run
        if recorder is not None and run.trace is not None:
            x, y, z = t.cta.index
            number = None if payload is None else int(seam.known(payload))
            run.trace.now += 1
            clock, block = run.trace.now, x + run.grid[0] * (y + run.grid[1] * z)
            if block < recorder.blocks:
                sm = special_register(run, t, "smid")
                gpu = t.cta.cluster.gpu
                kernel = run.kernel + gpu.of_rank
                event = Event(clock, clock, sm, (x, y, z), t.index // 32, KINDS[kind], name, number, kernel)
                recorder.told(gpu.serial, t.lane, event)
        return True

    def timeline(self) -> Any:
        raise NotImplementedError("the simulator notes events itself")

    def local_array(self, data: Any) -> Any:
        """A fresh `cuda.local.array`, made where the user's code calls."""
        return data.view(OwnArray)

    def tells(self) -> bool:
        return self.run.thread.index == 0 and not any(self.run.thread.cta.index)

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        print(printed(fmt, args), end="")


def new_slab(dtype: DType, count: int, threads: int) -> Any:
    """Registers of several threads that nobody has written, a row for each."""
    nbytes = count * np.dtype(dtype.numpy).itemsize
    return np.full((threads, nbytes), 0xFF, np.uint8).view(dtype.numpy).copy()
