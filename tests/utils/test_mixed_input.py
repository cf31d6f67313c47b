# SPDX-License-Identifier: Apache-2.0
"""A with narrow elements, converted and scaled by threads on its way to tcgen05.mma: products, and the choices."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, nvgpu, seam, utils
from numba_cute.nvgpu import cpasync, tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode as Major, OperandSource
from numba_cute.runtime import from_dlpack, pack
from numba_cute.seam import CuteError
from numba_cute.utils import mixed_input_helpers as mixed, sm100
from numba_cute.utils.mixed_input_helpers import TransformMode

from ..nvgpu.test_umma import results
from ..nvgpu.umma_kernels import fence_after, fence_before, parts, read_words, result_words, write_words

BF16, F16, F32 = cute.BFloat16, cute.Float16, cute.Float32
TILE = (128, 64, 64)


def tiled(a_major, mma_dtype=BF16):
    source = mixed.get_transform_a_source(a_major)
    return sm100.make_trivial_tiled_mma(mma_dtype, a_major, Major.K, F32, CtaGroup.ONE, TILE[:2], source)


def transform(mma, a_dtype, scale_mode, shuffle, layouts):
    """What the warpgroup does: A from shared memory, converted and scaled, to where the multiplies read it."""
    source, (_, lay_t, _) = mma.op.a_src, layouts
    shape = mma.partition_shape_A((TILE[0], TILE[2]))
    store = mixed.get_copy_atom_a_transform(mma.op.a_type, False, source, shape, a_dtype)
    scaled = scale_mode is TransformMode.ConvertScale

    @seam.traced
    def go(s_a, s_t, s_scale, tmem, tid):
        to = s_t
        if source is OperandSource.TMEM:
            made = mma.make_fragment_A(lay_t.outer.shape)
            to = cute.make_tensor(cute.recast_ptr(tmem, dtype=made.element_type) + 256, made.layout)
        atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), a_dtype) if a_dtype.width >= 8 else store
        src_copy, dst_copy, mine, out = mixed.transform_partition(source, scale_mode, atom, store, s_a, to, tid)
        at = (None, None, None, None, 0)
        held = cute.make_rmem_tensor(mine[at].shape, a_dtype)
        cute.autovec_copy(mine[at], held)
        converted = mixed.cvt_tensor_a(held, mma.op.a_type, shuffle)
        if scaled:
            leader = mma.get_slice(0).partition_A(s_scale)
            _, part, once, each = mixed.scale_partition(src_copy, leader, tid, mma.op.a_type)
            one = part[at]
            cute.autovec_copy(cute.filter_zeros(one), once)
            converted = converted * each.load()
        result = cute.make_rmem_tensor(held.shape, mma.op.a_type)
        result.store(converted)
        mixed.store_transformed_a(result, out[at], dst_copy)
        if source is OperandSource.TMEM:
            arch.fence_view_async_tmem_store()
        else:
            arch.fence_proxy("async.shared", space="cta")

    return go


def multiply_of(mma, lay_t, acc_layout):
    """What one warp does: the product of the transformed A."""

    @seam.traced
    def multiply(s_t, s_b, tmem, bar):
        acc = cute.make_tensor(tmem, acc_layout)
        if mma.op.a_src is OperandSource.TMEM:
            part = mma.make_fragment_A(lay_t.outer.shape)
            f_a = cute.make_tensor(cute.recast_ptr(tmem, dtype=part.element_type) + 256, part.layout)
        else:
            f_a = mma.make_fragment_A(s_t)
        f_b = mma.make_fragment_B(s_b)
        at = (None, None, None, 0)
        cute.gemm(mma.set(tcgen05.Field.ACCUMULATE, False), acc, f_a[at], f_b[at], acc)
        tcgen05.commit(bar)

    return multiply


@seam.traced
def expect(bar, size):
    """One lane of a warp."""
    seam.current().when(arch.elect_one(), lambda: arch.mbarrier_arrive_and_expect_tx(bar, size))


@seam.traced
def load_a(mma, tma_a, a, s_a, bar):
    """One warp."""
    mine = mma.get_slice(0).partition_A(cute.local_tile(a, (TILE[0], TILE[2]), (0, 0)))
    to, source = cpasync.tma_partition(
        tma_a, 0, cute.make_layout(1), cute.group_modes(s_a, 0, 3), cute.group_modes(mine, 0, 3)
    )
    cute.copy(tma_a, source, to[None, 0], tma_bar_ptr=bar)


@seam.traced
def load_scales(mma, tma_s, s, s_s, bar):
    """One warp."""
    leader = mma.get_slice(0)
    tiles = leader.partition_A(cute.local_tile(s, (TILE[0], TILE[2]), (None, None, None)))
    to, source = mixed.scale_tma_partition(
        leader.partition_A(s_s), tiles, tma_s, (0, 0, 0, 0), cute.make_layout(1)
    )  # fmt: skip
    cute.copy(tma_s, source[None, 0, 0, 0], to[None, 0], tma_bar_ptr=bar)


@seam.traced
def meet():
    """All threads, and their work on tensor memory."""
    fence_before()
    arch.sync_threads()
    fence_after()


def product(mma, a_dtype, mode, shuffle, granule):
    """A kernel (a, b, tma_s, s, out) of one tile: a and b as the threads store them, the scales by TMA."""
    layouts = mixed.compute_smem_layout(mma, TILE, a_dtype, mma.op.b_type, 1, 1)
    lay_a, lay_t, lay_b = layouts
    scaled = mode is TransformMode.ConvertScale
    _, one, lay_s = mixed.get_smem_layout_scale(TILE, False, 1, granule, Major.MN, mma.op.a_type, 1)
    go = transform(mma, a_dtype, mode, shuffle, layouts)
    words = result_words(mma.op, TILE)
    multiply = multiply_of(mma, lay_t, mma.make_fragment_C(mma.partition_shape_C(TILE[:2])).layout)
    a_bytes = cute.cosize(lay_a.outer) * a_dtype.width // 8
    scale_bytes = cute.cosize(one.outer) * mma.op.a_type.width // 8

    @cuda.jit
    def kernel(tma_a, a, b, tma_s, s, out):
        tid, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(a_dtype, lay_a.outer, 1024, lay_a.inner)
        s_b = smem.allocate_tensor(mma.op.b_type, lay_b.outer, 1024, lay_b.inner)
        s_t = smem.allocate_tensor(mma.op.a_type, lay_t.outer, 1024, lay_t.inner)
        s_s = smem.allocate_tensor(mma.op.a_type, lay_s.outer, 1024)
        bar, bar_s = smem.allocate_array(cute.Int64, 1), smem.allocate_array(cute.Int64, 1)
        bar_a = smem.allocate_array(cute.Int64, 1)
        slot = smem.allocate_array(cute.Int32, 1)
        if warp == 0:
            arch.alloc_tmem(512, slot)
        if tid == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init(bar_s, 1)
            arch.mbarrier_init(bar_a, 1)
        arch.mbarrier_init_fence()
        meet()
        tmem = arch.retrieve_tmem_ptr(F32, 16, slot)
        if warp == 0:
            expect(bar_a, a_bytes)
            load_a(mma, tma_a, a, s_a, bar_a)
            if cute.const_expr(scaled):
                expect(bar_s, scale_bytes)
                load_scales(mma, tma_s, s, s_s, bar_s)
        for i in range(tid, cute.size(s_b), 128):
            s_b[i] = b[0, i]
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_threads()
        arch.mbarrier_wait(bar_a, 0)
        if cute.const_expr(scaled):
            arch.mbarrier_wait(bar_s, 0)
        go(s_a, s_t, s_s, tmem, tid)
        meet()
        if warp == 0:
            multiply(s_t, s_b, tmem, bar)
        arch.mbarrier_wait(bar, 0)
        got = cute.make_rmem_tensor(words, cute.Uint32)
        read_words(got, tmem, warp, words)
        for j in cute.range_constexpr(words):
            out[0, tid, j] = got[j]
        meet()
        if warp == 0:
            arch.dealloc_tmem(tmem, 512)

    return kernel


def aligned(x, dtype, major):
    """The matrix as TMA takes it: bytes of packed rows for elements below one."""
    x = x.astype(dtype.numpy)
    held = pack(x) if dtype.width < 8 else x if major is Major.K else np.ascontiguousarray(x.T)
    raw = np.zeros(held.nbytes + 16, np.uint8)
    start = -raw.ctypes.data % 16
    out = raw[start : start + held.nbytes].view(held.dtype).reshape(held.shape)
    out[...] = held
    return out if dtype.width < 8 or major is Major.K else out.T


ORDER = np.array([0, 2, 1, 3, 4, 6, 5, 7])
CASES = [
    (cute.Int8, Major.K, 0, False), (cute.Int8, Major.MN, 0, False), (cute.Int4, Major.K, 64, False),
    (cute.Int4, Major.K, 128, True), (cute.Float8E4M3FN, Major.MN, 64, False), (cute.Int8, Major.K, 64, False),
]  # fmt: skip


@pytest.mark.parametrize(
    "a_dtype, major, granule, shuffle",
    [pytest.param(*c, marks=() if i in (1, 3) else pytest.mark.slow) for i, c in enumerate(CASES)], ids=str,
)  # fmt: skip
def test_a_is_converted_and_scaled_on_its_way(run, rng, a_dtype, major, granule, shuffle):
    m, n, k = TILE
    mma = tiled(major)
    a = rng.integers(-7, 8, (m, k)).astype(np.float64)
    b = rng.integers(-3, 4, (n, k)).astype(np.float64)
    scales = 2.0 ** rng.integers(-2, 3, (m, 1)) if granule else np.ones((m, 1))
    want = (a * scales) @ b.T
    stored = a.reshape(m, -1, 8)[..., ORDER].reshape(m, k) if shuffle else a
    one = mma.shape_mnk
    in_a = aligned(stored, a_dtype, major)
    in_b = parts(b.astype(ml_dtypes.bfloat16), one[1], one[2], 1)
    raw = np.zeros(2 * m + 16, np.uint8)
    start = -raw.ctypes.data % 16
    in_s = raw[start : start + 2 * m].view(ml_dtypes.bfloat16)
    in_s[...] = scales[:, 0]
    mode = TransformMode.ConvertScale if granule else TransformMode.ConvertOnly
    out = np.zeros((1, 128, result_words(mma.op, TILE)), np.uint32)

    def atom_a(which):
        def make(place):
            t = cute.recast_tensor(from_dlpack(place(in_a), assumed_align=16), a_dtype)
            smem = cute.slice_(mixed.compute_smem_layout(mma, TILE, a_dtype, BF16, 1, 1)[0], (None, None, None, 0))
            op = mixed.get_tma_atom_kind(False, False, False)
            return nvgpu.make_tiled_tma_atom_A(op, t, smem, TILE, mma, (1, 1, 1, 1))[which]

        return make

    def atom(which):
        def make(place):
            lay = mixed.get_gmem_layout_scale((m, k, 1), 1, granule or k, Major.MN)
            t = cute.make_tensor(from_dlpack(place(in_s), assumed_align=16).iterator, lay)
            tile, smem, _ = mixed.get_smem_layout_scale(TILE, False, 1, granule or k, Major.MN, BF16, 1)
            op = mixed.get_tma_atom_kind(False, False, False)
            return nvgpu.make_tiled_tma_atom_A(op, t, smem.outer, (tile[0], 1, tile[1]), mma, (1, 1, 1, 1))[which]

        return make

    def check():
        np.testing.assert_array_equal(results(mma.op, out, TILE), want)

    kernel = product(mma, a_dtype, mode, shuffle, granule or k)
    args = [atom_a(0), atom_a(1), lambda place: from_dlpack(place(in_b)), atom(0), atom(1), out]
    run(kernel, 1, 128, args, outputs=[out], check=check, arch="sm_100a")


def test_of_a_pair_each_cta_holds_the_scales_of_its_half():
    tile, one, staged = mixed.get_smem_layout_scale((256, 128, 64), True, 1, 32, Major.MN, BF16, 3)
    assert tile == (256, 64)
    assert repr(one.outer) == "((128,2),(32,2)):((1,0),(0,128))" and cute.cosize(one.outer) == 256
    assert cute.cosize(staged.outer) == 3 * 256
    gmem = mixed.get_gmem_layout_scale((512, 256, 3), 1, 32, Major.MN)
    assert repr(gmem) == "((1,512),(32,8),3):((0,1),(0,512),4096)"
    assert repr(mixed.get_gmem_layout_scale((512, 256, 3), 1, 32, Major.K)) == "((1,512),(32,8),3):((0,8),(0,1),4096)"


def test_loads_of_b_complete_on_the_first_block_of_a_pair():
    one, two = CtaGroup.ONE, CtaGroup.TWO
    assert mixed.get_tma_atom_kind(False, True, True) == cpasync.CopyBulkTensorTileG2SOp(two)
    assert mixed.get_tma_atom_kind(True, True, False) == cpasync.CopyBulkTensorTileG2SMulticastOp(one)
    assert mixed.get_tma_atom_kind(True, False, True) == cpasync.CopyBulkTensorTileG2SMulticastOp(one)


def test_what_can_be_done_is_told_on_the_host():
    assert [mixed.get_divisibility(n) for n in (96, 100, 7, 1024)] == [32, 4, 1, 128]
    assert mixed.is_shuffle_a("k", 256, cute.Int4, BF16, 64)
    assert not mixed.is_shuffle_a("m", 256, cute.Int4, BF16, 64) and not mixed.is_shuffle_a("k", 4, cute.Int4, BF16, 0)
    valid = mixed.is_valid_mma_tiler_and_cluster_shape
    assert valid((128, 64, 64), (1, 2), False) and valid((256, 256, 64), (2, 1), True)
    assert not valid((256, 64, 64), (1, 1), True) and not valid((64, 64, 64), (1, 1), False)
    granular = mixed.is_valid_scale_granularity
    assert granular(0, 0, cute.Int8, 512, 64) and granular(1, 256, cute.Int4, 512, 64)
    assert not granular(1, 96, cute.Int4, 576, 64) and not granular(2, 64, cute.Int4, 512, 64)

    def alignment(m, n, k, a_major="k"):
        types = cute.Int4, BF16, BF16, BF16
        return mixed.is_valid_tensor_alignment(
            m, n, k, *types, a_major, "k", "n", (128, 128, 64), False, (1, 1), 1, 64
        )  # fmt: skip

    assert alignment(256, 128, 512) and not alignment(256, 100, 512) and not alignment(256, 128, 40)
    assert not alignment(200, 128, 512, "m")


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: mixed.get_transform_a_source("k"), "a_major_mode 'k' is none"),
        (lambda: mixed.get_gmem_layout_scale((8, 8, 1), 0, 8, Major.MN), "must be static, at least 1"),
        (lambda: mixed.get_smem_layout_scale(TILE, False, 2, 64, Major.MN, BF16, 1), "scale_granularity_m 2 must be 1"),
        (lambda: mixed.get_smem_layout_scale(TILE, False, 1, 48, Major.MN, BF16, 1), "a multiple or a divisor of K 64"),
        (lambda: mixed.get_smem_layout_scale(TILE, False, 1, 64, Major.K, BF16, 1), "must be MN"),
        (
            lambda: mixed.get_copy_atom_a_transform(BF16, False, OperandSource.TMEM, ((64, 16), 1, 4), cute.Int8),
            "a CTA has 64 rows of A in tensor memory; they must be 128",
        ),
    ],
    ids=range(6),
)
def test_what_cannot_be_done_is_refused(make, why):
    with pytest.raises(CuteError, match=why):
        make()


@cuda.jit
def searched(cumsum, groups, count, out):
    """For each tile: its group, where it begins, where the group ends, and what the CTA's tile says of it."""
    smem = utils.SmemAllocator()
    info = smem.allocate_tensor(cute.Int32, cute.make_layout(4), 16)
    state = mixed.create_initial_contiguous_group_search_state()
    for i in range(count):
        state = mixed.contiguous_group_search((128, 64, 32), groups, i, state, cumsum, 1)
        out[i, 0], out[i, 1], out[i, 2] = state.cur_group_idx, state.cur_start, state.cur_boundary
        info[0], info[1] = 3, state.cur_start
        info[2], info[3] = state.cur_group_idx - 1, state.cur_boundary - state.cur_start
        work = mixed.make_contiguous_group_work_tile_info(groups, info)
        out[i, 3], out[i, 4], out[i, 5] = work.coord_n, work.distance_to_boundary, 0
        if work.is_valid_tile:
            out[i, 5] = work.group_idx + work.cta_coord_m


