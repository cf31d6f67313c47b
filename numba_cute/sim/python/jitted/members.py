# SPDX-License-Identifier: Apache-2.0
"""The members of classes that are rebuilt."""

from __future__ import annotations

import functools
import operator
from types import FunctionType
from typing import Any

from .... import seam
from ....seam.marks.plain import is_plain_class
from ..arithmetic.number import static_hash

_RESULTS: dict[str, Any] = {"__bool__": bool, "__len__": operator.index, "__hash__": static_hash}


def as_python_wants(name: str, method: Any) -> Any:
    """A method whose result Python itself takes, which wants numbers of its own."""
    result = _RESULTS.get(name)
    if result is None or not isinstance(method, FunctionType):
        return method

    @functools.wraps(method)
    def call(self: Any) -> Any:
        return result(method(self))

    return call


def own_members(cls: type) -> dict[str, Any]:
    """Return what a class defines; one of immutable objects with what its bases do that are not."""
    bases = [b for b in reversed(cls.__mro__) if is_plain_class(b)] if seam.is_frozen_class(cls) else []
    return {n: m for b in (*bases, cls) for n, m in vars(b).items()}


def is_generated(member: Any) -> bool:
    """Say whether a method was generated, as a dataclass's are."""
    return getattr(getattr(member, "__code__", None), "co_filename", "") == "<string>"
