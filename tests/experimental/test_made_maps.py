# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that kernels make: of tensors of run-time addresses and extents, as arrays of pointers have them."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, experimental as ext
from numba_cute.compiler.host.map_memory import Workspace, needed
from numba_cute.compiler.host.mapped import map_bytes
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from .kernels import SMEM, aligned, tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import experimental_blackwell_gemm as blackwell  # noqa: E402

import gemm_host  # noqa: E402

TILE = (32, 16)


@ext.kernel
def scattered(addresses, held, n, m, results):
    """Each of several matrices goes by TMA to another place, tile by tile, through two stages."""
    s = ext.allocate(cute.Float32, SMEM, cute.make_layout((*TILE, 2)), alignment=128)
    pipe = ext.TMAToAsyncPipeline.create(num_stages=2, consumer_arv_count=32)
    warp = arch.make_warp_uniform(arch.warp_idx())
    for i in range(cute.size(addresses)):
        ptr = cute.make_ptr(cute.Float32, addresses[i], cute.AddressSpace.gmem, assumed_align=16)
        g = cute.zipped_divide(cute.make_tensor(ptr, cute.make_layout((n, m), stride=(1, n))), TILE)
        if warp == 0:
            for k in range(cute.size(g, mode=[1])):
                stage, at = pipe.producer_acquire_and_get_stage()
                ext.tma_load(g[(None, None), k], s[None, None, at], ext.get_mbarrier(stage))
                pipe.producer_commit_and_advance()
        else:
            ptr = cute.make_ptr(cute.Float32, results[i], cute.AddressSpace.gmem, assumed_align=16)
            d = cute.zipped_divide(cute.make_tensor(ptr, cute.make_layout((n, m), stride=(1, n))), TILE)
            for k in range(cute.size(g, mode=[1])):
                _, at = pipe.consumer_wait_and_get_stage()
                ext.tma_store(s[None, None, at], d[(None, None), k])
                arch.cp_async_bulk_commit_group()
                arch.cp_async_bulk_wait_group(0)
                arch.sync_warp()
                pipe.consumer_release_and_advance()
    if warp == 0:
        pipe.producer_tail()


def scattering():
    matrices = [aligned((20, 40), np.float32) + i for i in range(2)]
    results = [aligned((20, 40), np.float32) * 0 for _ in matrices]
    pointers = [np.array([x.ctypes.data for x in of], np.int64) for of in (matrices, results)]
    held = tuple(from_dlpack(x) for x in (*matrices, *results))
    return matrices, results, (from_dlpack(pointers[0]), held, np.int32(40), np.int32(20), from_dlpack(pointers[1]))


def test_matrices_behind_pointers():
    matrices, results, args = scattering()
    compiled = cute.compile(scattered, args, arch="sm_90a")
    assert compiled.ptx.count("fence.proxy.tensormap::generic.release") == 2 and not compiled.resources.spill_stores
    assert "cp.async.bulk.wait_group.read 0" in compiled.ptx  # before the map of a store is written again
    cute.simulate(scattered)[1, 64](*args)
    np.testing.assert_array_equal(results, matrices)
    of_block = map_bytes(scattered, args, "sm_90a")
    assert of_block == 2 * 128 * (1 + (304 << 10) // (32 * 16 * 4))
    assert Workspace(1000, needed(of_block, (2, 3))).give(needed(of_block, 6)) == 1024
    with pytest.raises(CuteError, match="7 bytes are given, and the maps that the kernel makes take"):
        Workspace(1024, 7).give(needed(of_block, 6))


@pytest.mark.gpu
def test_maps_on_a_gpu():
    """Launches bring memory for their maps: kernel after kernel, by both ways of launching."""
    torch = pytest.importorskip("torch")
    if not cuda.is_available() or cuda.get_current_device().compute_capability < (9, 0):
        pytest.skip("needs a GPU with TMA")
    launches = (lambda *a: scattered[1, 64](*a)), (lambda *a: cute.launch(scattered, grid=1, block=64)(*a))
    for launch, _ in itertools.product(launches, range(3)):
        matrices = torch.rand(3, 20, 40, device="cuda")
        results = torch.zeros_like(matrices)
        pointers = [torch.tensor([m.data_ptr() for m in of], device="cuda") for of in (matrices, results)]
        held = tuple(from_dlpack(of) for of in (matrices, results))
        launch(from_dlpack(pointers[0]), held, np.int32(40), np.int32(20), from_dlpack(pointers[1]))
        torch.cuda.synchronize()
        assert torch.equal(results, matrices)
    x, maps = torch.rand(24, 64, device="cuda"), torch.zeros(128, dtype=torch.uint8, device="cuda")
    out = torch.zeros(16, 32, device="cuda")
    row_major = from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1)
    atoms[1, 32](row_major, cute.Int32(9), from_dlpack(maps, assumed_align=128), from_dlpack(out), False)
    torch.cuda.synchronize()
    assert torch.equal(out[:9], x[1:10, :32]) and not out[9:].any()


