# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions as they are launched: the gradient of a convolution's images, which is as many convolutions
with stride 1 as its stride has places. Each gives the pixels that the same taps reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numba_cute import CuteError

from .. import entry
from ..gemm.cuts import Umma, Warps
from ..gemm.dense import ROW
from ..gemm.epilogue import Epilogue, known_of
from ..gemm.launches import launch_on
from ..gemm.plan import Plan
from ..memo import remembered
from .fit import in_order, padded
from .operands import Image, Lattice, Part, Turned, Walk, parts_of, whole
from .plan import chosen
from .tensors import (
    channels_last,
    check,
    check_steps,
    family_of,
    flat,
    given_or,
    numbers,
    pixels_of,
    result_of,
    rows_of,
    steps_of,
    vectors,
    walk_of,
    with_room,
)

OPERANDS = ("bfloat16", "float16")  # of which wgmma and tcgen05 take filters that are contiguous along their channels
MODES = {"conv_transpose1d": 1, "conv_transpose2d": 2, "conv_transpose3d": 3}
_known: dict[Any, Any] = {}
_gradients: dict[Any, Any] = {}


def transposed(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any, Any], epilogue: Epilogue | None, out: Any,
    cut: Plan | Umma | Warps | None,
) -> tuple[Any, Walk]:  # fmt: skip
    """Convolve transposed, and give the walk too, of the convolution whose gradient it is. what: the entry. how:
    stride, padding, output_padding, dilation, of numbers and tuples. The others: as of `conv_transpose2d`."""
    given = epilogue.tensors if isinstance(epilogue, Epilogue) else []
    fresh: list[Any] = []
    of = what, x, weight, bias, how, epilogue, out, cut, fresh
    static = what, how, known_of(epilogue), cut
    launch, shape, walk = remembered(_known, [x, weight, bias, out, *given], static, _planned, of)
    out = out if out is not None else fresh[0] if fresh else result_of(x.device, shape, x.dtype)
    launch(x, weight, out, *([] if bias is None else [bias]), *flat(given, out.ndim))
    return out, walk


def _planned(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any, Any], epilogue: Epilogue | None, out: Any,
    cut: Plan | Umma | Warps | None, fresh: list[Any],
) -> tuple[Any, tuple[int, ...], Walk]:  # fmt: skip
    """Check what is given, and give what launches all that is like it, the result's shape, and the walk. fresh: gets
    the result that was planned with, for this call: its launch is packed already."""
    walk, shape = _plan(what, x, weight, how)
    result = given_or(what, x, shape, x.dtype, out, None)
    fresh.append(result)
    steps = steps_of(what, result, bias, epilogue)
    _check_epilogue(what, walk, result, x, epilogue)
    check(what, "out", result)
    for given in steps.given if steps else ():
        given.check(rows_of(result), rows_of(result).shape)
    own, steps, around = with_room(result.detach(), steps, False)
    launches, has_bias = _prepared(what, x, weight, own, walk, steps, cut), bias is not None

    def launch(x: Any, weight: Any, out: Any, *tensors: Any) -> None:
        _launch(launches, x, weight, out, tensors[0] if has_bias else None, list(tensors))

    return around(launch), shape, walk


