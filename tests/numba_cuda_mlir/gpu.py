# SPDX-License-Identifier: Apache-2.0
"""Kernels of numba-cuda-mlir that use this library, launched on a GPU by that package's arrays, streams and contexts,
beside plain ones of it; then what a launch costs. Run by hand where both packages and a GPU are:

    python -m tests.numba_cuda_mlir.gpu
"""

from __future__ import annotations

import statistics
import time
import traceback
import warnings

import numba
import numpy as np
from numba_cuda_mlir import cuda

import numba_cute as cute

from . import kernels

warnings.simplefilter("ignore")
CASES = []


def case(function):
    CASES.append(function)
    return function


@cuda.jit
def scaled(x, n):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = x[i] * n + cute.size(kernels.LANES)


@cuda.jit
def of_tensor(t, n):
    i = cuda.grid(1)
    if i < cute.size(t):
        t[i] = t[i] + n


@cuda.jit
def in_clusters(x):
    x[cuda.grid(1)] = cute.arch.block_idx_in_cluster() + cute.arch.cluster_size()


def numbers(n=64):
    return np.arange(n, dtype=np.float32)


@case
def arrays_of_the_package():
    x = cuda.to_device(numbers())
    for n in range(4):  # the third is in machine code
        scaled[2, 32](x, n)
    want = numbers()
    for n in range(4):
        want = want * n + 32
    np.testing.assert_array_equal(x.copy_to_host(), want)
    y = cuda.device_array(64, np.float32)
    kernels.plain[2, 32](y)
    scaled[2, 32](y, 3)
    kernels.plain[1, 32](y)
    np.testing.assert_array_equal(y.copy_to_host(), [2] * 32 + [38] * 32)


@case
def names():
    function = cuda.jit(kernels.names)
    x = cuda.to_device(numbers(32))
    function[1, 32](x, 3)
    np.testing.assert_allclose(x.copy_to_host(), kernels.of_names(), rtol=1e-6)


@case
def host_arrays_and_hints():
    x = numbers()
    scaled[2, 32](x, 2)
    np.testing.assert_array_equal(x, numbers() * 2 + 32)
    scaled[2, 32](cuda.InOut(x), 1)
    np.testing.assert_array_equal(x, numbers() * 2 + 64)
    scaled[2, 32](cuda.In(x), 1)
    np.testing.assert_array_equal(x, numbers() * 2 + 64)


@case
def tensors_and_other_arrays():
    x = cuda.to_device(numbers())
    for n in (1, 2, 3):
        of_tensor[2, 32](cute.runtime.from_dlpack(x), n)
    np.testing.assert_array_equal(x.copy_to_host(), numbers() + 6)
    y = numba.cuda.to_device(numbers())
    scaled[2, 32](y, 2)
    kernels.plain[1, 32](y)
    np.testing.assert_array_equal(y.copy_to_host(), np.where(np.arange(64) < 32, 2, numbers() * 2 + 32))
    import torch

    t = torch.arange(64, dtype=torch.float32, device="cuda")
    for n in (1, 2, 3):
        scaled[2, 32](t, n)
        of_tensor[2, 32](cute.runtime.from_dlpack(t), n)
    want = numbers()
    for n in (1, 2, 3):
        want = want * n + 32 + n
    np.testing.assert_array_equal(t.cpu().numpy(), want)


