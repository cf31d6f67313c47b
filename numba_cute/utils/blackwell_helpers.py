# SPDX-License-Identifier: Apache-2.0
"""`utils.sm100`, by the name that the CuTe DSL has for it."""

from ..seam import facade as _facade
from .sm100 import *

_facade.publish(globals())
