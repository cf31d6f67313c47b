# SPDX-License-Identifier: Apache-2.0
"""Convolutions as they are launched: checked, cut, and multiplied by the dense GEMM's kernel."""

from __future__ import annotations

import math
from typing import Any

from numba_cute import CuteError

from .. import entry
from ..gemm.checks import OPERANDS
from ..gemm.cuts import Umma, Warps
from ..gemm.epilogue import Epilogue, known_of
from ..gemm.launches import launch_on, operands_of
from ..gemm.plan import Plan
from ..memo import remembered
from .fit import Fit, fit
from .operands import Walk
from .plan import chosen
from .tensors import (
    check,
    check_steps,
    family_of,
    flat,
    given_or,
    operands,
    pixels_of,
    result_of,
    rows_of,
    steps_of,
    walk_of,
    with_room,
)

MODES = {"conv1d": 1, "conv2d": 2, "conv3d": 3}
_known: dict[Any, tuple[Any, Any, Walk]] = {}


def convolved(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None, out: Any,
    out_dtype: Any, cut: Plan | Umma | Warps | None,
) -> tuple[Any, Walk]:  # fmt: skip
    """Convolve, and give the walk too. what: the entry. how: stride, padding, dilation, of numbers and tuples. The
    others: as of `conv2d`."""
    given = epilogue.tensors if isinstance(epilogue, Epilogue) else []
    fresh: list[Any] = []
    of = what, x, weight, bias, how, epilogue, out, out_dtype, cut, fresh
    static = (what, how, known_of(epilogue), out_dtype, cut)
    launch, empty, walk = remembered(_known, [x, weight, bias, out, *given], static, _prepared, of)
    out = out if out is not None else fresh[0] if fresh else empty()
    tensors = [x, weight, out, *([] if bias is None else [bias]), *flat(given, out.ndim)]
    launch(*[t.detach() if t.requires_grad else t for t in tensors])
    return out, walk


def _prepared(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None, out: Any,
    out_dtype: Any, cut: Plan | Umma | Warps | None, fresh: list[Any],
) -> tuple[Any, Any, Walk]:  # fmt: skip
    """Check what is given, and give what launches all that is like it, what makes its result, and the walk. fresh: gets
    the result that was planned with, for this call: its launch is packed already."""
    walk, shape, dtype = _plan(what, x, weight, how, epilogue, out_dtype)
    device = x.device
    result = given_or(what, x, shape, dtype, out, out_dtype)
    fresh.append(result)
    steps = steps_of(what, result, bias, epilogue)
    for name, t in (("x", x), ("weight", weight), ("out", result)):
        entry.check(what, name, t, last=False, like=x)
        entry.check_place(what, name, t)
    check(what, "out", result)
    for given in steps.given if steps else ():
        given.check(rows_of(result), rows_of(result).shape)
    family, fitted = family_of(what, x, cut), fit(x, tuple(weight.shape[2:]), walk)
    if family != entry.WARPS:
        check_steps(what, fitted.walk)
    threads = family == entry.WARPGROUPS and not getattr(cut, "turned", False)
    own, steps, around = with_room(result.detach(), steps, threads)
    for given in steps.given if steps else ():
        given.check_as_it_lies(rows_of(own))
    launch = around(_launch(family, fitted, x.detach(), weight.detach(), own, steps, cut))
    return launch, lambda: result_of(device, shape, dtype), walk


def _launch(
    family: str, fitted: Fit, x: Any, weight: Any, result: Any, steps: Epilogue | None, cut: Plan | Umma | Warps | None
) -> Any:
    """Prepare the launch on images and filters as they are given."""
    multiplied, c_dtype, target = operands_of(x), entry.element_type(result), entry.target_at(x)

    def place(x: Any, weight: Any, out: Any) -> tuple[Any, Any, Any]:
        return (*operands(x, weight, fitted.walk, multiplied, family), pixels_of(out))

    images, filters = fitted.images(x), fitted.filters(weight)
    a, _, c = place(images, filters, result.detach())
    read = min(x.nbytes, math.prod(a.shape) * x.element_size()) + weight.nbytes
    cut = cut or chosen(family, c, a.shape[1], multiplied, target, steps, c_dtype.width, read)
    launch = launch_on((images, filters, result), place, multiplied, cut, steps)
    if images is x and filters is weight:
        return launch
    return lambda x, weight, *others: launch(fitted.images(x), fitted.filters(weight), *others)


def _plan(
    what: str, x: Any, weight: Any, how: tuple[Any, Any, Any], epilogue: Epilogue | None, out_dtype: Any
) -> tuple[Walk, tuple[int, ...], Any]:
    """Return how the filter goes over the images, and the result's shape and type, if `out` does not say another."""
    torch, modes = entry.pytorch(), MODES[what]
    entry.check(what, "x", x, dtypes=OPERANDS, rank=modes + 2, last=False)
    shape = (None, x.shape[1], *(None,) * modes)
    entry.check(what, "weight", weight, dtypes=(entry.type_name(x),), shape=shape, last=False)
    walk = walk_of(what, tuple(weight.shape[2:]), *how)
    extents = walk.out(tuple(x.shape[2:]))
    if min(extents) < 1 or 0 in (*x.shape, *weight.shape):
        raise CuteError(
            f"{what}: x is {entry.described(x)} and weight {entry.described(weight)}; with {walk} that leaves an "
            f"output of {extents}, and nothing may be empty: give larger images, or more padding"
        )
    usual = {torch.int8: torch.float32 if epilogue else torch.int32}
    usual |= {torch.float8_e4m3fn: torch.bfloat16, torch.float8_e5m2: torch.bfloat16}
    return walk, (x.shape[0], weight.shape[0], *extents), out_dtype or usual.get(x.dtype, x.dtype)
