# SPDX-License-Identifier: Apache-2.0
"""The report of a deadlock: who waits for what and where, what is missing, and who was to deliver it."""

from __future__ import annotations

from typing import Any

from .barrier import ClusterBarrier, MBarrier, Rally
from .report import DeadlockError, Place, count, who


def deadlock(cluster: Any) -> DeadlockError:
    """Describe a cluster in which no thread can go on and nothing is in flight."""
    stuck = sorted(cluster.live, key=lambda t: (t.cta.rank, t.index))
    ctas = ", ".join(str(c.index) for c in cluster.ctas)
    lines = [
        f"deadlock in kernel {cluster.run.kernel}, block{'s' if cluster.size > 1 else ''} {ctas}: "
        f"{count(len(stuck), 'thread')} can never go on, and nothing is in flight"
    ]
    places = {t: t.place for t in stuck}
    groups: dict[Any, list[Any]] = {}
    for t in stuck:
        on = t.wait.on if t.wait else None
        groups.setdefault((id(getattr(on, "bar", on)), places[t], t.wait.why if t.wait else ""), []).append(t)
    for (_, place, why), threads in groups.items():
        lines.append(f"  {who(threads)} wait{'s' if len(threads) == 1 else ''} at {place}")
        lines += [f"    {line}" for line in _cause(threads, why, places)]
    return DeadlockError("\n".join(lines))


def _cause(threads: list[Any], why: str, places: dict[Any, Place]) -> list[str]:
    on = threads[0].wait.on
    bar = getattr(on, "bar", on)
    if isinstance(bar, MBarrier):
        return _mbarrier(bar, why, places)
    if isinstance(bar, Rally):
        need = bar.expected or bar.expected is None and "all"
        return [f"for {why} of {need} threads: {bar.arrived} have arrived" + _others(bar.who, threads, places)]
    if isinstance(bar, ClusterBarrier):
        absent = [t for t in places if t.cluster_phase != bar.phase]
        return [f"for {why}: {count(bar.arrived, 'thread')} arrived; " + _missing(absent, places)]
    meet = on
    if hasattr(meet, "absent"):
        absent = meet.absent()
        return [f"for {why}, which {meet.unit.kind}s execute together; " + _missing(absent, places)]
    return [f"for {why}"]


def _mbarrier(bar: MBarrier, why: str, places: dict[Any, Place]) -> list[str]:
    lines = [f"for {bar} ({why}), phase {bar.phase} (parity {bar.phase & 1}) to complete: {bar.missing()}"]
    if bar.arrivals:
        lines.append("arrived in this phase: " + _arrivals(bar.arrivals, places))
    elif bar.before:
        lines.append("nobody has arrived in this phase; in an earlier one: " + _arrivals(bar.before, places))
    else:
        lines.append("nobody ever arrived")
    return lines


def _arrivals(arrivals: list[tuple[Any, Place, int]], places: dict[Any, Place]) -> str:
    by: dict[Place, list[Any]] = {}
    for t, place, _ in arrivals:
        by.setdefault(place, []).append(t)
    out = []
    for place, threads in list(by.items())[:4]:
        now = {places.get(t) for t in threads}
        then = "exited since" if now == {None} else f"now at {' and '.join(sorted(str(p) for p in now if p))}"
        out.append(f"{who(threads)} at {place} ({then})")
    return "; ".join(out)


def _others(arrived: list[Any], waiting: list[Any], places: dict[Any, Place]) -> str:
    """Who else of the CTA has not come, and where it is."""
    have = set(arrived)
    absent = [t for t in waiting[0].cta.threads if t not in have]
    return "; " + _missing(absent, places) if absent else ""


def _missing(absent: list[Any], places: dict[Any, Place]) -> str:
    if not absent:
        return "none is missing"
    by: dict[Any, list[Any]] = {}
    for t in absent:
        by.setdefault(places.get(t), []).append(t)
    words = [f"{who(ts)}, which {'exited' if p is None else f'is at {p}'}" for p, ts in list(by.items())[:4]]
    return "missing: " + "; ".join(words)
