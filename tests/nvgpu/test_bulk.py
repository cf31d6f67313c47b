# SPDX-License-Identifier: Apache-2.0
"""Bulk copies and reductions without a tensor map, stores to a peer, cp.async with hints, TMA for CTA pairs."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, utils
from numba_cute.isa.facts.reduction import combine
from numba_cute.isa.rows.bulk import GLOBAL_REDUCTIONS, PEER_REDUCTIONS
from numba_cute.nvgpu import L2PrefetchSize, ReductionOp, cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError, traced

from .test_tma_modes import DTYPES, aligned, atoms, flipped, tensor
from .tma_kernels import by_tiles, one_mode

CLUSTER = 2
NUMPY = {
    "u32": np.uint32, "s32": np.int32, "b32": np.uint32, "u64": np.uint64, "s64": np.int64, "b64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def bulk(op, array):
    return cute.make_copy_atom(op, DTYPES[array.dtype.type], 8 * array.nbytes)


def flat(array):
    return lambda place: tensor(place, array)


@traced
def evict_first():
    return isa.createpolicy_l2(priority="evict_first")


@cuda.jit
def through(load, store, src, dst):
    """dst by `store` from what `load` brought from src, with a cache policy."""
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(src.element_type, src.layout, 128, None, "s")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    policy = evict_first()
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(src.element_type, src.layout))
        cute.prefetch(load, src)
        cute.copy(load, src, s, tma_bar_ptr=bar, cache_policy=policy)
        arch.mbarrier_wait(bar, 0)
        cute.copy(store, s, dst, cache_policy=policy)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


def quick(pairs, chosen):
    return [pytest.param(*p, id="_".join(p), marks=[] if p in chosen else pytest.mark.slow) for p in pairs]


def pairs_of(table):
    return [(op, t) for op, types in table.items() for t in types]


@pytest.mark.parametrize(
    "op, kind", quick(pairs_of(GLOBAL_REDUCTIONS), [("add", "bf16"), ("max", "s64"), ("inc", "u32"), ("and", "b64")])
)
def test_bulk_reductions_combine_with_global_memory(run, op, kind):
    src, dst = aligned((64,), NUMPY[kind]), aligned((64,), NUMPY[kind])
    start = np.roll(dst, 7)
    want = combine(op, start, src)

    def filled(place):
        dst[...] = start
        return tensor(place, dst)

    args = [bulk(cpasync.CopyBulkG2SOp(), src), bulk(cpasync.CopyReduceBulkS2GOp(ReductionOp(op)), dst)]
    check = lambda: np.testing.assert_array_equal(dst, want)  # noqa: E731
    run(through, 1, 32, [*args, flat(src), filled], inouts=[dst], check=check, arch="sm_90")


def test_a_hinted_bulk_copy_goes_there_and_back(run):
    src, dst = aligned((96,), np.float32), aligned((96,), np.float32)
    args = [bulk(cpasync.CopyBulkG2SOp(), src), bulk(cpasync.CopyBulkS2GOp(), dst), flat(src), flat(dst)]
    run(through, 1, 32, args, outputs=[dst], check=lambda: np.testing.assert_array_equal(dst, src), arch="sm_90")


@pytest.mark.parametrize("blocks", [2, 4])
def test_a_bulk_copy_to_several_blocks_reaches_each(run, blocks):
    src = aligned((64,), np.float32)
    out = np.zeros((blocks, 64), np.float32)

    @cuda.jit
    def kernel(load, src, out, blocks):
        rank, lane = arch.block_idx_in_cluster(), arch.lane_idx()
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(cute.Float32, src.layout, 128, None, "s")
        bar = smem.allocate_array(cute.Int64, 1, name="bar")
        if lane == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(bar, 256)
        arch.cluster_arrive()
        arch.cluster_wait()
        if lane == 0 and rank == 1:
            cute.copy(load, src, s, tma_bar_ptr=bar, mcast_mask=(1 << cute.size(blocks)) - 1)
        arch.mbarrier_wait(bar, 0)
        for i in range(lane, 64, 32):
            out[rank, i] = s[i]
        arch.cluster_arrive()
        arch.cluster_wait()

    args = [bulk(cpasync.CopyBulkG2SMulticastOp(), src), flat(src), out, cute.make_layout(blocks)]
    check = lambda: np.testing.assert_array_equal(out, np.broadcast_to(src, out.shape))  # noqa: E731
    run(kernel, blocks, 32, args, outputs=[out], check=check, cluster=blocks, arch="sm_90")


@traced
def at_peer(op, peer):
    """The operation towards block `peer`."""
    from dataclasses import replace

    return cute.make_copy_atom(replace(op.op, peer=peer), op.value_type, op.num_bits)


@cuda.jit
def exchanged(send, src, out):
    """Each of two blocks sends its row of src to the other, whose row it meets there."""
    rank, lane = arch.block_idx_in_cluster(), arch.lane_idx()
    smem = utils.SmemAllocator()
    mine = smem.allocate_tensor(src.element_type, cute.make_layout(64), 128, None, "mine")
    theirs = smem.allocate_tensor(src.element_type, cute.make_layout(64), 128, None, "theirs")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    for i in range(lane, 64, 32):
        mine[i] = src[i, rank]
        theirs[i] = src[i, rank]
    arch.fence_proxy("async.shared", space="cta")
    if lane == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(src.element_type, mine.layout))
    arch.cluster_arrive()
    arch.cluster_wait()
    atom = at_peer(send, rank ^ 1)
    if lane == 0:
        cute.copy(atom, mine, theirs, tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    for i in range(lane, 64, 32):
        out[i, rank] = theirs[i]
    arch.cluster_arrive()
    arch.cluster_wait()


PEER_CASES = quick(pairs_of(PEER_REDUCTIONS), [("add", "u64"), ("min", "s32")])


@pytest.mark.parametrize("op, kind", [pytest.param(None, "f32", id="copy"), *PEER_CASES])
def test_blocks_send_each_other_shared_memory(run, op, kind):
    src = aligned((2, 64), NUMPY[kind])
    out = np.zeros_like(src)
    want = src[::-1] if op is None else combine(op, src, src[::-1])
    made = cpasync.CopyBulkS2SOp() if op is None else cpasync.CopyReduceBulkS2SOp(reduction_kind=ReductionOp(op))
    args = [bulk(made, src[0]), lambda place: flipped(place, src), lambda place: flipped(place, out)]
    check = lambda: np.testing.assert_array_equal(out, want)  # noqa: E731
    run(exchanged, CLUSTER, 32, args, outputs=[out], check=check, cluster=CLUSTER, arch="sm_90")


@cuda.jit
def sent(send, out, values):
    """Each of two blocks stores its registers to the other's shared memory."""
    rank, lane = arch.block_idx_in_cluster(), arch.lane_idx()
    smem = utils.SmemAllocator()
    theirs = smem.allocate_tensor(out.element_type, cute.make_layout((values.shape, 32)), 128, None, "theirs")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    if lane == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(out.element_type, theirs.layout))
    arch.cluster_arrive()
    arch.cluster_wait()
    mine = cute.make_rmem_tensor(values, out.element_type)
    for i in cute.range_constexpr(cute.size(values)):
        mine[i] = out.element_type(100 * rank + 8 * lane + i)
    cute.copy(at_peer(send, rank ^ 1), mine, theirs[None, lane], tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    for i in range(cute.size(values)):
        out[i, lane, rank] = theirs[i, lane]
    arch.cluster_arrive()
    arch.cluster_wait()


@pytest.mark.parametrize("dtype, bits", [(np.float32, 32), (np.float16, 64), (np.int32, 128)])
def test_registers_go_to_a_peer(run, dtype, bits):
    count = bits // (8 * np.dtype(dtype).itemsize)
    out = np.zeros((2, 32, count), dtype)
    send = cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), DTYPES[dtype], bits)
    rank, lane, i = np.indices(out.shape)
    want = (100 * (1 - rank) + 8 * lane + i).astype(dtype)
    args = [send, lambda place: flipped(place, out), cute.make_layout(count)]
    check = lambda: np.testing.assert_array_equal(out, want)  # noqa: E731
    run(sent, CLUSTER, 32, args, outputs=[out], check=check, cluster=CLUSTER, arch="sm_90")


