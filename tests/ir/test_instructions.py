# SPDX-License-Identifier: Apache-2.0
"""The instructions of `cute_nvgpu` as functions of plain kernels: atoms by their types, one instruction of each."""

import dataclasses

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.atoms.op import Field, MmaOp
from numba_cute.ir.library import instructions as ir
from numba_cute.ir.text import atoms, spelling
from numba_cute.ir.text.fields import described_value
from numba_cute.ir.text.registry import element_name
from numba_cute.nvgpu import cpasync, tcgen05, warp, warpgroup
from numba_cute.nvgpu.common.by_row import choices, legal_values
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from ..nvgpu import scaled_kernels as scaled
from ..nvgpu.test_umma_scaled import check_product, operation


def simplest(cls):
    """An operation of this class, each field the first value that its rows allow."""
    given, fields = {}, {}
    for choice in choices(cls) if hasattr(cls, "choices") else ():
        value = legal_values(cls, choice, tuple(given.items()))[0]
        fields[choice.field] = value
        given |= choice.sets(value)
    if cls.__name__ == "MmaUniversalOp":
        fields["abacc_dtype"] = cute.Float32
    if cls is warp.MmaMXF8F6F4Op:
        fields["b_dtype"] = cute.Float4E2M1FN
    return cls(**fields)


OPERATIONS = [pytest.param(c, id=f"{c.__module__.rsplit('.', 1)[1]}.{c.__name__}") for c in atoms.operations(MmaOp)]


@pytest.mark.parametrize("cls", OPERATIONS)
def test_every_matrix_operation_is_made_by_what_its_type_says(cls):
    op = simplest(cls)
    row = op.row()
    options = {
        n: getattr(op, n)
        for n in ("a_src", "a_major_mode", "b_major_mode", "cta_group", "saturate", "selector", "bit_op")
        if n in {f.name for f in dataclasses.fields(op)}
    }
    if Field.SFA in op.fields:
        options["sf_block"] = row[1].get("block")
        options["sf_type"] = getattr(op, "sf_type", getattr(op, "sf_dtype", cute.Float8E8M0FNU))
    made = ir.make_mma_atom(
        op.a_type, op.b_type, op.accumulator, atoms.shape_of(op), "" if row is None else atoms.gpu_of(row[0].target),
        sparse=op.traits().sparsity > 1, **options,
    )  # fmt: skip
    assert (made.op.a_type, made.op.b_type, made.op.accumulator) == (op.a_type, op.b_type, op.accumulator)
    assert atoms.shape_of(made.op) == atoms.shape_of(op)
    if op.row() is not None:
        assert _meaning(made.op) == _meaning(op)

    types = ",".join(f"!{element_name(t)}" for t in (op.a_type, op.b_type, op.accumulator))
    plain = row is not None and not {Field.METADATA, Field.SFA} & set(op.fields)
    if plain:  # and by its type, which says the same where it says nothing more
        said = spelling.parse_description(
            f"!numba_cute.nvgpu.mma_atom<{types},{list(atoms.shape_of(op))},{atoms.gpu_of(row[0].target)}>"
        )
        usual = ir.make_mma_atom(
            op.a_type, op.b_type, op.accumulator, atoms.shape_of(op), atoms.gpu_of(row[0].target),
            **{n: options[n] for n in ("cta_group",) if n in options},
        )  # fmt: skip
        assert said == described_value(usual)


def _meaning(op):
    row, statics = op.row()
    return row.name, statics


# ------------------------------------------------------------------ one instruction of each


