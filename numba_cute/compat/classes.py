# SPDX-License-Identifier: Apache-2.0
"""`inspect.isclass` of element types: they are classes in the CuTe DSL, and objects here."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..dtypes import DType
from ..seam import traced
from ..seam.ground.replaced import replaced

_is_class = inspect.isclass


@traced
def isclass(x: Any) -> bool:
    """Say whether `x` is a class, or an element type."""
    return isinstance(x, DType) or _is_class(x)


@contextmanager
def element_classes() -> Iterator[None]:
    """Have `inspect.isclass` be true of element types, as `issubclass(cute.Float16, cute.Numeric)` always is: for what
    a file imports meanwhile, on the host and in kernels."""
    with replaced(inspect, {"isclass": isclass}):
        yield
