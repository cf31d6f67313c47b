# SPDX-License-Identifier: Apache-2.0
"""Functions under the names that TileLang's CuTe DSL backend generates calls of (tilelang.contrib.cutedsl)."""

from ..seam.guards import facade as _facade
from . import cpasync as cpasync

_facade.publish(globals(), cpasync)
