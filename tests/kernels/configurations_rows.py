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
from numba_cute.isa.form.targets import answering_for
from numba_cute.kernels.moves import permute
from numba_cute.kernels.rows import groupnorm, norm, rotary, softmax, topk
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


def space(works: Works, free: dict[str, list[Any]] | None = None, **axes: Any) -> Space:
    """The space of some works by these axes, and by lengths: of those whose rows are spread alike, the greatest. free:
    axes by which rows are not spread."""
    free = free or {}

    @functools.cache
    def standing(options: tuple[Any, ...]) -> frozenset[int]:
        given = dict(zip(axes, options)) | {name: values[0] for name, values in free.items()}
        found = {kind_of(works, given, length): length for length in MANY}
        return frozenset(length for kind, length in found.items() if kind is not None)

    every = frozenset[int]().union(*(standing(o) for o in itertools.product(*axes.values())))
    holds = lambda *, length, **options: length in standing(tuple(options[a] for a in axes))  # noqa: E731
    return Space({"length": sorted(every), **axes, **free}, holds, works)


def heads(length: int, dtype: Any) -> Any:
    """Heads of packed q, k and v, as rows."""
    return np.zeros((ROWS, 3, length), dtype)[:, :2]


def norm_forward(*, length: int, dtype: Any, others: Any, centred: bool, weighted: bool, adds: bool, offset: float,
                 packed: bool) -> Any:  # fmt: skip
    x, y, w, v = matrix(length, dtype), matrix(length, dtype), line(length, others), line(ROWS)
    residual = matrix(length, others) if adds else None
    if packed:
        x, y, v = heads(length, dtype), matrix(length, dtype), line(ROWS)
        residual = None if residual is None else heads(length, others)
    given = (
        x, residual, w if weighted else None, w if weighted and centred else None, y,
        None if residual is None else matrix(length, others), v if centred else None, v,
    )  # fmt: skip
    return [launched(norm.forward_work(*given, 1e-5, centred, offset), *given)]


def norm_backward(*, length: int, dtype: Any, others: Any, centred: bool, weighted: bool, adds: bool, offset: float,
                  packed: bool) -> Any:  # fmt: skip
    x, w, v = matrix(length, dtype), line(length, others) if weighted else None, line(ROWS)
    dy = heads(length, dtype) if packed else x
    summed = matrix(length, others) if adds else None
    work, groups, columns = norm.backward_works(dy, x, w, summed, x, centred, offset)
    parts = np.zeros((groups, length), F32) if weighted else None
    given = dy, x, w, v if centred else None, v, summed, x, parts, parts if centred else None
    return [launched(work, *given), *([launched(columns, parts, line(length))] if weighted else [])]


