# SPDX-License-Identifier: Apache-2.0
"""Where a random kernel's choices come from: a seed, for thousands of them, or hypothesis, which shrinks what fails."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices(Protocol):
    def below(self, n: int) -> int:
        """An int from 0 to n - 1; the smaller, the simpler the kernel."""


class Seeded:
    """The choices of a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)


class Drawn:
    """Choices that hypothesis makes."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def below(self, n: int) -> int:
        return self._draw(st.integers(0, n - 1))  # type: ignore[no-any-return]


def pick(choices: Choices, options: Sequence[T]) -> T:
    """One of some options, the simplest of which come first."""
    return options[choices.below(len(options))]
