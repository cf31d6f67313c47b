# SPDX-License-Identifier: Apache-2.0
"""TMA from a kernel's plain tensors: whatever way a tile is taken, it arrives; a map is made once; what cannot be
copied is refused with the reason."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from numba import cuda
from numba.cuda.typing.typeof import typeof

import numba_cute as cute
from numba_cute import arch, config, experimental as ext
from numba_cute.experimental.tensors import ARGUMENTS
from numba_cute.nvgpu import ReductionOp
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from .kernels import RMEM, SMEM, aligned, swizzled, tensor, through_shared_memory

F16 = cute.Float16
K128 = swizzled((64, 64), 3, F16, 1)


@pytest.mark.parametrize("dynamic", [True, False], ids=["run-time extents", "static extents"])
@pytest.mark.parametrize(
    ("dtype", "bits", "major", "tile"),
    [(F16, 3, 1, (64, 64)), (F16, 3, 0, (64, 64)), (F16, 0, 1, (16, 8)), (cute.Float32, 2, 1, (32, 16)),
     (cute.Uint8, 1, 1, (32, 32)), (F16, 3, 1, (32, 128))],
    ids=str,
)  # fmt: skip
def test_tiles_go_to_shared_memory_and_back(run, dtype, bits, major, tile, dynamic):
    """Ragged at both ends, of more boxes than one too: what lies outside is left out."""
    shape = (2 * tile[0] + 16, tile[1] + 16)
    src, dst = (aligned(shape, dtype.numpy, "C" if major == 1 else "F") for _ in range(2))
    kernel = through_shared_memory(dtype, tile, swizzled(tile, bits, dtype, major))
    grid = tuple(-(-n // t) for n, t in zip(shape, tile))
    run(
        kernel, grid, 32, [tensor(src, dynamic), tensor(dst, dynamic)], outputs=[dst],
        check=lambda: np.testing.assert_array_equal(src, dst),
    )  # fmt: skip


@cuda.jit
def load(tile, s, pipe):
    """A device function that copies by TMA: the map comes with the tensor."""
    stage, _ = pipe.producer_acquire_and_get_stage()
    ext.tma_load(tile, s, ext.get_mbarrier(stage))
    pipe.producer_commit_and_advance()


@ext.kernel
def ways(src, pair, dst):
    """Tiles of one tensor by every way to take them, into two layouts: four maps in all."""
    s = ext.allocate(F16, SMEM, K128, alignment=1024)
    plain = ext.allocate(F16, SMEM, cute.make_ordered_layout((16, 8), (1, 0)), alignment=128)
    pipe = ext.TMAToAsyncPipeline.create(num_stages=1, consumer_arv_count=32)
    (other,) = pair
    for i in cute.range_constexpr(4):
        if i == 0:
            load(cute.local_tile(src, (64, 64), (1, 1)), s, pipe)
        elif i == 1:
            load(cute.flat_divide(src, (64, 64))[None, None, 0, 1], s, pipe)
        elif i == 2:
            load(cute.local_tile(cute.domain_offset((64, 0), src), (64, 64), (0, 0)), s, pipe)
        else:
            load(cute.tiled_divide(other, (64, 64))[(None, None), 0, 0], s, pipe)
        pipe.consumer_wait()
        ext.tma_store(s, cute.local_tile(dst, (64, 64), (i, 0)))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)
        pipe.consumer_release_and_advance()
    load(cute.local_tile(src, (16, 8), (2, 3)), plain, pipe)
    pipe.consumer_wait()
    ext.tma_store(plain, cute.local_tile(dst, (16, 8), (16, 0)))
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


def test_every_way_to_take_a_tile_keeps_its_place(run):
    src, other, dst = aligned((128, 128)), aligned((64, 64)), aligned((5 * 64, 64))

    def right():
        want = [src[64:, 64:], src[:64, 64:], src[64:, :64], other]
        for i, tile in enumerate(want):
            np.testing.assert_array_equal(dst[64 * i : 64 * i + 64], tile)
        np.testing.assert_array_equal(dst[256:272, :8], src[32:48, 24:32])

    pair = lambda place: (tensor(other)(place),)  # noqa: E731
    run(ways, 1, 32, [tensor(src), pair, tensor(dst)], outputs=[dst], check=right)


def test_maps_are_grid_constants_and_one_for_each_form():
    args = tuple(from_dlpack(x, assumed_align=16) for x in (aligned((128, 128)), aligned((64, 64)), aligned((320, 64))))
    ptx = cute.compile(ways, (args[0], (args[1],), args[2]), arch="sm_90a").ptx
    assert ptx.count(".param .align 64 .b8") == 5  # src and dst twice, the other once
    assert "ld.global" not in ptx.split("cp.async.bulk.tensor")[0]


def test_a_tensor_brings_the_same_maps_each_time():
    """So that a launch encodes nothing anew, and Numba's caches find the kernel by its types."""
    src = from_dlpack(aligned((64, 64)), assumed_align=16)
    seeking = ARGUMENTS.seeking((src,), 1)[0]
    assert type(seeking).__name__ == "GlobalTensor" and seeking.maps.wanted == ((0,), 1)
    forms = {(0,): (cute_form(),)}
    first, again = (ARGUMENTS.bringing((src,), forms)[0] for _ in range(2))
    assert first is again and first.maps.records[0].box == (64, 64)
    ty = typeof(first)
    assert pickle.loads(pickle.dumps(ty)).key == ty.key