def groupnorm_forward(*, length: int, dtype: Any, weighted: str, saved: bool, places: str) -> Any:
    """places: of a channel, of which a group's row has as many elements as its length says: all are one channel's, or
    of two, or of as many channels."""
    each = {"one": 1, "two": 2, "all": length}[places]
    if length % each:
        raise CuteError("groupnorm: no such group")
    grouping = groupnorm.Grouping(2 * each, each, length // each)
    x, y, lines, v = matrix(length, dtype), matrix(length, dtype), weights_of(2 * each, weighted), line(ROWS)
    given = x, *lines, y, *((v, v) if saved else (None, None))
    return [launched(groupnorm.forward_work(x, y, 1e-5, grouping), *given)]


def weights_of(length: int, weighted: str) -> tuple[Any, Any]:
    """A weight and a bias of a group norm, or None."""
    return tuple(line(length) if name in weighted else None for name in ("weight", "bias"))  # type: ignore[return-value]


WEIGHTED = ("none", "weight", "bias", "weight and bias")


def groupnorm_split(*, length: int, dtype: Any, weighted: str) -> Any:
    """The two kernels of groups longer than a cluster holds, whose rows are parts of channels, or channels of as many
    places as have no divisor."""
    grouping = groupnorm.Grouping(4, 2, 4 * length, 4)
    x, v = matrix(length, dtype), line(ROWS)
    reading, writing = groupnorm.split_works(x, x, grouping)
    given = x, *weights_of(4, weighted), v, v, x
    return [launched(reading, x, v, v), launched(writing, *given)]


def groupnorm_backward(*, length: int, dtype: Any, weighted: bool) -> Any:
    x, v, grouping = matrix(length, dtype), line(ROWS), groupnorm.Grouping(4, 2, length)
    adding, finishing = groupnorm.backward_works(x, x, x, grouping)
    given = x, x, line(4) if weighted else None, v, v, v, v, x
    return [launched(adding, x, x, v, v, v, v), launched(finishing, *given)]


def softmax_forward(*, length: int, dtype: Any) -> Any:
    x, y = matrix(length, dtype), matrix(length, dtype)
    return [launched(softmax.softmax_work(x, y), x, y)]


def softmax_backward(*, length: int, dtype: Any) -> Any:
    given = (matrix(length, dtype),) * 3
    return [launched(softmax.softmax_backward_work(*given), *given)]


def cross_entropy_forward(*, length: int, dtype: Any, smoothing: float, z: float, targets: Any, saved: bool) -> Any:
    given = matrix(length, dtype), line(ROWS, targets), line(ROWS), line(ROWS) if saved else None
    return [launched(softmax.cross_entropy_work(*given, -100, smoothing, z), *given)]


def cross_entropy_backward(*, length: int, dtype: Any, smoothing: float, z: float, targets: Any) -> Any:
    x = matrix(length, dtype)
    given = x, line(ROWS, targets), line(ROWS), line(ROWS), x
    return [launched(softmax.cross_entropy_backward_work(*given, -100, smoothing, z), *given)]


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


NORMS = {"others": F32, "weighted": True, "adds": True, "offset": 1.0, "packed": False}
GIVEN_LOSSES = {"smoothing": 0.1, "z": 0.1, "targets": I64}
ELSEWHERE: dict[str, Works] = {
    "softmax": softmax_forward,
    "softmax backward": softmax_backward,
    "cross_entropy": functools.partial(cross_entropy_forward, saved=True, **GIVEN_LOSSES),
    "cross_entropy backward": functools.partial(cross_entropy_backward, **GIVEN_LOSSES),
    **{f"topk {k}": functools.partial(topk_forward, k=k, weighs=True) for k in (8, LARGEST_K // 2, LARGEST_K)},
    "topk backward": functools.partial(topk_backward, k=8, weighs=True),
    **{f"norm {c}": functools.partial(norm_forward, centred=c, **NORMS) for c in (False, True)},
    **{f"norm backward {c}": functools.partial(norm_backward, centred=c, **NORMS) for c in (False, True)},
    "groupnorm in parts": functools.partial(groupnorm_split, weighted="weight and bias"),
    "groupnorm backward": functools.partial(groupnorm_backward, weighted=True),
}  # fmt: skip
"""Of each kernel the one with all that it may have."""


def elsewhere(*, target: str, what: str, length: int, dtype: Any) -> Any:
    """A kernel as it is launched on another GPU than an H200."""
    with answering_for(target):
        return ELSEWHERE[what](length=length, dtype=dtype)


def is_elsewhere(**given: Any) -> bool:
    try:
        return bool(elsewhere(**given))
    except CuteError:
        return False


OPTIONS = {
    "centred": [False, True], "weighted": [False, True], "adds": [False, True], "packed": [False, True],
    "free": {"offset": [0.0, 1.0]},
}  # fmt: skip
BOTH = [False, True]
LOSSES = {"smoothing": [0.0, 0.1], "z": [0.0, 0.1], "targets": [I64, np.dtype(np.int32)]}
TOPK = {"dtype": FLOATS, "k": [1, 8, LARGEST_K], "weighs": BOTH}
ORDERS = [o for n in (1, 2, 3, 4) for o in itertools.permutations(range(n))]
SPACES: dict[str, Callable[[], Space]] = {
    "norm": lambda: space(norm_forward, dtype=FLOATS, others=FLOATS, **OPTIONS),
    "norm backward": lambda: space(norm_backward, dtype=FLOATS, others=FLOATS, **OPTIONS),
    "groupnorm": lambda: space(
        groupnorm_forward, {"weighted": WEIGHTED, "saved": BOTH}, dtype=FLOATS, places=("one", "two", "all")
    ),
    "groupnorm in parts": lambda: space(groupnorm_split, {"weighted": WEIGHTED}, dtype=FLOATS),
    "groupnorm backward": lambda: space(groupnorm_backward, {"weighted": BOTH}, dtype=FLOATS),
    "softmax": lambda: space(softmax_forward, dtype=FLOATS),
    "softmax backward": lambda: space(softmax_backward, dtype=FLOATS),
    "cross_entropy": lambda: space(cross_entropy_forward, LOSSES | {"saved": BOTH}, dtype=FLOATS),
    "cross_entropy backward": lambda: space(cross_entropy_backward, LOSSES, dtype=FLOATS),
    "topk": lambda: space(topk_forward, **TOPK),
    "topk backward": lambda: space(topk_backward, **TOPK),
    "rows elsewhere": lambda: Space(
        {
            "target": ("sm_80", "sm_86", "sm_89", "sm_120"), "what": list(ELSEWHERE), "dtype": FLOATS,
            "length": [1, 60, 1000, 8192, 16384, 32768, 50001, 262144, 300000],
        },
        is_elsewhere, elsewhere,
    ),
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
