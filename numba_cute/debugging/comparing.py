# SPDX-License-Identifier: Apache-2.0
"""`compare`: run a kernel in the simulator and on the GPU on the same arguments, and find where they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from ..seam import CuteError
from ..seam.ground.folding import folding
from ..seam.ground.naming import described
from ..seam.marks.constexpr import LAUNCHER, is_host, static_arguments
from ..sim import SimError, simulate
from ..sim.hardware.watch import Check
from .launches import debug
from .memory import names_of


class DifferenceError(SimError):
    """The simulator and the GPU gave different results."""


def compare(
    kernel: Any,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    cluster: Any = None,
    arch: str = "sm_90a",
    timeout: float = 2.0,
) -> Comparison:  # fmt: skip
    """Run a kernel in the simulator and on the GPU: `compare(kernel)[grid, block, stream, smem](*args)`.

    kernel: as for `cute.simulate`; of a function of the host that `cute.jit` marks, `compare(f)(*args)`. args: NumPy
    arrays or torch tensors of the host, and numbers; both runs have copies of them, and they become what the simulator
    made of them. rtol, atol: how far an element may be off: |a - b| <= atol + rtol * |a|; a NaN equals a NaN. cluster,
    arch: as for `cute.simulate`. timeout: as for `cute.debug`, which runs the kernel on the GPU.

    Raises DifferenceError with the first element that differs (the argument, its coordinate, both values) and the line
    of the simulator's last store there; else what either run raises. Elements are counted by the argument's order and
    then by coordinate.

    >>> @cute.kernel
    ... def halved(a):
    ...     a[arch.thread_idx()[0]] /= 2
    >>> a = np.ones(32, np.float32)
    >>> cute.compare(halved)[1, 32](a)
    >>> a[31]
    np.float32(0.5)
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise CuteError(f"compare: {name} {described(value)}: give a number from 0 on")
    debugged = debug(kernel, timeout=timeout, cluster=cluster)
    return Comparison(kernel, float(rtol), float(atol), simulate(kernel, cluster=cluster, arch=arch), debugged)


class Comparison:
    """A kernel to be compared; index it with the launch configuration. `compare` makes it."""

    def __init__(self, kernel: Any, rtol: float, atol: float, simulated: Any, debugged: Any) -> None:
        self.kernel, self.rtol, self.atol = kernel, rtol, atol
        self._simulated, self._debugged = simulated, debugged

    def __getitem__(self, config: Any) -> Callable[..., None]:
        """`[grid, block]`, and optionally stream and the bytes of dynamic shared memory."""
        return partial(self._compare, watched(self._simulated)[config], self._debugged[config])

    def __call__(self, *args: Any) -> None:
        """Compare a function of the host on `args`. CuteError for a kernel."""
        if not is_host(self.kernel):
            raise CuteError("compare(kernel)(…): give the launch configuration: compare(kernel)[grid, block](…)")
        self._compare(self._on_cpu, self._debugged, *args)

    def _on_cpu(self, *args: Any) -> None:
        """Run a function of the host, and simulate what it launches."""

        def launch(kernel: Any, given: tuple[Any, ...], options: dict[str, Any]) -> None:
            known = {name: options[name] for name in ("cluster", "cooperative", "fallback_cluster")}
            own = watched(simulate(kernel, arch=self._simulated.arch, **known))
            own[options["grid"], options["block"], 0, options["smem"]](*given)

        token = LAUNCHER.set(launch)
        try:
            self.kernel(*args)
        finally:
            LAUNCHER.reset(token)

    @folding
    def _compare(self, simulated: Any, debugged: Any, *args: Any, **named: Any) -> None:
        args = args if is_host(self.kernel) else static_arguments(self.kernel, args, named)
        there = tuple(_copied(a) for a in args)
        shadows: list[Any] = []
        token = _KEPT.set(shadows)
        try:
            simulated(*args)
        finally:
            _KEPT.reset(token)
        debugged(*(on for on, _ in there))
        for name, here, (_, back) in zip(names_of(self.kernel, args), args, there):
            if back is not None:
                self._check(name, _array(here), back(), shadows)

    def _check(self, name: str, a: Any, b: Any, shadows: list[Any]) -> None:
        found = first_difference(a, b, self.rtol, self.atol)
        if found is None:
            return
        at, how_many = found
        place = next(filter(None, (place_of(s, address_of(a, at)) for s in reversed(shadows))), "no store there")
        coordinate = ", ".join(map(str, at))
        raise DifferenceError(
            f"{name}[{coordinate}] is {a[at]!s} in the simulator and {b[at]!s} on the GPU (rtol {self.rtol:g}, atol "
            f"{self.atol:g}); {how_many} of {a.size} elements differ, this one first; in the simulator it was stored "
            f"by {place}"
        )


