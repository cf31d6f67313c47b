# SPDX-License-Identifier: Apache-2.0
"""What else is tried of `cute.debug` and `cute.compare` on a GPU: each a function that says whether it was right.

PYTEST_DONT_REWRITE: the assertions are the kernels'."""

from typing import Any

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.sim import DeadlockError, OutOfBoundsError


def said(call: Any, error: type, *words: str) -> bool:
    """Say whether a call raises an error with these words; print it."""
    try:
        call()
    except error as e:
        print(type(e).__name__, e)
        return all(w in str(e) for w in words)
    print("no report")
    return False


def compare_alike() -> bool:
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x + 0 * arch.lane_idx()
        out[t] = a[t] * 2

    a, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    cute.compare(kernel)[1, 64](a, out)
    return bool((out == 2 * a).all())


def compare_different() -> bool:
    from numba_cute.debugging import DifferenceError

    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        out[t] = t if t != 7 else arch.globaltimer()

    out = np.zeros(64, np.int64)
    return said(lambda: cute.compare(kernel)[1, 64](out), DifferenceError, "out[7] is", "others.py:", "1 of 64")


def compare_a_host_function() -> bool:
    @cute.kernel
    def kernel(a: cute.Tensor, out: cute.Tensor):
        t = cuda.threadIdx.x
        out[t] = a[t] * 2

    @cute.jit
    def host(a, out):
        kernel(cute.runtime.from_dlpack(a), cute.runtime.from_dlpack(out)).launch(grid=1, block=64)

    import torch

    a, out = torch.arange(64, dtype=torch.float32), torch.zeros(64)
    cute.compare(host)(a, out)
    return bool((out == 2 * a).all())


def a_plain_kernel_of_numba() -> bool:
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        out[t + 1] = a[t]

    a, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    return said(lambda: cute.debug(kernel)[1, 64](a, out), OutOfBoundsError, "behind the end of out", "out[t + 1]")


def a_misaligned_vector() -> bool:
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        src = cute.make_tensor(cute.make_ptr(cute.Float32, a.ctypes.data + 4, cute.AddressSpace.gmem, 16), 4)
        dst = cute.make_rmem_tensor(4, cute.Float32)
        cute.autovec_copy(src, dst)
        out[t] = dst[0]

    a, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    return said(lambda: cute.debug(kernel)[1, 64](a, out), OutOfBoundsError, "misaligned", "16 bytes")


def tensors_by_torch() -> bool:
    @cute.kernel
    def kernel(a: cute.Tensor, out: cute.Tensor):
        t = cuda.threadIdx.x
        out[t + 60] = a[t]

    import torch

    room = torch.zeros(1 << 20, device="cuda")
    a, out = (cute.runtime.from_dlpack(room[i * 4096 : i * 4096 + 64]) for i in (1, 3))
    return said(lambda: cute.debug(kernel)[1, 64](a, out), OutOfBoundsError, "behind the end of out")


def a_loop_that_cannot_be_left() -> bool:
    """The last one: the context is lost."""

    @cuda.jit
    def kernel(a, out):
        while a[0] == 0 * arch.lane_idx():
            out[0] += 1

    a, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    debugged = cute.debug(kernel, timeout=1, most=2)
    return said(lambda: debugged[1, 32](a, out), DeadlockError, "cannot be ended", "context is lost")


@cuda.jit
def everything(a, h, wide, n, out):
    t = cuda.threadIdx.x
    held = cuda.shared.array(64, np.float32)
    held[t] = a[t]
    cuda.syncthreads()
    arch.barrier(barrier_id=1, number_of_threads=64)
    if n > 3:
        arch.barrier_arrive(barrier_id=2, number_of_threads=96)
    assert n < 70, "n is small"
    out[t] = held[63 - t] + wide[t] * h[t]
    cuda.atomic.add(out, t, 1.0)


ARGUMENTS = np.zeros(64, np.float32), np.zeros(64, np.float16), np.zeros(64, np.float64), 5, np.zeros(64, np.float32)


OTHERS = {f.__name__.replace("_", " "): f for f in (
    compare_alike, compare_different, compare_a_host_function, a_plain_kernel_of_numba, a_misaligned_vector,
    tensors_by_torch, a_loop_that_cannot_be_left,
)}  # fmt: skip
