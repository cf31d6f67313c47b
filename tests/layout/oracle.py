# SPDX-License-Identifier: Apache-2.0
"""Random layouts, and what is true of them found by trying: whether any layout is a function, and whether CuTe's own
conditions for composing two hold."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from numba_cute import layout as cl
from numba_cute.layout.coalescing import merged, modes_of
from numba_cute.seam import CuteError

EXTENTS = (1, 2, 2, 3, 4, 4, 5, 6, 8)


def flat(t: Any) -> tuple[Any, ...]:
    return cl.flatten_to_tuple(t)


def random_layout(r: random.Random, max_rank: int = 3, kind: str | None = None, negative: bool = False) -> cl.Layout:
    """A layout of any strides, or a compact one in any order, or a compact one with gaps."""
    shape = tuple(r.choice(EXTENTS) for _ in range(r.randint(1, max_rank)))
    kind = kind or r.choice(("any", "compact", "gappy"))
    if kind == "any":
        stride = tuple(r.randint(-6 if negative else 0, 30) for _ in shape)
    else:
        order, reached, strides = r.sample(range(len(shape)), len(shape)), 1, [0] * len(shape)
        for i in order:
            reached *= r.choice((1, 1, 2, 3)) if kind == "gappy" else 1
            strides[i] = reached
            reached *= shape[i]
        stride = tuple(strides)
    return cl.Layout(shape, stride) if len(shape) > 1 or r.random() < 0.5 else cl.Layout(shape[0], stride[0])


def random_swizzle(r: random.Random) -> cl.Swizzle:
    bits = r.randint(0, 3)
    return cl.make_swizzle(bits, r.randint(0, 3), r.choice((1, 1, -1)) * (bits + r.randint(0, 2)))


def attempts(seed: int, count: int) -> Iterator[random.Random]:
    """The same `count` sources of random numbers for each seed: a failure shows which one."""
    for i in range(count):
        yield random.Random(f"{seed}.{i}")


def refused(f: Callable[..., Any], *args: Any) -> Any:
    """What `f` gives of `args`; the message, a str, of the CuteError that it raises."""
    try:
        return f(*args)
    except CuteError as e:
        return str(e)


def is_layout(f: Callable[[tuple[int, ...]], int], extents: tuple[int, ...]) -> bool:
    """Whether some layout of this shape, or finer, is the function `f` of coordinates: each mode must be one by itself,
    and they must add up."""
    columns = []
    for m, n in enumerate(extents):
        column = [f(tuple(i if k == m else 0 for k in range(len(extents)))) for i in range(n)]
        if column and (column[0] != 0 or not _is_mode(column)):
            return False
        columns.append(column)
    return all(f(c) == sum(column[i] for column, i in zip(columns, c)) for c in itertools.product(*map(range, extents)))


def _is_mode(offsets: list[int]) -> bool:
    """Whether these offsets are those of one mode, of a hierarchical shape if need be."""
    n = len(offsets)
    if n == 1:
        return True
    run = 1
    while run < n and offsets[run] == run * offsets[1]:
        run += 1
    if n % run:
        return False
    firsts = offsets[::run]
    steps = all(offsets[j] == firsts[j // run] + offsets[j % run] for j in range(n))
    return run == n or steps and _is_mode(firsts)


def divides(lhs: cl.Layout, rhs: cl.Layout) -> bool:
    """Whether CuTe's conditions for lhs o rhs hold: the steps of each mode of rhs divide the modes of lhs that they
    cross, and so do their numbers."""
    modes = merged(modes_of(lhs), keep_last=True)
    for extent, step in zip(flat(rhs.shape), flat(rhs.stride)):
        step = abs(step)
        for s, _ in modes[:-1]:
            if step == 0 or extent == 1 or (extent - 1) * step < s:
                break
            if step % s == 0:
                step //= s
                continue
            if s % step or extent % (s // step):
                return False
            extent, step = extent // (s // step), 1
    return True
