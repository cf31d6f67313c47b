# SPDX-License-Identifier: Apache-2.0
"""Ranks in the simulator: memory of peers, launches of all ranks, and reports that name them."""

from numba_cute.runtime import from_symmetric
from numba_cute.sim import PerRank, symmetric
from numba_cute.utils.distributed import Signals


def signals(ranks, slots=1):
    """Each rank's signals."""
    from numba_cute import Int32

    flags = from_symmetric(symmetric((slots + 1, ranks), Int32, ranks))
    return PerRank(*(Signals(flags, r) for r in range(ranks)))
