# SPDX-License-Identifier: Apache-2.0
"""The simulator: runs a kernel's own Python, one greenlet a CUDA thread, and explains what goes wrong."""

from .. import seam
from .ground.report import (
    BarrierError,
    DeadlockError,
    DivergenceError,
    OutOfBoundsError,
    RaceError,
    ReadOnlyError,
    SimError,
    SimWarning,
    SwizzleError,
    UninitializedReadError,
)
from .launch import Simulated, simulate
from .program import simulation
from .ranks import PerRank, symmetric
from .trace import Trace


def name_range(address: int, nbytes: int, name: str) -> None:
    """Call `nbytes` of the CTA's shared memory at `address` by `name` in reports; nothing happens elsewhere.

    >>> def kernel():
    ...     place = arch.get_dyn_smem(cute.Int32)
    ...     cute.sim.name_range(place.toint(), 16, "counts")
    ...     arch.store(place, arch.thread_idx()[0])
    >>> cute.simulate(kernel)[1, 64, 0, 16]()
    Traceback (most recent call last):
        ...
    numba_cute.sim.RaceError: race: shared memory counts ...
    """
    note = getattr(seam.current_or(None), "note", None)
    if note is not None:
        note(address, nbytes, name)


__all__ = [
    "BarrierError",
    "DeadlockError",
    "DivergenceError",
    "OutOfBoundsError",
    "PerRank",
    "ReadOnlyError",
    "RaceError",
    "SimError",
    "SimWarning",
    "Simulated",
    "SwizzleError",
    "Trace",
    "UninitializedReadError",
    "name_range",
    "simulate",
    "simulation",
    "symmetric",
]
