# SPDX-License-Identifier: Apache-2.0
"""What two runs of a suite differ in, test by test, and what they cost."""

import importlib.metadata
import platform
import time
from collections import Counter
from statistics import median

from .run import ARMS, dealt, run

ABSENT = "absent"


class Outcomes:
    """Of each test, in each way, the outcomes of its runs in their order; seconds and reports of the first."""

    def __init__(self, library):
        self.library = library
        self.seen = {arm: {} for arm in ARMS}
        self.seconds = {arm: {} for arm in ARMS}
        self.why = {arm: {} for arm in ARMS}
        self.imports = []
        self.unfinished = []

    def add(self, records):
        """Take the records of one run of both arms."""
        here = {arm: {} for arm in ARMS}
        for arm, found in records.items():
            for record in found:
                if "test" in record:
                    test = record["test"]
                    here[arm][test] = record["outcome"]
                    self.seconds[arm].setdefault(test, record["seconds"])
                    self.why[arm].setdefault(test, record["why"])
                else:
                    self._of_a_process(arm, record)
        cut_off = {module for entry in self.unfinished for module in entry.get("unfinished", ())}
        for test in here["without"].keys() | here["with"].keys():
            if all(test in here[arm] for arm in ARMS) or module_of(test) not in cut_off:
                for arm in ARMS:
                    self.seen[arm].setdefault(test, []).append(here[arm].get(test, ABSENT))

    def _of_a_process(self, arm, record):
        if "unfinished" in record:
            self.unfinished.append({"arm": arm, **record})
        elif "loaded" in record and (self.library in record["loaded"]) != (arm == "with"):
            self.unfinished.append({"arm": arm, "how": f"{self.library} was imported, or should have been"})
        elif record.get("imported"):
            self.imports.append(record["seconds"])

    def new(self, test):
        """How often the import gave what the test never did without it."""
        known = self.seen["without"][test]
        return sum(outcome not in known for outcome in self.seen["with"][test])

    def doubtful(self):
        """The tests to which the import has given another outcome, so far."""
        return sorted(test for test in self.seen["with"] if self.new(test))

    def different(self):
        """Those of them that got it again when they ran again (once is what unsteady tests do, too)."""
        return [t for t in self.doubtful() if self.new(t) > 1 or len(self.seen["with"][t]) == 1]

    def unsteady(self):
        """The tests whose runs differ among themselves, of which the import need not be the reason."""
        tests = {t for t in self.seen["with"] if len({*self.seen["with"][t], *self.seen["without"][t]}) > 1}
        return sorted(tests - set(self.different()))

    def total(self, arm):
        """Seconds of the tests that both ways have run."""
        both = self.seconds["without"].keys() & self.seconds["with"].keys()
        return sum(self.seconds[arm][t] for t in both)


def compare(found, settings, retries):
    """Run these modules of the suite in both ways, and what differs again, by modules, up to `retries` times."""
    outcomes = Outcomes(settings.library)
    outcomes.add(run(dealt(found, settings), settings, "suite"))
    for attempt in range(retries):
        again = {module_of(t) for t in outcomes.doubtful()} & set(found)
        if not again or time.monotonic() > settings.deadline:
            break
        outcomes.add(run(dealt(sorted(again), settings), settings, f"again{attempt}"))
    return outcomes


def module_of(test):
    return test.partition("::")[0].removesuffix(".py").replace("/", ".")


def summary(outcomes):
    """The outcomes as an object for JSON."""
    first = {arm: {t: o[0] for t, o in seen.items()} for arm, seen in outcomes.seen.items()}
    packages = {t.partition("/")[0] for t in first["with"]}
    without, with_it = outcomes.total("without"), outcomes.total("with")
    return {
        "versions": {p: importlib.metadata.version(p) for p in ("numba", "numba-cuda", "numpy", "pytest")},
        "python": platform.python_version(),
        "tests": len(first["with"]),
        "packages": {
            p: {arm: Counter(o for t, o in first[arm].items() if t.startswith(f"{p}/")) for arm in ARMS}
            for p in sorted(packages)
        },
        "different": [_entry(outcomes, t) for t in outcomes.different()],
        "unsteady": [_entry(outcomes, t) for t in outcomes.unsteady()],
        "unfinished": outcomes.unfinished,
        "seconds": {"without": round(without, 2), "with": round(with_it, 2)},
        "ratio": round(with_it / without, 4) if without else 1.0,
        "import_seconds": round(median(outcomes.imports), 3) if outcomes.imports else None,
    }


def _entry(outcomes, test):
    return {"test": test, **{arm: outcomes.seen[arm][test] for arm in ARMS}, "why": outcomes.why["with"].get(test, "")}
