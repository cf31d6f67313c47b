# SPDX-License-Identifier: Apache-2.0
"""Layouts with run-time leaves, for `Tensor.mark_layout_dynamic` and `mark_compact_shape_dynamic`."""

from __future__ import annotations

from typing import Any

from ..dtypes import Int32, Int64, Scalar
from ..layout import Layout, get_divisibility
from ..seam import CuteError


def _flat(lay: Any, what: str) -> tuple[list[Any], list[Any]]:
    if not isinstance(lay, Layout) or not isinstance(lay.shape, tuple) or any(isinstance(s, tuple) for s in lay.shape):
        raise CuteError(f"{what}: layout {lay} must be flat, as from_dlpack makes it")
    return list(lay.shape), list(lay.stride)


def _dynamic(x: Any, dtype: Any) -> Any:
    return x if isinstance(x, Scalar) else dtype(x)


def leading_of(shape: list[Any], stride: list[Any]) -> int:
    """Find the one mode of stride 1; an error where several have it and more than one element."""
    ones = [i for i, d in enumerate(stride) if type(d) is int and d == 1]
    if len(ones) > 1:
        ones = [i for i in ones if shape[i] != 1] or ones[-1:]
    if len(ones) != 1:
        raise CuteError(
            f"mark_layout_dynamic: layout {tuple(shape)}:{tuple(stride)} has {len(ones)} modes of stride 1; "
            "say which one is to stay static with leading_dim="
        )
    return ones[0]


def layout_dynamic(lay: Any, leading_dim: int | None) -> Layout:
    """Make all extents and strides run-time values, but for the stride 1 of mode `leading_dim`.

    Of another mode of one element, whose stride DLPack says to be 1 whatever it is, it becomes what a compact tensor
    has: promises about strides hold of it as of the others.
    """
    shape, stride = _flat(lay, "mark_layout_dynamic")
    lead = leading_of(shape, stride) if leading_dim is None else leading_dim
    if not -len(shape) <= lead < len(shape):
        raise CuteError(
            f"mark_layout_dynamic: leading_dim {leading_dim} is not a mode of {lay}, which has {len(shape)}"
        )
    lead %= len(shape)
    if stride[lead] != 1:
        raise CuteError(f"mark_layout_dynamic: leading_dim {leading_dim} has stride {stride[lead]} in {lay}, not 1")
    whole = max((int(s) * abs(int(d)) for s, d in zip(shape, stride)), default=1)
    alone = [i != lead and int(s) == 1 and type(d) is int and d == 1 for i, (s, d) in enumerate(zip(shape, stride))]
    stride = [whole if free else d for free, d in zip(alone, stride)]
    shape = [_dynamic(s, Int32) for s in shape]
    stride = [d if i == lead or (type(d) is int and d == 0) else _dynamic(d, Int64) for i, d in enumerate(stride)]
    return Layout(tuple(shape), tuple(stride))


def compact_shape_dynamic(lay: Any, mode: int, stride_order: Any, divisibility: int) -> Layout:
    """Make the extent of `mode` a run-time value, and with it the strides of the modes that lie outside of it."""
    what = "mark_compact_shape_dynamic"
    shape, stride = _flat(lay, what)
    if type(mode) is not int or not 0 <= mode < len(shape):
        raise CuteError(f"{what}: mode {mode!r} is not a mode of {lay}, which has {len(shape)}")
    if type(divisibility) is not int or divisibility < 1 or int(shape[mode]) % divisibility:
        raise CuteError(
            f"{what}: extent {shape[mode]} of mode {mode} is not a multiple of divisibility {divisibility!r}"
        )
    order = _outermost_first(shape, stride, stride_order, what)
    shape[mode] = _dynamic(shape[mode], Int32).assumed(divisibility)
    expected, known = 1, 1  # the compact stride, and what the extents below it promise of it
    for m in reversed(order):
        if int(stride[m]) != expected and int(shape[m]) != 1:
            raise CuteError(
                f"{what}: layout {lay} is not compact in stride_order {tuple(order)} (outermost mode first)"
            )
        if order.index(m) < order.index(mode):
            stride[m] = Int64(int(stride[m])).assumed(known if int(stride[m]) == expected else 1)
        expected, known = expected * int(shape[m]), known * (get_divisibility(shape[m]) or 1)
    return Layout(tuple(shape), tuple(stride))


def _outermost_first(shape: list[Any], stride: list[Any], given: Any, what: str) -> list[int]:
    modes = list(range(len(shape)))
    if given is None:
        return sorted(modes, key=lambda m: (int(stride[m]), int(shape[m])), reverse=True)
    if sorted(given) != modes:
        raise CuteError(f"{what}: stride_order {given!r} must list each of the modes {modes} once, outermost first")
    return list(given)
