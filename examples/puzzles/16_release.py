# SPDX-License-Identifier: Apache-2.0
"""Puzzle 16. Before the release.

One lane releases for its warp. What must all lanes have done before it does?
"""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack

TILE, TILES, STAGES = 64, 5, 2


@cuda.jit
def double(tma, source, out):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    stages = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 128)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        tx_count=TILE * 4,
        producer_group=CooperativeGroup(Agent.Thread),
        consumer_group=CooperativeGroup(Agent.Thread, 2),
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
    )
    producer, consumer = pipe.make_participants()
    tiles = cute.local_tile(source, (TILE,), (None,))
    to, what = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(stages, 0, 1), cute.group_modes(tiles, 0, 1)
    )
    if tidx < 32:
        for tile in range(TILES):
            stage = producer.acquire_and_advance()
            cute.copy(tma, what[None, tile], to[None, stage.index], tma_bar_ptr=stage.barrier)
        producer.tail()
    else:
        for tile in range(TILES):
            stage = consumer.wait_and_advance()
            out[tile * TILE + tidx - 32] = 2 * stages[tidx - 32, stage.index]
            ___
            stage.release()


x = np.arange(TILE * TILES, dtype=np.float32)
out, op = np.zeros_like(x), cpasync.CopyBulkTensorTileG2SOp()
tma, source = cpasync.make_tiled_tma_atom(op, from_dlpack(x), cute.make_layout(TILE), (TILE,))
cute.simulate(double)[1, 96](tma, source, out)
np.testing.assert_array_equal(out, 2 * x)

print("right")
