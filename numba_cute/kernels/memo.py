# SPDX-License-Identifier: Apache-2.0
"""Remember what entries make for tensors that are alike: plans, launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .carried import exact, keep
from .entry import kinds, simulated


def remembered(
    known: dict[Any, Any], tensors: list[Any], static: tuple[Any, ...], make: Callable[..., Any], given: Any = ()
) -> Any:
    """Return what was made for tensors of the same kinds; of more than `MOST` the oldest is dropped.

    known: all that was made. static: what else it was made of; numbers are told apart by their class and bits.
    make(*given) makes it, and refuses in words what are not tensors."""
    key: Any = None
    try:
        key = (simulated(), exact(static), *kinds(tensors))
        found = known.get(key)
    except (AttributeError, TypeError):  # some are not tensors
        found = None
    if found is None:
        found = keep(known, key, make(*given))
    return found
