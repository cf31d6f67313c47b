# SPDX-License-Identifier: Apache-2.0
"""Methods and operators of lists, on the tuples that stand for lists in kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import seam
from ...layout.int_tuple import Part
from ...seam import CuteError
from ..bridge import objects


@functools.cache
def method_of(name: str) -> Callable[..., Any]:
    if name in _BY_VALUE:
        return _BY_VALUE[name]

    @seam.traced
    def call(items: Any, *args: Any) -> Any:
        """Return the items after a method of a list's was called, and what it gave."""
        changed = list(items)
        try:
            result = getattr(changed, name)(*args)
        except (IndexError, ValueError) as e:
            raise CuteError(f"{name} of a list of {len(items)}: {e}") from None
        return tuple(changed), result

    return call


@seam.traced
def set_item(items: Any, index: Any, value: Any) -> Any:
    """Return the items after one, or a part of them, was set."""
    changed = list(items)
    try:
        changed[_static(index)] = value
    except (IndexError, ValueError) as e:
        raise CuteError(f"x[{index}] = … of a list of {len(items)}: {e}") from None
    return tuple(changed)


@seam.traced
def delete_item(items: Any, index: Any) -> Any:
    """Return the items without one, or a part of them."""
    changed = list(items)
    try:
        del changed[_static(index)]
    except IndexError as e:
        raise CuteError(f"del x[{index}] of a list of {len(items)}: {e}") from None
    return tuple(changed)


@seam.traced
def repeated(items: Any, count: Any) -> Any:
    """Return the items so many times over."""
    if not isinstance(count, int):
        raise CuteError(f"a list times {count!r}: the number must be static")
    return items * count


@seam.traced
def is_empty(items: Any) -> bool:
    """Return `not items`."""
    return len(items) == 0


@seam.traced
def _count(items: Any, x: Any) -> Any:
    """Return the items, and how many of them are equal to x."""
    total: Any = 0
    for found in (objects.equal(item, x) for item in items):
        total = total + found if isinstance(found, bool) else seam.current().operate("add", total, found)  # type: ignore[attr-defined]
    return items, total


@seam.traced
def _remove(items: Any, x: Any) -> Any:
    """Return the items without the first that is equal to x."""
    at = _found("remove", items, x)
    return items[:at] + items[at + 1 :], None


@seam.traced
def _index(items: Any, x: Any, *within: Any) -> Any:
    """Return the items, and where the first is that is equal to x, of those that `within` names as a slice does."""
    begin, end = (*map(_static, within), None, None)[:2]
    first, last, _ = slice(begin, end).indices(len(items))
    return items, first + _found("index", items[first:last], x)


_BY_VALUE = {"count": _count, "remove": _remove, "index": _index}
"""Methods that compare items, which only run time may tell."""


def _found(name: str, items: Any, x: Any) -> int:
    """Return where the first item is that is equal to x."""
    for at, item in enumerate(items):
        equal = objects.equal(item, x)
        if not isinstance(equal, bool):
            raise CuteError(f"x.{name}(…) of a list: which item it is must be static; use a register tensor")
        if equal:
            return at
    raise CuteError(f"x.{name}(…) of a list: no item is equal to it")


def _static(index: Any) -> Any:
    if isinstance(index, (slice, Part)):
        raise CuteError("x[a:b] = … and del x[a:b] of a list: a kernel sets and deletes items one by one")
    if not seam.is_static(index):
        raise CuteError(f"x[{index!r}] = … of a list: its index must be static; use a register tensor")
    return index
