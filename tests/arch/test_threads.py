# SPDX-License-Identifier: Apache-2.0
"""Indices, warp exchanges and barriers, as kernels use them."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack

from ..each import each


@cuda.jit
def indices(out):
    x, y, z = arch.thread_idx()
    nx, ny, nz = arch.block_dim()
    bx, by, bz = arch.block_idx()
    gx, gy, gz = arch.grid_dim()
    block = bx + gx * (by + gy * bz)
    t = x + nx * (y + ny * z) + nx * ny * nz * block
    out[t, 0] = arch.warp_idx()
    out[t, 1] = arch.lane_idx()
    out[t, 2] = block
    out[t, 3] = gz


def test_indices_number_threads_warps_and_blocks(run):
    out = np.zeros((256, 4), np.int32)

    def check():
        t = np.arange(256)
        np.testing.assert_array_equal(out[:, 0], t % 64 // 32)
        np.testing.assert_array_equal(out[:, 1], t % 32)
        np.testing.assert_array_equal(out[:, 2], t // 64)
        assert (out[:, 3] == 1).all()

    run(indices, (2, 2), (8, 4, 2), [lambda place: from_dlpack(place(out))], outputs=[out], check=check)


@cuda.jit
def exchanges(out):
    lane = arch.lane_idx()
    out[lane, 0] = arch.make_warp_uniform(lane + 7)
    out[lane, 1] = arch.shuffle_sync(lane, 5)
    out[lane, 2] = arch.shuffle_sync_up(lane, 1)
    out[lane, 3] = arch.shuffle_sync_down(lane, 2)
    out[lane, 4] = arch.shuffle_sync_bfly(lane, 16)
    out[lane, 5] = arch.warp_redux_sync(lane, "add")
    out[lane, 6] = arch.vote_ballot_sync(lane < 3)
    out[lane, 7] = arch.vote_any_sync(lane == 31) + 2 * arch.vote_all_sync(lane < 31)
    out[lane, 8] = 0
    if arch.elect_one():
        out[lane, 8] = 1


def test_lanes_exchange_values(run):
    out = np.zeros((32, 9), np.int32)

    def check():
        t = np.arange(32)
        want = [np.full(32, 7), np.full(32, 5), np.maximum(t - 1, 0), np.where(t < 30, t + 2, t), t ^ 16]
        want += [np.full(32, 496), np.full(32, 7), np.full(32, 1)]
        np.testing.assert_array_equal(out[:, :8], np.stack(want, 1))
        assert out[:, 8].sum() == 1

    run(exchanges, 1, 32, [lambda place: from_dlpack(place(out))], outputs=[out], check=check)


@cuda.jit
def handed_over(out):
    warp = arch.make_warp_uniform(arch.warp_idx())
    lane = arch.lane_idx()
    smem = cute.utils.SmemAllocator()
    value = smem.allocate_tensor(cute.Int32, 32)
    bar = smem.allocate_array(cute.Int64, 2)
    if warp == 0:
        if arch.elect_one():
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init(bar + 1, 32)
            arch.mbarrier_init_fence()
    arch.sync_threads()
    if warp == 0:
        value[lane] = 2 * lane
        arch.sync_warp()
        if arch.elect_one():
            arch.mbarrier_arrive(bar)
        arch.mbarrier_wait(bar + 1, 0)
        out[lane] = value[lane]
    else:
        while not arch.mbarrier_try_wait(bar, 0):
            pass
        value[lane] = value[lane] + 1
        arch.mbarrier_arrive(bar + 1)


def test_barriers_hand_data_over(run):
    out = np.zeros(32, np.int32)
    run(
        handed_over, 1, 64, [lambda place: from_dlpack(place(out))], outputs=[out],
        check=lambda: np.testing.assert_array_equal(out, 2 * np.arange(32) + 1),
    )  # fmt: skip


@cute.cluster_shape(2, 1)
@cuda.jit
def in_clusters(out):
    t, _, _ = arch.thread_idx()
    rank = arch.block_idx_in_cluster()
    cx, _, _ = arch.cluster_idx()
    smem = cute.utils.SmemAllocator()
    bar = smem.allocate_array(cute.Int64)
    if t == 0:
        arch.mbarrier_init(bar, 2)
        arch.mbarrier_init_fence()
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()
    if t < 2:
        arch.mbarrier_arrive(bar, t)
    arch.mbarrier_wait(bar, 0)
    arch.cluster_arrive()
    arch.cluster_wait()
    if t == 0:
        out[2 * cx + rank] = 10 * arch.cluster_size() + rank


def test_blocks_of_a_cluster_arrive_at_each_others_barriers(run):
    out = np.zeros(4, np.int32)
    run(
        in_clusters, 4, 32, [lambda place: from_dlpack(place(out))], outputs=[out],
        check=lambda: np.testing.assert_array_equal(out, [20, 21, 20, 21]),
    )  # fmt: skip


@cuda.jit
def conditional(out):
    lane = arch.lane_idx()
    smem = cute.utils.SmemAllocator()
    bar = smem.allocate_array(cute.Int64)
    if lane == 0:
        arch.mbarrier_init(bar, 1)
    arch.sync_warp()
    out[lane, 0] = arch.mbarrier_conditional_try_wait(lane < 0, bar, 0)
    out[lane, 1] = arch.mbarrier_test_wait(bar, 0)
    out[lane, 2] = arch.mbarrier_test_wait(bar, 1)


def test_a_wait_that_is_not_wanted_succeeds(run):
    out = np.zeros((32, 3), np.int32)
    run(
        conditional, 1, 32, [lambda place: from_dlpack(place(out))], outputs=[out],
        check=lambda: np.testing.assert_array_equal(out, np.tile([1, 0, 1], (32, 1))),
    )  # fmt: skip


@each("name", arch.__all__)
def test_every_name_is_documented(name):
    assert isinstance(getattr(arch, name), int) or getattr(arch, name).__doc__
