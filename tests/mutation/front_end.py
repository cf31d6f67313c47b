# SPDX-License-Identifier: Apache-2.0
"""Faults in the functions of the front end: each must make a test fail, or an error, never another number in silence.

    python -m tests.mutation.front_end --jobs 2                    all of them, and record the outcome
    python -m tests.mutation.front_end --only passes/lists --show  those of some files
    python -m tests.mutation.front_end --first 0 --last 500        some of them, by their numbers: goes on where it was

A fault is judged by directed and random programs of the language, run three ways, and by tests: those that reach its
line. Which reach what is found first, with their outcomes without a fault, and kept in --folder. The fault is put into
the functions of a process that was forked for it; where nothing comes of that, into a fresh process's import. Nothing
is written into the tree.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.machinery
import importlib.util
import io
import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import time
import types
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from .faults import Fault, chosen, faults, functions

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "benchmarks" / "results" / "mutation_front_end.json"
QUICK_PROGRAMS = ROOT / "tests" / "fuzz" / "language" / "quick.txt"
FILES = (
    "compiler/ground/*.py", "compiler/passes/*.py", "typed/*.py", "compiler/host/checking.py",
    "compiler/host/fingerprint.py", "compiler/host/lowering.py", "compiler/bridge/*.py", "sim/python/jitted/*.py",
    "seam/source/*.py", "seam/marks/*.py", "seam/ground/leaf.py", "seam/ground/bytecode.py", "seam/ground/places.py",
)  # fmt: skip
_TESTED = {
    "tests/compiler": """
        assertions branches classes const_branches errors given identity kernels lists object_classes once
        numbas_own ownership plain prints python_state reads regions registers returned sequences settings static
        static_loops static_values structs tracing values with patches disk_cache interrupts tensor_loads""",
    "tests/sim": """
        front_end typed_kernels numba_names arithmetic debugging conversions places bytecode""",
    "tests/core": """
        names run_time_numbers scalars reference_names numbas_functions""",
    "tests/seam": """
        messages errors internal_errors unknown_names const_expr whose""",
    "tests/tensor": """
        narrow truth shared_arrays""",
    "tests/experimental": """
        names""",
    "tests/mistakes": """
        mistakes""",
    "tests/pipeline": """
        bytes""",
    "tests": """
        language""",
    "tests/fuzz": """
        passes""",
    "tests/ir": """
        from_kernel structure usage kernels_in_ir generated""",
}
TESTS = [f"{room}/test_{name}.py" for room, names in _TESTED.items() for name in names.split()]
"""Files whose tests judge faults, beside programs: those of the front end that are quick."""
AT_IMPORT = "at import"
WARNED = "ignore:Module already imported"  # by pytest, of its plugins
QUICK, MANY = (10, 6), (60, 25)
"""Programs and tests that a fault is judged by, at most: first, and when nothing comes of those."""
LIMIT = 120
"""Seconds of a processor that judging one fault may take: what hangs is heard."""
RANDOM = 30
WRONG = ("wrong compiled", "wrong simulator", "wrong both")


# What there is to judge by.


def programs() -> dict[str, str]:
    """Return the sources of the directed programs, in two places, and of some random ones."""
    from ..fuzz.choices import Seeded
    from ..fuzz.language import programs as directed
    from ..fuzz.language.writer import Writer

    found = dict(directed.every(("kernel",)))
    found |= dict(list(directed.every(("branch",)))[::3])
    return found | {f"seed {s}": Writer(Seeded(s)).source() for s in range(RANDOM)}


def front_end() -> list[str]:
    """Return the front end's files, below the root."""
    found = {p for pattern in FILES for p in (ROOT / "numba_cute").glob(pattern)}
    return sorted(str(p.relative_to(ROOT)) for p in found)


class Reached:
    """The lines of the front end that are run: `seen`, while it is entered."""

    def __init__(self) -> None:
        self._ours = {str(ROOT / path): path for path in front_end()}
        self.seen: set[tuple[str, int]] = set()

    def __enter__(self) -> set[tuple[str, int]]:
        self.seen = set()
        sys.settrace(self._called)
        return self.seen

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: types.FrameType, event: str, arg: object) -> Any:
        path = self._ours.get(frame.f_code.co_filename)
        if path is None:
            return None
        add = self.seen.add

        def line(frame: types.FrameType, event: str, arg: object) -> Any:
            add((path, frame.f_lineno))
            return line

        return line


def reach_programs(sources: dict[str, str], reached: Reached) -> Iterator[dict[str, Any]]:
    from ..fuzz.language import engines

    for label, source in sources.items():
        began = time.process_time()
        with redirect_stderr(io.StringIO()), reached as seen:
            kind = engines.run(source).kind
        if kind in ("same", "refused"):
            yield {"label": label, "kind": kind, "seconds": time.process_time() - began, "lines": sorted(seen)}