@cuda.jit
def by_a_warp(a, b, c):
    """c = a @ b.T, one multiply: cp.async, ldmatrix, mma.sync, plain stores."""
    tidx, _, _ = arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.Float16, cute.make_layout((16, 16), stride=(16, 1)), 128)
    sB = smem.allocate_tensor(cute.Float16, cute.make_layout((8, 16), stride=(16, 1)), 128)
    g2s = ir.make_copy_atom("CopyG2SOp", cute.Float16, 128)
    row, at = tidx // 2, tidx % 2
    ir.cpasync_g2s(g2s, cute.local_tile(a, (1, 8), (row, at))[0, None], cute.local_tile(sA, (1, 8), (row, at))[0, None])
    if tidx < 16:
        to = cute.local_tile(sB, (1, 8), (row, at))[0, None]
        ir.cpasync_g2s(g2s, cute.local_tile(b, (1, 8), (row, at))[0, None], to, tidx < 32)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_warp()
    atom = ir.make_mma_atom(cute.Float16, cute.Float16, cute.Float32, (16, 8, 16), "SM80")
    tiled = cute.make_tiled_mma(atom)
    mma = tiled.get_slice(tidx)
    rA, rB = tiled.make_fragment_A(mma.partition_A(sA)), tiled.make_fragment_B(mma.partition_B(sB))
    acc = tiled.make_fragment_C(mma.partition_C(c))
    acc.fill(0.0)
    four = ir.make_copy_atom("LdMatrix8x8x16bOp", cute.Float16, num_matrices=4)
    two = ir.make_copy_atom("LdMatrix8x8x16bOp", cute.Float16, num_matrices=2)
    load_a = cute.make_tiled_copy_A(four, tiled).get_slice(tidx)
    load_b = cute.make_tiled_copy_B(two, tiled).get_slice(tidx)
    ir.ldmatrix(four, load_a.partition_S(sA)[None, 0, 0], load_a.retile(rA)[None, 0, 0])
    ir.ldmatrix(two, load_b.partition_S(sB)[None, 0, 0], load_b.retile(rB)[None, 0, 0])
    last = ir.warp_mma_f16bf16(rA[None, 0, 0], rB[None, 0, 0], acc[None, 0, 0], atom)
    ir.copy_universal(ir.make_copy_atom("CopyUniversalOp", cute.Float32), last, mma.partition_C(c)[None, 0, 0])


def test_a_warps_instructions_multiply(run, rng):
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((16, 16), (8, 16)))
    c = np.zeros((16, 8), np.float32)

    def check():
        np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)

    args = [lambda place, x=x: from_dlpack(place(x), assumed_align=16) for x in (a, b, c)]
    run(by_a_warp, 1, 32, args, outputs=[c], check=check, arch="sm_80")


@cuda.jit
def by_a_warpgroup(tma_a, mA, tma_b, mB, tma_c, mC, lay):
    """c = a @ b.T, 64 x 64 x 16: TMA loads at coordinates, one wgmma, a TMA store."""
    tidx, _, _ = arch.thread_idx()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    smem = cute.utils.SmemAllocator()
    sA = smem.allocate_tensor(cute.Float16, lay.outer, 1024, lay.inner)
    sB = smem.allocate_tensor(cute.Float16, lay.outer, 1024, lay.inner)
    sC = smem.allocate_tensor(cute.Float32, cute.make_layout((64, 64), stride=(64, 1)), 1024)
    bar = smem.allocate_array(cute.Int64)
    if tidx == 0:
        ir.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if warp_idx == 0:
        if arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(bar, 2 * (cute.size(sA) + cute.size(sB)))
        ir.tma_load_execute(ir.make_exec_tma_load(ir.make_tma_load(tma_a), bar), mA, sA, 0, 0)
        load = ir.make_exec_tma_load(tma_b, bar)
        whole = cute.group_modes(cute.local_tile(mB, (64, 16), (0, 0)), 0, 2)
        ir.tma_load_execute(load, whole, cute.group_modes(sB, 0, 2))
    ir.mbarrier_wait(bar, 0)
    atom = ir.make_mma_atom(cute.Float16, cute.Float16, cute.Float32, (64, 64, 16), "SM90")
    tiled = cute.make_tiled_mma(atom)
    mma = tiled.get_slice(tidx)
    fA, fB = tiled.make_fragment_A(mma.partition_A(sA)), tiled.make_fragment_B(mma.partition_B(sB))
    acc = tiled.make_fragment_C(mma.partition_C(sC))
    warpgroup.fence()
    fresh = ir.atom_set_value(atom, "accum_c", False)
    last = ir.warpgroup_mma(fA[None, 0, 0], fB[None, 0, 0], acc[None, 0, 0], fresh)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(last, mma.partition_C(sC)[None, 0, 0])
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    if warp_idx == 0:
        ir.tma_store_execute(ir.make_exec_tma_store(ir.make_tma_store(tma_c)), sC, mC, 0, 0)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


def test_a_warpgroups_instructions_multiply(run, rng):
    a, b = (rng.integers(-3, 4, (64, 16)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    kind = warpgroup.SmemLayoutAtomKind.K_SW32
    lay = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, cute.Float16), (64, 16), (0, 1))
    plain = cute.make_layout((64, 64), stride=(64, 1))
    loads, store = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()

    def made(place, array, op, smem):
        return cpasync.make_tiled_tma_atom(op, from_dlpack(place(array), assumed_align=16), smem, array.shape)

    operands = ((a, loads, lay), (b, loads, lay), (c, store, plain))
    args = [lambda place, o=o, i=i: made(place, *o)[i] for o in operands for i in (0, 1)]

    def check():
        np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)

    run(by_a_warpgroup, 1, 128, [*args, lay], outputs=[c], check=check)


