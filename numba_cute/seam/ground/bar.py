# SPDX-License-Identifier: Apache-2.0
"""A line that says how far something is, once it takes long: for who waits at a terminal or a notebook."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

AFTER = 3.0
"""Seconds in which nothing is shown."""
_EVERY, _WIDTH = 0.5, 20


def is_watched() -> bool:
    """Say whether somebody sees what is written to stderr now: it is a terminal, or a notebook's."""
    return sys.stderr is not None and (sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel"))


class Bar:
    """A line on stderr while a `with` lasts: what is done, how much of it, and for how long already.

    shown: None, to show it after AFTER seconds where somebody sees it; True, to show it from the start, wherever stderr
    goes; False, never. total: how many steps there are. note: is written behind it.
    """

    def __init__(self, what: str, total: int, unit: str, shown: bool | None = None, note: str = "") -> None:
        self.what, self.total, self.unit, self.done, self.note = what, total, unit, 0, note
        self._shown = is_watched() if shown is None else shown
        self._after = AFTER if shown is None else 0.0
        self._ended = threading.Event()
        self._longest = 0

    def __enter__(self) -> Bar:
        self._began = time.monotonic()
        if self._shown:
            self._thread = threading.Thread(target=self._show, name="numba_cute bar", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown:
            self._ended.set()
            self._thread.join()

    def step(self, n: int = 1) -> None:
        """Note that `n` more steps are done."""
        self.done += n

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, each of which is a step."""
        for item in items:
            yield item
            self.step()

    def __str__(self) -> str:
        """Write the line."""
        filled = _WIDTH * self.done // self.total if self.total else _WIDTH
        seconds = int(time.monotonic() - self._began)
        units = self.unit if self.total == 1 else f"{self.unit}s"
        line = f"{self.what} [{'#' * filled:.<{_WIDTH}}] {self.done} of {self.total} {units}, {seconds} s"
        return line + (f" ({self.note})" if self.note else "")

    def _show(self) -> None:
        if self._ended.wait(self._after):
            return
        while True:
            self._write(str(self))
            if self._ended.wait(_EVERY):
                break
        if self._after:
            self._write("")
        else:  # who asked for it keeps how it ended
            self._write(str(self))
        sys.stderr.write("\r" if self._after else "\n")
        sys.stderr.flush()

    def _write(self, line: str) -> None:
        """Write a line over the last one."""
        sys.stderr.write(f"\r{line:<{self._longest}}")
        sys.stderr.flush()
        self._longest = max(self._longest, len(line))
