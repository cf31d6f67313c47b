# SPDX-License-Identifier: Apache-2.0
"""axpby, gemv, gemm of one thread, and division by a prepared divisor."""

import re

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import MmaUniversalOp
from numba_cute.runtime import from_dlpack

from ..conftest import assert_close


def tensors(*arrays):
    return [lambda place, x=x: from_dlpack(place(x), assumed_align=4) for x in arrays]


@cuda.jit
def scale_and_add(x, y):
    i, _, _ = cute.arch.thread_idx()
    cute.axpby(2.0, x[i, None], -0.5, y[i, None])


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_axpby(run, rng, dtype):
    x = rng.standard_normal((4, 6)).astype(dtype)
    y, before = np.zeros((4, 6), dtype), rng.standard_normal((4, 6)).astype(dtype)
    y[...] = before
    want = 2 * x.astype(np.float64) - 0.5 * before.astype(np.float64)
    rtol = 1e-6 if dtype is np.float32 else 2.0**-7
    run(scale_and_add, 1, 4, tensors(x, y), inouts=[y], check=lambda: assert_close(y, want, rtol=rtol, atol=rtol))


@cuda.jit
def matrix_times_vector(a, x, y):
    cute.gemv(1.5, a, x, 2.0, y)


def test_gemv(run, rng):
    a, x = rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    y, before = np.zeros(3, np.float32), rng.standard_normal(3).astype(np.float32)
    y[...] = before
    want = 1.5 * (a.astype(np.float64) @ x) + 2.0 * before
    run(matrix_times_vector, 1, 1, tensors(a, x, y), inouts=[y],
        check=lambda: assert_close(y, want, rtol=1e-5, atol=1e-6))  # fmt: skip


def tiled_product(mma):
    @cuda.jit
    def kernel(a, b, c):
        tidx, _, _ = cute.arch.thread_idx()
        thread = mma.get_slice(tidx)
        part_a, part_b, part_c = thread.partition_A(a), thread.partition_B(b), thread.partition_C(c)
        regs_a, regs_b = thread.make_fragment_A(part_a), thread.make_fragment_B(part_b)
        regs_c = thread.make_fragment_C(part_c)
        regs_a.store(part_a.load().to(regs_a.element_type))
        regs_b.store(part_b.load().to(regs_b.element_type))
        regs_c.fill(0)
        cute.gemm(mma, regs_c, regs_a, regs_b, regs_c)
        part_c.store(regs_c.load().to(c.element_type))

    return kernel


@pytest.mark.parametrize(
    "inner, dtype", [(cute.Float32, np.float32), (cute.Float32, ml_dtypes.bfloat16), (cute.Int32, np.int32)], ids=str
)
def test_gemm_of_threads_with_one_element_each(run, rng, inner, dtype):
    """16 threads, each with 2 x 2 of an 8 x 8 product, over 4 steps of K."""
    mma = cute.make_tiled_mma(MmaUniversalOp(inner), (4, 4, 1))
    a, b = (rng.uniform(-9, 9, (8, 4)).astype(dtype) for _ in range(2))
    c = np.zeros((8, 8), np.float32 if inner is cute.Float32 else np.int32)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    run(tiled_product(mma), 1, 16, tensors(a, b, c), outputs=[c],
        check=lambda: assert_close(c, want, rtol=1e-5, atol=1e-4))  # fmt: skip


def test_gemm_of_floats_is_fma_in_registers():
    mma = cute.make_tiled_mma(MmaUniversalOp(cute.Float32), (4, 4, 1))
    a, c = np.zeros((8, 4), np.float32), np.zeros((8, 8), np.float32)
    compiled = cute.compile(tiled_product(mma), tuple(from_dlpack(x) for x in (a, a, c)))
    assert len(re.findall(r"\bfma\.rn\.f32", compiled.ptx)) == 16 and compiled.resources.local == 0


@pytest.mark.parametrize("call, message", [
    (lambda: MmaUniversalOp(cute.Boolean), "abacc_dtype Boolean is not an integer or float type"),
    (lambda: MmaUniversalOp(3), "abacc_dtype 3 is not"),
    (lambda: cute.axpby(1, 2, 3, 4), "axpby: x 2 is not a tensor"),
    (lambda: cute.fast_divmod_create_divisor(0), r"divisor 0 is not in \[1, 2\*\*31\)"),
    (lambda: cute.fast_divmod_create_divisor(2**31), "is not in"),
    (lambda: cute.fast_divmod_create_divisor(1.5), "divisor 1.5 is not an integer"),
    (lambda: divmod(3, cute.FastDivmodDivisor(0)), "the divisor is 0"),
    (lambda: cute.FastDivmodDivisor(-1), r"divisor -1 is not in \[0, 2\*\*31\)"),
], ids=range(8))  # fmt: skip
def test_errors(call, message):
    with pytest.raises(cute.CuteError, match=message):
        call()


# FastDivmod

DIVIDENDS = np.array([0, 1, 2, 6, 7, 8, 999, 65535, 65536, 2**30 - 1, 2**30, 2**31 - 2, 2**31 - 1], np.int32)


