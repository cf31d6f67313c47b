# SPDX-License-Identifier: Apache-2.0
"""Descriptions that tell of constants alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...compiler.inspection.inference import value_of
from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Group


def constant_of(d: Description) -> Any:
    """Return the constants that a description of constants tells of. Raises CuteError for any other."""
    if not all(isinstance(x, (Constant, Group)) for x in _parts(d)):
        raise CuteError(f"{d} is not a constant")
    return value_of(d)


def is_constant(d: Description) -> bool:
    """Say whether a description is of constants alone, in tuples or not."""
    return all(isinstance(x, (Constant, Group)) for x in _parts(d))


def _parts(d: Description) -> Iterator[Description]:
    yield d
    if isinstance(d, Group):
        for item in d.items:
            yield from _parts(item)


__all__ = ["constant_of", "is_constant"]
