# SPDX-License-Identifier: Apache-2.0
"""Ordinary Numba code in the simulator: what a kernel uses of numba.cuda, device functions, math, arrays."""

import math

import numba
import numpy as np
import pytest
from numba import cuda
from numba.cuda import grid, syncthreads

from numba_cute import dtypes
from numba_cute.seam import CuteError, frozen, struct
from numba_cute.sim import DeadlockError, OutOfBoundsError, SimError, simulate

FULL = 0xFFFFFFFF


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit(device=True)
def norm(x, y):
    return math.sqrt(square(x) + square(y))


@cuda.jit
def everything(x, y, out, total):
    i = cuda.grid(1)
    buffer = cuda.shared.array(64, numba.float32)
    buffer[cuda.threadIdx.x] = norm(x[i], y[i])
    cuda.syncthreads()
    out[i] = buffer[cuda.blockDim.x - 1 - cuda.threadIdx.x]
    cuda.atomic.add(total, 0, out[i])


@pytest.mark.parametrize("seed", [None, 7])
def test_a_kernel_with_shared_memory_device_functions_math_and_atomics(seed, rng):
    x, y = rng.standard_normal((2, 192)).astype(np.float32)
    out, total = np.full(192, np.nan, np.float32), np.zeros(1, np.float64)
    simulate(everything, seed=seed)[3, 64](x, y, out, total)
    want = np.hypot(x, y).reshape(3, 64)[:, ::-1].reshape(-1)
    np.testing.assert_allclose(out, want, rtol=1e-6)
    np.testing.assert_allclose(total, want.sum(), rtol=1e-5)


