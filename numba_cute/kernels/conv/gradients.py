# SPDX-License-Identifier: Apache-2.0
"""The gradients of filters: products of the output's gradient and the im2col matrix, over groups of pixels that are
added up. Those of images are a transposed convolution, and the other way round.
"""

from __future__ import annotations

import math
from typing import Any

from .. import entry
from ..gemm.launches import launch_on, sms_here
from ..gemm.operands import swapped
from ..gemm.warps_plan import Warps
from . import warps
from .fit import fit, in_order, padded
from .operands import Columns, Walk, whole
from .plan import groups
from .tensors import channels_last, check, check_steps, family_of, pixels_of, placed, remembered, vectors

UNIT = 64  # channels of 16 bits that TMA loads together
_known: dict[Any, Any] = {}


def gradient_of_filters(what: str, x: Any, dy: Any, dw: Any, walk: Walk, cut: Warps | None = None) -> None:
    """Write the gradient of a convolution's filters. what: the entry, for messages. x: the images. dy: the gradient of
    the output. dw: the gradient. walk: of the convolution. cut: a Warps, for mma.sync, or None."""
    fitted, outs = fit(x, tuple(dw.shape[2:]), walk), vectors(dy)
    dy = in_order(dy.detach(), True) if outs == dy.shape[1] else padded(dy, outs)
    x = fitted.images(x.detach())
    check(what, "gradient", dy)
    family = family_of(what, x, cut)
    if family != entry.WARPS:
        check_steps(what, fitted.walk)
    total = (_by_warps if family == entry.WARPS else _by_tma)(family, x, dy, outs, fitted.walk, cut)
    own = total.view(outs, *fitted.walk.taps, -1)[: dw.shape[0], ..., : x.shape[1]].movedim(-1, 1)
    dw.copy_(fitted.back(own))


def _by_tma(family: str, x: Any, dy: Any, outs: int, walk: Walk, _: Any) -> Any:
    """The gradient of filters (outputs, K), each tap of whole tiles of channels."""
    torch, channels = entry.pytorch(), x.shape[1]
    cut, count, each = groups(family, outs, channels, walk.taps[::-1], dy.numel() // outs, UNIT, sms_here())
    padded = whole(channels, each)
    sums = torch.empty((count, outs, math.prod(walk.taps) * padded), dtype=torch.float32, device=x.device)

    def made() -> Any:
        def place(dy: Any, x: Any, sums: Any) -> tuple[Any, Any, Any]:
            rows = pixels_of(dy).shape[0] // count
            a = placed(dy, (count, outs, rows), (rows * outs, 1, outs))
            return a, Columns(channels_last(x), walk, each, count), sums

        return launch_on((dy, x, sums), place, entry.element_type(x), cut)

    remembered(_known, [dy, x, sums], (walk,), made)(dy, x, sums)
    return sums.sum(0) if count > 1 else sums[0]


def _by_warps(_: str, x: Any, dy: Any, outs: int, walk: Walk, cut: Warps | None) -> Any:
    """The gradient of filters (outputs, K), for GPUs whose tensor cores are a warp's."""
    torch, dtype, pixels = entry.pytorch(), entry.element_type(x), dy.numel() // outs
    depth, target = math.prod(walk.taps) * whole(x.shape[1], 16 // x.element_size()), entry.target_at(x)
    cut, share = warps.parts(outs, depth, pixels, sms_here(), target, cut)
    count = math.ceil(pixels / (cut.row * 8 // dtype.width * share))
    sums = torch.empty((count, outs, depth), dtype=torch.float32, device=x.device)

    def made() -> Any:
        def place(dy: Any, x: Any, sums: Any) -> tuple[Any, Any, Any]:
            return swapped(pixels_of(dy)), warps.Image(channels_last(x), walk, 0), sums

        return launch_on((dy, x, sums), place, dtype, cut, share=share)

    remembered(_known, [dy, x, sums], (walk, cut, share), made)(dy, x, sums)
    return sums.sum(0) if count > 1 else sums[0]
