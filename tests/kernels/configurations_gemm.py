# SPDX-License-Identifier: Apache-2.0
"""Configurations of products and convolutions on Hopper, as of `configurations.py`."""

from __future__ import annotations

import functools
import inspect
import itertools
from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute.kernels import gemm
from numba_cute.kernels.conv import plan as conv, windows
from numba_cute.kernels.conv.operands import Columns, Filter, Gradient, Image, Turned, Walk
from numba_cute.kernels.gemm import (
    blockscaled,
    gradients,
    grouped,
    grouped_outer,
    mixed,
    pack,
    plan as gemm_plan,
)
from numba_cute.kernels.gemm.operands import view

from .covering import Space

ARCH = "sm_90a"
F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
FLOATS = [cute.BFloat16, cute.Float16, cute.Float32]
CLUSTERS = 3  # that fit on the device


def empty(shape: tuple[int, ...], dtype: Any, along: int = -1) -> Any:
    """An array of which no memory is touched, contiguous along one of its last two modes."""
    dtype = getattr(dtype, "numpy", dtype)
    if along == -1:
        return np.zeros(shape, dtype)
    *outer, rows, columns = shape
    return np.zeros((*outer, columns, rows), dtype).swapaxes(-1, -2)


# ---------------------------------------------------------------- matmul


def epilogues(m: int, n: int, like: Any, batch: tuple[int, ...] = ()) -> dict[str, Any]:
    """By name, epilogues of every kind, for C (m, n): what `gemm` offers, all in a row, and what gradients take."""
    f = lambda *shape: np.zeros(shape, F32)  # noqa: E731
    made = {
        "bias": gemm.bias(empty((n,), like.dtype)), "scale": gemm.scale(f(m), "rows"), "residual": gemm.residual(like),
        "relu": gemm.relu(), "silu": gemm.silu(), "gelu": gemm.gelu("none"), "swiglu": gemm.swiglu(),
        "geglu": gemm.geglu(), "amax": gemm.amax(f(1)), "total": gemm.total(f(m)),
        "amax, columns": gemm.amax(f(n), "columns"), "total, columns": gemm.total(f(n), "columns"),
        "amax, rows": gemm.amax(f(m), "rows"),
    }  # fmt: skip
    made["all"] = (
        gemm.scale(f(m), "rows") | made["bias"] | gemm.gelu() | gemm.residual(like, 2.0) | made["total"]
        | made["total, columns"] | made["amax"]
    )  # fmt: skip
    made["swiglu and more"] = gemm.scale(0.5) | gemm.bias(f(2 * n)) | gemm.swiglu() | gemm.residual(like) | made["amax"]
    for name in ("gelu", "swiglu"):  # what hangs on the sums, and a vector's gradient that is added up
        first = gemm.bias(f(n * made[name].spread)) | made[name]
        steps, read = gradients.followed(first.form, (0,), False)
        ends = gradients.SUM if name == "gelu" else (gradients.SUM, 0)
        last = gradients.Take(ends, (0,) if name == "gelu" else ((0, 0),))
        made[f"gradient of {name}"] = gradients._epilogue(
            steps, first.tensors, read, last, gemm.matrix(like), results=(gemm.sums(f(n), "columns"),)
        )
    return made


def offered() -> set[str]:
    """The names of all that `gemm` offers as an epilogue."""
    return {n for n in gemm.__all__ if inspect.signature(getattr(gemm, n)).return_annotation == "Epilogue"}


ROOMS = {"none": (1, 0)} | {
    name: gemm_plan.room_of(e) for name, e in epilogues(8, 8, empty((8, 8), cute.BFloat16)).items()
}
"""Of each epilogue what the plan asks of it."""


@functools.cache
def cuts(order: int, dtype: Any, room: tuple[int, int], width: int) -> frozenset[Any]:
    """All cuts that `gemm/plan.py` may choose for any problem with such a C and an epilogue of such a room."""
    every = {"none": None, **epilogues(8, 8, empty((8, 8), cute.BFloat16))}
    like = every[next(name for name, r in ROOMS.items() if r == room)]
    shapes = [(4096, 256), (256, 4096)]
    found = [gemm_plan.cuts(empty(s, F32, order), 1 << 16, dtype, like, width) for s in shapes]
    return frozenset(itertools.chain(*found))


