# SPDX-License-Identifier: Apache-2.0
"""Warp specialisation in three small kernels: a producer, a consumer, and groups that take turns.

python examples/warp_specialization.py               in the simulator; prints who waited when
python examples/warp_specialization.py --html out    also writes the timelines as pages
python examples/warp_specialization.py --gpu         on a GPU (sm_90 or later, with PyTorch)
"""

import argparse
from pathlib import Path

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack
from numba_cute.sim import Trace

TILE, STAGES, TILES, WARP = 128, 2, 6, 32
ONE = CooperativeGroup(Agent.Thread)
ONE_WARP = CooperativeGroup(Agent.Warp)
DEPTH, GROUPS = 2, 3


@cuda.jit
def producer_warp(source, out):
    """Lesson 1, the producer. Warp 0 fills stages, warp 1 doubles them; both are ordinary threads.

    The producer runs ahead by at most STAGES tiles: `acquire` waits until a stage is empty.
    """
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    stages = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 16)
    pipe = pipeline.PipelineAsync.create(
        num_stages=STAGES,
        producer_group=ONE_WARP,  # its 32 threads commit a stage
        consumer_group=ONE_WARP,  # 32 threads release it
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
        name="tiles",
    )
    if tidx < WARP:
        producer = pipe.make_producer()
        for tile in range(TILES):
            stage = producer.acquire_and_advance()
            for i in range(tidx, TILE, WARP):
                stages[i, stage.index] = source[tile * TILE + i]
            stage.commit()
        producer.tail()
    else:
        consumer = pipe.make_consumer()
        for tile in range(TILES):
            stage = consumer.wait_and_advance()
            for i in range(tidx - WARP, TILE, WARP):
                out[tile * TILE + i] = 2 * stages[i, stage.index]
            stage.release()


@cuda.jit
def consumer_warps(tma, source, out):
    """Lesson 2, consumers of TMA. One lane of warp 0 starts copies; warps 1 and 2 share each stage.

    A stage is full when its bytes have come (tx_count), and empty when both warps have released it.
    """
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    stages = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, STAGES)), 128)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=ONE,
        consumer_group=CooperativeGroup(Agent.Thread, 2),  # one lane of each warp says that it is done
        tx_count=TILE * 4,
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
        name="tiles",
    )
    producer, consumer = pipe.make_participants()
    tiles = cute.local_tile(source, (TILE,), (None,))
    to_smem, from_gmem = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(stages, 0, 1), cute.group_modes(tiles, 0, 1)
    )
    if tidx < WARP:
        for tile in range(TILES):
            stage = producer.acquire_and_advance()
            cute.copy(tma, from_gmem[None, tile], to_smem[None, stage.index], tma_bar_ptr=stage.barrier)
        producer.tail()
    else:
        for tile in range(TILES):
            ahead = consumer.try_wait()  # a token: ask early, wait later
            stage = consumer.wait_and_advance(ahead)
            for i in range(tidx - WARP, TILE, 2 * WARP):
                out[tile * TILE + i] = 2 * stages[i, stage.index]
            arch.sync_warp()  # all lanes have read before one of them releases
            stage.release()


@cuda.jit
def ordered_warps(out):
    """Lesson 3, groups in order. Three warps go through two sections, always in the order 0, 1, 2.

    While warp 1 is in the first section, warp 0 may be in the second: that is what attention kernels do with
    their matrix multiplies and their softmax.
    """
    tidx, _, _ = arch.thread_idx()
    warp = tidx // WARP
    smem = utils.SmemAllocator()
    order = pipeline.PipelineOrder.create(
        depth=DEPTH,
        length=GROUPS,
        group_id=warp,
        producer_group=ONE_WARP,
        barrier_storage=smem.allocate_array(cute.Int64, DEPTH * GROUPS),
        name="turn",
    )
    visits = smem.allocate_tensor(cute.Int32, cute.make_layout(DEPTH), 16)
    if tidx < DEPTH:
        visits[tidx] = 0
    arch.sync_threads()
    for i in range(DEPTH * TILES):
        section = i % DEPTH
        order.wait()
        if tidx % WARP == 0:
            out[section, visits[section]] = warp
            visits[section] += 1
        order.arrive()


def timeline(trace: Trace, width: int = 72) -> str:
    """A row for each warp: `.` where all its lanes wait, `#` where one runs (one lane at a time does); and
    `=` where copies are under way."""
    end = max((s.end for s in trace.spans), default=1) + 1
    edges = np.linspace(0, end, width + 1)
    rows: dict[str, np.ndarray] = {}
    for span in trace.spans:
        inside = np.clip(np.minimum(edges[1:], span.end) - np.maximum(edges[:-1], span.start), 0, None)
        name = span.row if span.row.startswith("warp") else "copies"
        rows[name] = rows.get(name, 0) + inside * width / end  # lanes that wait, or copies, on average
    lines = []
    for name, busy in sorted(rows.items()):
        marks = np.where(busy > 0, "=", " ") if name == "copies" else np.where(busy > WARP - 0.6, ".", "#")
        lines.append(f"  {name:8}|{''.join(marks)}|")
    return "\n".join(lines)


def tma_arguments(array):
    """The TMA atom of tiles of a vector, and its tensor of coordinates."""
    return cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), from_dlpack(array), cute.make_layout((TILE,)), (TILE,)
    )


def lessons(place):
    """(name, kernel, threads, arguments, output, what it must hold); `place` puts an array where the kernel runs."""
    x = np.random.default_rng(0).standard_normal(TILES * TILE, dtype=np.float32)
    source = place(x)
    turns = np.tile(np.arange(GROUPS, dtype=np.int32), (DEPTH, TILES))
    yield "producer", producer_warp, 2 * WARP, (source,), place(np.zeros_like(x)), 2 * x
    yield "consumers of TMA", consumer_warps, 3 * WARP, tma_arguments(source), place(np.zeros_like(x)), 2 * x
    yield "ordered groups", ordered_warps, GROUPS * WARP, (), place(np.zeros_like(turns)), turns


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="run on the GPU, which draws no timeline")
    parser.add_argument("--html", metavar="FOLDER", type=Path, help="write each timeline as a page")
    options = parser.parse_args()
    place = np.asarray
    if options.gpu:
        import torch

        place = lambda a: torch.from_numpy(a).cuda()  # noqa: E731
    for name, kernel, threads, arguments, out, want in lessons(place):
        if options.gpu:
            kernel[1, threads](*arguments, out)
            torch.cuda.synchronize()
            got = out.cpu().numpy()
        else:
            trace = Trace()
            cute.simulate(kernel, trace=trace)[1, threads](*arguments, out)
            got = out
            print(f"\n{name}: # runs, . waits, = a copy is under way; time counts instructions\n{timeline(trace)}")
            if options.html:
                options.html.mkdir(parents=True, exist_ok=True)
                trace.html(options.html / f"{name.replace(' ', '_')}.html")
        np.testing.assert_array_equal(got, want)
        print(f"{name}: right")


if __name__ == "__main__":
    main()
