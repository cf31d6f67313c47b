# SPDX-License-Identifier: Apache-2.0
"""How TMA atoms are made on the host, and what is refused there, with the rule and the mend."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, nvgpu, utils
from numba_cute.isa.facts.tensormap import Im2col, TensorMapRecord
from numba_cute.nvgpu import ReductionOp, cpasync, warpgroup
from numba_cute.runtime import make_fake_tensor
from numba_cute.seam import CuteError, frozen, traced
from numba_cute.sim import SimError

from .test_tma_modes import LOAD, MULTICAST, STORE, aligned, tensor

Kind = warpgroup.SmemLayoutAtomKind
K_MAJOR = nvgpu.OperandMajorMode.K


def fake(shape, stride, dtype=cute.Float16):
    return make_fake_tensor(dtype, shape, stride, assumed_align=16)


def swizzled(tile, kind=Kind.K_SW128, dtype=cute.Float16, stages=None):
    atom = warpgroup.make_smem_layout_atom(kind, dtype)
    order = tuple(range(len(tile) + (stages is not None)))
    return cute.tile_to_shape(atom, (*tile, *((stages,) if stages else ())), order)


def test_an_atom_comes_with_its_tensor_and_its_layout():
    lay = swizzled((128, 64), stages=3)
    info = cpasync.make_tiled_tma_atom(LOAD, fake((512, 384), (384, 1)), lay, (128, 64))
    atom, coords = info
    assert isinstance(info, cpasync.TmaInfo) and isinstance(LOAD, cpasync.TmaCopyOp)
    assert (info.atom, info.tma_tensor, info.smem_layout) == (atom, coords, lay)
    assert atom.tensor_map.box == (64, 128), "of one stage"
    assert cute.size(atom.layout_src_tv) == 128 * 64


def test_an_info_goes_into_a_kernel_whole(run):
    src, out = aligned((8, 32), np.float32), np.zeros((2,), np.int32)
    lay = cute.make_layout((8, 16), stride=(16, 1))

    @cuda.jit
    def kernel(info, out):
        cpasync.prefetch_descriptor(info.atom)
        out[0] = cute.size(info.tma_tensor)
        out[1] = cute.size(info.smem_layout)

    args = [lambda place: cpasync.make_tiled_tma_atom(LOAD, tensor(place, src), lay, (8, 16)), out]
    run(kernel, 1, 1, args, outputs=[out], check=lambda: np.testing.assert_array_equal(out, [256, 128]), arch="sm_90")


def mma(layout_mnk=(1, 1, 1), n=128):
    return utils.make_trivial_tiled_mma(
        cute.Float16, cute.Float16, K_MAJOR, K_MAJOR, cute.Float32, layout_mnk, (64, n)
    )  # fmt: skip


@pytest.mark.parametrize(
    "make, shape, tile, boxes",
    [
        (nvgpu.make_tiled_tma_atom_A, (512, 384), (128, 64), {1: (64, 128), 2: (64, 32)}),
        (nvgpu.make_tiled_tma_atom_B, (256, 384), (128, 64), {1: (64, 128), 2: (64, 64)}),
    ],
    ids=["A", "B"],
)
def test_operands_take_their_part_of_the_tile_and_of_the_cluster(make, shape, tile, boxes):
    lay = swizzled(tile, stages=4)
    sharing = 4 if shape[0] == 512 else 2
    for parts, box in boxes.items():
        op, parts = (LOAD, 1) if parts == 1 else (MULTICAST, sharing)
        info = make(op, fake(shape, (shape[1], 1)), lay, (128, 128, 64), mma(), (1, 2, 4, 1))
        assert info.atom.tensor_map.box == box, "A is shared along N (4 blocks), B along M (2)"
        same = cpasync.make_tiled_tma_atom(op, fake(shape, (shape[1], 1)), lay, tile, parts)
        assert info.tma_tensor.layout == same.tma_tensor.layout


def test_a_result_is_stored_by_the_same_tile():
    lay = swizzled((128, 64))
    info = nvgpu.make_tiled_tma_atom_C(STORE, fake((512, 256), (256, 1)), lay, (128, 64, 64), mma(n=64))
    assert info.atom.tensor_map.box == (64, 128)


def test_a_tile_in_the_parts_of_the_instruction_is_taken_too():
    frg = cute.make_layout(((64, 16), 2, 4), stride=((16, 1), 64 * 16 * 4, 64 * 16))
    info = nvgpu.make_tiled_tma_atom_A(LOAD, fake((512, 384), (384, 1)), frg, (128, 128, 64), mma())
    assert info.atom.tensor_map.box == (16, 64) and cute.size(info.atom.layout_src_tv) == 16 * 64


MAJORS = (
    "has stride 384 along the mode that is contiguous in shared memory; it must be 1: both must have the same major"
)


def test_an_atom_of_the_wrong_major_can_be_looked_at_but_not_used():
    a = aligned((512, 384), np.float16)
    lay = swizzled((128, 64), Kind.MN_SW128)
    t = cute.runtime.from_dlpack(a, assumed_align=16)
    atom, coords = cpasync.make_tiled_tma_atom(LOAD, t, lay, (128, 64))
    assert coords[1, 2] == (384, 2)

    @cuda.jit
    def kernel(atom):
        cpasync.prefetch_descriptor(atom)

    with pytest.raises(CuteError, match=MAJORS):
        cute.simulate(kernel)[1, 32](atom)
    with pytest.raises(CuteError, match=MAJORS):
        cute.compile(kernel, (atom,), arch="sm_90a")


@frozen
class Map:
    tensor_map: object
    of: object = None  # the array, kept


def issue(row, *args, **statics):
    @traced
    def go(map, s, bar):
        operands = {"map": map.tensor_map, "s": s, "bar": bar}
        row(*(operands.get(a, a) if isinstance(a, str) else a for a in args), **statics)

    return go


@pytest.mark.parametrize("swizzle", ["none", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"])
def test_four_rows_are_gathered_and_scattered(run, swizzle):
    """Of sm_100: rows by index, and the swizzles with wider atoms, there and back; what lies between is permuted. (The
    8-byte halves that FLIP_8B exchanges stay so: no store has that swizzle.)"""
    src, dst, raw = (aligned(s, np.uint16) for s in ((16, 128), (16, 128), (4 * 64,)))
    rows = (3, 9, 0, 12)
    gather = issue(isa.cp_async_bulk_tensor_g2s, "s", "map", (64, *rows), "bar", mode="tile::gather4")
    scatter = issue(isa.cp_async_bulk_tensor_s2g, "map", (0, *rows), "s", mode="tile::scatter4")

    @cuda.jit
    def kernel(load, store, raw):
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(cute.Uint16, cute.make_layout(256), 1024, None, "s")
        bar = smem.allocate_array(cute.Int64, 1, name="bar")
        if arch.elect_one():
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(bar, 512)
            gather(load, s.iterator.toint(), bar.toint())
        arch.sync_warp()
        arch.mbarrier_wait(bar, 0)
        lying = cute.recast_ptr(s.iterator, reinterpret=True)
        for i in range(arch.lane_idx(), 256, 32):
            raw[i] = (lying + i).load()
        if arch.elect_one():
            scatter(store, s.iterator.toint(), 0)
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)

    start, want = np.roll(dst, 5), np.roll(dst, 5)
    chunk = np.arange(32)
    line, place = chunk >> 3, chunk & 7
    chunks = src[list(rows), 64:].reshape(32, 2, 4)
    if swizzle.endswith("FLIP_8B"):
        chunks = np.where((line & 1)[:, None, None] == 1, chunks[:, ::-1], chunks)
    want[list(rows), :64] = chunks.reshape(4, 64)

    def mapped(array, swizzle):
        def make(place):
            dst[...] = start
            of = tensor(place, array)
            address = int(of.iterator.address)
            return Map(TensorMapRecord(cute.Uint16, address, (128, 16), (256,), (64, 1), swizzle=swizzle), of)

        return make

    to = {"none": place, "128B": place ^ line, "128B_ATOM_64B": place ^ (line & 1) * 4}
    to = 8 * line + to.get(swizzle, place ^ line * 2)

    def check():
        np.testing.assert_array_equal(dst, want)
        np.testing.assert_array_equal(raw.reshape(32, 2, 4)[to], chunks)

    maps = mapped(src, swizzle), mapped(dst, swizzle.removesuffix("_FLIP_8B"))
    run(kernel, 1, 32, [*maps, raw], outputs=[raw], inouts=[dst], check=check, arch="sm_100a")


def test_a_prefetch_begins_where_a_load_may():
    """Anything else is an illegal instruction on an H200 too (2026-11-21)."""
    src = aligned((16, 64), np.uint16)
    record = TensorMapRecord(cute.Uint16, src.ctypes.data, (64, 16), (128,), (64, 4))

    def prefetch(column):
        ahead = issue(isa.cp_async_bulk_prefetch_tensor, "map", (column, -3), rank=2)

        @cuda.jit
        def kernel(map):
            ahead(map, 0, 0)

        cute.simulate(kernel)[1, 1](Map(record))

    prefetch(-8)
    with pytest.raises(SimError, match="the innermost coordinate 4 is 4 x 16 bits .* use a multiple of 8 elements"):
        prefetch(4)


def test_stores_have_no_swizzle_that_exchanges_halves():
    @cuda.jit
    def kernel(map):
        s = utils.SmemAllocator().allocate_tensor(cute.Uint16, cute.make_layout(256), 1024, None, "s")
        s.fill(0)
        arch.fence_proxy("async.shared", space="cta")
        if arch.elect_one():
            store(map, s.iterator.toint(), 0)
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)

    store = issue(isa.cp_async_bulk_tensor_s2g, "map", (0, 0), "s", rank=2)
    dst = aligned((16, 64), np.uint16)
    swizzled = dict(box=(64, 4), swizzle="128B_ATOM_32B_FLIP_8B")
    with pytest.raises(SimError, match="128B_ATOM_32B_FLIP_8B', which only loads have; make another map"):
        map = Map(TensorMapRecord(cute.Uint16, dst.ctypes.data, (64, 16), (128,), **swizzled))
        cute.simulate(kernel, arch="sm_100a")[1, 1](map)


GOOD = dict(dtype=cute.Float16, address=1 << 20, dims=(64, 32, 8), strides_bytes=(128, 4096), box=(32, 4, 2))
WALK = dict(dims=(64, 9, 14, 8), strides_bytes=(128, 1152, 16128), box=())
BAD = [
    (
        dict(dtype=cute.Float6E3M2FN),
        r"dims\[0\] is 64 .*; as 16U6_ALIGN16B it must be a multiple of 128; pad the tensor",
    ),
    (dict(dtype=cute.Float4E2M1FN, element_strides=(1, 2, 1)), "element_strides .* of Float4E2M1FN must all be 1"),
    (
        dict(dtype=cute.Float4E2M1FN, unpacked=True, dims=(128, 32, 8)),
        r"box\[0\] is 32 .* must be 128; use another tile",
    ),
    (
        dict(dtype=cute.Float4E2M1FN, unpacked=True, dims=(128, 32, 8), box=(128, 4, 2), swizzle="64B"),
        "swizzle '64B' is none that 16U4_ALIGN16B has: 'none', '128B', '128B_ATOM_32B'",
    ),
    (dict(dtype=cute.Uint4, oob_fill="nan"), "oob_fill 'nan' needs a floating-point dtype of 16 bits or more"),
    (dict(dtype=cute.Int4, unpacked=True, address=(1 << 20) + 16), r"not a multiple of 32 bytes \(unpacked elements\)"),
    (dict(dims=(64,) * 6, strides_bytes=(128,) * 5), "rank 6; TMA takes 1 to 5; merge or slice modes"),
    (dict(address=(1 << 20) + 8), "address 0x100008 is not a multiple of 16 bytes; align the tensor"),
    (
        dict(strides_bytes=(120, 4096)),
        "stride of dimension 1 is 120 bytes; it must be a multiple of 16 .*; pad the",
    ),
    (dict(strides_bytes=(128,)), r"strides_bytes \(128,\) must have 2 entries"),
    (dict(dims=(64, 0, 8)), r"dims\[1\] is 0; it must be in 1 to 2\^32"),
    (dict(box=(32, 300, 2)), r"box\[1\] is 300 elements; it must be in 1 to 256; use a smaller tile"),
    (dict(box=(36, 4, 2)), "inner box is 36 x Float16 = 72 bytes; it must be a multiple of 16; use a multiple of 8"),
    (
        dict(box=(64, 4, 2), swizzle="64B"),
        "inner box is 128 bytes, more than the 64 of swizzle '64B'; use a narrower",
    ),
    (dict(swizzle="16B"), "swizzle '16B' is none of 'none', '32B', '64B', '128B', '128B_ATOM_32B'"),
    (dict(element_strides=(1, 9, 1)), r"element_strides\[1\] is 9; it must be in 1 to 8"),
    (dict(element_strides=(2, 1, 1)), r"element_strides\[0\] is 2; TMA ignores it, so it must be 1"),
    (
        dict(oob_fill="nan", dtype=cute.Int16),
        "oob_fill 'nan' needs a floating-point dtype of 16 bits or more, not",
    ),
    (dict(l2_promotion="512B"), "l2_promotion '512B' is none of 'none', '64B', '128B', '256B'"),
    (dict(interleave="8B"), "interleave '8B' is none of 'none', '16B', '32B'"),
    (dict(interleave="32B"), "interleave '32B' needs swizzle '32B', not 'none'"),
    (dict(interleave="32B", swizzle="32B", address=(1 << 20) + 16), r"multiple of 32 bytes \(interleave '32B'\)"),
    (dict(interleave="32B", swizzle="32B", strides_bytes=(144, 4096)), "is 144 bytes; it must be a multiple of 32"),
    (
        dict(interleave="16B", dims=(64, 32), strides_bytes=(128,), box=(32, 4)),
        "im2col and interleaved maps take 3",
    ),
    (dict(**WALK, im2col=Im2col((-1,), (-1, -1), 8, 64)), "im2col lower .* must have 2 entries"),
    (
        dict(**WALK, im2col=Im2col((-200, 0), (0, 0), 8, 64)),
        r"lower\[0\] is -200; with 4 dimensions it must be in",
    ),
    (
        dict(**WALK, im2col=Im2col((0, 0), (-9, 0), 8, 64)),
        r"leave no pixel of dims\[1\] = 9; .*the filter with",
    ),
    (dict(**WALK, im2col=Im2col((0, 0), (0, 0), 512, 64)), "channels is 512; it must be in 1 to 256; use a smaller K"),
    (dict(**WALK, im2col=Im2col((0, 0), (0, 0), 64, 2000)), "pixels is 2000; it must be in 1 to 1024; use a smaller M"),
]


@pytest.mark.parametrize("change, words", BAD, ids=[f"{i}_{next(iter(c))}" for i, (c, _) in enumerate(BAD)])
def test_a_tensor_map_that_tma_cannot_have_is_refused_with_rule_and_mend(change, words):
    TensorMapRecord(**GOOD)
    with pytest.raises(CuteError, match=words):
        TensorMapRecord(**{**GOOD, **change})


ROWS = cute.make_layout((8, 32), stride=(32, 1))
MAKING = [
    (lambda: (cute.nvgpu.CopyUniversalOp(), fake((64, 64), (64, 1)), ROWS, (8, 32)), "is not a TMA tensor operation"),
    (lambda: (LOAD, fake((64, 64), (64, 1)), ROWS, (8, 64)), "has 256 elements, but cta_tiler .* has 512; give the"),
    (lambda: (LOAD, fake((64, 64), (64, 1)), ROWS, (8, 32, 1)), "at most one entry for each mode of gmem_tensor"),
    (lambda: (LOAD, fake((64, 64), (64, 1)), ROWS, (8, 32), 2), "num_multicast 2 needs CopyBulkTensorTileG2SMulti"),
    (lambda: (MULTICAST, fake((64, 64), (64, 1)), ROWS, (8, 32), 3), "num_multicast 3 does not divide the box"),
    (lambda: (LOAD, fake((64, 63), (63, 1)), ROWS, (8, 32)), "stride of dimension 1 is 126 bytes; .* pad the"),
    (
        lambda: (cpasync.CopyReduceBulkTensorTileS2GOp(ReductionOp.MIN), fake((64, 64), (64, 1), cute.Float32), ROWS,
                 (8, 32)),
        "TMA reduction 'min' of Float32: TMA has it for u32, s32, u64, s64, f16, bf16, and for Float32 it has add",
    ),
    (
        lambda: (cpasync.CopyReduceBulkTensorTileS2GOp(ReductionOp.XOR), fake((64, 64), (64, 1), cute.Float32), ROWS,
                 (8, 32)),
        r"TMA reduction 'xor' of Float32: .* combine its bits as recast_tensor\(tensor, Uint32\)",
    ),
]  # fmt: skip


@pytest.mark.parametrize("given, words", MAKING, ids=lambda x: "" if callable(x) else x.split(",")[0][:30])
def test_an_atom_that_cannot_be_is_refused_with_rule_and_mend(given, words):
    with pytest.raises(CuteError, match=words):
        cpasync.make_tiled_tma_atom(*given())


def test_signed_integers_are_reduced_as_unsigned_ones_where_the_bits_are_the_same():
    """An H200 has no bitwise reduction of s64 (an illegal instruction, 2026-11-21), but one of u64."""

    def mapped(op, dtype, **options):
        tensor = fake((64, 64), (64, 1), dtype)
        return cpasync.make_tiled_tma_atom(operation(op), tensor, ROWS, (8, 32), **options)[0].tensor_map.dtype

    def operation(op):
        return cpasync.CopyReduceBulkTensorTileS2GOp(op)

    assert mapped(ReductionOp.AND, cute.Int64) == mapped(ReductionOp.ADD, cute.Int64) == cute.Uint64
    assert mapped(ReductionOp.XOR, cute.Int32) == cute.Uint32
    assert mapped(ReductionOp.ADD, cute.Int32) == cute.Int32 and mapped(ReductionOp.MIN, cute.Int64) == cute.Int64
    with pytest.raises(CuteError, match=r"'or' of Int64: .* u32, u64, .* recast_tensor\(tensor, Uint64\)"):
        mapped(ReductionOp.OR, cute.Int64, internal_type=cute.Int64)
