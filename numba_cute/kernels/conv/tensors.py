# SPDX-License-Identifier: Apache-2.0
"""Read PyTorch's arguments and tensors for the entries of convolutions: walks, places, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numba_cute as cute
from numba_cute import CuteError

from .. import entry
from ..gemm.checks import RESULT_TYPES
from ..gemm.cuts import OF_WARPS, Umma, Warps
from ..gemm.dense import ROW
from ..gemm.epilogue import Epilogue, bias as bias_of
from ..gemm.operands import view
from ..gemm.plan import Plan
from .operands import Filter, Image, Walk, alone, whole

LAYOUT = {3: "", 4: "torch.channels_last", 5: "torch.channels_last_3d"}  # of so many modes, torch's name
MOST_STRIDE = 8  # of TMA


def walk_of(what: str, taps: tuple[int, ...], stride: Any, padding: Any, dilation: Any) -> Walk:
    """Give how a filter goes over images, of PyTorch's arguments. what: the entry, for the message. taps: of the
    filter. stride, padding, dilation: as of `conv2d`. CuteError for what they cannot be."""
    steps, apart = numbers(what, "stride", stride, len(taps), 1), numbers(what, "dilation", dilation, len(taps), 1)
    if padding == "same":
        if max(steps) > 1:
            raise CuteError(f'{what}: padding "same" with stride {stride!r}; give numbers, or stride 1')
        every = tuple(d * (t - 1) for t, d in zip(taps, apart))
        return Walk(taps, steps, tuple(n // 2 for n in every), tuple(n - n // 2 for n in every), apart)
    if isinstance(padding, str) and padding != "valid":
        raise CuteError(f'{what}: padding {padding!r} must be a number, one for each mode, "same" or "valid"')
    around = numbers(what, "padding", 0 if padding == "valid" else padding, len(taps), 0)
    return Walk(taps, steps, around, around, apart)


def check_steps(what: str, walk: Walk) -> None:
    """Refuse steps that TMA cannot take. what: the entry. walk: over what the images become."""
    if max(walk.stride) > MOST_STRIDE:
        raise CuteError(
            f"{what}: stride {walk.stride}; TMA takes steps up to {MOST_STRIDE}: leave out pixels of x first"
        )


def numbers(what: str, name: str, given: Any, count: int, least: int) -> tuple[int, ...]:
    """Give one number for each mode. what, name: the entry and the argument, for the message. given: a number, or one
    for each. count: how many modes there are. least: of a number."""
    several = tuple(given) if isinstance(given, (tuple, list)) else (given,) * count
    several = several * count if len(several) == 1 else several
    if len(several) != count or not all(isinstance(n, int) and n >= least for n in several):
        raise CuteError(f"{what}: {name} {given!r} must be a number of {least} or more, or {count} of them")
    return several


def result_of(device: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Make a result, of channels that are contiguous. device, shape, dtype: its own."""
    images, channels, *extents = shape
    return entry.pytorch().empty((images, *extents, channels), dtype=dtype, device=device).movedim(-1, 1)


def given_or(what: str, x: Any, shape: tuple[int, ...], dtype: Any, out: Any, out_dtype: Any) -> Any:
    """Give what is written to: `out`, if it fits, or a new tensor. what: the entry. x: what it is given, on whose
    device it lies. shape, dtype: of the result. out_dtype: what was asked for, if anything."""
    if out is None:
        return result_of(x.device, shape, dtype)
    allowed = ("int32",) if dtype == entry.pytorch().int32 else RESULT_TYPES
    entry.check(what, "out", out, dtypes=allowed, shape=shape, last=False, like=x)
    if out_dtype is not None and out.dtype != out_dtype:
        raise CuteError(f"{what}: out is {entry.described(out)}, and out_dtype {out_dtype}: leave one out")
    return out


