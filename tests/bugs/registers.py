# SPDX-License-Identifier: Apache-2.0
"""The form of bugs with registers that nobody wrote: a kernel, broken or mended, and what the report must hold."""

import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from numba_cute.sim import UninitializedReadError, simulate

ORDERS = [{}, {"seed": 1}, {"async_mode": "eager"}]


@dataclass(frozen=True)
class RegisterBug:
    make: Callable[[bool], Any]
    words: tuple[str, ...]
    arguments: Callable[[], tuple]
    threads: int
    arch: str

    def run(self, mended: bool, **options: Any) -> None:
        simulate(self.make(mended), arch=self.arch, **options)[1, self.threads](*self.arguments())


def registry(bugs: list[RegisterBug], arguments: Callable[[], tuple], threads: int = 32) -> Any:
    """What adds a bug to a file's own: `words` are what its report must hold."""
    usual = arguments, threads

    def bug(
        *words: str, arguments: Callable[[], tuple] = usual[0], threads: int = usual[1], arch: str = "sm_90a"
    ) -> Any:  # fmt: skip
        def add(make: Callable[[bool], Any]) -> Any:
            bugs.append(RegisterBug(make, words, arguments, threads, arch))
            return make

        return add

    return bug


def named(bugs: list[RegisterBug]) -> Any:
    return pytest.mark.parametrize("bug", bugs, ids=lambda b: b.make.__name__.replace("_", " "))


NAMES_ONE_OF_SEVERAL = sys.version_info >= (3, 11)
"""Whether Python says where in a line a call stands: which variable of `a, b = f(), g()` it is for."""


def is_reported(bug: RegisterBug, options: dict[str, Any]) -> None:
    with pytest.raises(UninitializedReadError) as caught:
        bug.run(False, **options)
    text = str(caught.value)
    for words in (*bug.words, "never written", "made at", "fix:"):
        assert words in text or (not NAMES_ONE_OF_SEVERAL and re.sub(r" `\w+`$|^\w+(?=\.fill)", "", words) in text), (
            text
        )


def is_silent(bug: RegisterBug, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bug.run(True, **options)
