# SPDX-License-Identifier: Apache-2.0
"""One tile through make_tiled_mma: TMA in, wgmma, and the accumulators out through their partition."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.nvgpu.common.smem_descriptor import SmemDescriptor
from numba_cute.runtime import from_dlpack

K_MAJOR, MN_MAJOR = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
Kind = warpgroup.SmemLayoutAtomKind
K = 64


def operand_layout(kind, rows, dtype):
    order = (0, 1) if kind.value[0] == "k" else (1, 0)
    return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, dtype), (rows, K), order)


@cuda.jit
def one_tile(dtype, tma_a, mA, tma_b, mB, mC, a_layout, b_layout, tiled_mma):
    tidx, _, _ = cute.arch.thread_idx()
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = cute.utils.SmemAllocator()
    smem.allocate(3 * 128)  # swizzles permute addresses: tiles need not begin where their pattern does
    sA = smem.allocate_tensor(dtype, a_layout.outer, 128, a_layout.inner)
    sB = smem.allocate_tensor(dtype, b_layout.outer, 128, b_layout.inner)
    bar = smem.allocate_array(cute.Int64)
    if tidx == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    one = cute.make_layout(1)
    tAsA, tAgA = cpasync.tma_partition(tma_a, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(mA, 0, 2))
    tBsB, tBgB = cpasync.tma_partition(tma_b, 0, one, cute.group_modes(sB, 0, 2), cute.group_modes(mB, 0, 2))
    if warp_idx == 0:
        if cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 2 * (cute.size(sA) + cute.size(sB)))
        cute.copy(tma_a, tAgA, tAsA, tma_bar_ptr=bar)
        cute.copy(tma_b, tBgB, tBsB, tma_bar_ptr=bar)
    cute.arch.mbarrier_wait(bar, 0)
    thr_mma = tiled_mma.get_slice(tidx)
    tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
    tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
    acc = tiled_mma.make_fragment_C(thr_mma.partition_C(mC))
    warpgroup.fence()
    cute.gemm(tiled_mma.set(warpgroup.Field.ACCUMULATE, False), acc, tCrA, tCrB, acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, thr_mma.partition_C(mC))


def stored(kind, matrix):
    """The matrix as the global memory whose contiguous dimension is the operand's major one."""
    return matrix if kind.value[0] == "k" else np.ascontiguousarray(matrix.T).T


def atom_of(place, array, kind, smem_layout):
    flat = array if kind.value[0] == "k" else array.T
    tensor = from_dlpack(place(flat), assumed_align=16)
    if kind.value[0] == "mn":
        tensor = cute.make_tensor(tensor.iterator, cute.select(tensor.layout, mode=[1, 0]))
    op = cpasync.CopyBulkTensorTileG2SOp()
    return cpasync.make_tiled_tma_atom(op, tensor, smem_layout, array.shape)


def run_one_tile(run, a, b, c, kinds, groups, instruction_n, dtype, acc, check):
    majors = [K_MAJOR if kind.value[0] == "k" else MN_MAJOR for kind in kinds]
    op = warpgroup.MmaF16BF16Op(dtype, acc, (64, instruction_n, 16), SMEM, *majors)
    tiled_mma = cute.make_tiled_mma(op, groups)
    a_layout, b_layout = (operand_layout(kind, x.shape[0], dtype) for kind, x in zip(kinds, (a, b)))
    args = [
        dtype,
        lambda place: atom_of(place, a, kinds[0], a_layout)[0],
        lambda place: atom_of(place, a, kinds[0], a_layout)[1],
        lambda place: atom_of(place, b, kinds[1], b_layout)[0],
        lambda place: atom_of(place, b, kinds[1], b_layout)[1],
        lambda place: from_dlpack(place(c), assumed_align=16),
        a_layout,
        b_layout,
        tiled_mma,
    ]
    run(one_tile, 1, tiled_mma.size, args, outputs=[c], check=check)


