# SPDX-License-Identifier: Apache-2.0
"""Every configuration of the kernels of rows and moves, as of `configurations.py`. How a row is spread hangs on its
length, which has no end of values: of all lengths whose rows are spread alike one stands for all."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from numba_cute import CuteError
from numba_cute.kernels.moves import permute
from numba_cute.kernels.rows import norm, rotary, softmax, topk
from numba_cute.kernels.rows.topk import LARGEST_K

from .covering import Space

BF16, F16, F32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)
FLOATS = (BF16, F16, F32)
I64 = np.dtype(np.int64)
ROWS = 8
LONGEST = 1 << 18
MANY = sorted(
    {
        n * 2**p + more
        for n, p, more in itertools.product(range(1, 9), range(19), (0, 1, 4))
        if n * 2**p + more <= LONGEST
    }
)
"""Lengths from which those that stand for all are taken: multiples of powers of 2, some elements more, and none."""

Works = Callable[..., list[tuple[Any, tuple[Any, ...]]]]


def line(length: int, dtype: Any = F32) -> Any:
    return np.zeros(length, dtype)


def matrix(length: int, dtype: Any) -> Any:
    """A matrix of rows, of which no memory is touched."""
    return np.zeros((ROWS, length), dtype)


def launched(work: Any, *arrays: Any) -> tuple[Any, Any]:
    return work.kernel, (*arrays, *work.static)


def kind_of(works: Works, options: dict[str, Any], length: int) -> Any:
    """What of how a length's rows are spread counts for registers: how many elements a thread has, in what accesses,
    whether all are there, where a row comes by, who shares it, and the registers that there are. None where the plan
    refuses the length."""
    try:
        kernel, args = works(length=length, **options)[0]
    except CuteError:
        return None
    s = next(x for x in reversed(args) if hasattr(x, "teams"))
    shared = s.cluster > 1, s.warps > 1, s.threads < 32, s.alone
    return s.vector, s.vectors, s.whole, s.stages, s.again, *shared, str(kernel.targetoptions["launch_bounds"])


def space(works: Works, **axes: Any) -> Space:
    """The space of some works by these axes, and by lengths: of those whose rows are spread alike, the greatest."""

    @functools.cache
    def standing(options: tuple[Any, ...]) -> frozenset[int]:
        given = dict(zip(axes, options))
        found = {kind_of(works, given, length): length for length in MANY}
        return frozenset(length for kind, length in found.items() if kind is not None)

    every = frozenset[int]().union(*(standing(o) for o in itertools.product(*axes.values())))
    holds = lambda *, length, **options: length in standing(tuple(options[a] for a in axes))  # noqa: E731
    return Space({"length": sorted(every), **axes}, holds, works)


def norm_forward(*, length: int, dtype: Any, others: Any, centred: bool, weighted: bool, adds: bool) -> Any:
    x, y, w, v = matrix(length, dtype), matrix(length, dtype), line(length, others), line(ROWS)
    residual = matrix(length, others) if adds else None
    given = (
        x,
        residual,
        w if weighted else None,
        w if weighted and centred else None,
        y,
        residual,
        v if centred else None,
        v,
    )
    return [launched(norm.forward_work(*given, 1e-5, centred), *given)]


def norm_backward(*, length: int, dtype: Any, others: Any, centred: bool, weighted: bool, adds: bool) -> Any:
    x, w, v = matrix(length, dtype), line(length, others) if weighted else None, line(ROWS)
    summed = matrix(length, others) if adds else None
    work, groups, columns = norm.backward_works(x, x, w, summed, x, centred)
    parts = np.zeros((groups, length), F32) if weighted else None
    given = x, x, w, v if centred else None, v, summed, x, parts, parts if centred else None
    return [launched(work, *given), *([launched(columns, parts, line(length))] if weighted else [])]


def softmax_forward(*, length: int, dtype: Any) -> Any:
    x, y = matrix(length, dtype), matrix(length, dtype)
    return [launched(softmax.softmax_work(x, y), x, y)]


def softmax_backward(*, length: int, dtype: Any) -> Any:
    given = (matrix(length, dtype),) * 3
    return [launched(softmax.softmax_backward_work(*given), *given)]


def cross_entropy_forward(*, length: int, dtype: Any) -> Any:
    given = matrix(length, dtype), line(ROWS, I64), line(ROWS), line(ROWS)
    return [launched(softmax.cross_entropy_work(*given, -100), *given)]


def cross_entropy_backward(*, length: int, dtype: Any) -> Any:
    x = matrix(length, dtype)
    given = x, line(ROWS, I64), line(ROWS), line(ROWS), x
    return [launched(softmax.cross_entropy_backward_work(*given, -100), *given)]


def topk_forward(*, length: int, dtype: Any, k: int, weighs: bool) -> Any:
    if k > length:
        raise CuteError("topk: k is more than a row has: give fewer")
    given = matrix(length, dtype), matrix(k, dtype), matrix(k, I64)
    return [launched(topk.topk_work(*given, k, weighs), *given)]


def topk_backward(*, length: int, dtype: Any, k: int, weighs: bool) -> Any:
    if k > length:
        raise CuteError("topk: k is more than a row has: give fewer")
    given = matrix(k, dtype), matrix(k, dtype), matrix(k, I64), matrix(length, dtype)
    return [launched(topk.topk_backward_work(*given, length, weighs), *given)]


def turned(*, dtype: Any, others: Any, dim: int, part: int, heads: int, positions: bool, neighbours: bool, back: bool
           ) -> Any:  # fmt: skip
    x, c = np.zeros((ROWS, heads, dim), dtype), np.zeros((64, dim // part), others)
    at = line(ROWS, I64) if positions else None
    work = rotary.rotary_work(x, c, c, at, x, neighbours, back)
    return [launched(work, x, c, c, at, x)]


def moved(*, order: tuple[int, ...], size: int, extents: tuple[int, ...]) -> Any:
    x = np.zeros(extents[: len(order)], f"u{size}")
    y = np.zeros([x.shape[m] for m in order], x.dtype)
    work = permute.plan(x, y, order)
    return [launched(work, x, y)]


def all_but_the_longest() -> Space:
    """The space of the norms' backward, but for LayerNorm's gradients of weight and bias in rows of more than 131,072
    elements: there a thread has 32 elements of both sums, of x and of dy, and 128 registers, and spills up to 296
    bytes."""
    made = space(norm_backward, dtype=FLOATS, others=FLOATS, **OPTIONS)

    def holds(*, length: int, centred: bool, weighted: bool, **others: Any) -> bool:
        spills = centred and weighted and length > norm.CENTRED_MOST
        return not spills and made.holds(length=length, centred=centred, weighted=weighted, **others)

    return made._replace(holds=holds)


OPTIONS = {"centred": [False, True], "weighted": [False, True], "adds": [False, True]}
BOTH = [False, True]
TOPK = {"dtype": FLOATS, "k": [1, 8, LARGEST_K], "weighs": BOTH}
ORDERS = [o for n in (1, 2, 3, 4) for o in itertools.permutations(range(n))]
SPACES: dict[str, Callable[[], Space]] = {
    "norm": lambda: space(norm_forward, dtype=FLOATS, others=FLOATS, **OPTIONS),
    "norm backward": all_but_the_longest,
    "softmax": lambda: space(softmax_forward, dtype=FLOATS),
    "softmax backward": lambda: space(softmax_backward, dtype=FLOATS),
    "cross_entropy": lambda: space(cross_entropy_forward, dtype=FLOATS),
    "cross_entropy backward": lambda: space(cross_entropy_backward, dtype=FLOATS),
    "topk": lambda: space(topk_forward, **TOPK),
    "topk backward": lambda: space(topk_backward, **TOPK),
    "rotary": lambda: Space(
        {
            "dtype": FLOATS, "others": FLOATS, "dim": [64, 66, 128, 256], "part": [2, 4], "heads": [1, 3, 32],
            "positions": BOTH, "neighbours": BOTH, "back": BOTH,
        },
        lambda *, dim, part, **_: dim % part == 0, turned,
    ),
    "permute": lambda: Space(
        {
            "order": ORDERS, "size": [1, 2, 4, 8],
            "extents": [(64, 128, 32, 64), (7, 9, 33, 5), (2, 70, 3, 40), (16, 16, 16, 15)],
        },
        lambda **_: True, moved,
    ),
}  # fmt: skip
