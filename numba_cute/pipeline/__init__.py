# SPDX-License-Identifier: Apache-2.0
"""Pipelines: barriers, states, and the producers and consumers that work through them."""

from ..seam.guards import facade as _facade
from . import audit, notes, ownership  # noqa: F401 - they register their checks
from .barrier import *
from .clc import *
from .group import *
from .initial_sync import *
from .order import *
from .participants import *
from .pipelines import *
from .state import *
from .tiles import *
from .umma import *

_facade.publish(globals())
