# SPDX-License-Identifier: Apache-2.0
"""The Hopper and Ampere helpers: what they choose, and GEMMs of one tile set up with nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.utils import LayoutEnum, sm80, sm90
from tests.conftest import assert_close

ROW, COL = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
F16, BF16, F32, E4M3, S8 = cute.Float16, cute.BFloat16, cute.Float32, cute.Float8E4M3FN, cute.Int8


@pytest.mark.parametrize(("order", "major"), [(ROW, "K"), (COL, "MN")])
@pytest.mark.parametrize("dtype", [F32, F16, S8], ids=repr)
@pytest.mark.parametrize("size", range(8, 264, 8))
def test_the_layout_atom_has_the_widest_swizzle_that_divides_the_tile(order, major, dtype, size):
    rows = {"SW128": 1024, "SW64": 512, "SW32": 256}  # bits of a row
    fitting = [name for name, bits in rows.items() if size * dtype.width % bits == 0]
    got = sm90.get_smem_layout_atom(order, dtype, size)
    assert got.name == f"{major}_{(fitting or ['INTER'])[0]}"


@pytest.mark.parametrize("make", [sm90.make_smem_layout_a, sm90.make_smem_layout_b])
@pytest.mark.parametrize("order", [ROW, COL])
@pytest.mark.parametrize("dtype", [F32, BF16, E4M3], ids=repr)
@pytest.mark.parametrize("tile", [(64, 32, 32), (16, 32, 64), (48, 64, 16)])
def test_operand_layouts_cover_the_tile_and_the_stages_once(make, order, dtype, tile):
    lay = make(order, tile, dtype, 3)
    extent = tile[0] if make is sm90.make_smem_layout_a else tile[1]
    assert cute.product_each(lay.shape) == (extent, tile[2], 3)
    offsets = {int(lay.outer(i)) for i in range(cute.size(lay))}
    assert offsets == set(range(extent * tile[2] * 3)), "each element has a place of its own, and none is left"
    contiguous = (0, 1, 0) if order is ROW else (1, 0, 0)
    assert lay.outer(contiguous) == 1
    assert lay.outer((0, 0, 1)) == extent * tile[2], "stages follow one another"


@pytest.mark.parametrize("order", [ROW, COL])
@pytest.mark.parametrize("tile", [(64, 32), (128, 64), (64, 8)])
def test_epilogue_layouts_cover_the_tile_and_the_stages_once(order, tile):
    lay = sm90.make_smem_layout_epi(BF16, order, tile, 2)
    assert cute.product_each(lay.shape) == (*tile, 2)
    assert {int(lay.outer(i)) for i in range(cute.size(lay))} == set(range(2 * tile[0] * tile[1]))
    assert lay.outer((0, 1, 0) if order is ROW else (1, 0, 0)) == 1
    wide = sm90.make_smem_layout_epi(BF16, order, tile, 2, (*tile, 1), (1, 0, 2))
    assert cute.product_each(wide.shape) == (*tile, 1)


def test_the_epilogue_tile_is_never_more_than_the_tile_has():
    choose = sm90.compute_tile_shape_or_override
    assert choose((128, 256, 64), F16, True) == (128, 32)
    assert choose((64, 256, 64), F16, True) == (64, 32)
    assert choose((128, 256, 64), F16) == (64, 32)
    assert choose((128, 128, 64), E4M3) == (64, 64)
    assert choose((128, 96, 64), E4M3) == (64, 32), "64 does not divide 96"
    assert choose((64, 8, 16), F32) == (64, 8)
    assert choose((64, 8, 16), F32, epi_tile_override=(32, 4)) == (32, 4)


def test_store_ops_are_matrices_for_16_bits_and_elements_otherwise():
    op = sm90.get_smem_store_op(ROW, F16, F32).op
    assert (type(op).__name__, op.transpose, op.num_matrices) == ("StMatrix8x8x16bOp", False, 4)
    assert sm90.get_smem_store_op(COL, BF16, F32).op.transpose
    assert type(sm90.get_smem_store_op(ROW, F32, F32).op).__name__ == "CopyUniversalOp"
    assert sm80.get_smem_store_op(ROW, F16, F32).num_bits == 32 and sm80.get_smem_store_op(COL, F16, F32).num_bits == 16


@pytest.mark.parametrize(
    ("types", "op", "k"),
    [((F16, F16, F16), "MmaF16BF16Op", 16), ((BF16, BF16, F32), "MmaF16BF16Op", 16),
     ((E4M3, cute.Float8E5M2, F32), "MmaF8Op", 32), ((S8, cute.Uint8, cute.Int32), "MmaI8Op", 32),
     ((cute.TFloat32, cute.TFloat32, F32), "MmaTF32Op", 8)],
)  # fmt: skip
def test_the_trivial_tiled_mma_is_the_wgmma_of_its_types(types, op, k):
    a, b, acc = types
    mma = utils.sm90_make_trivial_tiled_mma(a, b, K, K, acc, (2, 1, 1), (64, 96))
    assert (type(mma.op).__name__, mma.shape_mnk, mma.size) == (op, (64, 96, k), 256)


def trivial(a, b, a_major, b_major, acc, tiler_mn):
    return lambda: sm90.make_trivial_tiled_mma(a, b, a_major, b_major, acc, (1, 1, 1), tiler_mn)


WRONG = {
    "no wgmma multiplies Float16 by BFloat16": trivial(F16, BF16, K, K, F32, (64, 64)),
    "a_leading_mode .* is not a OperandMajorMode": trivial(F16, F16, ROW, K, F32, (64, 64)),
    "acc_dtype Float16 must be Float32": trivial(BF16, BF16, K, K, F16, (64, 64)),
    "must be .64, N.": trivial(F16, F16, K, K, F32, 64),
    "major_mode_size 12 must be a static multiple of 8": lambda: sm90.get_smem_layout_atom(ROW, F16, 12),
    "is not a LayoutEnum; use LayoutEnum.from_tensor": lambda: sm90.make_smem_layout_a(K, (64, 64, 64), F16, 1),
    "must have 3 modes: M, N, K": lambda: sm90.make_smem_layout_b(ROW, (64, 64), F16, 1),
    "num_stages 0 must be a static number >= 1": lambda: sm90.make_smem_layout_b(ROW, (64, 64, 64), F16, 0),
    "epi_tile 64 must have 2 modes": lambda: sm90.make_smem_layout_epi(F16, ROW, 64, 1),
    "no mma.sync multiplies Float16 by Int8": lambda: sm80.make_trivial_tiled_mma(F16, S8, F32, (1, 1, 1)),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_choice_says_what_the_right_ones_are(message):
    with pytest.raises(cute.CuteError, match=message):
        WRONG[message]()


def test_operands_of_8_bits_are_read_k_major_whatever_is_said():
    mma = sm90.make_trivial_tiled_mma(E4M3, E4M3, MN, MN, F32, (1, 1, 1), (64, 64))
    assert (mma.op.a_major_mode, mma.op.b_major_mode) == (K, K)


# ---------------------------------------------------------------- a GEMM of one tile, set up by the helpers alone


@cuda.jit
def hopper(dtype, d_dtype, tma_a, mA, tma_b, mB, tma_d, mD, tiled_mma, store, a_layout, b_layout, d_layout, storage):
    tidx, _, _ = arch.thread_idx()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    smem = utils.SmemAllocator()
    shared = smem.allocate(storage)
    sA = shared.sA.get_tensor(a_layout.outer, swizzle=a_layout.inner)
    sB = shared.sB.get_tensor(b_layout.outer, swizzle=b_layout.inner)
    sD = shared.sD.get_tensor(d_layout.outer, swizzle=d_layout.inner)
    bar = shared.mbar.data_ptr()
    if warp_idx == 0:
        if arch.elect_one():
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(
                bar, cute.size_in_bytes(dtype, a_layout) + cute.size_in_bytes(dtype, b_layout)
            )
        arch.sync_warp()
        utils.block_copy(tma_a, mA, sA[None, None, 0], tma_bar_ptr=bar)
        utils.block_copy(tma_b, mB, sB[None, None, 0], tma_bar_ptr=bar)
    arch.sync_threads()
    arch.mbarrier_wait(bar, 0)

    mma = tiled_mma.get_slice(tidx)
    a, b = tiled_mma.make_fragment_A(mma.partition_A(sA)), tiled_mma.make_fragment_B(mma.partition_B(sB))
    acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C(cute.product_each(sD.shape)[:2]), cute.Float32)
    warpgroup.fence()
    fresh = tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
    cute.gemm(fresh, acc, a[None, None, None, 0], b[None, None, None, 0], acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)

    copy = cute.make_tiled_copy_C(store, tiled_mma)
    thread = copy.get_slice(tidx)
    result = cute.make_rmem_tensor_like(acc, d_dtype)
    result.store(acc.load().to(d_dtype))
    cute.copy(copy, copy.retile(result), thread.partition_D(sD[None, None, 0]))
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    if warp_idx == 0:
        utils.block_copy(tma_d, sD[None, None, 0], mD)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)


def one_tile(place, a, b, d, dtype, d_dtype, acc=F32):
    """The arguments of `hopper` for arrays of one tile."""
    (m, k), (n, _) = a.shape, b.shape
    tA, tB, tD = (from_dlpack(place(x), assumed_align=16) for x in (a, b, d))
    a_order, b_order, d_order = map(LayoutEnum.from_tensor, (tA, tB, tD))
    tiled_mma = utils.make_trivial_tiled_mma(
        dtype, dtype, a_order.sm90_mma_major_mode(), b_order.sm90_mma_major_mode(), acc, (1, 1, 1), (64, n)
    )
    a_layout = utils.make_smem_layout_a(a_order, (m, n, k), dtype, 1)
    b_layout = utils.make_smem_layout_b(b_order, (m, n, k), dtype, 1)
    d_layout = utils.make_smem_layout_epi(d_dtype, d_order, (m, n), 1)

    @cute.struct
    class SharedStorage:
        mbar: cute.struct.MemRange[cute.Int64, 1]
        sA: cute.struct.Align[cute.struct.MemRange[dtype, cute.cosize(a_layout)], 1024]
        sB: cute.struct.Align[cute.struct.MemRange[dtype, cute.cosize(b_layout)], 1024]
        sD: cute.struct.Align[cute.struct.MemRange[d_dtype, cute.cosize(d_layout)], 1024]

    load, store = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    stage = (None, None, 0)
    tma_a, mA = cpasync.make_tiled_tma_atom(load, tA, cute.slice_(a_layout, stage), (m, k))
    tma_b, mB = cpasync.make_tiled_tma_atom(load, tB, cute.slice_(b_layout, stage), (n, k))
    tma_d, mD = cpasync.make_tiled_tma_atom(store, tD, cute.slice_(d_layout, stage), (m, n))
    to_smem = utils.get_smem_store_op(d_order, d_dtype, acc)
    return (dtype, d_dtype, tma_a, mA, tma_b, mB, tma_d, mD, tiled_mma, to_smem, a_layout, b_layout, d_layout,
            SharedStorage)  # fmt: skip


def order(array, how):
    return np.ascontiguousarray(array) if how == "row" else np.asfortranarray(array)


@pytest.mark.parametrize(
    ("dtype", "d_dtype", "majors", "nk"),
    [(F16, F16, ("row", "row", "row"), (64, 64)), (BF16, BF16, ("col", "row", "col"), (96, 32)),
     (F16, F32, ("row", "col", "row"), (32, 48)), (E4M3, F16, ("row", "row", "row"), (64, 64))],
    ids=str,
)  # fmt: skip
def test_a_hopper_tile_set_up_by_the_helpers_is_right(run, rng, dtype, d_dtype, majors, nk):
    (n, k), m = nk, 64
    a, b = (order(rng.integers(-8, 8, s).astype(dtype.numpy), how) for s, how in zip(((m, k), (n, k)), majors))
    d = order(np.zeros((m, n), d_dtype.numpy), majors[2])
    made = {}

    def argument(i):
        def make(place):
            if "args" not in made:
                made["args"] = one_tile(place, a, b, d, dtype, d_dtype)
            return made["args"][i]

        return make

    def check():
        want = a.astype(np.float64) @ b.astype(np.float64).T
        assert_close(d, want, rtol=2**-8 if d_dtype == BF16 else 2**-11)

    run(hopper, 1, 128, [argument(i) for i in range(14)], outputs=(d,), check=check)


# ---------------------------------------------------------------- the same for mma.sync


@cuda.jit
def ampere(dtype, tA, tB, tD, tiled_mma, load_a, load_b, store, a_layout, b_layout):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(dtype, a_layout.outer, 1024, a_layout.inner)
    sB = smem.allocate_tensor(dtype, b_layout.outer, 1024, b_layout.inner)
    for i in range(tidx, cute.size(tA), 64):
        sA[i] = tA[i]
    for i in range(tidx, cute.size(tB), 64):
        sB[i] = tB[i]
    arch.sync_threads()
    mma = tiled_mma.get_slice(tidx)
    a = tiled_mma.make_fragment_A(mma.partition_A(sA[None, None, 0]))
    b = tiled_mma.make_fragment_B(mma.partition_B(sB[None, None, 0]))
    acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C(tD.shape), cute.Float32)
    acc.fill(0.0)
    copy_a, copy_b = cute.make_tiled_copy_A(load_a, tiled_mma), cute.make_tiled_copy_B(load_b, tiled_mma)
    cute.copy(copy_a, copy_a.get_slice(tidx).partition_S(sA[None, None, 0]), copy_a.retile(a))
    cute.copy(copy_b, copy_b.get_slice(tidx).partition_S(sB[None, None, 0]), copy_b.retile(b))
    cute.gemm(tiled_mma, acc, a, b, acc)
    result = cute.make_rmem_tensor_like(acc, dtype)
    result.store(acc.load().to(dtype))
    copy = cute.make_tiled_copy_C(store, tiled_mma)
    cute.copy(copy, copy.retile(result), copy.get_slice(tidx).partition_D(tD))


@pytest.mark.parametrize("majors", [("row", "row", "row"), ("col", "row", "col"), ("row", "col", "row")], ids=str)
def test_an_ampere_tile_set_up_by_the_helpers_is_right(run, rng, majors):
    m, n, k = 32, 32, 16
    a, b = (order(rng.integers(-8, 8, s).astype(np.float16), how) for s, how in zip(((m, k), (n, k)), majors))
    d = order(np.zeros((m, n), np.float16), majors[2])
    orders = [ROW if how == "row" else COL for how in majors]
    args = [F16, *((lambda place, x=x: from_dlpack(place(x), assumed_align=16)) for x in (a, b, d))]
    args += [
        sm80.make_trivial_tiled_mma(F16, F16, F32, (1, 2, 1)),
        sm80.get_smem_load_op(orders[0], F16),
        sm80.get_smem_load_op(orders[1], F16),
        sm80.get_smem_store_op(orders[2], F16, F32),
        sm80.make_smem_layout_a(orders[0], (m, n, k), F16, 1),
        sm80.make_smem_layout_b(orders[1], (m, n, k), F16, 1),
    ]

    def check():
        assert_close(d, a.astype(np.float64) @ b.astype(np.float64).T, rtol=2**-11)

    run(ampere, 1, 64, args, outputs=(d,), check=check, arch="sm_80")
