# SPDX-License-Identifier: Apache-2.0
"""Flags and memory that GPUs share: in the simulator, whose one GPU is all of a multicast mapping, and assembled."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError
from numba_cute.utils import distributed


def tensor(array, align=16):
    return lambda place: from_dlpack(place(array), assumed_align=align)


def aligned(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 16, np.uint8)
    start = -raw.ctypes.data % 16
    return raw[start : start + size].view(dtype).reshape(shape)


NO_GPU = pytest.mark.parametrize("run", ["simulator", "assembler"], indirect=True)
"""multimem takes addresses of memory that several GPUs share, which one of its own has not."""


@cuda.jit
def handed_over(flags, data, out):
    """The first warp writes and counts up a flag, the second waits for it and reads."""
    t, _, _ = arch.thread_idx()
    if t < 32:
        data[t] = t + 1
        arch.sync_warp()
        if arch.elect_one():
            distributed.multimem_red_add1(flags.iterator, order="release", scope="gpu")
            distributed.red_add1(flags.iterator + 1, order="release", scope="sys")
            distributed.red_add1(flags.iterator + 2)
    else:
        if arch.elect_one():
            distributed.spin_lock_atom_cas_acquire_wait(flags.iterator, expected_val=1, reset_val=0, scope="gpu")
            distributed.spin_lock_atom_cas_relaxed_wait(
                lock_ptr=flags.iterator + 1, expected_val=1, reset_val=7, scope="sys"
            )
            distributed.spin_lock_ld_lt_relaxed_wait(flags.iterator + 2, expected_val=1, scope="gpu")
        arch.sync_warp()
        out[t - 32] = data[t - 32]


@NO_GPU
def test_a_flag_hands_over_what_was_written_before_it(run):
    flags, data, out = np.zeros(3, np.int32), np.zeros(32, np.int32), np.zeros(32, np.int32)

    def check():
        np.testing.assert_array_equal(out, np.arange(32) + 1)
        assert flags.tolist() == [0, 7, 1], "one is reset to 0, one to 7, one is left"

    args = [tensor(flags, 4), data, out]
    run(handed_over, 1, 64, args, inouts=[flags, data], outputs=[out], check=check)


@NO_GPU
@pytest.mark.parametrize(
    "dtype, count, load",
    [
        (np.float32, 4, distributed.multimem_ld_reduce_4xf32),
        (np.float16, 8, distributed.multimem_ld_reduce_8xf16),
        (ml_dtypes.bfloat16, 8, distributed.multimem_ld_reduce_8xbf16),
        (ml_dtypes.float8_e4m3fn, 16, distributed.multimem_ld_reduce_16xe4m3),
        (ml_dtypes.float8_e5m2, 16, distributed.multimem_ld_reduce_16xe5m2),
    ],
    ids=lambda x: getattr(x, "__name__", None) or str(x),
)
def test_sixteen_bytes_are_reduced_and_stored(run, rng, dtype, count, load):
    x, y = aligned((32, count), dtype), aligned((32, count), dtype)
    x[...] = rng.integers(-4, 5, x.shape).astype(dtype)
    y[...] = 0

    @cuda.jit
    def kernel(x, y):
        t, _, _ = arch.thread_idx()
        a, b, c, d = load(x[t, None].iterator)
        distributed.multimem_st(y[t, None].iterator, a, b, c, d)

    def check():
        np.testing.assert_array_equal(y, x)

    run(kernel, 1, 32, [tensor(x), tensor(y)], inouts=[y], check=check, arch="sm_100a")


@NO_GPU
def test_fewer_bytes_are_reduced_and_stored(run, rng):
    x, y = aligned((32, 4), np.float16), aligned((32, 4), np.float16)
    x[...] = rng.integers(-4, 5, x.shape)

    @cuda.jit
    def kernel(x, y):
        t, _, _ = arch.thread_idx()
        pair = distributed.multimem_ld_reduce(x[t, None].iterator, dtype=cute.Float16, num_elements=4)
        distributed.multimem_st(y[t, None].iterator, pair[0], pair[1])
        one = distributed.multimem_ld_reduce(x[t, None].iterator, dtype=cute.Float16, num_elements=2)
        distributed.multimem_st(y[t, None].iterator + 2, one[0])

    def check():
        np.testing.assert_array_equal(y, x[:, [0, 1, 0, 1]])

    run(kernel, 1, 32, [tensor(x), tensor(y)], inouts=[y], check=check)


def test_a_flag_that_nobody_counts_up_is_reported():
    @cuda.jit
    def kernel(flags):
        distributed.spin_lock_atom_cas_acquire_wait(flags.iterator, expected_val=1, reset_val=0, scope="gpu")

    with pytest.raises(CuteError, match="again and again|did not come"):
        cute.simulate(kernel)[1, 1](from_dlpack(np.zeros(1, np.int32)))


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda f, x: distributed.red_add1(x), "must be a Pointer to an Int32 or Uint32"),
        (lambda f, x: distributed.red_add1(f, order="acquire"), "order 'acquire' must be 'relaxed' or 'release'"),
        (lambda f, x: distributed.multimem_red_add1(f, scope="warp"), "scope 'warp' must be 'sys' or"),
        (lambda f, x: distributed.multimem_st(x, 1, 2, 3), "3 words must be 1, 2 or 4"),
        (
            lambda f, x: distributed.multimem_ld_reduce(x, dtype=cute.Int8, num_elements=16),
            "dtype Int8 must be Float32",
        ),
        (
            lambda f, x: distributed.multimem_ld_reduce(x, dtype=cute.Float16, num_elements=3),
            "num_elements 3 of Float16 must make 4, 8 or 16 bytes",
        ),
    ],
    ids=range(6),
)
def test_what_the_instructions_lack_is_refused(call, why):
    flags, data = from_dlpack(np.zeros(1, np.int32)), from_dlpack(np.zeros(8, np.float32))
    with pytest.raises(CuteError, match=why):
        call(flags.iterator, data.iterator)
