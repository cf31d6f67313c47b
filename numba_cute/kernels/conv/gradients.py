# SPDX-License-Identifier: Apache-2.0
"""The gradients of filters: products of the output's gradient and the im2col matrix, over groups of pixels that are
added up. Those of images are a transposed convolution, and the other way round.
"""

from __future__ import annotations

import math
from typing import Any

import numba_cute as cute

from .. import entry
from ..gemm.launches import clusters_here, launch_on, sms_here
from ..gemm.operands import swapped, view
from ..gemm.plan import Plan
from ..gemm.warps_plan import Warps
from . import warps, windows
from .fit import fit, in_order, padded
from .operands import Columns, Walk, whole
from .plan import Groups, chosen_parts, edge_of
from .sums import ADD_UP
from .tensors import channels_last, check, check_steps, family_of, pixels_of, placed, remembered, vectors
from .windows import Window

UNIT = 64  # channels of 16 bits that TMA loads together
_known: dict[Any, Any] = {}


def gradient_of_filters(
    what: str, x: Any, dy: Any, dw: Any, walk: Walk, cut: Warps | Window | Groups | None = None
) -> None:
    """Write the gradient of a convolution's filters. what: the entry, for messages. x: the images. dy: the gradient of
    the output. dw: the gradient. walk: of the convolution. cut: a Warps, for
    mma.sync, or what `chosen_parts` gives, by TMA; by default what a model finds fastest."""
    fitted, outs = fit(x, tuple(dw.shape[2:]), walk), vectors(dy)
    dy = in_order(dy.detach(), True) if outs == dy.shape[1] else padded(dy, outs)
    x = fitted.images(x.detach())
    check(what, "gradient", dy)
    family = family_of(what, x, cut if isinstance(cut, Warps) else None)
    if family != entry.WARPS:
        check_steps(what, fitted.walk)
    sums, edge = (_by_warps if family == entry.WARPS else _by_tma)(family, x, dy, outs, fitted.walk, cut)
    part = sums[0].view(sums.shape[1], *fitted.walk.taps, -1)[: dw.shape[0], ..., : x.shape[1]].movedim(-1, 1)
    ADD_UP((sums, dw), (fitted.back(part).stride(), edge))


def _by_tma(family: str, x: Any, dy: Any, outs: int, walk: Walk, cut: Any) -> Any:
    """The gradient of filters (parts, outputs, K), each tap of whole tiles of channels, and how many columns are in the
    first part alone."""
    torch, channels = entry.pytorch(), x.shape[1]
    cut = cut or chosen_parts(family, x, outs, walk, dy.numel() // outs)
    if isinstance(cut, Window):
        return _by_windows(x, dy, outs, walk, cut)
    own, count, each, lengths = cut
    columns, apart = math.prod(walk.taps) * whole(channels, each), isinstance(own, Plan)
    sums = torch.empty((count, outs, columns), dtype=torch.float32, device=x.device)
    edge = edge_of(own, outs, columns, clusters_here(own)) if apart else 0
    if apart and not edge:  # fewer clusters fit than the plan counted on: all share
        own = own._replace(tail=False)

    def made() -> Any:
        def place(dy: Any, x: Any, sums: Any) -> tuple[Any, Any, Any]:
            if apart:
                return swapped(pixels_of(dy)), Columns(channels_last(x), walk, each, None), sums
            rows = pixels_of(dy).shape[0] // count
            a = placed(dy, (count, outs, rows), (rows * outs, 1, outs))
            return a, Columns(channels_last(x), walk, each, count), sums

        return launch_on((dy, x, sums), place, entry.element_type(x), own, apart=lengths if apart else None)

    remembered(_known, [dy, x, sums], (walk, cut), made)(dy, x, sums)
    return sums, edge


def _by_windows(x: Any, dy: Any, outs: int, walk: Walk, cut: Window) -> Any:
    """The gradient of filters (parts, outputs, K), of whole tiles of outputs and of each tap's channels."""
    shape = cut.parts, whole(outs, UNIT), math.prod(walk.taps), whole(x.shape[1], UNIT)
    sums = entry.pytorch().empty(shape, dtype=entry.pytorch().float32, device=x.device)
    grid, block = windows.grid_of(walk, outs, x.shape[1], cut), windows.threads_of(cut.rows)

    def made() -> Any:
        bound = cute.launch(windows.kernel_of(cut.rows), grid=grid, block=block, pdl=True)

        @cute.runtime.remembered
        def given(dy: Any, x: Any, sums: Any) -> Any:
            return windows.arguments(
                channels_last(x), channels_last(dy), view(sums, 16), walk, cut, entry.element_type(x)
            )

        return lambda dy, x, sums: bound(*given(dy, x, sums))

    remembered(_known, [dy, x, sums], (walk, cut), made)(dy, x, sums)
    return sums.flatten(2), 0


def _by_warps(_: str, x: Any, dy: Any, outs: int, walk: Walk, cut: Any) -> Any:
    """The gradient of filters (parts, outputs, K), for GPUs whose tensor cores are a warp's."""
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
    return sums, 0
