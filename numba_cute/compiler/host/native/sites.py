# SPDX-License-Identifier: Apache-2.0
"""Sites, where kernels are launched by machine code, and what they call for a launch that it has no plan of."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

from .... import config
from . import known, launcher, oracle, words
from .plans import Plan
from .trusted import LAUNCHES

MOST_PLANS = 64
"""The most plans of a site: launches beyond them go the slow way."""


_SITES: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Site]] = weakref.WeakKeyDictionary()
"""By a kernel as Numba holds one: the sites where it is launched."""


class Site:
    """A place of launches: `call(*args)` launches.

    slow: what is called with the same arguments where no plan suits: it launches, or raises an error. kernel: what is
    launched there, as Numba holds it. again: what launches are compared with, if they are checked."""

    def __init__(self, slow: Callable[..., Any], kernel: Any = None, again: oracle.Again | None = None) -> None:
        self._words = (ctypes.c_int64 * words.SITE_WORDS)(0, id(slow))
        self._keys: set[Any] = set()
        self.plans: list[Plan] = []
        self._before: list[Plan] = []  # one may be in use
        known.begin()
        self.call, self._checks = slow, False
        if LAUNCHES.holds:
            self.call = launcher.function(
                "launch", (ctypes.addressof(self._words), self._words, slow, self.plans, self._before)
            )
            self._checks = again is not None and config.current().check_launches
            if again is not None and self._checks:
                self.call = oracle.checked(self.call, again)
        if kernel is not None:
            _SITES.setdefault(kernel, weakref.WeakSet()).add(self)

    def add(self, plan: Plan | None) -> None:
        """Take a plan: it is tried first from now on, unless there is one like it."""
        if plan is None or not LAUNCHES.holds or plan.key in self._keys or len(self.plans) >= MOST_PLANS:
            return
        self._keys.add(plan.key)
        if self._checks:
            plan.words[words.DRIVER // 8] = oracle.checking(plan.words[words.DRIVER // 8]).address
        plan.words[words.NEXT // 8] = self._words[words.FIRST // 8]
        self.plans.append(plan)
        self._words[words.FIRST // 8] = plan.address

    def forget(self) -> None:
        """Try no plan any more that is known now."""
        self._words[words.FIRST // 8] = 0
        self._keys.clear()
        self._before[:] = self.plans
        self.plans.clear()


_RELATIVES = "_cute_plans"
"""The attribute of a kernel as Numba holds one: its plans, by all that is set of a launch but its grid."""
MOST_RELATIVES = 8


def relate(kernel: Any, key: Any, plan: Plan | None) -> None:
    """Keep a plan for launches of a kernel on other grids. key: what else is set of the launch."""
    if plan is not None and hasattr(kernel, "__dict__"):
        held = kernel.__dict__.setdefault(_RELATIVES, {}).setdefault(key, [])
        if all(p.key != plan.key for p in held):
            held.insert(0, plan)
            del held[MOST_RELATIVES:]


def relatives(kernel: Any, key: Any) -> list[Plan]:
    """Return the plans that were kept, the newest first."""
    held = getattr(kernel, "__dict__", {})
    if _RELATIVES not in held or kernel._launch_config_sensitive:
        return []
    found: list[Plan] = held[_RELATIVES].get(key, [])
    return found


FORGETS: list[Callable[[Any], None]] = []
"""Functions that forget all else that was made for launches of a kernel; each takes the kernel as Numba holds it."""


def forgetting(recompile: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make of the `recompile` of Numba's kernels one after which nothing launches what they were before."""

    def recompiled(self: Any) -> Any:
        for site in _SITES.get(self, ()):
            site.forget()
        getattr(self, "__dict__", {}).pop(_RELATIVES, None)
        for forget in FORGETS:
            forget(self)
        return recompile(self)

    return recompiled


def prepared(plan: Plan, slow: Callable[[], Any], graph: bool = False, stream: int = 0) -> Any:
    """A function of no arguments that launches a plan with those that it was made with. slow: what is called where the
    driver refuses. graph: launch a graph of it. stream: in which it would be
    launched now."""
    if not LAUNCHES.holds:
        return slow
    plan.pack_for_good()
    plan.words[words.AGAIN // 8] = id(slow)
    if graph:
        plan.as_graph(stream)
    return launcher.function("again", (plan.address, plan, slow), launcher.NO_ARGUMENTS)
