# SPDX-License-Identifier: Apache-2.0
"""Profiling with the timeline: the script of docs/tutorials."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup

TILE, TILES, STAGES, WARP = 64, 4, 2, 32
ONE_WARP = CooperativeGroup(Agent.Warp)


@cuda.jit
def squares(x, y):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    stages = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 16)
    pipe = pipeline.PipelineAsync.create(
        num_stages=STAGES,
        producer_group=ONE_WARP,
        consumer_group=ONE_WARP,
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
    )
    producer, consumer = pipe.make_participants()
    if tidx < WARP:
        for tile in range(TILES):
            cute.range_push("wait for room", tile)
            stage = producer.acquire_and_advance()
            cute.range_pop()
            cute.range_push("fetch", tile)
            for i in range(tidx, TILE, WARP):
                stages[i, stage.index] = x[tile * TILE + i]
            stage.commit()
            cute.range_pop()
        producer.tail()
    else:
        for tile in range(TILES):
            cute.range_push("wait for data", tile)
            stage = consumer.wait_and_advance()
            cute.range_pop()
            cute.range_push("compute", tile)
            for i in range(tidx - WARP, TILE, WARP):
                y[tile * TILE + i] = stages[i, stage.index] ** 2
            stage.release()
            cute.range_pop()


x = np.arange(TILE * TILES, dtype=np.float32)
y = np.zeros_like(x)
record = cute.timeline(cute.simulate(squares)[1, 2 * WARP], x, y)
np.testing.assert_array_equal(y, x**2)
names = sorted({r.name for r in record.ranges})
for name in names:
    print(f"{name:14} {sum(r.name == name for r in record.ranges)} times")


ends = {(r.name, r.payload): r.stop for r in record.ranges}
assert all(ends["fetch", tile] < ends["compute", tile] for tile in range(TILES))
print("fetched before computed, every tile")
