# SPDX-License-Identifier: Apache-2.0
"""A host function on several ranks: the code of each in turn up to its next launch, and the launches of all at once."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from greenlet import getcurrent, greenlet

from ..seam import CuteError
from .python.jitted.rebuild import written_function
from .ranks import PerRank

_TOGETHER = (
    "the launches of all ranks are simulated together, the first of each, then the second, and so on: let all launch "
    "the same kernels with the same configuration, and let what differs depend on an argument, as its rank is"
)


class _Launch(NamedTuple):
    """A launch that a rank has come to."""

    kernel: Any
    args: tuple[Any, ...]
    options: dict[str, Any]

    def __str__(self) -> str:
        return f"{written_function(self.kernel).__name__}[{self.options['grid']}, {self.options['block']}]"

    def like(self, other: _Launch) -> bool:
        """Tell whether both are launches of one kernel in one configuration."""
        same = written_function(self.kernel) is written_function(other.kernel)
        return same and self.options == other.options and len(self.args) == len(other.args)


class Hosts:
    """The host functions of all ranks, each on a greenlet."""

    def __init__(self, host: Callable[..., Any], given: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
        self._host, self._given = host, given
        self._results: list[Any] = [None] * len(given)
        self._came: list[_Launch | None] = []

    def launched(self, kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """A rank comes to a launch: let it wait until all ranks have come to one."""
        getcurrent().parent.switch(_Launch(kernel, args, options))

    def run(self, launch: Callable[[Any, tuple[Any, ...], dict[str, Any]], None]) -> list[Any]:
        """Run them to their ends, and each launch that all have come to; gives what each rank's gives."""
        hosts = [greenlet(self._one) for _ in self._given]
        for g in hosts:  # what is set for launches holds there too
            g.gr_context = contextvars.copy_context()
        try:
            self._came = [g.switch(rank) for rank, g in enumerate(hosts)]
            while not all(g.dead for g in hosts):
                launch(*self._together(hosts))
                self._came = [g.switch() for g in hosts]
        finally:
            for g in hosts:
                g.throw()
        return self._results

    def _one(self, rank: int) -> None:
        args, named = self._given[rank]
        self._results[rank] = self._host(*args, **named)

    def _together(self, hosts: list[greenlet]) -> _Launch:
        """Make one launch of all ranks' of theirs. CuteError: they are of other kernels, or some rank has none."""
        first = next(i for i, g in enumerate(hosts) if not g.dead)
        model: Any = self._came[first]
        for rank, (g, came) in enumerate(zip(hosts, self._came)):
            if g.dead or came is None:
                raise CuteError(
                    f"rank {first} launches {model}, but the host function of rank {rank} has ended: {_TOGETHER}"
                )
            if not came.like(model):
                raise CuteError(f"rank {first} launches {model}, and rank {rank} {came}: {_TOGETHER}")
        each = [came.args for came in self._came if came is not None]
        return _Launch(model.kernel, tuple(PerRank(*values) for values in zip(*each)), model.options)
