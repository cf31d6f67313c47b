# SPDX-License-Identifier: Apache-2.0
"""How fast a kernel moves memory between GPUs over NVLink: bulk copies (TMA) by some SMs, beside cudaMemcpyPeerAsync
and NCCL's send and receive; one way, and both ways at once.

    python -m benchmarks peers_rate [--ranks 2] [--mib 128]

Needs two GPUs and torch. A kernel pulls (loads from the peer) or pushes (stores to it), through shared memory, a block
on each of so many SMs. Rates are of one direction, the slower rank's.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import statistics
import sys
from pathlib import Path

from numba import cuda

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numba_cute as cute
from benchmarks.harness import Entry, Figure, Result
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync

CHUNK = 16384
"""Bytes of one bulk copy."""
STAGES, AHEAD = 12, 10
"""Chunks that shared memory holds, and how many loads run before the first is stored."""
ITEMS = CHUNK // 4
SMS = (1, 4, 8, 16, 32, 64, 128)
TURNS, CALLS = 3, 5
PATIENCE = 20
"""Seconds that one rate may take: then the process says where it is, and ends."""


@cuda.jit
def moved(source, target):
    """Copy a tensor (ITEMS, chunks) to another, chunk by chunk: each block takes every so manyth."""
    smem = utils.SmemAllocator()
    full = smem.allocate_array(cute.Int64, STAGES)
    held = smem.allocate_tensor(cute.Float32, cute.make_layout((ITEMS, STAGES)), byte_alignment=128)
    load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32, num_bits_per_copy=CHUNK * 8)
    store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Float32, num_bits_per_copy=CHUNK * 8)
    if cuda.threadIdx.x == 0:
        for stage in range(STAGES):
            arch.mbarrier_init(full + stage, 1)
        arch.mbarrier_init_fence()
        mine = (source.shape[1] - cuda.blockIdx.x + cuda.gridDim.x - 1) // cuda.gridDim.x
        for turn in range(mine + AHEAD):
            if turn < mine:
                stage = turn % STAGES
                # of the stores issued so far, the one that read this stage is not among the last ones
                arch.cp_async_bulk_wait_group(STAGES - AHEAD - 1, read=True)
                arch.mbarrier_arrive_and_expect_tx(full + stage, CHUNK)
                chunk = cuda.blockIdx.x + turn * cuda.gridDim.x
                cute.copy(load, source[None, chunk], held[None, stage], tma_bar_ptr=full + stage)
            if turn >= AHEAD:
                done = turn - AHEAD
                stage = done % STAGES
                arch.mbarrier_wait(full + stage, (done // STAGES) % 2)
                cute.copy(store, held[None, stage], target[None, cuda.blockIdx.x + done * cuda.gridDim.x])
                arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


# ---------------------------------------------------------------------- one rank
class Rank:
    """One of the processes that measure. mib: how much is moved at once."""

    def __init__(self, mib: int) -> None:
        import torch
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symm_mem

        self.torch, self.dist = torch, dist
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        dist.init_process_group("nccl", device_id=self.device)
        self.peer, self.bytes = (self.rank + 1) % self.world, mib << 20
        self.shared = symm_mem.empty(self.bytes // 4, dtype=torch.float32, device=self.device)
        self.shared.fill_(self.rank + 1)
        self.own = torch.zeros(self.bytes // 4, dtype=torch.float32, device=self.device)
        self.peers = cute.runtime.from_symmetric(self.shared.view(-1, ITEMS).t(), assumed_align=128)
        self.mine = cute.runtime.from_dlpack(self.own.view(-1, ITEMS).t(), assumed_align=128)
        torch.cuda.synchronize()
        dist.barrier()

    def pull(self, sms: int):
        launch = cute.launch(moved, grid=sms, block=32)
        return lambda: launch(self.peers[None, None, self.peer], self.mine)

    def push(self, sms: int):
        launch = cute.launch(moved, grid=sms, block=32)
        return lambda: launch(self.mine, self.peers[None, None, self.peer])

    def engine(self):
        """The driver's copy from peer to peer, which the copy engines do: from this process's memory there, for it
        takes no memory that is mapped by handles."""
        from cuda.bindings import runtime

        there = self.torch.zeros(self.bytes // 4, device=self.torch.device("cuda", self.peer))
        self.own.copy_(there)  # torch lets the devices access each other
        stream = self.torch.cuda.current_stream().cuda_stream

        def call():
            failed, *_ = runtime.cudaMemcpyPeerAsync(
                self.own.data_ptr(), self.device.index, there.data_ptr(), self.peer, self.bytes, stream
            )
            assert not int(failed), failed

        return call

    def nccl(self, both: bool):
        dist = self.dist
        send = dist.P2POp(dist.isend, self.shared, self.peer)
        receive = dist.P2POp(dist.irecv, self.own, (self.rank - 1) % self.world)
        ops = [send, receive] if both else [receive if self.rank == 0 else send]

        def call():
            for work in dist.batch_isend_irecv(ops):
                work.wait()

        return call

    def rate(self, call, both: bool) -> float:
        """GB/s of one direction. both: whether all ranks do it at once; else rank 0 alone."""
        works = both or self.rank == 0
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]
        found = []
        for turn in range(TURNS + 1):
            self.torch.cuda.synchronize()
            self.dist.barrier()
            self.torch.cuda.synchronize()
            if works:
                count = 1 if turn == 0 else CALLS
                events[0].record()
                for _ in range(count):
                    call()
                events[1].record()
                events[1].synchronize()
                found.append(self.bytes * count / events[0].elapsed_time(events[1]) * 1e-6)
        self.torch.cuda.synchronize()
        mine = statistics.median(found[1:]) if works else float("inf")
        all_rates = [None] * self.world
        self.dist.all_gather_object(all_rates, mine)
        return min(all_rates)  # type: ignore[type-var]

    def check(self, call, target, value) -> None:
        """Raise an error if a copy does not bring what it should."""
        self.own.fill_(-1)
        self.torch.cuda.synchronize()
        self.dist.barrier()
        call()
        self.torch.cuda.synchronize()
        self.dist.barrier()
        assert bool((target == value).all()), f"{target.unique()[:4]} and not {value}"
        self.shared.fill_(self.rank + 1)

    def measure(self) -> dict[str, float]:
        self.check(self.pull(16), self.own, self.peer + 1)
        self.check(self.push(16), self.shared, -1)
        print(f"rank {self.rank}: copies are right", flush=True)
        found: dict[str, float] = {}

        def rate(name: str, call, both: bool) -> None:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            found[name] = self.rate(call, both)
            if self.rank == 0:
                print(f"{name}: {found[name]:.1f} GB/s", flush=True)

        for ways, both in (("one way", False), ("both ways", True)):
            for sms in SMS:
                rate(f"TMA pull, {sms} SMs, {ways}", self.pull(sms), both)
            for sms in SMS:
                rate(f"TMA push, {sms} SMs, {ways}", self.push(sms), both)
            rate(f"cudaMemcpyPeerAsync, {ways}", self.engine(), both)
            rate(f"NCCL send/recv, {ways}", self.nccl(both), True)  # of NCCL both ranks take part, one way too
        faulthandler.cancel_dump_traceback_later()
        return found


def main(mib: int) -> None:
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)
    one = Rank(mib)
    print(f"rank {one.rank} is there", flush=True)
    found = one.measure()
    if one.rank == 0:
        print(json.dumps({"rates": found}), flush=True)
    one.dist.barrier()
    one.dist.destroy_process_group()


# ---------------------------------------------------------------------- the benchmark
def run(options: argparse.Namespace) -> Result:
    """Start the ranks; gives their figures."""
    from benchmarks.ranks import start

    here = len(cuda.gpus)
    if here < options.ranks:
        raise RuntimeError(f"peers_rate needs {options.ranks} GPUs, and here are {here}")

    ended = start("benchmarks.peers_rate", [str(options.mib)], options.ranks, timeout=options.seconds, show=True)
    lines = [line for said in ended.said for line in said.splitlines() if line.startswith('{"rates"')]
    if not lines:
        raise RuntimeError(f"the ranks gave no rates{'' if ended.in_time else ' in time'}:\n{ended.text[-6000:]}")
    rates = json.loads(lines[0])["rates"]
    figures = {
        name: Figure(rate, "GB/s", more_is_better=True, peer=not name.startswith("TMA")) for name, rate in rates.items()
    }
    return Result(figures, {"ranks": options.ranks, "mib": options.mib, "chunk": CHUNK, "stages": STAGES})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ranks", type=int, default=2, help="GPUs; each one copies from the next, or to it")
    parser.add_argument("--mib", type=int, default=128, help="how much one copy moves")
    parser.add_argument("--seconds", type=float, default=80, help="that all may take")


ENTRY = Entry("peers_rate", "memory between GPUs by TMA, copy engines and NCCL", run, arguments, gpu=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
