# SPDX-License-Identifier: Apache-2.0
"""Block-scaled products by warps, tiled: scale factors partitioned as the operands are."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import CopyUniversalOp, warp
from numba_cute.runtime import from_dlpack, pack
from numba_cute.seam import CuteError
from numba_cute.utils import blackwell_helpers as helpers

E4M3, E2M1, UE8M0, F32 = cute.Float8E4M3FN, cute.Float4E2M1FN, cute.Float8E8M0FNU, cute.Float32


def factors(rows, k, vec):
    """A tensor of factors in shared memory: rows of one for each `vec` elements, with stride 0 along those."""
    return cute.make_layout((rows, (vec, k // vec)), stride=(k // vec, (0, 1)))


def blockscaled(mma, by_word, tile, vec, sf_type):
    """A kernel (a, b, sfa, sfb, out) of one tile; a and b of `by_word`'s elements."""
    m, n, k = tile
    lay_a, lay_b = factors(m, k, vec), factors(n, k, vec)
    tv_a, tv_b = helpers.get_layoutSFA_TV(mma), helpers.get_layoutSFB_TV(mma)
    sizes = tuple(cute.size(p) for p in mma.permutation_mnk)

    @cuda.jit
    def kernel(a, b, sfa, sfb, out):
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        s_a, s_b = smem.allocate_tensor(sf_type, lay_a, 16), smem.allocate_tensor(sf_type, lay_b, 16)
        flat_a = cute.make_tensor(s_a.iterator, cute.make_layout(cute.size(sfa)))
        flat_b = cute.make_tensor(s_b.iterator, cute.make_layout(cute.size(sfb)))
        for i in range(tidx, cute.size(sfa), 256):
            flat_a[i] = sfa[i]
        for i in range(tidx, cute.size(sfb), 256):
            flat_b[i] = sfb[i]
        arch.sync_threads()
        thr, words = mma.get_slice(tidx), by_word.get_slice(tidx)
        r_a = mma.make_fragment_A(mma.partition_shape_A((m, k)))
        r_b = mma.make_fragment_B(mma.partition_shape_B((n, k)))
        cute.basic_copy(words.partition_A(a), r_a)
        cute.basic_copy(words.partition_B(b), r_b)
        r_sfa = helpers.partition_fragment_SFA(s_a, thr, tidx)
        r_sfb = helpers.partition_fragment_SFB(s_b, thr, tidx)
        atom = cute.make_copy_atom(CopyUniversalOp(), sf_type)
        copy_a = cute.make_tiled_copy(atom, tv_a, (sizes[0], sizes[2])).get_slice(tidx)
        copy_b = cute.make_tiled_copy(atom, tv_b, (sizes[1], sizes[2])).get_slice(tidx)
        from_a, to_a = cute.filter_zeros(copy_a.partition_S(s_a)), cute.filter_zeros(copy_a.retile(r_sfa))
        from_b, to_b = cute.filter_zeros(copy_b.partition_S(s_b)), cute.filter_zeros(copy_b.retile(r_sfb))
        cute.copy(copy_a.tiled_copy, from_a, to_a)
        cute.copy(copy_b.tiled_copy, from_b, to_b)
        g_c = thr.partition_C(out)
        acc = mma.make_fragment_C(g_c)
        acc.fill(0)
        for i in cute.range_constexpr(cute.size(r_a, mode=[2])):
            at = None, None, i
            cute.gemm(mma, acc, (r_a[at], r_sfa[at]), (r_b[at], r_sfb[at]), acc)
        cute.basic_copy(acc, g_c)

    return kernel


def scaled(x, factors, vec):
    return x.astype(np.float64) * np.repeat(factors.astype(np.float64), vec, axis=1)


def words(x, dtype):
    """Rows of elements as the registers' elements: bytes, or words of 8 of 4 bits."""
    return np.ascontiguousarray(pack(x)).view(np.uint32) if dtype.width == 4 else x


