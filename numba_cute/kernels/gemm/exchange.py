# SPDX-License-Identifier: Apache-2.0
"""What a GEMM exchanges with other GPUs while it multiplies: of one GPU, nothing. `kernels/distributed` has what does."""

from __future__ import annotations

from typing import Any

from numba_cute import utils
from numba_cute.seam import frozen

from .operands import CONSUMER_REGISTERS, PRODUCER_REGISTERS


@frozen
class Exchange:
    """What the kernel asks of an exchange, in its types: nothing of this one. brings: it brings A's rows of other GPUs,
    by `fetches`, of what is in global memory a tile waits for. sends: C's pieces go to memory of several GPUs, and are
    added up there. memory: bytes of shared memory that it takes of the stages'. registers: of a thread that feeds the
    tensor cores or exchanges, and of one that multiplies."""

    memory = 0
    registers = PRODUCER_REGISTERS, CONSUMER_REGISTERS

    @property
    def brings(self) -> bool:
        """Say whether A's rows come from other GPUs."""
        return False

    @property
    def sends(self) -> bool:
        """Say whether C's pieces go to other GPUs."""
        return False

    def schedule(self, *order: Any) -> Any:
        """Make the order of the tiles. order: what `PersistentTileSchedulerParams` takes."""
        return utils.PersistentTileSchedulerParams(*order)


ALONE = Exchange()
