# SPDX-License-Identifier: Apache-2.0
"""Lanes of a warp that run the kernel's code together, as the hardware sees them: what `sim/lanes` offers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ...isa.form.instr import Instr
from ...isa.form.kinds import Operand
from ..ground.clocks import Standing


class NotTogether(Exception):
    """Lanes do what they can only do one by one: the launch runs again that way."""


class ToBeWarnedOf(NotTogether):
    """Warnings about a run of lanes together, which are found lane by lane. texts: the warnings, for an order in which
    that finds nothing."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__("what is to be warned of is found lane by lane")
        self.texts = texts


class InTurn(NotTogether):
    """Lanes write where the order among them counts, to one place: each is to write when its access is checked."""


def let_others_run(thread: Any, why: str, on: Any) -> None:
    """Let other warps go on where lanes one by one would wait for each other: checks see the same order of warps."""
    cluster = thread.cta.cluster
    if cluster.run.clocks and cluster.ready and not (thread.convoy is not None and thread.convoy.masks):
        cluster.ready.append(thread)
        thread.suspend(why, on, None)


def of_threads(threads: list[Any], made: Callable[[list[Any]], Any]) -> Any:
    """Return a value that depends on some threads alone: made once for those that a convoy computes for."""
    f = threads[0].convoy
    if f is None or f.threads is not threads:
        return made(threads)
    found = f.memory.get(made)
    if found is None:
        found = f.memory[made] = made(threads)
    return found


def standing_of(threads: list[Any]) -> Standing:
    """Return what some threads know now."""
    return of_threads(threads, clocks_of).now()  # type: ignore[no-any-return]


def clocks_of(threads: list[Any]) -> Standing:
    """Return what each thread knows."""
    return Standing([t.clock for t in threads])


def who_waits(run: Any) -> Any:
    """The thread that runs, which is about to wait: of its convoy with those lanes alone that do what leads to it."""
    if run.thread.convoy is not None:
        run.thread.convoy.go_on_apart()
    return run.thread


class Together(Protocol):
    """Lanes on one greenlet, which is their first thread's: the only one that the scheduler sees.

    members: the threads that it is for. threads, lanes: those that it computes for, which are more while it catches up
    with others, and fewer while some do what others do not (`masks`). by_turns: while the lanes do a step one by one,
    why some want to pause. memory: what depends on the lanes alone."""

    members: list[Any]
    threads: list[Any]
    lanes: tuple[int, ...]
    by_turns: list[str] | None
    masks: list[Any]
    memory: dict[Any, Any]
    exits: list[Callable[[], None]]

    def pauses(self, why: str) -> bool:
        """Tell whether a lane that polls need not pause now: it does, if all do, once each has had its turn."""

    def go_on_apart(self) -> None:
        """Let lanes that wait for others of the convoy, which do something else first, wait no longer."""

    def agree(self, values: list[Any]) -> Any:
        """Give the value that most lanes have; the others go on elsewhere."""

    def common(self, value: Any) -> Any:
        """Give a value's one number that most lanes have; the others go on elsewhere."""

    def column(self, value: Any) -> list[Any]:
        """Give a value as each thread has it."""

    def scalars(self, kind: str, value: Any) -> Any:
        """Give a scalar operand as registers hold it: an array, or one number for all lanes."""

    def vectors(self, operand: Operand, value: Any, size: int, row: Instr) -> Any:
        """Give a vector operand of `size` registers as an array (lanes, size)."""

    def forget(self) -> None:
        """Take apart what refers to itself, once the lanes have ended."""

    def results(self, row: Instr, case: dict[str, Any], operands: dict[str, Any], values: list[Any]) -> Any:
        """Give what `issue` gives: `values` are the body's outs for these lanes."""
