# SPDX-License-Identifier: Apache-2.0
"""The check `initialised`: an mbarrier that is used before its initialisation is known to who uses it."""

from __future__ import annotations

from typing import Any

from ..ground.clocks import FULL, INIT, READS, SMEM, distinct_bases
from ..ground.report import BarrierError, who
from ..hardware.watch import Check
from .races import Races


class Initialised(Check):
    """Asks of each use of an mbarrier whether anything orders it after the barrier's initialisation."""

    name = "initialised"
    summary = "an mbarrier that is used where nothing orders that after its initialisation"
    needs = (Races,)

    def uses_barrier(self, m: Any, bar: Any, what: str, asynchronous: bool) -> None:
        if not _is_born(bar, m, asynchronous):
            raise _unborn(bar, m, what, asynchronous)


def _is_born(bar: Any, m: Any, is_async: bool) -> bool:
    """Tell whether the initialisation of an mbarrier is known to who uses it: to the async proxy and to peers through
    fence.mbarrier_init (or a proxy fence), to threads of the CTA through any synchronisation."""
    a = bar.born
    if a.cluster is not m.cta.cluster:
        return True
    rows = [INIT, SMEM] if is_async else [INIT, FULL]
    bases = distinct_bases(m.clocks())
    if any(all(a.within(base, row) for base in bases) for row in rows):
        return True
    return all(any(a.known(t, row) for row in rows) for t in a.to_ask(m.clocks()))


def _unborn(bar: Any, m: Any, what: str, asynchronous: bool) -> BarrierError:
    born = bar.born
    if asynchronous and all(born.known(t, READS) for t in m.clocks()):
        lacks = "its initialisation is not visible to the async proxy: missing fence.mbarrier_init"
        fix = "the initialising thread executes fence_mbarrier_init (mbarrier_init_fence) after it"
    else:
        lacks = "nothing orders that after its initialisation"
        fix = "fence_mbarrier_init in the initialising thread, then a barrier of the CTA or cluster"
    return BarrierError(
        f"{bar}: {m.row.name} of {m.describe()} {what} at {m.place}, but {lacks}\n"
        f"  it was initialised by {who(born.threads)} at {born.place}; {fix}"
    )
