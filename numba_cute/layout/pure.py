# SPDX-License-Identifier: Apache-2.0
"""`pure`: what every function of the algebra is. Traced, and remembered while its arguments are static."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..seam import Leaf, field_names, is_frozen_class, is_static, traced

F = TypeVar("F", bound=Callable[..., Any])


_KEPT = "_cute_all_kept"
_NOTHING: dict[str, Any] = {}


def _keepable(x: Any) -> bool:
    """Return whether a result for `x` may be kept: nothing known only at run time, and no True or 1.0, which equal 1,
    inside a tuple (elsewhere the cache tells types apart)."""
    if type(x) is int or x is None:
        return True
    if isinstance(x, Leaf):
        return x.kept
    if not isinstance(x, tuple):
        verdict = getattr(x, "__dict__", _NOTHING).get(_KEPT)
        return _all_kept(x) if verdict is None else verdict
    for y in x:
        if type(y) is not int and y is not None and (not _keepable(y) or isinstance(y, (bool, float))):
            return False
    return True


def _all_kept(x: Any) -> bool:
    """The same of an object: it is static, or its leaves are such that equal ones are one object. (Of a leaf itself
    `_keepable` knows.)"""
    if not is_frozen_class(type(x)):
        return True
    held: dict[str, Any] = x.__dict__
    verdict = held[_KEPT] = is_static(x) or all([_keepable(held.get(name)) for name in field_names(type(x))])  # type: ignore[arg-type]
    return verdict


_caches: list[Any] = []


def forget() -> None:
    """Drop all results that are kept: for measurements."""
    for cache in _caches:
        cache.cache_clear()


def pure(fn: F) -> F:
    """Mark a function as traced and keep its results for static arguments: in the simulator every thread of a kernel
    repeats the same set-up. A call that involves one of the compiler's leaves is never kept: lowering emits code at
    each."""
    remembered = functools.lru_cache(maxsize=4096, typed=True)(fn)
    _caches.append(remembered)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) is not int and not _keepable(a):
                return fn(*args, **kwargs)
        for a in kwargs.values() if kwargs else ():
            if not _keepable(a):
                return fn(*args, **kwargs)
        try:
            return remembered(*args, **kwargs)
        except TypeError:  # not hashable (a list): `fn` takes it, or says what is wrong
            return fn(*args, **kwargs)

    return traced(call)  # type: ignore[return-value]
