# SPDX-License-Identifier: Apache-2.0
"""The report of a deadlock: who waits for what and where, what is missing, and who was to deliver it."""

from __future__ import annotations

from typing import Any

from ..ground.report import DeadlockError, Place, count, who
from ..ground.wait_graph import Awaited, Waiter, WaitGraph
from .barrier import ClusterBarrier, MBarrier, Rally
from .causes import causes
from .collective import Meet

_MOST = 4  # places named in one list
Places = dict[Any, Place]


def deadlock(cluster: Any) -> DeadlockError:
    """Describe a cluster in which no thread can go on and nothing is in flight."""
    stuck = sorted(cluster.live, key=lambda t: (t.cta.rank, t.index))
    blocks = ", ".join(str(c.index) for c in cluster.ctas)
    lines = [
        f"deadlock in kernel {cluster.run.kernel}, block{'s' if cluster.size > 1 else ''} {blocks}{cluster.of_rank}: "
        f"{count(len(stuck), 'thread')} can never go on, and nothing is in flight"
    ]
    places = {t: t.place for t in stuck}
    groups: dict[Any, list[Any]] = {}
    for t in stuck:
        wait = _wait(t)
        on = getattr(wait.on, "bar", wait.on)
        one = on if isinstance(on, (MBarrier, Rally)) else type(on)
        groups.setdefault((_rank(on, wait.why), id(one), wait.why, places[t]), []).append(t)
    follows = _follow([threads for _, threads in groups.items()])
    passed = [_passed(threads, places) for _, threads in groups.items()]
    ranked = sorted(zip(passed, follows, groups.items()), key=lambda f: (not f[0], f[1], f[2][0][0]))
    ordered = [group for _, _, group in ranked]
    led = causes(cluster)
    for (_, _, why, place), threads in ordered:
        lines.append(f"  {who(threads)} wait{'s' if len(threads) == 1 else ''} at {place}")
        lines += [f"    {line}" for line in _cause(threads, why, places)]
        bar = getattr(_wait(threads[0]).on, "bar", None)
        if threads is ordered[0][1] and not led:  # what follows from the cause needs no fix
            if isinstance(bar, MBarrier):
                lines.append(f"    fix: {_fix(bar, places)}")
            elif _passed(threads, places):
                lines.append(f"    fix: {_together(_wait(threads[0]).on, places[threads[0]])}")
    cycle = _cycle([threads for _, threads in ordered])
    if cycle:
        lines.append("  cycle: " + " waits for ".join(who(g) for g in [*cycle, cycle[0]]))
    error = DeadlockError("\n".join(lines))
    error.graph = _graph([threads for _, threads in ordered], cycle, places)
    return error


def _graph(groups: list[list[Any]], cycle: list[list[Any]], places: Places) -> WaitGraph:
    """Make the graph of groups of threads that wait, and of the threads that have exited and are wanted."""
    waiters = [Waiter(who(g), _in(places[g[0]])) for g in groups]
    awaited: dict[Any, Awaited] = {}
    waits: list[int | None] = []
    for g in groups:
        wait = _wait(g[0])
        on = getattr(wait.on, "bar", wait.on)
        key = id(on) if isinstance(on, (MBarrier, Rally)) else (type(on), wait.why)
        if key not in awaited:
            wanted = _known(g) or _deliverers(g)
            wants = [i for i, h in enumerate(groups) if wanted & set(h)]
            gone = sorted((t for t in wanted if t not in places), key=lambda t: (t.cta.rank, t.index))
            if gone:
                exited = Waiter(who(gone), "")
                waiters += [exited] if exited not in waiters else []
                wants.append(waiters.index(exited))
            awaited[key] = Awaited(*_lacks(on, g, wait.why), tuple(wants))
        waits.append(list(awaited).index(key))
    waits += [None] * (len(waiters) - len(waits))
    return WaitGraph(tuple(waiters), tuple(waits), tuple(awaited.values()), tuple(map(groups.index, cycle)))


def _in(place: Place) -> str:
    return f"{place.short}, in {place.inside}" if place.inside else place.short


def _lacks(on: Any, threads: list[Any], why: str) -> tuple[str, str]:
    """Name what threads wait for, and say what it lacks."""
    if isinstance(on, MBarrier):
        return str(on), f"phase {on.phase}: {on.missing()}"
    if isinstance(on, Rally):
        return why, f"{on.arrived} of {on.expected or len(threads[0].cta.threads)} threads have arrived"
    if isinstance(on, ClusterBarrier):
        return why, f"{count(on.arrived, 'thread')} arrived"
    if isinstance(on, Meet):
        return why, f"{count(len(on.absent()), 'lane')} of the {on.unit.kind} missing"
    return why, ""