def matmul_holds(*, dtype: Any, c_type: Any, a_along: int, b_along: int, order: int, batched: bool, epilogue: str,
                 **cut: Any) -> bool:  # fmt: skip
    results = [cute.Int32] if dtype == cute.Int8 and epilogue == "none" else C_TYPES[:-1]
    alongs = (-1, -2) if dtype.width == 16 else (-1,)
    gradient = "gradient" not in epilogue or dtype not in (cute.Int8, cute.Float8E4M3FN, cute.Float8E5M2)
    chosen = gemm_plan.Plan(**cut) in cuts(order, dtype, ROOMS[epilogue], c_type.width)
    return c_type in results and a_along in alongs and b_along in alongs and gradient and chosen


def matmul_launches(*, dtype: Any, c_type: Any, a_along: int, b_along: int, order: int, batched: bool, epilogue: str,
                    **cut: Any) -> list[tuple[Any, Any]]:  # fmt: skip
    chosen, batch = gemm_plan.Plan(**cut), (2,) if batched else ()
    m, n, k = 512, 512, 8192
    spread, _ = ROOMS[epilogue]
    a, b = empty((*batch, m, k), dtype, a_along), empty((*batch, n * spread, k), dtype, b_along)
    c = empty((*batch, m, n), c_type, order)
    steps = None if epilogue == "none" else epilogues(m, n, c)[epilogue]
    counts = gemm_plan.scratch_of(c, chosen, CLUSTERS, steps)
    memory = (empty(counts[:1], F32), empty(counts[1:], I32)) if chosen.splits > 1 else None
    args, _ = gemm_plan.arguments(a, b, c, dtype, CLUSTERS, chosen, steps, memory, c_type)
    return [(gemm_plan.kernel_of(chosen), args)]


C_TYPES = [*(getattr(cute, n) for n in ("BFloat16", "Float16", "Float32")), cute.Int32]


def axes_of(found: Any) -> dict[str, list[Any]]:
    """The values that each field of some cuts has."""
    found = list(found)
    return {name: sorted({getattr(cut, name) for cut in found}) for name in found[0]._fields}


def matmul_space() -> Space:
    """A second's work, which an import of this file need not do."""
    found = itertools.chain(*(cuts(-1, cute.BFloat16, room, w) for room in ROOMS.values() for w in (16, 32)))
    axes = {
        "dtype": list(gemm_plan.RESULTS), "c_type": C_TYPES, "a_along": [-1, -2], "b_along": [-1, -2],
        "order": [-1, -2], "batched": [False, True], "epilogue": list(ROOMS), **axes_of(found),
    }  # fmt: skip
    return Space(axes, matmul_holds, matmul_launches)


# ---------------------------------------------------------------- other products


def grouped_epilogues(m: int, n: int, groups: int) -> dict[str, Any]:
    """By name, epilogues of every kind that `grouped_gemm` takes, for C (m, n), and what its gradients take."""
    f = lambda *shape: np.zeros(shape, F32)  # noqa: E731
    first = {"gelu": gemm.bias(f(groups, n)) | gemm.gelu("none"), "swiglu": gemm.bias(f(groups, 2 * n)) | gemm.swiglu()}
    rows = gemm.scale(f(m), "rows")
    made = {
        "bias": gemm.bias(f(n)), "scale": rows, "gelu": gemm.gelu("none"), "swiglu": gemm.swiglu(),
        "geglu": gemm.geglu(), "all": rows | first["gelu"] | gemm.scale(f(1)) | rows,
        "swiglu and more": gemm.scale(0.5) | first["swiglu"] | gemm.bias(f(groups, n)) | rows,
    }  # fmt: skip
    for name, ends in (("gelu", [gradients.SUM, 0]), ("swiglu", [(gradients.SUM, 0), (0, 1)])):
        whole = first[name] | rows
        steps, read = gradients.followed(whole.form, (0,), True)
        for end in ends:
            what = "the sums" if end == ends[0] else "a vector"
            made[f"gradient of {name} by {what}"] = gradients._epilogue(
                steps, whole.tensors, read, gradients.Alone(end)
            )
    return made


GROUPED_EPILOGUES = ("none", *grouped_epilogues(8, 8, 2))


