# SPDX-License-Identifier: Apache-2.0
"""Convolutions as they are launched: checked, cut, and multiplied by the dense GEMM's kernel."""

from __future__ import annotations

from typing import Any

from numba_cute import CuteError

from .. import entry
from ..gemm.epilogue import Epilogue
from ..gemm.launches import OPERANDS, key_of, known, loose, operands_of, remembered, sms_here
from ..gemm.plan import Plan
from .operands import Walk
from .plan import plan
from .tensors import check, filters_of, images_of, operands, result_of, rows_of, steps_of, walk_of

MODES = {"conv1d": 1, "conv2d": 2, "conv3d": 3}
_planned: dict[Any, tuple[Walk, tuple[int, ...], Any]] = {}  # what was checked, and what comes of it


def convolved(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None, out: Any,
    out_dtype: Any, cut: Plan | None,
) -> tuple[Any, Walk]:  # fmt: skip
    """Convolve, and give the walk too. what: the entry. how: stride, padding, dilation, of numbers and tuples. The
    others: as of `conv2d`."""
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
