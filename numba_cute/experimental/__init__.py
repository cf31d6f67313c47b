# SPDX-License-Identifier: Apache-2.0
"""CuTe's experimental interface."""

from ..seam import facade as _facade
from . import iket as iket

_facade.publish(globals(), iket)
