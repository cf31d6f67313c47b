# SPDX-License-Identifier: Apache-2.0
"""Add up a vector over the GPUs of a host (all-reduce), in one kernel: each rank reads the others' memory over NVLink.

python examples/several_gpus.py                              4 simulated ranks, without a GPU
torchrun --nproc-per-node 2 examples/several_gpus.py         as many GPUs
"""

import argparse
import os

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_symmetric
from numba_cute.utils.distributed import Signals

THREADS = 128
READY, DONE, SLOTS = 0, 1, 2


@cuda.jit
def add_up(signals, peers, out):
    """out: the sums over the ranks of what lies in `peers` (elements, ranks)."""
    thread = cuda.threadIdx.x
    arrived = signals.epoch() * cuda.gridDim.x  # that many blocks have signalled since the first launch
    if thread == 0:  # all that came before on this GPU is done: say so, and wait for the other ranks
        for step in range(1, signals.world):
            signals.add((signals.rank + step) % signals.world, READY)
        for step in range(1, signals.world):
            signals.wait((signals.rank + step) % signals.world, READY, arrived)
    cute.arch.sync_threads()
    for i in range(cuda.grid(1), out.shape[0], cuda.gridsize(1)):
        total = cute.Float32(0)
        for rank in range(signals.world):
            total += peers[i, rank]
        out[i] = total
    cute.arch.sync_threads()
    if thread == 0:  # nobody ends before all have read: what comes next may change the memory
        for step in range(1, signals.world):
            signals.add((signals.rank + step) % signals.world, DONE)
        for step in range(1, signals.world):
            signals.wait((signals.rank + step) % signals.world, DONE, arrived)
        signals.advance(cuda.gridDim.x)


def simulate(ranks, n=300, launches=2):
    """Run it on simulated ranks, and compare."""
    x = cute.sim.symmetric((n,), np.float32, ranks)
    flags = from_symmetric(cute.sim.symmetric((SLOTS + 1, ranks), np.int32, ranks))
    signals = cute.sim.PerRank(*(Signals(flags, r) for r in range(ranks)))
    outs = [np.zeros(n, np.float32) for _ in range(ranks)]
    for launch in range(launches):
        for r, own in enumerate(x.arrays):
            own[:] = np.arange(n) + 100 * r + launch
        cute.simulate(add_up, ranks=ranks)[2, THREADS](signals, from_symmetric(x), cute.sim.PerRank(*outs))
        want = sum(x.arrays)
        for out in outs:
            np.testing.assert_array_equal(out, want)
    print(f"{ranks} simulated ranks, {launches} launches: all have the sums")


def run(n=1 << 20, launches=20):
    """Run it as one rank of torchrun's."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    x = symm_mem.empty(n, dtype=torch.float32, device=device)
    out = torch.empty(n, device=device)
    peers, signals = from_symmetric(x), Signals.create(SLOTS, limit=10.0, name="add_up")
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for launch in range(launches):
        x.copy_(torch.arange(n, device=device) % 1000 + 100 * dist.get_rank() + launch)
        start.record()
        add_up[64, THREADS](signals, peers, out)
        end.record()
        want = x.clone()
        dist.all_reduce(want)
        assert torch.equal(out, want), f"launch {launch}"
    torch.cuda.synchronize()
    signals.check()  # a rank that did not come is a cute.PeerError with its number
    if dist.get_rank() == 0:
        us = start.elapsed_time(end) * 1e3
        print(f"{dist.get_world_size()} GPUs, {n} elements: {us:.0f} us, the same sums as NCCL's")
    dist.destroy_process_group()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", type=int, default=4, help="that are simulated")
    given = options.parse_args()
    run() if "LOCAL_RANK" in os.environ else simulate(given.ranks)