def cute_form():
    """The form that a load of a 64 x 64 tile asks for."""
    asked = []

    class Backend:
        def tensor_map(self, maps, form, tensor):
            asked.append(form)
            raise StopIteration

    from numba_cute import seam
    from numba_cute.nvgpu.hopper.tma_ops import CopyBulkTensorTileG2SOp
    from numba_cute.nvgpu.hopper.tma_tiles import Tile, copy_tile

    src = from_dlpack(aligned((64, 64)), assumed_align=16)
    s = cute.make_tensor(cute.make_ptr(F16, 0, SMEM, assumed_align=1024), cute.make_ordered_layout((64, 64), (1, 0)))
    with seam.running(Backend()), pytest.raises(StopIteration):
        copy_tile("tma_load", CopyBulkTensorTileG2SOp(), Tile(src, cute.make_identity_tensor((64, 64)), None, None), s)
    return asked[0]


CLUSTER = cute.make_layout((1, 2, 1, 1))


@cute.cluster_shape(2)
@ext.kernel
def shared_by_two(src, dst):
    """Two blocks load half of a tile each, for both."""
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    s = ext.allocate(F16, SMEM, K128, alignment=1024)
    pipe = ext.TMAToAsyncPipeline.create(
        num_stages=1, consumer_arv_count=32, tma_operation_type=ext.OperationTypeEnum.SM90_TMA_LOAD_MULTICAST,
        cluster_layout_vmnk=CLUSTER, mcast_mode_mn=(0, 1),
    )  # fmt: skip
    for k in range(2):
        stage, _ = pipe.producer_acquire_and_get_stage()
        tile = cute.local_tile(src, (64, 64), (0, k))
        ext.tma_load_multicast(tile, s, ext.get_mbarrier(stage), vmnk_layout=CLUSTER, multicast_mode=1)
        pipe.producer_commit_and_advance()
        pipe.consumer_wait()
        ext.tma_store(s, cute.local_tile(dst, (64, 64), (rank, k)))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)
        arch.sync_warp()  # another lane than the one that waited releases
        pipe.consumer_release_and_advance()
    pipe.producer_tail()


def test_a_multicast_load_brings_each_block_the_whole_tile(run):
    src, dst = aligned((64, 128)), aligned((128, 128))
    want = lambda: np.testing.assert_array_equal(dst, np.tile(src, (2, 1)))  # noqa: E731
    run(shared_by_two, 2, 32, [tensor(src), tensor(dst)], outputs=[dst], check=want)


@ext.kernel
def added(src, dst):
    s = ext.allocate(cute.Float32, SMEM, cute.make_ordered_layout((16, 32), (1, 0)), alignment=128)
    tidx, _, _ = arch.thread_idx()
    for i in range(16):
        s[i, tidx] = src[i, tidx]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    ext.tma_reduce_store(s, dst, reduction_kind=ReductionOp.ADD)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


