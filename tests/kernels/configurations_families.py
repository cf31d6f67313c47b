# SPDX-License-Identifier: Apache-2.0
"""Configurations of products whose rows an index names, and of the kernels for other GPUs than Hopper's, whose tensor
cores are a warp's or have a memory for sums, as of `configurations.py`."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.kernels.attention import (
    append,
    entry as attention_entry,
    gradients as attention_gradients,
    plan as attention,
    warps_plan as attention_warps,
)
from numba_cute.kernels.attention.options import capped
from numba_cute.kernels.conv import warps as conv_warps
from numba_cute.kernels.conv.operands import Walk
from numba_cute.kernels.gemm import (
    grouped,
    grouped_outer,
    mixed,
    mixed_warps_plan,
    plan as gemm_plan,
    umma_plan,
    warps_grouped,
    warps_plan,
)
from numba_cute.kernels.gemm.cuts import Umma
from numba_cute.kernels.gemm.indexed import Named, of_product

from .configurations_attention import BLOCKS, BLOCKS_OF_GRADIENTS, HEADS, LENGTHS, lists_of, some
from .configurations_gemm import (
    C_TYPES,
    CLUSTERS,
    F32,
    FLOATS,
    GROUPED_EPILOGUES,
    I32,
    ROOMS,
    axes_of,
    empty,
    epilogues,
    grouped_epilogues,
    packed,
)
from .covering import Space

WARPS = ("sm_80", "sm_86", "sm_89", "sm_120")
"""Targets of which each stands for those with its shared memory and its assembler's code."""
TENSOR_MEMORY = ("sm_100a", "sm_103a")
I64 = np.dtype(np.int64)
FLOAT8 = (cute.Float8E4M3FN, cute.Float8E5M2)


def results_of(dtype: Any, epilogue: str) -> list[Any]:
    """The types that a product of `dtype` may have."""
    return [cute.Int32] if dtype == cute.Int8 and epilogue == "none" else C_TYPES[:-1]


def has_gradient(dtype: Any, epilogue: str) -> bool:
    """Whether an epilogue's gradient is one of products of this type."""
    return "gradient" not in epilogue or dtype not in (cute.Int8, *FLOAT8)


def epilogue_of(name: str, c: Any, batch: tuple[int, ...] = ()) -> Any:
    """An epilogue by its name, for a result like `c`."""
    return None if name == "none" else epilogues(*c.shape[-2:], c, batch)[name]


# ---------------------------------------------------------------- rows by an index, on Hopper

ROWS = ("A", "C", "A and C", "any bytes")
"""Whose rows an index names; or C's rows lie at no multiples of 16 bytes."""


def named_of(rows: str, a: Any, c: Any) -> Any:
    """The Named of A and of C, or None."""
    index = empty((int(c.shape[0]),), I64)
    return [Named(index, 300, int(t.shape[1])) if name in rows.split() else None for name, t in (("A", a), ("C", c))]


@functools.cache
def indexed_cuts(rows: str, dtype: Any, room: tuple[int, int], width: int) -> frozenset[Any]:
    """The cuts that may be chosen where an index names rows, or where C's are of any bytes."""
    every = {"none": None, **epilogues(8, 8, empty((8, 8), cute.BFloat16))}
    like = every[next(name for name, r in ROOMS.items() if r == room)]
    odd = rows == "any bytes"
    shapes = [(4096, 257), (256, 4097)] if odd else [(4096, 256), (256, 4096)]
    found = [gemm_plan.cuts(empty(s, F32), 1 << 16, dtype, like, width, not odd) for s in shapes]
    return frozenset(itertools.chain(*found))


def indexed_holds(*, dtype: Any, c_type: Any, b_along: int, rows: str, epilogue: str, **cut: Any) -> bool:
    chosen = gemm_plan.Plan(**cut) in indexed_cuts(rows, dtype, ROOMS[epilogue], c_type.width)
    halves = rows == "any bytes" and ROOMS[epilogue][0] == 2  # which begin at no multiples of 16 bytes
    along = b_along == -1 or (dtype.width == 16 and not halves)
    return c_type in results_of(dtype, epilogue) and along and has_gradient(dtype, epilogue) and chosen


