# SPDX-License-Identifier: Apache-2.0
"""The options of attention's entries that are not tensors: what they say, and what is refused."""

import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.seam import CuteError

from .plan import Options
from .split import MOST_SPLITS

__all__ = ["How", "aux_of", "how_of", "options_of"]


HEAD_DIMS = {64: 128, 128: 80}
"""Head dimensions, of all tensors, for which one kernel gives dQ, dK and dV; and the queries of its tiles."""

WIDE = ((192, 128), (256, 256))
"""Head dimensions, of Q and K, and of V and O, for which dQ has a kernel of its own."""

DIMS = (*((d, d) for d in HEAD_DIMS), *WIDE)
"""Head dimensions of q and k, and of v and o, that `attention_backward` takes."""


class How(NamedTuple):
    """Hold an entry's options, as Python's values alone. scale: a number. numbers, mask_numbers: arguments of the
    functions of the scores and of the mask, None where a tensor stands, and of an element type's number the type and
    the value. block: queries and keys of the mask's blocks, or None. extents: the queries and keys of which these were
    found, or None."""

    causal: bool
    window: tuple[int | None, int | None]
    scale: float
    softcap: float | None
    score: Any
    most_queries: int | None
    most_keys: int | None
    splits: int
    deterministic: bool
    numbers: tuple[Any, ...] = ()
    mask: Any = None
    mask_numbers: tuple[Any, ...] = ()
    block: tuple[int, int] | None = None
    extents: tuple[int, int] | None = None


def numbers_of(aux: Any) -> tuple[Any, ...]:
    """Give what a function takes as a `How` holds it."""
    return tuple(
        None if hasattr(x, "data_ptr") else (x.dtype, x.value) if isinstance(x, cute.dtypes.Scalar) else x for x in aux
    )


def how_of(
    causal: Any, window: Any, scale: Any, softcap: Any, score: Any, aux: Any, most_queries: Any, most_keys: Any,
    splits: Any, deterministic: Any, d: int, mask: Any = None, mask_aux: Any = (), block: Any = None,
    extents: Any = None,
) -> tuple[How, list[Any]]:  # fmt: skip
    """Give the options of a call as a `How`, and the tensors among what the functions of the scores and of the mask
    take, in their order."""
    window = tuple(window) if isinstance(window, list) else window
    scale = 1 / math.sqrt(d) if scale is None else float(scale)
    how = How(
        bool(causal), window, scale, softcap, score, most_queries, most_keys, splits, bool(deterministic),
        numbers_of(aux), mask, numbers_of(mask_aux), block, extents,
    )  # fmt: skip
    return how, [x for x in (*aux, *mask_aux) if hasattr(x, "data_ptr")]


@cute.seam.traced
def capped(s, batch, head, query, key, cap):
    """Bend scores so that none is beyond `cap`."""
    return cap * cute.math.tanh(s / cap, fastmath=True)


def aux_of(how: How, tensors: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Give what the function of the scores takes, and that of the mask. tensors: those among it, as of `how_of`."""
    left = iter(tensors)
    of_score, of_mask = (
        tuple(next(left) if x is None else x[0](x[1]) if type(x) is tuple else x for x in numbers)
        for numbers in (how.numbers, how.mask_numbers)
    )
    return of_score if how.softcap is None else (cute.Float32(how.softcap),), of_mask


def options_of(what: str, how: How, d: int) -> Options:
    """Give the options as a launch has them, with the number of splits that was asked for, 0 for any; refuses those
    that do not fit. what: the entry."""
    left, right, scale = chosen(what, how.causal, how.window, how.softcap, how.score, how.scale, d, how.splits)
    score = how.score if how.softcap is None else capped
    return Options(scale, left, right, score, how.most_queries, splits=how.splits, mask=how.mask, block=how.block)


def chosen(what, causal, window, softcap, score, scale, d, splits):
    """Give the window's sides, and the scale, as options say; refuses those that do not fit."""
    if causal and window[1] is not None:
        raise CuteError(
            f"{what}: causal is True, and window is {window}: a causal window is (left, 0), or give no window"
        )
    left, right = (window[0], 0) if causal else window
    for side in (left, right):
        if side is not None and (type(side) is not int or side < 0):
            raise CuteError(f"{what}: window {window} must be numbers of keys, 0 or more, or None for all")
    if score is not None and softcap is not None:
        raise CuteError(f"{what}: softcap is {softcap}, and score is given: let the function bend its scores")
    if softcap is not None and not softcap > 0:
        raise CuteError(f"{what}: softcap {softcap} must be positive, or None")
    if type(splits) is not int or not 0 <= splits <= MOST_SPLITS:
        raise CuteError(f"{what}: num_splits is {splits!r}; it must be 1 to {MOST_SPLITS}, or 0 for the best number")
    scale = 1 / math.sqrt(d) if scale is None else scale
    if not scale > 0:
        raise CuteError(f"{what}: scale {scale} must be positive")
    return left, right, float(scale)
