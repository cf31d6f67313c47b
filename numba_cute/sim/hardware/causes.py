# SPDX-License-Identifier: Apache-2.0
"""Causes of an error: an earlier mistake leads the report, followed by the error that it led to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..ground.report import Cause, SimError, who
from .barrier import MBarrier

_MOST = 3
_OF_PIPELINE = re.compile(r"mbarrier (.*)\.(full|empty)\[(\d+)\]")


@contextmanager
def causes_first(run: Any) -> Iterator[None]:
    """Let an error of a run begin with what went wrong before it."""
    try:
        yield
    except SimError as e:
        led = causes(run.cluster) if run.cluster is not None else []
        text = str(e)
        if led and led[0].splitlines()[0] not in text:
            more = [f"also before that: {cause}" for cause in led[1:_MOST]]
            e.args = ("\n".join([led[0], f"what came of it: {text}", *more]), *e.args[1:])
        raise


def notes_first(e: SimError, notes: Iterable[str]) -> None:
    """Let an error of a run begin with what the compiler found to be likely wrong in the kernel."""
    for note in reversed([*notes]):
        e.args = (f"{note}\nand the run: {e}", *e.args[1:])


def causes(cluster: Any) -> list[str]:
    """List what is suspected to have led to an error in a cluster, the likeliest first."""
    found: list[str] = list(dict.fromkeys(s for s in cluster.run.suspicions if isinstance(s, Cause)))
    skipped = _skipped(cluster)
    return found if skipped is None else [skipped, *found]


def _skipped(cluster: Any) -> str | None:
    """Find a stage of a pipeline that its threads left out: they have arrived at those before and after it."""
    for cta in cluster.ctas:
        rings: dict[tuple[str, str], dict[int, MBarrier]] = {}
        for bar in cta.mbarriers.values():
            named = _OF_PIPELINE.match(str(bar))
            if named is not None and bar.live:
                rings.setdefault((named[1], named[2]), {})[int(named[3])] = bar
        for (name, kind), ring in rings.items():
            bars = [ring[i] for i in range(len(ring)) if i in ring]
            if len(bars) == len(ring) > 1 and not any(b.unseen for b in bars):
                found = _left_out(name, kind, bars)
                if found is not None:
                    return found
    return None


def _left_out(name: str, kind: str, bars: list[MBarrier]) -> str | None:
    """Find the first stage that has had fewer arrivals than the one after it, whose threads waited for it."""
    did = "filled" if kind == "full" else "released"
    for i, bar in enumerate(bars):
        after = bars[(i + 1) % len(bars)]
        if after.phase - (1 if i + 1 == len(bars) else 0) <= bar.phase or not after.before:
            continue
        place, before = after.before[-1][1], bars[i - 1]
        threads = [t for t, p, _ in after.before if p == place]
        if threads[-1] in {t for t, _, _ in (*before.before, *before.arrivals)}:
            last, then = (i - 1) % len(bars), (i + 1) % len(bars)
            return (
                f"pipeline {name!r}: stage {i} was left out: {who(threads)} {did} stage {then} at {place}, after stage "
                f"{last}, and not the one between\n"
                "  fix: advance a state once for each stage that is used: one `advance` more, or one by which no stage "
                "is used, skips a stage, for which the other side then waits"
            )
    return None
