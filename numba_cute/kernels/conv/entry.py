# SPDX-License-Identifier: Apache-2.0
"""`conv1d`, `conv2d`, `conv3d`: the Hopper GEMM on images, for PyTorch's tensors in channels-last order.

y = conv2d(x, weight, bias, padding=1)
y = conv2d(x, weight, padding=1, epilogue=bias(v) | residual(r) | relu())
"""

from __future__ import annotations

from typing import Any

from numba_cute import CuteError

from .. import entry
from ..gemm.epilogue import Epilogue
from ..gemm.launches import OPERANDS, key_of, known, loose, operands_of, remembered, sms_here
from ..gemm.plan import Plan
from . import gradients
from .operands import Walk
from .plan import plan
from .tensors import check, filters_of, images_of, operands, result_of, rows_of, steps_of, walk_of

MODES = {"conv1d": 1, "conv2d": 2, "conv3d": 3}
_planned: dict[Any, tuple[Walk, tuple[int, ...], Any]] = {}  # what was checked, and what comes of it


def conv1d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | None = None,
) -> Any:  # fmt: skip
    """Convolve signals with filters, as torch's conv1d does, on a Hopper GPU.

    x: (N, C, W), weight: (outputs, C, taps), of which channels are contiguous: `x.mT.contiguous().mT`. bias, stride,
    padding, dilation, epilogue, out, out_dtype, cut: as of `conv2d`. Gives (N, outputs, W'), whose channels are
    contiguous too. CuteError for what it does not take."""
    return known_to_autograd("conv1d", x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


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

    Gives (N, outputs, H', W') in torch.channels_last. Autograd knows it, of bfloat16 and float16, without epilogue, out
    and out_dtype. CuteError for what it does not take.
    """
    return known_to_autograd("conv2d", x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


def conv3d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | None = None,
) -> Any:  # fmt: skip
    """Convolve volumes with filters, as torch's conv3d does, on a Hopper GPU.

    x: (N, C, D, H, W), weight: (outputs, C, kd, kh, kw), in torch.channels_last_3d. bias, stride, padding, dilation,
    epilogue, out, out_dtype, cut: as of `conv2d`. Gives (N, outputs, D', H', W') in torch.channels_last_3d.
    CuteError for what it does not take."""
    return known_to_autograd("conv3d", x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


def known_to_autograd(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None, out: Any,
    out_dtype: Any, cut: Plan | None,
) -> Any:  # fmt: skip
    """Convolve, and let autograd know if it asks. what: the entry. how: stride, padding, dilation. The others: as of
    `conv2d`."""
    how = tuple(tuple(n) if isinstance(n, list) else n for n in how)  # type: ignore[assignment]
    if gradients.asked(x, weight, bias):
        gradients.check_options(what, x, epilogue=epilogue, out=out, out_dtype=out_dtype)
        return gradients.convolution()[0].apply(x, weight, bias, what, how, cut)
    return convolved(what, x, weight, bias, how, epilogue, out, out_dtype, cut)[0]


def convolved(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None, out: Any,
    out_dtype: Any, cut: Plan | None,
) -> tuple[Any, Walk]:  # fmt: skip
    """Convolve, as `known_to_autograd` does, and give the walk too."""
    kinds = [(getattr(t, "shape", 0), getattr(t, "dtype", t)) for t in (x, weight)]
    said = (what, *kinds, how, out_dtype, epilogue is None)
    planned = _planned.get(said)
    if planned is None:
        planned = _planned[said] = _plan(what, x, weight, how, epilogue, out, out_dtype)
    walk, shape, dtype = planned
    result = result_of(what, x, shape, dtype, out, out_dtype)
    steps = steps_of(what, result, bias, epilogue)
    stream = entry.pytorch().cuda.current_stream().cuda_stream if x.is_cuda else None
    key = key_of(x), key_of(weight), key_of(result), walk, steps and steps.key(key_of), cut, stream
    launch = known.get(key)
    if launch is None:
        for name, t in (("x", x), ("weight", weight), ("out", result)):
            entry.check(what, name, t, last=False, like=x)
            check(what, name, t)
        for given in steps.given if steps else ():
            given.check(rows_of(result))
        operand_type, ours = operands_of(x), steps and steps.moved(loose)
        a, b = operands(images_of(x), filters_of(weight), walk, operand_type)
        c, read = loose(rows_of(result)), x.nbytes + weight.nbytes
        cut = cut or plan(c, a.shape[1], operand_type, sms_here(), ours, c.dtype.width, read)
        launch = remembered(key, a, b, c, operand_type, ours, cut)
    launch()
    return result, walk


def _plan(
    what: str, x: Any, weight: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None, out: Any, out_dtype: Any
) -> tuple[Walk, tuple[int, ...], Any]:
    """How the filter goes over the images, and the result's shape and type, if `out` does not say another."""
    torch, modes = entry.pytorch(), MODES[what]
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
