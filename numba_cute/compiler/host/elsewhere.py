# SPDX-License-Identifier: Apache-2.0
"""Launches that are not made on the GPU: while a simulation lasts, every launch asks who makes it.

What launches is replaced for that time alone, so that launches on a GPU are asked nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from ...seam import CuteError
from ...seam.ground.folding import folding
from ...seam.marks.constexpr import LAUNCHER, Launcher, static_arguments
from ..ground.numba_cuda import ForAll, _LaunchConfiguration
from .configured import Configured
from .launching import Launch


def hand(launcher: Launcher, kernel: Any, args: Any, named: Any, options: dict[str, Any]) -> None:
    """Give a launch to who makes it: what that launches itself goes where it says."""
    usual = {"cluster": None, "cooperative": False, "fallback_cluster": None, "pdl": False}
    token = LAUNCHER.set(None)
    try:
        launcher(kernel, static_arguments(kernel, args, named), {**usual, **options})
    finally:
        LAUNCHER.reset(token)


def _of_launch(self: Launch) -> dict[str, Any]:
    o = self._setting.options
    return {
        "grid": self.grid, "block": self.block, "cluster": self.cluster, "smem": self.smem, "pdl": o.pdl,
        "cooperative": o.cooperative, "fallback_cluster": o.fallback_cluster,
    }  # fmt: skip


def _call(launcher: Launcher, self: Launch, *args: Any, **named: Any) -> None:
    hand(launcher, self.given, args, named, _of_launch(self))


def _prepare(launcher: Launcher, self: Launch, *args: Any, **named: Any) -> Callable[[], None]:
    def launch() -> None:
        now = LAUNCHER.get()
        if now is None:
            raise CuteError("launch: it was prepared in a simulation, which has ended: prepare it again for the GPU")
        _call(now, self, *args, **named)

    return launch


def _configuration(launcher: Launcher, self: Any, *args: Any) -> None:
    hand(launcher, self.dispatcher, args, {}, {"grid": self.griddim, "block": self.blockdim, "smem": self.sharedmem})


THREADS = 256
"""The threads of a block of `kernel.forall(n)` that names none: the GPU, which would be asked, is not there."""


def _for_all(launcher: Launcher, self: Any, *args: Any) -> None:
    block = self.thread_per_block or THREADS
    if self.ntasks:
        options = {"grid": -(-self.ntasks // block), "block": block, "smem": self.sharedmem}
        hand(launcher, self.dispatcher, args, {}, options)


_INSTEAD: list[tuple[Any, str, Callable[..., Any]]] = [
    (Launch, "__call__", _call),
    (Launch, "prepare", _prepare),
    (_LaunchConfiguration, "__call__", _configuration),
    (Configured, "__call__", _configuration),
    (ForAll, "__call__", _for_all),
]
"""Of each that launches: its class, its method, and what a launch is then."""


class Taken:
    """The context of `Launches.taken`; any number of threads may be in it, and each as often as it likes."""

    lock = threading.Lock()
    held = 0
    before: tuple[Any, ...] = ()

    def __enter__(self) -> None:
        with Taken.lock:
            if Taken.held == 0:
                Taken.before = tuple(vars(owner)[name] for owner, name, _ in _INSTEAD)
                for (owner, name, other), own in zip(_INSTEAD, Taken.before):
                    setattr(owner, name, _asking(own, other))
            Taken.held += 1

    def __exit__(self, *_: object) -> None:
        with Taken.lock:
            Taken.held -= 1
            if Taken.held == 0:
                for (owner, name, _instead), own in zip(_INSTEAD, Taken.before):
                    setattr(owner, name, own)


def also(owner: Any, name: str, other: Callable[..., Any]) -> None:
    """Take what another class launches too. owner, name: the class and its method. other: what a launch is then."""
    with Taken.lock:
        _INSTEAD.append((owner, name, other))
        if Taken.held:
            Taken.before += (vars(owner)[name],)
            setattr(owner, name, _asking(vars(owner)[name], other))


def _asking(own: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    @folding
    @wraps(own)
    def ask(self: Any, *args: Any, **named: Any) -> Any:
        launcher = LAUNCHER.get()
        return own(self, *args, **named) if launcher is None else other(launcher, self, *args, **named)

    return ask