def _deliverers(threads: list[Any]) -> set[Any]:
    """Find who could end the wait of these threads: those who have signalled the barrier before, or have not come."""
    on = _wait(threads[0]).on
    on = getattr(on, "bar", on)
    if isinstance(on, MBarrier):
        return {t for t, _, _ in (*on.before, *on.arrivals)} | set(on.senders)
    if isinstance(on, Rally):
        return set(threads[0].cta.threads) - set(on.who)
    if isinstance(on, ClusterBarrier):
        return {t for t in on.cluster.live if t.cluster_phase != on.phase}
    return set(on.absent()) if hasattr(on, "absent") else set()


def _follow(groups: list[list[Any]]) -> list[bool]:
    """Say for each group whether its wait follows from that of another: those known to end it wait there, and not the
    other way round."""
    wants = [_known(g) for g in groups]
    after = [{j for j, h in enumerate(groups) if j != i and wants[i] & set(h)} for i in range(len(groups))]
    for _ in groups:  # until all that follow one another are found
        after = [a.union(*(after[j] for j in a)) for a in after]
    return [any(i not in after[j] for j in a) for i, a in enumerate(after)]


def _known(threads: list[Any]) -> set[Any]:
    """Find who is known to be wanted: those who signalled in the phase (the use) before, but not in this one."""
    on = _wait(threads[0]).on
    on = getattr(on, "bar", on)
    if isinstance(on, MBarrier):
        earlier = {t for t, _, _ in on.before} - {t for t, _, _ in on.arrivals}
        return earlier | {t for t, phase in on.senders.items() if phase < on.phase}
    if isinstance(on, Rally):
        last = threads[0].cta.named.last.get(on.id)
        return set(last[0].who) - set(on.who) if last is not None else set()
    return _deliverers(threads)


def _passed(threads: list[Any], places: Places) -> bool:
    """Say whether threads wait for others of their warp to execute an instruction, and those are past it already."""
    on, here = _wait(threads[0]).on, places[threads[0]]
    if not isinstance(on, Meet):
        return False
    there = [places.get(t) for t in on.absent()]
    return any(p is None or (p.file == here.file and p.function == here.function and p.line > here.line) for p in there)


def _cycle(groups: list[list[Any]]) -> list[list[Any]]:
    """Groups that wait for one another in a circle; none if there is no such."""
    wants = [_deliverers(g) for g in groups]
    after = [[j for j, h in enumerate(groups) if j != i and wants[i] & set(h)] for i in range(len(groups))]
    for start in range(len(groups)):
        path = [start]
        while path[-1] not in path[:-1] and after[path[-1]]:
            path.append(after[path[-1]][0])
        if path[-1] in path[:-1]:
            return [groups[i] for i in path[path.index(path[-1]) : -1]]
    return []


def _wait(t: Any) -> Any:
    """Give what a thread waits for: if others run an instruction for it, what that waits for."""
    wait = t.wait
    while getattr(wait.on, "by", None) not in (None, t):
        t = wait.on.by
        wait = t.wait
    return wait


def _rank(on: Any, why: str) -> int:
    """Rank waits: the lowest is most likely the cause."""
    if why.startswith("setmaxnreg"):
        return 0
    if isinstance(on, MBarrier):
        return 1 if on.tx else 2
    return 3 if isinstance(on, Rally) else 4


def _cause(threads: list[Any], why: str, places: Places) -> list[str]:
    on = _wait(threads[0]).on
    on = getattr(on, "bar", on)
    if isinstance(on, MBarrier):
        return _mbarrier(on, why, places)
    if isinstance(on, Rally):
        have = set(on.who)
        absent = [t for t in threads[0].cta.threads if t not in have]
        need = on.expected or len(threads[0].cta.threads)
        return [f"for {why}: {on.arrived} of {need} threads have arrived; " + _missing(absent, places)]
    if isinstance(on, ClusterBarrier):
        absent = [t for t in places if t.cluster_phase != on.phase]
        return [f"for {why}: {count(on.arrived, 'thread')} arrived; " + _missing(absent, places)]
    if hasattr(on, "absent"):
        meets = {id(m): m for m in (_wait(t).on for t in threads)}
        absent = [t for m in meets.values() for t in m.absent()]
        return [f"for {why}, which all lanes of a {on.unit.kind} execute together; " + _missing(absent, places)]
    several = len(threads[0].cta.cluster.run.gpus) > 1
    polled = threads[0].polled if why.startswith(("an atomic", "a loop" if several else "an atomic")) else None
    if polled is None:
        return [f"for {why}", *filter(None, [threads[0].cta.too_many_registers()])]
    memory, address = polled
    return [f"for {why}, at {memory.name(address - getattr(memory, 'address', 0))}"]


