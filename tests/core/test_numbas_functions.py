# SPDX-License-Identifier: Apache-2.0
"""Python's and Numba's own functions in kernels with tensors: static numbers stay static, atomics take tensors."""

import enum

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack


class Kind(enum.IntEnum):
    FIRST = 1
    SECOND = 2


def static_numbers(x, out):
    t = cute.make_tensor(x, (4, 2))
    registers = cute.make_rmem_tensor((max(2, 3), min(cute.size(t), 5), abs(-2)), cute.Int32)
    registers.fill(1)
    more = cute.make_rmem_tensor((max(t.shape), sum((1, 2)), max(1, 7, 4)), cute.Int32)
    more.fill(2)
    out[0] = cute.size(registers)
    out[1] = cute.size(more)
    out[2] = registers[2, 4, 1] + more[3, 2, 6]
    out[3] = max(x[0], 2) + min(x[0], 2)


def test_max_min_abs_and_sum_of_static_numbers_are_static(run):
    x, out = np.full(8, 5, np.int32), np.zeros(4, np.int32)
    run(static_numbers, 1, 1, (x, out), outputs=[out], check=lambda: np.testing.assert_array_equal(out, [30, 84, 3, 7]))


def members(x, out):
    out[0] = cute.Int32(Kind.SECOND) + x[1]
    out[1] = cute.where(x[0] > 0, Kind.FIRST, Kind.SECOND)


def test_a_member_of_an_int_enum_is_its_number(run):
    x, out = np.array([5, 6], np.int32), np.zeros(2, np.int32)
    run(members, 1, 1, (x, out), outputs=[out], check=lambda: np.testing.assert_array_equal(out, [8, 1]))


def warps(out):
    lane = cute.arch.lane_idx()
    out[lane] = cute.arch.shuffle_sync(lane, 3, mask=cute.arch.FULL_MASK)


def test_the_mask_of_all_lanes_has_a_name(run):
    assert cute.arch.FULL_MASK == (1 << 32) - 1
    out = np.zeros(32, np.int32)
    run(warps, 1, 32, (out,), outputs=[out], check=lambda: np.testing.assert_array_equal(out, 3))


def atomics(t, f, old):
    i = cuda.threadIdx.x
    old[i] = cuda.atomic.add(t, (0, 1), 2)
    cuda.atomic.sub(t, (1, 0), i)
    cuda.atomic.max(t, 2, i)
    cuda.atomic.min(t[None, 1], 1, -i)
    cuda.atomic.or_(t, (0, 2), 1 << (i & 3))
    cuda.atomic.add(f, 0, 0.5)
    cuda.atomic.max(f, 1, cute.Float32(i))
    if i == 0:
        cuda.atomic.exch(t, (1, 2), 7)
        cuda.atomic.cas(t, (1, 2), 7, 9)


@pytest.mark.parametrize("checks", [True, False])
def test_atomics_of_numba_take_tensors(checks):
    t, f, old = np.zeros((2, 3), np.int32), np.zeros(2, np.float32), np.zeros(32, np.int32)
    cute.simulate(atomics, checks=checks)[1, 32](from_dlpack(t), from_dlpack(f), old)
    np.testing.assert_array_equal(t, [[0, 64, 15], [-496, -31, 9]])
    np.testing.assert_array_equal(sorted(old), range(0, 64, 2))
    np.testing.assert_array_equal(f, [16, 31])


def test_atomics_on_tensors_compile_to_atomics():
    args = from_dlpack(np.zeros((2, 3), np.int32)), from_dlpack(np.zeros(2, np.float32)), np.zeros(32, np.int32)
    ptx = cute.compile(atomics, args).ptx
    for what in (".add.u32", ".max.s32", ".min.s32", ".or.b32", ".exch.b32", ".cas.b32", ".add.f32"):
        assert f"atom.relaxed.gpu.global{what}" in ptx, what


@pytest.mark.parametrize(
    "statement, message",
    [
        ("cuda.atomic.inc(t, 0, 3)", "cuda.atomic.inc: of a tensor's elements there are sub, add, min"),
        ("cuda.atomic.add(t, (0, 7), 1)", r"coordinate \(0,7\) is out of \(2,3\)"),
        ("cuda.atomic.add(t, (None, 1), 1)", "is not an element in memory"),
        ("cuda.atomic.add(cute.make_layout(4), 0, 1)", "cuda.atomic.add: 4:1 is neither an array nor a tensor"),
    ],
)
def test_what_is_no_atomic_is_refused_in_the_same_words(statement, message):
    space = {"cute": cute, "cuda": cuda}
    exec(f"def kernel(t):\n    {statement}\n", space)
    args, said = (from_dlpack(np.zeros((2, 3), np.int32)),), []
    for run in (lambda: cute.simulate(space["kernel"])[1, 1](*args), lambda: cute.compile(space["kernel"], args)):
        with pytest.raises(cute.CuteError, match=message) as caught:
            run()
        said.append(str(caught.value).splitlines()[0])
    assert said[0] == said[1]
