# SPDX-License-Identifier: Apache-2.0
"""The gradients of filters: products of the output's gradient and the im2col matrix, over groups of pixels that are
added up. Those of images are a transposed convolution, and the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba_cute as cute

from .. import entry
from ..gemm.cuts import Warps
from ..gemm.launches import clusters_here, launch_on, sms_here
from ..gemm.operands import swapped
from ..gemm.plan import Plan
from ..memo import remembered
from . import windows
from .fit import as_it_lies, dense, fit, padded
from .operands import UNIT, Columns, Gradient, Walk, whole
from .plan import Groups, chosen_parts, edge_of
from .sums import ADD_UP
from .tensors import channels_last, check, check_steps, family_of, pixels_of, placed, vectors
from .windows import Window

_known: dict[Any, Any] = {}


def gradient_of_filters(
    what: str, x: Any, dy: Any, dw: Any, walk: Walk, cut: Warps | Window | Groups | None = None
) -> None:
    """Write the gradient of a convolution's filters. what: the entry, for messages. x: the images. dy: the gradient of
    the output. dw: the gradient. walk: of the convolution. cut: a Warps, for
    mma.sync, or what `chosen_parts` gives, by TMA; by default what a model finds fastest."""
    fresh: list[Any] = []
    of = what, x, dy, dw, walk, cut, fresh
    remembered(_known, [x, dy, dw], (what, walk, cut), _planned, of)(x, dy, dw, *fresh)


def _planned(
    what: str, x: Any, dy: Any, dw: Any, walk: Walk, cut: Any, fresh: list[Any]
) -> Callable[[Any, Any, Any], None]:
    """Check what is given, and give what writes the gradients of all that is like it. fresh: gets the memory of sums
    that was planned with, for this call: its launch is packed already."""
    fitted, outs = fit(x, tuple(dw.shape[2:]), walk), vectors(dy)
    ordered = outs == dy.shape[1]
    images, outputs = as_it_lies(x, fitted.images), as_it_lies(dy, dense if ordered else lambda t: padded(t, outs))
    x, dy = images(x), outputs(dy)
    check(what, "gradient", dy)
    family = family_of(what, x, cut if isinstance(cut, Warps) else None)
    if family != entry.WARPS:
        check_steps(what, fitted.walk)
    by = _by_warps if family == entry.WARPS else _by_tma
    parts = by(family, x, dy, outs, fitted.walk, cut, dw if _written(dw, x) else None)
    if parts.shape is None:
        return lambda x, dy, dw: parts.launch(outputs(dy), images(x), dw.detach())
    shape, device = parts.shape, x.device
    sums = _sums(shape, device) if parts.sums is None else parts.sums
    fresh.append(sums)
    inner, taps = parts.inner or shape[-1] // math.prod(fitted.walk.taps), fitted.walk.taps
    part = sums[0].view(shape[1], -1, *taps, inner)[: dw.shape[0]]
    if part.shape[1] == 1:
        part, split = fitted.back(part[:, 0, ..., : x.shape[1]].movedim(-1, 1)), lambda dw: dw
    else:
        part, split = part.movedim(-1, 2), lambda dw: dw.unflatten(1, (-1, inner))
    how = part.stride(), parts.edge
    launches = parts.launch

    def launch(x: Any, dy: Any, dw: Any, sums: Any = None) -> None:
        sums = _sums(shape, device) if sums is None else sums
        launches(outputs(dy), images(x), sums)
        ADD_UP((sums, split(dw)), how)

    return launch


def _written(dw: Any, x: Any) -> bool:
    """Say whether TMA can write a gradient of filters where it lies. x: what the images became."""
    return bool(dw.shape[1] == x.shape[1] and dw.movedim(1, -1).is_contiguous() and dw.data_ptr() % 16 == 0)


class Parts(NamedTuple):
    """Sums over parts of the pixels. launch: writes them, of an output's gradient and images. shape: (parts, outputs,
    K); None where the gradient itself is written. edge: columns that are in the first part alone. inner: channels that
    are counted of each tap before the next ones; 0 for all. sums: memory that a launch was planned with, or None."""

    launch: Callable[[Any, Any, Any], None]
    shape: tuple[int, ...] | None
    edge: int = 0
    inner: int = 0
    sums: Any = None


def _sums(shape: tuple[int, ...], device: Any) -> Any:
    """Make memory for sums."""
    torch = entry.pytorch()
    return torch.empty(shape, dtype=torch.float32, device=device)


def _by_tma(family: str, x: Any, dy: Any, outs: int, walk: Walk, cut: Any, dw: Any) -> Parts:
    """Plan the gradient of filters by the im2col matrix. dw: the gradient, if it can be written at once, or None."""
    cut = cut or chosen_parts(family, x, outs, walk, dy.numel() // outs)
    if isinstance(cut, Window):
        return _by_windows(x, outs, walk, cut)
    own, count, inner, lengths = cut
    columns, apart = math.prod(walk.taps) * whole(x.shape[1], inner), isinstance(own, Plan)
    edge = edge_of(own, outs, columns, clusters_here(own)) if apart else 0
    if apart and not edge:  # fewer clusters fit than the plan counted on: all share
        own = own._replace(tail=False)
    alone = apart and dw is not None and (count == 1 or lengths > 0)

    def place(dy: Any, x: Any, sums: Any) -> tuple[Any, Any, Any]:
        if apart:
            c = Gradient(channels_last(sums), inner) if alone else sums
            return swapped(pixels_of(dy)), Columns(channels_last(x), walk, inner, None), c
        rows = pixels_of(dy).shape[0] // count
        a = placed(dy, (count, outs, rows), (rows * outs, 1, outs))
        return a, Columns(channels_last(x), walk, inner, count), sums

    if alone:
        own = own._replace(slots=min(1, own.slots))  # whose pieces are wider, of fewer bits
        return Parts(launch_on((dy, x, dw), place, entry.element_type(x), own, apart=lengths or None), None)
    shape = count, outs, columns
    launch, sums = _launched(place, x, dy, shape, own, apart=lengths if apart else None)
    return Parts(launch, shape, edge, inner if inner < x.shape[1] else 0, sums)


def _by_windows(x: Any, outs: int, walk: Walk, cut: Window) -> Parts:
    """Plan the gradient of filters by windows, of whole tiles of outputs and of each tap's channels."""
    count, taps, depth = whole(outs, UNIT), math.prod(walk.taps), whole(x.shape[1], UNIT)
    shape, strides = (cut.parts, count, taps, depth), (count * taps * depth, taps * depth, depth, 1)
    grid, block = windows.grid_of(walk, outs, x.shape[1], cut), windows.threads_of(cut.rows)
    bound, dtype = cute.launch(windows.kernel_of(cut.rows), grid=grid, block=block, pdl=True), entry.element_type(x)

    @cute.runtime.remembered
    def given(dy: Any, x: Any, sums: Any) -> Any:
        own = placed(sums, shape, strides)
        return windows.arguments(channels_last(x), channels_last(dy), own, walk, cut, dtype)

    return Parts(lambda dy, x, sums: bound(*given(dy, x, sums)), (cut.parts, count, taps * depth))


def _by_warps(_: str, x: Any, dy: Any, outs: int, walk: Walk, cut: Any, dw: Any) -> Parts:
    """Plan the gradient of filters for GPUs whose tensor cores are a warp's."""
    dtype, pixels = entry.element_type(x), dy.numel() // outs
    depth, target = math.prod(walk.taps) * whole(x.shape[1], 16 // x.element_size()), entry.target_at(x)
    from . import warps

    cut, share = warps.parts(outs, depth, pixels, sms_here(), target, cut)

    def place(dy: Any, x: Any, sums: Any) -> tuple[Any, Any, Any]:
        return swapped(pixels_of(dy)), warps.Image(channels_last(x), walk, 0), sums

    shape = math.ceil(pixels / (cut.row * 8 // dtype.width * share)), outs, depth
    launch, sums = _launched(place, x, dy, shape, cut, share=share)
    return Parts(launch, shape, sums=sums)


def _launched(place: Any, x: Any, dy: Any, shape: tuple[int, ...], cut: Any, **how: Any) -> Any:
    """Plan a GEMM that writes sums of this shape, and give them too. place: gives its operands."""
    sums = _sums(shape, x.device)
    return launch_on((dy, x, sums), place, entry.element_type(x), cut, **how), sums
