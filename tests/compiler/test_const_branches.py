# SPDX-License-Identifier: Apache-2.0
"""Branches that `const_expr` decides: one side alone is compiled, whether the source or types tell which; and what
differs between the sides of other branches in static flags becomes a run-time flag."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError, seam
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack

TWO, NARROW, MODE = True, False, "k"
A, B = warp.LdMatrix8x8x16bOp(True, 4), warp.LdMatrix8x8x16bOp(False, 2)  # of two types: a variable cannot be both


@cuda.jit
def the_source_tells(t, out):
    none = None
    if cute.const_expr(TWO and not NARROW):
        op = A
    else:
        op = B
    out[0] = op.num_matrices
    if cute.const_expr(none is None):
        op = B
    else:
        op = A
    out[1] = op.num_matrices
    tensor = None
    if cute.const_expr(TWO):
        tensor = t
    assert tensor is not None and None is not t
    op = A if cute.const_expr(MODE != "k" or none is not None) else B
    out[2] = op.num_matrices


@cuda.jit
def types_tell(t, out):
    if cute.const_expr(t.element_type == cute.Float32):
        op = A
    elif cute.const_expr(t.element_type == cute.Int32):
        op = B
    else:
        op = None
    out[0] = op.num_matrices
    if cute.const_expr(t.element_type == cute.Int32 or cute.rank(t) == 1 and MODE == "k"):
        op = A
    else:
        op = B
    out[1] = op.num_matrices
    if not cute.const_expr(cute.size(t) > 3):
        out[2] = A.num_matrices
    else:
        out[2] = B.num_matrices


@cuda.jit
def types_tell_not(t, out):
    is_no_vector = not cute.const_expr(cute.rank(t) == 1)
    if is_no_vector:
        out[0] = t.no_such_name
    else:
        out[0] = 1
    is_no_matrix = not cute.const_expr(cute.rank(t) == 2)
    if is_no_matrix:
        out[1] = out[2] = 2
    else:
        out[1] = t.no_such_name


@cuda.jit(device=True)
def given(x):
    if cute.const_expr(x is None):
        op = A
    else:
        op = B
    return op.num_matrices


@cuda.jit
def none_is_a_type(t, out):
    out[0] = given(None)
    out[1] = given(t.shape[0])
    out[2] = given(t)


@pytest.mark.parametrize(
    ("kernel", "want"),
    [
        (the_source_tells, [4, 2, 2]),
        (types_tell, [4, 4, 2]),
        (types_tell_not, [1, 2, 2]),
        (none_is_a_type, [4, 2, 2]),
    ],
    ids=lambda x: getattr(getattr(x, "py_func", None), "__name__", "gives"),
)
def test_const_expr_decides_a_branch(run, kernel, want):
    out = np.zeros(3, np.int32)

    def check():
        np.testing.assert_array_equal(out, want)

    run(kernel, 1, 1, [lambda place: from_dlpack(place(np.zeros(4, np.float32))), out], outputs=[out], check=check)


def test_the_side_not_taken_is_not_compiled(run):
    out = np.zeros(2, np.int32)

    def check():
        np.testing.assert_array_equal(out, [3, 0])

    @cuda.jit
    def kernel(t, out):
        if cute.const_expr(cute.rank(t) == 2):
            out[0] = t[0, 0]
            n = t.shape[1]
        else:
            out[0] = t[3]
            n = 1
        for i in cute.range_constexpr(n):  # whose bound is static once one side is left
            if cute.const_expr(i < cute.size(t) - 3):
                out[i + 1] = i
            else:
                out[i + 1] = t[0, 0, 0]

    x = np.arange(4, dtype=np.float32)
    run(kernel, 1, 1, [lambda place: from_dlpack(place(x)), out], outputs=[out], check=check)


@cuda.jit
def asserting(t, out):
    assert t is not None, "a tensor"
    for i in cute.range_constexpr(cute.size(t) - 1):
        if i == out[3]:
            raise ValueError("another")
        out[i] = i


def test_assertions_do_not_hide_what_types_tell(run):
    out = np.zeros(4, np.int32)

    def check():
        np.testing.assert_array_equal(out[:3], [0, 1, 2])

    run(
        asserting, 1, 1, [lambda place: from_dlpack(place(np.zeros(4, np.float32))), out], outputs=[out], check=check,
    )  # fmt: skip


def test_a_const_expr_of_run_time_stays_refused():
    @cuda.jit
    def kernel(t, out):
        if cute.const_expr(t[0] == 2):
            out[0] = 1

    with pytest.raises(CuteError, match=r"const_expr\(.*\): the value is known only at run time"):
        cute.compile(kernel, (from_dlpack(np.zeros(4, np.float32)), np.zeros(1, np.int32)), arch="sm_90a")


@seam.frozen
class Flags:
    first: bool
    second: bool = True


@cuda.jit
def flags(n, out):
    f = Flags(True)
    for i in range(3):
        out[i] = (1 if f.first else 0) + (2 if f.second else 0)
        if i >= n:
            f = Flags(False, i == 1)


def test_flags_that_paths_set_to_other_values_are_run_time_flags(run):
    out = np.zeros(3, np.int32)

    def check():
        np.testing.assert_array_equal(out, [3, 3, 2])

    run(flags, 1, 1, [np.int32(1), out], outputs=[out], check=check)


def test_an_atom_that_accumulates_from_the_second_product_on():
    """As the CuTe DSL's kernels have it: ACCUMULATE is False ahead of the loop, and True from then on."""
    from numba_cute.nvgpu import warpgroup

    K = warpgroup.OperandMajorMode.K
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 8, 16), warpgroup.OperandSource.RMEM, K, K)
    lay = cute.make_layout((8, (8, 2)), stride=(8, (1, 64)))

    @cuda.jit(launch_bounds=128)
    def kernel(n, out):
        lane = cuda.threadIdx.x
        s = cute.utils.SmemAllocator().allocate_tensor(cute.Float16, lay, 128)
        if lane < 128:
            s[lane] = 1
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        mma = cute.make_tiled_mma(op)
        a = cute.make_rmem_tensor(mma.partition_shape_A((64, 16)), cute.Float16)
        c = cute.make_rmem_tensor(mma.partition_shape_C((64, 8)), cute.Float32)
        a.fill(1)
        c.fill(7)
        b = mma.make_fragment_B(mma.get_slice(0).partition_B(s))
        mma = mma.set(warpgroup.Field.ACCUMULATE, False)
        warpgroup.fence()
        for _ in range(n):
            cute.gemm(mma, c, a, b, c)
            mma = mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        out[lane] = c[0]

    out = np.zeros(128, np.float32)
    cute.simulate(kernel, arch="sm_90a")[1, 128](np.int32(3), out)
    assert (out == 48).all()
    assert "wgmma.mma_async" in cute.compile(kernel, (np.int32(3), out), arch="sm_90a").ptx