@cuda.jit
def masked(store, src, dst, mask):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(src.element_type, src.layout, 128, None, "s")
    for i in range(arch.lane_idx(), cute.size(src), 32):
        s[i] = src[i]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_warp()
    if arch.elect_one():
        cute.copy(store, s, dst, mcast_mask=mask)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@pytest.mark.parametrize("mask", [0xFFFF, 0x0001, 0xA50F])
def test_a_byte_mask_leaves_bytes_alone(run, mask):
    src, dst = aligned((64,), np.uint8), aligned((64,), np.uint8)
    start = np.roll(dst, 3)
    chosen = np.array([mask >> i & 1 for i in range(16)] * 4, bool)

    def filled(place):
        dst[...] = start
        return tensor(place, dst)

    args = [bulk(cpasync.CopyBulkS2GByteMaskOp(), src), flat(src), filled, np.int32(mask)]
    check = lambda: np.testing.assert_array_equal(dst, np.where(chosen, src, start))  # noqa: E731
    run(masked, 1, 32, args, inouts=[dst], check=check, arch="sm_100a")


@cuda.jit
def by_thread(copy, src, dst, rows):
    """dst = src by cp.async of each thread's part where its row is below `rows`."""
    tidx = arch.thread_idx()[0]
    smem = utils.SmemAllocator()
    staged = smem.allocate_tensor(src.element_type, cute.make_layout((4, 8), stride=(8, 1)), 16, None, "staged")
    thr = copy.get_slice(tidx)
    to = thr.partition_D(staged)
    to.fill(7)
    inside = cute.make_rmem_tensor((1, 1, 1), cute.Boolean)
    inside[0, 0, 0] = thr.partition_S(cute.make_identity_tensor(src.shape))[0, 0, 0][0] < rows
    cute.copy(copy, thr.partition_S(src), to, pred=inside, cache_policy=evict_first())
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    cute.basic_copy(to, thr.partition_D(dst))