CASES = [
    (Kind.K_SW128, Kind.K_SW128, (1, 1, 1), 64),
    (Kind.K_SW128, Kind.K_SW128, (2, 1, 1), 256),
    (Kind.MN_SW128, Kind.MN_SW128, (2, 1, 1), 128),
    (Kind.K_SW64, Kind.MN_SW64, (1, 1, 1), 32),
    (Kind.K_SW32, Kind.K_INTER, (1, 1, 1), 8),
    (Kind.MN_SW32, Kind.K_SW128, (1, 1, 1), 24),
]


@pytest.mark.parametrize("a_kind, b_kind, groups, n", CASES, ids=lambda x: getattr(x, "name", str(x)))
def test_a_tile_agrees_with_float64(run, aligned, a_kind, b_kind, groups, n):
    a, b = stored(a_kind, aligned((64 * groups[0], K))), stored(b_kind, aligned((n, K)))
    c = np.zeros((a.shape[0], n), np.float32)

    def check():
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-5, atol=1e-5)

    run_one_tile(run, a, b, c, (a_kind, b_kind), groups, n, cute.BFloat16, cute.Float32, check)


def test_a_tile_of_several_instructions_in_m_and_n(run, aligned):
    a, b = aligned((128, K)), aligned((128, K))
    c = np.zeros((128, 128), np.float32)

    def check():
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-5, atol=1e-5)

    run_one_tile(run, a, b, c, (Kind.K_SW128,) * 2, (1, 1, 1), 64, cute.BFloat16, cute.Float32, check)


def test_an_f16_accumulator_packs_two_elements_a_register(run, aligned):
    a, b = aligned((64, K), np.float16), aligned((32, K), np.float16)
    c = np.zeros((64, 32), np.float16)

    def check():
        np.testing.assert_allclose(
            c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T, rtol=4e-3, atol=2e-2
        )

    run_one_tile(run, a, b, c, (Kind.K_SW128,) * 2, (1, 1, 1), 32, cute.Float16, cute.Float16, check)


def test_fragments_of_shared_memory_step_in_16_byte_units(run_sim):
    found = []

    def kernel():
        smem = cute.utils.SmemAllocator()
        lay = operand_layout(Kind.K_SW128, 128, cute.Float16)
        s = smem.allocate_tensor(cute.Float16, lay.outer, 1024, lay.inner)
        op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 128, 16), SMEM, K_MAJOR, K_MAJOR)
        mma = cute.make_tiled_mma(op)
        frag = mma.make_fragment_B(mma.get_slice(0).partition_B(s))
        found.append((frag, frag[None, 0, 1]))

    run_sim(kernel, 1)
    frag, step = found[0]
    assert isinstance(frag.iterator, SmemDescriptor)
    assert frag.shape == (1, 1, 4) and frag.stride == (0, 0, 2)
    assert step.iterator.low == frag.iterator.low + 2 and step.iterator.high == frag.iterator.high


def make_mma(n=64, a_src=SMEM, acc=cute.Float32, dtype=cute.Float16, groups=(1, 1, 1)):
    return cute.make_tiled_mma(
        warpgroup.MmaF16BF16Op(dtype, acc, (64, n, 16), a_src, K_MAJOR, K_MAJOR), groups
    )  # fmt: skip


@pytest.mark.parametrize("groups, mode, threads", [((1, 1, 1), 0, 128), ((2, 1, 1), 0, 256), ((1, 2, 1), 1, 256)])
def test_tiles_of_a_tiled_mma(groups, mode, threads):
    mma = make_mma(n=32, groups=groups)
    assert mma.size == cute.size(mma) == threads
    assert mma.get_tile_size(mode) == (64, 32, 16)[mode] * groups[mode]


