# SPDX-License-Identifier: Apache-2.0
"""Functions of Python's that look into objects, and what does the same for a kernel's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .values import StructProxy


def _replace(obj: Any, /, **changes: Any) -> Any:
    """Do what `dataclasses.replace` does, for an object of a kernel."""
    cls = obj._ty.cls if isinstance(obj, StructProxy) else type(obj)
    if not dataclasses.is_dataclass(cls) or not isinstance(obj, StructProxy):
        return dataclasses.replace(obj, **changes)
    kept = {f.name: getattr(obj, f.name) for f in dataclasses.fields(cls) if f.init and f.name not in changes}
    return cls(**kept, **changes)


REPLACED: dict[Any, Callable[..., Any]] = {dataclasses.replace: _replace}
"""By a function, what stands for it."""
