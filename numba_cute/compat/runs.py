# SPDX-License-Identifier: Apache-2.0
"""A run of a file that is written for the CuTe DSL: what its launches and its `cute.compile` do."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..compiler import compile
from ..compiler.host.map_memory import WORKSPACE
from ..compiler.host.result import Compiled, CompiledHost
from ..isa.form.targets import answering_for
from ..seam import CuteError
from ..seam.marks.constexpr import LAUNCHER, is_host
from .as_compiled import CompiledFor
from .launch_errors import launching
from .workspaces import launch_needs


@dataclasses.dataclass
class Run:
    """A run on the CPU. arch: the target whose GPU it stands for. simulates: whether launches are simulated. compiles:
    whether `cute.compile` compiles. checks, seed: those of the simulator. keeps_going: note what is refused while
    kernels are compiled, and go on. sms: how many SMs the GPU has; None: as many as the target's first product.
    captured: where launches go while a graph is captured. launched: how many kernels were simulated. kernels, refused:
    what was compiled, and the errors of what was not. compiling: the seconds that this took."""

    arch: str
    simulates: bool = True
    compiles: bool = True
    checks: Any = True
    seed: int | None = None
    keeps_going: bool = False
    sms: int | None = None
    captured: list[Callable[[], None]] | None = None
    launched: int = 0
    kernels: list[Compiled] = dataclasses.field(default_factory=list)
    refused: list[Exception] = dataclasses.field(default_factory=list)
    compiling: float = 0.0

    def __post_init__(self) -> None:
        if self.sms is not None and self.sms < 1:
            raise CuteError(f"run: sms {self.sms} must be at least 1: the SMs that the GPU is to have")


RUN: ContextVar[Run | None] = ContextVar("RUN", default=None)


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """Have launches and `cute.compile` be a run's."""
    from ..sim import simulate

    def launch(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        if run.captured is not None:
            run.captured.append(lambda: launch(kernel, args, options))
            return
        if not run.simulates:
            _noting(run, lambda: compile(kernel, *args, arch=run.arch))
            return
        simulated = simulate(
            kernel, arch=run.arch, checks=run.checks, seed=run.seed, cluster=options["cluster"],
            cooperative=options["cooperative"], fallback_cluster=options["fallback_cluster"],
        )  # fmt: skip
        run.launched += 1
        given = WORKSPACE.get()
        if given is not None:  # the simulator has memory of its own
            need = launch_needs(kernel, args, options["grid"], run.arch)
            given.give(need) if need else None
        with launching():
            simulated[options["grid"], options["block"], 0, options["smem"]](*args)

    tokens = RUN.set(run), LAUNCHER.set(launch)
    try:
        with answering_for(run.arch, run.sms):
            yield run
    finally:
        RUN.reset(tokens[0])
        LAUNCHER.reset(tokens[1])


def compiled(func: Any, args: tuple[Any, ...], arch: str, held: frozenset[str] = frozenset()) -> Any:
    """Compile for the run that there is, or else for a GPU. held: the parameters whose arguments a partial function
    held."""
    run = RUN.get()
    if run is None:
        return _called_as_compiled(compile(func, *args, arch=arch), held)
    made = _noting(run, lambda: compile(func, *args, arch=run.arch)) if run.compiles else None
    if made is None:
        made = CompiledHost(func, args, ()) if is_host(func) else func
    as_called = _called_as_compiled(made, held)
    if run.compiles and not run.simulates and isinstance(as_called, CompiledFor):
        return _CompiledAlready(as_called.host, as_called.args, as_called.kernels, held)
    return as_called


@dataclasses.dataclass(frozen=True)
class _CompiledAlready(CompiledFor):
    """A function that a run compiled, and that does no more: its calls launch nothing."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        token = LAUNCHER.set(_not_launched)
        try:
            return super().__call__(*args, **named)
        finally:
            LAUNCHER.reset(token)


def _not_launched(*_: Any) -> None:
    given = WORKSPACE.get()
    if given is not None:  # whether it is large enough is not looked at
        given.asked = True


def _called_as_compiled(made: Any, held: frozenset[str]) -> Any:
    """Return what was compiled, with its arguments of each call made what it was compiled for."""
    return CompiledFor(made.host, made.args, made.kernels, held) if type(made) is CompiledHost else made


def _noting(run: Run, make: Callable[[], Any]) -> Any:
    """Compile, and note of a run what was compiled, or refused; gives the result, None of what was refused."""
    began = time.perf_counter()
    try:
        made = make()
    except CuteError as e:
        if not run.keeps_going:
            raise
        run.refused.append(e)
        return None
    finally:
        run.compiling += time.perf_counter() - began
    known = {k.ptx for k in run.kernels}
    found = made.kernels if isinstance(made, CompiledHost) else (made,)
    run.kernels.extend(k for k in found if k.ptx not in known)
    return made
