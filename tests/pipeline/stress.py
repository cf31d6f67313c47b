# SPDX-License-Identifier: Apache-2.0
"""Launch every Hopper pipeline kernel many times on a GPU: no wrong number, and no hang.

    python -m tests.pipeline.stress --launches 1000

A hang shows as no further output: run it under a time limit.
"""

import argparse
import itertools
import time

import numpy as np
import torch

import numba_cute as cute
from numba_cute.runtime import from_dlpack

from . import hopper_kernels as kernels
from .hopper_kernels import WORDS

COUNTS = np.array([7, 0, 1, 23, 2, 0, 40, 5] * 16, np.int32)


def device(array):
    return torch.from_numpy(np.ascontiguousarray(array)).cuda()


def stress(name, launches, call, out, want, done):
    """Launch, compare, poison, and again; `done` marks the elements that are written."""
    want, done = device(want), device(done)
    start, wrong = time.perf_counter(), 0
    for _ in range(launches):
        out.fill_(-(2**31))
        call()
        wrong += int(((out != want) & done).any())
    torch.cuda.synchronize()
    print(f"{name}: {launches} launches, {wrong} wrong, {time.perf_counter() - start:.1f} s", flush=True)
    return wrong


def threads(launches, rng):
    blocks, most = len(COUNTS), int(COUNTS.max())
    source = rng.integers(-1000, 1000, (blocks, most, WORDS), dtype=np.int32)
    want, done = source[..., ::-1] + 1, np.broadcast_to((np.arange(most) < COUNTS[:, None])[..., None], source.shape)
    src, out, counts = device(source), device(np.zeros_like(source)), device(COUNTS)
    wrong = 0
    for stages, p, c in itertools.product((1, 2, 3, 8), (1, 4), (1, 3)):
        for make in (kernels.async_kernel, kernels.cp_async_kernel):
            launch = cute.launch(make(stages, p, c), grid=(1, 1, blocks), block=32 * (p + c))
            call = launch.prepare(from_dlpack(src), out, counts)
            wrong += stress(f"{make.__name__} {stages} stages, {p} + {c} warps", launches, call, out, want, done)
        launch = cute.launch(kernels.store_kernel(stages, p), grid=(1, 1, blocks), block=32 * p)
        call = launch.prepare(src, from_dlpack(out), counts)
        wrong += stress(f"store_kernel {stages} stages, {p} warps", launches, call, out, want, done)
    return wrong


def clusters(launches, rng):
    blocks, most = len(COUNTS), int(COUNTS.max())
    counts, wrong = device(COUNTS), 0
    for (m, n), stages, (warps, unit) in itertools.product(
        ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (4, 2)), (1, 2, 4, 8), ((1, 32), (2, 32), (4, 128))
    ):
        a, b = (rng.integers(-1000, 1000, (blocks, x, most, WORDS), dtype=np.int32) for x in (m, n))
        want = a[:, :, None] + b[:, None, :, :, ::-1]
        rounds = (np.arange(most) < COUNTS[:, None])[:, None, None, :, None]
        out, on_a, on_b = device(np.zeros_like(want)), device(a), device(b)  # prepare() does not keep them
        kernel = kernels.tma_kernel(stages, warps, (m, n), unit)
        launch = cute.launch(kernel, grid=(m, n, blocks), block=32 * (warps + 1), cluster=(m, n))
        call = launch.prepare(from_dlpack(on_a), from_dlpack(on_b), out, counts)
        name = f"tma_kernel {m} x {n}, {stages} stages, {warps} warps, {unit} threads an arrival"
        wrong += stress(name, launches, call, out, want, np.broadcast_to(rounds, want.shape))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=1000)
    launches = parser.parse_args().launches
    rng = np.random.default_rng(0)
    wrong = threads(launches, rng) + clusters(launches, rng)
    raise SystemExit(f"{wrong} launches were wrong" if wrong else 0)


if __name__ == "__main__":
    main()
