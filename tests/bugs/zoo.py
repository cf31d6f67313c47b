# SPDX-License-Identifier: Apache-2.0
"""The zoo's form: a bug is a function that makes its kernel, broken or mended (or several, each launched with pdl=True
after the one before), and what the report must say."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa.rows import fence, mbarrier
from numba_cute.sim import RaceError, UninitializedReadError, simulate
from numba_cute.sim.checks.races import Races
from numba_cute.sim.checks.uninitialised import Uninitialised
from numba_cute.sim.hardware.watch import Check

BAR, BUF, OUT = 1024, 2048, 6144
"""Where kernels in raw instructions keep barriers, data and results in shared memory (dynamic: from 1024 on)."""


@dataclass(frozen=True)
class Bug:
    name: str
    make: Callable[[bool], Any]
    error: type
    words: tuple[str, ...]
    arguments: Callable[[], tuple]
    launch: dict[str, Any]
    origin: str
    check: type[Check] | None

    def run(self, mended: bool, **options: Any) -> None:
        threads, blocks, smem = (self.launch.get(k, v) for k, v in (("threads", 64), ("blocks", 1), ("smem", 8192)))
        cluster = self.launch.get("cluster")
        arch = self.launch.get("arch", "sm_90a")
        fallback = self.launch.get("fallback")
        made, arguments = self.make(mended), self.arguments()
        with simulate.sequence() if isinstance(made, list) else nullcontext():
            for i, kernel in enumerate(made if isinstance(made, list) else [made]):
                simulated = simulate(
                    kernel, cluster=cluster, arch=arch, fallback_cluster=fallback, pdl=i > 0,
                    ranks=self.launch.get("ranks", 1), **options,
                )  # fmt: skip
                simulated[blocks, threads, 0, smem](*arguments)


BUGS: list[Bug] = []
USUAL: dict[type, type[Check]] = {RaceError: Races, UninitializedReadError: Uninitialised}
"""The check that raises an error, where a bug names none."""


def bug(
    error: type, *words: str, check: type[Check] | None = None, arguments: Callable[[], tuple] = tuple,
    origin: str = "", **launch: Any,
) -> Any:  # fmt: skip
    """Add a bug: `error` is the exception that the broken kernel must raise, `words` what its text must hold
    ("this|or that", where the order of threads decides which side is seen first). check: the one that finds it; those
    of neither a check nor a usual error are found with checks=False too."""
    by = check or USUAL.get(error)

    def add(make: Callable[[bool], Any]) -> Any:
        BUGS.append(Bug(make.__name__.replace("_", " "), make, error, words, arguments, launch, origin, by))
        return make

    return add


def put(at: int, value: int) -> None:
    seam.current().store(dtypes.Int32, "smem", at, (value,), 4)


def get(at: int) -> int:
    return seam.current().load(dtypes.Int32, "smem", at, 1, 4)[0]


def fresh(count: int, address: int = BAR) -> None:
    """Run by all threads of a block: a barrier that all, and the async proxy, may use."""
    if cuda.threadIdx.x == 0:
        mbarrier.mbarrier_init(address, count)
        fence.fence_mbarrier_init()
    cuda.syncthreads()


fresh = cuda.jit(device=True)(fresh)
