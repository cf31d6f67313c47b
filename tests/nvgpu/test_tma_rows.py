# SPDX-License-Identifier: Apache-2.0
"""Four rows of a matrix by their indices, gathered by TMA and scattered by it."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, tilelang, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack, make_fake_tensor
from numba_cute.seam import CuteError

from .test_tma_modes import LOAD, aligned, tensor

GATHER, SCATTER = cpasync.CopyBulkTensorGather4G2SOp(), cpasync.CopyBulkTensorScatter4S2GOp()
MULTICAST = cpasync.CopyBulkTensorGather4G2SMulticastOp()


def four_rows(columns, bits):
    """Four rows in shared memory."""
    return cute.make_composed_layout(cute.make_swizzle(bits, 4, 3), 0, cute.make_ordered_layout((4, columns), (1, 0)))


def gathered(dtype, columns, bits, ctas=1):
    """A kernel (load, source, store, dest, rows): block x gathers 16 rows by rows[0], and scatters them by rows[1];
    of several CTAs the first gathers for all."""
    many = cute.make_composed_layout(cute.make_swizzle(bits, 4, 3), 0, cute.make_ordered_layout((16, columns), (1, 0)))

    @cuda.jit
    def kernel(load, source, store, dest, rows):
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(dtype, many.outer, 1024, many.inner, "s")
        bar = smem.allocate_array(cute.Int64, 1, name="bar")
        t, _, _ = arch.thread_idx()
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        k = arch.block_idx()[0] // ctas
        if t == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(bar, 16 * columns * dtype.width // 8)
        arch.sync_warp()
        if cute.const_expr(ctas > 1):
            arch.cluster_arrive()
            arch.cluster_wait()
        for i in cute.range_constexpr(4):
            index = (rows[0, 4 * i], rows[0, 4 * i + 1], rows[0, 4 * i + 2], rows[0, 4 * i + 3])
            src = cute.local_tile(cpasync.gather4_rows(source, index), (4, columns), (0, k))
            to = cute.group_modes(cute.local_tile(s, (4, columns), (i, 0)), 0, 2)
            if cute.const_expr(ctas > 1):
                if rank == 0:
                    cute.copy(load, cute.group_modes(src, 0, 2), to, tma_bar_ptr=bar, mcast_mask=(1 << ctas) - 1)
            else:
                cute.copy(load, cute.group_modes(src, 0, 2), to, tma_bar_ptr=bar)
        arch.mbarrier_wait(bar, 0)
        for i in cute.range_constexpr(4):
            index = (rows[1, 4 * i], rows[1, 4 * i + 1], rows[1, 4 * i + 2], rows[1, 4 * i + 3])
            dst = cute.local_tile(cpasync.gather4_rows(dest, index), (4, columns), (0, k * ctas + rank))
            from_ = cute.group_modes(cute.local_tile(s, (4, columns), (i, 0)), 0, 2)
            cute.copy(store, from_, cute.group_modes(dst, 0, 2))
        if arch.elect_one():
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)

    return kernel


def both(load, src, dst, lay):
    def made(op, array, which):
        return lambda place: cpasync.make_gather4_tma_atom(op, tensor(place, array), lay)[which]

    return [made(load, src, 0), made(load, src, 1), made(SCATTER, dst, 0), made(SCATTER, dst, 1)]


@pytest.mark.parametrize(
    "dtype, columns, bits", [(np.float16, 64, 3), (np.float32, 16, 2), (np.uint8, 32, 1), (np.float16, 32, 0)], ids=str
)
def test_rows_go_from_where_they_are_to_where_they_are_told(run, rng, dtype, columns, bits):
    src, dst = aligned((40, 2 * columns), dtype), aligned((24, 2 * columns), dtype)
    start = dst.copy()
    where = rng.permutation(40)[:16].astype(np.int32)
    where[3] = 1000  # outside: zeros
    to = rng.permutation(24)[:16].astype(np.int32)
    to[5] = 24  # outside: nothing
    rows = np.stack([where, to])
    want = start.copy()
    for i, j in zip(where, to):
        if j < 24:
            want[j] = src[i] if i < 40 else 0

    def check():
        np.testing.assert_array_equal(dst, want)
        dst[...] = start

    kernel = gathered(cute.dtypes.from_numpy(dtype), columns, bits)
    args = [*both(GATHER, src, dst, four_rows(columns, bits)), rows]
    run(kernel, 2, 32, args, inouts=[dst], check=check, arch="sm_100a")


def test_rows_are_multicast(run, rng):
    src, dst = aligned((40, 64), np.float16), aligned((16, 128), np.float16)
    where, to = rng.permutation(40)[:16].astype(np.int32), np.arange(16, dtype=np.int32)

    def check():
        np.testing.assert_array_equal(dst, np.tile(src[where], 2))

    args = [*both(MULTICAST, src, dst, four_rows(64, 3)), np.stack([where, to])]
    run(gathered(cute.Float16, 64, 3, 2), 2, 32, args, inouts=[dst], check=check, cluster=2, arch="sm_100a")


@cuda.jit
def by_lanes(load, store, rows):
    """Each lane has four rows of its own."""
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Float16, SPREAD.outer, 1024, SPREAD.inner, "s")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    lane, _, _ = arch.thread_idx()
    if lane == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, 128 * 64 * 2)
    arch.sync_warp()
    index, i = rows[0], 4 * lane
    tilelang.cpasync.tma_load(load, bar, s.iterator + i * 64, (64, index[i], index[i + 1], index[i + 2], index[i + 3]))
    arch.mbarrier_wait(bar, 0)
    index = rows[1]
    tilelang.cpasync.tma_store(store, s.iterator + i * 64, (0, index[i], index[i + 1], index[i + 2], index[i + 3]))
    tilelang.cpasync.tma_store_arrive()
    tilelang.cpasync.tma_store_wait(0)


SPREAD = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_ordered_layout((128, 64), (1, 0)))


def test_each_lane_copies_rows_of_its_own(run, rng):
    src, dst = aligned((40, 128), np.float16), aligned((150, 64), np.float16)
    start, where, to = dst.copy(), rng.integers(-1, 41, 128), rng.permutation(152)[:128]

    def check():
        want = start.copy()
        for i, j in zip(where, to):
            if j < 150:
                want[j] = src[i, 64:] if 0 <= i < 40 else 0
        np.testing.assert_array_equal(dst, want)
        dst[...] = start

    made = both(GATHER, src, dst, four_rows(64, 3))
    args = [made[0], made[2], np.stack([where, to]).astype(np.int32)]
    run(by_lanes, 1, 32, args, inouts=[dst], check=check, arch="sm_100a")


def fake(shape=(40, 128), stride=(128, 1)):
    return make_fake_tensor(cute.Float16, shape, stride, assumed_align=16)


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: cpasync.make_gather4_tma_atom(LOAD, fake(), four_rows(64, 3)), "none that gathers or scatters"),
        (
            lambda: cpasync.make_gather4_tma_atom(GATHER, fake(), cute.make_layout((8, 64), stride=(64, 1))),
            r"must be \(4, columns of one copy\)",
        ),
        (
            lambda: cpasync.make_gather4_tma_atom(GATHER, fake(), cute.make_layout((4, 64), stride=(128, 1))),
            "must hold its rows one after the other",
        ),
        (
            lambda: cpasync.make_gather4_tma_atom(GATHER, fake((8, 5, 64), (320, 64, 1)), four_rows(64, 3)),
            r"must have two modes, \(rows, columns\)",
        ),
        (
            lambda: cpasync.gather4_rows(cpasync.make_gather4_tma_atom(GATHER, fake(), four_rows(64, 3))[1], (1, 2)),
            "four",
        ),
        (lambda: cpasync.gather4_rows(fake(), (1, 2, 3, 4)), "must be the tensor that make_gather4_tma_atom gave"),
    ],
    ids=range(6),
)
def test_what_is_no_four_rows_is_refused(make, why):
    with pytest.raises(CuteError, match=why):
        make()


def test_hopper_gathers_no_rows():
    src = aligned((40, 64), np.float16)
    args = [f(lambda x: x) for f in both(GATHER, src, src.copy(), four_rows(64, 3))]
    with pytest.raises(CuteError, match="tile::gather4' needs sm_100f"):
        cute.compile(gathered(cute.Float16, 64, 3), (*args, from_dlpack(np.zeros((2, 16), np.int32))), arch="sm_90a")
