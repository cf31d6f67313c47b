# SPDX-License-Identifier: Apache-2.0
"""Names of a module that are others for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, instead: Mapping[str, Any]) -> Iterator[None]:
    """Have a module's names be others. owner: the module. instead: by name, what stands for them."""
    before = {name: getattr(owner, name) for name in instead}
    try:
        for name, value in instead.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)
