# SPDX-License-Identifier: Apache-2.0
"""Pipelines: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack

TILE, STAGES, CONSUMERS = 128, 3, 2


@cuda.jit
def scale(tma, source, out, factor):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    stages = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 128)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        tx_count=TILE * 4,  # the bytes that fill a stage
        producer_group=CooperativeGroup(Agent.Thread),  # TMA: the one lane that announces the bytes
        consumer_group=CooperativeGroup(Agent.Thread, CONSUMERS),  # one lane of each consuming warp releases
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
        name="tiles",
    )
    producer, consumer = pipe.make_participants()
    tiles = cute.local_tile(source, (TILE,), (None,))
    to, what = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(stages, 0, 1), cute.group_modes(tiles, 0, 1)
    )
    if tidx < 32:
        for tile in range(tiles.shape[1]):
            stage = producer.acquire_and_advance()
            cute.copy(tma, what[None, tile], to[None, stage.index], tma_bar_ptr=stage.barrier)
        producer.tail()  # the block may not end while a stage is in use
    else:
        for tile in range(tiles.shape[1]):
            stage = consumer.wait_and_advance()
            for i in range(tidx - 32, TILE, 32 * CONSUMERS):
                out[tile * TILE + i] = factor * stages[i, stage.index]
            arch.sync_warp()  # all lanes have read: one of them releases for all
            stage.release()


x = np.random.default_rng(0).standard_normal(6 * TILE, dtype=np.float32)
out = np.zeros_like(x)
load = cpasync.CopyBulkTensorTileG2SOp()
tma, source = cpasync.make_tiled_tma_atom(load, from_dlpack(x), cute.make_layout(TILE), (TILE,))
cute.simulate(scale)[1, 32 * (1 + CONSUMERS)](tma, source, out, np.float32(3))
np.testing.assert_array_equal(out, 3 * x)


proof = cute.simulate(scale).prove()[1, 32 * (1 + CONSUMERS)](tma, source, out, np.float32(3))
assert proof
print(proof.memory)
