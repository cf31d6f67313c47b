# SPDX-License-Identifier: Apache-2.0
"""Clusters of two shapes in one launch: those that are preferred where the target has them, and others in their place
(cuda.h, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack

GRID, PREFERRED, REGULAR = (8, 4), (4, 2), (2, 1)
SIZES = {8, 2}


@cute.kernel
def notes(out: cute.Tensor):
    """Notes of each CTA the size of its cluster, and where it is, computed by its cluster; CTAs of a cluster meet."""
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    x, y, _ = cute.arch.block_idx()
    cx, cy, _ = cute.arch.cluster_idx()
    ix, iy, _ = cute.arch.block_in_cluster_idx()
    nx, ny, _ = cute.arch.block_in_cluster_dim()
    size, rank = cute.arch.cluster_size(), cute.arch.block_idx_in_cluster()
    found = (size, cx * nx + ix, cy * ny + iy, rank - (ix + nx * iy))
    for i in cute.range_constexpr(4):
        out[y, x, i] = found[i]


def sizes(arch="sm_90a", seed=None, cluster=PREFERRED, fallback=REGULAR, kernel=notes):
    """The size of each CTA's cluster, if all CTAs run once and where they say."""

    @cute.jit
    def host(out):
        kernel(from_dlpack(out)).launch(grid=GRID, block=1, cluster=cluster, fallback_cluster=fallback)

    out = np.full((*GRID[::-1], 4), -1, np.int32)
    cute.simulate(host, arch=arch, seed=seed)(out)
    y, x = np.indices(out.shape[:2])
    np.testing.assert_array_equal(out[..., 1:], np.stack([x, y, 0 * x], -1))
    return set(out[..., 0].flat)


def test_the_preferred_shape_is_made_where_the_target_has_it_and_by_a_seed_either():
    assert sizes() == {8}
    found = [sizes(seed=seed) for seed in range(4)]
    assert SIZES in found and all(one <= SIZES for one in found)


def test_a_shape_that_no_gpu_of_the_target_has_is_never_made():
    assert sizes("sm_121a", cluster=(8, 2), fallback=(4, 2)) == {8}
    assert sizes("sm_121a", cluster=(8, 2), fallback=(4, 2), seed=1) == {8}
    with pytest.raises(cute.CuteError, match=r"cluster \(8, 2, 1\): 16 CTAs exceed the 8 of sm_121a"):
        cute.simulate(notes, arch="sm_121a", cluster=(8, 2))


def leaning(out):
    """Takes the cluster for eight CTAs."""
    x, y, _ = cute.arch.block_idx()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    held = cute.utils.SmemAllocator().allocate_array(cute.Int32, 1)
    cute.arch.map_dsmem_ptr(held, 7)


def test_kernels_that_lean_on_the_preferred_shape_are_found():
    out = np.zeros((*GRID[::-1], 4), np.int32)
    simulated = cute.simulate(
        cuda.jit(leaning), arch="sm_90a", cluster=PREFERRED, fallback_cluster=REGULAR, checks=False
    )
    with pytest.raises(cute.CuteError, match="CTA 7 is outside the cluster, which has 2 CTAs"):
        simulated.explore(most=20)[GRID, 1](out)


@cuda.jit
def takes_over(out):
    """Counts its place, and those of the clusters that it cancels, as clusters of its own shape."""
    x, y, _ = cute.arch.block_idx()
    ix, iy, _ = cute.arch.block_in_cluster_idx()
    smem = cute.utils.SmemAllocator()
    bar, response = smem.allocate_array(cute.Int64, 1), smem.allocate_array(cute.Int32, 4, 16)
    out[y, x] += 1
    phase, going = 0, True
    cute.arch.mbarrier_init(bar, 1)
    cute.arch.mbarrier_init_fence()
    while going:
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if cute.arch.block_idx_in_cluster() == 0:
            cute.arch.issue_clc_query(bar, response, multicast=True)
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 16)
        cute.arch.mbarrier_wait(bar, phase)
        x, y, _, going = cute.arch.clc_response(response)
        cute.arch.fence_proxy("async.shared", space="cta")
        phase ^= 1
        if going:
            out[y + iy, x + ix] += 1


def test_clusters_of_two_shapes_cancel_those_of_their_own():
    def run(seed, checks):
        out = np.zeros(GRID[::-1], np.int32)
        simulated = cute.simulate(
            takes_over, arch="sm_100a", cluster=PREFERRED, fallback_cluster=REGULAR, checks=checks, seed=seed
        )
        simulated[GRID, 1](out)
        return out

    with pytest.raises(cute.CuteError, match="CUDA does not say which of its clusters it cancels, preferred or reg"):
        run(None, True)
    for seed in (None, 0, 1, 2):
        np.testing.assert_array_equal(run(seed, "-cancelled_shapes"), 1)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"fallback_cluster": 2}, r"fallback_cluster \(2, 1, 1\) without cluster="),
        (
            {"cluster": 3, "fallback_cluster": 2},
            r"cluster \(3, 1, 1\) is not a multiple of fallback_cluster \(2, 1, 1\)",
        ),
        ({"cluster": 32, "fallback_cluster": 2}, "32 CTAs; the hardware has at most 16"),
        ({"cluster": 2, "fallback_cluster": "x"}, "fallback_cluster 'x' must be one to three positive integers"),
        ({"cooperative": 1}, "cooperative 1: give True or False"),
    ],
)
def test_launches_that_are_none_are_refused(options, words):
    with pytest.raises(cute.CuteError, match=words):
        cute.simulate(notes, **options)
