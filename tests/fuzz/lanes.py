# SPDX-License-Identifier: Apache-2.0
"""Random kernels whose lanes part and meet again, run by the simulator with all threads of a block together and lane by
lane: what they store must be the same to the bit: `python -m tests.fuzz.lanes --count 300 --seed 0`.

A kernel that ends in an error lane by lane must end in the same one.
"""

from __future__ import annotations

import argparse
import collections
import linecache
import random
import warnings
from contextlib import contextmanager
from unittest import mock

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import pipeline
from numba_cute.sim import launch

THREADS, DEEPEST = 96, 4


@cute.struct
class Walk:
    at: cute.Int32
    steps: cute.Int32

    def go(self, by):
        self.at += by
        self.steps += 1
        return self.at


class Box:
    def __init__(self, x):
        self.x = x


class Writer:
    """Writes a kernel, line by line."""

    def __init__(self, seed: int) -> None:
        self.random, self.lines = random.Random(seed), list[str]()

    def text(self) -> str:
        """Return the text of a kernel (x, out, counts)."""
        self.lines = [
            "def kernel(x, out, counts):",
            "    t = cuda.threadIdx.x",
            "    v0, v1, i0 = x[t], x[t + 1], t % 5",
            "    w0, w1 = cute.Int32(t * 40503 - 1500000), cute.Uint32(t * 2654435)",
            "    walk, pair, box = Walk(t, 0), [x[t], x[t]], Box(x[t])",
            "    local = cuda.local.array(4, np.float32)",
            "    held = cute.make_rmem_tensor(cute.make_layout(2), cute.Float32)",
            "    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 3)",
            "    held.fill(0.5)",
            "    for j in range(4):",
            "        local[j] = j",
        ]
        for _ in range(self.random.randint(4, 9)):
            self.statement(0, True)
        self.lines.append(
            "    out[t] += v0 + v1 + i0 + walk.at * 7 + walk.steps + pair[0] + pair[1] + box.x + local[1]"
            " + w0 % 1009 + w1 % 997"
        )
        return "\n".join(self.lines) + "\n"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 1) + text)

    def body(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth, False)

    def condition(self) -> str:
        r = self.random
        return r.choice([
            f"t % {r.randint(2, 7)} {r.choice(['<', '==', '>'])} {r.randint(0, 3)}",
            f"t {r.choice(['<', '>='])} {r.choice([8, 16, 32, 40, 50, 64])}",
            f"t // 32 == {r.randint(0, 2)}", f"i0 % {r.randint(2, 5)} == 0", f"v0 > {r.randint(0, 5)}", "x[t] > 0.5",
            "walk.at % 3 == 1", "pair[1] > pair[0]", "not t % 3", "t % 2 == 0 and x[t] < 0.7", "t < 20 or i0 > 2",
        ])  # fmt: skip

    def statement(self, depth: int, whole: bool) -> None:
        """Write a statement. whole: all lanes come to it."""
        kinds = [self.simple] * 6 + [self.choice, self.loop] * (depth < DEEPEST) + [self.meeting]
        self.random.choice(kinds)(depth, whole)

    def choice(self, depth: int, whole: bool) -> None:
        self.line(depth, f"if {self.condition()}:")
        self.body(depth + 1)
        other = self.random.random()
        if other < 0.45:
            self.line(depth, "else:" if other < 0.35 else f"elif {self.condition()}:")
            self.body(depth + 1)

    def loop(self, depth: int, whole: bool) -> None:
        if self.random.random() < 0.4:
            self.line(depth, f"n{depth} = t % {self.random.randint(2, 6)}")
            self.line(depth, f"while n{depth} > 0:")
            self.line(depth + 1, f"n{depth} -= 1")
            self.body(depth + 1)
            return
        self.line(
            depth, f"for k{depth} in range({self.random.choice(['3', 't % 4', 't % 3, 5', '5, t % 7, -2', 'w1 % 3'])}):"
        )
        self.body(depth + 1)
        if self.random.random() < 0.3:
            self.line(depth + 1, f"if {self.condition()}:")
            self.line(depth + 2, self.random.choice(["break", "continue"]))

    def meeting(self, depth: int, whole: bool) -> None:
        """Threads wait for each other: all of the block, or a warp that comes whole."""
        if whole:
            by = self.random.randint(1, 15)
            self.line(depth, self.random.choice(["cuda.syncthreads()", f"v0 += cuda.shfl_xor_sync(-1, v0, {by})"]))
            return
        if self.random.random() < 0.8:  # or it may never come whole, which is an error
            return self.simple(depth, whole)
        self.line(depth, f"if t // 32 == {self.random.randint(0, 2)}:")
        self.line(depth + 1, "cuda.syncwarp()")

    def integer(self) -> str:
        """Give an integer of some type, which lanes compute at once where that gives the same."""
        r = self.random
        a, b = (r.choice(["i0", "w0", "w1", "t", "(t % 3 - 1)", str(r.randint(-40, 40)), "walk.at"]) for _ in "ab")
        kind = r.choice(
            ["Int8", "Uint8", "Int16", "Int32", "Uint32", "Int64", "Uint64", "Float32", "Float64", "Boolean"]
        )
        return r.choice([
            f"({a} {r.choice(['+', '-', '*', '&', '|', '^', '//', '%'])} {b})",
            f"({a} {r.choice(['<<', '>>'])} {r.choice(['i0', '(t % 70 - 3)', '3'])})",
            f"cute.{kind}({a})", f"cute.Int32(cute.{kind}({a}) {r.choice('+-*')} cute.{kind}({b}))",
            f"int({a} {r.choice(['<', '<=', '==', '!=', '>', '>='])} {b})", f"-{a}", f"max({a}, {b})",
            f"int(v0 / cute.Float32({a}) > 0.5)",
            f"int(max(v0, -v1) * cute.Float32({r.choice(['0.0', '-3.0', '1e30'])}))",
        ])  # fmt: skip

    def simple(self, depth: int, whole: bool) -> None:
        r = self.random
        sources = ["x[t]", "v0", "v1", "i0", "walk.at", "pair[1]", "box.x", "held[1]", "state.index", "state.phase"]
        source = r.choice([*sources, f"local[{r.randint(0, 3)}]"])
        texts = [
            f"v{r.randint(0, 1)} {r.choice(['=', '+=', '-='])} cute.Float32({source})",
            f"i0 = (i0 * 3 + {r.randint(0, 9)}) % 17",
            f"w0 = cute.Int32({self.integer()})",
            f"w1 = cute.Uint32({self.integer()})",
            f"walk.go({r.randint(1, 3)})",
            f"pair[1] = cute.Float32({source})",
            f"box.x = cute.Float32({source})",
            f"local[{r.randint(0, 3)}] = {source}",
            f"held[{r.randint(0, 1)}] = cute.Float32({source})",
            "state.advance()",
            f"cuda.atomic.add(counts, t % 4, {r.randint(1, 3)})",
            f"out[t] += {source}",
        ]
        self.line(depth, r.choice(texts))