@pytest.mark.parametrize("operand, shape", [("A", (128, 32)), ("B", (64, 32)), ("C", (128, 64))])
def test_the_threads_of_a_tiled_mma_own_every_element(operand, shape):
    mma = make_mma(a_src=RMEM, groups=(2, 1, 1))
    coords = cute.make_identity_tensor(shape)
    owned, seen = set(), set()
    for t in range(mma.size):
        thr = mma.get_slice(t)
        part = {"A": thr.partition_A, "B": thr.partition_B, "C": thr.partition_C}[operand](coords)
        if (part.iterator, part.layout) not in seen:  # all threads of a warpgroup have the same part of B
            seen.add((part.iterator, part.layout))
            owned |= {part[i] for i in range(cute.size(part))}
    assert owned == {(i, j) for i in range(shape[0]) for j in range(shape[1])}


@cuda.jit
def a_from_registers(a, tma_b, mB, c, b_layout, tiled_mma):
    tidx, _, _ = cute.arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    sB = smem.allocate_tensor(cute.Float16, b_layout.outer, 1024, b_layout.inner)
    bar = smem.allocate_array(cute.Int64)
    if tidx == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    tBsB, tBgB = cpasync.tma_partition(
        tma_b, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), cute.group_modes(mB, 0, 2)
    )
    if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
        if cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 2 * cute.size(sB))
        cute.copy(tma_b, tBgB, tBsB, tma_bar_ptr=bar)
    cute.arch.mbarrier_wait(bar, 0)
    thr_mma = tiled_mma.get_slice(tidx)
    tCgA = thr_mma.partition_A(a)
    tCrA = tiled_mma.make_fragment_A(tCgA)
    cute.autovec_copy(tCgA, tCrA)
    tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
    acc = tiled_mma.make_fragment_C(thr_mma.partition_C(c))
    acc.fill(1.0)
    warpgroup.fence()
    cute.gemm(tiled_mma, acc, tCrA, tCrB, acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, thr_mma.partition_C(c))


@pytest.mark.parametrize("adds", [True, None], ids=["set", "unset"])
def test_a_from_registers_adds_to_the_accumulator_where_that_is_set(run, aligned, adds):
    a, b = aligned((64, K), np.float16), aligned((32, K), np.float16)
    c = np.zeros((64, 32), np.float32)
    b_layout = operand_layout(Kind.K_SW128, 32, cute.Float16)
    args = [
        lambda place: from_dlpack(place(a), assumed_align=16),
        lambda place: atom_of(place, b, Kind.K_SW128, b_layout)[0],
        lambda place: atom_of(place, b, Kind.K_SW128, b_layout)[1],
        lambda place: from_dlpack(place(c), assumed_align=16),
        b_layout,
        make_mma(n=32, a_src=RMEM)
        if adds is None
        else make_mma(n=32, a_src=RMEM).set(warpgroup.Field.ACCUMULATE, adds),
    ]

    def check():
        want = a.astype(np.float64) @ b.astype(np.float64).T + (0 if adds is None else 1)
        np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-5)

    run(a_from_registers, 1, 128, args, outputs=[c], check=check)


def test_accumulate_is_returned_changed_and_not_changed_in_place():
    mma = make_mma()
    adding = mma.set(warpgroup.Field.ACCUMULATE, True)
    assert adding.get(warpgroup.Field.ACCUMULATE) is True and mma.get(warpgroup.Field.ACCUMULATE) is False


@pytest.mark.parametrize("kind", list(Kind), ids=lambda k: k.name)
@pytest.mark.parametrize("dtype", [cute.Float16, cute.Float32, cute.Int8])
def test_smem_layout_atoms_are_eight_rows_of_the_swizzled_width(kind, dtype):
    atom = warpgroup.make_smem_layout_atom(kind, dtype)
    major, bits = kind.value
    row = (16 << bits) // dtype.bytes
    assert cute.size(atom) == 8 * row and atom.inner == cute.Swizzle(bits, 4, 3)
    assert atom.outer.stride == ((1, row) if major == "mn" else (row, 1))
