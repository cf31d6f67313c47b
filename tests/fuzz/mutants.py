# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - a mutant's line is one line
"""One line of each pass changed: the tests of this folder must notice each.

python -m tests.fuzz.mutants            all of them, each on a copy of the tree: some minutes
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ["tests/fuzz/test_passes.py", "tests/compiler/test_ownership.py", "tests/pipeline/test_bytes.py",
         "tests/fuzz/test_cutes.py", "tests/fuzz/test_plain.py"]  # fmt: skip

MUTANTS: dict[str, tuple[str, str, str]] = {
    "the last assignment alone": (
        "passes/definitions.py", "        if len(known) <= 1:", "        if known:\n            return (known[-1],)\n        if not known:",
    ),
    "assignments of other paths forgotten": (
        "passes/definitions.py", "                    found.add(Place(before, inside[-1]))", "                    found = {Place(before, inside[-1])}",
    ),
    "the first assignment of a block": ("passes/definitions.py", "(Place(use.label, before[-1]),)", "(Place(use.label, before[0]),)"),
    "paths that disagree": ("passes/constants.py", "if not all(_same(first, x) for x in others):", "if not _same(first, others[-1] if others else first) and not others:"),
    "arithmetic without an end": ("passes/constants.py", "not -_WIDEST <= value < _WIDEST", "False"),
    "subtraction of reversed sides": ("passes/constants.py", "return _number(fn(lhs, rhs))", "return _number(fn(rhs, lhs))"),
    "folds that keep a mark of what is not constant": ("passes/keep_constants.py", "if type(value) in (int, bool):", "if isinstance(value, int):\n            value = int(value) and 1"),
    "closures are inlined too late": ("pipeline.py", "_replace(pipelines, InlineClosureLikes, InlineClosures)", "_replace(pipelines, InlineClosureLikes, InlineClosures)\n    pipelines[0].passes.insert(3, (KeepConstants, \"too early\"))"),
    "stores that look dead": ("pipeline.py", "    _replace(pipelines, InlineClosureLikes, InlineClosures)\n", "    global InlineClosures\n    InlineClosures = InlineClosureLikes\n"),
    "items of a tuple the wrong way round": ("passes/keep_constants.py", "for x in value:", "for x in value[::-1]:"),
    "every kernel is ours": ("ground/ownership.py", "return any(map(is_own_type, argtypes)) or _function(py_func, set())", "return True"),
    "only what a kernel names": ("ground/ownership.py", "        return _function(compiled, seen)", "        return False"),
    "only its arguments' types": ("ground/ownership.py", "or _function(py_func, set())", ""),
    "one iteration too few": ("passes/unroll.py", "for k, item in enumerate(items):", "for k, item in enumerate(items[:-1] if len(items) > 2 else items):"),
    "variables that a loop carries": ("passes/unroll.py", "return sorted(defined - _needed_at(blocks, header, inside, flow))", "return sorted(defined)"),
    "variables that are read after the loop": ("passes/unroll.py", "        defined -= flow.of(blocks[label])[0]", "        pass"),
    "loops and those inside them at once": ("passes/keep_constants.py", "            taken |= loop.inside\n", "            pass\n"),
    "blocks that name a variable": ("passes/ssa.py", "reads[name][label].append(index)", "reads[name][label][:] = [index]"),
    "a break's blocks": ("passes/unroll.py", "            found.add(label)\n", "            pass\n"),
    "super of another class": ("passes/methods.py", "for base in mro[mro.index(holder) + 1 :]:", "for base in mro[mro.index(holder) :]:"),
    "None of fields": ("passes/methods.py", "same is (value.fn is operator.is_)", "same is (value.fn is operator.is_not)"),
    "audits of other straight code": ("passes/audit.py", "while len(into.get(b, ())) == 1 and", "while"),
    "literals added as they are not": ("passes/literals.py", "value = op(*(a.literal_value for a in args))", "value = op(*(abs(a.literal_value) for a in args))"),
    "types that are not settled": ("passes/typed_constants.py", "return ty if is_settled(alias.name, typed.typemap, assigned, self._state.typingctx) else None", "return ty"),
    "branches to the other side": ("passes/branches.py", "branch.truebr if truth else branch.falsebr", "branch.falsebr if truth else branch.truebr"),
    "what `not` asks": ("passes/constants.py", "        return not value\n", "        return bool(value)\n"),
    "names before SSA": ("passes/typed_constants.py", "func_ir.blocks = in_ssa_form(func_ir.blocks)", "pass"),
}  # fmt: skip
"""By what is wrong: the file of compiler/, its line, and the wrong one."""


def survives(name: str, folder: Path) -> bool:
    """Whether the tests pass with one mutant."""
    file, old, new = MUTANTS[name]
    path = folder / "numba_cute" / "compiler" / file
    text = path.read_text()
    if text.count(old) != 1:
        raise SystemExit(f"{name}: {file} has its line {text.count(old)} times")
    path.write_text(text.replace(old, new))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *TESTS]
    env = {**os.environ, "PYTHONPATH": str(folder)}
    try:
        return subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, timeout=900).returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        path.write_text(text)


def main() -> None:
    chosen = sys.argv[1:] or list(MUTANTS)
    survivors = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "tree"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", ".gpu", "__pycache__"))
        for name in chosen:
            alive = survives(name, folder)
            survivors += [name] * alive
            print(f"{name}: {'survives' if alive else 'found'}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} found")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