def grouped_launches(*, dtype: Any, b_along: int, cut: Any, scaled: bool) -> list[tuple[Any, Any]]:
    m, n, k, groups = 8192, 512, 512, 2
    a, b, ends = empty((m, k), dtype), empty((groups, n, k), dtype, b_along), empty((groups,), I32)
    c = empty((m, n), dtype if dtype.width == 16 else cute.BFloat16)
    scales = (empty((m, k // 128), F32), empty((groups, n // 128, k // 128), F32)) if scaled else ()
    made = blockscaled.plan(a, b, ends, *scales, c, cut) if scaled else grouped.plan(a, b, ends, c, cut=cut)
    return [(made.kernel, made.given())]


def grouped_holds(*, dtype: Any, b_along: int, cut: Any, scaled: bool) -> bool:
    return (b_along == -1 or dtype.width == 16) and (not scaled or dtype == cute.Float8E4M3FN)


def of_names(names: Any) -> list[Any]:
    """The element types that an entry takes."""
    by_name = {repr(t).lower(): t for t in vars(cute.dtypes).values() if isinstance(t, cute.DType)}
    return [by_name[name.replace("_", "")] for name in names]


GROUPED = Space(
    {
        "dtype": of_names(grouped.KINDS), "b_along": [-1, -2], "scaled": [False, True],
        "cut": sorted({grouped.cut_of(rows, 1, n, lambda ctas: 1) for rows in (1, 1 << 20) for n in (8, 1 << 16)}),
    },
    grouped_holds, grouped_launches,
)  # fmt: skip


def outer_launches(*, dtype: Any, n: int) -> list[tuple[Any, Any]]:
    x, y, c = empty((512, 256), dtype), empty((512, n), dtype), empty((2, 256, n), dtype)
    made = grouped_outer.plan(x, y, empty((2,), I32), c)
    return [(made.kernel, made.given())]


OUTER = Space({"dtype": of_names(grouped.KINDS[:2]), "n": [128, 256]}, lambda **_: True, outer_launches)


@functools.cache
def mixed_cuts(kinds: int) -> frozenset[Any]:
    """All cuts that `mixed.cut_of` may choose: whatever clusters there is room for."""
    found = set()
    for blocks, tiles, tokens in itertools.product((1, 2, 3, 4, 5, 6, 7, 8, 64), (1, 4, 64), (1, 17, 64, 128, 4096)):
        for sms in (16, 132):
            room = lambda ctas, sms=sms: max(1, sms // ctas)  # noqa: E731
            found.add(mixed.cut_of(tokens, tiles, blocks, kinds, room))
    return frozenset(found)


def mixed_launches(*, dtype: Any, zeros: bool, cut: Any) -> list[tuple[Any, Any]]:
    n, k = 512, 1024
    weights = packed(n, k, dtype, zeros)
    x, c = empty((4096, k), dtype), empty((4096, n), dtype)
    made = mixed.plan(x, weights.words, weights.factors, c, weights.middle, n, cut)
    return [(made.kernel, made.given())]


@functools.cache
def packed(n: int, k: int, dtype: Any, zeros: bool, group_size: int = 128) -> Any:
    groups = k // group_size
    zero = np.zeros((n, groups), np.uint8) if zeros else None
    return pack.int4_weights(np.zeros((n, k), np.uint8), empty((n, groups), dtype), zero, group_size=group_size)


def mixed_space() -> Space:
    axes = {"dtype": FLOATS[:2], "zeros": [False, True], "cut": sorted(mixed_cuts(1) | mixed_cuts(2))}
    return Space(axes, lambda *, dtype, zeros, cut: cut in mixed_cuts(1 + zeros), mixed_launches)


# ---------------------------------------------------------------- convolutions

WHAT = ("convolution", "transposed", "filters", "helped", "written")


CONV_EPILOGUES = ("none", "bias", "amax", "all")


@functools.cache
def conv_cuts(k_tiles: int, epilogue: str) -> frozenset[Any]:
    shapes, dtype = [(4096, 1 << 12), (4096, 256), (4096, 64), (64, 4096)], cute.BFloat16
    like = None if epilogue == "none" else epilogues(8, 8, empty((8, 8), dtype))[epilogue]
    return frozenset(itertools.chain(*(conv.cuts(empty(s, F32), 64 * k_tiles, dtype, like) for s in shapes)))


def conv_holds(*, dtype: Any, modes: int, what: str, epilogue: str, k_tiles: int, **cut: Any) -> bool:
    if what in ("filters", "helped", "written"):  # an M-major operand, Float32 sums or the gradient, no epilogue
        tail = cut["tail"] and cut["sharers"] == 1 and what == "filters"
        if what == "helped" and cut["splits"] == 1:
            return False
        plain = gemm_plan.Plan(cut["tile_n"], cut["sharers"], splits=cut["splits"], tail=tail)._asdict() == cut
        return dtype.width == 16 and epilogue == "none" and plain and k_tiles == 1
    if what == "transposed" and dtype.width != 16:
        return False
    return gemm_plan.Plan(**cut) in conv_cuts(k_tiles, epilogue)


def conv_launches(*, dtype: Any, modes: int, what: str, epilogue: str, k_tiles: int, **cut: Any) -> list[Any]:
    chosen, tile_k = gemm_plan.Plan(**cut), 1024 // dtype.width
    taps = (1,) * modes if k_tiles % 3**modes or chosen.kept else (3,) * modes
    ones = (1,) * modes
    walk = Walk(taps, ones, (taps[0] // 2,) * modes, (taps[0] // 2,) * modes, ones)
    channels = tile_k * (k_tiles // int(np.prod(taps)))
    extents, outs = (16,) * modes if modes > 1 else (512,), min(512, chosen.tile_n) if chosen.kept else 512
    x = empty((2, *extents, channels), dtype)
    pixels = 2 * int(np.prod(extents))  # K of the gradient of filters, which has as many tiles as there are splits
    c_type = dtype if dtype.width == 16 else cute.BFloat16 if dtype.width == 8 else cute.Float32
    c = empty((pixels, outs), c_type)
    steps = None if epilogue == "none" else epilogues(pixels, outs, c)[epilogue]
    a, b = Image(x, walk, tile_k), Filter(empty((outs, int(np.prod(taps)), channels), dtype), tile_k)
    if what == "transposed":
        weights = empty((channels, *taps, outs), dtype)
        b = Turned(weights, taps, tuple(t - 1 for t in taps), ones, tile_k)
    if what in ("filters", "helped", "written"):
        chosen, apart = (chosen._replace(slots=2), 3) if what == "helped" else (chosen, 0)
        a, b = empty((outs, pixels), dtype, -2), Columns(x, walk, 64, None)
        c, c_type = empty((chosen.splits, outs, b.shape[0]), cute.Float32), cute.Float32
        memory = None
        if what == "written":
            c, c_type, apart = Gradient(empty((outs, *taps, channels), dtype), 64), dtype, None
            if chosen.splits > 1:
                memory, apart = tuple(map(empty, gemm_plan.scratch_of(c, chosen, CLUSTERS), (F32, I32))), 3
        args, _ = gemm_plan.arguments(a, b, c, dtype, CLUSTERS, chosen, None, memory, c_type, apart=apart)
        return [(gemm_plan.kernel_of(chosen), args)]
    counts = gemm_plan.scratch_of(c, chosen, CLUSTERS, steps)
    memory = (empty(counts[:1], F32), empty(counts[1:], I32)) if chosen.splits > 1 else None
    args, _ = gemm_plan.arguments(a, b, c, dtype, CLUSTERS, chosen, steps, memory, c_type)
    return [(gemm_plan.kernel_of(chosen), args)]


def conv_space() -> Space:
    axes = {
        "dtype": list(gemm_plan.RESULTS)[:4], "modes": [1, 2, 3], "what": WHAT,
        "epilogue": CONV_EPILOGUES, "k_tiles": [1, 4, 27],
        **axes_of(itertools.chain(*(conv_cuts(k, e) for k in (1, 4, 27) for e in CONV_EPILOGUES))),
    }  # fmt: skip
    return Space(axes, conv_holds, conv_launches)


def windows_launches(*, dtype: Any, modes: int, rows: int, along: int, dilation: int) -> list[Any]:
    ones = (1,) * modes
    walk = Walk((max(rows, 2),) * (modes - 1) + (along,), ones, ones, ones, (dilation,) * modes)
    x = empty((2, *(16,) * modes, 64), dtype)
    dy = empty((2, *walk.out((16,) * modes), 64), dtype)
    cut, sums = windows.Window(rows, along, 1), empty((1, 64, int(np.prod(walk.taps)), 64), F32)
    args = windows.arguments(*(view(t, 16) for t in (x, dy, sums)), walk, cut, dtype)
    return [(windows.kernel_of(rows), args)]


WINDOWS = Space(
    {"dtype": FLOATS[:2], "modes": [1, 2, 3], "rows": [1, 2, 3], "along": [1, 2, 3], "dilation": [1, 2]},
    lambda *, modes, rows, along, **_: modes > 1 or rows == 1, windows_launches,
)  # fmt: skip
