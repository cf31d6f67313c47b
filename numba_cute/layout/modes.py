# SPDX-License-Identifier: Apache-2.0
"""Tuples and layouts as sequences of modes: flatten, select, group, append."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..seam import CuteError
from ..seam.guards.kinds import Domain
from .int_tuple import IntTuple, flatten_to_tuple, static_int, text, wrap
from .layout import LAYOUTS, ComposedLayout, Layout, on_outer, path_of, rank
from .pure import pure

__all__ = ["append", "append_ones", "prepend", "prepend_ones"]


def modewise(f: Callable[[Any], Any], a: Domain) -> Any:
    """Apply `f` to a tuple, or to both the shape and the strides of a layout."""
    if isinstance(a, ComposedLayout):
        return on_outer(a, modewise(f, a.outer))
    if isinstance(a, list):
        a = tuple(a)
    return Layout(f(a.shape), f(a.stride)) if isinstance(a, Layout) else f(a)


@pure
def flatten(a: Domain) -> Any:
    """Remove the nesting of `a`: to a flat tuple, or a layout of flat shape; one leaf stays as it is.

    >>> cute.flatten(cute.make_layout((4, (2, 3)), stride=(6, (3, 1))))
    (4,2,3):(6,3,1)
    """
    return modewise(lambda t: flatten_to_tuple(t) if isinstance(t, tuple) else t, a)


@pure
def select(input: Domain, mode: IntTuple) -> Any:
    """Keep the modes of `input` that `mode` lists, in that order.

    >>> cute.select(cute.make_layout((4, 8), stride=(8, 1)), mode=[1, 0])
    (8,4):(1,8)
    """
    n, path = rank(input), path_of(mode)
    if not all(0 <= static_int(m, "mode") < n for m in path):
        raise CuteError(f"select: mode={list(path)}: the modes of {text(input)} are 0 to {n - 1}")
    return modewise(lambda t: tuple(wrap(t)[m] for m in path), input)


@pure
def group_modes(input: Domain, begin: int, end: int = -1) -> Any:
    """Group the modes [begin, end) of `input` into one; end = -1 stands for all that follow.

    >>> cute.group_modes(cute.make_layout((4, 8, 2)), 0, 2)
    ((4,8),2):((1,4),32)
    """
    n = rank(input)
    begin, end = static_int(begin, "begin"), static_int(end, "end")
    stop = n if end == -1 else end
    if not 0 <= begin < stop <= n:
        raise CuteError(f"group_modes: [{begin}, {end}) of {text(input)}: the modes are 0 to {n - 1}")
    return modewise(lambda t: (*t[:begin], t[begin:stop], *t[stop:]) if isinstance(t, tuple) else (t,), input)


@pure
def append(input: Domain, elem: Any, up_to_rank: int | None = None) -> Any:
    """Append `elem` to `input` as a new last mode, or as many times as give it rank `up_to_rank`.

    >>> cute.append(cute.make_layout(4), cute.make_layout(2, stride=4))
    (4,2):(1,4)
    """
    return _extend(input, elem, up_to_rank, "append", lambda t, more: wrap(t) + more)


@pure
def prepend(input: Domain, elem: Any, up_to_rank: int | None = None) -> Any:
    """Prepend `elem` to `input` as a new first mode, or as many times as give it rank `up_to_rank`.

    >>> cute.prepend(cute.make_layout(4), cute.make_layout(2, stride=4))
    (2,4):(4,1)
    """
    return _extend(input, elem, up_to_rank, "prepend", lambda t, more: more + wrap(t))


_MOST = 1 << 16


def _extend(input: Any, elem: Any, up_to_rank: int | None, name: str, join: Callable[[Any, Any], Any]) -> Any:
    if isinstance(input, ComposedLayout):
        return on_outer(input, _extend(input.outer, elem, up_to_rank, name, join))
    n = 1 if up_to_rank is None else static_int(up_to_rank, "up_to_rank") - rank(input)
    if n < 0:
        raise CuteError(f"{name}: {text(input)} has {rank(input)} modes, more than up_to_rank={up_to_rank}")
    if n > _MOST:
        raise CuteError(
            f"{name}: up_to_rank={up_to_rank} is more modes than can be computed with: at most {_MOST} more"
        )
    if isinstance(input, Layout):
        if not isinstance(elem, Layout):
            raise CuteError(f"{name}: elem={elem!r} cannot be a mode of the layout {input}: give a layout")
        if up_to_rank is not None and n == 0:
            return input
        return Layout(join(input.shape, (elem.shape,) * n), join(input.stride, (elem.stride,) * n))
    return input if up_to_rank is not None and n == 0 else join(input, (elem,) * n)


ONE = Layout(1, 0)


@pure
def append_ones(t: Any, up_to_rank: int | None = None) -> Any:
    """Append a mode of extent 1 (stride 0) to `t`, or as many as give it rank `up_to_rank`.

    >>> cute.append_ones(cute.make_layout(4), up_to_rank=3)
    (4,1,1):(1,0,0)
    """
    return append(t, ONE if isinstance(t, LAYOUTS) else 1, up_to_rank)


@pure
def prepend_ones(t: Any, up_to_rank: int | None = None) -> Any:
    """Prepend a mode of extent 1 (stride 0) to `t`, or as many as give it rank `up_to_rank`.

    >>> cute.prepend_ones(cute.make_layout(4), up_to_rank=2)
    (1,4):(0,1)
    """
    return prepend(t, ONE if isinstance(t, LAYOUTS) else 1, up_to_rank)
