# SPDX-License-Identifier: Apache-2.0
"""Compute scores once more: a warp, those of its 16 rows, by mma.sync, whose sums lie in registers as wgmma's do."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import warp

from .products import multiply


def make_again(form):
    """The function that does it; None for a form that needs none."""
    if not form.lazy:
        return None
    d, tile_n = form.d, form.tile_n
    tiled_mma = cute.make_tiled_mma(warp.MmaF16BF16Op(form.dtype, cute.Float32, (16, 8, 16)), (1, 1, 1), (16, 16, 16))
    matrices = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), form.dtype)
    of_q, of_k = cute.make_tiled_copy_A(matrices, tiled_mma), cute.make_tiled_copy_B(matrices, tiled_mma)

    @cuda.jit
    def again(sQ, sK, acc, tile, stage, thread):
        """Write the scores of a warp's rows of a tile of Q, and of a stage of K, to a warpgroup's accumulator. A whole
        warp. thread: of the warpgroup."""
        acc.fill(0)
        sums = cute.make_tensor(acc.iterator, cute.make_layout((4, 1, tile_n // 8), stride=(1, 0, 4)))
        q = cute.local_tile(sQ[None, None, tile], (16, 16), (cute.Int32(thread // 32), None))
        k = cute.local_tile(sK[None, None, stage], (tile_n, 16), (0, None))
        multiply(tiled_mma, of_q, of_k, thread % 32, q[None, None, 0], k[None, None, 0], sums)  # to nothing
        for i in cute.range(1, d // 16, unroll=1):
            multiply(tiled_mma, of_q, of_k, thread % 32, q[None, None, i], k[None, None, i], sums)
        arch.sync_warp()  # all lanes have read

    return again
