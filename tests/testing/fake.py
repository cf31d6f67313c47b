# SPDX-License-Identifier: Apache-2.0
"""A GPU that is none: launches add to its time, and its clock falls while it works, as a real one's does."""

from __future__ import annotations

import time
from pathlib import Path

from numba_cute.seam import CuteError

HANGS = 60.0  # seconds


class FakeGraph:
    """A graph of launches."""

    def __init__(self, launches, count):
        self._launches, self.count = launches, count

    def __call__(self):
        for i in range(self.count):
            self._launches[i % len(self._launches)]()


class FakeGPU:
    """What compiler/host/stopwatch.py's Stopwatch is. throttle: how much slower it is in the end; settle: seconds of
    work in which it comes near. log: the names of the launches, in order."""

    host = 0.0

    def __init__(self, throttle=0.0, settle=0.5, l2=1000):
        self.clock, self.heat, self.throttle, self.settle = 0.0, 0.0, throttle, settle
        self.log, self.flushes, self._l2 = [], 0, l2

    def launch(self, name, seconds, fails=None):
        """A launch of so many seconds on a cool GPU. fails: how many calls until it fails."""
        left = [fails]

        def call():
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    raise CuteError(f"{name} failed\nwith a second line")
            self.log.append(name)
            took = seconds * (1 + self.throttle * self.heat)
            self.heat += (1 - self.heat) * min(1.0, took / self.settle)
            self.clock += took

        return call

    def now(self):
        return self.clock

    def sleep(self, seconds):
        self.clock += seconds
        self.heat *= 0.5 ** (seconds / 0.1)

    def synchronize(self):
        pass

    def flush(self):
        self.flushes += 1

    def timed(self, launches, count):
        start = self.clock
        for i in range(count):
            launches[i % len(launches)]()
        return self.clock - start

    def each(self, launches, count, flush):
        out = []
        for i in range(count):
            if flush:
                self.flush()
            out.append(self.timed([launches[i % len(launches)]], 1))
        return out

    def graph(self, launches, count):
        return FakeGraph(launches, count)

    def l2_bytes(self):
        return self._l2

    def facts(self):
        return {"gpu": "a fake", "compute_capability": "0.0", "multiprocessors": 1}


class RealTime(FakeGPU):
    """One whose time is the host's, for processes that share nothing."""

    def now(self):
        return time.perf_counter()

    def timed(self, launches, count):
        start = time.perf_counter()
        for i in range(count):
            launches[i % len(launches)]()
        return time.perf_counter() - start


def work(folder, kind="fast"):
    """A launching function with configurations that work, fail, hang and end their process."""
    with open(Path(folder) / kind, "a") as log:
        log.write(".")
    if kind == "hangs":
        time.sleep(HANGS)
    if kind == "fails":
        raise CuteError("this tile is too large")
    if kind == "dies":
        import os

        os._exit(7)
    time.sleep(2e-4 if kind == "fast" else 2e-3)
