# SPDX-License-Identifier: Apache-2.0
"""tcgen05: matrix multiply-accumulate by Blackwell's matrix unit, with results in tensor memory. sm_100f.

The order: a warp calls `cute.gemm(…)` for each step and `commit(mbarrier)`; who waits on that mbarrier may read the
results and overwrite the operands.
"""

from ..atoms.op import Field as Field
from ..seam.guards import facade as _facade
from .blackwell import copy as copy
from .blackwell.copies import *
from .blackwell.copies_red import *
from .blackwell.copies_shared import *
from .blackwell.mma import *
from .blackwell.mma_scaled import *
from .blackwell.mma_sparse import *
from .blackwell.smem_layouts import *
from .common import (
    CollectorBBuffer as CollectorBBuffer,
    CollectorOp as CollectorOp,
    CtaGroup as CtaGroup,
    OperandMajorMode as OperandMajorMode,
    OperandSource as OperandSource,
)

_facade.publish(globals())
