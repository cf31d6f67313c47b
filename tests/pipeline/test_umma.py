# SPDX-License-Identifier: Apache-2.0
"""The pipelines of Blackwell's matrix unit, in the simulator and through the assembler."""

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from numba_cute.sim import SimError

from ..conftest import assert_close
from . import umma_kernels as kernels
from .umma_kernels import THREADS, K, M, N

ARCH = "sm_100a"
SLOW = pytest.mark.slow


def operand(x):
    """(blocks, rows, 16) as the matrix unit reads it: 16-byte pieces of K, each (rows, 8)."""
    blocks, rows, k = x.shape
    return np.ascontiguousarray(x.reshape(blocks, rows, k // 8, 8).transpose(0, 2, 1, 3)).reshape(blocks, -1)


def problem(rng, tiles, blocks, ctas=1):
    """(stages as words (ctas, tiles * blocks, words), the product (tiles * ctas * M, N) in float64)."""
    a = rng.standard_normal((tiles, blocks, M * ctas, K), np.float32).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((tiles, blocks, N, K), np.float32).astype(ml_dtypes.bfloat16)
    want = np.einsum("tbmk,tbnk->tmn", a.astype(np.float64), b.astype(np.float64)).reshape(-1, N)
    parts = []
    for c in range(ctas):
        mine = operand(a[:, :, c * M : (c + 1) * M].reshape(-1, M, K))
        half = operand(b[:, :, c * N // ctas : (c + 1) * N // ctas].reshape(-1, N // ctas, K))
        parts.append(np.concatenate([mine, half], axis=1).view(np.int32))
    return np.stack(parts), want


def stages_of(words):
    return np.ascontiguousarray(words[0]).ravel()


def tensor(array):
    return lambda place: from_dlpack(place(array))


@pytest.mark.parametrize(
    ("stages", "acc_stages"),
    [(2, 2), *(pytest.param(s, a, marks=SLOW) for s, a in ((1, 1), (3, 1), (4, 2), (5, 1), (6, 2), (7, 1), (8, 2)))],
)
@pytest.mark.parametrize(("tiles", "blocks"), [(3, 4), *(pytest.param(t, 1, marks=SLOW) for t in (0, 1))])
def test_tma_feeds_the_matrix_unit_and_threads_read_its_results(run, rng, stages, acc_stages, tiles, blocks):
    words, want = problem(rng, max(tiles, 1), blocks)
    source, out = stages_of(words), np.zeros_like(want, dtype=np.float32)

    def check():
        if tiles:
            assert_close(out, want, atol=1e-4, rtol=1e-5)

    args = [tensor(source), out, np.int32(tiles), np.int32(blocks)]
    run(kernels.tma_kernel(stages, acc_stages), 1, THREADS, args, outputs=[out], check=check, arch=ARCH)


def test_tensor_memory_that_is_not_freed_is_reported():
    def kernel():
        slot = cute.utils.SmemAllocator().allocate_array(cute.Int32, 1)
        kernels.allocate(slot, 32, 1)

    with pytest.raises(SimError, match="32 columns .*CTA 0 still allocated"):
        cute.simulate(kernel, arch=ARCH)[1, 32]()


def test_an_accumulator_read_before_its_multiply_is_done_is_reported(rng):
    words, _ = problem(rng, 1, 1)

    def kernel(source):
        smem = cute.utils.SmemAllocator()
        buffer, slot = smem.allocate_tensor(cute.Int32, cute.make_layout(words.shape[2]), 128), smem.allocate(4, 4)
        slot = cute.recast_ptr(slot, dtype=cute.Int32)
        kernels.allocate(slot, 32, 1)
        cute.arch.sync_threads()
        for w in range(cute.arch.thread_idx()[0], words.shape[2], 32):
            buffer[w] = source[0, 0, w]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        tmem = kernels.allocated(slot)
        kernels.multiply(tmem, buffer.iterator.address, False, 1)
        kernels.read_accumulator(cute.make_rmem_tensor(N, cute.Float32), tmem, 0)

    with pytest.raises(SimError, match="(?s)tcgen05_mma_ss .* writes it: nothing waited"):
        cute.simulate(kernel, arch=ARCH)[1, 32](words)
