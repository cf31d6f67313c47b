# SPDX-License-Identifier: Apache-2.0
"""The gradients of convolutions, for autograd. Those of images are a transposed convolution, and the other way round;
those of filters are products of the output's gradient and the im2col matrix, over groups of pixels that are added up.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from numba_cute import CuteError

from .. import entry
from ..gemm.launches import launch_on, sms_here
from .forward import convolved
from .operands import Columns, Walk, whole
from .plan import groups
from .tensors import channels_last, check, last, pixels_of, placed, remembered
from .transposed import gradient_of_images, transposed

OPERANDS = ("bfloat16", "float16")
UNIT = 64  # channels of 16 bits that TMA loads together
_known: dict[Any, Any] = {}


def gradient_of_filters(what: str, x: Any, dy: Any, weight: Any, walk: Walk) -> Any:
    """Give the gradient of a convolution's filters. what: the entry, for messages. x: the images. dy: the gradient of
    the output. weight: the filters. walk: of the convolution."""
    torch = entry.pytorch()
    outs, channels, *taps = weight.shape
    cut, count, each = groups(outs, channels, tuple(taps[::-1]), dy.numel() // outs, UNIT, sms_here())
    padded = whole(channels, each)
    sums = torch.empty((count, outs, math.prod(taps) * padded), dtype=torch.float32, device=x.device)

    def made() -> Any:
        for name, t in (("x", x), ("gradient", dy)):
            check(what, name, t)

        def place(dy: Any, x: Any, sums: Any) -> tuple[Any, Any, Any]:
            rows = pixels_of(dy).shape[0] // count
            a = placed(dy, (count, outs, rows), (rows * outs, 1, outs))
            return a, Columns(channels_last(x), walk, each, count), sums

        return launch_on((dy, x, sums), place, entry.element_type(x), cut)

    remembered(_known, [dy, x, sums], (walk,), made)(dy.detach(), x.detach(), sums)
    total = sums.sum(0) if count > 1 else sums[0]
    return total.view(outs, *taps, padded)[..., :channels].to(weight.dtype).contiguous().movedim(-1, 1)


def asked(what: str, *tensors: Any) -> bool:
    """Say whether autograd wants gradients of some tensors, and refuse tangents. what: the entry. tensors: or None."""
    entry.refuse_tangents(what, tensors)
    wanted = any(getattr(t, "requires_grad", False) for t in tensors)
    return wanted and bool(entry.pytorch().is_grad_enabled())


def check_options(what: str, x: Any, **others: Any) -> None:
    """Refuse options of which there are no gradients. what: the entry. x: the images. others: the options, by name."""
    given = [name for name, option in others.items() if option is not None]
    if given or entry.type_name(x) not in OPERANDS:
        raise CuteError(
            f"{what}: a gradient is asked for, which there is of bfloat16 and float16 without {', '.join(others)}, and "
            f"x is {entry.type_name(x)}, with {', '.join(given) or 'none of these'}: call it under torch.no_grad(), or "
            "do the rest after it"
        )


@functools.cache
def convolution() -> Any:
    """Give the convolution whose gradients autograd knows, and the transposed one."""
    torch = entry.pytorch()

    def in_order(t: Any) -> Any:
        return last(t).contiguous().movedim(-1, 1)

    def of_bias(ctx: Any, dy: Any) -> Any:
        along = [i for i in range(dy.ndim) if i != 1]
        return dy.sum(along, dtype=torch.float32).to(ctx.bias) if ctx.needs_input_grad[2] else None

    class Convolution(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx, x, weight, bias, what, how, cut):
            y, ctx.walk = convolved(what, x, weight, bias, how, None, None, None, cut)
            ctx.save_for_backward(x, weight)
            ctx.what, ctx.bias = what, None if bias is None else bias.dtype
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, dy):
            (x, weight), dy, dx, dw = ctx.saved_tensors, in_order(dy), None, None
            if ctx.needs_input_grad[0]:
                dx = gradient_of_images(ctx.what, dy, weight, in_order(torch.empty_like(x)), ctx.walk)
            if ctx.needs_input_grad[1]:
                dw = gradient_of_filters(ctx.what, x, dy, weight, ctx.walk)
            return dx, dw, of_bias(ctx, dy), None, None, None

    class Transposed(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx, x, weight, bias, what, how, cut):
            y, ctx.walk = transposed(what, x, weight, bias, how, None, None, cut)
            ctx.save_for_backward(x, weight)
            ctx.what, ctx.how, ctx.bias = what, (how[0], how[1], how[3]), None if bias is None else bias.dtype
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, dy):
            (x, weight), dy, dx, dw = ctx.saved_tensors, in_order(dy), None, None
            if ctx.needs_input_grad[0]:
                dx, _ = convolved(f"conv{x.ndim - 2}d", dy, weight, None, ctx.how, None, None, None, None)
            if ctx.needs_input_grad[1]:
                dw = gradient_of_filters(ctx.what, dy, in_order(x), weight, ctx.walk)
            return dx, dw, of_bias(ctx, dy), None, None, None

    return Convolution, Transposed