def kernel_of(seed: int):
    """Make the kernel of a seed; gives its text too."""
    text, file = Writer(seed).text(), f"<lanes {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"cuda": cuda, "cute": cute, "np": np, "pipeline": pipeline, "Walk": Walk, "Box": Box}
    exec(compile(text, file, "exec"), space)
    return cuda.jit(space["kernel"]), text


@contextmanager
def lane_by_lane():
    with mock.patch.object(launch, "why_alone", lambda *_: "a test"):
        yield


def outcome(kernel, seed: int, checks: bool):
    """Run a kernel; gives what it stored, or its error, and whether its threads ran together to the end."""
    x = np.random.default_rng(seed).random(THREADS + 1).astype(np.float32)
    out, counts = np.zeros(THREADS, np.float32), np.zeros(4, np.int32)
    simulated = cute.simulate(kernel, checks=checks)
    try:
        run = simulated.once(*simulated.configured((1, THREADS, 0, 0)), [(x, out, counts)], None)
    except cute.CuteError as e:
        return str(e), False
    return out.tobytes() + counts.tobytes(), run.shared


def differences(seed: int) -> tuple[list[str], bool]:
    """Say how runs of a seed's kernel differ, and whether one ran together."""
    kernel, text = kernel_of(seed)
    shared, found = False, []
    for checks in (False, True):
        with lane_by_lane():
            alone, _ = outcome(kernel, seed, checks)
        together, whole = outcome(kernel, seed, checks)
        shared |= whole
        if together != alone:
            found.append(f"{seed}, checks={checks}: {alone[:80]!r} and {together[:80]!r}\n{text}")
    return found, shared


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    ended: collections.Counter[str] = collections.Counter()
    with mock.patch.object(launch, "uses_library", lambda _: True), warnings.catch_warnings():
        warnings.simplefilter("error", cute.sim.SimWarning)  # of a fault of lanes together
        for seed in range(given.seed, given.seed + given.count):
            found, shared = differences(seed)
            ended["differs" if found else "together" if shared else "lane by lane"] += 1
            for words in found:
                print(words, flush=True)
    print(dict(ended))
    return bool(ended["differs"])


if __name__ == "__main__":
    raise SystemExit(main())
