# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions as they are launched: the gradient of a convolution's images, which is as many convolutions
with stride 1 as its stride has places. Each gives the pixels that the same taps reach.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from numba_cute import CuteError

from .. import entry
from ..gemm.dense import ROW
from ..gemm.epilogue import Epilogue
from ..gemm.launches import key_of, known, loose, remembered, sms_here
from ..gemm.operands import Loose
from ..gemm.plan import Plan
from .operands import Image, Lattice, Part, Turned, Walk, parts_of
from .plan import plan
from .tensors import check, filters_of, images_of, numbers, result_of, rows_of, steps_of, walk_of

OPERANDS = ("bfloat16", "float16")  # of which wgmma takes filters that are contiguous along their channels
MODES = {"conv_transpose1d": 1, "conv_transpose2d": 2, "conv_transpose3d": 3}
_planned: dict[Any, tuple[Walk, tuple[int, ...]]] = {}
parts = functools.lru_cache(maxsize=1024)(parts_of)


def transposed(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any, Any], epilogue: Epilogue | None, out: Any,
    cut: Plan | None,
) -> tuple[Any, Walk]:  # fmt: skip
    """Convolve transposed, and give the walk too, of the convolution whose gradient it is. what: the entry. how:
    stride, padding, output_padding, dilation, of numbers and tuples. The others: as of `conv_transpose2d`."""
    said = what, *((getattr(t, "shape", 0), getattr(t, "dtype", t)) for t in (x, weight)), how
    planned = _planned.get(said)
    if planned is None:
        planned = _planned[said] = _plan(what, x, weight, how)
    walk, shape = planned
    result = result_of(what, x, shape, x.dtype, out, x.dtype)
    steps = steps_of(what, result, bias, epilogue)
    _check_steps(what, walk, result, epilogue, steps)
    return gradient_of_images(what, x, weight, result, walk, bias, steps, cut), walk


def gradient_of_images(
    what: str, x: Any, weight: Any, result: Any, walk: Walk, bias: Any = None, steps: Epilogue | None = None,
    cut: Plan | None = None,
) -> Any:  # fmt: skip
    """Write the gradient of a convolution's images. what: the entry, for messages. x: the gradient of its output.
    weight: (C of x, channels of the images, taps). result: the gradient, which is given back. walk: of the convolution.
    bias: what `steps` adds, where no tap reaches. steps: what becomes of the sums. cut: a Plan."""
    stream = entry.pytorch().cuda.current_stream().cuda_stream if x.is_cuda else None
    key = key_of(x), key_of(weight), key_of(result), walk, steps and steps.key(key_of), cut
    for part in parts(walk, tuple(result.shape[2:]), tuple(x.shape[2:])):
        if part.walk is None:
            there = tuple(slice(first, None, step) for first, step in zip(part.first, walk.stride))
            zeros = result[(slice(None), slice(None), *there)]
            _ = zeros.zero_() if bias is None else zeros.copy_(bias.view(-1, *(1,) * len(there)))
            continue
        launch = known.get((*key, part.first, stream))
        if launch is None:
            for name, t in (("x", x), ("weight", weight), ("out", result)):
                entry.check(what, name, t, last=False, like=x)
                check(what, name, t)
            for given in steps.given if steps else ():
                given.check(rows_of(result))
            launch = _prepared((*key, part.first, stream), x, weight, result, walk, part, steps, cut)
        launch()
    return result


def _prepared(
    key: Any, x: Any, weight: Any, result: Any, walk: Walk, part: Part, steps: Epilogue | None, cut: Plan | None
) -> Any:
    """Prepare the launch of a part."""
    dtype, whole = entry.element_type(x), images_of(result)
    assert part.walk is not None
    a, b = operands_of(images_of(x), filters_of(weight), part, walk.taps, dtype)
    if max(walk.stride) == 1:
        c: Any = loose(rows_of(result))
    else:
        c = Lattice(every(whole, part, walk.stride), dtype)
    ours, read = (
        steps and steps.moved(loose),
        x.nbytes + weight.nbytes * math.prod(part.walk.taps) // math.prod(walk.taps),
    )
    cut = cut or plan(c, a.shape[1], dtype, sms_here(), ours, dtype.width, read)
    return remembered(key, a, b, c, dtype, ours, cut)


def operands_of(images: Any, filters: Any, part: Part, taps: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:
    """Give the GEMM's operands for a part. images: the gradient of the output, (N, D, H, W, outputs). filters:
    (outputs, taps, C), dense. taps: the filter's extents. dtype: of the elements."""
    tile_k = 8 * ROW // dtype.width
    assert part.walk is not None
    outs, _, channels = filters.shape
    shape = (outs, *taps, channels)
    strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    filters = filters._replace(shape=shape, strides=strides)
    return Image(images, part.walk, tile_k), Turned(filters, part.walk.taps, part.last, part.step, tile_k)


def every(images: Loose, part: Part, stride: tuple[int, ...]) -> Loose:
    """Give the pixels of images that are a part. images: (N, D, H, W, C). stride: from one to the next."""
    batch, *steps, one = images.strides
    begin = sum(first * step for first, step in zip(part.first, steps)) * images.dtype.width // 8
    shape = (images.shape[0], *part.extents, images.shape[-1])
    return images._replace(
        address=images.address + begin, shape=shape, strides=(batch, *(n * s for n, s in zip(stride, steps)), one)
    )


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
        raise CuteError(f"{what}: output_padding {more!r} must be smaller than stride {stride!r}")
    each = zip(x.shape[2:], walk.taps, walk.stride, walk.before, walk.dilation, beyond)
    extents = tuple((n - 1) * s - 2 * p + d * (t - 1) + extra + 1 for n, t, s, p, d, extra in each)
    if min(extents) < 1 or 0 in (*x.shape, *weight.shape):
        raise CuteError(
            f"{what}: x is {entry.described(x)} and weight {entry.described(weight)}; with {walk} that leaves an "
            f"output of {extents}, and nothing may be empty"
        )
    return walk, (x.shape[0], weight.shape[1], *extents)


def _check_steps(what: str, walk: Walk, result: Any, epilogue: Epilogue | None, steps: Epilogue | None) -> None:
    """Refuse an epilogue whose rows would be those of a part, or that pixels without taps would not see."""
    if epilogue is None or steps is None:
        return
    if epilogue.spread > 1:
        raise CuteError(f"{what}: the epilogue makes one column of two, which is for matmul: join the halves after it")
    if max(walk.stride) > 1 and any(x.along in ("rows", "both") or x.fold for x in epilogue.given):
        raise CuteError(
            f"{what}: with stride {walk.stride} an epilogue takes numbers and a value for each column, and this one "
            "takes more: do it after the convolution"
        )
    reached = [t * d for t, d in zip(walk.taps, walk.dilation)]
    if any(p.walk is None for p in parts(walk, tuple(result.shape[2:]), tuple(result.shape[2:]))):
        raise CuteError(
            f"{what}: with stride {walk.stride} no tap reaches some pixels (the filter spans {reached}), and the "
            "epilogue would not see them: do it after the convolution"
        )
