# SPDX-License-Identifier: Apache-2.0
"""Timing kernels fairly, choosing among configurations, checking what they compute. Loaded on demand."""

from ..seam.guards import facade as _facade
from .clocks import *
from .closeness import *
from .converting import *
from .measuring import *
from .provenance import *
from .reference import *
from .results import *
from .tuned import *
from .tuning import *

_facade.publish(globals())
