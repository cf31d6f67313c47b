# SPDX-License-Identifier: Apache-2.0
"""`simulate`: run a kernel's own Python on the CPU, one greenlet a CUDA thread."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .. import seam
from ..dtypes import DType, Scalar
from ..isa.tensormap import TensorMapRecord
from ..seam import CuteError
from .arrays import tracked
from .backend import SimBackend, as_number
from .grid import Cluster, Run, Thread, coordinates
from .memory import GlobalMemory
from .rebuild import Rebuilder, python_function
from .report import OutOfBoundsError, SimError, SimWarning
from .tensor_map import SimTensorMap

MODES = ("lazy", "eager", "random")
MAX_THREADS = 1024
CHECKS = frozenset(("races", "uninitialised", "exits", "phases", "registers"))
_MAP_BASE = 1 << 56  # no address of this process: the handle of the first tensor map
_MAP_BYTES = 128


def simulate(
    kernel: Any, *, cluster: Any = None, seed: int | None = None, arch: str = "sm_90a", async_mode: str | None = None,
    progress: bool = False, checks: Any = True,
) -> Simulated:  # fmt: skip
    """A kernel that runs in the simulator: `simulate(kernel)[grid, block, stream, smem](*args)`.

    kernel: a @cuda.jit kernel or a plain Python function. cluster: CTAs of a cluster, an int or up to three (None:
    the kernel's own, or 1).
    seed: None for a fixed order of threads; an int permutes it, and copies then complete at random. arch: the target
    whose instructions the kernel may use. async_mode: when copies and wgmma happen: "lazy" (at the last moment; the
    default without a seed), "eager" (at once) or "random" (the default with one). progress: show a bar over clusters.
    checks: True for all; False for none (only barriers, bounds and deadlocks, as fast as can be); or some of "races",
    "uninitialised", "exits", "phases" and "registers". NumPy arrays are used in place. Errors are SimError and its
    kinds (DeadlockError, RaceError, BarrierError, …); what is only suspicious is a SimWarning.
    """
    mode = async_mode or ("lazy" if seed is None else "random")
    if mode not in MODES:
        raise CuteError(f"simulate: async_mode {async_mode!r} is none of {', '.join(map(repr, MODES))}")
    if mode == "random" and seed is None:
        seed = 0
    if cluster is None:
        cluster = getattr(python_function(kernel), "__cute_cluster__", None) or 1
    shape = _dim3("cluster", cluster)
    return Simulated(kernel, shape, seed, arch, mode, progress, _checks(checks))


@dataclasses.dataclass(frozen=True)
class Simulated:
    """A kernel to be simulated; index it with the launch configuration."""

    kernel: Any
    cluster: tuple[int, int, int]
    seed: int | None
    arch: str
    mode: str
    progress: bool
    checks: frozenset[str]

    def __getitem__(self, config: Any) -> Callable[..., None]:
        """`[grid, block]`, and optionally stream and the bytes of dynamic shared memory."""
        config = config if isinstance(config, tuple) else (config,)
        if not 2 <= len(config) <= 4:
            raise CuteError(f"simulate(...)[{config}]: give grid, block, and optionally stream and smem")
        smem = int(config[3]) if len(config) > 3 else 0
        return partial(self._launch, _dim3("grid", config[0]), _dim3("block", config[1]), smem)

    def _launch(self, grid: tuple[int, int, int], block: tuple[int, int, int], smem: int, *args: Any) -> None:
        threads = block[0] * block[1] * block[2]
        if threads > MAX_THREADS:
            raise CuteError(f"block {block}: {threads} threads exceed the {MAX_THREADS} of a CTA")
        if any(g % c for g, c in zip(grid, self.cluster)):
            raise CuteError(f"grid {grid} is no multiple of the cluster {self.cluster}")
        fn = python_function(self.kernel)
        maps: dict[int, Any] = {}
        memory = GlobalMemory()
        shape = grid, block, self.cluster
        run = Run(fn.__name__, self.arch, *shape, smem, self.seed, self.mode, memory, maps, self.checks)
        arguments = Arguments(memory, maps, run)
        names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        values = [arguments.take(a, names[i] if i < len(names) else f"argument {i}") for i, a in enumerate(args)]
        rebuilder = Rebuilder(run, partial(arguments.take, name="a global"))
        body = rebuilder.function(fn)
        clusters = coordinates(tuple(g // c for g, c in zip(grid, self.cluster)))  # type: ignore[arg-type]

        def start(thread: Thread) -> Callable[[], Any]:
            return partial(_thread, body, run, thread, partial(map, rebuilder.own, values))

        with seam.running(SimBackend(run)):
            run.waiting.extend(clusters)
            for _ in self._shown(clusters):
                if run.waiting:  # a cluster may take over others that have not started
                    Cluster(run, run.waiting.popleft()).execute(start)
        for text in dict.fromkeys(run.suspicions):
            warnings.warn(text, SimWarning, stacklevel=2)

    def _shown(self, clusters: list[Any]) -> Iterator[Any]:
        if not self.progress:
            return iter(clusters)
        from tqdm import tqdm

        return iter(tqdm(clusters, desc=f"simulating {python_function(self.kernel).__name__}", unit="cluster"))


def _checks(checks: Any) -> frozenset[str]:
    if isinstance(checks, bool):
        return CHECKS if checks else frozenset()
    wanted = frozenset((checks,) if isinstance(checks, str) else checks)
    if not wanted <= CHECKS:
        raise CuteError(f"simulate: checks {sorted(wanted - CHECKS)} are none of {sorted(CHECKS)}")
    return wanted | {"races"} if wanted & {"uninitialised", "exits"} else wanted


def _thread(body: Any, run: Run, thread: Thread, values: Callable[[], Any]) -> None:
    """What a thread's greenlet executes."""
    try:
        body(*values())
    except Exception as e:
        at = f"in the simulator: block {thread.cta.index}, thread {thread.tid}"
        if run.rng is not None:
            at += " (the seed given to simulate replays it)"
        if not isinstance(e, SimError) and hasattr(e, "add_note"):
            e.add_note(at)
        raise


def _dim3(name: str, value: Any) -> tuple[int, int, int]:
    dims = tuple(int(v) for v in value) if isinstance(value, (tuple, list)) else (int(value),)
    if not 1 <= len(dims) <= 3 or min(dims) < 1:
        raise CuteError(f"{name} {value!r} must be one to three positive numbers")
    x, y, z = (*dims, 1, 1)[:3]
    return x, y, z


class Arguments:
    """Takes kernel arguments apart: run-time leaves become plain numbers, tensor maps handles; what memory the
    kernel may use is written down."""

    def __init__(self, memory: GlobalMemory, maps: dict[int, Any], run: Run) -> None:
        self.memory, self.maps, self.run = memory, maps, run
        self._handles: dict[TensorMapRecord, int] = {}

    def take(self, value: Any, name: str) -> Any:
        """`value` as the kernel's threads see it; `name` is for reports."""
        found = getattr(value, "__cute_allocations__", None)
        if found is not None and not isinstance(value, type):
            for address, nbytes, label, owner in found():
                self.memory.add(int(address), int(nbytes), label or name, owner)
        if isinstance(value, Scalar):
            return as_number(value.value, value.dtype)
        if isinstance(value, np.integer):
            return int(value)
        if isinstance(value, np.ndarray):
            self.memory.add_array(value, name)
            return tracked(value, self.run)
        if isinstance(value, TensorMapRecord):
            return self._handle(value, name)
        if type(value) is tuple:
            return tuple(self.take(v, name) for v in value)
        if isinstance(value, DType):
            return value
        if seam.is_static_class(type(value)) and dataclasses.is_dataclass(value):
            return self._rebuilt(value, [f.name for f in dataclasses.fields(value)], name)
        if seam.is_struct_class(type(value)):
            return self._rebuilt(value, list(vars(value)), name)
        return value

    def _field(self, value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            self.memory.add_array(value, name)
            return value
        return self.take(value, name)

    def _rebuilt(self, value: Any, fields: list[str], name: str) -> Any:
        new = {f: self._field(getattr(value, f), name) for f in fields}
        if all(new[f] is getattr(value, f) for f in fields):
            return value
        copy = object.__new__(type(value))
        for f, v in new.items():
            object.__setattr__(copy, f, v)
        return copy

    def _handle(self, record: TensorMapRecord, name: str) -> int:
        handle = self._handles.get(record)
        if handle is not None:
            return handle
        held = self.memory.find(record.address)
        if held is None:
            self.memory.add(record.address, record.extent_bytes, name, record)
        elif record.address + record.extent_bytes > held.end:
            raise OutOfBoundsError(
                f"{name}: its tensor map (dims {record.dims}, strides {record.strides_bytes} bytes) reaches "
                f"{record.address + record.extent_bytes - held.end} bytes beyond the end of {held.label}"
            )
        handle = _MAP_BASE + _MAP_BYTES * len(self.maps)
        self._handles[record] = handle
        self.maps[handle] = SimTensorMap(record, self.memory, name)
        return handle
