# SPDX-License-Identifier: Apache-2.0
"""Conversion of a whole tensor to another element type, and assertions of what a kernel computes."""

from __future__ import annotations

import math
from typing import Any

from ..arch import block_idx, thread_idx
from ..compiler import kernel
from ..dtypes import Boolean
from ..isa.rows.control import trap
from ..layout import Layout, flatten_to_tuple, make_layout
from ..seam import CuteError, current, current_or, traced
from ..seam.ground.naming import described
from ..seam.guards.messages import FalseAssertion
from ..tensor.pointer import Pointer
from ..tensor.printing import printf
from ..tensor.tensor import Tensor, make_tensor

__all__ = ["assert_", "convert"]

THREADS, EACH = 128, 8  # a thread's elements follow one another, so that a byte of narrow ones is one thread's


@kernel
def elements(src: Any, dst: Any, count: Any) -> None:
    """Convert elements, in the order of their linear coordinates."""
    first = (block_idx()[0] * THREADS + thread_idx()[0]) * EACH
    for j in range(EACH):
        if first + j < count:
            dst[first + j] = dst.element_type(src[first + j])


def convert(src: Tensor, dst: Tensor, *, stream: Any = 0) -> None:
    """Convert each element of a tensor to the element type of another of the same shape, on the GPU.

    src: what is converted. dst: where to, in any layout. stream: as for `cute.launch`. CuteError: no tensors, shapes
    that differ, a dst whose elements narrower than a byte do not fill whole bytes along one mode.

    >>> x, y = np.array([1.5, 2.5], np.float32), np.zeros(2, np.float16)
    >>> with cute.simulation():
    ...     cute.testing.convert(cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(y))
    >>> y
    array([1.5, 2.5], dtype=float16)
    """
    args = arguments(src, dst)
    elements(*args).launch(grid=blocks(args[2]), block=THREADS, stream=stream)


def blocks(count: int) -> int:
    """Return how many CTAs convert so many elements."""
    return max(1, math.ceil(count / (THREADS * EACH)))


def arguments(src: Any, dst: Any) -> tuple[Tensor, Tensor, int]:
    """Return the kernel's arguments: the tensors, with the mode first along which dst is contiguous."""
    for name, t in (("src", src), ("dst", dst)):
        if not isinstance(t, Tensor):
            raise CuteError(f"convert: {name} {t!r} is not a tensor; make one with cute.runtime.from_dlpack(array)")
        if not isinstance(t.iterator, Pointer):
            raise CuteError(f"convert: {name} {t!r} must be a tensor in memory; make one with cute.runtime.from_dlpack")
    shapes = [tuple(map(int, flatten_to_tuple(t.shape))) for t in (src, dst)]
    if shapes[0] != shapes[1]:
        raise CuteError(f"convert: src has shape {src.shape} and dst {dst.shape}: they must be the same")
    if not isinstance(src.layout, Layout) or not isinstance(dst.layout, Layout):
        if dst.element_type.width < 8:
            raise CuteError(
                f"convert: dst has {dst.layout}: elements of {dst.element_type.width} bits need a plain one"
            )
        return src, dst, math.prod(shapes[1])
    strides = tuple(map(int, flatten_to_tuple(dst.stride)))
    order = sorted(range(len(strides)), key=lambda i: (abs(strides[i]), i))
    _check_whole_bytes(dst, [shapes[1][i] for i in order], [strides[i] for i in order])
    return _ordered(src, order), _ordered(dst, order), math.prod(shapes[1])


def _ordered(t: Tensor, order: list[int]) -> Tensor:
    shape, stride = flatten_to_tuple(t.shape), flatten_to_tuple(t.stride)
    return make_tensor(t.iterator, make_layout(tuple(shape[i] for i in order), stride=tuple(stride[i] for i in order)))


def _check_whole_bytes(dst: Tensor, shape: list[int], stride: list[int]) -> None:
    width = dst.element_type.width
    if width >= 8:
        return
    if stride[0] != 1 or any(n * width % 8 for n in (shape[0], *stride[1:])):
        raise CuteError(
            f"convert: dst has {dst.layout}, whose elements of {width} bits do not fill whole bytes along one mode: "
            "threads would write parts of the same byte"
        )


@traced
def assert_(cond: Any, msg: str = "") -> None:
    """Assert what is known only when a kernel runs: where it is false, the kernel prints `msg` and ends with an error
    that the next synchronisation tells; in the simulator that is a CuteError at the kernel's line. What is known
    before is judged at once: AssertionError, or CuteError while a kernel is compiled.

    cond: the condition, a number or a comparison. msg: what is said. Any thread. PTX trap, sm_70.

    >>> cute.simulate(lambda: print(cute.testing.assert_(1 < 2, "never")))[1, 1]()
    None
    """
    if isinstance(cond, (bool, int)) or current_or(None) is None:
        if getattr(cond, "shape", ()) != ():
            raise CuteError(f"assert_: cond {described(cond)}: give one condition, as `x.all()` of an array")
        if not cond:
            raise FalseAssertion(msg or "the assertion is false")
        return

    def fail() -> None:
        printf("assertion failed: " + (msg or "no message").replace("{", "{{").replace("}", "}}"))
        trap()

    current().when(~Boolean(cond), fail)
