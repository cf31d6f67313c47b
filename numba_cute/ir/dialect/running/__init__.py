# SPDX-License-Identifier: Apache-2.0
"""Programs of the dialect, run on the host: each operation as what it means, on the values that the program has."""

from __future__ import annotations

from . import device, standard
from .machine import Machine, Stopped, run

__all__ = ["Machine", "Stopped", "device", "run", "standard"]
