# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's package as flash-attn-4 is published."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType


def as_published() -> None:
    """Have `flash_attn` be a namespace that holds `flash_attn.cute`: a checkout's own needs the extension of 2."""
    found = importlib.util.find_spec("flash_attn")
    assert found is not None
    made = ModuleType("flash_attn")
    made.__path__ = list(found.submodule_search_locations or ())
    sys.modules["flash_attn"] = made