@pytest.mark.slow
def test_a_product_of_matrices_behind_pointers():
    """`mainloop_mma` and `epilogue_tma_store`, on maps that change from product to product."""
    a, b, c = gemm_host.problem(128, 128, 64, cute.BFloat16)
    _, (tA, tB, tC), _ = blackwell.arguments(a, b, c, cute.BFloat16, blackwell.Plan())
    form = blackwell.form_of(blackwell.Plan(), cute.BFloat16, tC.element_type, 1, 1)
    tiler, cta_tile, multiply = form.tiler, form.cta_tile, ext.OperationTypeEnum.SM100_MMA_1SM_SS
    acc_layout = ext.make_tmem_layout_acc(form.tiled_mma, tiler, 1)

    @ext.kernel
    def products(mA, mB, mC, places, held):
        sA = ext.allocate(form.a_type, SMEM, form.a_layout, alignment=1024)
        sB = ext.allocate(form.b_type, SMEM, form.b_layout, alignment=1024)
        acc = ext.allocate(form.acc_type, cute.AddressSpace.tmem, acc_layout)
        mainloop = ext.TMAToUMMAPipeline.create(num_stages=blackwell.STAGES, mma_operation_type=multiply)
        results = ext.UMMAtoAsyncPipeline.create(num_stages=1, mma_operation_type=multiply, consumer_arv_count=128)
        stores = ext.TMAStorePipeline(stages=2, arv_count=128, barrier_id=1, tma_warp_id=0)
        warp = arch.make_warp_uniform(arch.warp_idx())
        k_tiles = cute.size(cute.zipped_divide(mA, (tiler[0], tiler[2])), mode=[1, 1])
        for i in range(cute.size(places)):
            if warp == 5:
                rows = cute.make_ptr(form.a_type, places[i], cute.AddressSpace.gmem, assumed_align=16)
                of = cute.make_tensor(rows, mA.layout)
                gA, gB = cute.zipped_divide(of, (tiler[0], tiler[2])), cute.zipped_divide(mB, (tiler[1], tiler[2]))
                for k in range(k_tiles):
                    stage, at = mainloop.producer_acquire_and_get_stage()
                    full = ext.get_mbarrier(stage)
                    a_map = ext.get_cta_v_map_ab(of, tiler, form.tiled_mma, "A")
                    b_map = ext.get_cta_v_map_ab(mB, tiler, form.tiled_mma, "B")
                    ext.tma_load(gA[(None, None), (0, k)], sA[None, None, None, at], full, cta_v_map=a_map)
                    ext.tma_load(gB[(None, None), (0, k)], sB[None, None, None, at], full, cta_v_map=b_map)
                    mainloop.producer_commit_and_advance()
            if warp == 4:
                _, at = results.producer_acquire_and_get_stage()
                into, parts = acc[None, None, None, at], tiler[2] // form.tiled_mma.shape_mnk[2]
                mainloop, _ = ext.mainloop_mma(form.tiled_mma, sA, sB, into, 0, k_tiles, parts, mainloop, mainloop)
                results.producer_commit_and_advance()
            if warp < 4:
                _, at = results.consumer_wait_and_get_stage()
                tile = acc[(None, None), 0, 0, at]
                stores = ext.epilogue_tma_store(cta_tile, False, tile, mC, (0, 0, i), stores, 0)
                results.consumer_release_and_advance()
        if warp == 5:
            mainloop.producer_tail()
        if warp == 4:
            results.producer_tail()

    others = np.ascontiguousarray(a[::-1])
    out = aligned((2, 128, 128), tC.element_type.numpy)
    places = from_dlpack(np.array([a.ctypes.data, others.ctypes.data], np.int64))
    of_all = from_dlpack(np.moveaxis(out, 0, 2), assumed_align=16)
    args = tA, tB, of_all, places, from_dlpack(others)
    assert cute.compile(products, args, arch="sm_100a").ptx.count("fence.proxy.tensormap::generic.release") == 1
    cute.simulate(products, arch="sm_100a")[1, 192](*args)
    for rows, made in ((a, out[0]), (others, out[1])):
        gemm_host.check(rows, b, made)


ROWS = cute.make_ordered_layout((16, 32), (1, 0))


@cute.kernel
def atoms(x: cute.Tensor, rows: cute.Int32, maps: cute.Tensor, out: cute.Tensor, direct: cute.Constexpr):
    """An atom that the kernel makes of a part of a tensor, and its map in memory."""
    s = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, ROWS, 128)
    bar = arch.alloc_smem(cute.Int64, 1)
    part = cute.make_tensor(x.iterator + 64, cute.make_layout((rows, 32), stride=(x.stride[0], 1)))
    atom, coordinates = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), part, ROWS, (16, 32))
    tidx, _, _ = arch.thread_idx()
    if tidx == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        cpasync.copy_tensormap(atom, maps.iterator)
        cpasync.fence_tma_desc_release()
    arch.sync_threads()
    cpasync.fence_tma_desc_acquire(maps.iterator)
    tiles = cute.group_modes(s, 0, 2), cute.group_modes(cute.local_tile(coordinates, (16, 32), (0, 0)), 0, 2)
    dst, src = cpasync.tma_partition(atom, 0, cute.make_layout(1), *tiles)
    if tidx == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 2048)
    if direct:
        cute.copy(atom, src, dst, tma_bar_ptr=bar)
    else:
        cute.copy(atom, src, dst, tma_bar_ptr=bar, tma_desc_ptr=maps.iterator)
    arch.mbarrier_wait(bar, 0)
    for i in range(16):
        out[i, tidx] = s[i, tidx]


@pytest.mark.parametrize("direct", [False, True])
def test_an_atom_that_the_kernel_makes(direct):
    x, maps, out = aligned((24, 64), np.float32), aligned((128,), np.uint8), aligned((16, 32), np.float32)
    args = tensor(x)(lambda a: a), cute.Int32(9), from_dlpack(maps, assumed_align=128), from_dlpack(out), direct
    if direct:
        with pytest.raises(CuteError, match="the atom was made in the kernel, and its tensor map is not in memory yet"):
            cute.compile(atoms, *args, arch="sm_90a")
        return
    cute.compile(atoms, *args, arch="sm_90a")
    atoms_of = cute.simulate(atoms)
    atoms_of[1, 32](*args)
    np.testing.assert_array_equal(out, np.where(np.arange(16)[:, None] < 9, x[1:17, :32], 0))
