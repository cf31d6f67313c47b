# SPDX-License-Identifier: Apache-2.0
"""Fair timing of launches: of one kernel in a line, of several contenders in turns.

A GPU's clock falls within seconds of work to what its power allows, so that the first contender of a row would be the
fastest. Here each has the same warm-up, turns rotate, and ratios are taken within rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from tqdm import tqdm

from ..compiler.host.stopwatch import Stopwatch
from ..seam import CuteError
from ..seam.ground.bar import AFTER, is_watched
from ..seam.ground.records import dataclass
from .clocks import Monitor
from .provenance import machine
from .results import Comparison, Timing

__all__ = ["Pace", "compare", "do_bench"]

Launch = Callable[[], Any]
REGIMES = ("cold", "burst", "sustained")
_MOST_LAUNCHES = 2000  # of a turn: a queue that is full makes the host wait
_GRAPH_SECONDS = 2e-3  # of a graph: many short kernels in one


@dataclass(frozen=True)
class Pace:
    """The pace of a comparison, in seconds and calls.

    turn: of a turn in the sustained regime. least, most: of its warm-up, which ends between them when the contenders'
    times have settled. within: by how much these may still move then. rest: before a burst. burst_warm, burst: its
    calls, before those that are timed, and those. cold: calls of a round whose cache is emptied before each.

    >>> cute.testing.Pace(turn=0.05).burst
    10
    """

    turn: float = 0.25
    least: float = 1.0
    most: float = 10.0
    within: float = 0.01
    rest: float = 1.0
    burst_warm: int = 3
    burst: int = 10
    cold: int = 20


class InProcess:
    """A contender whose launches this process makes. launches: one for each set of buffers. watch: what times them.
    graphs: how long the calls last, in seconds, that are captured in a graph, which is replayed; None for no graph."""

    def __init__(self, launches: Sequence[Launch], watch: Any, graphs: float | None = None) -> None:
        self._launches, self._watch = launches, watch
        self._graph: Any = None
        self.host: float | None = None
        for launch in launches:  # compiles what is not compiled yet
            launch()
        watch.synchronize()
        if graphs is not None:
            one = max(watch.timed(launches, len(launches)) / len(launches), 1e-7)
            sets = len(launches)
            rows = max(1, min(round(graphs / one), _MOST_LAUNCHES) // sets)
            self._graph = watch.graph(launches, rows * sets if graphs else 1)

    def per_call(self, count: int) -> float:
        """Return the seconds of a call, of about `count` back to back."""
        if self._graph is not None:
            replays = -(-count // self._graph.count)
            seconds = float(self._watch.timed([self._graph], replays))
            return seconds / float(replays * self._graph.count)
        seconds = float(self._watch.timed(self._launches, count))
        self.host = float(self._watch.host) / count * 1e6
        return seconds / count

    def cold(self, count: int) -> list[float]:
        """Return the seconds of each of `count` calls, each with an empty cache."""
        if self._graph is not None:
            return list(self._watch.each([self._graph], count, True))
        return list(self._watch.each(self._launches, count, True))


def compare(
    contenders: Mapping[str, Launch | Sequence[Launch]], *, baseline: str | None = None, regime: str = "sustained",
    rounds: int = 7, stream: Any = None, graphs: bool = False, keep_going: bool = False, pace: Pace | None = None,
    progress: bool = False, device: Any = None,
) -> Comparison:  # fmt: skip
    """Time contenders beside each other: in one run, in turns whose order rotates, with the same warm-up.

    contenders: by name, a function that launches, or one for each of several sets of buffers, which are taken in turn
    (of two times the L2 cache together, so that a launch does not find its data there). baseline: the name of the one
    that the others are compared with; the first by default.
    regime: "sustained" keeps the GPU busy until the times have settled, and then gives each contender a turn of a
    quarter of a second without a pause, so that its power limits the clock; "burst" times ten launches after a
    second's rest, at the highest clock; "cold" empties the L2 cache before each launch.
    rounds: how many turns each has. stream: the one that they launch on; None for torch's current, or the default one.
    graphs: replay launches from graphs, which leaves the host's time out; `stream` is then not the default one.
    keep_going: report a contender that fails in `failed`, and go on with the others. pace: how long turns take, a
    `Pace`. progress: show a bar, as for `autotune`. device: what times, in place of the current GPU: an object with the
    methods of compiler/host/stopwatch.py's Stopwatch.

    CuteError: no contender, one that is not a function, an unknown baseline or regime, or, without keep_going, a launch
    that fails.

    >>> @cute.kernel
    ... def fill(x, value):
    ...     x[arch.thread_idx()[0]] = value
    >>> x = np.zeros(64, np.float32)
    >>> launches = {"wide": lambda: fill[1, 64](x, 1), "narrow": lambda: fill[1, 32](x, 1)}
    >>> quick = cute.testing.Pace(turn=0.001, least=0.001, most=0.002)
    >>> c = cute.testing.compare(launches, baseline="narrow", rounds=2, pace=quick)
    >>> print(c.table())
    sustained,... medians of 2,... of narrow (...
    """
    taken = _contenders(contenders)
    _check(regime, rounds, taken, baseline)
    watch = Stopwatch(stream) if device is None else device
    seconds = None if not graphs else 0.0 if regime == "cold" else _GRAPH_SECONDS
    failed: dict[str, str] = {}
    made: dict[str, Any] = {}
    for name, launches in taken.items():
        try:
            made[name] = launches if hasattr(launches, "per_call") else InProcess(launches, watch, seconds)
        except Exception as e:
            if not keep_going:
                raise
            failed[name] = reason(e)
    return turns(
        made, baseline, regime, rounds, watch, pace or Pace(), keep_going=keep_going, progress=progress, failed=failed
    )


def reason(error: BaseException) -> str:
    """Return the class and first line of an error."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _contenders(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not given:
        raise CuteError(f"compare: contenders {given!r} must be a dict of at least one name and what launches")
    out: dict[str, Any] = {}
    for name, launches in given.items():
        if hasattr(launches, "per_call"):
            out[name] = launches
            continue
        several = list(launches) if isinstance(launches, Iterable) else [launches]
        if not several or not all(map(callable, several)):
            raise CuteError(
                f"compare: contender {name!r} is {launches!r}: give a function without arguments that launches, as "
                "`lambda: kernel[grid, block](a, b)`, or a list of such"
            )
        out[name] = several
    return out


def _check(regime: str, rounds: int, contenders: Mapping[str, Any], baseline: str | None) -> None:
    if regime not in REGIMES:
        raise CuteError(f"compare: regime {regime!r} must be one of {', '.join(REGIMES)}")
    if type(rounds) is not int or rounds < 1:
        raise CuteError(f"compare: rounds {rounds!r} must be a positive int")
    if baseline is not None and baseline not in contenders:
        raise CuteError(f"compare: baseline {baseline!r} is none of the contenders {', '.join(map(repr, contenders))}")


class _Race:
    """The contenders that are still in the race. keep_going: whether one that fails only leaves it."""

    def __init__(self, contenders: dict[str, Any], keep_going: bool, failed: dict[str, str]) -> None:
        self.running = dict(contenders)
        self.failed, self._keep_going = failed, keep_going

    def order(self, round_: int) -> list[str]:
        """The names of those that run, from another one on in each round."""
        names = list(self.running)
        return names[round_ % len(names) :] + names[: round_ % len(names)] if names else []

    def attempt(self, name: str, fn: Callable[[], Any]) -> Any:
        """Return the function's result; None if it fails, and the contender is then out."""
        try:
            return fn()
        except Exception as e:
            if not self._keep_going:
                raise
            self.failed[name] = reason(e)
            del self.running[name]
            return None


def bar_of(progress: bool) -> dict[str, Any]:
    """Return tqdm's options of a bar: it is shown where somebody sees it, and only if it takes longer than a moment."""
    return {"disable": not (progress and is_watched()), "delay": AFTER}


def turns(
    contenders: dict[str, Any], baseline: str | None, regime: str, rounds: int, watch: Any, pace: Pace, *,
    keep_going: bool, progress: bool, failed: dict[str, str],
) -> Comparison:  # fmt: skip
    """Time contenders that are made, as `InProcess` is; parameters as of `compare`."""
    race = _Race(contenders, keep_going, failed)
    facts = watch.facts()
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    spans: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    monitor = Monitor(facts.get("uuid")) if isinstance(watch, Stopwatch) else nullcontext()
    with monitor, tqdm(total=rounds * len(contenders), **bar_of(progress), desc=regime, unit="turn") as bar:
        start = watch.now()
        counts, settled = _warm_up(race, regime, watch, pace)
        warmed = watch.now() - start
        for r in range(rounds):
            for name in race.order(r):
                began = watch.now()
                c = race.running[name]
                got = race.attempt(name, partial(_turn, c, regime, counts.get(name, 1), watch, pace))
                if got is not None:
                    samples[name].append(got)
                    spans[name].append((began, watch.now()))
                bar.update()
        clocks = {n: _clocks(monitor, spans[n]) for n in race.running}
    if not race.running:
        why = "; ".join(f"{n}: {w}" for n, w in race.failed.items())
        raise CuteError(f"compare: no contender is left: {why}")
    timings = {
        n: Timing(n, tuple(s * 1e6 for s in samples[n]), clocks[n], getattr(c, "host", None))
        for n, c in race.running.items()
    }
    first = baseline if baseline in timings else next(iter(timings))
    return Comparison(regime, timings, first, warmed, settled, race.failed, machine(facts))


def _warm_up(race: _Race, regime: str, watch: Any, pace: Pace) -> tuple[dict[str, int], bool]:
    """Warm the GPU up, and return the number of calls in each contender's turn, and whether times have settled."""
    counts: dict[str, int] = {}
    for name in race.order(0):
        c = race.running[name]
        first = race.attempt(name, partial(c.per_call, 5))
        if first is not None:
            counts[name] = max(5, min(_MOST_LAUNCHES, round(pace.turn / max(first, 1e-7))))
    if regime != "sustained":
        return counts, True
    start = watch.now()
    cycles: list[dict[str, float]] = []
    while watch.now() - start < pace.most:
        cycle = {}
        for name in race.order(len(cycles)):
            c = race.running[name]
            cycle[name] = race.attempt(name, partial(c.per_call, counts[name]))
        cycles.append(cycle)
        if watch.now() - start >= pace.least and _settled(cycles, list(race.running), pace.within):
            return counts, True
        if not race.running:
            break
    return counts, False


def _settled(cycles: list[dict[str, float]], names: list[str], within: float) -> bool:
    """Say whether the mean of each contender's last two turns is close to that of the two before."""
    if len(cycles) < 4:
        return False
    for name in names:
        a, b, c, d = (cycle[name] for cycle in cycles[-4:])
        if abs((c + d) - (a + b)) > within * (a + b):
            return False
    return True


def _turn(contender: Any, regime: str, count: int, watch: Any, pace: Pace) -> float:
    """The seconds of a call in one turn."""
    if regime == "sustained":
        return float(contender.per_call(count))
    if regime == "burst":
        watch.sleep(pace.rest)
        contender.per_call(pace.burst_warm)
        return float(contender.per_call(pace.burst))
    each = sorted(contender.cold(pace.cold))
    return float(each[len(each) // 2])


def _clocks(monitor: Any, spans: list[tuple[float, float]]) -> dict[str, float] | None:
    if monitor is None or not isinstance(monitor, Monitor):
        return None
    found = [m for m in (monitor.between(*s) for s in spans) if m is not None]
    return {k: sum(m[k] for m in found) / len(found) for k in found[0]} if found else None


def do_bench(
    launch: Launch, *, warmup: float = 0.025, seconds: float = 0.1, flush: bool = True, stream: Any = None,
    graphs: bool = False, device: Any = None,
) -> Timing:  # fmt: skip
    """Time one kernel: the median of single calls, in microseconds.

    launch: a function without arguments that launches. warmup, seconds: how long to warm up, and to measure. flush:
    empty the L2 cache before each call. stream: the one that it launches on; None for torch's current, or the default
    one. graphs: replay the launch from a graph, on a stream that is not the default one. device: as of `compare`.
    CuteError: no function, times that are not positive, no GPU, a launch that fails.

    >>> @cute.kernel
    ... def fill(x, value):
    ...     x[arch.thread_idx()[0]] = value
    >>> x = np.zeros(32, np.float32)
    >>> cute.testing.do_bench(lambda: fill[1, 32](x, 1), warmup=0.001, seconds=0.001).median > 0  # µs
    True
    """
    if not callable(launch):
        raise CuteError(f"do_bench: launch {launch!r} must be a function without arguments that launches")
    for name, value in (("warmup", warmup), ("seconds", seconds)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise CuteError(f"do_bench: {name} {value!r} must be a positive number of seconds")
    watch = Stopwatch(stream) if device is None else device
    launch()
    watch.synchronize()
    call = watch.graph([launch], 1) if graphs else launch
    began = watch.now()
    one = sum(watch.each([call], 5, flush)) / 5
    with_flush = max(one, (watch.now() - began) / 5)
    watch.each([call], max(1, round(warmup / with_flush)), flush)
    began = watch.now()
    samples = watch.each([call], min(10_000, max(10, round(seconds / with_flush))), flush)
    watch.timed([call], 20)
    host, hidden = watch.host / 20 * 1e6, (with_flush - one if flush else 0.0) * 1e6
    return Timing("", tuple(s * 1e6 for s in samples), None, None if graphs or host < hidden else host)
