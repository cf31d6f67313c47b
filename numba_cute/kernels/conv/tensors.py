# SPDX-License-Identifier: Apache-2.0
"""What the entries of convolutions make of PyTorch's arguments and tensors: walks, places, and what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from numba_cute import CuteError

from .. import entry
from ..gemm.dense import ROW
from ..gemm.epilogue import Epilogue, bias as bias_of
from ..gemm.launches import RESULT_TYPES
from ..gemm.operands import Loose
from .operands import Filter, Image, Walk, alone

LAYOUT = {3: "", 4: "torch.channels_last", 5: "torch.channels_last_3d"}  # of so many modes, torch's name
MOST_STRIDE = 8  # of TMA


def walk_of(what: str, taps: tuple[int, ...], stride: Any, padding: Any, dilation: Any) -> Walk:
    """Give how a filter goes over images, of PyTorch's arguments. what: the entry, for the message. taps: of the
    filter. stride, padding, dilation: as of `conv2d`. CuteError for what they cannot be."""
    steps, apart = numbers(what, "stride", stride, len(taps), 1), numbers(what, "dilation", dilation, len(taps), 1)
    if max(steps) > MOST_STRIDE:
        raise CuteError(f"{what}: stride {stride!r}; TMA takes steps up to {MOST_STRIDE}: leave out pixels of x first")
    if padding == "same":
        if max(steps) > 1:
            raise CuteError(f'{what}: padding "same" with stride {stride!r}; give numbers, or stride 1')
        every = tuple(d * (t - 1) for t, d in zip(taps, apart))
        return Walk(taps, steps, tuple(n // 2 for n in every), tuple(n - n // 2 for n in every), apart)
    if isinstance(padding, str) and padding != "valid":
        raise CuteError(f'{what}: padding {padding!r} must be a number, one for each mode, "same" or "valid"')
    around = numbers(what, "padding", 0 if padding == "valid" else padding, len(taps), 0)
    return Walk(taps, steps, around, around, apart)


def numbers(what: str, name: str, given: Any, count: int, least: int) -> tuple[int, ...]:
    """Give one number for each mode. what, name: the entry and the argument, for the message. given: a number, or one
    for each. count: how many modes there are. least: of a number."""
    several = tuple(given) if isinstance(given, (tuple, list)) else (given,) * count
    several = several * count if len(several) == 1 else several
    if len(several) != count or not all(isinstance(n, int) and n >= least for n in several):
        raise CuteError(f"{what}: {name} {given!r} must be a number of {least} or more, or {count} of them")
    return several


def result_of(what: str, x: Any, shape: tuple[int, ...], dtype: Any, out: Any, out_dtype: Any) -> Any:
    """Give what is written to: `out`, if it fits, or a new tensor. what: the entry. x: what it is given, on whose
    device it lies. shape, dtype: of the result. out_dtype: what was asked for, if anything."""
    torch = entry.pytorch()
    if out is None:
        images, channels, *extents = shape
        return torch.empty((images, *extents, channels), dtype=dtype, device=x.device).movedim(-1, 1)
    allowed = ("int32",) if dtype == torch.int32 else RESULT_TYPES
    entry.check(what, "out", out, dtypes=allowed, shape=shape, last=False, like=x)
    if out_dtype is not None and out.dtype != out_dtype:
        raise CuteError(f"{what}: out is {entry.described(out)}, and out_dtype {out_dtype}: leave one out")
    return out


def steps_of(what: str, result: Any, bias: Any, epilogue: Epilogue | None) -> Epilogue | None:
    """Give the bias, and the epilogue after it, whose tensors like the result become matrices like the GEMM's. what:
    the entry. result: what is written to. bias, epilogue: as given."""
    if epilogue is not None:
        epilogue = epilogue.moved(lambda t: rows_of(t) if len(t.shape) == len(result.shape) else t)
    if bias is None:
        return epilogue
    entry.check(what, "bias", bias, dtypes=entry.FLOATS, shape=(result.shape[1],), last=False, like=result)
    return bias_of(bias) | epilogue if epilogue else bias_of(bias)


def check(what: str, name: str, t: Any) -> None:
    """Refuse a tensor that TMA cannot take. what, name: the entry and the argument. t: the tensor."""
    if not t.is_cuda:
        raise CuteError(f"{what}: {name} is {entry.described(t)}; give tensors on the GPU: .cuda()")
    unit, last = 16 // t.element_size(), t.movedim(1, -1)
    if t.shape[1] % unit:
        raise CuteError(
            f"{what}: {name} is {entry.described(t)}; its channels must be multiples of {unit}, which are 16 bytes: "
            "pad them with zeros, in x and weight alike"
        )
    dense = name == "x" or last.is_contiguous()
    steps = [s for n, s in zip(last.shape, last.stride()) if n > 1]
    if not dense or (t.shape[1] > 1 and last.stride(-1) != 1) or any(s % unit for s in steps[:-1]):
        how = f"memory_format={LAYOUT[len(t.shape)]}" if LAYOUT[len(t.shape)] else ""
        give = f"{name}.contiguous({how})" if how else f"{name}.mT.contiguous().mT"
        raise CuteError(f"{what}: {name} is {entry.described(t)}; its channels must be contiguous: give {give}")
    if t.data_ptr() % 16:
        raise CuteError(f"{what}: {name} begins at no multiple of 16 bytes, which TMA needs: give {name}.clone()")


def rows_of(t: Any) -> Any:
    """Give a result as the GEMM has it, (pixels, channels). t: of channels that are contiguous; others are given as
    they are."""
    last = t.movedim(1, -1)
    return last.reshape(-1, t.shape[1]) if last.is_contiguous() else t


def images_of(t: Any) -> Loose:
    """Say where images lie: (N, D, H, W, C). t: of torch's."""
    last = t.movedim(1, -1)
    steps, inside = [], 1
    for n, s in zip(reversed(last.shape), reversed(last.stride())):
        steps.append(s if n > 1 else inside)
        inside = steps[-1] * n
    return Loose(t.data_ptr(), tuple(last.shape), tuple(reversed(steps)), entry.element_type(t))


def filters_of(t: Any) -> Loose:
    """Say where filters lie: (outputs, taps, C), dense. t: of torch's."""
    outs, channels, *taps = t.shape
    many = math.prod(taps)
    return Loose(t.data_ptr(), (outs, many, channels), (many * channels, channels, 1), entry.element_type(t))


def operands(images: Any, filters: Any, walk: Walk, dtype: Any) -> tuple[Any, Any]:
    """Give the GEMM's operands: of images (N, D, H, W, C) and filters (outputs, taps, C). walk: of the filter. dtype:
    what the elements are taken for. A filter that takes each pixel once multiplies plain matrices."""
    tile_k = 8 * ROW // dtype.width
    plain = replace(walk, dilation=(1,) * len(walk.taps)) == alone(len(walk.taps))
    if plain and isinstance(images, Loose):
        *around, channels = images.shape
        step, pixels = images.strides[-2], math.prod(around)
        dense = all(s == step * math.prod(around[i + 1 :]) for i, s in enumerate(images.strides[:-1]))
        if dense:
            flat = Loose(images.address, (pixels, channels), (step, 1), images.dtype)
            return flat, Loose(filters.address, filters.shape[::2], filters.strides[::2], filters.dtype)
    return Image(images, walk, tile_k), Filter(filters, tile_k)
