# SPDX-License-Identifier: Apache-2.0
"""The text of types, character by character: places, errors with their column, and the least parts."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from ...seam import CuteError
from ...seam.guards.kinds import DEEPEST


class SpellingError(CuteError):
    """A text that is no description. text: all of it; position: where in it; problem: what is wrong there."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.text, self.position, self.problem = text, position, problem
        line = text.count("\n", 0, position)
        begin = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        shown = text[begin : len(text) if end < 0 else end]
        column = position - begin
        at = f"line {line + 1}, column {column + 1}" if "\n" in text else f"column {column + 1}"
        first = max(0, column - 60)
        window = shown[first : column + 40]
        super().__init__(f"{at}: {problem}\n  {window}\n  {' ' * (column - first)}^")


_DIGITS = 1000
_SPACE = re.compile(r"(?:\s|//[^\n]*)*")
_INT = re.compile(r"-?\d+(?![\w.]*[.eE]\d)(?!\.)")
_FLOAT = re.compile(r"-?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|inf\b|nan\b)")
_WORD = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPED = re.compile(r'\\(n|t|"|\\|[0-9a-fA-F]{2})')
_PLAIN = {"n": b"\n", "t": b"\t", '"': b'"', "\\": b"\\"}


def quoted(value: str) -> str:
    """Write a string as MLIR does: between double quotes, with escapes."""
    out = []
    for byte in value.encode("utf-8", "surrogatepass"):
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\{byte:02X}")
    return '"' + "".join(out) + '"'


S = TypeVar("S", bound="Scanner")
T = TypeVar("T")


def nested(read: Callable[[S], T]) -> Callable[[S], T]:
    """Make a method that counts how deep what it reads lies."""

    @functools.wraps(read)
    def deeper(self: S) -> T:
        self.depth += 1
        if self.depth >= DEEPEST:
            self.fail(f"this is nested {DEEPEST} levels deep")
        found = read(self)
        self.depth -= 1
        return found

    return deeper


class Scanner:
    """A text and a place in it. text: all of it; position: where reading goes on."""

    def __init__(self, text: str, position: int = 0) -> None:
        self.text, self.position, self.depth = text, position, 0
        self.skip()

    def skip(self) -> None:
        """Go to what is neither a space nor a comment."""
        self.position = _SPACE.match(self.text, self.position).end()  # type: ignore[union-attr]

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        """Raise SpellingError: `problem`, at `position` or where reading goes on."""
        raise SpellingError(self.text, self.position if position is None else position, problem)

    def expected(self, what: str) -> NoReturn:
        """Raise SpellingError: `what` was expected, and something else found."""
        found = _WORD.match(self.text, self.position)
        rest = found.group() if found else self.text[self.position : self.position + 1]
        self.fail(f"expected {what}, found {f'{rest!r}' if rest else 'the end of the text'}")

    def at(self, sign: str) -> bool:
        """Return whether `sign` stands here."""
        return self.text.startswith(sign, self.position)

    def take(self, sign: str) -> bool:
        """Go past `sign` if it stands here; gives whether it does."""
        if not self.at(sign):
            return False
        self.position += len(sign)
        self.skip()
        return True

    def need(self, sign: str, what: str = "") -> None:
        """Go past `sign`. Raises SpellingError if it does not stand here. what: to be said of it."""
        if not self.take(sign):
            self.expected(f"{sign!r}{what}")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.position)
        if found:
            self.position = found.end()
            self.skip()
        return found

    def integer(self) -> int | None:
        """Read an integer if one stands here."""
        start, found = self.position, self._match(_INT)
        if found and len(found.group()) > _DIGITS:
            self.fail(f"a number of more than {_DIGITS} digits", start)
        return int(found.group()) if found else None

    def need_integer(self, what: str) -> int:
        """Read an integer. Raises SpellingError where there is none. what: what it is."""
        found = self.integer()
        if found is None:
            self.expected(what)
        return found

    def floating(self) -> float | None:
        """Read a number with a point or an exponent if one stands here."""
        found = self._match(_FLOAT)
        return float(found.group()) if found else None

    def peek_word(self) -> str | None:
        """The word that stands here, dots within it included; None if there is none."""
        found = _WORD.match(self.text, self.position)
        return found.group() if found else None

    def word(self) -> str | None:
        """Read a word if one stands here."""
        found = self._match(_WORD)
        return found.group() if found else None

    def string(self) -> str | None:
        """Read a string between double quotes if one stands here."""
        if not self.at('"'):
            return None
        start = self.position
        found = self._match(_STRING)
        if not found:
            self.fail("this string does not end on its line")
        parts, last = [], 0
        body = found.group(1)
        for escape in re.finditer(r"\\.?", body):
            if escape.start() < last:
                continue
            known = _ESCAPED.match(body, escape.start())
            if not known:
                self.fail(f"{escape.group()!r} is no escape of a string", start + 1 + escape.start())
            parts.append(body[last : escape.start()].encode("utf-8", "surrogatepass"))
            said = known.group(1)
            parts.append(_PLAIN.get(said) or bytes([int(said, 16)]))
            last = known.end()
        parts.append(body[last:].encode("utf-8", "surrogatepass"))
        try:
            return b"".join(parts).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            self.fail("this string's bytes are not UTF-8", start)
