# SPDX-License-Identifier: Apache-2.0
"""Results of measurements: the times of one contender, and of several side by side."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ..seam import CuteError
from ..seam.ground.naming import described
from ..seam.ground.records import dataclass
from .statistics import Interval, median, median_interval

__all__ = ["Comparison", "Timing"]


@dataclass(frozen=True)
class Timing:
    """The time of a call, in microseconds. name: the contender's. samples: one for each round, or for each call.
    clocks: means of the GPU's SM clock (`sm_mhz`), power (`watts`) and temperature (`celsius`) meanwhile; None where
    they are not known. host: microseconds that the host took for a call; None where that was not measured. `float` of
    it is the median.

    >>> timing = cute.testing.Timing("mine", (3.0, 1.0, 2.0))
    >>> float(timing)
    2.0
    """

    name: str
    samples: tuple[float, ...]
    clocks: dict[str, float] | None = None
    host: float | None = None

    def __post_init__(self) -> None:
        times = self.samples if isinstance(self.samples, (tuple, list)) else ()
        if not times or not all(isinstance(t, (int, float)) for t in times):
            raise CuteError(f"Timing: samples {described(self.samples)}: give a tuple of one time or more")
        if self.host is not None and not isinstance(self.host, (int, float)):
            raise CuteError(f"Timing: host {described(self.host)}: give microseconds, or None")

    @property
    def median(self) -> float:
        """The median of the samples."""
        return median(self.samples)

    @property
    def interval(self) -> Interval:
        """The interval that holds the true median with 95% confidence, or with the most that the samples give."""
        return median_interval(self.samples)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the greatest sample."""
        return min(self.samples), max(self.samples)

    @property
    def host_bound(self) -> bool:
        """True if the host takes as long for a call as the GPU seems to, which then waits for it: launches were timed,
        more than the kernel."""
        return self.host is not None and self.host > 0.95 * self.median

    def __float__(self) -> float:
        return self.median

    def __str__(self) -> str:
        low, high = self.interval.low, self.interval.high
        named = f"{self.name}: " if self.name else ""
        slow = f"; the host takes {_us(self.host or 0)} for a call" if self.host_bound else ""
        return f"{named}{_us(self.median)} ({low:.4g} to {high:.4g}, of {len(self.samples)}){slow}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        i = self.interval
        return {
            "median_us": self.median,
            "interval_us": [i.low, i.high],
            "confidence": i.confidence,
            "samples_us": list(self.samples),
            "clocks": self.clocks,
            "host_us": self.host,
        }


@dataclass(frozen=True)
class Comparison:
    """Contenders, timed in turns in one run.

    regime: "cold", "burst" or "sustained". timings: of each contender, by name. baseline: the one that the others are
    compared with. warmed: seconds of warming up before the first round. settled: whether times had settled by then.
    failed: of each contender that failed, why. machine: what it ran on, and when.

    >>> timings = {"mine": cute.testing.Timing("mine", (2.0,)), "theirs": cute.testing.Timing("theirs", (3.0,))}
    >>> cute.testing.Comparison("burst", timings, "theirs").baseline
    'theirs'
    """

    regime: str
    timings: dict[str, Timing]
    baseline: str
    warmed: float = 0.0
    settled: bool = True
    failed: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        held = self.timings.values() if isinstance(self.timings, dict) else (None,)
        if not all(isinstance(t, Timing) for t in held):
            raise CuteError(f"Comparison: timings {described(self.timings)}: give a dict of Timings, by name")
        if not isinstance(self.failed, dict):
            raise CuteError(f"Comparison: failed {described(self.failed)}: give a dict of texts, by name")

    def __getitem__(self, name: str) -> Timing:
        return self.timings[name]

    @property
    def fastest(self) -> str:
        """The name of the contender with the least median. CuteError: none was timed."""
        if not self.timings:
            raise CuteError(f"no contender was timed: {self.failed or 'none was given'}")
        return min(self.timings, key=lambda name: self.timings[name].median)

    def speed(self, name: str) -> tuple[float, Interval]:
        """Return how fast a contender is beside the baseline, 2.0 for half of its time: the median of the rounds'
        ratios, and its interval. name: the contender's."""
        own, base = self.timings[name].samples, self.timings[self.baseline].samples
        ratios = [b / a for a, b in zip(own, base)]
        return median(ratios), median_interval(ratios)

    def table(self, work: float | None = None, unit: str = "TFLOP/s", scale: float = 1e-12) -> str:
        """Return the contenders as lines of text. work: what one call does, in operations or bytes, for a column of
        work * scale a second, called `unit`."""
        if not self.timings:
            raise CuteError(f"no contender was timed: {self.failed or 'none was given'}")
        width = max(map(len, [*self.timings, *self.failed]))
        lines = [self._heading()]
        for name, t in sorted(self.timings.items(), key=lambda item: item[1].median):
            ratio, i = self.speed(name)
            beside = "" if name == self.baseline else f"   {ratio:.3f} of {self.baseline} ({i.low:.3f} to {i.high:.3f})"
            clock = f"   {t.clocks['sm_mhz']:.0f} MHz, {t.clocks['watts']:.0f} W" if t.clocks else ""
            rate = f"{work * scale / (t.median * 1e-6):9.4g} {unit}" if work else ""
            slow = f"   host {_us(t.host or 0)}" if t.host_bound else ""
            lines.append(f"    {name:{width}} {_us(t.median):>11}{rate}{beside}{clock}{slow}")
        lines += [f"    {name:{width}} failed: {why}" for name, why in self.failed.items()]
        return "\n".join(lines)

    def _heading(self) -> str:
        gpu = f", {self.machine['gpu']}" if "gpu" in self.machine else ""
        state = "" if self.settled else ", times had not settled"
        rounds = len(next(iter(self.timings.values())).samples)
        return f"{self.regime}{gpu}, medians of {rounds}, {self.warmed:.1f} s of warm-up{state}"

    def __str__(self) -> str:
        return self.table()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        out: dict[str, Any] = {
            "regime": self.regime,
            "baseline": self.baseline,
            "warm_up_seconds": self.warmed,
            "settled": self.settled,
            "contenders": {},
            "failed": dict(self.failed),
            "machine": self.machine,
        }
        for name, t in self.timings.items():
            ratio, i = self.speed(name)
            out["contenders"][name] = {**t.as_dict(), "speed": ratio, "speed_interval": [i.low, i.high]}
        return out


def _us(microseconds: float) -> str:
    if microseconds >= 1e3:
        return f"{microseconds * 1e-3:.4g} ms"
    return f"{microseconds:.4g} us"