def by_the_matrix_unit(size):
    op = tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 32, 16), *UNIT)
    mma = cute.make_tiled_mma(op)
    shape_a, shape_b = mma.partition_shape_A((128, 16)), mma.partition_shape_B((32, 16))
    atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW32, cute.Float16)
    lay_a, lay_b = (tcgen05.tile_to_mma_shape(atom, s, (0, 1)) for s in (shape_a, shape_b))

    @cuda.jit
    def kernel(a, b, out):
        """out = a @ b.T, 128 x 32 x 16: one tcgen05.mma, and a load of the result."""
        tidx, _, _ = arch.thread_idx()
        warp_idx = arch.make_warp_uniform(arch.warp_idx())
        smem = cute.utils.SmemAllocator()
        sA = smem.allocate_tensor(cute.Float16, lay_a.outer, 1024, lay_a.inner)
        sB = smem.allocate_tensor(cute.Float16, lay_b.outer, 1024, lay_b.inner)
        bar, slot = smem.allocate_array(cute.Int64, 1), smem.allocate_array(cute.Int32, 1)
        if tidx == 0:
            ir.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        for k in range(16):
            sA[(tidx, k), 0, 0] = a[tidx, k]
            if tidx < 32:
                sB[(tidx, k), 0, 0] = b[tidx, k]
        arch.fence_proxy("async.shared", space="cta")
        if warp_idx == 0:
            arch.alloc_tmem(32, slot)
        arch.fence_view_async_shared()
        arch.sync_threads()
        unit = ir.make_mma_atom(cute.Float16, cute.Float16, cute.Float32, (128, 32, 16), "SM100")
        tiled = cute.make_tiled_mma(unit)
        fA, fB = tiled.make_fragment_A(sA), tiled.make_fragment_B(sB)
        tmem = arch.retrieve_tmem_ptr(cute.Float32, 16, slot)
        acc = cute.make_tensor(tmem, tiled.make_fragment_C(tiled.partition_shape_C((128, 32))).layout)
        if warp_idx == 0:
            fresh = ir.atom_set_value(unit, "accum_c", False)
            ir.tcgen05_mma(fA[None, 0, 0], fB[None, 0, 0], acc[None, 0, 0], fresh)
            tcgen05.commit(bar)
        ir.mbarrier_wait(bar, 0)
        arch.tcgen05_fence_after_thread_sync()
        load = ir.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)
        mine = tcgen05.make_tmem_copy(load, acc[None, 0, 0]).get_slice(tidx)
        there = mine.partition_S(acc[None, 0, 0])
        to = mine.partition_D(cute.group_modes(out, 0, 2))
        got = cute.make_rmem_tensor(to.shape, cute.Float32)
        ir.tmem_load(load, there[None, 0], got[None, 0])
        arch.fence_view_async_tmem_load()
        cute.autovec_copy(got, to)
        arch.sync_threads()
        if warp_idx == 0:
            arch.dealloc_tmem(tmem, 32)

    return kernel


UNIT = (tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM, tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.K)


@pytest.mark.slow
def test_the_matrix_units_instructions_multiply(run, rng):
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((128, 16), (32, 16)))
    out = np.zeros((128, 32), np.float32)

    def check():
        np.testing.assert_array_equal(out, a.astype(np.float64) @ b.astype(np.float64).T)

    args = [lambda place, x=x: from_dlpack(place(x), assumed_align=16) for x in (a, b, out)]
    run(by_the_matrix_unit(32), 1, 128, args, outputs=[out], check=check, arch="sm_100a")


