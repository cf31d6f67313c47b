# SPDX-License-Identifier: Apache-2.0
"""Requests of one engine to the other: the simulator has a kernel checked, or compiled besides; the compiler
answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba_cute.seam.ground.error import CuteError

from ...seam.ground.records import dataclass


def _absent(kernel: Any, args: tuple[Any, ...], arch: str) -> None:
    raise CuteError("simulate: compile=True needs the compiler, which is not there: leave it out")


def _unchecked(kernel: Any, args: tuple[Any, ...], arch: str) -> Any:
    """Refuse nothing, and know of no conversion: there is no front end."""
    return {}


@dataclass
class Compiler:
    """The question; as made here, without a compiler.

    compile: compile a kernel on example arguments for a target; its errors are those of `cute.compile`.
    check: refuse what the compiler's front end refuses in a kernel that `cuda.jit` made, for all of its arguments, and
    tell where it converts values (`typed.meetings`).
    likely_wrong: what the last such check found that is likely a mistake, in words.
    """

    compile: Callable[[Any, tuple[Any, ...], str], Any] = _absent
    check: Callable[[Any, tuple[Any, ...], str], Any] = _unchecked
    likely_wrong: Callable[[Any, tuple[Any, ...], str], tuple[str, ...]] = _unchecked


COMPILER = Compiler()
