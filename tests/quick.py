# SPDX-License-Identifier: Apache-2.0
"""Run the tests nearest to what changed, for at most 90 seconds: `make quick`.

python -m tests.quick                   what differs from the last commit, or, if nothing does, what that changed
python -m tests.quick --since main      what differs from a branch
python -m tests.quick --list            say which files of tests, and run none
python -m tests.quick --record          the whole suite, keeping each file's seconds (tests/seconds.json)

A file of tests is as far from a module as there are imports between them; `numba_cute` itself, which imports every
room, counts as the modules of those names that a file takes from it. A room's own tests (tests/sim of numba_cute/sim)
are one step away. The nearest files run first, as many as the time allows by their seconds.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SECONDS = ROOT / "tests" / "seconds.json"
BUDGET = 65.0  # seconds of all files, over the processes; starting takes the rest of 90
UNKNOWN = 5.0  # seconds of a file that is not in the record
FACADE = "numba_cute"


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed(since: str | None) -> list[str]:
    """List the files that differ from a commit, those that git does not know too."""
    new = git("ls-files", "--others", "--exclude-standard")
    found = git("diff", "--name-only", since or "HEAD") + new
    return found or git("diff", "--name-only", "HEAD~1")


def module_of(path: str) -> str:
    """Name the module of a file: numba_cute/sim/run.py is numba_cute.sim.run."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def attribute(node: ast.AST) -> list[str]:
    """Spell a chain of attributes: cute.arch.x is ["cute", "arch", "x"]; empty if it is none."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def home(names: Iterable[str]) -> str | None:
    """Name the module that defines what `numba_cute` has under a chain of names."""
    held: Any = importlib.import_module(FACADE)
    for name in names:
        if not isinstance(held, ModuleType):
            break
        held = getattr(held, name, None)
    found = held.__name__ if isinstance(held, ModuleType) else getattr(held, "__module__", None)
    return found if isinstance(found, str) and found.startswith(FACADE + ".") else None


def imports(text: str, module: str, is_package: bool, known: set[str]) -> set[str]:
    """Name the modules that a file's text takes something from."""
    found: set[str] = set()
    facades: set[str] = set()
    nodes = list(ast.walk(ast.parse(text)))
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
            facades |= {a.asname or a.name for a in node.names if a.name == FACADE}
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            base = parts[: len(parts) - node.level + is_package] if node.level else []
            of = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{of}.{a.name}" if f"{of}.{a.name}" in known else of for a in node.names}
            if of == FACADE:
                found |= {h for a in node.names if (h := home([a.name]))}
    if facades and not module.startswith(FACADE):
        chains = (attribute(n) for n in nodes if isinstance(n, ast.Attribute))
        found |= {h for c in chains if c and c[0] in facades and (h := home(c[1:]))}
    return {f for f in found if f in known and f != FACADE}


def graph() -> dict[str, set[str]]:
    """Give for each module of the tree those that import it."""
    files = {module_of(f): f for f in git("ls-files", "--cached", "--others", "--exclude-standard", "*.py")}
    users: dict[str, set[str]] = defaultdict(set)
    for module, file in files.items():
        path = ROOT / file
        if path.exists():
            for used in imports(path.read_text(), module, path.name == "__init__.py", set(files)):
                users[used].add(module)
    return users


def distances(modules: Iterable[str], users: dict[str, set[str]]) -> dict[str, int]:
    """Count the imports between each module and the nearest of those given."""
    found = dict.fromkeys(modules, 0)
    queue = deque(found)
    while queue:
        module = queue.popleft()
        for user in users.get(module, ()):
            if user not in found and user != FACADE:
                found[user] = found[module] + 1
                queue.append(user)
    return found


def mirrored(module: str) -> str:
    """Name the room of tests that mirrors a module's: numba_cute.sim.run has tests.sim, and so has a room within it
    that has no tests of its own; modules that lie in no room have tests.core."""
    package, *rooms = module.split(".")[:-1] or [""]
    if package != FACADE:
        return ""
    while rooms and not (ROOT / "tests").joinpath(*rooms).is_dir():
        rooms.pop()
    return ".".join(["tests", *(rooms or ["core"])])


def ranked(files: Iterable[str], users: dict[str, set[str]], tests: Iterable[str]) -> list[tuple[int, str]]:
    """Sort the files of tests that what changed reaches, the nearest first."""
    modules = [module_of(f) for f in files if f.endswith(".py")]
    far = distances(modules, users)
    rooms = {room for m in modules if (room := mirrored(m))}
    found = []
    for test in tests:
        module = module_of(test)
        near = [far[module]] if module in far else []
        near += [1] if any(module.startswith(room + ".") for room in rooms) else []
        found += [(min(near), test)] if near else []
    return sorted(found)


def within(found: list[tuple[int, str]], seconds: dict[str, float], budget: float) -> Iterator[str]:
    """Give as many of the nearest files as fit into a time; one that does not is passed over."""
    for _, test in found:
        takes = seconds.get(test, UNKNOWN)
        if takes <= budget:
            budget -= takes
            yield test


class Seconds:
    """A plugin of pytest that sums the seconds of each file's tests."""

    def __init__(self) -> None:
        self.found: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.found[report.nodeid.partition("::")[0]] += report.duration


def record(jobs: int) -> int:
    """Run the suite and keep each file's seconds."""
    import pytest

    plugin = Seconds()
    failed = pytest.main(["-q", "-n", str(jobs), "--dist", "loadscope"], plugins=[plugin])
    SECONDS.write_text(json.dumps({f: round(s, 1) for f, s in sorted(plugin.found.items())}, indent=0) + "\n")
    return int(failed)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    if options.record:
        return record(options.jobs)
    files = changed(options.since)
    found = ranked(files, graph(), git("ls-files", "--cached", "--others", "--exclude-standard", "tests/**/test_*.py"))
    seconds = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    chosen = list(within(found, seconds, BUDGET * options.jobs))
    print(f"{len(files)} files changed; {len(chosen)} files of tests run, of {len(found)} that what changed reaches")
    if options.list or not chosen:
        print(*chosen, sep="\n")
        return 0
    python = [f for f in files if f.endswith(".py") and (ROOT / f).exists()]
    failed = bool(python) and subprocess.run([sys.executable, "-m", "ruff", "check", *python], cwd=ROOT).returncode
    tests = [sys.executable, "-m", "pytest", "-q", "-n", str(options.jobs), "--dist", "loadscope", *chosen]
    return subprocess.run(tests, cwd=ROOT).returncode or int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
