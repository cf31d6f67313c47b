# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Cache policies."""

from __future__ import annotations

from .instr import instr, out, u64
from .machine import Machine


@instr("createpolicy.fractional.L2::{priority}.b64 $policy, 1.0;", target="sm_80", pure=True,
       ref="data-movement-and-conversion-instructions-createpolicy",
       over=[{"priority": p} for p in ("evict_first", "evict_normal", "evict_last", "evict_unchanged")])  # fmt: skip
def createpolicy_l2(m: Machine, policy: out(u64), *, priority: str) -> int:
    """An L2 cache policy word: evict_first (read once), evict_normal, evict_last (read again), evict_unchanged. Any
    thread. A hint: it changes speed alone, so the simulator gives 0."""
    return 0