def test_names_imported_directly():
    @cuda.jit
    def kernel(out):
        s = cuda.shared.array((2, 32), "int32")
        s[cuda.threadIdx.y, cuda.threadIdx.x] = cuda.threadIdx.x + 100 * cuda.threadIdx.y
        syncthreads()
        x, y = grid(2)
        out[y, x] = s[1 - cuda.threadIdx.y, cuda.threadIdx.x] + 1000 * cuda.blockIdx.x + cuda.blockDim.y

    out = np.zeros((2, 64), np.int32)
    simulate(kernel)[(2, 1), (32, 2)](out)
    x, y = np.arange(64), np.arange(2)[:, None]
    np.testing.assert_array_equal(out, x % 32 + 100 * (1 - y) + 1000 * (x // 32) + 2)


def test_dynamic_shared_memory_and_local_arrays():
    @cuda.jit
    def kernel(out):
        mine = cuda.local.array(2, numba.int32)
        mine[0] = cuda.threadIdx.x
        dynamic = cuda.shared.array(0, numba.int32)
        dynamic[cuda.threadIdx.x] = mine[0]
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            out[0], out[1] = dynamic.size, dynamic.sum()

    out = np.zeros(2, np.int64)
    simulate(kernel)[1, 32, 0, 128](out)
    np.testing.assert_array_equal(out, [32, 31 * 16])


def test_warp_exchanges_and_votes():
    def kernel(out):
        t = cuda.laneid
        out[0, t] = cuda.shfl_sync(FULL, t, 3)
        out[1, t] = cuda.shfl_up_sync(FULL, t, 1)
        out[2, t] = cuda.shfl_down_sync(FULL, t, 2)
        out[3, t] = cuda.shfl_xor_sync(FULL, t, 16)
        out[4, t] = cuda.ballot_sync(FULL, t % 2)
        out[5, t] = cuda.any_sync(FULL, t == 4) + 2 * cuda.all_sync(FULL, t < 31)
        out[6, t] = (
            cuda.syncthreads_count(t < 5) + 100 * cuda.syncthreads_and(t < 5) + 1000 * cuda.syncthreads_or(t < 5)
        )
        if t < 8:
            out[7, t] = cuda.shfl_sync(0xFF, t * 10, 7)
            cuda.syncwarp(0xFF)

    out = np.zeros((8, 32), np.int64)
    simulate(kernel)[1, 32](out)
    t = np.arange(32)
    np.testing.assert_array_equal(out[0], 3)
    np.testing.assert_array_equal(out[1], np.maximum(t - 1, 0))
    np.testing.assert_array_equal(out[2], np.where(t < 30, t + 2, t))
    np.testing.assert_array_equal(out[3], t ^ 16)
    np.testing.assert_array_equal(out[4], np.int32(0xAAAAAAAA - (1 << 32)))  # Numba's ballot is an int32
    np.testing.assert_array_equal(out[5], 1)
    np.testing.assert_array_equal(out[6], 1005)
    np.testing.assert_array_equal(out[7], np.where(t < 8, 70, 0))


def test_atomics_give_the_old_value():
    def kernel(a):
        old = [
            cuda.atomic.add(a, 0, 5), cuda.atomic.sub(a, 0, 1), cuda.atomic.max(a, 0, 9), cuda.atomic.min(a, 0, 3),
            cuda.atomic.exch(a, 0, 12), cuda.atomic.and_(a, 0, 10), cuda.atomic.or_(a, 0, 7), cuda.atomic.xor(a, 0, 1),
            cuda.atomic.inc(a, 0, 14), cuda.atomic.dec(a, 0, 14), cuda.atomic.cas(a, 0, 14, 2), a[0],
        ]  # fmt: skip
        for i, x in enumerate(old):
            a[i + 1] = x

    a = np.zeros(13, np.int64)
    simulate(kernel)[1, 1](a)
    np.testing.assert_array_equal(a[1:], [0, 5, 4, 9, 3, 12, 8, 15, 14, 0, 14, 2])


def test_a_spin_lock_makes_progress():
    def kernel(lock, total):
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)

    total = np.zeros(1, np.int64)
    simulate(kernel)[2, 32](np.zeros(1, np.int32), total)
    assert total[0] == 64


def test_bit_counts_and_fma():
    def kernel(out):
        out[0], out[1], out[2] = cuda.popc(np.int32(-1)), cuda.clz(np.int32(1)), cuda.ffs(np.int32(8))
        out[3], out[4] = cuda.brev(np.uint32(1)), cuda.selp(True, 3, 4)
        out[5] = cuda.fma(np.float32(2), np.float32(3), np.float32(4))

    out = np.zeros(6, np.int64)
    simulate(kernel)[1, 1](out)
    np.testing.assert_array_equal(out, [32, 31, 4, 1 << 31, 3, 10])


def test_numba_types_convert():
    def kernel(out):
        out[0], out[1] = numba.int8(200), numba.float32(0.1)

    out = np.zeros(2)
    simulate(kernel)[1, 1](out)
    np.testing.assert_array_equal(out, [-56, np.float32(0.1)])


def test_threads_that_return_early_count_at_syncthreads():
    def kernel(out):
        if cuda.threadIdx.x >= 20:
            return
        cuda.syncthreads()
        out[cuda.threadIdx.x] = 1

    out = np.zeros(32)
    simulate(kernel)[1, 32](out)
    assert out.sum() == 20


def test_syncthreads_that_some_threads_skip():
    def kernel():
        if cuda.threadIdx.x < 32:
            cuda.syncthreads()
        else:
            cuda.syncwarp(FULL)
            cuda.shfl_sync(FULL, 1, 0) if cuda.laneid else None

    with pytest.raises(DeadlockError, match=r"syncthreads: 32 of 64 threads have arrived; missing"):
        simulate(kernel)[1, 64]()


@frozen
class Box:
    """An argument with run-time leaves."""

    scale: object
    shape: object


def test_run_time_scalars_and_static_objects_as_arguments():
    def kernel(out, n, box):
        assert n.dtype is box.shape[1].dtype is dtypes.Int32 and box.scale.dtype is dtypes.Float32
        out[0] = n + box.shape[1] * box.scale

    out = np.zeros(1)
    simulate(kernel)[1, 1](out, dtypes.Int32(3), Box(dtypes.Float32(0.5), (4, dtypes.Int32(8))))
    assert out[0] == 7


@struct
class Counter:
    n: dtypes.Int32

    def step(self):
        self.n += square(1)

    def lane(self):
        return self.n + cuda.laneid


def test_each_thread_has_its_own_struct():
    def kernel(out, counter):
        counter.step()
        cuda.syncthreads()
        out[cuda.threadIdx.x] = counter.n

    out, counter = np.zeros(32), Counter(4)
    simulate(kernel)[1, 32](out, counter)
    assert (out == 5).all() and counter.n == 4


def test_methods_of_structs_use_numba_too():
    def kernel(out):
        counter = Counter(100)
        out[cuda.threadIdx.x] = counter.lane()

    out = np.zeros(32)
    simulate(kernel)[1, 32](out)
    np.testing.assert_array_equal(out, np.arange(32) + 100)


def test_an_index_outside_is_refused_without_checks_too():
    def kernel(out):
        out[cuda.threadIdx.x] = 1

    with pytest.raises(CuteError, match=r"index .*31.* of an array of shape \(31,\); guard it"):
        simulate(kernel, checks=False)[1, 32](np.zeros(31))


def test_too_much_shared_memory():
    def kernel():
        cuda.shared.array((48, 1025), numba.uint8)

    with pytest.raises(SimError, match="49200 bytes static .* exceed the 49152 bytes of a CTA"):
        simulate(kernel)[1, 1]()


def test_launch_errors_come_first():
    with pytest.raises(CuteError, match="1056 threads exceed the 1024"):
        simulate(lambda: None)[1, (33, 32)]()
    with pytest.raises(CuteError, match=r"grid \(3, 1, 1\) is not a multiple of the cluster \(2, 1, 1\)"):
        simulate(lambda: None, cluster=2)[3, 1]()
    with pytest.raises(CuteError, match="async_mode 'late'"):
        simulate(lambda: None, async_mode="late")
    with pytest.raises(CuteError, match="neither a @cuda.jit kernel nor a Python function"):
        simulate(3)


def test_a_progress_bar_counts_clusters(capsys):
    simulate(lambda: None, progress=True)[3, 1]()
    assert "3 of 3 clusters" in capsys.readouterr().err


def test_memory_that_was_not_given():
    from numba_cute.seam import current

    def kernel(a, address):
        current().load(dtypes.Int32, "gmem", address, 1, 4)

    a = np.zeros(8, np.int32)
    simulate(kernel)[1, 1](a, a.ctypes.data + 28)
    with pytest.raises(OutOfBoundsError, match="4 bytes beyond the end of a \\(32 bytes"):
        simulate(kernel)[1, 1](a, a.ctypes.data + 32)
    with pytest.raises(OutOfBoundsError, match="misaligned"):
        simulate(kernel)[1, 1](a, a.ctypes.data + 2)


def reverse_twice(a, b, out):
    """Each block writes its part, and after the grid has met reads another's."""
    i = cuda.grid(1)
    n = cuda.gridsize(1)
    b[i] = a[i] + 1
    cuda.cg.this_grid().sync()
    a[i] = 10 * b[n - 1 - i]
    cuda.cg.this_grid().sync()
    out[i] = a[n - 1 - i]


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("cluster", [1, 2])
def test_a_cooperative_grid_meets(seed, cluster):
    a, b, out = (np.arange(128, dtype=np.int64) for _ in range(3))
    simulate(reverse_twice, seed=seed, cluster=cluster)[4, 32](a, b, out)
    np.testing.assert_array_equal(out, 10 * (np.arange(128) + 1))


def test_a_grid_that_does_not_meet_races():
    def kernel(a, out):
        i = cuda.grid(1)
        a[i] = i
        out[i] = a[cuda.gridsize(1) - 1 - i]

    with pytest.raises(SimError, match="nothing orders blocks of a grid"):
        simulate(kernel)[4, 32](np.zeros(128), np.zeros(128))


def test_a_block_that_ends_before_the_grid_meets():
    def kernel():
        if cuda.blockIdx.x > 0:
            cuda.cg.this_grid().sync()

    with pytest.raises(SimError, match="all threads must call it equally often"):
        simulate(kernel)[3, 32]()