def by_the_matrix_unit_with_factors(op, tile, swizzles):
    """A kernel (a, b, factors, out) as `scaled_kernels.multiply` makes it, of one CTA: one multiply after the other."""
    mma, (m, n, _) = cute.make_tiled_mma(op), tile
    acc_layout, steps = mma.make_fragment_C(mma.partition_shape_C((m, n))).layout, tile[2] // op.shape_mnk[2]
    (lay_a, type_a, raw_a), (lay_b, type_b, raw_b) = scaled.layouts(op, tile, swizzles)
    lay_sfa, lay_sfb = scaled.factor_layouts(op, tile)
    (count_a, count_b, _), words, threads = scaled.more_columns(op, tile), scaled.result_words(op, tile), scaled.THREADS

    @cuda.jit
    def kernel(a, b, factors, out):
        tid, warp = cuda.threadIdx.x, arch.make_warp_uniform(arch.warp_idx())
        smem = cute.utils.SmemAllocator()
        r_a = smem.allocate_tensor(cute.Uint8, raw_a.outer, 1024, raw_a.inner)
        r_b = smem.allocate_tensor(cute.Uint8, raw_b.outer, 1024, raw_b.inner)
        bar, slot = smem.allocate_array(cute.Int64, 1), smem.allocate_array(cute.Int32, 1)
        if tid == 0:
            ir.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        for i in range(tid, cute.size(r_a), threads):
            r_a[i] = a[0, i]
        for i in range(tid, cute.size(r_b), threads):
            r_b[i] = b[0, i]
        arch.fence_proxy("async.shared", space="cta")
        if warp == 0:
            arch.alloc_tmem(512, slot)
        scaled.meet()
        tmem = arch.retrieve_tmem_ptr(cute.Float32, 16, slot)
        more = cute.make_rmem_tensor(count_a + count_b, cute.Uint32)
        for j in cute.range_constexpr(count_a + count_b):
            more[j] = factors[0, tid, j]
        scaled.write_columns(more, 0, count_a, 4, tmem, scaled.SFA_COLUMN, warp)
        scaled.write_columns(more, count_a, count_b, 2, tmem, scaled.SFB_COLUMN, warp)
        scaled.meet()
        if warp == 0:
            s_a = cute.make_tensor(cute.recast_ptr(r_a.iterator, lay_a.inner, type_a), lay_a.outer)
            s_b = cute.make_tensor(cute.recast_ptr(r_b.iterator, lay_b.inner, type_b), lay_b.outer)
            acc = cute.make_tensor(cute.recast_ptr(tmem, dtype=op.accumulator), acc_layout)
            sfa = cute.make_tensor(cute.recast_ptr(tmem + scaled.SFA_COLUMN, dtype=op.factor_type), lay_sfa)
            sfb = cute.make_tensor(cute.recast_ptr(tmem + scaled.SFB_COLUMN, dtype=op.factor_type), lay_sfb)
            made = ir.atom_set_value(mma, "accum_c", False)
            f_a, f_b = made.make_fragment_A(s_a), made.make_fragment_B(s_b)
            for i in cute.range_constexpr(steps):
                of_a = ir.atom_set_value(made, "sf_a", sfa[None, None, i].iterator)
                both = ir.atom_set_value(of_a, "sf_b", sfb[None, None, i].iterator)
                fresh = ir.atom_set_value(both, "accum_c", i > 0)
                ir.tcgen05_block_scaled_mma(f_a[None, 0, i], f_b[None, 0, i], acc[None, 0, 0], fresh)
            tcgen05.commit(bar)
        ir.mbarrier_wait(bar, 0)
        got = cute.make_rmem_tensor(words, cute.Uint32)
        scaled.read_words(got, tmem, warp, words)
        for j in cute.range_constexpr(words):
            out[0, tid, j] = got[j]
        scaled.meet()
        if warp == 0:
            arch.dealloc_tmem(tmem, 512)

    return kernel


@pytest.mark.parametrize(
    ("cls", "types"),
    [(tcgen05.MmaMXF8Op, (cute.Float8E4M3FN,)), pytest.param(tcgen05.MmaMXF4Op, (), marks=pytest.mark.slow)],
    ids=["mxf8", "mxf4"],
)
def test_the_matrix_unit_multiplies_with_scale_factors(run, rng, cls, types):
    op = operation(cls, types, (128, 32))
    tile = (128, 32, 4 * op.shape_mnk[2])
    check_product(run, rng, op, tile, multiply=by_the_matrix_unit_with_factors)


# ------------------------------------------------------------------ what they refuse