def reach_tests(file: str, reached: Reached) -> list[dict[str, Any]]:
    import pytest

    found: list[dict[str, Any]] = []

    class Plugin:
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_call(self, item: Any) -> Iterator[None]:
            began = time.process_time()
            with reached as seen:
                outcome = yield
            if outcome.excinfo is None:
                seconds = time.process_time() - began
                found.append({"label": item.nodeid, "kind": "test", "seconds": seconds, "lines": sorted(seen)})

    _pytest([file], [Plugin()])
    return found


def _pytest(args: list[str], plugins: list[Any] = []) -> int:  # noqa: B006 - read alone
    import pytest

    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-W", WARNED, *args], plugins))


def best(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the kinds of programs and tests, and by line of the front end those to judge it by, the best first."""
    reaching: dict[tuple[str, int], list[str]] = defaultdict(list)
    for r in sorted(records, key=lambda r: (r["kind"] == "refused", r["seconds"])):
        for path, line in r["lines"]:
            reaching[path, line].append(r["label"])
    kinds = {r["label"]: r["kind"] for r in records}
    own: Counter[tuple[str, str]] = Counter()  # how much a program does in a file that others do not
    for (path, _), labels in reaching.items():
        for label in labels:
            own[path, label] += 1 / len(labels)
    found: dict[str, dict[int, list[str]]] = defaultdict(dict)
    known: dict[tuple[str, ...], list[str]] = {}  # many lines are reached by the same
    for (path, line), labels in reaching.items():
        if same := known.get((path, *labels)):
            found[path][line] = same
            continue
        key = (path, *labels)
        if labels == [AT_IMPORT]:  # what comes of it is seen where the file's other functions run
            labels = [AT_IMPORT, *(label for p, label in own if p == path)]
        taken = [AT_IMPORT] * (AT_IMPORT in labels)
        for is_test, many in zip((False, True), MANY):
            group = [x for x in labels if (kinds[x] == "test") == is_test and x != AT_IMPORT]
            special = sorted(group, key=lambda x: -own[path, x])
            mixed = [x for both in zip(special, _spread(group)) for x in both]
            taken += list(dict.fromkeys(mixed))[:many]
        found[path][line] = known[key] = taken
    return {"kinds": kinds, "lines": found}


def _spread(labels: list[str]) -> list[str]:
    """Return labels so that the first are of as many constructs and files as can be."""
    turns: Counter[str] = Counter()
    ranked = []
    for at, label in enumerate(labels):
        place = label.partition("::")[0] if "::" in label else label.partition("/")[0]
        ranked.append((turns[place], at, label))
        turns[place] += 1
    return [label for _, _, label in sorted(ranked)]


class Tests:
    """The programs and tests that faults are judged by."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.kinds: dict[str, str] = found["kinds"]
        self._lines: dict[str, dict[str, list[str]]] = found["lines"]

    def of(self, fault: Fault, most: tuple[int, int] = MANY) -> list[str]:
        """Return labels of the programs and tests that reach a fault, and AT_IMPORT where importing does."""
        lines = self._lines.get(fault.path, {})
        span = range(fault.lines[0], fault.lines[1] + 1)
        labels = list(dict.fromkeys(x for n in span for x in lines.get(str(n), ())))
        tests = [x for x in labels if self.kinds[x] == "test"]
        return [x for x in labels if x not in tests][: most[0]] + tests[: most[1]]


def choose(found: dict[str, Any], count: int) -> None:
    """Write the directed programs that together reach the most lines, for the suite that runs by default; those that
    alone notice a fault stay."""
    left = {
        (path, n): {x for x in labels if "@" in x} for path, of in found["lines"].items() for n, labels in of.items()
    }
    chosen: list[str] = []
    while len(chosen) < count and (reach := Counter(x for labels in left.values() for x in sorted(labels))):
        chosen.append(reach.most_common(1)[0][0])
        left = {line: labels for line, labels in left.items() if chosen[-1] not in labels}
    kept = QUICK_PROGRAMS.read_text().partition("#")
    QUICK_PROGRAMS.write_text("\n".join(sorted(chosen)) + "\n" + "".join(kept[1:]))


# One fault in a process.


class Hook(importlib.machinery.SourceFileLoader):
    """Loads the module that has the fault."""

    fault: Fault

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self.fault.tree(ROOT), str(ROOT / self.fault.path), "exec", dont_inherit=True)

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        parts = cls.fault.path.removesuffix(".py").removesuffix("/__init__").split("/")
        if name != ".".join(parts):
            return None
        file = str(ROOT / cls.fault.path)
        return importlib.util.spec_from_file_location(name, file, loader=cls(name, file))


