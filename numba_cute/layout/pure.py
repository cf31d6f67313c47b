# SPDX-License-Identifier: Apache-2.0
"""`pure`: what every function of the algebra is. Traced, and remembered while its arguments are static."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..seam import Leaf, traced

F = TypeVar("F", bound=Callable[..., Any])


def is_static(x: Any) -> bool:
    """Whether nothing in `x` (an int tuple, a layout, a tiler) is known only at run time."""
    if type(x) is int:
        return True
    if isinstance(x, tuple):
        return all(map(is_static, x))
    return not isinstance(x, Leaf) and getattr(x, "all_static", True)


def pure(fn: F) -> F:
    """A traced function whose results for static arguments are kept: in the simulator every thread of a kernel
    repeats the same set-up. A call that involves a `Leaf` is never kept: lowering emits code at each."""
    remembered = functools.lru_cache(maxsize=4096)(fn)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if not is_static(a):
                return fn(*args, **kwargs)
        for a in kwargs.values():
            if not is_static(a):
                return fn(*args, **kwargs)
        try:
            return remembered(*args, **kwargs)
        except TypeError:  # not hashable (a list): `fn` takes it, or says what is wrong
            return fn(*args, **kwargs)

    return traced(call)  # type: ignore[return-value]
