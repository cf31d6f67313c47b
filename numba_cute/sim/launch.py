# SPDX-License-Identifier: Apache-2.0
"""`simulate`: run a kernel's own Python on the CPU, one greenlet a CUDA thread."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np

from .. import seam
from ..isa.form.limits import (
    bounds_of,
    check_cluster,
    check_launch,
    check_made,
    enough_smem,
)
from ..isa.form.targets import answering_for, named
from ..seam import CuteError
from ..seam.ground.bar import Bar
from ..seam.ground.collecting import paced, seldom
from ..seam.ground.folding import FOLDED, folding
from ..seam.hooks.engines import COMPILER
from ..seam.hooks.recording import recording
from ..seam.marks.constexpr import Launcher, is_host, static_arguments
from ..seam.marks.launches import launching
from ..typed.meetings import Meetings
from .arguments import Arguments
from .checks import chosen
from .checks.dependents import SEQUENCE, Sequence, carried
from .exploring.recorder import Plan, Recorder
from .given import dim3, integer, on_host
from .ground.report import SimError, SimWarning, block
from .ground.user_errors import launch_error, thread_error
from .hardware import cooperative
from .hardware.address_spaces import GlobalMemory
from .hardware.causes import causes_first, notes_first
from .hardware.grid import Cluster, Run
from .hardware.schedule import Choices
from .hardware.stuck import watched
from .hardware.threads import Thread
from .hardware.tma_table import TensorMaps
from .hardware.together import NotTogether, ToBeWarnedOf
from .hardware.watch import Check
from .host_ranks import Hosts
from .lanes.convoy import beginning
from .lanes.lane_backend import LaneBackend
from .lanes.lane_stand_in import LaneStandIn
from .lanes.replayable import replayable, uses_library
from .options import fallback_of, outputs_of, sms_of
from .orders import PROOFS, ROUNDS, Exploration, Proving, Snapshot, restore
from .outputs import check_written
from .prove.proof import Proof, proof
from .prove.prover import Prover
from .prove.recording import Recording
from .prove.repeating import Repeating
from .python.backend import SimBackend
from .python.jitted import masks
from .python.jitted.rebuild import Rebuilder, function_of, python_function, taken, written_function
from .python.numba_stand_in import CudaStandIn
from .ranks import NO_PROOF, Given, number_of, of_ranks
from .sharing import TOGETHER_FAILED, is_fault, note_of, tell_alone, to_be_proved, why_alone
from .trace import Trace

MODES = ("lazy", "eager", "random")


@folding
def simulate(
    kernel: Any, *, cluster: Any = None, seed: int | None = None, arch: str = "sm_90a", async_mode: str | None = None,
    progress: bool | None = None, checks: Any = True, trace: Trace | None = None, compile: bool | str = False,
    cooperative: bool = False, fallback_cluster: Any = None, prove: bool = False,
    sms: int | None = None, outputs: Any = (), pdl: bool = False, ranks: int = 1,
) -> Simulated:  # fmt: skip
    """A kernel that runs in the simulator: `simulate(kernel)[grid, block, stream, smem](*args)`.

    kernel: a @cuda.jit kernel; a plain Python function, which is not typed as a kernel is; or what launches some, a
    function, method or object that `cute.jit` marks. cluster: CTAs of a cluster, an int or up to three (None: its own).
    seed: None for a fixed order of threads; an int permutes warps, of 8 the multiples single threads, and copies then
    complete at random. arch: the target whose instructions the kernel may use. async_mode: when copies and wgmma
    happen: "lazy" (at the last moment; the default without a seed), "eager" (at once) or "random" (the default with
    one). progress: show a bar over clusters (None: after three seconds, at a terminal and in a notebook). checks: True
    for all; False for none (only barriers, bounds and deadlocks, as fast as can be); the names of some (see
    `sim.checks`), or names after a "-", as "-exits": all but these. trace: a `sim.Trace`, which collects counters and a
    timeline. compile: True to compile the kernel for `arch` too, before each
    launch, or another target for that: what libNVVM and the assembler refuse.
    cooperative, fallback_cluster: as for `cute.launch`: a grid of which no GPU of the target holds all CTAs at once is
    refused; clusters have the shape `cluster` where the target has such, else the other, and with a seed either.
    prove: raise a SimError, with the two steps, if another order of threads and copies could do something else than
    this one (see `Simulated.prove`).
    sms: how many SMs the GPU has (None: as many as the largest that is known of `arch`): CTAs that wait for one that
    finds no room any more are a DeadlockError.
    outputs: names of the kernel's parameters, arrays or tensors each element of which the kernel is to write: an
    UninitializedReadError says which it did not.
    pdl: a programmatic dependent launch, as for `cute.launch`: in a `simulate.sequence()` it may begin before the one
    before it has ended.
    ranks: how many GPUs run it, each the whole grid, at the same time (see `sim.PerRank` and `sim.symmetric`).
    NumPy arrays are used in place. Errors are SimError and its kinds (DeadlockError, RaceError, …).

    >>> def kernel(x):
    ...     i = arch.thread_idx()[0]
    ...     x[i] = 2 * x[i]
    >>> x = np.arange(4)
    >>> cute.simulate(kernel)[1, 4](x)
    >>> x
    array([0, 2, 4, 6])
    """
    if async_mode is not None and async_mode not in MODES:
        raise CuteError(f"simulate: async_mode {async_mode!r} is none of {', '.join(map(repr, MODES))}")
    seed = int(seed) if isinstance(seed, np.integer) else seed
    if seed is not None and type(seed) is not int:
        raise CuteError(f"simulate: seed {seed!r} is not an int (or None, for the order in which threads come)")
    named(arch)  # an error if it is not the name of a target
    if trace is not None and not isinstance(trace, Trace):
        raise CuteError(f"simulate: trace {trace!r} is no cute.sim.Trace; make one, pass it, and read it after the run")
    if not isinstance(compile, (bool, str)):
        raise CuteError(f"simulate: compile {compile!r} is neither True, False nor a target like 'sm_90a'")
    if isinstance(compile, str):
        named(compile)
    if async_mode == "random" and seed is None:
        seed = 0
    for option, given in (("cooperative", cooperative), ("prove", prove), ("pdl", pdl)):
        if type(given) is not bool:
            raise CuteError(f"simulate: {option} {given!r}: give True or False")
    fallback = fallback_of(cluster, fallback_cluster)
    if cluster is None and not is_host(kernel):
        cluster = getattr(written_function(kernel), "__cute_cluster__", None)
    shape = dim3("cluster", 1 if cluster is None else cluster)
    check_cluster(named(arch), fallback or shape)
    watching = chosen(checks)
    written, gpus = outputs_of(outputs, kernel, watching), number_of(ranks, "simulate")
    run = function_of(kernel)
    target = (arch if compile else None) if isinstance(compile, bool) else compile
    return Simulated(
        run, shape, seed, arch, async_mode, progress, watching, trace, cluster is not None, target, cooperative,
        fallback, prove, sms_of(sms), written, pdl, gpus,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Simulated:
    """A kernel to be simulated; index it with the launch configuration. `simulate` makes it.

    kernel: what runs. cluster, seed, arch, mode, progress, checks, trace: as for `simulate`, with defaults filled in.
    clustered: whether the launch names a cluster, if only of one CTA. target: for which the kernel is compiled too,
    None for none. cooperative: all CTAs are to run at once. fallback: the shape of other clusters, None for none.
    proves: what is not proved is an error. sms: of the GPU; None: of the largest that is known.
    outputs: parameters that are to be written. pdl: a programmatic dependent launch. ranks: how many GPUs run it.

    >>> simulated = cute.simulate(lambda: print(arch.block_idx()[0]))
    >>> type(simulated).__name__
    'Simulated'
    >>> simulated[2, 1]()
    0
    1
    """

    kernel: Any
    cluster: tuple[int, int, int]
    seed: int | None
    arch: str
    mode: str | None
    progress: bool | None
    checks: tuple[type[Check], ...]
    trace: Trace | None
    clustered: bool = True
    target: str | None = None
    cooperative: bool = False
    fallback: tuple[int, int, int] | None = None
    proves: bool = False
    sms: int | None = None
    outputs: tuple[str, ...] = ()
    pdl: bool = False
    ranks: int = 1

    @folding
    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run a host function (`cute.jit`, or an object whose `__call__` is one) on `args` and `named`, and simulate
        what it launches; of several ranks, on each, with the nth launches of all at once, and gives a list of what
        each gives. CuteError for a kernel, and for ranks that launch different kernels."""
        if is_host(self.kernel) and self.ranks > 1:
            hosts = Hosts(self.kernel, of_ranks(args, named, self.ranks))
            with self._launches(hosts.launched):
                return hosts.run(self._launch_for)
        if is_host(self.kernel):
            with self._launches():
                return self.kernel(*args, **named)
        raise CuteError(
            "simulate(kernel)(…): give the launch configuration, as for Numba's kernels: "
            "simulate(kernel)[grid, block](…)"
        )

    @folding
    def __getitem__(self, config: Any) -> Callable[..., None]:
        """`[grid, block]`, and optionally stream and the bytes of dynamic shared memory."""
        return partial(self._launch, *self.configured(config))

    def explore(self, most: int = 1000, deviations: int = 2, choices: dict[int, Any] | None = None) -> Exploration:
        """The kernel in every order of its threads, atomics and copies that may differ from those that have run, at
        most `most`: `simulate(kernel).explore()[grid, block](*args)` gives an `Explored`: how many ran, and whether
        these stand for all. Where what differs is not known (clusters that meet in memory, polling), warps and blocks
        go on in the orders that differ from the usual one in at most so many `deviations`. Each begins with the memory
        as it is, which stays so. choices: of a report, to see its run again, and only that."""
        for name, value in (("most", most), ("deviations", deviations)):
            if integer(value) is None or value < 0:
                raise CuteError(f"explore: {name} {value!r} is not a number of orders or deviations from 0 on")
        return Exploration(self, most, deviations, choices)

    def prove(self, rounds: bool = False) -> Proving:
        """Run the kernel once, and tell whether every order of its threads and copies does what that run did:
        `simulate(kernel).prove()[grid, block](*args)` gives a `Proof`; of a host function, `prove()(*args)` gives one
        for each launch. The memory is as that run leaves it, and its errors are raised. rounds: whether to look for
        steps that the threads do again and again, with any number of which no order of the first cluster hangs
        (`Proof.rounds`)."""
        if type(rounds) is not bool:
            raise CuteError(f"prove: rounds {rounds!r}: give True or False")
        return Proving(self, rounds)

    def configured(self, config: Any) -> Any:
        """Return the launch configuration `config` as (grid, block, smem)."""
        config = config if isinstance(config, tuple) else (config,)
        if not 2 <= len(config) <= 4:
            raise CuteError(f"simulate(...)[{config}]: give grid, block, and optionally stream and smem")
        smem = integer(config[3]) if len(config) > 3 else 0
        if smem is None or smem < 0:
            raise CuteError(f"smem {config[3]!r}: bytes of dynamic shared memory are a number from 0 on")
        grid, block = dim3("grid", config[0]), dim3("block", config[1])
        check_launch(
            named(self.arch), self._options, grid=grid, block=block, cluster=self.cluster, smem=smem,
            cooperative=self.cooperative, fallback_cluster=self.fallback,
        )  # fmt: skip
        return grid, block, smem

    @property
    def _options(self) -> dict[str, Any]:
        """The options of `cuda.jit`; a plain function has none."""
        return getattr(self.kernel, "targetoptions", {})

    @contextmanager
    def _launches(self, launcher: Launcher | None = None) -> Iterator[None]:
        """Simulate, as this one says, what is launched meanwhile, or have another `launcher` do so."""
        with launching(launcher or self._launch_for), answering_for(self.arch, self.sms), sequence():
            yield

    def _launch_for(self, kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Simulate a kernel that a host function launches."""
        own = simulate(
            kernel, cluster=options["cluster"], seed=self.seed, arch=self.arch, async_mode=self.mode,
            progress=self.progress, checks=[c.name for c in self.checks], trace=self.trace,
            compile=self.target or False, cooperative=options["cooperative"],
            fallback_cluster=options["fallback_cluster"], prove=self.proves, sms=self.sms,
            pdl=options.get("pdl", False), ranks=self.ranks,
        )  # fmt: skip
        own[options["grid"], options["block"], 0, options["smem"]](*args)

    def _launch(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], smem: int, *args: Any, **named: Any
    ) -> None:
        try:
            with answering_for(self.arch, self.sms), seldom, paced():
                self._run(grid, block, smem, args, named)
        except Exception as e:  # the user's own passes as it is
            with FOLDED:
                raise launch_error(e, written_function(self.kernel)) from e.__cause__

    def _run(self, grid: tuple[int, int, int], block: tuple[int, int, int], smem: int, args: Any, named: Any) -> None:
        """The run of a launch, in its order and those of the further seeds."""
        given = self._given(args, named)
        if self.ranks > 1 and to_be_proved(self):
            raise CuteError(NO_PROOF)
        self._compiled_too(grid, block, given)
        if any(g % c for g, c in zip(grid, self.cluster)):
            raise CuteError(f"grid {grid} is not a multiple of the cluster {self.cluster}")
        further = () if self.seed is not None else FURTHER_SEEDS.get()
        before: Snapshot = []
        launches = SEQUENCE.get()
        if launches is not None:
            launches.begin(written_function(self.kernel).__name__, self.pdl)
        run = self._replayably(grid, block, smem, given, self.seed, before if further else None)
        after = [(allocation, allocation.data.copy()) for allocation, _ in before]
        if launches is not None:
            launches.end(run)
        try:
            for seed in further:
                restore(before)
                self._replayably(grid, block, smem, given, seed)
        finally:
            restore(after)
        run.memory.settle()

    def _given(self, args: tuple[Any, ...], named: dict[str, Any]) -> Given:
        """Return the arguments of each rank."""
        each = of_ranks(args, named, self.ranks)
        return [on_host(static_arguments(self.kernel, by_place, by_name)) for by_place, by_name in each]

    def _compiled_too(self, grid: tuple[int, int, int], block: tuple[int, int, int], given: Given) -> None:
        """Compile the kernel, if that was asked for: what it takes must fit the launch."""
        for args in given:
            if self.target is None:
                break
            made = COMPILER.compile(self.kernel, args, self.target)
            check_made(made, grid, block, cooperative=self.cooperative)

    def _judged(self, given: Given) -> Meetings:
        """Have the front end judge a kernel of `cuda.jit`, and tell where it converts values."""
        found: Meetings = {}
        for args in given if hasattr(self.kernel, "py_func") else ():
            for code, versions in COMPILER.check(self.kernel, args, self.arch).items():
                found[code] = found[code] | versions if code in found else versions
        return found

    def _replayably(self, grid: Any, block: Any, smem: int, given: Given, seed: int | None, before: Any = None) -> Run:
        """One run, whose error says what runs the same order again."""
        try:
            return self.once(grid, block, smem, given, seed, before=before)
        except SimError as e:
            if hasattr(self.kernel, "py_func"):
                notes_first(e, COMPILER.likely_wrong(self.kernel, given[0], self.arch))
            raise _replayable(e, seed, self.mode) from e.__cause__

    def once(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], smem: int, given: Given,
        seed: int | None, deviations: dict[int, int] | Plan | None = None, before: Snapshot | None = None,
    ) -> Run:  # fmt: skip
        """Run once, in one order.

        grid, block, smem: the launch configuration. given: the kernel's arguments, of each rank. seed: of the order,
        None: the usual one. deviations: choices other than the seed's, by step, or the order of all events. before: is
        to hold the memory as it is now.
        """
        meetings = self._judged(given)
        fn, given = python_function(self.kernel), [taken(self.kernel, args)[1] for args in given]
        alone = why_alone(self, block, seed, deviations)
        read, alone = (None, alone) if alone else replayable(fn, tuple(chain(*given)))
        if read is not None and not uses_library(fn):
            read, alone = None, "it calls nothing of numba_cute, whose operations alone are faster for many at once"
        if read is None:
            tell_alone(fn.__name__, alone)
            return self._once(grid, block, smem, given, meetings, seed, deviations, before, False, alone=alone)
        held: Snapshot = [] if before is None else before
        try:
            run = self._once(grid, block, smem, given, meetings, seed, deviations, held, True)
            if not read.restore():
                return run
            why: Exception = NotTogether("the kernel changes what the host holds")
        except Exception as e:  # reports are of single lanes, so that errors too are found one by one
            read.restore()
            why = e
        restore(held)
        held.clear()
        alone = str(why).partition("\n")[0] or type(why).__name__
        tell_alone(fn.__name__, alone)
        run = self._once(grid, block, smem, given, meetings, seed, deviations, held, False, alone=alone)
        if isinstance(why, SimError):  # only in the order in which they ran together: one that a GPU may take
            restore(held)
            self._once(grid, block, smem, given, meetings, seed, deviations, None, True, reports=True)
        for text in why.texts if isinstance(why, ToBeWarnedOf) and not run.suspicions else ():
            warnings.warn(text, SimWarning, stacklevel=4)
        if is_fault(why):
            warnings.warn(f"{fn.__name__}: {TOGETHER_FAILED} ({why!r})", SimWarning, stacklevel=4)
        return run

    def _once(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], smem: int, given: Given,
        meetings: Meetings, seed: int | None, deviations: Any, before: Snapshot | None, shared: bool,
        reports: bool = False, alone: str = "",
    ) -> Run:  # fmt: skip
        """One run. shared: lanes run together. reports: what they do wrong is told, and not found again one by one.
        alone: why they run one by one."""
        fn = python_function(self.kernel)
        memory = GlobalMemory(before, self.ranks)
        maps = TensorMaps(memory)
        mode = self.mode or ("lazy" if seed is None else "random")
        plan = deviations if isinstance(deviations, Plan) else None
        checks, ranks = self._watching(plan), self.ranks
        run = Run(fn.__name__, self.arch, grid, block, self.cluster, smem, seed, mode, memory, maps, checks, ranks)
        carried(run)
        run.plan, run.trace, run.alone = plan, self.trace, alone
        run.choices = None if plan or deviations is None else Choices(deviations)
        run.trace = run.trace or (None if recording() is None else Trace())  # of which a timeline takes the time
        run.convoy, run.clustered = beginning if shared else None, self.clustered
        # a later launch's report may name an access of this one
        run.reports = not shared or reports or SEQUENCE.get() is not None or any(c.lines for c in self.checks)
        run.undefined = shared and any(c.backend is not None for c in self.checks)
        run.bounds, run.cooperative = bounds_of(self._options), self.cooperative
        run.fallback = None if self.fallback == self.cluster else self.fallback
        run.checked, run.takes = bool(meetings), getattr(fn, "__cute_arguments__", None)
        arguments = [Arguments(memory, maps, run, gpu.rank) for gpu in run.gpus]
        names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        values = [of.numbers(args, names) for of, args in zip(arguments, given)]
        cuda = LaneStandIn if shared else CudaStandIn
        rebuilder = Rebuilder(run, cuda, partial(arguments[0].take, name="a global", captured=True), meetings, fn)
        body = rebuilder.function(fn) if self.kernel is fn else rebuilder.jitted(fn)
        if before is not None:
            before += memory.copies()

        def start(thread: Thread) -> Callable[[], Any]:
            return partial(_thread, body, run, thread, partial(map, rebuilder.own, values[thread.cta.cluster.rank]))

        backend = (LaneBackend if shared else _backend(self.checks))(run)
        backend.struct_class = rebuilder.struct_class
        masks.forget()  # of a launch that ended by an error
        bar = Bar(f"simulating {fn.__name__}", run.to_start, "cluster", self.progress, note_of(run))
        with seam.running(backend), watched(run), causes_first(run), bar:
            cooperative.execute(run, lambda gpu: Cluster(gpu, *gpu.next_cluster()), start, bar.step)
            bar.step(bar.total - bar.done)  # of those that others took over
        if shared and run.suspicions:
            raise ToBeWarnedOf(list(dict.fromkeys(run.suspicions)))
        enough_smem(run.smem, run.smem_need)
        for of, args in zip(arguments, given):
            of.give_back()
            named = {n: a for n, a in zip(names, args) if n in self.outputs}
            check_written(memory, named, fn.__name__ + run.gpus[of.rank].of_rank)
        if plan is None and to_be_proved(self):
            self._proved(proof(run), PROOFS.get())
        for text in dict.fromkeys(run.suspicions):
            warnings.warn(text, SimWarning, stacklevel=3)
        return run

    def _watching(self, plan: Plan | None) -> tuple[type[Check], ...]:
        """Return the checks that watch a run. plan: the order that it is to have."""
        proving = plan is None and to_be_proved(self)
        known = self.checks if SEQUENCE.get() is not None else tuple(c for c in self.checks if not c.sequences)
        if PROOFS.get() is not None and plan is None:
            return (*known, Repeating if ROUNDS.get() else Prover, Recording)
        return (*((Recorder,) if plan else ()), *known, *((Prover,) if proving or plan else ()))

    def _proved(self, found: Proof, proofs: list[Proof] | None) -> None:
        """Keep a proof, or raise an error for what is not proved."""
        if proofs is not None:
            proofs.append(found)
        elif not found:
            raise SimError(str(found))


@contextmanager
def sequence() -> Iterator[None]:
    """Check launches as one stream would run them: `with cute.simulate.sequence(): …`. Those with pdl=True may begin
    before the one before has ended, as the ISA lets them; a RaceError, with both launches and lines, says which memory
    a launch accesses too early. What runs within a host function (`simulate(host)(…)`) is one by itself. A sequence
    within another is part of it."""
    if SEQUENCE.get() is not None:
        yield
        return
    token = SEQUENCE.set(Sequence())
    try:
        yield
    finally:
        SEQUENCE.reset(token)


simulate.sequence = sequence  # type: ignore[attr-defined]

FURTHER_SEEDS: ContextVar[tuple[int, ...]] = ContextVar("FURTHER_SEEDS", default=())
"""Seeds with which each launch that names none is run again, from the same memory (see numba_cute_pytest)."""


def _replayable(e: SimError, seed: int | None, mode: str | None) -> SimError:
    """The error with what runs the same order again."""
    if seed is not None and e.args:
        how = f"seed={seed}" + (f", async_mode={mode!r}" if mode else "")
        e.args = (f"{e.args[0]}\n  to see this again: cute.simulate(kernel, {how})", *e.args[1:])
    return e


@cache
def _backend(checks: tuple[type[Check], ...]) -> Any:
    """The class that answers the kernel's traced code: that of the checks that have one."""
    return type("Backend", (*(check.backend for check in checks if check.backend is not None), SimBackend), {})


def _thread(body: Any, run: Run, thread: Thread, values: Callable[[], Any]) -> list[Thread]:
    """Run a thread on its greenlet; gives the threads that have ended with it."""
    together = thread.convoy
    try:
        with np.errstate(all="ignore"):  # a GPU wraps integers and gives infinities without a word
            thread.run(body, values())
        return [thread] if together is None else together.members
    except Exception as e:
        told = thread_error(e, run.kernel)
        at = f"in the simulator: {block(thread.cta)}, thread {thread.tid}"
        if run.seed is not None:
            at += f"; to see this again: cute.simulate(kernel, seed={run.seed}, async_mode={run.mode!r})"
        if not isinstance(told, SimError) and hasattr(told, "add_note"):
            told.add_note(at)
        if told is e:
            raise
        raise told from (None if together is None else e.__cause__)  # lanes together run again, one by one
