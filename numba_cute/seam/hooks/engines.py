# SPDX-License-Identifier: Apache-2.0
"""What one engine asks of the other: the simulator has a kernel compiled besides; the compiler answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from numba_cute.seam.ground.error import CuteError


def _absent(kernel: Any, args: tuple[Any, ...], arch: str) -> None:
    raise CuteError("simulate: compile=True needs the compiler, which is not there: leave it out")


@dataclasses.dataclass
class Compiler:
    """The question; as made here, without a compiler.

    compile: compile a kernel on example arguments for a target; its errors are those of `cute.compile`.
    """

    compile: Callable[[Any, tuple[Any, ...], str], Any] = _absent


COMPILER = Compiler()
