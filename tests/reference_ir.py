# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.reference_ir PATH`: run the tests of NVIDIA's published CuTe IR, from a checkout of NVIDIA/cutlass
(or of its folder cutlass_compiler), by our tools, and write the counts.

Counted are texts, the pieces of a file between `// -----`: of the dialect those that must parse, print and parse again
in both forms, and those that must be refused at the line that they name (the words are ours); of the pass that folds,
those that parse, fold, and hold what their CHECK lines say; of the programs, whole files that print what their CHECK
lines say; of expansion and lowering, inputs that parse. Files with CHECK lines are compared by `filecheck`, as their
RUN lines tell. What fails is listed by name and reason.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options

from numba_cute.ir.dialect import modules, opt, running
from numba_cute.ir.dialect.passes import PASSES
from numba_cute.seam import CuteError
from tests import printed_ir

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "reference_ir.json"


@dataclass
class Count:
    """How many of a kind hold, and why the others do not."""

    good: int = 0
    total: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, problem: str | None) -> None:
        """Count one. problem: why it does not hold."""
        self.total += 1
        if problem is None:
            self.good += 1
        else:
            self.failures[name] = problem[:400]


# ------------------------------------------------------------------ RUN and CHECK lines


def run_lines(source: str) -> list[str]:
    """Return the commands of a file's RUN lines; a line that ends in a backslash goes on."""
    lines = re.findall(r"//\s*RUN:\s*(.*)", source)
    return [c for c in " ".join(lines).replace("\\ ", " ").split("\n") if c] if not lines else _joined(lines)


