# SPDX-License-Identifier: Apache-2.0
"""What a function's bytecode holds, read once: a kernel is asked for it each time that it is run or compiled."""

from __future__ import annotations

import dis
import functools
from types import CodeType


@functools.lru_cache(maxsize=4096)
def opnames(code: CodeType) -> frozenset[str]:
    """Return the names of the instructions that code has, without those of the functions in it."""
    return frozenset(i.opname for i in dis.get_instructions(code))