@case
def streams():
    stream, other = cuda.stream(), cuda.stream()
    big = np.zeros(1 << 24, np.float32)
    x = cuda.to_device(big, stream=stream)
    for _ in range(4):
        scaled[big.size // 256, 256, stream](x, 1)
    event = cuda.event()
    event.record(stream)
    event.wait(other)
    scaled[big.size // 256, 256, other](x, 2)
    host = x.copy_to_host(stream=other)
    other.synchronize()
    assert (host == 4 * 32 * 2 + 32).all()
    import torch

    side = torch.cuda.Stream()
    t = torch.zeros(64, device="cuda")
    torch.cuda.synchronize()
    for _ in range(3):
        scaled[2, 32, side](t, 1)
    side.synchronize()
    assert (t == 96).all()


@case
def clusters_and_shared_memory():
    x = cuda.device_array(64, np.float32)
    for _ in range(3):
        in_clusters[2, 32, 0, 0, 2](x)
    np.testing.assert_array_equal(x.copy_to_host(), [2] * 32 + [3] * 32)
    in_clusters.configure(2, 32, sharedmem=64 * 1024)(x)
    np.testing.assert_array_equal(x.copy_to_host(), [1] * 64)


@case
def late_and_given():
    x = cuda.device_array(32, np.float32)
    kernels.late[1, 32](x)
    np.testing.assert_array_equal(x.copy_to_host(), [32] * 32)
    kernels.given[1, 32](cute.make_layout(32, stride=3), x)
    np.testing.assert_array_equal(x.copy_to_host(), 3 * np.arange(32))


@case
def signatures():
    types = cuda.types
    made = cuda.jit(types.void(types.float32[::1], types.int64))(scaled.py_func)
    x = cuda.to_device(numbers())
    made[2, 32](x, 2)
    np.testing.assert_array_equal(x.copy_to_host(), numbers() * 2 + 32)
    assert made.get_regs_per_thread(), made.inspect_asm()


@case
def forall():
    x = cuda.to_device(numbers())
    scaled.forall(64)(x, 2)
    np.testing.assert_array_equal(x.copy_to_host(), numbers() * 2 + 32)


@case
def contexts():
    for number in range(len(cuda.gpus)):
        with cuda.gpus[number]:
            x = cuda.to_device(numbers())
            for _ in range(3):
                scaled[2, 32](x, 1)
            np.testing.assert_array_equal(x.copy_to_host(), numbers() + 96)


@case
def errors():
    @cuda.jit
    def wrong(x):
        x[0] = cute.size(kernels.LANES)
        cuda.inline_ptx("")

    try:
        wrong[1, 1](cuda.to_device(numbers()))
    except cute.CuteError as e:
        assert "has no attribute 'inline_ptx'" in str(e) and "in kernel wrong" in str(e)
    else:
        raise AssertionError("it was not refused")


@case
def gemm():
    from numba_cute.kernels.gemm import dense, plan

    made = cuda.jit(**{"launch_bounds": dense.gemm.targetoptions["launch_bounds"]})(dense.gemm.py_func)
    assert type(made).__name__ == "MlirKernel", type(made)
    import torch

    from numba_cute.kernels.gemm import launches

    a, b = (torch.randn(512, 512, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.zeros(512, 512, device="cuda", dtype=torch.float16)
    cut = plan.USUAL
    args, grid = launches.arguments(a, b, c, cute.Float16, launches.clusters_here(cut), cut, None, None, None)
    for _ in range(3):
        made[grid, dense.THREADS](*args)
    torch.cuda.synchronize()
    torch.testing.assert_close(c, a @ b.T, rtol=1e-2, atol=1e-1)


def launch_cost(launch, *args):
    """Microseconds of the host per launch: the median of ten."""
    took = []
    for _ in range(12):
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            launch(*args)
        took.append((time.perf_counter() - start) / 200 * 1e6)
    return statistics.median(took[2:])


def costs():
    of_numba = numba.cuda.jit(scaled.py_func)
    theirs, ours = cuda.to_device(numbers()), numba.cuda.to_device(numbers())
    plain = cuda.jit(lambda x, n: None)
    for name, launch, args in (
        ("numba-cuda's kernel, its array", of_numba[2, 32], (ours, 1)),
        ("the bridge's kernel, that package's array", scaled[2, 32], (theirs, 1)),
        ("the bridge's kernel, kernel[grid, block] each time", lambda x, n: scaled[2, 32](x, n), (theirs, 1)),
        ("a plain kernel of that package", plain[2, 32], (theirs, 1)),
    ):  # fmt: skip
        print(f"{name}: {launch_cost(launch, *args):.2f} us")


def main():
    failed = 0
    for function in CASES:
        try:
            function()
            print("ok", function.__name__, flush=True)
        except Exception:  # noqa: BLE001 - the others run too
            failed += 1
            print("FAILED", function.__name__, flush=True)
            traceback.print_exc()
    costs()
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
