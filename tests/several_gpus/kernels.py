# SPDX-License-Identifier: Apache-2.0
"""Kernels that reach a peer's memory in each way. `peers` is a tensor (ROWS, COLUMNS, ranks) of Float32."""

from __future__ import annotations

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync

BLOCK, COLUMNS = 64, 32
ROWS = 4 * BLOCK
"""Of a rank's memory: what is there, what a peer stores, what peers add to, and what is copied in bulk."""
HERE, STORED, ADDED, BULK = range(4)
THREADS = 128
BOX = cute.make_layout((BLOCK, COLUMNS, 1), stride=(COLUMNS, 1, 0))
ITEMS = BLOCK * COLUMNS
OPS = (
    cpasync.CopyBulkTensorTileG2SOp(),
    cpasync.CopyBulkTensorTileS2GOp(),
    cpasync.CopyReduceBulkTensorTileS2GOp(cpasync.ReductionOp.ADD),
)


def tma_atoms(peers):
    """The atoms of a load, a store and a reduction, and their tensor of coordinates."""
    made = [cpasync.make_tiled_tma_atom(op, peers, BOX, (BLOCK, COLUMNS, 1)) for op in OPS]
    return (*[m.atom for m in made], made[0].tma_tensor)


@cuda.jit
def by_elements(peers, out, rank, peer):
    """Load the peer's block, and store what its own rank is to the peer's second one."""
    for i in range(cuda.threadIdx.x, ITEMS, THREADS):
        out[i // COLUMNS, i % COLUMNS] = peers[i // COLUMNS, i % COLUMNS, peer]
        peers[STORED * BLOCK + i // COLUMNS, i % COLUMNS, peer] = cute.Float32(100 + rank)


@cuda.jit
def by_vectors(peers, out, rank, peer):
    """The same, 16 bytes at a time."""
    row = cuda.threadIdx.x // 8
    column = cuda.threadIdx.x % 8
    for first in range(0, BLOCK, 16):
        theirs = cute.local_tile(peers[None, None, peer], (1, 4), (first + row, column))
        cute.autovec_copy(theirs, cute.local_tile(out, (1, 4), (first + row, column)))
        mine = cute.make_rmem_tensor((1, 4), cute.Float32)
        mine.fill(100 + rank)
        cute.autovec_copy(
            mine, cute.local_tile(peers[None, None, peer], (1, 4), (STORED * BLOCK + first + row, column))
        )


@cuda.jit
def by_tma(load, store, add, coords, out, peer):
    """Load the peer's first block by TMA, store what is one more to its second block, and add that to its third."""
    bar = arch.alloc_smem(cute.Int64, 1)
    s = cute.make_tensor(arch.alloc_smem(cute.Float32, ITEMS, alignment=128), BOX)
    thread = cuda.threadIdx.x
    if thread == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if thread < 32:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(bar, ITEMS * 4)
        arch.sync_warp()
        utils.block_copy(load, cute.local_tile(coords, (BLOCK, COLUMNS, 1), (HERE, 0, peer)), s, tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    for i in range(thread, ITEMS, THREADS):
        out[i // COLUMNS, i % COLUMNS] = s[i // COLUMNS, i % COLUMNS, 0]
        s[i // COLUMNS, i % COLUMNS, 0] = s[i // COLUMNS, i % COLUMNS, 0] + cute.Float32(1)
    arch.fence_view_async_shared()
    arch.sync_threads()
    if thread < 32:
        utils.block_copy(store, s, cute.local_tile(coords, (BLOCK, COLUMNS, 1), (STORED, 0, peer)))
        utils.block_copy(add, s, cute.local_tile(coords, (BLOCK, COLUMNS, 1), (ADDED, 0, peer)))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@cuda.jit
def in_bulk(peers, peer):
    """Copy the peer's first block through shared memory to its last one, in bulk."""
    bar = arch.alloc_smem(cute.Int64, 1)
    s = cute.make_tensor(arch.alloc_smem(cute.Float32, ITEMS, alignment=128), cute.make_layout(ITEMS))
    theirs = cute.group_modes(peers[None, None, peer], 0, 2)
    source = cute.make_tensor(theirs.iterator, cute.make_layout(ITEMS))
    target = cute.make_tensor(theirs.iterator + BULK * ITEMS, cute.make_layout(ITEMS))
    if cuda.threadIdx.x == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, ITEMS * 4)
        load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32, num_bits_per_copy=ITEMS * 32)
        cute.copy(load, source, s, tma_bar_ptr=bar)
        arch.mbarrier_wait(bar, 0)
        store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Float32, num_bits_per_copy=ITEMS * 32)
        cute.copy(store, s, target)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@cuda.jit
def read(peers, at, out):
    """Read one place of each rank, a thread each."""
    out[cuda.threadIdx.x] = peers[at[0], at[1], cuda.threadIdx.x]


@cuda.jit
def far_apart(out):
    """Turn 128 numbers round by way of 100 KB of shared memory."""
    s = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((200, 128)), byte_alignment=16)
    thread = cuda.threadIdx.x
    s[199, thread] = cute.Float32(thread)
    arch.sync_threads()
    out[thread] = s[199, 127 - thread]


@cuda.jit
def count_up(counters, ranks):
    """Count up one number on each rank."""
    for r in range(ranks):
        arch.atomic_add(cute.domain_offset((0, r), counters).iterator, 1, scope="sys")


@cuda.jit
def ping_pong(signals, peers, turns, seen):
    """Pass a number to and fro: rank 0 writes it to rank 1, which adds one and writes it back."""
    rank = signals.rank
    if rank < 2:
        other = 1 - rank
        before = (signals.epoch() - 1) * turns
        for turn in range(1, turns + 1):
            if rank == 0:
                peers[0, 0, other] = cute.Float32(2 * turn)
                signals.put(other, 0, before + turn)
                signals.wait(other, 0, before + turn)
                if arch.load(cute.domain_offset((0, 0, rank), peers).iterator, cute.Float32) != 2 * turn + 1:
                    seen[0] += 1
            else:
                signals.wait(other, 0, before + turn)
                theirs = arch.load(cute.domain_offset((0, 0, rank), peers).iterator, cute.Float32)
                peers[0, 0, other] = theirs + 1
                signals.put(other, 0, before + turn)
    signals.advance(1)


@cuda.jit
def exchange(signals, peers, out):
    """Each block of each rank stores to all ranks, counts up, and reads what the next rank stored: safe to replay."""
    rank = signals.rank
    epoch = signals.epoch()
    block = cuda.blockIdx.x
    thread = cuda.threadIdx.x
    if thread < signals.world:
        peers[STORED * BLOCK + block, rank, thread] = cute.Float32(1000 * rank + 10 * block + epoch)
    arch.sync_threads()
    if thread == 0:
        for r in range(signals.world):
            signals.add(r, 0)
        signals.wait((rank + 1) % signals.world, 0, epoch * cuda.gridDim.x)
        source = cute.domain_offset((STORED * BLOCK + block, (rank + 1) % signals.world, rank), peers)
        out[block, 0] = arch.load(source.iterator, cute.Float32)
        signals.add((rank + 1) % signals.world, 1)  # it may store again
        signals.wait((rank + signals.world - 1) % signals.world, 1, epoch * cuda.gridDim.x)
        signals.advance(cuda.gridDim.x)


@cuda.jit
def waits_for(signals, peer):
    """Wait for a rank."""
    if cuda.threadIdx.x == 0:
        signals.wait(peer, 2, 7)
