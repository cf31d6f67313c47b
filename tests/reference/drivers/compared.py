# SPDX-License-Identifier: Apache-2.0
"""What drivers compare, all of it at their end, so that a run that only compiles comes to every kernel."""

from __future__ import annotations

import os
from typing import Any

import torch

os.environ["QUACK_CACHE_ENABLED"] = "0"  # which would keep what `cute.compile` gave in files

_NOTED: list[tuple[tuple[Any, ...], dict[str, float]]] = []


def compare(*given: Any, **tolerances: float) -> None:
    """Note what `torch.testing.assert_close` is to be given."""
    _NOTED.append((given, tolerances))


def judge() -> None:
    """Compare what was noted."""
    for given, tolerances in _NOTED:
        torch.testing.assert_close(*given, **tolerances)
