# SPDX-License-Identifier: Apache-2.0
"""Say whether something runs now."""

from __future__ import annotations


class Within:
    """True inside of its `with`, to any depth."""

    def __init__(self) -> None:
        self._depth = 0

    def __bool__(self) -> bool:
        return self._depth > 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