def steps_of(what: str, result: Any, bias: Any, epilogue: Epilogue | None) -> Epilogue | None:
    """Give the bias, and the epilogue after it, and refuse what does not fit. what: the entry. result: what is written
    to. bias, epilogue: as given."""
    if epilogue is not None:
        if not isinstance(epilogue, Epilogue):
            raise CuteError(f"{what}: epilogue is {entry.described(epilogue)}; give an Epilogue, or None")
        if epilogue.spread > 1:
            raise CuteError(
                f"{what}: the epilogue makes one column of two, which is for matmul: join the halves after it"
            )
        epilogue = Epilogue.of(epilogue.form, flat(epilogue.tensors, result.ndim))
    if bias is not None:
        entry.check(what, "bias", bias, dtypes=entry.FLOATS, shape=(result.shape[1],), last=False, like=result)
        epilogue = bias_of(bias) | epilogue if epilogue else bias_of(bias)
    return epilogue


def flat(tensors: list[Any], modes: int) -> list[Any]:
    """Give an epilogue's tensors as the GEMM has them: those like a result, of so many modes, become matrices."""
    return [rows_of(t) if getattr(t, "ndim", 0) == modes else t for t in tensors]


def family_of(what: str, x: Any, cut: Any) -> str:
    """Give the family of GPUs whose kernel convolves images where they lie: `entry.WARPS` too where a Warps is given.
    what: the entry. x: the images. cut: a Plan, an Umma, a Warps, or None. CuteError for what it has not."""
    family = entry.check_target(what, x, entry.WARPGROUPS, entry.TENSOR_MEMORY, entry.WARPS)
    if cut is not None and not isinstance(cut, (Plan, Umma, Warps)):
        raise CuteError(f"{what}: cut is {entry.described(cut)}; give a Plan, an Umma, a Warps, or None")
    of, by = (entry.WARPGROUPS, "wgmma") if isinstance(cut, Plan) else (entry.TENSOR_MEMORY, "tcgen05")
    if isinstance(cut, (Plan, Umma)) and family != of:
        name = getattr(entry.target_at(x), "name", family)
        raise CuteError(f"{what}: cut is {cut}, of {by}, which {name} has not: give a Warps, or None")
    family = entry.WARPS if isinstance(cut, Warps) else family
    if family == entry.WARPS and entry.type_name(x) not in OF_WARPS:
        raise CuteError(
            f"{what}: x is {entry.described(x)}; mma.sync multiplies {', '.join(OF_WARPS)} here, and float8 not yet: "
            "convert it, or use PyTorch's own"
        )
    return family


def check(what: str, name: str, t: Any) -> None:
    """Refuse a result, or its gradient, that the kernels cannot take. what, name: the entry and the argument. t: the
    tensor."""
    if not t.movedim(1, -1).is_contiguous():
        how = f"memory_format={LAYOUT[len(t.shape)]}" if LAYOUT[len(t.shape)] else ""
        give = f"{name}.contiguous({how})" if how else f"{name}.mT.contiguous().mT"
        raise CuteError(f"{what}: {name} is {entry.described(t)}; its channels must be contiguous: give {give}")
    if t.data_ptr() % 16:
        raise CuteError(f"{what}: {name} begins at no multiple of 16 bytes, as vectors must: give {name}.clone()")


def rows_of(t: Any) -> Any:
    """Give a result as the GEMM has it, (pixels, channels). t: of channels that are contiguous, in pixels that are
    equally far apart; others are given as they are."""
    there = t.movedim(1, -1)
    if there.is_contiguous():
        return there.reshape(-1, t.shape[1])
    outer = [(n, s) for n, s in zip(there.shape[:-1], there.stride()[:-1]) if n > 1]
    even = all(s == n * inner for (_, s), (n, inner) in zip(outer, outer[1:]))
    return there.reshape(-1, t.shape[1]) if even and there.stride(-1) == 1 else t


# ---------------------------------------------------------------- channels that are no whole vectors


