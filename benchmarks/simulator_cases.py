# SPDX-License-Identifier: Apache-2.0
"""Kernels whose simulation with all checks is timed; `benchmarks.simulator --against` runs this file with older trees.

    PYTHONPATH=TREE python benchmarks/simulator_cases.py TREE CASE [alone]

With `alone` the threads of a block do not run together. Prints, as JSON, the CPU seconds of one simulation after a
small one, and the MiB by which the process grew; or why there is none. What makes the data and the reference is not
counted. It uses what the head of 2026-11-22 has.
"""

import json
import math
import resource
import sys
import time
from pathlib import Path

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack

ROW = 1024


class Simulate:
    """`cute.simulate`, whose launches are timed."""

    seconds = 0.0

    def __init__(self, kernel, **options):
        self.simulated = cute.simulate(kernel, **options)

    def __getitem__(self, config):
        def launch(*args):
            start = time.process_time()
            self.simulated[config](*args)
            Simulate.seconds += time.process_time() - start

        return launch


@cuda.jit
def axpy(x, y, out):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < out.shape[0]:
        out[i] = x[i] * cute.Float32(2.0) + y[i]


@cuda.jit
def softmax(x, out):
    """A row of 1,024 for each block of 256."""
    t, row = cuda.threadIdx.x, cuda.blockIdx.x
    parts = cuda.shared.array(256, np.float32)
    most = x[row, t]
    for i in range(t, ROW, 256):
        most = max(most, x[row, i])
    parts[t] = most
    cuda.syncthreads()
    step = 128
    while step > 0:
        if t < step:
            parts[t] = max(parts[t], parts[t + step])
        cuda.syncthreads()
        step //= 2
    most = parts[0]
    cuda.syncthreads()
    total = cute.Float32(0)
    for i in range(t, ROW, 256):
        total += math.exp(x[row, i] - most)
    parts[t] = total
    cuda.syncthreads()
    step = 128
    while step > 0:
        if t < step:
            parts[t] += parts[t + step]
        cuda.syncthreads()
        step //= 2
    total = parts[0]
    for i in range(t, ROW, 256):
        out[row, i] = math.exp(x[row, i] - most) / total


@cuda.jit
def spins(count, ctas):
    """All blocks wait for each other."""
    if cuda.threadIdx.x == 0:
        arch.atomic_add(count.iterator, 1, sem="acq_rel", scope="gpu")
        while arch.load(count.iterator, cute.Int32, sem="acquire", scope="gpu") < ctas:
            pass
    cuda.syncthreads()


@cuda.jit
def turnstile(turn, total):
    """Each block waits for the one before."""
    if cuda.threadIdx.x == 0:
        while arch.load(turn.iterator, cute.Int32, sem="acquire", scope="gpu") != cuda.blockIdx.x:
            pass
        total[0] += cuda.blockIdx.x
        arch.atomic_exch(turn.iterator, cuda.blockIdx.x + 1, sem="release", scope="gpu")
    cuda.syncthreads()


def elementwise(blocks):
    x = np.random.default_rng(0).random(blocks * 256, dtype=np.float32)
    y, out = x.copy(), np.zeros_like(x)
    Simulate(axpy, checks=True)[blocks, 256](x, y, out)
    assert (out == x * np.float32(2) + y).all()


def raw_gemm(m, n, k):
    from tests.sim import gemm_kernel

    gemm_kernel.simulate = Simulate
    gemm_kernel.run(m, n, k, np.random.default_rng(0), checks=True)


def rows(count):
    x = np.random.default_rng(0).random((count, ROW), dtype=np.float32)
    out = np.zeros_like(x)
    Simulate(softmax, checks=True)[count, 256](x, out)
    assert np.abs(out.sum(1) - 1).max() < 1e-4


def attention(queries, keys, d):
    from numba_cute.kernels.attention import plan
    from numba_cute.kernels.attention.plan import Options

    q, k, v = (np.random.default_rng(0).random((1, n, 1, d)).astype(cute.BFloat16.numpy) for n in (queries, keys, keys))
    o, lse = np.zeros_like(q), np.zeros((1, 1, queries), np.float32)
    made = Options(1 / math.sqrt(d))
    kernel, args, grid, block = plan.arguments(q, k, v, o, lse, np.zeros(1, np.int32), 2, made, plan.ALL, None, ())
    Simulate(kernel, arch="sm_90a", checks=True)[grid, block](*args)


def waiting(blocks):
    count = np.zeros(1, np.int32)
    Simulate(spins, checks=True)[blocks, 32](from_dlpack(count), blocks)
    assert count[0] == blocks


def in_turn(blocks):
    turn, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    Simulate(turnstile, checks=True)[blocks, 32](from_dlpack(turn), total)
    assert total[0] == blocks * (blocks - 1) // 2


CASES = {
    "elementwise, 1,000 CTAs of 256": (elementwise, (1000,), (2,)),
    "GEMM, tiles of 128x256x512, 2 CTAs": (raw_gemm, (256, 256, 512), (256, 256, 64)),
    "GEMM, tiles of 128x256x512, 132 CTAs": (raw_gemm, (256 * 66, 256, 512), (256, 256, 64)),
    "attention, 256x256x128": (attention, (256, 256, 128), (128, 128, 128)),
    "softmax of 65,536": (rows, (64,), (1,)),
    "40 spinning CTAs": (waiting, (40,), (1,)),
    "20 CTAs in a turnstile": (in_turn, (20,), (1,)),
    "elementwise, 4,000 CTAs of 256": (elementwise, (4000,), (2,)),
}


ALONE = ("GEMM, tiles of 128x256x512, 2 CTAs", "attention, 256x256x128")
"""Cases that are timed lane by lane too."""


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(tree, name, how=""):
    sys.path[:0] = [tree, str(Path(tree) / "examples")]
    if how == "alone":
        from numba_cute.sim import launch

        launch.may_share = lambda *_: False
    case, args, small = CASES[name]
    try:
        case(*small)  # imports, and what the front end judges once
        before, Simulate.seconds = peak(), 0.0
        case(*args)
        print(json.dumps({"seconds": round(Simulate.seconds, 3), "MiB": round(peak() - before)}))
    except Exception as e:
        print(json.dumps({"lacks": f"{type(e).__name__}: {e}".splitlines()[0][:200]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