def test_a_reducing_store_adds_to_what_is_there(run):
    src, dst = aligned((16, 32), np.float32), aligned((16, 32), np.float32)
    want = src + dst
    run(
        added, 1, 32, [tensor(src), tensor(dst, False)], inouts=[dst],
        check=lambda: np.testing.assert_array_equal(dst, want),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ refusals


def one_load(tile, layout, dtype=F16, plain=False):
    @ext.kernel
    def loads(src, bar):
        s = ext.allocate(dtype, SMEM, layout, alignment=1024)
        of = s if cute.const_expr(plain) else src
        ext.tma_load(cute.local_tile(of, tile, (0, 0)), s, cute.recast_ptr(s.iterator, dtype=cute.Int64))

    return loads


def refused(kernel, src, dynamic=True):
    args = (tensor(src, dynamic)(lambda a: a), np.zeros(1, np.int64))
    said = []
    for way in (lambda: cute.compile(kernel, args, arch="sm_90a"), lambda: cute.simulate(kernel)[1, 32](*args)):
        with pytest.raises(CuteError) as e:
            way()
        said.append(str(e.value))
    return said


@pytest.mark.parametrize(
    ("kernel", "src", "word"),
    [
        (one_load((64, 64), K128, plain=True), aligned((64, 64)), "not part of a tensor that is an argument"),
        (one_load((32, 64), K128), aligned((64, 64)), "does not have as many elements as shared memory"),
        (one_load((64, 64), K128), aligned((64, 64), order="F"), "must be a static 1"),
        (
            one_load((64, 64), K128, cute.BFloat16),
            aligned((64, 64)),
            "dst holds BFloat16, but the tensor",
        ),
    ],
    ids=["another tensor", "another size", "another major mode", "another type"],
)
def test_what_tma_cannot_copy_is_refused_alike(kernel, src, word):
    for said in refused(kernel, src):
        assert said.startswith("tma_load: ") and word in said


def test_the_tensor_of_a_launch_is_checked():
    """A run-time stride that is not a multiple of 16 bytes, an address that is none."""
    kernel = through_shared_memory(F16, (64, 64), K128)
    odd = np.zeros((64, 73), np.float16)[:, :72]
    with pytest.raises(CuteError, match="multiple of 16"):
        cute.compile(kernel, (tensor(odd)(lambda a: a),) * 2, arch="sm_90a")


def test_a_signature_does_not_say_which_maps_there_are():
    kernel = through_shared_memory(F16, (64, 64), K128)
    with pytest.raises(CuteError, match="give example arguments"):
        cute.compile(kernel, (typeof(np.zeros(1)),), arch="sm_90a")


def test_wrong_operations_and_layouts_are_named():
    s = cute.make_tensor(cute.make_ptr(F16, 0, SMEM, assumed_align=1024), cute.make_layout((64, 64)))
    kinds = ext.OperationTypeEnum
    with pytest.raises(CuteError, match="tma_operation_type .* must be one of SM90_TMA_LOAD, SM100_TMA_LOAD_2SM"):
        ext.tma_load(s, s, s.iterator, tma_operation_type=kinds.SM90_TMA_LOAD_MULTICAST)
    with pytest.raises(CuteError, match="multicast_mode 3"):
        ext.tma_load_multicast(s, s, s.iterator, vmnk_layout=CLUSTER, multicast_mode=3)
    with pytest.raises(CuteError, match="four modes"):
        ext.tma_load_multicast(s, s, s.iterator, vmnk_layout=cute.make_layout(2), multicast_mode=1)
    with pytest.raises(CuteError, match='operand .Q. must be "A"'):
        ext.get_cta_v_map_ab(s, (64, 64, 64), None, "Q")


# ---------------------------------------------------------------------------------------------- a tensor's other uses


@ext.kernel
def ordinary(src, dst):
    """Its elements, vectors and copies are as those of any tensor."""
    tidx, _, _ = arch.thread_idx()
    row = src[tidx, None]
    r = ext.allocate(F16, RMEM, (8,))
    ext.simt_auto_vec_copy(row, r)
    r.store(r.load() + F16(1))
    cute.autovec_copy(r, dst[tidx, None])
    dst[tidx, 7] = src[tidx, 0]


def test_a_tensor_argument_is_memory_as_any_other(run):
    src, dst = aligned((32, 8)), aligned((32, 8))

    def right():
        np.testing.assert_array_equal(dst[:, :7], src[:, :7] + 1)
        np.testing.assert_array_equal(dst[:, 7], src[:, 0])

    run(ordinary, 1, 32, [tensor(src, False), tensor(dst, False)], outputs=[dst], check=right)


# ------------------------------------------------------------------------------------------------------------- on a GPU


def whole_tile(src, dst):
    s = ext.allocate(F16, SMEM, K128, alignment=1024)
    pipe = ext.TMAToAsyncPipeline.create(num_stages=1, consumer_arv_count=32)
    stage, _ = pipe.producer_acquire_and_get_stage()
    ext.tma_load(cute.local_tile(src, (64, 64), (0, 0)), s, ext.get_mbarrier(stage))
    pipe.producer_commit()
    pipe.consumer_wait()
    ext.tma_store(s, cute.local_tile(dst, (64, 64), (0, 0)))
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


@pytest.mark.gpu
def test_launches_of_all_kinds_bring_maps_and_the_disk_cache_keeps_kernels(tmp_path):
    torch = pytest.importorskip("torch")
    if not cuda.is_available() or cuda.get_current_device().compute_capability < (9, 0):
        pytest.skip("needs a GPU with TMA")
    src = torch.arange(64 * 64, dtype=torch.float16, device="cuda").reshape(64, 64) % 251
    kernels = [ext.kernel(cache=True)(whole_tile) for _ in range(2)]
    launches = (
        lambda k, *a: k[1, 32](*a), lambda k, *a: cute.launch(k, grid=1, block=32)(*a),
        lambda k, *a: cute.launch(k, grid=1, block=32).prepare(*a)(),
    )  # fmt: skip
    with config.override(cache=True, cache_dir=str(tmp_path)):
        for kernel, launch, _ in itertools.product(kernels, launches, range(2)):
            dst = torch.zeros_like(src)
            launch(kernel, *(from_dlpack(x, assumed_align=16) for x in (src, dst)))
            torch.cuda.synchronize()
            assert bool((dst == src).all())
    assert (
        sum(kernels[0].dispatcher.stats.cache_hits.values()) == 0 < sum(kernels[1].dispatcher.stats.cache_hits.values())
    )
