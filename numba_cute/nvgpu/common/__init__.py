# SPDX-License-Identifier: Apache-2.0
"""What all architectures share: the bases of operations, what users choose of them, and operations that every GPU
has."""

from ...atoms.op import CopyOp as CopyOp, MmaOp as MmaOp
from ...seam import facade as _facade
from ...tensor.ssa import ReductionOp as ReductionOp
from .choices import *
from .copies import *
from .sparse import *
from .universal import *

_facade.publish(globals())
