# SPDX-License-Identifier: Apache-2.0
"""`TensorArray`: a kernel takes one of several tensors by a run-time index, and TMA copies its tiles."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, arch, experimental as ext
from numba_cute.runtime import from_dlpack

from .kernels import RMEM, SMEM, aligned, tensor


@ext.kernel
def gathered(sources, which, targets, sums):
    """targets[i] = sources[which[i]], tile by tile; sums[i]: of the first tile's rows."""
    tidx, _, _ = arch.thread_idx()
    m, n, _ = arch.block_idx()
    s = ext.allocate(cute.Float16, SMEM, cute.make_ordered_layout((16, 64), (1, 0)), alignment=128)
    r = ext.allocate(cute.Float16, RMEM, 32)
    pipe = ext.TMAToAsyncPipeline.create(num_stages=1, consumer_arv_count=32)
    stores = ext.TMAStorePipeline(stages=1, arv_count=32, barrier_id=1, tma_warp_id=0)
    for i in range(len(targets)):
        source, target = sources[which[i]], targets[i]
        stores.acquire_sync()
        stage, _ = pipe.producer_acquire_and_get_stage()
        ext.tma_load(cute.zipped_divide(source, (16, 64))[(None, None), (m, n)], s, ext.get_mbarrier(stage))
        pipe.producer_commit_and_advance()
        pipe.consumer_wait()
        pipe.consumer_release_and_advance()
        stores.commit_sync()
        ext.tma_store(s, cute.zipped_divide(target, (16, 64))[(None, None), (m, n)])
        stores.release_advance()
        if tidx < 16 and m == 0 and n == 0:
            ext.simt_auto_vec_copy(cute.make_tensor(source[tidx, None].iterator, cute.make_layout(32)), r)
            sums[i, tidx] = cute.Float32(r[0]) + cute.Float32(r[31])
    stores.tail()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "run-time"])
def test_a_kernel_copies_tiles_of_the_tensor_that_an_index_names(run, dynamic):
    shapes = [(32, 128), (40, 72), (16, 64)] if dynamic else [(32, 128)] * 3
    sources = [aligned(shape) for shape in shapes]
    for k, x in enumerate(sources):
        x += k
    which = np.array([2, 0, 1, 1], np.int32)
    targets = [aligned(shapes[k]) for k in which]
    sums = np.zeros((4, 16), np.float32)
    places = [tensor(x, dynamic) for x in (*sources, *targets)]

    def check():
        for target, k in zip(targets, which):
            np.testing.assert_array_equal(target, sources[k])
        np.testing.assert_array_equal(sums, [sources[k][:16, 0] + sources[k][:16, 31] for k in which])

    arguments = [
        lambda of: ext.TensorArray([p(of) for p in places[:3]]), which,
        lambda of: ext.TensorArray([p(of) for p in places[3:]]), sums,
    ]  # fmt: skip
    run(gathered, (3, 2), 32, arguments, outputs=[*targets, sums], check=check)


def test_each_tensor_of_an_array_brings_its_maps():
    sources, targets = ([tensor(aligned((16, 64)), False)(lambda a: a) for _ in range(n)] for n in (5, 2))
    args = ext.TensorArray(sources), np.zeros(2, np.int32), ext.TensorArray(targets), np.zeros((2, 16), np.float32)
    ptx = cute.compile(gathered, args, arch="sm_90a").ptx
    assert ptx.count(".param .align 64 .b8") + ptx.count(".param .align 128 .b8") == 7


def made(shape, dtype=np.float16, align=None):
    return from_dlpack(aligned(shape, dtype), align)


IN_SHARED = cute.make_tensor(cute.make_ptr(cute.Float16, 0, SMEM, assumed_align=16), cute.make_layout(8))


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ([], "give one tensor or more"),
        ([3], "tensor 0 3 must be a tensor in global memory"),
        ([made((4, 8)), made((4, 4))], "tensor 1 .* is not like the first one"),
        ([made((8,)), made((8,)), made((8,), np.float32)], "tensor 2 .* is not like the first one"),
        ([made((8,), align=16), made((8,), align=2)], "alignment"),
        ([IN_SHARED], "must be a tensor in global memory"),
    ],
    ids=["none", "no tensor", "layouts", "types", "alignments", "memory"],
)
def test_tensors_that_are_not_alike_are_refused(others, why):
    with pytest.raises(CuteError, match=f"TensorArray: .*{why}"):
        ext.TensorArray(others)