def _mbarrier(bar: MBarrier, why: str, places: Places) -> list[str]:
    lines = [f"for {bar} ({why}), phase {bar.phase} (parity {bar.phase & 1}) to complete: {bar.missing()}"]
    if bar.arrivals:
        lines.append("arrived in this phase: " + _arrivals(bar.arrivals, places))
        here = {t for t, _, _ in bar.arrivals}
        absent = [a for a in bar.before if a[0] not in here]
        if absent and bar.pending:
            lines.append("in the phase before, but not in this one: " + _arrivals(absent, places))
    elif bar.before:
        lines.append("nobody has arrived in this phase; in an earlier one: " + _arrivals(bar.before, places))
    else:
        lines.append("nobody ever arrived")
        lines += _namesakes(bar)
    if bar.unseen:
        lines.append(
            f"{count(bar.unseen, 'phase')} completed before anybody waited for the one before: more arrive in a round "
            f"than the {bar.expected} it was initialised for"
        )
    return lines


def _namesakes(bar: MBarrier) -> list[str]:
    """Find who signalled the barrier at this address in another CTA of the cluster, perhaps instead of this one."""
    peers = [c.mbarriers[bar.address] for c in bar.cta.cluster.ctas if c is not bar.cta and bar.address in c.mbarriers]
    own = [(t, place) for peer in peers for t, place, _ in (*peer.before, *peer.arrivals) if t.cta is peer.cta]
    if not own:
        return []
    t, place = own[0]
    return [f"{who([t])} arrived at the same address of its own CTA, at {place.short}: a peer's needs mapa"]


def _fix(bar: MBarrier, places: Places) -> str:
    if bar.tx:
        return (
            f"announce the {bar.delivered} bytes that the copies deliver in a phase (tx_count, expect_tx), or issue "
            f"the copies that are missing"
        )
    if bar.unseen:
        return (
            f"look for the arrival that is one too many: the barrier was initialised for {bar.expected}, and phases "
            f"complete with nobody having waited for the one before; take that arrival (or commit) away, or initialise "
            f"it for as many as arrive in a round"
        )
    gone = [t for t, _, _ in bar.before if t not in places]
    if bar.pending and len(gone) >= bar.pending:
        return (
            f"{who(gone)} ended before this phase: let them go on for as many rounds as the others, or arrive for the "
            f"last time with mbarrier_arrive_drop"
        )
    return (
        f"let as many threads arrive in each phase as the barrier was initialised for ({bar.expected}): a consumer "
        f"releases what it has read, a producer commits or announces its bytes"
    )


def _together(meet: Meet, place: Place) -> str:
    elects = "; a TMA copy elects the thread that issues it by itself" if place.inside == "copy" else ""
    return (
        f"let all lanes of the {meet.unit.kind} call {place.inside or 'it'}: take it out of the branch that only some "
        f"of them take, as `if warp_idx == 0:` in place of `if thread_idx == 0:`{elects}"
    )


def _arrivals(arrivals: list[tuple[Any, Place, int]], places: Places) -> str:
    by: dict[Place, list[Any]] = {}
    for t, place, _ in arrivals:
        by.setdefault(place, []).append(t)
    out = []
    for place, threads in list(by.items())[:_MOST]:
        now = sorted({places[t].short if t in places else "" for t in threads})
        out.append(f"{who(threads)} at {place.short} (" + (f"now at {', '.join(now)}" if now[-1] else "exited") + ")")
    return "; ".join(out)


def _missing(absent: list[Any], places: Places) -> str:
    """Threads that have not come, and where they are."""
    by: dict[str, list[Any]] = {}
    for t in absent:
        by.setdefault(f"now at {places[t].short}" if t in places else "exited", []).append(t)
    words = [f"{who(threads)} ({where})" for where, threads in list(by.items())[:_MOST]]
    return "missing: " + "; ".join(words) if words else "none is missing"
