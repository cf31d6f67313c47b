# SPDX-License-Identifier: Apache-2.0
"""The parts of Python's inside that this library relies on: its bytecode, its C API, the layout of its objects in
memory.

Each such thing is an `Inside`, which is tried before it is used: on a Python that is not known here when the module is
imported, else at its first use. Where it is not as expected the library goes its slow way, or refuses, and says so.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER

from .error import CuteError

BYTECODES = {3439: "3.10", 3495: "3.11", 3531: "3.12", 3571: "3.13"}
"""The Pythons whose bytecode is known, by the number that CPython changes with its bytecode."""


class PythonWarning(UserWarning):
    """This Python is not as this library knows it, so that something goes a slower way."""


def knows_bytecode() -> bool:
    """Say whether the Python that runs is one whose bytecode is known here."""
    return sys.implementation.name == "cpython" and int.from_bytes(MAGIC_NUMBER[:2], "little") in BYTECODES


class Inside:
    """Something of Python's inside. what: its name in a sentence. instead: what is done without it, as a sentence's
    end. wrong: tries it; returns how it is not as expected, or None."""

    def __init__(self, what: str, instead: str, wrong: Callable[[], str | None]) -> None:
        self.what, self.instead, self._wrong = what, instead, wrong

    @functools.cached_property
    def difference(self) -> str | None:
        """Return the difference from what is expected, in words; None if there is none."""
        try:
            found = self._wrong()
        except Exception as e:  # of a Python that is not known anything may be raised
            found = f"{type(e).__name__}: {e}"
        if found is None:
            return None
        return f"Python {sys.version.split()[0]} is not as numba_cute knows it ({self.what}: {found})"

    @functools.cached_property
    def holds(self) -> bool:
        """Say whether it is as expected; if it is not, warn once with a PythonWarning."""
        if self.difference is not None:
            warnings.warn(f"{self.difference}: {self.instead}", PythonWarning, stacklevel=3)
        return self.difference is None

    def require(self) -> None:
        """Raise a CuteError where it is not as expected."""
        if self.difference is not None:
            known = f"{BYTECODES[min(BYTECODES)]} to {BYTECODES[max(BYTECODES)]}"
            raise CuteError(f"{self.difference}: {self.instead}; use Python {known}")