def gradient_of_images(what: str, dy: Any, weight: Any, dx: Any, walk: Walk, cut: Umma | Warps | None = None) -> Any:
    """Write the gradient of a convolution's images. what: the entry, for messages. dy: the gradient of its output.
    weight: its filters. dx: the gradient, which is given back. walk: of the convolution. cut: an Umma, a
    Warps, or None."""
    channels, made = whole(dx.shape[1], 16 // dx.element_size()), dx
    if channels != dx.shape[1]:
        weight = padded(weight, channels)
        made = result_of(dx.device, (dx.shape[0], channels, *dx.shape[2:]), dx.dtype)
    make = lambda: _prepared(what, dy, weight, made, walk, None, cut)  # noqa: E731
    _launch(remembered(_gradients, [dy, weight, made], (walk, cut), make), dy, weight, made, None, [])
    return dx if made is dx else dx.copy_(made[:, : dx.shape[1]])


def _launch(launches: Any, x: Any, weight: Any, out: Any, bias: Any, tensors: list[Any]) -> None:
    """Launch the parts. launches: of `_prepared`. bias: of which pixels are made that no tap reaches."""
    x, weight, bias, out, *tensors = [
        t.detach() if t is not None and t.requires_grad else t for t in (x, weight, bias, out, *tensors)
    ]
    x, weight = _operands(x, weight, launches.filters)
    for there, launch in launches.parts:
        pixels = out if there is None else out[there]
        if launch is not None:
            launch(x, weight, pixels, *tensors)
        elif bias is None:
            pixels.zero_()
        else:
            pixels.copy_(bias.view(-1, *(1,) * (out.ndim - 2)))


class Launches(NamedTuple):
    """A transposed convolution as it is launched. filters: makes of filters what the launches take. parts: where each
    is in the result, None for all of it, and what launches it, None where no tap reaches."""

    filters: Callable[[Any], Any]
    parts: list[tuple[Any, Any]]


def _prepared(
    what: str, x: Any, weight: Any, result: Any, walk: Walk, steps: Epilogue | None, cut: Plan | Umma | Warps | None
) -> Launches:
    """Check tensors, and prepare the parts."""
    for name, t in (("x", x), ("weight", weight), ("out", result)):
        entry.check(what, name, t, last=False, like=x)
        entry.check_place(what, name, t)
    for given in steps.given if steps else ():
        given.check_as_it_lies(rows_of(result))
    family = family_of(what, x, cut)
    filters = (lambda w: w) if family == entry.WARPS else _dense  # each part permutes its own of the latter
    (x, weight), found = _operands(x.detach(), weight.detach(), filters), []
    if family != entry.WARPS:
        check_steps(what, walk)
    prepared = _part_of_warps if family == entry.WARPS else _part_by_tma
    for part in parts_of(walk, tuple(result.shape[2:]), tuple(x.shape[2:])):
        slices = (slice(first, None, step) for first, step in zip(part.first, walk.stride))
        there = None if max(walk.stride) == 1 else (slice(None), slice(None), *slices)
        pixels = result if there is None else result[there]
        launch = None if part.walk is None else prepared(family, x, weight, pixels, there is None, part, steps, cut)
        found.append((there, launch))
    return Launches(filters, found)


def _operands(x: Any, weight: Any, filters: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Give images and filters as the kernels take them. Channels that are no whole vectors are filled up with zeros.
    filters: as of `Launches`."""
    channels = vectors(x)
    if channels == x.shape[1]:
        return in_order(x), filters(weight)
    more = weight.new_zeros((channels, *weight.shape[1:]))
    more[: weight.shape[0]] = weight
    return padded(x, channels), filters(more)


def _dense(weight: Any) -> Any:
    """Give filters with their channels last, each tap of which has room for whole vectors."""
    channels = vectors(weight)
    return in_order(weight, True) if channels == weight.shape[1] else padded(weight, channels)[:, : weight.shape[1]]


def _part_by_tma(
    family: str, x: Any, weight: Any, pixels: Any, alone: bool, part: Part, steps: Epilogue | None, cut: Any
) -> Any:
    """Prepare the launch of a part whose operands TMA loads. family: of GPUs. alone: whether its pixels are all."""
    dtype, tile_k = entry.element_type(x), 8 * ROW // entry.element_type(x).width

    def place(x: Any, weight: Any, out: Any) -> tuple[Any, Any, Any]:
        assert part.walk is not None
        a = Image(channels_last(x), part.walk, tile_k)
        b = Turned(channels_last(weight), part.walk.taps, part.last, part.step, tile_k)
        return a, b, pixels_of(out) if alone else Lattice(channels_last(out))

    tensors = (x, weight, pixels)
    a, _, c = place(*[t.detach() for t in tensors])
    read = x.nbytes + weight.nbytes
    cut = cut or chosen(family, c, a.shape[1], dtype, entry.target_at(x), steps, dtype.width, read)
    return launch_on(tensors, place, dtype, cut, steps)


def _part_of_warps(
    family: str, x: Any, weight: Any, pixels: Any, alone: bool, part: Part, steps: Epilogue | None, cut: Any
) -> Any:
    """Prepare the launch of a part by mma.sync, of filters that are turned before it: (C, taps, outputs)."""
    from . import warps

    assert part.walk is not None
    dtype, walk, modes = entry.element_type(x), warps.turned(part.walk), len(part.last)
    each = zip(part.last, part.walk.taps, part.step)
    taps = (slice(None), slice(None), *(slice(last - (n - 1) * step, last + 1, step) for last, n, step in each))

    def turn(weight: Any) -> Any:
        from ..moves.permute import PERMUTE

        made = PERMUTE(weight[taps], (1, *range(2, 2 + modes), 0))
        return made.view(made.shape[0], -1)

    def place(x: Any, filters: Any, out: Any) -> tuple[Any, Any, Any]:
        c = pixels_of(out) if alone else warps.Lattice(channels_last(out))
        return warps.Image(channels_last(x), walk), filters, c

    tensors = (x, turn(weight), pixels)
    a, _, c = place(*[t.detach() for t in tensors])
    cut = cut or chosen(family, c, a.shape[1], dtype, entry.target_at(x), steps, dtype.width, 0)
    launch = launch_on(tensors, place, dtype, cut, steps)
    return lambda x, weight, *others: launch(x, turn(weight), *others)


# ---------------------------------------------------------------- checks


def _plan(what: str, x: Any, weight: Any, how: tuple[Any, Any, Any, Any]) -> tuple[Walk, tuple[int, ...]]:
    """The walk of the convolution whose gradient it is, and the result's shape."""
    (stride, padding, more, dilation), modes = how, MODES[what]
    entry.check(what, "x", x, dtypes=OPERANDS, rank=modes + 2, last=False)
    shape = (x.shape[1], None, *(None,) * modes)
    entry.check(what, "weight", weight, dtypes=(entry.type_name(x),), shape=shape, last=False)
    if isinstance(padding, str):
        raise CuteError(f"{what}: padding {padding!r} must be a number, or one for each mode")
    walk = walk_of(what, tuple(weight.shape[2:]), stride, padding, dilation)
    beyond = numbers(what, "output_padding", more, modes, 0)
    if any(extra >= step for extra, step in zip(beyond, walk.stride)):
        raise CuteError(
            f"{what}: output_padding {more!r} must be smaller than stride {stride!r}: give 0 or more, and less"
        )
    each = zip(x.shape[2:], walk.taps, walk.stride, walk.before, walk.dilation, beyond)
    extents = tuple((n - 1) * s - 2 * p + d * (t - 1) + extra + 1 for n, t, s, p, d, extra in each)
    if min(extents) < 1 or 0 in (*x.shape, *weight.shape):
        raise CuteError(
            f"{what}: x is {entry.described(x)} and weight {entry.described(weight)}; with {walk} that leaves an "
            f"output of {extents}, and nothing may be empty: give larger images, or other padding"
        )
    return walk, (x.shape[0], weight.shape[1], *extents)


def _check_epilogue(what: str, walk: Walk, result: Any, x: Any, epilogue: Epilogue | None) -> None:
    """Refuse an epilogue whose rows would be those of a part, or that pixels without taps would not see."""
    if epilogue is None:
        return
    if max(walk.stride) > 1 and any(x.along in ("rows", "both") or x.fold for x in epilogue.given):
        raise CuteError(
            f"{what}: with stride {walk.stride} an epilogue takes numbers and a value for each column, and this one "
            "takes more: do it after the convolution"
        )
    if any(part.walk is None for part in parts_of(walk, tuple(result.shape[2:]), tuple(x.shape[2:]))):
        raise CuteError(
            f"{what}: with {walk} no tap reaches some pixels, and the epilogue "
            "would not see them: do it after the convolution"
        )