F16, F32 = cute.Float16, cute.Float32
MAKES = {
    "no type": (lambda: ir.make_mma_atom(F16, "f16", F32, (64, 64, 16), "SM90"), "b_type 'f16' is not an element type"),
    "no tile": (lambda: ir.make_mma_atom(F16, F16, F32, (64, 64), "SM90"), "shape_mnk (64, 64) must be three"),
    "tile": (lambda: ir.make_mma_atom(F16, F16, F32, (64, 60, 16), "SM90"), "must have n a multiple of 8 in [8, 256]"),
    "types": (
        lambda: ir.make_mma_atom(F16, F32, F32, (64, 64, 16), "SM90"),
        "SM90 has no instruction of Float16, Float32, Float32, [64, 64, 16]; docs/nvgpu.md has the table",
    ),
    "sparse": (lambda: ir.make_mma_atom(F16, F16, F32, (16, 8, 8), "SM80", sparse=True), "(16, 8, 8) must be"),
    "copy": (lambda: ir.make_copy_atom("LdMatrix", F16), "op 'LdMatrix' is no copy operation; these are: LdMatrix16"),
    "option": (lambda: ir.make_copy_atom("CopyG2SOp", F16, num_matrices=4), "CopyG2SOp has no num_matrices; it has:"),
    "own": (
        lambda: ir.make_copy_atom(cute.nvgpu.CopyUniversalOp(), F16, pack=1),
        "pack is for an operation that is named, and op is CopyUniversalOp()",
    ),
    "load": (
        lambda: ir.make_tma_load(3), "tma 3 is not an atom of a TMA load, as cpasync.make_tiled_tma_atom makes it"
    ),
    "exec": (lambda: ir.make_exec_tma_store(None), "tma None is not an atom of a TMA store"),
    "field": (
        lambda: ir.atom_get_value(ir.make_mma_atom(F32, F32, F32, (1, 1, 1)), "neg"),
        "field 'neg' is none of a matrix instruction; these are: accum_c, neg_a",
    ),
    "other field": (
        lambda: ir.atom_set_value(ir.make_mma_atom(F32, F32, F32, (1, 1, 1)), "neg_a", True),
        "is none that MmaUniversalOp(abacc_dtype=Float32) has: ACCUMULATE",
    ),
    "kind": (
        lambda: ir.warp_mma_tf32(None, None, None, ir.make_mma_atom(F16, F16, F32, (16, 8, 16), "SM80")),
        "is not warp.MmaTF32Op; use warp_mma_f16bf16",
    ),
    "kind of copy": (
        lambda: ir.ldmatrix(ir.make_copy_atom("CopyUniversalOp", F16), None, None),
        "is not an LdMatrix operation of nvgpu.warp; use copy_universal",
    ),
    "no fragment": (
        lambda: ir.warpgroup_mma(None, None, None, ir.make_mma_atom(F16, F16, F32, (64, 64, 16), "SM90")),
        "warpgroup_mma: a None must be the fragment of one instruction",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MAKES)
def test_what_no_instruction_takes_is_refused(case):
    make, words = MAKES[case]
    with pytest.raises(CuteError) as e:
        make()
    assert words in str(e.value)


@cuda.jit
def of_several_copies(out):
    copy = ir.make_copy_atom("CopyUniversalOp", cute.Float32, 64)
    some = cute.make_rmem_tensor((2, 3), cute.Float32)
    ir.copy_universal(copy, some, some)


@cuda.jit
def of_several_multiplies(out):
    atom = ir.make_mma_atom(cute.Float16, cute.Float16, cute.Float32, (16, 8, 16), "SM80")
    some = cute.make_rmem_tensor((2, 3), cute.Float32)
    ir.warp_mma_f16bf16(some, some, some, atom)


@pytest.mark.parametrize("engine", ["simulator", "compiler"])
@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (of_several_copies, "make 3 instructions of the atom: slice them to one, or use cute.copy"),
        (of_several_multiplies, "must be the fragment of one instruction, a tensor of one mode (V)"),
    ],
    ids=["copy", "multiply"],
)
def test_fragments_of_several_instructions_are_refused(engine, kernel, words):
    out = np.zeros(1, np.float32)
    with pytest.raises(CuteError) as e:
        if engine == "simulator":
            cute.simulate(kernel)[1, 32](out)
        else:
            cute.compile(kernel, (out,), arch="sm_80")
    assert words in str(e.value)


def test_what_is_set_on_atoms_is_read():
    atom = ir.make_mma_atom(F16, F16, F32, (64, 64, 16), "SM90")
    assert ir.atom_get_value(ir.atom_set_value(atom, "accum_c", False), Field.ACCUMULATE) is False
    assert ir.atom_get_value(ir.atom_set_value(cute.make_tiled_mma(atom), Field.NEGATE_A, True), "neg_a") is True


def test_every_operation_has_one_instruction():
    lacking = [op.__name__ for op in atoms.operations(MmaOp) if not any(issubclass(op, k.classes) for k in ir.KINDS)]
    assert lacking == []
    names = {k.name for k in ir.KINDS}
    assert len(names) == len(ir.KINDS) and names < set(ir.__all__)
