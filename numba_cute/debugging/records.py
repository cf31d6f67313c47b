# SPDX-License-Identifier: Apache-2.0
"""The records that a debugged kernel leaves, and the exception that they are: the simulator's class and words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..seam import CuteError
from ..seam.ground.places import placed
from ..seam.guards.messages import FalseAssertion, assertion_at, false_assertion
from ..sim.ground.report import DeadlockError, OutOfBoundsError, Place, SimError, UninitializedReadError, count, who
from .pieces import ENDED, FILL, RECORD
from .sites import (
    ASSERTION,
    BLOCK,
    CLUSTER,
    FLAG,
    MBARRIER,
    MISALIGNED,
    NAMED,
    NOT_A_NUMBER,
    OUTSIDE,
    OUTSIDE_SHARED,
    WAITS,
    Site,
)  # fmt: skip

_WINDOW, _COUNT = (1 << 24) - 1, (1 << 20) - 1
"""The bits of a shared-memory address within its block's (a cluster's has the rank above), and of an mbarrier's
count."""
FORM = np.dtype([
    ("kind", "<u4"), ("site", "<u4"), ("block", "<u4", 3), ("thread", "<u4"), ("words", "<u8", 3), ("last", "<u4"),
    ("pad", "<u4"), ("time", "<u8"),
])  # fmt: skip
assert FORM.itemsize == RECORD


@dataclass(frozen=True)
class Range:
    """The memory of an argument. start, stop: addresses. name: the parameter's. dtype: of its elements, None if it is
    not known."""

    start: int
    stop: int
    name: str
    dtype: Any = None

    def at(self, address: int) -> str:
        """Write the element at an address."""
        if self.dtype is None or self.dtype.width % 8:
            return f"{self.name}, byte {address - self.start}"
        return f"{self.name}, element {(address - self.start) // self.dtype.bytes} of its memory"


@dataclass(frozen=True)
class Ran:
    """A launch. kernel: its name. sites: of its code. ranges: the memory of its arguments. limit: seconds that a wait
    may last. cluster: CTAs of one, along x, y and z."""

    kernel: str
    sites: Sequence[Site]
    ranges: Sequence[Range]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    limit: float
    cluster: tuple[int, int, int] = (1, 1, 1)


@dataclass(frozen=True)
class _Cluster:
    size: int


@dataclass(frozen=True)
class _Block:
    """A block for `who`: its rank, and its threads."""

    rank: int
    cluster: _Cluster
    threads: range


@dataclass(frozen=True)
class _Thread:
    index: int
    cta: _Block

    @property
    def lane(self) -> int:
        return self.index % 32


def error_of(data: Any, ran: Ran) -> CuteError | AssertionError | None:
    """Return the exception that records are; None if there is none. data: their memory, of which what was never
    written is 0."""
    records = np.frombuffer(data, FORM)
    records = records[records["kind"] != 0]
    wrong = [r for r in records if int(r["kind"]) & 0xFF not in WAITS]
    if wrong:
        return _wrong(min(wrong, key=lambda r: int(r["time"])), ran)
    return _deadlock(records, ran) if len(records) else None


def _place(r: Any, ran: Ran) -> Place:
    site = ran.sites[int(r["site"])]
    return Place(site.file, site.line, ran.kernel)


def _described(r: Any) -> str:
    t, block = int(r["thread"]), ", ".join(str(int(x)) for x in r["block"])
    return f"thread {t} (warp {t // 32}) of block ({block})"


# ---------------------------------------------------------------------- what is wrong
def _wrong(r: Any, ran: Ran) -> CuteError | AssertionError:
    kind, site, place = int(r["kind"]) & 0xFF, ran.sites[int(r["site"])], _place(r, ran)
    a, b, c = (int(x) for x in r["words"])
    if kind == ASSERTION:
        return _assertion(site, ran, r)
    if kind == OUTSIDE:
        return OutOfBoundsError(
            f"global memory: {_described(r)} accesses {b} bytes at {a:#x} at {place}, which is {nearest(a, ran.ranges)}"
        )
    if kind == MISALIGNED:
        return OutOfBoundsError(
            f"misaligned: {_described(r)} accesses {b} bytes at {a:#x}, which is not a multiple of {b}, at {place}"
        )
    if kind == OUTSIDE_SHARED:
        return OutOfBoundsError(
            f"shared memory: {_described(r)} accesses {b} bytes at {a:#x} at {place}, but the block's shared memory "
            f"ends before {c:#x}"
        )
    assert kind == NOT_A_NUMBER
    held = next((x for x in ran.ranges if x.start <= a < x.stop), None)
    where = "memory" if held is None else held.at(a)
    if b & 0xFFFFFFFF == FILL or (c == 16 and b == FILL & 0x7FFF):
        return UninitializedReadError(
            f"uninitialised: {_described(r)} stores what nobody has written to {where} at {place}: it is what "
            "`cute.debug` fills shared memory with; fill it first, or wait for the copy that does"
        )
    return SimError(f"not a number: {_described(r)} stores a NaN (bits {b:#x}) to {where} at {place}")


def _assertion(site: Site, ran: Ran, r: Any) -> CuteError | AssertionError:
    kind, message = json.loads(site.text.removeprefix("assert "))
    if kind == "AssertionError":
        words = false_assertion(assertion_at(site.file, site.line), message)
    else:
        words = kind + (f": {message}" if message else "")
    text = placed(f"{words} ({_described(r)})", ran.kernel, site.file, site.line)
    return FalseAssertion(text) if kind == "AssertionError" else SimError(text)


def nearest(address: int, ranges: Sequence[Range]) -> str:
    """Say where an address in no argument lies."""
    if not ranges:
        return "in no argument of the kernel"
    near = min(ranges, key=lambda r: max(r.start - address, address - r.stop + 1))
    if address < near.start:
        return f"{near.start - address} bytes before {near.name}, in no argument of the kernel"
    if address < near.stop:
        return f"partly in {near.name}: its memory ends {near.stop - address} bytes behind that"
    words = f"{address - near.stop} bytes behind the end of {near.name}"
    if near.dtype is not None and near.dtype.width % 8 == 0:
        words += f" ({(near.stop - near.start) // near.dtype.bytes} elements of {near.dtype})"
    return f"{words}, in no argument of the kernel"


# ---------------------------------------------------------------------- deadlocks
def _linear(index: Any, extent: tuple[int, int, int]) -> int:
    x, y, z = (int(i) for i in index)
    return (z * extent[1] + y) * extent[0] + x


def _deadlock(records: Any, ran: Ran) -> DeadlockError:
    first = min(records, key=_age)

    def cluster_of(r: Any) -> tuple[int, ...]:
        return tuple(int(b) // c for b, c in zip(r["block"], ran.cluster))

    size = int(np.prod(ran.cluster))
    here = [r for r in records if cluster_of(r) == cluster_of(first)]
    blocks = {tuple(int(b) for b in r["block"]) for r in here}
    lines = [
        f"deadlock in kernel {ran.kernel}, block{'s' if len(blocks) > 1 else ''} "
        f"{', '.join(map(str, sorted(blocks)))}: {count(len(here), 'thread')} waited, one of them for {ran.limit:g} s, "
        "and the kernel was ended"
    ]
    threads = int(np.prod(ran.block))
    groups: dict[Any, list[Any]] = {}
    for r in here:
        key = int(r["kind"]) & 0xFF, _place(r, ran), *map(int, r["words"][:2]), _rank(r, ran)
        groups.setdefault(key, []).append(r)
    held = {rank: _Block(rank, _Cluster(size), range(threads)) for rank in {_rank(r, ran) for r in here}}
    ordered = sorted(groups.values(), key=lambda g: min(map(_age, g)))
    for group in ordered:
        some = [_Thread(int(r["thread"]), held[_rank(r, ran)]) for r in group]
        lines.append(f"  {who(some)} wait{'s' if len(some) == 1 else ''} at {_place(group[0], ran)}")
        lines += [f"    {line}" for line in _cause(group[0])]
    lines += _others(here, ran, held)
    elsewhere = {tuple(int(b) for b in r["block"]) for r in records} - blocks
    if elsewhere:
        lines.append(f"  threads of {count(len(elsewhere), 'other block')} waited too, as of {min(elsewhere)}")
    return DeadlockError("\n".join(lines))


def _age(r: Any) -> tuple[int, int]:
    """Order records: first those of waits that lasted too long."""
    return int(r["kind"]) & ENDED, int(r["time"])


def _rank(r: Any, ran: Ran) -> int:
    return _linear([int(b) % c for b, c in zip(r["block"], ran.cluster)], ran.cluster)


def _others(here: list[Any], ran: Ran, held: dict[int, _Block]) -> list[str]:
    """Threads of the block that did not wait."""
    lines = []
    for rank, block in sorted(held.items()):
        waiting = {int(r["thread"]) for r in here if _rank(r, ran) == rank}
        rest = [_Thread(i, block) for i in block.threads if i not in waiting]
        if rest:
            lines.append(f"  {who(rest)} had ended, or did not wait where it is watched")
    return lines


def missing(word: int, pending: int) -> str:
    """Say what the phase of an mbarrier lacks. word: the object, which the PTX ISA calls opaque; a Hopper GPU has in
    it, negated, the count (bits 1 to 20), bytes (21 to 41) and pending arrivals (43 to 62). pending: by
    mbarrier.pending_count, which tells whether that holds."""
    pending &= _COUNT
    if -(word >> 43) & _COUNT != pending:
        return f"{count(pending, 'arrival')} missing" if pending else "bytes of copies are missing"
    nbytes, total = -(word >> 21) & ((1 << 21) - 1), -(word >> 1) & _COUNT
    said = [f"{pending} of {count(total, 'arrival')} missing"] if pending else []
    if nbytes:
        said.append(f"{nbytes} bytes of copies missing" if nbytes <= _COUNT else "more bytes came than were announced")
    return ", ".join(said) or "nothing is missing: the phase completed as the kernel was ended, or was another one"


def _cause(r: Any) -> list[str]:
    kind, last = int(r["kind"]) & 0xFF, int(r["last"])
    a, b, c = (int(x) for x in r["words"])
    if kind == MBARRIER:
        return [
            f"for the mbarrier at {a & _WINDOW:#x} of shared memory (mbarrier.try_wait), the phase of parity {b} to "
            f"complete: {missing(c, last)}"
        ]
    if kind == NAMED:
        return [f"for named barrier {a}: {c} of {b} threads have arrived"]
    if kind == FLAG:
        return [f"for a flag in global memory at {a:#x}, which is {b}"]
    return [{BLOCK: "for the barrier of the block", CLUSTER: "for the barrier of the cluster"}[kind]]


def hang_of(ran: Ran, records: Any, seconds: float) -> DeadlockError:
    """Return the exception of a kernel that goes on though it was told to end."""
    found = error_of(records, ran)
    words = f"{found}\n  " if found is not None else f"deadlock in kernel {ran.kernel}: "
    return DeadlockError(
        f"{words}the kernel still runs after {seconds:g} s, and cannot be ended: some threads loop or wait where no "
        "instruction lets a wait be left (a loop of the user's without an mbarrier, bar.warp.sync, "
        "griddepcontrol.wait, a grid's barrier); the CUDA context is lost: end the process"
    )
