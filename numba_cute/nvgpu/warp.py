# SPDX-License-Identifier: Apache-2.0
"""Operations of one warp: matrices between shared memory and registers (ldmatrix), and mma.sync."""

from ..atoms.op import Field as Field
from ..seam.guards import facade as _facade
from .ampere.ldmatrix import *
from .ampere.warp_mma import *
from .ampere.warp_sparse import *

_facade.publish(globals())