def vectors(t: Any) -> int:
    """Count the channels that are whole vectors, of as many or more than a tensor (N, C, …) has."""
    return whole(t.shape[1], 16 // t.element_size())


def roomy(t: Any) -> Any:
    """Make a tensor like a result (N, C, …), each of whose pixels has room for whole vectors; give it, if it has."""
    made = vectors(t)
    return t if made == t.shape[1] else result_of(t.device, (t.shape[0], made, *t.shape[2:]), t.dtype)[:, : t.shape[1]]


def with_room(
    result: Any, steps: Epilogue | None, threads: bool
) -> tuple[Any, Epilogue | None, Callable[[Any], Any]]:  # fmt: skip
    """Give a result and an epilogue as the kernels take them, and what makes them around a launch, which takes what
    comes before the result, it, and the epilogue's tensors. threads: whether threads write pixels of any bytes."""
    if vectors(result) == result.shape[1]:
        return result, steps, lambda launch: launch
    copied = [x.along == "both" for x in steps.given] if steps else []

    def of_epilogue(tensors: Any, like: Any) -> list[Any]:
        return [rows_of(roomy(like)).copy_(t) if both else t for t, both in zip(tensors, copied, strict=True)]

    def around(launch: Any) -> Any:
        def run(x: Any, weight: Any, out: Any, *tensors: Any) -> None:
            made = out if threads else roomy(out)
            launch(x, weight, made, *of_epilogue(tensors, out))
            if made is not out:
                out.copy_(made)

        return run

    own = Epilogue.of(steps.form, of_epilogue(steps.tensors, result)) if steps else None
    return result if threads else roomy(result), own, around


def last(t: Any) -> Any:
    """Give a tensor with its channels last, as they lie. t: (N, C, …), or filters."""
    return t.movedim(1, -1)


def placed(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Make a tensor where an array lies, without another array in between, so that launches may be remembered. shape,
    strides: of the tensor."""
    return cute.make_tensor(view(array, 16).iterator, cute.make_layout(shape, stride=strides))


def channels_last(array: Any) -> Any:
    """Make a tensor (N, …, C) of an array (N, C, …)."""
    t = view(array, 16)
    order = [0, *range(2, len(t.shape)), 1]
    return placed(array, tuple(t.shape[i] for i in order), tuple(t.stride[i] for i in order))


def pixels_of(array: Any) -> Any:
    """Make a matrix (pixels, C) of an array (N, C, …) whose channels are last, and its pixels equally far apart."""
    t = view(array, 16)
    images, channels, *extents = t.shape
    outer = zip((images, *extents), (t.stride[0], *t.stride[2:]))
    step = next((s for n, s in reversed(list(outer)) if n > 1), channels)
    return placed(array, (images * math.prod(extents), channels), (step, 1))


def taps_of(array: Any) -> Any:
    """Make a tensor (outputs, taps, C) of dense filters (outputs, C, …)."""
    outs, channels, *taps = view(array, 16).shape
    many = math.prod(taps)
    return placed(array, (outs, many, channels), (many * channels, channels, 1))


def matrix_of(array: Any) -> Any:
    """Make a matrix (outputs, K) of dense filters (outputs, C, …), whose channels are last."""
    outs, many, channels = taps_of(array).shape
    return placed(array, (outs, many * channels), (many * channels, 1))


def operands(
    images: Any, filters: Any, walk: Walk, dtype: Any, family: str = entry.WARPGROUPS
) -> tuple[Any, Any]:  # fmt: skip
    """Give the GEMM's operands: of images (N, C, …) and filters (outputs, C, …). walk: of the filter. dtype: what the
    elements are taken for. family: of GPUs. A filter that takes each pixel once multiplies plain matrices."""
    tile_k = 8 * ROW // dtype.width
    plain = replace(walk, dilation=(1,) * len(walk.taps)) == alone(len(walk.taps))
    there = channels_last(images)
    inside = [math.prod(there.shape[i + 1 :]) for i in range(len(there.shape))]
    if plain and all(n == 1 or s == want for n, s, want in zip(there.shape, there.stride, inside)):
        w = taps_of(filters)
        return pixels_of(images), placed(filters, w.shape[::2], (w.shape[2], 1))
    if family == entry.WARPS:
        from . import warps

        return warps.Image(there, walk), matrix_of(filters)
    return Image(there, walk, tile_k), Filter(taps_of(filters), tile_k)
