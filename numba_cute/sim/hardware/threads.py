# SPDX-License-Identifier: Apache-2.0
"""Threads, and those that issue some instructions together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...isa.form.instr import CTA, WARP, WARPGROUP
from ..ground.report import Place, no_warpgroup, place_of
from .inflight import Groups
from .together import NotTogether, Together

if TYPE_CHECKING:
    from .grid import Cta


class Unit:
    """Threads that issue some instructions together: a warp, a warpgroup, a CTA."""

    __slots__ = ("kind", "threads", "meets", "groups", "registers", "wanted")

    def __init__(self, kind: str, threads: list[Thread]) -> None:
        self.kind, self.threads = kind, threads
        self.meets: dict[Any, Any] = {}
        self.groups: dict[str, Groups] = {}
        self.registers: int | None = None  # of each thread of a warp, once setmaxnreg was executed
        self.wanted: int | None = None  # of each thread of a warp, while it waits for them


class Wait:
    """The reason why a thread does not run."""

    __slots__ = ("why", "on", "machine", "ready")

    def __init__(self, why: str, on: Any, machine: Any, ready: Callable[[], bool] | None) -> None:
        self.why, self.on, self.machine, self.ready = why, on, machine, ready


_MADE: dict[str, Callable[[], Any]] = {
    "groups": dict, "polls": dict, "files": dict, "texts": dict, "statics": lambda: (None, 0),
    "unwritten": dict, "locals": list, "exits": list, "states": set,
}  # fmt: skip
"""The fields of a new thread that are not None."""


class Thread:
    """One CUDA thread. What it has besides its place is made when it is first asked for: threads that run together
    are seldom asked."""

    __slots__ = ("cta", "index", "tid", "lane", "warp", "warpgroup", "greenlet", "wait", "groups", "clock",
                 "cluster_phase", "files", "polls", "convoy", "carry", "texts", "statics",
                 "doubt", "polled", "awaits", "unwritten", "undefined", "received", "locals", "states",
                 "exits")  # fmt: skip

    warp: Unit
    warpgroup: Unit | None
    greenlet: Any
    wait: Wait | None
    convoy: Together | None  # those it runs together with, if there are any
    groups: dict[str, Groups]
    clock: Any  # what it knows (see `clocks`), if a check needs it
    cluster_phase: int | None
    polls: dict[Any, int]  # what it read last, and how often in a row
    polled: Any  # what the atomic is at that it repeats, or what it reads again and again: (memory, address)
    awaits: int | None  # the rank that it waits for, if it says so
    doubt: Any  # the barrier that it tested last, where that said nothing new, and a note of it
    files: dict[Any, int]  # register files of each kind given so far
    carry: Any  # the register of add_cc and its like
    texts: dict[str, Any]  # registers that texts of PTX declare, by name
    statics: tuple[Any, int]  # the traced call that last asked for static memory, and how often
    unwritten: dict[int, Any]  # its register files with undefined elements (see `unwritten`)
    undefined: Any  # why operands of the instruction that it comes to are (see `spread`)
    received: Any  # the same of what it gave
    locals: list[Any]  # local arrays of which tensors were made
    exits: list[Callable[[], None]]  # what it does at the end
    states: set[int]  # in which it has paused (see `progress`)

    def __init__(self, cta: Cta, index: int, tid: tuple[int, int, int]) -> None:
        self.cta, self.index, self.tid, self.lane = cta, index, tid, index % 32

    def __getattr__(self, name: str) -> Any:
        if name not in Thread.__slots__:
            raise AttributeError(name)
        made = _MADE[name]() if name in _MADE else None
        setattr(self, name, made)
        return made

    def run(self, body: Callable[..., Any], args: Iterable[Any]) -> None:
        """Run a kernel's body, and what is to be done at its end."""
        body(*args)
        now = self.cta.cluster.run.thread  # the first of those that are still together
        for at_exit in self.exits if now.convoy is None else now.convoy.exits:
            at_exit()

    def unit(self, issuer: str, what: str) -> Unit:
        """Those with whom this thread issues an instruction of that issuer."""
        if issuer == WARP:
            return self.warp
        if issuer == WARPGROUP:
            checked = self.cta.cluster.run.watch.lacks_warpgroup if what == "setmaxnreg" else (no_warpgroup,)
            for refused in checked if self.warpgroup is None else ():
                raise refused(self, what)
            return self.warpgroup if self.warpgroup is not None and checked else self.warp
        return self.cta.unit if issuer == CTA else self.cta.cluster.unit

    def suspend(self, why: str, on: Any, machine: Any, ready: Callable[[], bool] | None = None) -> None:
        """Let others run until `Cluster.wake` (this is called on the thread's own greenlet)."""
        if self.convoy is not None and (self.convoy.by_turns is not None or self.convoy.masks):
            raise NotTogether(f"{why}: one lane of those that run together cannot wait alone")
        self.wait = Wait(why, on, machine, ready)
        if self.cta.cluster.run.trace is not None:
            self.cta.cluster.run.trace.waits(self)
        self.cta.cluster.scheduler.switch()

    @property
    def place(self) -> Place:
        """Return the place where the thread is suspended."""
        return place_of(self.greenlet.gr_frame)
