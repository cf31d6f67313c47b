# SPDX-License-Identifier: Apache-2.0
"""What `compat` compiles with tensors, and calls with arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.compat.as_compiled import CompiledFor, as_compiled
from numba_cute.runtime import from_dlpack, make_fake_tensor


def fake(shape, stride, align=None):
    return make_fake_tensor(cute.Float32, shape, stride, assumed_align=align)


def aligned(shape, at=0):
    """Zeros that begin at a multiple of 64 bytes, and `at` bytes on."""
    raw = np.zeros(4 * int(np.prod(shape)) + 128, np.uint8)
    start = -raw.ctypes.data % 64 + at
    return raw[start : start + 4 * int(np.prod(shape))].view(np.float32).reshape(shape)


def test_arrays_have_what_was_promised_of_the_tensors():
    first = fake((cute.sym_int(divisibility=4), 8), (cute.sym_int(divisibility=8), 1), 16)
    made = as_compiled(aligned((12, 8)), first, "x")
    assert made.iterator.alignment == 16
    assert (int(made.shape[0]), made.shape[1]) == (12, 8) and (int(made.stride[0]), made.stride[1]) == (8, 1)
    assert (made.shape[0].divisor, made.stride[0].divisor) == (4, 8)


@pytest.mark.parametrize("first, array, said", [
    (fake((4, 8), (8, 1)), aligned((4, 4)), "x: .* was compiled for"),
    (fake((cute.sym_int(divisibility=4), 8), (8, 1)), aligned((6, 8)), "x: .* 6 is not a multiple of 4"),
    (fake((4, 8), (8, 1)), aligned((4, 16))[:, ::2], "x: .* was compiled for"),
    (fake((4, 8), (8, 1), 64), aligned((4, 8), 4), "not a multiple of assumed_align = 64"),
    (fake((4, 8), (8, 1)), aligned((32,)), "x: .* was compiled for"),
    (fake((4, 8), (8, 1)), np.zeros((4, 8), np.float64), "assumed_align 4 must be a power of two of at least 8"),
])  # fmt: skip
def test_what_is_otherwise_is_refused(first, array, said):
    with pytest.raises(cute.CuteError, match=said):
        as_compiled(array, first, "x")


def test_a_function_that_was_compiled_with_tensors_takes_arrays():
    @cute.jit
    def host(x, n: cute.Constexpr, y):
        assert isinstance(x, type(y)) and x.iterator.alignment == 16
        for i in range(n):
            y[i] = x[i] + 1

    made = CompiledFor(host, (fake((8,), (1,), 16), 4, fake((8,), (1,))), ())
    x, y = aligned((8,)), np.zeros(8, np.float32)
    made(x, from_dlpack(y))
    assert y.tolist() == [1] * 4 + [0] * 4
    made(x, y=y + 0)


class Options(NamedTuple):
    x: Any = None
    scale: Any = None
    at: Any = None
    flag: cute.Constexpr[bool] = False


def test_items_of_tuples_are_as_compiled_and_constants_are_left_out():
    x = aligned((8,))
    first = Options(fake((8,), (1,), 16), cute.Float32(0.0), cute.make_ptr(cute.Int32, 0, cute.AddressSpace.gmem), True)
    made, (y, n) = as_compiled((Options(x, 2.0, 64, None), [x, 3]), (first, (fake((8,), (1,)), cute.Int32(1))), "args")
    assert (made.x.iterator.alignment, made.scale.dtype, made.flag) == (16, cute.Float32, True)
    assert (made.at.dtype, int(made.at.address.value), made.at.space) == (cute.Int32, 64, cute.AddressSpace.gmem)
    assert isinstance(y, cute.Tensor) and n.dtype == cute.Int32
    for given, said in (
        (Options(x, 2.0, 64, False), r"args.flag: False is given, and True was compiled for"),
        (Options(None, 2.0, 64), r"args.x: None is given"),
        ((x, 2.0), "args: 2 items are given, and 4 were compiled for"),
    ):
        with pytest.raises(cute.CuteError, match=said):
            as_compiled(given, first, "args")


def test_torchs_tensors_without_memory_stand_for_tensors():
    torch = pytest.importorskip("torch")
    from numba_cute.compat.cutlass.runtime import from_dlpack as of

    made = of(torch.empty((3, 4), device="meta", dtype=torch.bfloat16), assumed_align=16)
    assert (made.shape, made.stride, made.element_type) == ((3, 4), (4, 1), cute.BFloat16)
