# SPDX-License-Identifier: Apache-2.0
"""wgmma: matrix multiply-accumulate by a warpgroup (128 threads), reading shared memory asynchronously. sm_90a.

The order: `fence()`, `cute.gemm(…)` for each step, `commit_group()`, `wait_group(n)` before the accumulator is read
or the operands' memory is overwritten. All threads of the warpgroup call each of these, converged.
"""

from ..atoms.op import Field as Field
from ..seam.guards import facade as _facade
from .common import OperandMajorMode as OperandMajorMode, OperandSource as OperandSource
from .hopper.descriptor import *
from .hopper.warpgroup_mma import *
from .hopper.warpgroup_sparse import *

_facade.publish(globals())