def indexed_launches(*, dtype: Any, c_type: Any, b_along: int, rows: str, epilogue: str, **cut: Any) -> Any:
    chosen, m, n, k = gemm_plan.Plan(**cut), 512, 513 if rows == "any bytes" else 512, 8192
    a, c = empty((m, k), dtype), empty((m, n), c_type)
    columns = n * ROOMS[epilogue][0]
    b = empty((columns, k), dtype) if b_along == -1 else empty((columns + -columns % 8, k), dtype, -2)[:columns]
    like = empty((m, n + -n % 8), c_type)[:, :n]
    steps, named = epilogue_of(epilogue, like), named_of(rows, a, c)
    counts = gemm_plan.scratch_of(c, chosen, CLUSTERS, steps)
    memory = (empty(counts[:1], F32), empty(counts[1:], I32)) if chosen.splits > 1 else None
    if any(named):
        a, c = of_product(a, m), of_product(c, m)
    args, _ = gemm_plan.arguments(a, b, c, dtype, CLUSTERS, chosen, steps, memory, c_type, *named)
    return [(gemm_plan.kernel_of(chosen), args)]


def indexed_space() -> Space:
    each = itertools.product(ROWS, ROOMS.values(), (16, 32))
    found = itertools.chain(*(indexed_cuts(r, cute.BFloat16, room, w) for r, room, w in each))
    axes = {
        "dtype": list(gemm_plan.RESULTS), "c_type": C_TYPES, "b_along": [-1, -2], "rows": ROWS, "epilogue": list(ROOMS),
        **axes_of(found),
    }  # fmt: skip
    return Space(axes, indexed_holds, indexed_launches)


# ---------------------------------------------------------------- products by warps


def warps_holds(*, target: str, dtype: Any, c_type: Any, a_along: int, b_along: int, order: int, odd: bool,
                rows: str, epilogue: str, cut: Any) -> bool:  # fmt: skip
    named = rows != "all"
    if named and (order == -2 or ("A" in rows.split() and a_along == -2)):
        return False
    if dtype in FLOAT8 and not warps_plan.has_float8(cute.target(target)):
        return False
    along = dtype.width == 16 or (a_along, b_along) == (-1, -1)
    chosen = cut in warps_plan.cuts(cute.target(target), named)
    return c_type in results_of(dtype, epilogue) and along and has_gradient(dtype, epilogue) and chosen


def warps_launches(*, target: str, dtype: Any, c_type: Any, a_along: int, b_along: int, order: int, odd: bool,
                   rows: str, epilogue: str, cut: Any) -> Any:  # fmt: skip
    m, n, k = (n - odd for n in (256, 512, 2048))
    spread = ROOMS[epilogue][0]
    a, b, c = empty((m, k), dtype, a_along), empty((n * spread, k), dtype, b_along), empty((m, n), c_type, order)
    steps = epilogue_of(epilogue, c)
    named = [None, None] if rows == "all" else named_of(rows, a, c)
    args, _ = warps_plan.arguments(a, b, c, dtype, cute.target(target), cut, steps, c_type, *named)
    return [(warps_plan.kernel_of(cut), args)]


BY_WARPS = Space(
    {
        "target": WARPS, "dtype": list(gemm_plan.RESULTS), "c_type": C_TYPES,
        "a_along": [-1, -2], "b_along": [-1, -2], "order": [-1, -2], "odd": [False, True],
        "rows": ["all", *ROWS[:3]], "epilogue": list(ROOMS), "cut": list(warps_plan.CUTS),
    },
    warps_holds, warps_launches,
)  # fmt: skip


