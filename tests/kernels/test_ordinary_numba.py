# SPDX-License-Identifier: Apache-2.0
"""Ordinary Numba code works beside this library's, in one kernel."""

import math

import numpy as np
from numba import cuda, float32

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

TILE = 64


@cuda.jit(device=True)
def softplus(x):
    if x > 20:
        return x
    return math.log1p(math.exp(x))


@cuda.jit
def mixed(tma, source, scale, out, total, count):
    shared = cuda.shared.array(TILE, float32)
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, 1)), 128)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=1,
        tx_count=TILE * 4,
        barrier_storage=smem.allocate_array(cute.Int64, 2),
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 2),
    )
    producer, consumer = pipe.make_participants()
    tiles = cute.local_tile(source, (TILE,), (None,))
    to_smem, from_gmem = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(tile, 0, 1), cute.group_modes(tiles, 0, 1)
    )
    i = cuda.grid(1)
    if arch.warp_idx() == 0:
        stage = producer.acquire_and_advance()
        cute.copy(tma, from_gmem[None, cuda.blockIdx.x], to_smem[None, stage.index], tma_bar_ptr=stage.barrier)
        stage.commit()
    stage = consumer.wait_and_advance()
    shared[cuda.threadIdx.x] = tile[cuda.threadIdx.x, stage.index] * scale[cuda.threadIdx.x % scale.size]
    cuda.syncthreads()
    stage.release()
    value = softplus(shared[TILE - 1 - cuda.threadIdx.x])
    if i < out.shape[0]:
        out[i] = value
    if value > math.pi:
        cuda.atomic.add(count, 0, 1)
    cuda.atomic.max(total, cuda.blockIdx.x, value)


def test_arrays_shared_memory_device_functions_math_and_atomics_beside_tma(run, rng):
    x = rng.standard_normal(4 * TILE, dtype=np.float32) * 4
    scale = np.array([0.5, 2.0], np.float32)
    out, total, count = np.zeros_like(x), np.full(4, -1, np.float32), np.zeros(1, np.int32)
    want = np.logaddexp(0, (x * np.tile(scale, 2 * TILE)).reshape(4, TILE)[:, ::-1].astype(np.float64))

    def atom(place):
        load = cpasync.CopyBulkTensorTileG2SOp()
        return cpasync.make_tiled_tma_atom(load, from_dlpack(place(x)), cute.make_layout(TILE), (TILE,))

    def check():
        np.testing.assert_allclose(out.reshape(4, TILE), want, rtol=1e-5)
        np.testing.assert_allclose(total, want.max(axis=1), rtol=1e-5)
        assert count[0] == (want > math.pi).sum()

    args = [lambda place: atom(place)[0], lambda place: atom(place)[1], scale, out, total, count]
    run(mixed, 4, TILE, args, outputs=[out], inouts=[total, count], check=check)
