# SPDX-License-Identifier: Apache-2.0
"""Common to all architectures: the bases of operations, the choices that users have, and operations of every GPU."""

from ...atoms.op import CopyOp as CopyOp, MmaOp as MmaOp
from ...seam.guards import facade as _facade
from ...tensor.ssa import ReductionOp as ReductionOp
from .choices import *
from .copies import *
from .sparse import *
from .universal import *

_facade.publish(globals())