def test_tiles_of_groups_that_lie_one_after_the_other(run):
    sizes = [100, 0, 64, 1, 130]
    cumsum = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    want = []
    for g, n in enumerate(sizes):
        want += [[g + 1, cumsum[g] + s, cumsum[g + 1], cumsum[g] + s, n - s, g + 3] for s in range(0, n, 64)]
    want.append([len(sizes) + 1, 0, 0, 0, 0, 0])  # beyond all groups
    out = np.zeros((len(want), 6), np.int32)

    def check():
        np.testing.assert_array_equal(out, want)

    args = [cumsum, np.int32(len(sizes)), np.int32(len(want)), out]
    run(searched, 1, 1, args, inouts=[out], check=check)


def leaving(mma, c_dtype, by_tma):
    """A kernel (source, tma_c, c): numbers of tensor memory leave for one of several tiles of C, by TMA or directly."""
    order = utils.LayoutEnum.ROW_MAJOR
    epi_tile = sm100.compute_epilogue_tile_shape(TILE, False, order, c_dtype) if by_tma else TILE[:2]
    lay_c = sm100.make_smem_layout_epi(c_dtype, order, epi_tile, 1) if by_tma else None
    acc_layout = mma.make_fragment_C((*mma.partition_shape_C(TILE[:2]), 1)).layout
    parts_n = TILE[1] // cute.size(epi_tile[1])

    @cuda.jit
    def kernel(source, tma_c, c):
        tid, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        slot = smem.allocate_array(cute.Int32, 1)
        if warp == 0:
            arch.alloc_tmem(64, slot)
        meet()
        tmem = arch.retrieve_tmem_ptr(F32, 16, slot)
        regs = cute.make_rmem_tensor(TILE[1], cute.Uint32)
        for j in cute.range_constexpr(TILE[1]):
            regs[j] = source[tid, j]
        write_words(regs, tmem, warp, TILE[1])
        acc = cute.make_tensor(tmem, acc_layout)
        mine = mma.get_slice(0).partition_C(cute.local_tile(c, TILE[:2], (None, None)))
        mine = cute.make_tensor(mine.iterator, cute.append(mine.layout, cute.make_layout(1)))
        t2r, at_acc, held = mixed.epilog_tmem_copy_and_partition(
            TILE, order, c_dtype, F32, tid, acc, mine, epi_tile, False
        )  # fmt: skip
        results = cute.make_rmem_tensor(held.shape, c_dtype)
        if cute.const_expr(by_tma):
            s_c = smem.allocate_tensor(c_dtype, lay_c.outer, 1024, lay_c.inner)
            r2s, from_regs, to_smem = mixed.epilog_smem_copy_and_partition(order, c_dtype, F32, t2r, results, tid, s_c)
            atom, left, out, _, threads_out = mixed.epilog_gmem_copy_and_partition(
                c_dtype, tid, tma_c, t2r, mine, mine, epi_tile, s_c
            )
            cute.rank(threads_out)  # both ways are made: None has no rank
        else:
            _, _, _, atom, out = mixed.epilog_gmem_copy_and_partition(
                c_dtype, tid, None, t2r, None, mine, epi_tile, None
            )
        for n in cute.range_constexpr(parts_n):
            cute.copy(t2r, at_acc[None, None, None, 0, n, 0], held)
            arch.fence_view_async_tmem_load()
            results.store(held.load().to(c_dtype))
            if cute.const_expr(by_tma):
                cute.copy(r2s, from_regs, to_smem[None, None, None, 0])
                arch.fence_proxy("async.shared", space="cta")
                arch.sync_threads()
                if warp == 0:
                    cute.copy(atom, left[None, 0], out[None, 0, n, 1, 0, 0])
                    arch.cp_async_bulk_commit_group()
                    arch.cp_async_bulk_wait_group(0)
                arch.sync_threads()
            else:
                cute.copy(atom, results, out[None, None, None, 0, n, 1, 0, 0])
        meet()
        if warp == 0:
            arch.dealloc_tmem(tmem, 64)

    return kernel


