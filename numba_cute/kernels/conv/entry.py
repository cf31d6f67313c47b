# SPDX-License-Identifier: Apache-2.0
"""`conv1d`, `conv2d`, `conv3d`: the Hopper GEMM on images, for PyTorch's tensors in channels-last order.

y = conv2d(x, weight, bias, padding=1)
y = conv2d(x, weight, padding=1, epilogue=bias(v) | residual(r) | relu())
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from numba_cute import CuteError

from .. import entry
from ..gemm.dense import ROW
from ..gemm.epilogue import Epilogue, bias as bias_of
from ..gemm.launches import OPERANDS, RESULT_TYPES, key_of, known, loose, operands_of, remembered
from ..gemm.operands import Loose
from ..gemm.plan import Plan
from .operands import Filter, Image, Walk, alone

LAYOUT = {3: "", 4: "torch.channels_last", 5: "torch.channels_last_3d"}  # of so many modes, torch's name
MOST_STRIDE = 8  # of TMA
_planned: dict[Any, tuple[Walk, tuple[int, ...], Any]] = {}  # what was checked, and what comes of it


def conv1d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | None = None,
) -> Any:  # fmt: skip
    """Convolve signals with filters, as torch's conv1d does, on a Hopper GPU.

    x: (N, C, W), weight: (outputs, C, taps), of which channels are contiguous: `x.mT.contiguous().mT`. bias, stride,
    padding, dilation, epilogue, out, out_dtype, cut: as of `conv2d`. Gives (N, outputs, W'), whose channels are
    contiguous too. It is no function that autograd knows. CuteError for what it does not take."""
    return _convolved("conv1d", 1, x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


def conv2d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | None = None,
) -> Any:  # fmt: skip
    """Convolve images with filters, as torch's conv2d does, on a Hopper GPU.

    x: (N, C, H, W), weight: (outputs, C, kh, kw), both in torch.channels_last and of the same type, one of matmul's;
    float32 is rounded to TF32. C and the outputs are multiples of 16 bytes. bias: (outputs,), of any floating type.
    stride (up to 8), padding, dilation: a number, or one for H and one for W; padding also "same", with stride 1, or
    "valid". epilogue: what becomes of the sums and the bias, as of `matmul`; its rows are output pixels, its columns
    are channels, and a `residual` has the shape and order of the result. out: what is written to, in
    torch.channels_last. out_dtype: the result's type if `out` is not given, as of `matmul`. cut: a Plan; by default the
    one that a model finds fastest.

    Gives (N, outputs, H', W') in torch.channels_last. It is no function that autograd knows. CuteError for what it
    does not take.
    """
    return _convolved("conv2d", 2, x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


def conv3d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | None = None,
) -> Any:  # fmt: skip
    """Convolve volumes with filters, as torch's conv3d does, on a Hopper GPU.

    x: (N, C, D, H, W), weight: (outputs, C, kd, kh, kw), in torch.channels_last_3d. bias, stride, padding, dilation,
    epilogue, out, out_dtype, cut: as of `conv2d`. Gives (N, outputs, D', H', W') in torch.channels_last_3d. It is no
    function that autograd knows. CuteError for what it does not take."""
    return _convolved("conv3d", 3, x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


def _convolved(
    what: str, modes: int, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None,
    out: Any, out_dtype: Any, cut: Plan | None,
) -> Any:  # fmt: skip
    how = tuple(tuple(n) if isinstance(n, list) else n for n in how)  # type: ignore[assignment]
    said = (
        what,
        *((getattr(t, "shape", 0), getattr(t, "dtype", t)) for t in (x, weight)),
        how,
        out_dtype,
        epilogue is None,
    )
    planned = _planned.get(said)
    if planned is None:
        planned = _planned[said] = _plan(what, modes, x, weight, how, epilogue, out, out_dtype)
    walk, shape, dtype = planned
    result = _result(what, x, shape, dtype, out, out_dtype)
    steps = _steps(what, result, bias, epilogue)
    stream = entry.pytorch().cuda.current_stream().cuda_stream if x.is_cuda else None
    key = key_of(x), key_of(weight), key_of(result), walk, steps and steps.key(key_of), cut, stream
    launch = known.get(key)
    if launch is None:
        for name, t in (("x", x), ("weight", weight), ("out", result)):
            entry.check(what, name, t, last=False, like=x)
            _check(what, name, t)
        for given in steps.given if steps else ():
            given.check(rows_of(result))
        operand_type, ours = operands_of(x), steps and steps.moved(loose)
        a, b = operands(images_of(x), filters_of(weight), walk, operand_type)
        launch = remembered(key, a, b, loose(rows_of(result)), operand_type, ours, cut, x.nbytes + weight.nbytes)
    launch()
    return result


# ---------------------------------------------------------------- numbers


def walk_of(what: str, taps: tuple[int, ...], stride: Any, padding: Any, dilation: Any) -> Walk:
    """Give how a filter goes over images, of PyTorch's arguments. what: the entry, for the message. taps: of the
    filter. stride, padding, dilation: as of `conv2d`. CuteError for what they cannot be."""
    steps, apart = _numbers(what, "stride", stride, len(taps), 1), _numbers(what, "dilation", dilation, len(taps), 1)
    if max(steps) > MOST_STRIDE:
        raise CuteError(f"{what}: stride {stride!r}; TMA takes steps up to {MOST_STRIDE}: leave out pixels of x first")
    if padding == "same":
        if max(steps) > 1:
            raise CuteError(f'{what}: padding "same" with stride {stride!r}; give numbers, or stride 1')
        every = tuple(d * (t - 1) for t, d in zip(taps, apart))
        return Walk(taps, steps, tuple(n // 2 for n in every), tuple(n - n // 2 for n in every), apart)
    if isinstance(padding, str) and padding != "valid":
        raise CuteError(f'{what}: padding {padding!r} must be a number, one for each mode, "same" or "valid"')
    around = _numbers(what, "padding", 0 if padding == "valid" else padding, len(taps), 0)
    return Walk(taps, steps, around, around, apart)


def _numbers(what: str, name: str, given: Any, count: int, least: int) -> tuple[int, ...]:
    """One number for each mode."""
    several = tuple(given) if isinstance(given, (tuple, list)) else (given,) * count
    several = several * count if len(several) == 1 else several
    if len(several) != count or not all(isinstance(n, int) and n >= least for n in several):
        raise CuteError(f"{what}: {name} {given!r} must be a number of {least} or more, or {count} of them")
    return several


# ---------------------------------------------------------------- tensors


def _plan(
    what: str, modes: int, x: Any, weight: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None, out: Any,
    out_dtype: Any,
) -> tuple[Walk, tuple[int, ...], Any]:  # fmt: skip
    """How the filter goes over the images, and the result's shape and type, if `out` does not say another."""
    torch = entry.pytorch()
    entry.check(what, "x", x, dtypes=OPERANDS, rank=modes + 2, last=False)
    shape = (None, x.shape[1], *(None,) * modes)
    entry.check(what, "weight", weight, dtypes=(entry.type_name(x),), shape=shape, last=False)
    walk = walk_of(what, tuple(weight.shape[2:]), *how)
    extents = walk.out(tuple(x.shape[2:]))
    if min(extents) < 1 or 0 in (*x.shape, *weight.shape):
        raise CuteError(
            f"{what}: x is {entry.described(x)} and weight {entry.described(weight)}; with {walk} that leaves an "
            f"output of {extents}, and nothing may be empty"
        )
    if epilogue is not None and epilogue.spread > 1:
        raise CuteError(f"{what}: the epilogue makes one column of two, which is for matmul: join the halves after it")
    usual = {torch.int8: torch.float32 if epilogue else torch.int32}
    usual |= {torch.float8_e4m3fn: torch.bfloat16, torch.float8_e5m2: torch.bfloat16}
    return walk, (x.shape[0], weight.shape[0], *extents), out_dtype or usual.get(x.dtype, x.dtype)


def _result(what: str, x: Any, shape: tuple[int, ...], dtype: Any, out: Any, out_dtype: Any) -> Any:
    """What is written to: `out`, if it fits, or a new tensor."""
    torch = entry.pytorch()
    if out is None:
        images, channels, *extents = shape
        return torch.empty((images, *extents, channels), dtype=dtype, device=x.device).movedim(-1, 1)
    allowed = ("int32",) if dtype == torch.int32 else RESULT_TYPES
    entry.check(what, "out", out, dtypes=allowed, shape=shape, last=False, like=x)
    if out_dtype is not None and out.dtype != out_dtype:
        raise CuteError(f"{what}: out is {entry.described(out)}, and out_dtype {out_dtype}: leave one out")
    return out


def _steps(what: str, result: Any, bias: Any, epilogue: Epilogue | None) -> Epilogue | None:
    """The bias, and the epilogue after it, whose tensors like the result become matrices like the GEMM's."""
    if epilogue is not None:
        epilogue = epilogue.moved(lambda t: rows_of(t) if len(t.shape) == len(result.shape) else t)
    if bias is None:
        return epilogue
    entry.check(what, "bias", bias, dtypes=entry.FLOATS, shape=(result.shape[1],), last=False, like=result)
    return bias_of(bias) | epilogue if epilogue else bias_of(bias)


def _check(what: str, name: str, t: Any) -> None:
    """What TMA wants of a tensor."""
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