def put(fault: Fault) -> None:
    """Put a fault into the functions of the modules that are imported."""
    file = str(ROOT / fault.path)
    old = compile((ROOT / fault.path).read_text(), file, "exec", dont_inherit=True)
    new = compile(fault.tree(ROOT), file, "exec", dont_inherit=True)
    changed = {a: b for a, b in _codes(old, new) if a != b}
    gc.unfreeze()  # what the tests' harness freezes is not listed
    for made in gc.get_objects():
        if isinstance(made, types.FunctionType) and made.__code__ in changed:
            made.__code__ = changed[made.__code__]
        elif isinstance(made, functools._lru_cache_wrapper) and made.__module__.startswith("numba_cute"):
            made.cache_clear()


def _codes(old: types.CodeType, new: types.CodeType) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    yield old, new
    inner = [[c for c in code.co_consts if isinstance(c, types.CodeType)] for code in (old, new)]
    for a, b in zip(*inner):
        if a.co_name == b.co_name:
            yield from _codes(a, b)


def warm() -> None:
    """Import what every program needs, and compile and simulate once."""
    from ..fuzz.language import engines, programs

    engines.run(programs.source("", "o[tid, 0] = n"))


def judge(labels: list[str], kinds: dict[str, str], sources: dict[str, str]) -> dict[str, str]:
    """Return the verdict on the fault that is in this process, and by what. kinds: of tests, without it."""
    from ..fuzz.language import engines

    nodes = [x for x in labels if kinds[x] == "test"]
    for label in labels:
        if label not in sources:
            continue
        with redirect_stderr(io.StringIO()):
            found = engines.run(sources[label])
        if found.kind != kinds[label]:
            said = next((r.error for r in (found.compiled, found.simulator) if r.error), "")
            verdict = "wrong" if found.kind in WRONG else "heard"
            return {"verdict": verdict, "by": label, "kind": found.kind, "said": said[:200]}
    if nodes and _pytest(nodes) != 0:
        return {"verdict": "test", "by": nodes[0], "kind": "test", "said": ""}
    return {"verdict": "survives", "by": "", "kind": "", "said": ""}


def in_fork(tests: Tests, fault: Fault, given: argparse.Namespace) -> dict[str, str]:
    """Judge a fault in this process, that was forked for it; by more, and in a fresh one, if nothing comes of it."""
    verdict = {"verdict": "survives"}
    if AT_IMPORT not in tests.of(fault):
        try:
            put(fault)
            verdict = judge(tests.of(fault, QUICK), tests.kinds, programs())
        except ValueError:
            pass  # a code with other free variables: by the import
    if verdict["verdict"] == "survives":
        command = [sys.executable, "-m", "tests.mutation.front_end", "--folder", str(given.folder),
                   "--fresh", str(fault)]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        last = done.stdout.strip().rpartition("\n")[2]
        verdict = json.loads(last) if last.startswith("{") else _lost(f"exit {done.returncode}")
    return verdict


def _lost(how: str) -> dict[str, str]:
    return {"verdict": "heard", "by": how, "kind": how, "said": ""}


# Many of them.


def each(work: list[Any], do: Callable[[Any], Any], jobs: int, limit: int, end: float) -> Iterator[tuple[Any, Any]]:
    """Yield (item, what `do` gives) of each item that is begun before `end`, each in a process forked for it, which
    may take `limit` seconds of a processor."""
    left = iter(work)
    running: dict[int, tuple[int, Any, bytes, float]] = {}
    while True:
        while len(running) < jobs and time.monotonic() < end and (item := next(left, None)) is not None:
            reading, writing = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.setsid()
                os.close(reading)
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
                try:
                    told = json.dumps(do(item)).encode()
                except BaseException as e:
                    told = json.dumps(_lost(f"{type(e).__name__}: {e}"[:200])).encode()
                with os.fdopen(writing, "wb") as out:
                    out.write(told)
                os._exit(0)
            os.close(writing)
            running[reading] = (pid, item, b"", time.monotonic())
        if not running:
            return
        ready = select.select(list(running), [], [], 0.5)[0]
        for fd, (pid, item, data, began) in list(running.items()):
            late = time.monotonic() - began > 10 * limit  # where it waits, and uses no processor
            more = os.read(fd, 1 << 20) if fd in ready else b""
            if more:
                running[fd] = (pid, item, data + more, began)
            elif fd in ready or late:
                del running[fd]
                if late:
                    os.killpg(pid, signal.SIGKILL)
                os.close(fd)
                os.waitpid(pid, 0)
                yield item, json.loads(data) if data and not late else _lost("hung" if late else "crash")


