# SPDX-License-Identifier: Apache-2.0
"""Results that a kernel drops: a call whose bytecode throws away what it gave."""

from __future__ import annotations

import functools
import sys
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.ground.bytecode import operations
from ...seam.ground.packages import is_librarys
from ...seam.guards.messages import dropped, matters
from ..ground.report import in_library
from .arithmetic.functions import range_of, unrolled_range
from .arithmetic.number import Number


def check_used(fn: Any, result: Any, caller: FrameType) -> None:
    """An error if the user's `caller` called `fn`, which gave `result`, in a statement of its own."""
    code = caller.f_code
    if matters(result) and not in_library(code) and caller.f_lasti in _statements(code):
        raise CuteError(dropped(fn))


@functools.lru_cache(maxsize=1024)
def _statements(code: CodeType) -> frozenset[int]:
    """The offsets of the calls whose results are dropped, each with the caches behind it, where a frame may stand."""
    pairs = zip(operations(code), operations(code)[1:])
    calls = [(o.offset, after.offset) for o, after in pairs if "CALL" in o.name and after.name == "POP_TOP"]
    return frozenset(at for start, stop in calls for at in range(start, stop))


class Library:
    """A module of this library as a kernel sees it: functions that are called for their results are watched."""

    def __init__(self, real: ModuleType) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        found = watched(getattr(self._real, name))
        setattr(self, name, found)
        return found


@functools.lru_cache(maxsize=4096)
def _watched(fn: FunctionType) -> Any:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        check_used(fn, result, sys._getframe(1))
        return result

    return call


@seam.traced
def judged(value: Any) -> Any:
    """Stand for `const_expr`. In code that the front end has been through, which refuses what is not static, a float is
    one of the source, a bool what compares such, and an integer what Python computed: those have a type here."""
    if isinstance(value, Number) and seam.current().run.checked:  # type: ignore[attr-defined]
        return value if value.dtype.is_float else value.value
    return seam.const_expr(value)


def _unrolled(*args: Any, unroll: Any = None, unroll_full: Any = None) -> Any:
    """Stand for `range_constexpr`: a bound that is computed of a float of the source, as `int(math.log2(n))`, is a
    number of a type here, of which the front end has judged that it is static."""
    if seam.current().run.checked:  # type: ignore[attr-defined]
        args = tuple(x.value if isinstance(x, Number) and x.dtype.is_integer else x for x in args)
    return unrolled_range(*args)


def watched(value: Any) -> Any:
    """Give what stands for something of the library in a kernel."""
    if isinstance(value, ModuleType):
        return Library(value) if is_librarys(value) else value
    if value is seam.range:
        return range_of
    if value is seam.range_constexpr:
        return _unrolled
    if value is seam.const_expr:
        return judged
    return _watched(value) if isinstance(value, FunctionType) and seam.is_for_result(value) else value
