# SPDX-License-Identifier: Apache-2.0
"""TMA atoms: boxes and coordinates on the host, and round trips through shared memory."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import ReductionOp, cpasync, warpgroup
from numba_cute.runtime import from_dlpack, make_fake_tensor

LOAD, STORE = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
MULTICAST = cpasync.CopyBulkTensorTileG2SMulticastOp()
Kind = warpgroup.SmemLayoutAtomKind


def k_major(rows, columns, dtype=cute.Float16, kind=Kind.K_SW128):
    return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, dtype), (rows, columns), (0, 1))


def fake(shape, stride, dtype=cute.Float16):
    return make_fake_tensor(dtype, shape, stride, assumed_align=16)


def test_the_box_is_one_swizzle_atom_wide_and_the_tile_high():
    atom, coords = cpasync.make_tiled_tma_atom(LOAD, fake((512, 384), (384, 1)), k_major(128, 128), (128, 128))
    record = atom.tensor_map
    assert record.box == (64, 128) and record.dims == (384, 512) and record.strides_bytes == (768,)
    assert record.swizzle == "128B"
    assert coords[3, 5] == (5, 3), "coordinates are innermost first"
    assert cute.size(atom.layout_src_tv) == 64 * 128


def test_dynamic_shapes_give_the_same_coordinates():
    t = fake((512, 384), (384, 1)).mark_layout_dynamic()
    atom, coords = cpasync.make_tiled_tma_atom(LOAD, t, k_major(128, 64), (128, 64))
    assert atom.tensor_map.dims == (384, 512)
    assert coords[3, 5] == (5, 3)
    assert not cute.is_static(coords.shape)


@pytest.mark.parametrize("parts, box", [(1, (64, 128)), (2, (64, 64)), (4, (64, 32))])
def test_multicast_splits_the_outermost_dimension(parts, box):
    op = LOAD if parts == 1 else MULTICAST
    atom, _ = cpasync.make_tiled_tma_atom(op, fake((512, 384), (384, 1)), k_major(128, 64), (128, 64), parts)
    assert atom.tensor_map.box == box


def test_modes_outside_the_tile_follow_with_extent_one():
    t = fake((64, 128, 4, 3), (128, 1, 64 * 128, 4 * 64 * 128))
    atom, coords = cpasync.make_tiled_tma_atom(LOAD, t, k_major(64, 64), (64, 64))
    assert atom.tensor_map.box == (64, 64, 1, 1) and atom.tensor_map.dims == (128, 64, 4, 3)
    assert coords[1, 2, 3, 0] == (2, 1, 3, 0)


def test_partitions_of_the_multicast_blocks_cover_the_tile():
    atom, coords = cpasync.make_tiled_tma_atom(MULTICAST, fake((512, 384), (384, 1)), k_major(128, 64), (128, 64), 2)
    lay = k_major(128, 64)
    start = cute.recast_ptr(cute.make_ptr(cute.Float16, 0, cute.AddressSpace.smem, 1024), lay.inner)
    s = cute.make_tensor(start, lay.outer)
    g = cute.local_tile(coords, (128, 64), (None, None))
    halves = [
        cpasync.tma_partition(atom, i, cute.make_layout(2), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
        for i in range(2)
    ]
    assert [int(h[0].iterator.address) for h in halves] == [0, 128 * 64]
    assert [h[1].iterator for h in halves] == [(0, 0), (0, 64)]
    assert halves[1][1][None, 1, 2].iterator == (2 * 64, 128 + 64)


@pytest.mark.parametrize("mode, mask", [(1, 0b0011), (2, 0b0101)])
def test_multicast_mask_names_the_blocks_along_a_mode(run_sim, mode, mask):
    found = []

    def kernel():
        found.append(cpasync.create_tma_multicast_mask(cute.make_layout((1, 2, 2, 1)), (0, 0, 0, 0), mode))

    run_sim(kernel, 1)
    assert found == [mask]


@cuda.jit
def round_trip(load, mSrc, store, mDst, layout):
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    bx, by, _ = cute.arch.block_idx()
    smem = cute.utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Float32, layout.outer, 1024, layout.inner)
    bar = smem.allocate_array(cute.Int64)
    if warp_idx == 0:
        if cute.arch.elect_one():
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    one = cute.make_layout(1)
    gSrc = cute.local_tile(mSrc, (32, 64), (bx, by))
    gDst = cute.local_tile(mDst, (32, 64), (bx, by))
    tSs, tSg = cpasync.tma_partition(load, 0, one, cute.group_modes(s, 0, 2), cute.group_modes(gSrc, 0, 2))
    tDs, tDg = cpasync.tma_partition(store, 0, one, cute.group_modes(s, 0, 2), cute.group_modes(gDst, 0, 2))
    if warp_idx == 0:
        cpasync.prefetch_descriptor(load)
        if cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(cute.Float32, layout.outer))
        cute.copy(load, tSg, tSs, tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, 0)
        cute.copy(store, tDs, tDg)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


@pytest.mark.parametrize("kind", [Kind.K_INTER, Kind.K_SW32, Kind.K_SW64, Kind.K_SW128], ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [(64, 64), (100, 72)], ids=str)
def test_ragged_tensors_round_trip(run, aligned, kind, shape):
    src, dst = aligned(shape, np.float32), aligned(shape, np.float32, fill=np.nan)
    lay = k_major(32, 64, cute.Float32, kind)

    def atom(place, op, array, i):
        tensor = from_dlpack(place(array), assumed_align=16).mark_layout_dynamic()
        return cpasync.make_tiled_tma_atom(op, tensor, lay, (32, 64))[i]

    args = [
        lambda place: atom(place, LOAD, src, 0),
        lambda place: atom(place, LOAD, src, 1),
        lambda place: atom(place, STORE, dst, 0),
        lambda place: atom(place, STORE, dst, 1),
        lay,
    ]
    grid = (-(-shape[0] // 32), -(-shape[1] // 64))
    run(round_trip, grid, 32, args, outputs=[dst], check=lambda: np.testing.assert_array_equal(dst, src))


SHAPES = {1: (48,), 2: (6, 16), 3: (4, 3, 16), 4: (2, 3, 2, 16), 5: (2, 2, 3, 2, 16)}


@cuda.jit
def whole(load, mSrc, out, layout):
    smem = cute.utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Float32, layout, 1024)
    bar = smem.allocate_array(cute.Int64)
    if cute.arch.elect_one():
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(cute.Float32, layout))
    cute.arch.sync_warp()
    n = cute.rank(layout)
    tSs, tSg = cpasync.tma_partition(
        load, 0, cute.make_layout(1), cute.group_modes(s, 0, n), cute.group_modes(mSrc, 0, n)
    )
    cute.copy(load, tSg, tSs, tma_bar_ptr=bar)
    cute.arch.mbarrier_wait(bar, 0)
    if cute.arch.lane_idx() == 0:
        for i in range(cute.size(layout)):
            out[i] = s[i]


@pytest.mark.parametrize("rank", SHAPES)
def test_tensors_of_one_to_five_dimensions_load_whole(run, aligned, rank):
    shape = SHAPES[rank]
    src = aligned(shape, np.float32)
    out = np.zeros(src.size, np.float32)
    lay = cute.make_ordered_layout(shape, tuple(reversed(range(rank))))

    def atom(place, i):
        return cpasync.make_tiled_tma_atom(LOAD, from_dlpack(place(src), assumed_align=16), lay, shape)[i]

    args = [lambda place: atom(place, 0), lambda place: atom(place, 1), lambda place: from_dlpack(place(out)), lay]
    want = src.ravel(order="F")
    run(whole, 1, 32, args, outputs=[out], check=lambda: np.testing.assert_array_equal(out, want))


@cuda.jit
def reduced(tma, mDst, layout):
    lane = cute.arch.lane_idx()
    smem = cute.utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Float32, layout, 1024)
    for j in range(16):
        s[lane, j] = cute.Float32(16 * lane + j)
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_warp()
    part_s, part_g = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(mDst, 0, 2)
    )
    cute.copy(tma, part_s, part_g)
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0)


def test_reductions_combine_with_what_is_there(aligned):
    dst = aligned((32, 16), np.float32, fill=100.0)
    lay = cute.make_layout((32, 16), stride=(16, 1))
    op = cpasync.CopyReduceBulkTensorTileS2GOp(ReductionOp.ADD)
    atom, coords = cpasync.make_tiled_tma_atom(op, from_dlpack(dst, assumed_align=16), lay, (32, 16))
    cute.simulate(reduced)[3, 32](atom, coords, lay)
    np.testing.assert_array_equal(dst, 100 + 3 * np.arange(512, dtype=np.float32).reshape(32, 16))
    assert cute.compile(reduced, (atom, coords, lay), arch="sm_90a").resources.local == 0
