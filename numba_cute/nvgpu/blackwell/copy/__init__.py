# SPDX-License-Identifier: Apache-2.0
"""The copies of tensor memory once more, as `tcgen05.copy`: the CuTe DSL's kernels name some of them so."""

from ....seam.guards import facade as _facade
from ...blackwell.copies import *
from ...blackwell.copies_red import *
from ...blackwell.copies_shared import *

_facade.publish(globals())
