# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies between global and shared memory: by each thread (`CopyG2SOp`, cp.async, sm_80), and by the TMA
unit (the others, sm_90).

A load completes its bytes on an mbarrier in each block that receives them, and somebody must have said to expect
them. A store belongs to its thread's bulk group: `arch.cp_async_bulk_commit_group` closes it,
`arch.cp_async_bulk_wait_group` waits. Before a store reads what threads wrote, each of them calls
`arch.fence_proxy("async.shared", space="cta")`, and then comes a barrier.
"""

from ..seam.guards import facade as _facade
from .ampere.copy_g2s import *
from .common import CtaGroup as CtaGroup, LoadCacheMode as LoadCacheMode, ReductionOp as ReductionOp
from .hopper.bulk import *
from .hopper.dsmem import *
from .hopper.im2col import *
from .hopper.partition import *
from .hopper.tensor_map import *
from .hopper.tma import *
from .hopper.tma_ops import *
from .hopper.tma_rows import *

_facade.publish(globals())
