# SPDX-License-Identifier: Apache-2.0
"""What atomics order: an acquire comes to know what a release of the same location knew (PTX ISA, "Causality")."""

from __future__ import annotations

from typing import Any

SCOPES = ("cta", "cluster", "gpu", "sys")


def order(m: Any, key: Any, sem: str, scope: str, writes: bool) -> None:
    """What an atomic of machine `m` comes to know, and leaves to be known, at the location `key`. Without an order of
    its own it is ordered by the fences of its thread: those before it publish, those after it acquire."""
    if m.run.races is None:
        return
    t = m.threads[0]
    c, wide = t.clock, SCOPES.index(scope)
    left = m.run.left.setdefault(key, [])
    if sem in ("acquire", "acq_rel"):
        for other, cta, clock in left:
            if cta is t.cta or min(wide, other) > 0:
                c.base = c.base.join(clock)
    else:
        c.pending.extend(left)
    if writes and sem in ("release", "acq_rel"):
        left.append((wide, t.cta, c.snapshot()))
    elif writes and c.published is not None and c.published not in left:
        left.append(c.published)
