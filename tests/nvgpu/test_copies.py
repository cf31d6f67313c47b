# SPDX-License-Identifier: Apache-2.0
"""cp.async and bulk copies move what they say, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from .test_warp_mma import tensor

ALWAYS, GLOBAL = cpasync.LoadCacheMode.ALWAYS, cpasync.LoadCacheMode.GLOBAL


@cuda.jit
def through_smem(copy, rows, src, dst):
    """dst = src, by cp.async of each thread's part where its row is below `rows`; shared memory is 7 before."""
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    staged = smem.allocate_tensor(src.element_type, cute.make_layout(src.shape, stride=src.stride), 16, None, "staged")
    thr = copy.get_slice(tidx)
    part, to = thr.partition_S(src), thr.partition_D(staged)
    to.fill(7)
    coords = thr.partition_S(cute.make_identity_tensor(src.shape))
    inside = cute.make_rmem_tensor((1, 1, 1), cute.Boolean)
    inside[0, 0, 0] = coords[0, 0, 0][0] < rows
    cute.copy(copy, part, to, pred=inside)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    cute.basic_copy(to, thr.partition_D(dst))


@pytest.mark.parametrize("zfill", [False, True], ids=["left_out", "zeros"])
@pytest.mark.parametrize("cache, bits", [(ALWAYS, 32), (ALWAYS, 64), (ALWAYS, 128), (GLOBAL, 128)], ids=str)
def test_cp_async_copies_where_its_predicate_holds(run, rng, cache, bits, zfill):
    columns = 8 * bits // 32  # 8 threads of `bits` along a row of floats
    src = rng.standard_normal((4, columns)).astype(np.float32)
    dst = np.empty_like(src)
    want = src.copy()
    want[3:] = 0 if zfill else 7
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(cache, zfill=zfill), cute.Float32, bits)
    threads, values = cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, bits // 32))
    copy = cute.make_tiled_copy_tv(atom, threads, values)

    def check():
        np.testing.assert_array_equal(dst, want)

    args = [copy, 3, lambda place: from_dlpack(place(src), assumed_align=16), tensor(dst, cute.Float32)]
    run(through_smem, 1, 32, args, outputs=[dst], check=check, arch="sm_80")


@cuda.jit
def around(load, store, src, dst):
    """dst = src by bulk copies: global to shared memory, and back."""
    smem = utils.SmemAllocator()
    staged = smem.allocate_tensor(src.element_type, src.layout, 128, None, "staged")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    tidx, _, _ = arch.thread_idx()
    if tidx == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(src.element_type, src.layout))
        cute.copy(load, src, staged, tma_bar_ptr=bar)
        arch.mbarrier_wait(bar, 0)
        cute.copy(store, staged, dst)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@pytest.mark.parametrize("elements", [4, 96])
def test_bulk_copies_go_there_and_back(run, rng, elements):
    src = rng.standard_normal(elements).astype(np.float32)
    dst = np.empty_like(src)
    load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32, 32 * elements)
    store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Float32, 32 * elements)

    def check():
        np.testing.assert_array_equal(dst, src)

    args = [lambda place, x=x: from_dlpack(place(x), assumed_align=16) for x in (src, dst)]
    run(around, 1, 32, [load, store, *args], outputs=[dst], check=check, arch="sm_90")


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: cpasync.CopyG2SOp(cpasync.LoadCacheMode.STREAMING), "cache_mode .* must be LoadCacheMode.ALWAYS or"),
        (
            lambda: cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32, 96),
            "96 must be a positive multiple of 128",
        ),
    ],
)
def test_what_there_is_not_is_refused_by_name(make, why):
    with pytest.raises(CuteError, match=why):
        make()


def test_cp_async_of_unaligned_elements_is_refused():
    src, dst = np.zeros((4, 32), np.float32), np.zeros((4, 32), np.float32)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, 128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 4)))
    with pytest.raises(CuteError, match="src .* is not known to be aligned to 16 bytes; give assumed_align"):
        cute.compile(through_smem, (copy, 3, from_dlpack(src), from_dlpack(dst)), arch="sm_80")
