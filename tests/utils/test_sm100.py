# SPDX-License-Identifier: Apache-2.0
"""The Blackwell helpers: what they choose, and that the matrix unit can read it."""

from __future__ import annotations

import pytest

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import cpasync, tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from numba_cute.seam import CuteError
from numba_cute.tensor.pointer import AddressSpace, Pointer
from numba_cute.tensor.tensor import Tensor
from numba_cute.utils import LayoutEnum, blackwell_helpers, sm100

ROW, COL = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
K, MN, ONE, TWO = OperandMajorMode.K, OperandMajorMode.MN, CtaGroup.ONE, CtaGroup.TWO
F16, BF16, F32, TF32, S8, U8, S32 = (
    cute.Float16, cute.BFloat16, cute.Float32, cute.TFloat32, cute.Int8, cute.Uint8, cute.Int32
)  # fmt: skip
E4M3, E5M2, E2M1 = cute.Float8E4M3FN, cute.Float8E5M2, cute.Float4E2M1FN


@pytest.mark.parametrize(
    ("a", "b", "acc", "op", "k"),
    [(F16, F16, F32, "MmaF16BF16Op", 16), (BF16, BF16, F32, "MmaF16BF16Op", 16), (F16, F16, F16, "MmaF16BF16Op", 16),
     (TF32, TF32, F32, "MmaTF32Op", 8), (S8, S8, S32, "MmaI8Op", 32), (U8, U8, S32, "MmaI8Op", 32),
     (E4M3, E4M3, F32, "MmaF8F6F4Op", 32), (E4M3, E5M2, F16, "MmaF8F6F4Op", 32), (E2M1, E4M3, F32, "MmaF8F6F4Op", 32)],
)  # fmt: skip
@pytest.mark.parametrize("group", [ONE, TWO])
def test_the_types_choose_the_operation(a, b, acc, op, k, group):
    tiled = sm100.make_trivial_tiled_mma(a, b, K, K, acc, group, (128, 64))
    assert type(tiled.op).__name__ == op and tiled.shape_mnk == (128, 64, k)
    assert (tiled.op.a_type, tiled.op.b_type, tiled.op.accumulator) == (a, b, acc)
    assert tiled.size == group.value and tiled.op.a_src is OperandSource.SMEM
    if a == b:
        assert sm100.make_trivial_tiled_mma(a, K, K, acc, group, (128, 64)) == tiled
        in_tmem = sm100.make_trivial_tiled_mma(a, K, K, acc, group, (128, 64), OperandSource.TMEM)
        assert in_tmem == sm100.make_trivial_tiled_mma(a, b, K, K, acc, group, (128, 64), OperandSource.TMEM)
        assert in_tmem.op.a_src is OperandSource.TMEM


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: sm100.make_trivial_tiled_mma(F16, BF16, K, K, F32, ONE, (128, 64)), "no tcgen05.mma multiplies"),
        (lambda: sm100.make_trivial_tiled_mma(S8, S8, K, K, F32, ONE, (128, 64)), "must be Int32"),
        (lambda: sm100.make_trivial_tiled_mma(TF32, TF32, K, K, F16, ONE, (128, 64)), "must be Float32"),
        (lambda: sm100.make_trivial_tiled_mma(F16, F16, K, K, F32, ONE, (256, 64)), "m 64 or 128"),
        (lambda: sm100.make_trivial_tiled_mma(F16, F16, K, K, F32, ONE, 64), r"\(M, N\)"),
        (lambda: sm100.make_trivial_tiled_mma(F16, F16, K, K, F32, 1, (128, 64)), "cta_group"),
    ],
)
def test_what_no_operation_has_is_refused(make, rule):
    with pytest.raises(CuteError, match=rule):
        make()