def _joined(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    open_ = False
    for line in lines:
        body = line.rstrip("\\").strip()
        if open_:
            found[-1] += " " + body
        else:
            found.append(body)
        open_ = line.endswith("\\")
    return found


def checked(source: str, output: str, arguments: Sequence[str]) -> str | None:
    """Compare an output with the CHECK lines of a text; gives what FileCheck says, or None."""
    with tempfile.TemporaryDirectory() as folder:
        check, given = Path(folder, "check"), Path(folder, "given")
        check.write_text(source)
        given.write_text(output)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            options = parse_argv_options(["filecheck", str(check), "--input-file", str(given), *arguments])
            try:
                code = Matcher.from_opts(options).run()
            except Exception as e:  # its own errors, of lines that it does not know
                return f"{type(e).__name__}: {e}"
        return None if code == 0 else said.getvalue().strip() or "FileCheck refuses"


def piped(command: str, source: str) -> str | None:
    """Run a RUN line's pipe of `cute-opt` and FileCheck on a text; gives what goes wrong, or None."""
    text = source
    for stage in (s.strip() for s in command.split("|")):
        words = [w for w in stage.split() if w != "%s"]
        if words[0] == "FileCheck":
            return checked(source, text, words[1:])
        if words[0] != "cute-opt":
            return f"no tool {words[0]}"
        try:
            made = opt.run(text, opt.parsed(words[1:]))
        except CuteError as e:
            return str(e)
        if made.problems:
            return made.problems[0]
        text = made.text
    return None


# ------------------------------------------------------------------ kinds of tests


def texts(file: Path, root: Path) -> Iterator[tuple[str, str]]:
    """List the pieces of a file that hold operations, by file and line."""
    for start, piece in modules.pieces(file.read_text()):
        if re.sub(r"//[^\n]*", "", piece).strip():
            yield f"{file.relative_to(root)}:{start + 1}", piece


def round_trip(piece: str) -> str | None:
    """Read a text, print it in both forms, and read those; gives what goes wrong, or None."""
    first = modules.read(piece)
    if first.op is None or first.problems:
        return first.problems[0].message
    printed = modules.printed(first.op)
    for text in (printed, modules.printed(first.op, generic=True)):
        again = modules.read(text)
        if again.op is None or again.problems:
            return f"printed text: {again.problems[0].message}"
        if modules.printed(again.op) != printed:
            return "printed text is another module"
    return None


def refused(piece: str) -> str | None:
    """Read a text that is wrong; gives what is wrong with what is said of it, or None."""
    wrong = opt.unexpected(piece, modules.read(piece).problems, words=False)
    return wrong[0] if wrong else None


def parses(piece: str) -> str | None:
    """Read a text; gives why it does not parse, or None."""
    found = modules.read(piece).problems
    return found[0].message if found else None


def folded(piece: str, command: str) -> str | None:
    """Fold a text and compare it with its CHECK lines."""
    return piped(command.replace("--split-input-file", ""), piece)


def all_counts(root: Path) -> dict[str, Count]:
    """Run everything below the folder cutlass_compiler."""
    counts = {
        name: Count()
        for name in (
            "dialect_right", "dialect_wrong", "dialect_run_lines", "fold", "programs_host", "programs_device",
            "lowering_inputs",
        )
    }  # fmt: skip
    tests = root / "cute_ir" / "test"
    for file in sorted(tests.glob("Dialect/**/*.mlir")):
        source = file.read_text()
        for name, piece in texts(file, root):
            wrong = bool(opt.expected(piece))
            counts["dialect_wrong" if wrong else "dialect_right"].add(
                name, refused(piece) if wrong else round_trip(piece)
            )
        for i, command in enumerate(run_lines(source)):
            if "-verify-diagnostics" not in command:
                counts["dialect_run_lines"].add(f"{file.relative_to(root)}#{i}", piped(command, source))
    for file in sorted(tests.glob("Transforms/**/*.mlir")):
        command = run_lines(file.read_text())[0]
        for name, piece in texts(file, root):
            counts["fold"].add(name, folded(piece, command))
    for file in sorted(tests.glob("Conversion/**/*.mlir")):
        for name, piece in texts(file, root):
            if not opt.expected(piece):
                counts["lowering_inputs"].add(name, parses(piece))
    for folder, name in (("host", "programs_host"), ("nvgpu", "programs_device")):
        for file in sorted((root / "test" / "Integration" / folder).glob("**/*.mlir")):
            counts[name].add(str(file.relative_to(root)), program(file))
    return counts


def printed_counts(file: Path) -> dict[str, Count]:
    """Run a list of operations as they are printed. One that the list shows no line of does not count."""
    counts = {"printed_operations": Count(), "printed_lines": Count()}
    for name, lines in printed_ir.operations(file):
        problems = [printed_ir.problem(name, line) for line in lines]
        for line, wrong in zip(lines, problems, strict=True):
            counts["printed_lines"].add(line[:80], wrong)
        counts["printed_operations"].add(
            name, "the list has no line of it" if not lines else next(filter(None, problems), None)
        )
    return counts


def program(file: Path) -> str | None:
    """Run a program, and compare what it prints with its CHECK lines, and with what it prints after our passes."""
    source = file.read_text()
    found = modules.read(source)
    if found.op is None or found.problems:
        return found.problems[0].message
    command = next(c for c in run_lines(source) if "cutlass-compiler-run-" in c)
    environment = dict(re.findall(r"(\w+)=(\S+)", command.partition("%")[0]))
    output: list[str] = []
    simpler: list[str] = []
    try:
        running.run(found.op, output.append, environment)
        for name in ("cute-fold-static", "cse", "canonicalize"):
            PASSES[name](modules.context(), found.op)
        running.run(found.op, simpler.append, environment)
    except CuteError as e:
        return str(e)
    if simpler != output:
        return "after the passes it prints something else"
    return checked(source, "".join(output), command.partition("FileCheck %s")[2].split())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference_ir", description=__doc__)
    parser.add_argument("path", type=Path, help="a checkout of NVIDIA/cutlass, or its folder cutlass_compiler")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what fails")
    parser.add_argument("--no-record", action="store_true", help=f"do not write {RESULTS.name}")
    parser.add_argument("--printed", type=Path, default=printed_ir.LIST, help="a list of printed operations")
    given = parser.parse_args(arguments)
    root = given.path / "cutlass_compiler" if (given.path / "cutlass_compiler").is_dir() else given.path
    counts = all_counts(root)
    if given.printed.is_file():
        counts |= printed_counts(given.printed)
    for name, count in counts.items():
        print(f"{name}: {count.good} of {count.total}")
        if given.verbose:
            for text, problem in count.failures.items():
                print(f"    {text}: {problem}")
    if not given.no_record:
        record = {name: {"good": c.good, "total": c.total, "failures": c.failures} for name, c in counts.items()}
        RESULTS.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