def watched(simulated: Any) -> Any:
    """Return a simulated kernel whose runs are kept."""
    return dataclasses.replace(simulated, checks=(*simulated.checks, Shadows))


def first_difference(a: Any, b: Any, rtol: float, atol: float) -> tuple[tuple[int, ...], int] | None:
    """Return the coordinate of the first element of two arrays that differs, and how many do; None if none does."""
    if a.dtype.kind in "iub":
        x, y = a, b
        wrong = x != y
        if rtol or atol:
            wrong &= np.abs(x.astype(np.float64) - y.astype(np.float64)) > atol + rtol * np.abs(x.astype(np.float64))
    else:
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            near = (x == y) | (np.abs(x - y) <= atol + rtol * np.abs(x)) & np.isfinite(x) & np.isfinite(y)
        wrong = ~(near | (np.isnan(x) & np.isnan(y)))
    places = np.flatnonzero(wrong)
    if not places.size:
        return None
    return tuple(int(i) for i in np.unravel_index(places[0], a.shape)), int(places.size)


def address_of(a: Any, at: tuple[int, ...]) -> int:
    """Return the address of an element of an array."""
    return int(a.ctypes.data + sum(i * s for i, s in zip(at, a.strides)))


def place_of(run: Any, address: int) -> str | None:
    """Say who stored last at an address in a run of the simulator; None if nobody did."""
    held = run.memory.find(address)
    races = next((c for c in run.watch.checks if hasattr(c, "history")), None)
    if held is None or held.shadow is None or races is None:
        return None
    number = int(held.shadow.writers[address - held.address])
    if not number:
        return None
    access = races.history.access(number)
    t = access.threads[0]
    return f"thread {t.index} of block {t.cta.index} at {access.place}"


def _array(value: Any) -> Any:
    """View an argument of the host as a NumPy array."""
    if isinstance(value, np.ndarray):
        return value
    if str(value.dtype) == "torch.bfloat16":
        import ml_dtypes
        import torch

        return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return value.numpy()


def _copied(value: Any) -> tuple[Any, Callable[[], Any] | None]:
    """Copy an argument for the GPU; gives it, and what gives its memory afterwards, or None of what has none."""
    if isinstance(value, np.ndarray):
        copy = value.copy()
        return copy, lambda: copy
    if callable(getattr(value, "cuda", None)) and callable(getattr(value, "data_ptr", None)):
        if value.device.type != "cpu":
            raise CuteError("compare: give tensors of the host: the simulator runs on them")
        there = value.detach().cuda()
        return there, lambda: _array(there.cpu())
    if isinstance(value, (int, float, bool, np.generic)) or not hasattr(value, "__cute_allocations__"):
        return value, None
    raise CuteError(
        f"compare: {type(value).__name__} has memory that belongs to one of the two runs: give arrays, "
        "and make tensors and atoms from them in a host function (`cute.jit`)"
    )


class Shadows(Check):
    """Keeps the runs of launches, whose shadows of memory know who wrote last."""

    name, summary = "shadows", "keeps runs for `cute.compare`"
    lines = True

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        _KEPT.get().append(run)


_KEPT: ContextVar[list[Any]] = ContextVar("_KEPT")