def grouped_made(dtype: Any, b_along: int, rows: str, epilogue: str, cut: Any, odd: bool = False) -> Any:
    """The launch of a grouped product. rows: whose an index names. epilogue: of `GROUPED_EPILOGUES`."""
    m, n, k, groups = 300, 512 - 8 * odd, 512 - 8 * odd, 2
    steps = {"none": None, **grouped_epilogues(m, n, groups)}[epilogue]
    b = empty((groups, n * (steps.spread if steps else 1), k), dtype, b_along)
    a, c = empty((m, k), dtype), empty((m, n), dtype if dtype.width == 16 else cute.BFloat16)
    index = [empty((m,), I64) if name in rows.split() else None for name in ("A", "C")]
    return grouped.plan(a, b, empty((groups,), I32), c, cut=cut, epilogue=steps, rows=index)


def grouped_by_warps(*, target: str, dtype: Any, b_along: int, odd: bool, rows: str, epilogue: str, cut: Any) -> Any:
    n, k = 512 - 8 * odd, 512 - 8 * odd
    a, ends, c = empty((300, k), dtype), empty((2,), I32), empty((300, n), dtype)
    cut = cut._replace(stages=warps_plan.stages_of(cut, cute.target(target)))  # arrays of NumPy's are an sm_80's
    made = grouped_made(dtype, b_along, rows, epilogue, cut, odd)
    if dtype in FLOAT8:  # of which there are no gradients
        return [(made.kernel, made.given())]
    outer = grouped_outer.plan(a, c, ends, empty((2, k, n), dtype), cut)
    return [(made.kernel, made.given()), (outer.kernel, outer.given())]


def grouped_by_warps_holds(
    *, target: str, dtype: Any, b_along: int, odd: bool, rows: str, epilogue: str, cut: Any
) -> bool:  # fmt: skip
    if dtype in FLOAT8 and (b_along == -2 or odd or not warps_plan.has_float8(cute.target(target))):
        return False
    tight = dtype in FLOAT8 and epilogue != "none"
    return cut in warps_grouped.cuts_of(cute.target(target), rows != "all", tight)


GROUPED_BY_WARPS = Space(
    {
        "target": WARPS, "dtype": [*FLOATS[:2], *FLOAT8], "b_along": [-1, -2], "odd": [False, True],
        "rows": ["all", *ROWS[:3]], "epilogue": GROUPED_EPILOGUES, "cut": list(warps_plan.CUTS),
    },
    grouped_by_warps_holds, grouped_by_warps,
)  # fmt: skip

CONVOLUTIONS = ("convolution", "transposed", "filters")


def conv_by_warps(*, target: str, dtype: Any, modes: int, what: str, epilogue: str, odd: bool, cut: Any) -> Any:
    ones, channels, outs = (1,) * modes, 64 - 4 * odd, 256
    walk = Walk((3,) * modes, ones, ones, ones, ones)
    x, pixels = empty((2, *(9,) * modes, channels), dtype), 2 * 9**modes
    image = conv_warps.Image(x, walk)
    y, w = empty((pixels, outs), dtype), empty((outs, image.shape[1]), dtype)
    a, b, c, *others = {
        "convolution": (image, w, y),
        "transposed": (image, w, conv_warps.Lattice(empty((2, *(9,) * modes, outs), dtype))),
        "filters": (y.T, conv_warps.Image(x, walk, 0), empty((4, outs, w.shape[1]), F32), cute.Float32, None, None, 2),
    }[what]  # fmt: skip
    steps = epilogue_of(epilogue, y) if what == "convolution" else None
    args, _ = warps_plan.arguments(a, b, c, dtype, cute.target(target), cut, steps, *others)
    return [(warps_plan.kernel_of(cut), args)]


def conv_by_warps_holds(*, target: str, dtype: Any, what: str, epilogue: str, cut: Any, **_: Any) -> bool:
    forward = what == "convolution"
    return (forward or (dtype.width == 16 and epilogue == "none")) and cut in warps_plan.cuts(cute.target(target))