@pytest.mark.parametrize("prefetch", L2PrefetchSize, ids=lambda p: p.name)
@pytest.mark.parametrize("zfill", [False, True], ids=["left_out", "zeros"])
def test_cp_async_takes_hints(run, zfill, prefetch):
    src, dst = aligned((4, 8), np.float32), aligned((4, 8), np.float32)
    want = src.copy()
    want[3:] = 0 if zfill else 7
    op = cpasync.CopyG2SOp(prefetch=prefetch, zfill=zfill)
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(op, cute.Float32, 128), cute.make_layout((4, 2), stride=(2, 1)), cute.make_layout((1, 4))
    )
    check = lambda: np.testing.assert_array_equal(dst, want)  # noqa: E731
    run(by_thread, 1, 8, [copy, flat(src), flat(dst), 3], outputs=[dst], check=check, arch="sm_80")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_cp_async_with_a_policy_has_an_address_that_ptxas_does_not_take_apart(target):
    """ptxas 12.4 to 13.3 split it into registers of which nobody has set one: an H200 met an illegal instruction."""
    src = aligned((4, 8), np.float32)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, 128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 2), stride=(2, 1)), cute.make_layout((1, 4)))
    given = from_dlpack(src, assumed_align=16)
    made = cute.compile(by_thread, (copy, given, given, 3), arch=target)
    (line,) = [line for line in made.ptx.splitlines() if "L2::cache_hint" in line]
    address = re.search(r"\[(\w+)\]", line)[1]
    assert f"or.b32 {address}, {address}, %r" in line and "%lanemask_lt" in line


TILE = cute.make_layout((8, 32), stride=(32, 1))


@cuda.jit
def of_a_pair(load, src, out, layout):
    """Both blocks of a pair load a tile; the first one's barrier tells both."""
    rank, lane = arch.block_idx_in_cluster(), arch.lane_idx()
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(out.element_type, layout, 128, None, "s")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        if rank == 0:
            arch.mbarrier_arrive_and_expect_tx(bar, 2 * cute.size_in_bytes(out.element_type, layout))
    arch.cluster_arrive()
    arch.cluster_wait()
    to, source = cpasync.tma_partition(load, 0, cute.make_layout(1), one_mode(s), by_tiles(src, layout.shape))
    cute.copy(load, source[None, rank], to[None], tma_bar_ptr=bar)
    if rank == 0:
        arch.mbarrier_wait(bar, 0)
    arch.cluster_arrive()
    arch.cluster_wait()
    for i in range(lane, cute.size(layout), 32):
        out[i, rank] = s[i]
    arch.cluster_arrive()
    arch.cluster_wait()


def test_a_pairs_loads_complete_on_the_first_blocks_barrier(run):
    src = aligned((16, 32), np.float32)
    out = np.zeros((2, 256), np.float32)
    load = cpasync.CopyBulkTensorTileG2SOp(cpasync.CtaGroup.TWO)
    want = np.stack([src[:8].ravel(order="F"), src[8:].ravel(order="F")])
    args = [*atoms(load, src, TILE, (8, 32)), lambda place: flipped(place, out), TILE]
    check = lambda: np.testing.assert_array_equal(out, want)  # noqa: E731
    run(of_a_pair, 2, 32, args, outputs=[out], check=check, cluster=2, arch="sm_100a")


def test_pairs_are_not_for_hopper():
    src = aligned((16, 32), np.float32)
    atom, coords = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(cpasync.CtaGroup.TWO), from_dlpack(src, assumed_align=16), TILE, (8, 32)
    )
    out = from_dlpack(np.zeros((256, 2), np.float32), assumed_align=16)
    with pytest.raises(CuteError, match="g2s with pair=True needs sm_100f"):
        cute.compile(of_a_pair, (atom, coords, out, TILE), arch="sm_90a")


@pytest.mark.parametrize(
    "make, why",
    [
        (
            lambda: cpasync.CopyReduceBulkTensorTileS2GOp(ReductionOp.MUL),
            "ReductionOp.MUL must be ReductionOp.ADD, .MIN, .MAX, .* or .XOR",
        ),
        (lambda: cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), cute.Float32, 256), "use 32, 64 or 128 bits"),
        (
            lambda: cute.make_copy_atom(cpasync.CopyBulkTensorTileG2SOp(), cute.Float32),
            "make_tiled_tma_atom, on the host",
        ),
    ],
    ids=["mul", "dsmem", "unmade"],
)
def test_what_there_is_not_is_refused(make, why):
    with pytest.raises(CuteError, match=why):
        make()


def test_a_reduction_that_the_instruction_lacks_names_those_it_has():
    src = aligned((64,), np.float32)
    args = [bulk(cpasync.CopyBulkG2SOp(), src), bulk(cpasync.CopyReduceBulkS2GOp(ReductionOp.MIN), src)]
    with pytest.raises(CuteError, match="min of Float32: the instruction has it for u32, s32, u64, s64, f16, bf16"):
        cute.simulate(through)[1, 32](*args, *(from_dlpack(src, assumed_align=16),) * 2)
