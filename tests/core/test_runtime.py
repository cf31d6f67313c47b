# SPDX-License-Identifier: Apache-2.0
"""Tensors on the host: arrays by each protocol, run-time layouts, and what lives how long."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute
from numba_cute.dtypes import Scalar
from numba_cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_tensor


class ByDlpack:
    """An array that offers DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class ByCudaInterface:
    """An array that offers the CUDA array interface, as CuPy and Numba do (with no GPU behind it)."""

    def __init__(self, array, strides="same"):
        self.dtype = array.dtype
        self.__cuda_array_interface__ = {
            **array.__array_interface__,
            "strides": None if strides is None else array.strides,
        }


class LikeTorch:
    """An array as torch offers it: by pointer, strides in elements, dtypes by their name."""

    def __init__(self, array, name):
        self.array, self.dtype, self.shape = array, f"torch.{name}", array.shape

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)


@pytest.mark.parametrize("wrap", [lambda a: a, ByDlpack, ByCudaInterface, lambda a: LikeTorch(a, a.dtype.name)])
@pytest.mark.parametrize("dtype, element", [(np.float32, cute.Float32), (np.int64, cute.Int64), (np.uint8, cute.Uint8)])
def test_arrays_of_each_protocol(wrap, dtype, element):
    array = np.zeros((6, 8), dtype)[::2, ::-1]
    t = from_dlpack(wrap(array))
    assert t.element_type == element and t.shape == (3, 8) and t.stride == (16, -1)
    assert int(t.iterator.address) == array.ctypes.data and t.memspace is cute.AddressSpace.gmem


@pytest.mark.parametrize(
    "dtype, element",
    [
        (ml_dtypes.bfloat16, cute.BFloat16),
        (ml_dtypes.float8_e4m3fn, cute.Float8E4M3FN),
        (ml_dtypes.float8_e5m2, cute.Float8E5M2),
    ],
)
@pytest.mark.parametrize("wrap", [lambda a: a, lambda a: LikeTorch(a, a.dtype.name), ByCudaInterface])
def test_types_that_numpy_has_not(wrap, dtype, element):
    assert from_dlpack(wrap(np.zeros((4, 4), dtype))).element_type == element


def test_an_interface_without_strides_is_row_major():
    assert from_dlpack(ByCudaInterface(np.zeros((2, 3, 4), np.float32), strides=None)).stride == (12, 4, 1)


def test_the_tensor_keeps_its_array_alive_and_nothing_else_does():
    array = ByDlpack(np.zeros(16, np.float32))
    alive = weakref.ref(array)
    t = from_dlpack(array).mark_layout_dynamic()
    del array
    assert alive() is not None
    del t
    if alive() is not None:  # looking through all there is takes seconds
        gc.collect()
    assert alive() is None


def test_tensors_over_the_same_memory_are_equal():
    array = np.zeros(16, np.float32)
    assert from_dlpack(array) == from_dlpack(array) and hash(from_dlpack(array)) == hash(from_dlpack(array))


def test_allocations_span_negative_strides():
    array = np.zeros((4, 8), np.float32)
    [(address, nbytes, _, owner, readonly)] = from_dlpack(array[::-1]).__cute_allocations__()
    assert (address, nbytes, readonly) == (array.ctypes.data, 128, False) and owner.base is array


def test_mark_layout_dynamic_keeps_the_leading_stride():
    t = from_dlpack(np.zeros((4, 8), np.float32)).mark_layout_dynamic()
    assert t.stride[1] == 1 and type(t.stride[1]) is int
    assert all(isinstance(x, Scalar) for x in (*t.shape, t.stride[0]))
    assert t.stride[0].dtype == cute.Int64 and t.shape[0].dtype == cute.Int32


def test_mark_compact_shape_dynamic_changes_the_outer_strides():
    t = make_fake_compact_tensor(cute.Float16, (4, 8, 16)).mark_compact_shape_dynamic(1, divisibility=8)
    assert [isinstance(s, Scalar) for s in t.shape] == [False, True, False]
    assert [isinstance(d, Scalar) for d in t.stride] == [False, False, True]


def test_fake_tensors_carry_run_time_extents():
    t = make_fake_tensor(cute.BFloat16, (cute.Int32(64), 32), (32, 1), assumed_align=16)
    assert isinstance(t.shape[0], Scalar) and t.iterator.alignment == 16
    c = make_fake_compact_tensor(cute.Float32, (cute.Int32(3), 4, 5), stride_order=(2, 1, 0))
    assert c.stride == (20, 5, 1)
