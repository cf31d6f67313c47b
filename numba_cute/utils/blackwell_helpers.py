# SPDX-License-Identifier: Apache-2.0
"""`utils.sm100` and `utils.sm120`, by the name that the CuTe DSL has for both."""

from ..seam.guards import facade as _facade
from .sm100 import *
from .sm120 import *
from .tma_alignment import *

_facade.publish(globals())
