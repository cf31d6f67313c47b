# SPDX-License-Identifier: Apache-2.0
"""`python -m numba_cute opt`: read modules of the dialect, run passes, print them, and compare what is wrong with
what a text expects to be wrong. The options are those of MLIR's tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...seam import CuteError
from .modules import Diagnostic, context, pieces, printed, read_pieces, verified
from .passes import PASSES


@dataclass
class Options:
    """The options of a command line. file: the file to read; "-" for standard input."""

    file: str = "-"
    split: bool = False
    verify_diagnostics: bool = False
    generic: bool = False
    passes: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """text: what is printed. problems: what goes to the standard error, a line each."""

    text: str
    problems: list[str] = field(default_factory=list)


def parsed(arguments: Sequence[str]) -> Options:
    """Read a command line. Raises CuteError for one that is none."""
    found = Options()
    given = list(arguments)
    while given:
        word = given.pop(0)
        name = word.lstrip("-") if word.startswith("-") and word != "-" else ""
        if not name:
            found.file = word
        elif name == "split-input-file":
            found.split = True
        elif name == "verify-diagnostics":
            found.verify_diagnostics = True
        elif name == "mlir-print-op-generic":
            found.generic = True
        elif name in ("p", "pass-pipeline") and given:
            found.passes += _pipeline(given.pop(0))
        elif name in PASSES:
            found.passes.append(name)
        else:
            raise CuteError(
                f"opt: {word} is not an option: give -split-input-file, -verify-diagnostics, -mlir-print-op-generic, "
                f"-p PASS,PASS, or a pass: {', '.join('-' + p for p in PASSES)}"
            )
    return found


def _pipeline(text: str) -> list[str]:
    names = [n.strip() for n in re.sub(r"^\s*builtin\.module\((.*)\)\s*$", r"\1", text).split(",") if n.strip()]
    for name in names:
        if name not in PASSES:
            raise CuteError(f"opt: there is no pass {name!r}: the passes are {', '.join(PASSES)}")
    return names


def run(source: str, options: Options) -> Outcome:
    """Read a text, run passes over its modules, and print them."""
    ctx = context()
    texts: list[str] = []
    found: list[Diagnostic] = []
    for start, piece in read_pieces(source, options.split, ctx):
        here = list(piece.problems)
        if piece.op is not None and not here:
            for name in options.passes:
                PASSES[name](ctx, piece.op)
                here += [Diagnostic(1, 1, f"after {name}: {message}") for _, message in verified(piece.op)]
            texts.append(printed(piece.op, options.generic))
        found += [Diagnostic(d.line + start, d.column, d.message, d.severity) for d in here]
    if options.verify_diagnostics:
        return Outcome("", unexpected(source, found))
    return Outcome("// -----\n".join(texts), [d.shown(options.file) for d in found])


# ------------------------------------------------------------------ expected diagnostics

_EXPECTED = re.compile(
    r"expected-(error|warning|note|remark)(-re)?\s*(?:@([+-]\d+|above|below|unknown))?\s*\{\{(.*?)\}\}"
)


@dataclass(frozen=True)
class Expected:
    """A diagnostic that a text says is due at a line."""

    line: int
    message: str
    severity: str


def expected(source: str) -> list[Expected]:
    """List what a text expects to be wrong, by its comments `expected-error@+1 {{…}}`."""
    lines = source.splitlines()
    found = []
    for i, line in enumerate(lines, 1):
        for severity, _, at, message in _EXPECTED.findall(line):
            found.append(Expected(_place(lines, i, at), message, severity))
    return found


def _place(lines: Sequence[str], at: int, offset: str) -> int:
    if offset in ("above", "below"):
        step = 1 if offset == "below" else -1
        at += step
        while 0 < at <= len(lines) and _EXPECTED.search(lines[at - 1]):
            at += step
        return at
    return at + int(offset) if offset and offset != "unknown" else at


def unexpected(source: str, found: Sequence[Diagnostic], words: bool = True) -> list[str]:
    """Compare what is wrong with a text with what it expects: give what was not expected, and what did not come.

    words: each message must hold the words that are expected; False: that it stands at its line is enough.
    """
    due, wrong = expected(source), []
    left = list(due)
    for d in found:
        here = next((e for e in left if e.line == d.line and (not words or e.message in d.message)), None)
        if here is not None:
            left.remove(here)
        elif words or not any(e.line == d.line for e in due):
            wrong.append(f"line {d.line}: unexpected {d.severity}: {d.message}")
    if not words:
        left = [e for e in left if not any(d.line == e.line for d in found)]
    return wrong + [f"line {e.line}: expected {e.severity} was not produced: {e.message}" for e in left]


__all__ = ["Expected", "Options", "Outcome", "expected", "parsed", "pieces", "run", "unexpected"]
