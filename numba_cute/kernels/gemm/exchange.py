# SPDX-License-Identifier: Apache-2.0
"""The exchange of a GEMM with other GPUs, which is none here; `kernels/distributed` has those that there are."""

from __future__ import annotations

from typing import Any

from numba_cute import utils
from numba_cute.seam import frozen

from .operands import CONSUMER_REGISTERS, PRODUCER_REGISTERS


@frozen
class Exchange:
    """Nothing is exchanged: the kernel asks an exchange of its launch. One that `brings` or `sends` has what
    `begin(smem, tidx)` gives: the part of its warps. registers: of a thread that feeds the tensor cores or exchanges,
    and of one that multiplies."""

    registers = PRODUCER_REGISTERS, CONSUMER_REGISTERS

    @property
    def memory(self) -> int:
        """Count the bytes of shared memory that it takes of the stages'."""
        return 0

    @property
    def brings(self) -> bool:
        """Say whether A's rows come from other GPUs."""
        return False

    @property
    def sends(self) -> bool:
        """Say whether C's pieces go to other GPUs."""
        return False

    @property
    def wide(self) -> int | None:
        """Count the columns of a slab of a grouped product: all rows of one are made before those of the next. None:
        there is one slab."""
        return None

    def schedule(self, tiles: Any, cluster: Any, swizzle: int, along_m: bool) -> Any:
        """Make the order of the tiles, of what `PersistentTileSchedulerParams` takes."""
        return utils.PersistentTileSchedulerParams(tiles, cluster, swizzle, along_m)


ALONE = Exchange()