@pytest.mark.parametrize("by_tma", [True, False])
@pytest.mark.parametrize("c_dtype", [F16, F32], ids=str)
def test_results_leave_for_their_tile(run, rng, c_dtype, by_tma):
    mma = tiled(Major.K)
    x = rng.integers(-99, 99, TILE[:2]).astype(np.float32)
    raw = np.zeros(2 * 128 * 64 * 4 + 16, np.uint8)
    start = -raw.ctypes.data % 16
    c = raw[start : start + 2 * 128 * 64 * c_dtype.width // 8].view(c_dtype.numpy).reshape(256, 64)
    order = utils.LayoutEnum.ROW_MAJOR

    def tensor(place):
        return from_dlpack(place(c), assumed_align=16)

    def atom(which):
        def make(place):
            tile = sm100.compute_epilogue_tile_shape(TILE, False, order, c_dtype)
            lay = cute.slice_(sm100.make_smem_layout_epi(c_dtype, order, tile, 1), (None, None, 0))
            return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), tensor(place), lay, tile)[which]

        return make

    def check():
        np.testing.assert_array_equal(c[128:], x)
        assert not c[:128].any()

    args = [x.view(np.uint32), *((atom(0), atom(1)) if by_tma else (None, tensor))]
    run(leaving(mma, c_dtype, by_tma), 1, 128, args, inouts=[c], check=check, arch="sm_100a")
