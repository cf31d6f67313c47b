# SPDX-License-Identifier: Apache-2.0
"""A user's program, for type checkers: storage and run-time structs, tensors, TMA and a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

TILE, STAGES = 128, 4
BUFFERS = cute.make_layout((TILE, STAGES))


@cute.struct
class Running:
    """Values known at run time; `limit` is whatever the constructor is given."""

    count: cute.Int32
    total: cute.Float32
    limit: int
    calls: cute.Int32 = cute.Int32(0)

    def add(self, x: float) -> int:
        self.calls += 1
        self.count += 1
        self.total = self.total + x
        if self.count == self.limit:
            self.count = 0
        return self.limit


@cute.struct
class Storage:
    barriers: cute.struct.MemRange[cute.Int64, 2 * STAGES]
    buffer: cute.struct.Align[cute.struct.MemRange[cute.Float32, cute.cosize(BUFFERS)], 1024]
    flag: cute.Int32


@cute.struct
class Whole:
    first: cute.struct.Align[Storage, 128]
    second: Storage


@cuda.jit  # type: ignore[untyped-decorator, unused-ignore]  # numba has no types
def kernel(tma: cute.CopyAtom, source: cute.Tensor, out: Any) -> None:
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    storage = smem.allocate(Storage)
    words: cute.Pointer = smem.allocate_array(cute.Int32, 4)
    buffers = storage.buffer.get_tensor(BUFFERS)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        tx_count=TILE * 4,
        barrier_storage=storage.barriers.data_ptr(),
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 1),
    )
    producer, consumer = pipe.make_participants()
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
    tiles = cute.local_tile(source, (TILE,), (None,))
    to_smem, from_gmem = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(buffers, 0, 1), cute.group_modes(tiles, 0, 1)
    )
    layout: cute.Layout = cute.make_layout((4, 8), stride=(8, 1))
    cute.make_rmem_tensor(layout, cute.Float16).fill(0)
    running = Running(0, 0.0, 3)
    if tidx < 32:
        for i in range(tiles.shape[1]):
            stage = producer.acquire_and_advance()
            cute.copy(tma, from_gmem[None, i], to_smem[None, stage.index], tma_bar_ptr=stage.barrier)
        producer.tail()
    else:
        mine = cute.Float32(0)
        for _i in cute.range_constexpr(4):
            handle = consumer.wait_and_advance()
            mine += buffers[tidx - 32, handle.index] * 2
            arch.sync_warp()
            handle.release()
            running.add(mine)
            state.advance()
        if tidx == 32:
            out[running.count] = mine + words.toint() + state.index


def arguments(x: np.ndarray[Any, Any]) -> tuple[cute.CopyAtom, cute.Tensor]:
    op = cpasync.CopyBulkTensorTileG2SOp()
    tma, source = cpasync.make_tiled_tma_atom(op, from_dlpack(x), cute.make_layout(TILE), (TILE,))
    return tma, source


def main() -> str:
    """Run the kernel in the simulator, and give its PTX."""
    args = arguments(np.zeros(512, np.float32))
    out = np.zeros(4, np.float32)
    cute.simulate(kernel)[1, 64](*args, out)
    ptx: str = cute.compile(kernel, (*args, out), arch="sm_90a").ptx
    return ptx