CONV_BY_WARPS = Space(
    {
        "target": WARPS, "dtype": [cute.BFloat16, cute.Float16, cute.TFloat32], "modes": [1, 2, 3],
        "what": CONVOLUTIONS, "epilogue": ["none", "bias", "amax", "all"], "odd": [False, True],
        "cut": list(warps_plan.CUTS),
    },
    conv_by_warps_holds, conv_by_warps,
)  # fmt: skip

# ---------------------------------------------------------------- weights of 4 bits, by warps


def mixed_by_warps(*, target: str, dtype: Any, zeros: bool, group_size: int, split: bool, cut: Any) -> Any:
    n, k = 512, 1024
    weights = packed(n, k, dtype, zeros, group_size)
    form = mixed_warps_plan.form_of(cut, *weights.factors.shape[2:4])
    cut = cut._replace(splits=1 + split)
    cut = min(
        (mixed_warps_plan.fitted(cut, form, k, cute.target(t)) for t in ("sm_80", target)), key=lambda c: c.stages
    )
    x, c = empty((4096, k), dtype), empty((4096, n), dtype)
    made = mixed.plan(x, weights.words, weights.factors, c, weights.middle, n, cut)
    return [(made.kernel, made.given())]


MIXED_BY_WARPS = Space(
    {
        "target": (*WARPS, *TENSOR_MEMORY), "dtype": FLOATS[:2], "zeros": [False, True], "group_size": [32, 64, 128],
        "split": [False, True], "cut": list(mixed_warps_plan.CUTS),
    },
    lambda *, split, cut, **_: not split or cut.tile[0] <= mixed_warps_plan.MOST_SHARED, mixed_by_warps,
)  # fmt: skip

# ---------------------------------------------------------------- products by tcgen05


def umma_holds(*, target: str, dtype: Any, c_type: Any, a_along: int, b_along: int, order: int, rows: str,
               epilogue: str, **_: Any) -> bool:  # fmt: skip
    named = rows.split() if rows != "all" else []
    if dtype == cute.Int8 and (target != "sm_100a" or "A" in named):
        return False
    if named and (order == -2 or ("A" in named and a_along == -2)):
        return False
    along = dtype.width == 16 or (a_along, b_along) == (-1, -1)
    return c_type in results_of(dtype, epilogue) and along and has_gradient(dtype, epilogue)


def umma_launches(*, target: str, dtype: Any, c_type: Any, a_along: int, b_along: int, order: int, rows: str,
                  epilogue: str, splits: tuple[int, bool], cut: Any) -> Any:  # fmt: skip
    m, n, k, cut = 512, 512, 2048, cut._replace(splits=splits[0], tail=splits[1])
    a, b = empty((m, k), dtype, a_along), empty((n * ROOMS[epilogue][0], k), dtype, b_along)
    c = empty((m, n), c_type, order)
    steps, named = epilogue_of(epilogue, c), [None, None] if rows == "all" else named_of(rows, a, c)
    counts = umma_plan.scratch_of(c, cut, CLUSTERS, steps)
    memory = (empty(counts[:1], F32), empty(counts[1:], I32)) if cut.splits > 1 else None
    args, _ = umma_plan.arguments(
        a, b, c, dtype, cute.target(target), cut, steps, c_type, CLUSTERS, None, memory, *named
    )  # fmt: skip
    return [(umma_plan.kernel_of(cut), args)]


BY_TCGEN05 = Space(
    {
        "target": TENSOR_MEMORY, "dtype": list(gemm_plan.RESULTS), "c_type": C_TYPES, "a_along": [-1, -2],
        "b_along": [-1, -2], "order": [-1, -2], "rows": ["all", *ROWS[:3]], "epilogue": list(ROOMS),
        "splits": [(1, False), (2, False), (2, True)], "cut": list(umma_plan.CUTS),
    },
    umma_holds, umma_launches,
)  # fmt: skip