@pytest.mark.parametrize(
    "op, vec, sf_numpy",
    [
        (warp.MmaMXF8Op(E4M3, F32, UE8M0), 32, ml_dtypes.float8_e8m0fnu),
        (warp.MmaMXF4NVF4Op(E2M1, F32, E4M3), 16, ml_dtypes.float8_e4m3fn),
        (warp.MmaMXF4Op(E2M1, F32, UE8M0), 32, ml_dtypes.float8_e8m0fnu),
    ],
    ids=lambda v: type(v).__name__,
)
@pytest.mark.parametrize("tile", [(64, 32, 128), pytest.param((128, 64, 128), marks=pytest.mark.slow)], ids=str)
def test_factors_go_with_the_elements_that_they_scale(run, rng, op, vec, sf_numpy, tile):
    m, n, k = tile
    permutation = helpers.get_permutation_mnk(tile, vec, op.shape_mnk[2] == 32)
    mma = cute.make_tiled_mma(op, (4, 2, 1), permutation)
    by_word = mma
    if op.a_type.width == 4:
        of_words = warp.MmaTF32Op((16, 8, 8))
        by_word = cute.make_tiled_mma(of_words, (4, 2, 1), (permutation[0], permutation[1], 8))
    a, b = (rng.integers(-2, 3, (x, k)).astype(op.a_type.numpy) for x in (m, n))
    sfa, sfb = ((2.0 ** rng.integers(-2, 3, (x, k // vec))).astype(sf_numpy) for x in (m, n))
    want = scaled(a, sfa, vec) @ scaled(b, sfb, vec).T
    out = np.zeros((m, n), np.float32)

    def tensor(array, dtype=None):
        def make(place):
            t = from_dlpack(place(array))
            return t if dtype is None else cute.recast_tensor(t, dtype)

        return make

    bits = None if op.a_type.width == 8 else cute.TFloat32
    held = [tensor(words(x, op.a_type), None if bits is None else cute.Uint32) for x in (a, b)]
    args = [*held, tensor(sfa.ravel()), tensor(sfb.ravel()), tensor(out)]

    def check():
        np.testing.assert_array_equal(out, want)

    run(blockscaled(mma, by_word, tile, vec, op.sf_type), 1, 256, args, outputs=[out], check=check, arch="sm_120a")


def test_layouts_say_which_lanes_hold_factors():
    mma = cute.make_tiled_mma(
        warp.MmaMXF8Op(E4M3, F32, UE8M0), (4, 2, 1), helpers.get_permutation_mnk((128, 32, 128), 32, True)
    )
    for tv, rows in ((helpers.get_layoutSFA_TV(mma), 128), (helpers.get_layoutSFB_TV(mma), 32)):
        assert cute.size(tv, mode=[0]) == 256
        reached = {tv(i) for i in range(cute.size(tv))}
        assert reached == set(range(rows * 32)), "all elements of the tile"
    a = helpers.get_layoutSFA_TV(mma)
    assert [a((t, 0)) for t in (0, 1, 4, 5)] == [0, 8, 1, 9], "lanes 4 r and 4 r + 1 hold rows r and r + 8"


def test_results_leave_by_two_matrices():
    atom = helpers.sm120_get_smem_store_op(utils.LayoutEnum.COL_MAJOR, cute.Float16, F32)
    assert atom.op == warp.StMatrix8x8x16bOp(True, 2)
    plain = helpers.sm120_get_smem_store_op(utils.LayoutEnum.ROW_MAJOR, elem_ty_d=F32, elem_ty_acc=F32)
    assert isinstance(plain.op, CopyUniversalOp)


F16_MMA = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, F32, (16, 8, 16)))


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: helpers.get_layoutSFA_TV(F16_MMA), "must be tiled of a block-scaled operation of a warp"),
        (lambda: helpers.get_permutation_mnk((128, 24, 64), 16, False), "N must be 8, 16, or at least 32"),
        (lambda: helpers.get_permutation_mnk((128, 64, 64), 8, False), "sf_vec_size 8 must be 16 or 32"),
        (lambda: helpers.get_permutation_mnk((128, 64), 16, False), r"must be \(M, N, K\)"),
        (lambda: helpers.partition_fragment_SFA(1, 2, 0), "must be a tensor of scale factors"),
        (lambda: helpers.sm120_get_smem_store_op(1, F32, F32), "layout_d 1 is not a LayoutEnum"),
    ],
)
def test_what_has_no_factors_is_refused(make, why):
    with pytest.raises(CuteError, match=why):
        make()
