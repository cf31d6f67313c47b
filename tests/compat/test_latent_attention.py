# SPDX-License-Identifier: Apache-2.0
"""What FlashAttention's latent attention needs: lists that comprehensions make on ways of which one is left, fields of
frozen objects, promises about the strides of modes of one element, addresses as numbers."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack


def both(kernel, *args):
    """Compile a kernel to PTX, and simulate it."""
    assert ".entry" in cute.compile(kernel, *args, arch="sm_90a").ptx
    cute.simulate(kernel)[1, 1](*args)


def times(a, b, c):
    return a * b * c


class Lists:
    def __init__(self, first):
        self.first, self.count, self.numbers = first, 2, (3, 4)

    @cute.kernel
    def kernel(self, out: cute.Tensor, n: cute.Int32):
        if cute.const_expr(self.first):
            made = [functools.partial(times, self.numbers[i], 2) for i in range(self.count)]
        else:
            made = [functools.partial(times, n, i) for i in range(self.count)]
        for i in cute.range_constexpr(self.count):
            out[i] = made[i](n)


@pytest.mark.parametrize("first, found", [(True, [30, 40]), (False, [0, 25])])
def test_a_name_of_lists_of_two_comprehensions(first, found):
    out = np.zeros(2, np.int32)
    both(Lists(first).kernel, from_dlpack(out), cute.Int32(5))
    assert out.tolist() == found


@dataclasses.dataclass(frozen=True)
class Block:
    tile: cute.Constexpr[int]
    split: cute.Constexpr[bool] = False

    @cute.jit
    def count(self, n):
        if cute.const_expr(self.split):
            n = n // 2
        return n * self.tile


class Other:
    def __init__(self):
        self.split = 0


def test_a_field_of_a_frozen_object_is_static_where_another_class_sets_its_name():
    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Int32):
        other = Other()
        other.split = n
        out[0] = Block(4).count(n) + other.split

    out = np.zeros(1, np.int32)
    both(kernel, from_dlpack(out), cute.Int32(5))
    assert out.tolist() == [25]


def test_promises_hold_of_the_stride_of_a_mode_of_one_element():
    t = from_dlpack(np.zeros((1, 6, 8), np.float32)).mark_layout_dynamic()
    assert [int(cute.assume(d, divby=4)) for d in t.stride[:-1]] == [48, 8]


def test_the_address_of_a_static_pointer_is_a_number_of_run_time():
    @cute.kernel
    def kernel(out: cute.Tensor):
        at = cute.make_ptr(cute.Float32, 64, cute.AddressSpace.smem).toint()
        assert isinstance(at, cute.Int32)
        out[0] = at

    out = np.zeros(1, np.int32)
    both(kernel, from_dlpack(out))
    assert out.tolist() == [64]
