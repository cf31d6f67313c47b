# SPDX-License-Identifier: Apache-2.0
"""The memories: a CTA's shared window, and the global memory that the arguments brought."""

from __future__ import annotations

import bisect
import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...isa.form.limits import taken_smem, too_much_smem
from ...isa.form.machine import Bytes
from ...seam import CuteError
from ...seam.hooks.driver import DRIVER
from ..ground.access import Region, Rows
from ..ground.clocks import GMEM, SMEM
from ..ground.report import OutOfBoundsError, ReadOnlyError, SimError, count
from .symmetric import POISON, Parts, parts_at

SMEM_BASE = 1024
"""The beginning of dynamic shared memory in the window: the first KiB is the system's, as on sm_90."""
SMEM_WINDOW = 1 << 18  # what the 14 address bits (in 16 bytes) of a matrix descriptor reach


class SharedMemory:
    """The shared memory of one CTA: dynamic from SMEM_BASE up, static from the end of the window down.

    shadow: for a check, what it knows of each byte."""

    space, fence_row, poisoned, tiled = "shared memory", SMEM, True, True

    def __init__(self, cta: Any, dynamic: int) -> None:
        self.cta = cta
        self.target = cta.cluster.run.target
        self.data: Bytes = np.full(SMEM_WINDOW, POISON, np.uint8)
        self.start = int(self.data.ctypes.data)
        self.shadow: Any = None
        self.dynamic = dynamic
        self.static = 0  # from the end of the window down
        self.declared = 0  # bytes of the arrays alone
        self.arrays: dict[Any, NDArray[Any]] = {}

    def free(self) -> None:
        """Give the memory back, and what checks know of it."""
        self.data, self.shadow = np.empty(0, np.uint8), None
        self.arrays.clear()

    @staticmethod
    def missing(region: Region, writers: NDArray[np.int32]) -> int | None:
        """The first byte of a region that nobody has written."""
        return int(np.flatnonzero(writers == 0)[0])

    def name(self, address: int) -> str:
        """An address in words."""
        return self.cta.name(address)  # type: ignore[no-any-return]

    def needs(self, nbytes: int) -> None:
        """The kernel uses the first `nbytes` of dynamic shared memory."""
        self.dynamic = max(self.dynamic, nbytes)
        run = self.cta.cluster.run
        run.smem_need = max(run.smem_need, nbytes)
        self._check_capacity()

    def static_array(self, key: Any, shape: Any, dtype: Any, name: str = "", align: int = 1) -> NDArray[Any]:
        """The array of one `cuda.shared.array` line: the same for all threads of the CTA."""
        found = self.arrays.get(key)
        if found is None:
            nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
            self.declared += -(-nbytes // align) * align
            self._check_capacity()
            align = max(align, 128)
            self.static = -(-(self.static + nbytes) // align) * align
            at = SMEM_WINDOW - self.static
            found = self.arrays[key] = self.data[at : at + nbytes].view(dtype).reshape(shape)
            self.cta.note(at, nbytes, f"{name} (cuda.shared.array)" if name else "cuda.shared.array")
        return found

    def dynamic_array(self, dtype: Any) -> NDArray[Any]:
        nbytes = self.dynamic // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize
        return self.data[SMEM_BASE : SMEM_BASE + nbytes].view(dtype)

    @property
    def taken(self) -> int:
        """The bytes that the CTA takes."""
        return taken_smem(self.dynamic, self.declared)

    def _check_capacity(self) -> None:
        said = too_much_smem(self.target, self.dynamic, self.declared)
        if said is not None:
            raise SimError(said)
        self.cta.cluster.run.check_resident(self.taken)

    def holds(self, address: int, nbytes: int) -> bool:
        """Tell whether the kernel may access these bytes."""
        if address >= SMEM_BASE and address + nbytes <= SMEM_BASE + self.dynamic:
            return True
        return SMEM_WINDOW - self.static <= address and address + nbytes <= SMEM_WINDOW

    def check(self, address: int, nbytes: int, machine: Any) -> None:
        if not self.holds(address, nbytes):
            raise OutOfBoundsError(
                f"shared memory: {machine.describe()} accesses {nbytes} bytes at {address:#x} at {machine.place}, "
                f"but CTA {self.cta.rank} has {self.dynamic} bytes of dynamic shared memory from {SMEM_BASE:#x} on "
                f"and {self.static} static; the nearest buffer is {self.cta.name(address)}"
            )

    def check_rows(self, addresses: NDArray[np.int64], rows: Rows, machine: Any) -> None:
        nbytes = rows.size
        if addresses.size:
            first, end = rows.hull if rows.aligned else (int(addresses.min()), int(addresses.max()) + nbytes)
            self.check(first, nbytes, machine)
            self.check(end - nbytes, nbytes, machine)
            if not rows.aligned:
                bad = int(addresses[addresses % nbytes != 0][0])
                raise OutOfBoundsError(
                    f"misaligned: {machine.describe()} accesses rows of {nbytes} bytes, one at {bad:#x}, which is no "
                    f"multiple of {nbytes}, at {machine.place}"
                )


class Allocation:
    """One range of global memory that the kernel may use. shadow: see `SharedMemory`. rank: whose it is, None where
    that does not matter. open: whether every rank may access it. written: of memory that was made empty, which bytes
    have been written before the launch."""

    __slots__ = ("address", "nbytes", "label", "owner", "readonly", "rank", "open", "written", "data", "shadow")
    space, fence_row, tiled = "global memory", GMEM, False

    def __init__(
        self, address: int, nbytes: int, label: str, owner: Any, readonly: bool = False, rank: int | None = None,
        open: bool = False,
    ) -> None:  # fmt: skip
        self.address, self.nbytes, self.label, self.owner = address, nbytes, label, owner
        self.readonly, self.rank, self.open = readonly, rank, open or rank is None
        self.written: NDArray[np.bool_] | None = None
        self.shadow: Any = None
        self.data: Bytes = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))

    @property
    def end(self) -> int:
        return self.address + self.nbytes

    @property
    def poisoned(self) -> bool:
        """Tell whether some of it was never written."""
        return self.written is not None

    def missing(self, region: Region, writers: NDArray[np.int32]) -> int | None:
        """The first byte of a region that nobody has written; None if there is none."""
        assert self.written is not None
        found = np.flatnonzero((writers == 0) & ~region.get(self.written))  # type: ignore[arg-type]
        return int(found[0]) if found.size else None

    def is_of(self, cluster: Any) -> bool:
        """Tell whether a cluster may access it: it is of its GPU, or all may."""
        return self.open or self.rank == cluster.rank

    def name(self, offset: int) -> str:
        """The byte at an offset, in words."""
        return f"{self.label} + {offset} bytes ({self.address + offset:#x})"

    def region(self, address: int, nbytes: int) -> Region:
        """Consecutive bytes."""
        return Region(address - self.address, address - self.address + nbytes)


