# SPDX-License-Identifier: Apache-2.0
"""Every example and every kernel of `numba_cute.kernels`, proved: `python -m tests.sim.prove.everything [PART …]`
runs the examples on small problems and the kernels by their own tests, and writes benchmarks/results/prove.json. Parts
that are named replace their own entries. The part "rounds" has problems with longer loops, and of each the lines that
may be repeated. A part may be a test, "attention/test_fp8.py::test_…", slow or not: then it adds to its part the
kernels that it launches."""

import functools
import json
import sys
import time
from pathlib import Path

import pytest

from numba_cute.sim.orders import PROOFS, ROUNDS
from numba_cute.sim.prove.prover import Prover

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "prove.json"
TESTS = {part: f"tests/kernels/{part}" for part in ("rows", "moves", "gemm", "conv", "attention")}
TESTS["experimental"] = "tests/experimental/test_gemms.py"
"""Where the tests of each part are."""
NAMES = dict.fromkeys(("gemm", "conv", "attention"), "{file}: {kernel}") | {"experimental": "{test}"}
"""What an entry is called where several kernels have one name."""


class Clock:
    """Seconds that the prover takes: those of its methods that are called by the simulator."""

    def __init__(self):
        self.seconds = 0.0
        self._inside = False
        for name, method in list(vars(Prover).items()):
            if callable(method) and not name.startswith("_"):
                setattr(Prover, name, self._timed(method))

    def _timed(self, method):
        @functools.wraps(method)
        def timed(*args, **named):
            if self._inside:
                return method(*args, **named)
            self._inside, start = True, time.perf_counter()
            try:
                return method(*args, **named)
            finally:
                self._inside = False
                self.seconds += time.perf_counter() - start

        return timed


class Launches:
    """A plugin of pytest that proves each launch of each test. held: what was found, by the names that the form `named`
    gives."""

    def __init__(self, clock, named="{kernel}"):
        self.clock, self.named, self.held = clock, named, {}

    def add(self, proofs, name):
        """What the launches of a test gave. name: of a proof's kernel."""
        for p, seconds, proving in proofs:
            entry = self.held.setdefault(name(p.kernel), _entry())
            entry["launches"] += 1
            entry["proved"] += p.proved
            entry["steps"] += p.events
            entry["seconds"] += seconds
            entry["milliseconds of the proof"] += 1000 * proving
            entry["assumed"] = sorted({*entry["assumed"], *(a.split(", at ")[0] for a in p.assumptions)})
            entry["not proved"] = sorted({*entry["not proved"], *p.conflicts})

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        yield from self.following(
            lambda kernel: self.named.format(kernel=kernel, file=item.path.stem[5:], test=item.originalname[5:])
        )

    def following(self, name):
        proofs = Timed(self.clock)
        token = PROOFS.set(proofs)
        yield
        PROOFS.reset(token)
        self.add(zip(proofs, proofs.seconds, proofs.proving), name)


class Timed(list):
    """Proofs as they come, with the seconds since the one before, and those of the prover among them."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.seconds, self.proving = clock, [], []
        self._last = time.perf_counter(), clock.seconds

    def append(self, proof):
        super().append(proof)
        now = time.perf_counter(), self.clock.seconds
        self.seconds.append(now[0] - self._last[0])
        self.proving.append(now[1] - self._last[1])
        self._last = now


def _entry():
    return {"launches": 0, "proved": 0, "steps": 0, "seconds": 0.0, "milliseconds of the proof": 0.0, "assumed": [],
            "not proved": []}  # fmt: skip


def examples(launches):
    """Prove the kernels of tests/mutation: the examples on small tiles, and the pipelines of tests/bugs."""
    from ...mutation import kernels, shipped

    for kernel in kernels.KERNELS:
        if kernel in shipped.KERNELS:  # their parts have them
            continue
        following = launches.following(lambda _, name=kernel.name: name)
        next(following)
        kernel.run(vars(kernel.module), {})
        next(following, None)


def tests(launches, part):
    """Prove what the tests of a part launch, or one test of it."""
    where, _, one = part.partition("/")
    chosen = (
        [str(ROOT / TESTS[where] / one), "-m", ""] if one else [str(ROOT / TESTS[where]), "-m", "not gpu and not slow"]
    )
    known = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # this package was imported before pytest began
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *known, *chosen], plugins=[launches])


def rounds():
    """Which steps of the examples may be done any number of times."""
    from .repeated import PROBLEMS

    found = {}
    for name, problem in PROBLEMS.items():
        start, (proof,) = time.perf_counter(), proved(problem)
        found[name] = {"proved": proof.proved, "rounds": proof.rounds, "steps": proof.events,
                       "seconds": time.perf_counter() - start, "assumed": proof.assumptions}  # fmt: skip
    return found


def proved(problem):
    """The proofs of what a problem launches, with rounds."""
    tokens = PROOFS.set(proofs := []), ROUNDS.set(True)
    try:
        problem()
    finally:
        PROOFS.reset(tokens[0])
        ROUNDS.reset(tokens[1])
    return proofs


def main():
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    clock = Clock()
    for part in sys.argv[1:] or ("examples", "rounds", *TESTS):
        where = part.split("/")[0]
        launches = Launches(clock, NAMES.get(where, "{kernel}"))
        if part == "rounds":
            launches.held = rounds()
        elif part == "examples":
            examples(launches)
        else:
            tests(launches, part)
        found = {name: _rounded(entry) for name, entry in sorted(launches.held.items())}
        known[where] = {**known.get(where, {}), **found} if "/" in part else found
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
        print(part, json.dumps(found, indent=1), flush=True)


def _rounded(entry):
    return {k: round(v, 2) if isinstance(v, float) else v for k, v in entry.items()}


if __name__ == "__main__":
    main()
