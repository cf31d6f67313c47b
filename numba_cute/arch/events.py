# SPDX-License-Identifier: Apache-2.0
"""Events that a kernel sends to a timeline: ranges and marks, with the clock, the SM and the warp (`cute.timeline`).

A warp tells what its lowest active lane tells. While nothing is recorded, nothing is compiled."""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import Uint32, Uint64
from ..seam import CuteError, Int, current, traced
from ..seam.ground.naming import is_unicode
from ..seam.hooks.recording import MARK, POP, PUSH, number_of, recording
from .index import lanemask_lt

__all__ = ["mark", "range_pop", "range_push"]

HEADER, RECORD = 16, 32
"""Bytes of a warp's part of the buffer: how many events it told; then each: (clock, timer, SM and what, payload)."""
HAS_PAYLOAD = 8


@traced
def range_push(name: str, payload: Int | None = None) -> None:
    """Tell a timeline that this warp begins what `name`, a static text, says. Ranges of a warp lie in each other:
    `range_pop` ends the last that was begun. payload: an integer to show with it, such as the index of a tile. Any
    thread; of a warp's the lowest active one. Raises CuteError for a name that is no text. PTX while a timeline is
    recorded mov %clock64, mov %globaltimer, ld and st, sm_70; otherwise none.

    >>> def kernel():
    ...     cute.range_push("load")
    ...     cute.range_pop()
    >>> [r.name for r in cute.timeline(cute.simulate(kernel)[1, 64]).ranges]
    ['load', 'load']
    """
    _tell(PUSH, name, payload, "range_push")


@traced
def range_pop() -> None:
    """Tell a timeline that this warp ends the range that it began last. Any thread, as `range_push`. PTX as there.

    >>> def kernel():
    ...     cute.range_push("outer")
    ...     cute.range_push("inner")
    ...     cute.range_pop()
    ...     cute.range_pop()
    >>> sorted(r.name for r in cute.timeline(cute.simulate(kernel)[1, 32]).ranges)
    ['inner', 'outer']
    """
    _tell(POP, "", None, "range_pop")


@traced
def mark(name: str, payload: Int | None = None) -> None:
    """Tell a timeline that this warp has come to what `name`, a static text, says. payload: an integer to show with it.
    Any thread, as `range_push`. Raises CuteError for a name that is no text. PTX as there.

    >>> def kernel():
    ...     cute.mark("seen")
    >>> cute.timeline(cute.simulate(kernel)[1, 32]).events[0].name
    'seen'
    """
    _tell(MARK, name, payload, "mark")


def _tell(kind: int, name: str, payload: Any, what: str) -> None:
    if not isinstance(name, str) or not is_unicode(name):
        raise CuteError(f"{what}: name {name!r} must be a text that is known when the kernel is compiled")
    if recording() is None:
        return
    b = current()
    if b.told(kind, name, payload):
        return
    clock, timer = isa.clock64(), isa.globaltimer()
    below = Uint32(isa.activemask()) & lanemask_lt()
    b.when(b.compare("==", below, 0), lambda: _write(kind, name, payload, clock, timer))


def _sreg(register: str) -> Any:
    return Uint32(isa.sreg(register=register))


def _write(kind: int, name: str, payload: Any, clock: Any, timer: Any) -> None:
    """Write an event to the part of the launch's buffer that the warp has. By one lane."""
    b = current()
    about = b.timeline()
    (start,) = b.load(Uint64, "gmem", about, 1, 8)
    most, blocks = b.load(Uint32, "gmem", about + 8, 2, 8)
    block = _sreg("ctaid.x") + _sreg("nctaid.x") * (_sreg("ctaid.y") + _sreg("nctaid.y") * _sreg("ctaid.z"))
    threads = _sreg("ntid.x") * _sreg("ntid.y") * _sreg("ntid.z")
    thread = _sreg("tid.x") + _sreg("ntid.x") * (_sreg("tid.y") + _sreg("ntid.y") * _sreg("tid.z"))
    warp = block * ((threads + 31) // 32) + thread // 32
    part = start + Uint64(warp) * (Uint64(most) * RECORD + HEADER)

    def record(nth: Any) -> None:
        at = part + HEADER + Uint64(nth) * RECORD
        what = kind | (0 if payload is None else HAS_PAYLOAD) | number_of(name) << 4
        where = Uint64(Uint32(isa.sreg_volatile(register="smid")))
        b.store(Uint64, "gmem", at, [Uint64(clock), Uint64(timer)], 16)
        b.store(Uint64, "gmem", at + 16, [where | Uint64(what << 32), Uint64(0 if payload is None else payload)], 16)

    def write() -> None:
        (told,) = b.load(Uint32, "gmem", part, 1, 16)
        b.store(Uint32, "gmem", part, [told + 1], 16)
        b.when(b.compare("<", told, most), lambda: record(told))

    b.when(b.compare("<", block, blocks), lambda: b.when(b.compare("!=", start, 0), write))