def array_range(a: NDArray[Any]) -> tuple[int, int]:
    """The first address of an array's elements, and their extent in bytes."""
    low = high = int(a.ctypes.data)
    if a.size == 0:
        return low, 0
    for n, stride in zip(a.shape, a.strides):
        reach = (n - 1) * stride
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high + a.itemsize - low


def owned(a: NDArray[Any]) -> tuple[int, int] | None:
    """The first address, and how many bytes, of the array whose memory `a` is a view of; None where another library or
    a buffer holds it."""
    root, base = a, a.base
    while base is not None:
        root, base = base, getattr(base, "base", None)
    return array_range(root) if isinstance(root, np.ndarray) and root.flags.owndata else None


class GlobalMemory:
    """The buffers that the kernel was given, by address, and the GPU's memory whose address it holds as a number, as
    far as `DRIVER` knows it. Everything else is out of bounds. before: memory that is reached so is added to it, as it
    was. ranks: the number of GPUs; with several, each buffer is one's."""

    def __init__(self, before: list[tuple[Allocation, Bytes]] | None = None, ranks: int = 1) -> None:
        self._before, self.ranks = before, ranks
        self._held: list[tuple[int, int, str, Any]] | None = None  # the GPU's memory
        self._starts: list[int] = []
        self._buffers: list[Allocation] = []
        self._numbers: list[tuple[int, int, str]] = []
        self._for_all: list[tuple[Parts, str]] = []  # symmetric memory

    def add(
        self, address: int, nbytes: int, name: str, owner: Any, readonly: bool = False, rank: int | None = None
    ) -> None:
        """Allow `nbytes` from `address` on; `owner` keeps the memory alive for the run. Where something is given twice,
        once read-only, it may be written. Without an owner the address is a mere number: what lies there may be
        accessed only if it is another argument's, and else the error says where the address is from. rank: of the
        GPU whose memory it is, if it is not symmetric memory. CuteError: it is another rank's too."""
        if owner is None or not address:
            self._numbers.append((address, nbytes, name))
            return
        parts = parts_at(address)
        if parts is not None:
            self._add_parts(parts, name, owner, readonly)
            return
        held = self.find(address)
        if nbytes == 0:
            return
        if self.ranks > 1 and rank is not None:
            self._check_one_rank(address, nbytes, name, rank)
            name = f"{name} of rank {rank}"
        if held is not None and address + nbytes <= held.end:
            held.readonly = held.readonly and readonly
            return
        start, end, owners = (held.address if held else address), address + nbytes, [owner]
        at = bisect.bisect_left(self._starts, start)
        while at < len(self._buffers) and self._buffers[at].address < end:  # absorb what it overlaps
            end = max(end, self._buffers[at].end)
            owners.append(self._buffers[at].owner)
            readonly = readonly and self._buffers[at].readonly
            del self._starts[at], self._buffers[at]
        self._starts.insert(at, start)
        self._buffers.insert(at, Allocation(start, end - start, name, owners, readonly, rank))

    def _check_one_rank(self, address: int, nbytes: int, name: str, rank: int) -> None:
        """Refuse memory of two ranks."""
        for a in self._buffers:
            if a.address < address + nbytes and address < a.end and a.rank not in (None, rank):
                raise CuteError(
                    f"{name} is given to ranks {a.rank} and {rank}, but no memory is that of two GPUs: give each its "
                    f"own, cute.sim.PerRank(x0, x1, …), or make it by cute.sim.symmetric(shape, dtype, {self.ranks})"
                )

    def _add_parts(self, parts: Parts, name: str, owner: Any, readonly: bool) -> None:
        """Allow symmetric memory: all ranks' parts, and the addresses that stand for them."""
        if any(p is parts for p, _ in self._for_all):
            for start in parts.begins:
                held = self.find(start)
                assert held is not None
                held.readonly = held.readonly and readonly
            return
        if len(parts.begins) != self.ranks:
            raise CuteError(
                f"{name} is symmetric memory of {count(len(parts.begins), 'rank')}, but the launch is of {self.ranks}: "
                f"simulate(kernel, ranks={len(parts.begins)})"
            )
        self._for_all.append((parts, name))
        for rank, start in enumerate(parts.begins):
            label = f"{name} of rank {rank}" if self.ranks > 1 else name
            at = bisect.bisect_left(self._starts, start)
            self._starts.insert(at, start)
            made = Allocation(start, parts.nbytes, label, owner, readonly, rank, True)
            made.written = parts.written_until_now(rank, made.data)
            self._buffers.insert(at, made)

    def everywhere(self, address: int, nbytes: int, machine: Any) -> tuple[int, ...]:
        """Return the addresses in all GPUs' memory that one of a multicast mapping stands for; of one GPU, any address
        is its own memory's. OutOfBoundsError: it is none, or reaches beyond."""
        for parts, name in self._for_all:
            if parts.multicast <= address < parts.multicast + parts.nbytes:
                if address + nbytes > parts.multicast + parts.nbytes:
                    raise OutOfBoundsError(
                        f"global memory: {machine.describe()} accesses {nbytes} bytes at {address:#x} at "
                        f"{machine.place}, which reach beyond the end of {name} ({parts.nbytes} bytes of each rank)"
                    )
                return parts.everywhere(address)
        if self.ranks == 1:
            return (address,)
        held = self.find(address)
        what = f"{address:#x}" if held is None else held.name(address - held.address)
        raise OutOfBoundsError(
            f"{machine.row.name}: {machine.describe()} gives the address {what} at {machine.place}, which is in no "
            f"multicast mapping, so that it stands for one rank's memory alone: give "
            f"cute.runtime.from_multicast(x) of symmetric memory x"
        )

    def add_array(self, a: NDArray[Any], name: str, rank: int | None = None) -> None:
        """Allow an array's elements. OutOfBoundsError: its strides lead out of the memory that it is a view of."""
        address, nbytes = array_range(a)
        start, size = owned(a) or (address, nbytes)
        if nbytes and not start <= address <= address + nbytes <= start + size:
            raise OutOfBoundsError(
                f"{name}: an array of shape {a.shape} and strides {a.strides} bytes spans {nbytes} bytes at "
                f"{address:#x}, but is a view of {size} bytes at {start:#x}"
            )
        self.add(address, nbytes, name, a, not a.flags.writeable, rank)

    def find(self, address: int) -> Allocation | None:
        at = bisect.bisect_right(self._starts, address)
        last = self._buffers[at - 1] if at else None
        if last is not None and address < last.end:
            return last
        return self._reached(address, last, at)

    def _reached(self, address: int, last: Allocation | None, at: int) -> Allocation | None:
        """The GPU's memory in which an address lies, as far as it is not a buffer's. last: the buffer before it. at:
        the place of the next."""
        if self._held is None:
            self._held = [] if self.ranks > 1 else sorted(DRIVER.held(), key=lambda h: h[:2])
        i = bisect.bisect_right(self._held, address, key=lambda h: h[0]) - 1
        start, nbytes, name, owner = self._held[i] if i >= 0 else (0, 0, "", None)
        end = start + nbytes
        if not start <= address < end:
            return None
        start = start if last is None else max(start, last.end)
        end = end if at == len(self._starts) else min(end, self._starts[at])
        found = Allocation(start, end - start, name, owner)
        self._starts.insert(at, start)
        self._buffers.insert(at, found)
        if self._before is not None:
            self._before.append((found, found.data.copy()))
        return found

    def settle(self) -> None:
        """Note what the launch has written of memory that was made empty."""
        for a in self._buffers:
            if a.written is not None:
                a.written |= True if a.shadow is None else a.shadow.writers != 0

    @property
    def buffers(self) -> list[Allocation]:
        """The ranges that the kernel may use, as far as they are known."""
        return self._buffers

    def copies(self) -> list[tuple[Allocation, Bytes]]:
        """All of it, as it is now."""
        return [(a, a.data.copy()) for a in self._buffers]

    def view(self, address: int, nbytes: int, machine: Any) -> Bytes:
        """The memory itself."""
        a = self.at(address, nbytes, machine)
        return a.data[address - a.address : address - a.address + nbytes]

    def at(self, address: int, nbytes: int, machine: Any, write: bool = False) -> Allocation:
        """The allocation that holds these bytes. write: they are to be written."""
        a = self.find(address)
        if a is None or address + nbytes > a.end:
            raise OutOfBoundsError(
                f"global memory: {machine.describe()} accesses {nbytes} bytes at {address:#x} at {machine.place}, "
                f"which is {self.nearest(address, nbytes)}"
            )
        if not a.is_of(machine.cta.cluster):
            raise OutOfBoundsError(
                f"global memory: {machine.describe()} accesses {nbytes} bytes at {a.name(address - a.address)} at "
                f"{machine.place}, which is memory of rank {a.rank} alone: rank {machine.cta.cluster.rank} reaches "
                f"another's memory only if it is symmetric (cute.sim.symmetric), by cute.runtime.from_symmetric(x)"
            )
        if write and a.readonly:
            raise ReadOnlyError(
                f"global memory: {machine.describe()} writes {nbytes} bytes at {a.name(address - a.address)} at "
                f"{machine.place}, which is read-only: pass an array that is writeable, as np.array(x) makes one"
            )
        return a

    def nearest(self, address: int, nbytes: int) -> str:
        """Describe an address by the nearest buffer."""
        stands = next((name for p, name in self._for_all if p.multicast <= address < p.multicast + p.nbytes), None)
        if stands is not None:
            return (
                f"an address of the multicast mapping of {stands}: only multimem instructions "
                f"(cute.utils.distributed) access such; of one rank's memory, cute.runtime.from_symmetric(x) has the "
                f"addresses"
            )
        made_of = next((name for start, size, name in self._numbers if start <= address < start + size), None)
        if made_of is not None:
            why = f"{made_of} is made of a number, not of an array: give cute.runtime.from_dlpack(array)"
            return f"{self._from_nearest(address, nbytes)}; {why}"
        return self._from_nearest(address, nbytes)

    def _from_nearest(self, address: int, nbytes: int) -> str:
        if not self._buffers:
            return "outside of all memory: the kernel was given no array"
        a = min(self._buffers, key=lambda b: max(b.address - address, address + nbytes - b.end))
        if address < a.address:
            where = f"{a.address - address} bytes before the start"
        else:
            where = f"{address + nbytes - a.end} bytes beyond the end"
        return f"{where} of {a.label} ({a.nbytes} bytes at {a.address:#x})"