def reach(folder: Path, jobs: int) -> None:
    """Find what reaches what, and write it."""
    reached = Reached()
    with reached as seen:
        warm()
    records = [{"label": AT_IMPORT, "kind": AT_IMPORT, "seconds": 0, "lines": sorted(seen)}]
    sources = list(programs().items())
    pieces: list[Any] = [*TESTS, *(dict(sources[i::40]) for i in range(40))]

    def find(piece: Any) -> Any:
        return reach_tests(piece, reached) if isinstance(piece, str) else list(reach_programs(piece, reached))

    for _, found in each(pieces, find, jobs, 1800, math.inf):
        records += found
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reached.json").write_text(json.dumps(best(records)))


def every_fault(tests: Tests, count: int) -> tuple[list[Fault], list[str]]:
    """Return the faults that are judged, and the functions that nothing reaches."""
    found, unreached = [], []
    for path in front_end():
        by_function: dict[str, list[Fault]] = defaultdict(list)
        whole = faults(ROOT, path)
        for fault in whole:
            if tests.of(fault):
                by_function[fault.function].append(fault)
        for name in sorted(functions(ROOT, path)):
            picked = chosen(by_function[name], count)
            found += picked
            if not picked and any(f.function == name for f in whole):
                unreached.append(f"{path}: {name}")
    return found, unreached


def summary(known: dict[str, dict[str, str]], unreached: list[str], reasons: dict[str, str]) -> dict[str, Any]:
    survivors = {name: reasons.get(name, "") for name, v in known.items() if v["verdict"] == "survives"}
    return {
        "faults": len(known),
        "functions": len({tuple(name.split(": ")[:2]) for name in known}),
        "outcomes": dict(Counter(v["verdict"] for v in known.values()).most_common()),
        "kinds": dict(Counter(v["kind"] for v in known.values() if v["kind"]).most_common()),
        "survivors": survivors,
        "reached by nothing": {name: reasons.get(name, "") for name in unreached},
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no fault after these")
    parser.add_argument("--count", type=int, default=2, help="faults of a function")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=1 << 30)
    parser.add_argument("--only", default="", help="faults whose text holds this")
    parser.add_argument("--again", action="store_true", help="judge survivors again")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/mutation_front_end"))
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--record", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    parser.add_argument(
        "--choose", type=int, default=0, help="write so many programs for the suite that runs by default"
    )
    parser.add_argument("--fresh", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    end = time.monotonic() + given.seconds
    os.environ["NUMBA_CUTE_CACHE"] = "0"
    warnings.simplefilter("ignore")
    sys.dont_write_bytecode = True
    if not (given.folder / "reached.json").exists():
        if (pid := os.fork()) == 0:  # with nothing of the package imported, which is seen as well
            reach(given.folder, given.jobs)
            os._exit(0)
        os.waitpid(pid, 0)
    found = json.loads((given.folder / "reached.json").read_text())
    tests = Tests(found)
    if given.choose:
        choose(found, given.choose)
        return
    if given.fresh:
        (Hook.fault,) = [f for f in faults(ROOT, given.fresh.partition(": ")[0]) if str(f) == given.fresh]
        sys.meta_path.insert(0, Hook)
        try:
            warm()
            verdict = judge(tests.of(Hook.fault), tests.kinds, programs())
        except BaseException as e:
            verdict = _lost(f"{type(e).__name__}: {e}"[:200])
        print("\n" + json.dumps(verdict), flush=True)
        os._exit(0)
    every, unreached = every_fault(tests, given.count)
    out = Path(os.environ.get("OUT") or given.folder) / "outcomes.json"
    known = json.loads(out.read_text()) if out.exists() else {}
    work = [
        n for n, f in enumerate(every)
        if given.first <= n < given.last and given.only in str(f)
        and (str(f) not in known or given.again and known[str(f)]["verdict"] == "survives")
    ]  # fmt: skip
    warm()
    import pytest  # noqa: F401

    for n, verdict in each(work, lambda n: in_fork(tests, every[n], given), given.jobs, LIMIT, end):
        known[str(every[n])] = verdict
        out.write_text(json.dumps(known, indent=1))
        if given.show or verdict["verdict"] == "survives":
            print(f"{n} of {len(every)}: {verdict['verdict']} {verdict.get('kind')}: {every[n]}", flush=True)
    known = {str(f): known[str(f)] for f in every if str(f) in known}
    before = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    reasons = {**before.get("survivors", {}), **before.get("reached by nothing", {})}
    told = summary(known, unreached, reasons)
    print(json.dumps(told | {"survivors": len(told["survivors"]), "reached by nothing": len(unreached)}, indent=1))
    if given.record:
        RESULT.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
