# SPDX-License-Identifier: Apache-2.0
"""Cases of the convolutions."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from numba_cute import kernels

from .draw import Draw, close, gradients

FORMATS = {1: None, 2: torch.channels_last, 3: torch.channels_last_3d}


def last(x: torch.Tensor) -> torch.Tensor:
    """Channels last, as they lie."""
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def quiet(function: Any) -> Any:
    """Give a function of torch's without its warnings: of "same" padding it says that it copies."""

    def call(*args: Any, **named: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **named)

    return call


def _convolution(d: Draw, modes: int, transposed: bool) -> None:
    kind = d.option(torch.bfloat16, torch.float16)
    channels, outs = d.of(8, 8, 16, 24, 40, 72, 1, 3, 3, 12), d.of(8, 8, 16, 24, 40, 72, 1, 3, 12)
    extents = tuple(d.of(1, 2, 3, 5, 8, 9) for _ in range(modes))
    taps = tuple(d.option(1, 1, 2, 3, 3, 4) for _ in range(modes))
    each = lambda *choices: d.of(*choices) if d.one_in(2) else tuple(d.of(*choices) for _ in range(modes))  # noqa: E731
    stride, dilation, padding = each(1, 1, 2, 3), each(1, 1, 2), each(0, 1, 2)
    named = {"stride": stride, "padding": padding, "dilation": dilation}
    if transposed:
        named["output_padding"] = d.of(0, 0, 1)
    elif d.one_in(6):
        named |= {"padding": d.of("same", "valid"), "stride": 1}
    for name, value in named.items():
        d.note(name, value)
    ordered, of_filters = (d.note(what, d.of(True, True, False)) for what in ("channels last", "filters' too"))
    x = d.elements((d.of(1, 1, 2, 3), channels, *extents), kind)
    x = last(x) if ordered else x
    if d.one_in(4):  # images beside others
        x = (last if ordered else torch.clone)(torch.cat((x, x)))[::2]
    shape = (channels, outs, *taps) if transposed else (outs, channels, *taps)
    weight = d.elements(shape, torch.float32, 0.3).to(kind)
    weight = last(weight) if of_filters else weight
    d.note("x", x), d.note("weight", weight)
    bias = torch.randn(outs, generator=d.torch).to(d.of(kind, torch.float32)) if d.one_in(2) else None
    name = f"conv{'_transpose' if transposed else ''}{modes}d"
    ours, exact = getattr(kernels, name), quiet(getattr(torch.nn.functional, name))
    tensors = [x, weight, *([] if bias is None else [bias])]
    try:
        exact(*[t.double() for t in tensors], **named)
    except RuntimeError:  # torch does not take it
        return
    if d.note("grad", d.option_in(2)) and all(bool(torch.isfinite(t).all()) for t in tensors):
        return gradients(
            d, lambda *t: ours(*t, **named), lambda *t: exact(*t, **named), tensors, add=2.0**-8
        )  # fmt: skip
    made, want = ours(*tensors, **named), exact(*[t.double() for t in tensors], **named)
    if bool(torch.isfinite(want).all()):
        size = exact(x.double().abs(), weight.double().abs(), **named).max() + 1.0
        close("result", made, want, size=float(size), add=2.0**-18)


CASES = {
    f"conv{'_transpose' if t else ''}{modes}d": lambda d, modes=modes, t=t: _convolution(d, modes, t)
    for modes in (1, 2, 3) for t in (False, True)
}  # fmt: skip