@cuda.jit
def divide(x, quotients, remainders, divisor):
    i, _, _ = cute.arch.thread_idx()
    quotients[i] = x[i] // divisor
    remainders[i] = x[i] % divisor


@pytest.mark.parametrize("fixed", [False, True], ids=["run-time", "static"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 641, 65536, 2**30 + 1, 2**31 - 1])
def test_division_by_a_prepared_divisor(run, n, fixed):
    q, r = np.zeros_like(DIVIDENDS), np.zeros_like(DIVIDENDS)
    divisor = cute.fast_divmod_create_divisor(n if fixed else cute.Int32(n))

    def check():
        assert (q == DIVIDENDS // n).all() and (r == DIVIDENDS % n).all()

    run(divide, 1, len(DIVIDENDS), [*tensors(DIVIDENDS, q, r), divisor], outputs=[q, r], check=check)


@cuda.jit
def prepare_and_divide(x, quotients, remainders, n):
    i, _, _ = cute.arch.thread_idx()
    quotients[i], remainders[i] = divmod(x[i], cute.FastDivmodDivisor(n))


@pytest.mark.parametrize("n", [1, 3, 641, 2**30 + 1, 2**31 - 1])
def test_a_kernel_prepares_a_divisor(run, n):
    q, r = np.zeros_like(DIVIDENDS), np.zeros_like(DIVIDENDS)

    def check():
        assert (q == DIVIDENDS // n).all() and (r == DIVIDENDS % n).all()

    given = [*tensors(DIVIDENDS, q, r), np.int32(n)]
    run(prepare_and_divide, 1, len(DIVIDENDS), given, outputs=[q, r], check=check)


def test_a_prepared_division_does_not_divide():
    arrays = [from_dlpack(np.zeros_like(DIVIDENDS)) for _ in range(3)]
    ptx = cute.compile(divide, (*arrays, cute.fast_divmod_create_divisor(cute.Int32(7)))).ptx
    assert not re.search(r"\b(div|rem)\.", ptx)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 10, 641, 1000, 2**16 + 1, 2**31 - 1])
def test_the_multiplier_is_exact_where_quotients_step(n):
    d = cute.fast_divmod_create_divisor(n)
    assert d.multiplier < 2**32
    for base in (0, n, 17 * n, (2**31 - 1) // n * n):
        for x in range(max(base - 1, 0), min(base + 2, 2**31)):
            assert x * d.multiplier >> d.shift == x // n and d.divmod(x) == divmod(x, n)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("adds", [True, False])
def test_gemm_of_fragments_without_values(run, rng, steps, adds):
    """(M) by (N), or (M, K) by (N, K), by one thread; its first step adds to what is there, or not."""
    a, b = rng.integers(-8, 8, (2, steps)).astype(np.float32), rng.integers(-8, 8, (4, steps)).astype(np.float32)
    c = np.full((2, 4), 5, np.float32)
    want = a @ b.T + (5 if adds else 0)

    @cuda.jit
    def kernel(a, b, c):
        atom = cute.make_mma_atom(MmaUniversalOp(cute.Float32))
        atom.set(cute.nvgpu.warpgroup.Field.ACCUMULATE, adds)
        regs_a, regs_b = (
            cute.make_rmem_tensor((2, steps), cute.Float32),
            cute.make_rmem_tensor((4, steps), cute.Float32),
        )
        regs_c = cute.make_rmem_tensor((2, 4), cute.Float32)
        regs_a.store(a.load())
        regs_b.store(b.load())
        regs_c.store(c.load())
        if cute.const_expr(steps == 1):
            cute.gemm(atom, regs_c, regs_a[None, 0], regs_b[None, 0], regs_c)
        else:
            cute.gemm(atom, regs_c, regs_a, regs_b, regs_c)
        c.store(regs_c.load())

    run(kernel, 1, 1, tensors(a, b, c), inouts=[c], check=lambda: assert_close(c, want))


@cuda.jit
def strided_operand(a, b, c):
    tidx, _, _ = cute.arch.thread_idx()
    op = cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op)
    thread = mma.get_slice(tidx)
    part_a, part_b, part_c = thread.partition_A(a), thread.partition_B(b), thread.partition_C(c)
    regs_a, regs_b = thread.make_fragment_A(part_a), thread.make_fragment_B(part_b)
    regs_c = thread.make_fragment_C(part_c)
    regs_a.store(part_a.load())
    regs_b.store(part_b.load())
    regs_c.fill(0)
    held = cute.make_rmem_tensor(16, cute.Float16)
    apart = cute.make_tensor(held.iterator, cute.make_layout(((2, 2, 2), 1, 1), stride=((1, 2, 8), 0, 0)))
    apart.store(regs_a.load().reshape(apart.shape))
    cute.gemm(mma, regs_c, apart, regs_b, regs_c)
    part_c.store(regs_c.load())


def test_a_warps_operand_may_lie_in_registers_apart(run, rng):
    a, b = (rng.integers(-4, 4, (n, 16)).astype(np.float16) for n in (16, 8))
    c, want = np.zeros((16, 8), np.float32), a.astype(np.float64) @ b.astype(np.float64).T
    run(strided_operand, 1, 32, tensors(a, b, c), outputs=[c], check=lambda: assert_close(c, want))
