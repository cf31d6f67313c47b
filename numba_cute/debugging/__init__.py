# SPDX-License-Identifier: Apache-2.0
"""Kernels that say on a GPU what is wrong with them, as the simulator does: loaded on demand."""

from .comparing import DifferenceError, compare
from .launches import Debugged, debug

__all__ = ["Debugged", "DifferenceError", "compare", "debug"]
