# SPDX-License-Identifier: Apache-2.0
"""`utils.sm80`, by the CuTe DSL's name."""

from ..seam.guards import facade as _facade
from .sm80 import *

_facade.publish(globals())