def grouped_by_tcgen05(*, target: str, dtype: Any, b_along: int, rows: str, epilogue: str, cut: Any) -> Any:
    made = grouped_made(dtype, b_along, rows, epilogue, cut)
    return [(made.kernel, made.given())]


GROUPED_BY_TCGEN05 = Space(
    {
        "target": TENSOR_MEMORY,
        "dtype": [*FLOATS[:2], *FLOAT8], "b_along": [-1, -2],
        "rows": ["all", *ROWS[:3]], "epilogue": GROUPED_EPILOGUES,
        "cut": [Umma(n, c) for n in (128, 256) for c in (1, 2)],
    },
    lambda *, dtype, b_along, **_: b_along == -1 or dtype.width == 16, grouped_by_tcgen05,
)  # fmt: skip

# ---------------------------------------------------------------- attention by warps


def attention_by_warps(*, target: str, dtype: Any, dims: tuple[int, int], heads: str, left: bool, right: bool,
                       score: str, mask: bool, block: Any, lengths: str, sink: bool, splits: int) -> Any:  # fmt: skip
    (d, dv), (group, queries), keys = dims, HEADS[heads], 1024
    ragged, page = lengths == "cu_seqlens", int(lengths.rpartition(" ")[2]) if "pages" in lengths else 0
    of_q, of_k = ((queries,), (keys,)) if ragged else ((2, queries), (2, keys))
    of_k = (2 * keys // page, page) if page else of_k
    cu, used = empty((3,), I32) if ragged else None, empty((2,), I32) if lengths == "seqused" or page else None
    given = attention.Lengths(cu, cu, used, empty((2, keys // page), I32) if page else None)
    q, k, v, o = (
        empty((*s, h, n), dtype)
        for s, h, n in ((of_q, 2 * group, d), (of_k, 2, d), (of_k, 2, dv), (of_q, 2 * group, dv))
    )
    lse = empty((2 * group, queries) if ragged else (2, 2 * group, queries), F32)
    options = attention.Options(
        0.125, 100 if left else None, 0 if right else None, capped if score == "softcap" else None,
        queries if ragged else None, splits=splits if splits > 1 else None, mask=some if mask else None,
        block=block,
    )  # fmt: skip
    listed = lists_of(block, (-(-queries // block[0]), -(-keys // block[1])) if block else (0, 0)) or None
    work = empty((attention.room(q, v, splits),), F32) if splits > 1 else None
    of_sink, aux = empty((2 * group,), F32) if sink else None, (cute.Float32(2.0),) if score == "softcap" else ()
    at = cute.target(target)
    found = [attention_warps.arguments(q, k, v, o, lse, options, at, given, of_sink, aux, work, listed=listed)[:2]]
    if work is not None:
        found.append(attention.joining(q, v, o, lse, options, given, of_sink, work, False)[:2])
    return found


ATTENTION_BY_WARPS = Space(
    {
        "target": WARPS, "dtype": FLOATS[:2], "dims": list(itertools.product(attention_entry.HEAD_DIMS, repeat=2)),
        "heads": list(HEADS), "left": [False, True], "right": [False, True], "score": ["none", "softcap"],
        "mask": [False, True], "block": BLOCKS, "lengths": LENGTHS, "sink": [False, True], "splits": [1, 3],
    },
    lambda **_: True, attention_by_warps,
)  # fmt: skip


def gradients_by_warps(*, target: str, dtype: Any, dims: tuple[int, int], left: bool, right: bool, score: str,
                       mask: bool, block: Any, lengths: str, dlse: bool) -> Any:  # fmt: skip
    (d, dv), rows = dims, 512
    q, k, o, v = (empty((1, rows, h, n), dtype) for h, n in ((6, d), (2, d), (6, dv), (2, dv)))
    lse, cu = empty((1, 6, rows), F32), empty((3,), I32)
    given = {
        "whole": attention.ALL, "cu_seqlens": attention.Lengths(cu, cu), "seqused": attention.Lengths(used=cu[:1]),
    }  # fmt: skip
    options = attention.Options(
        0.1, 100 if left else None, 0 if right else None, capped if score == "softcap" else None, rows,
        mask=some if mask else None, block=block,
    )  # fmt: skip
    aux = (cute.Float32(2.0),) if score == "softcap" else ()
    places = (-(-rows // block[0]), -(-rows // block[1])) if block else (0, 0)
    listed = lists_of(block, places, places[::-1])
    more = attention_gradients.More(given[lengths], rows, aux, lse if dlse else None, listed=listed)
    rooms = attention_gradients.room(q, (2, rows) if lengths == "cu_seqlens" else None, False)
    arrays = (q, k, v, o, o, lse, q, k, v)
    todo = attention_gradients.by_warps(arrays, [empty(s, F32) for s in rooms], options, more, cute.target(target))
    return [(launch.kernel, launch.args) for launch in todo]


GRADIENTS_BY_WARPS = Space(
    {
        "target": WARPS, "dtype": FLOATS[:2], "dims": list(attention_gradients.DIMS), "left": [False, True],
        "right": [False, True], "score": ["none", "softcap"], "mask": [False, True], "block": BLOCKS_OF_GRADIENTS,
        "lengths": LENGTHS[:3], "dlse": [False, True],
    },
    lambda **_: True, gradients_by_warps,
)  # fmt: skip

ALL_TARGETS = (*WARPS, "sm_90a", *TENSOR_MEMORY)


def appended(*, target: str, dtype: Any, dims: tuple[int, int], of_angles: Any, interleaved: bool, paged: bool) -> Any:
    """The kernel that appends to a cache, and turns keys and queries where there are angles."""
    d, dv = dims
    k, v = empty((2, 3, 2, d), dtype), empty((2, 3, 2, dv), dtype)
    caches = [empty((8, 16, 2, n) if paged else (2, 64, 2, n), dtype) for n in dims]
    q = cos = turned = None
    if of_angles is not None:
        q, turned, cos = empty((2, 3, 4, d), dtype), empty((2, 3, 4, d), dtype), empty((64, d // 2), of_angles)
    pages, lengths = empty((2, 4), I32) if paged else None, empty((2,), I32)
    overlaps = entry.family_of(cute.target(target)) != entry.WARPS
    given = *caches, k, v, lengths, pages, q, cos, cos, lengths, turned, interleaved, overlaps
    return [append.appending(*given)[:2]]


def appends(*, target: str, dtype: Any, of_angles: Any, interleaved: bool, **_: Any) -> bool:
    narrow = dtype == cute.Float8E4M3FN
    return not (narrow and (target != "sm_90a" or of_angles)) and not (interleaved and of_angles is None)


APPENDED = Space(
    {
        "target": ALL_TARGETS, "dtype": [*FLOATS[:2], cute.Float8E4M3FN],
        "dims": list(itertools.product(attention_entry.HEAD_DIMS, repeat=2)), "of_angles": [None, F32, FLOATS[0]],
        "interleaved": [False, True], "paged": [False, True],
    },
    appends, appended,
)  # fmt: skip


SPACES = {
    "append": lambda: APPENDED,
    "matmul by index": indexed_space, "matmul by warps": lambda: BY_WARPS,
    "grouped_gemm by warps": lambda: GROUPED_BY_WARPS, "conv by warps": lambda: CONV_BY_WARPS,
    "mixed_gemm by warps": lambda: MIXED_BY_WARPS,
    "matmul by tcgen05": lambda: BY_TCGEN05, "grouped_gemm by tcgen05": lambda: GROUPED_BY_TCGEN05,
    "flash_attention by warps": lambda: ATTENTION_BY_WARPS,
    "flash_attention backward by warps": lambda: GRADIENTS_BY_WARPS,
}  # fmt: skip