@pytest.mark.parametrize("dtype", [TF32, F16, E4M3], ids=str)
@pytest.mark.parametrize("majors", [(K, K), (MN, MN)], ids=str)
@pytest.mark.parametrize(("tile", "group"), [((128, 64), ONE), ((64, 32), ONE), ((256, 64), TWO), ((128, 32), TWO)])
def test_operand_layouts_are_read_by_the_matrix_unit_and_hold_each_element_once(dtype, majors, tile, group):
    acc = F32
    tiled = sm100.make_trivial_tiled_mma(dtype, dtype, *majors, acc, group, tile)
    k = 4 * tiled.shape_mnk[2]
    held = F32 if dtype is TF32 else dtype
    for make, extent in ((sm100.make_smem_layout_a, tile[0]), (sm100.make_smem_layout_b, tile[1])):
        lay = make(tiled, (*tile, k), held, 3)
        assert sorted(int(lay.outer(i)) for i in range(cute.size(lay))) == list(range(extent // group.value * k * 3))
        swizzle = lay.inner if lay.inner.bits else None
        shared = Tensor(Pointer(held, AddressSpace.smem, 0, 0, 1024, swizzle), lay.outer)
        fragment = tiled.make_fragment_A(shared) if extent == tile[0] else tiled.make_fragment_B(shared)
        assert cute.size(fragment) == 4 * 3
    other = sm100.make_smem_layout_a(tiled, (*tile, k), held, 3, is_k_major=majors[0] is not K)
    assert other.outer != sm100.make_smem_layout_a(tiled, (*tile, k), held, 3).outer


@pytest.mark.parametrize("order", [ROW, COL])
@pytest.mark.parametrize("dtype", [F32, F16, E4M3], ids=str)
@pytest.mark.parametrize("tile", [(128, 32), (64, 64)])
def test_epilogue_layouts_cover_the_tile_and_the_stages_once(order, dtype, tile):
    lay = sm100.make_smem_layout_epi(dtype, order, tile, 2)
    assert cute.product_each(lay.shape) == (*tile, 2)
    assert sorted(int(lay.outer(i)) for i in range(cute.size(lay))) == list(range(2 * tile[0] * tile[1]))
    assert lay.outer((0, 1, 0) if order is ROW else (1, 0, 0)) == 1


def test_the_widest_swizzle_that_divides_the_tile_is_chosen():
    ab, epi = sm100.get_smem_layout_atom_ab, sm100.get_smem_layout_atom_epi
    assert ab(K, F16, (128, 64)).name == "K_SW128" and ab(K, F16, (128, 32)).name == "K_SW64"
    assert ab(MN, F16, (16, 64)).name == "MN_SW32" and ab(MN, E4M3, (16, 64)).name == "MN_INTER"
    assert ab(MN, F32, (32, 8)).name == "MN_SW128_32B" and ab(K, F32, (8, 32)).name == "K_SW128"
    split = cute.make_layout((32, 2), stride=(1, 64))  # of a pair with 128 rows: boxes of 32 columns
    assert epi(ROW, F16, (64, split)).name == "K_SW64" and epi(ROW, F16, (64, (32, 2))).name == "K_SW128"
    assert sm100.make_smem_layout_epi(F32, ROW, (cute.make_layout(64), split), 2).inner == cute.make_swizzle(3, 4, 3)
    assert epi(ROW, F16, (128, 32)).name == "K_SW64" and epi(COL, F16, (128, 32)).name == "MN_SW128"
    with pytest.raises(CuteError, match="multiple of 128"):
        ab(K, E4M3, (128, 8))
    with pytest.raises(CuteError, match="LayoutEnum"):
        epi(K, F16, (128, 32))


def test_the_epilogue_tile():
    choose = sm100.compute_epilogue_tile_shape
    lay = cute.make_layout
    assert choose((128, 256, 64), False, ROW, F16) == (lay(128), lay(32))
    assert choose((64, 256, 64), False, ROW, F16) == (lay(64), lay(64))
    assert choose((64, 256, 64), True, ROW, F16) == (lay(64), lay((32, 2), stride=(1, 128)))
    assert choose((128, 128), False, ROW, F32, ROW, F32) == (lay(128), lay(16))
    assert choose((128, 256), False, ROW, F16, ROW, F16) == (lay(128), lay(64))
    assert choose((128, 16), False, COL, F16) == (lay(128), lay(16))
    with pytest.raises(CuteError, match="M must be 64 or 128"):
        choose((256, 128), False, ROW, F16)
    with pytest.raises(CuteError, match="at least 16"):
        choose((64, 8), True, ROW, F16)
    with pytest.raises(CuteError, match="together"):
        choose((64, 64), True, ROW, F16, ROW)


def test_the_loads_are_multicast_where_blocks_share():
    one, pair = cute.make_layout(1), cute.make_layout(2)
    single, several = cpasync.CopyBulkTensorTileG2SOp, cpasync.CopyBulkTensorTileG2SMulticastOp
    a, b, sfb = (
        sm100.cluster_shape_to_tma_atom_A, sm100.cluster_shape_to_tma_atom_B, sm100.cluster_shape_to_tma_atom_SFB
    )  # fmt: skip
    assert (
        a((1, 1), one) == single(cta_group=ONE)
        and a((1, 2, 1), one) == several(cta_group=ONE)
        and a((2, 1), pair) == single(cta_group=TWO)
    )
    assert b((1, 2), one) == single(cta_group=ONE) and b((2, 1), one) == several(cta_group=ONE)
    assert b((2, 2), pair) == single(cta_group=TWO) and b((4, 1), pair) == several(cta_group=TWO)
    assert sfb((2, 1), pair) == several(cta_group=TWO) and sfb((1, 1), one) == single(cta_group=ONE)
    with pytest.raises(CuteError, match="multiple of the pair"):
        a((1, 2), pair)
    with pytest.raises(CuteError, match="1 or 2 blocks"):
        b((4, 1), cute.make_layout(4))


def test_the_names_that_the_cute_dsl_has():
    assert blackwell_helpers.__all__ == sorted({*sm100.__all__, *utils.sm120.__all__, "check_gemm_tma_alignment"})
    assert utils.compute_epilogue_tile_shape is sm100.compute_epilogue_tile_shape
    assert tcgen05.OperandSource is OperandSource


def test_whether_tma_takes_the_matrices_of_a_product():
    check = blackwell_helpers.check_gemm_tma_alignment
    check(128, 8, 64, F16, E4M3, F32, "m", "k", "n", output_tensor_name="D")
    with pytest.raises(CuteError, match="B has 8 elements of Float8E4M3FN along n.*multiples of 16 bytes, 16 elements"):
        check(128, 8, 64, F16, E4M3, F32, "m", "n", "n")
    with pytest.raises(CuteError, match="D is 'k'-major; it must be m or n"):
        check(128, 8, 64, F16, E4M3, F32, "m", "k", "k", output_tensor_name="D")


@pytest.mark.parametrize("major", [K, MN])
@pytest.mark.parametrize("dtype", [F16, E4M3], ids=str)
def test_a_tile_lies_in_shared_memory_as_its_multiplies_read_it(major, dtype):
    m, k, stages = 128, 1024 // dtype.width, 2
    tiled = sm100.make_trivial_tiled_mma(dtype, dtype, major, K, F32, ONE, (m, 64))
    lay = sm100.make_smem_layout_a(tiled, (m, 64, k), dtype, stages)
    step = tiled.shape_mnk[2]
    whole = sm100.make_smem_layout(major, (m, k), dtype, stages)
    for at in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (77, 3, 1), (127, k - 1, 1)):
        assert whole(at) == lay(((at[0], at[1] % step), 0, at[1] // step, at[2]))
