# SPDX-License-Identifier: Apache-2.0
"""Names, keywords and annotations that kernels of the CuTe DSL and the CuTe IR's operations have."""

from __future__ import annotations

import inspect
import typing

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import nvgpu, pipeline, seam
from numba_cute.nvgpu import CacheEvictionPriority
from numba_cute.runtime import from_dlpack
from numba_cute.seam.guards import facade
from tests import api

SHAPE = (4, (8, (2, 4)), 16)


# ------------------------------------------------------------------ what a tensor does as a whole


@cuda.jit
def whole(x, out):
    i, _, _ = cute.arch.thread_idx()
    mine = cute.make_rmem_tensor_like(x[i, None])
    cute.fill(mine, 7)
    v = cute.load(x[i, None])
    cute.store(v + cute.load(mine), out[0, i, None])
    cute.clear(mine)
    cute.store(cute.load(mine), out[1, i, None])
    out[2, i, 0] = cute.size(cute.get_shape(x)) + cute.get_stride(x)[0]


def test_load_store_fill_and_clear_are_functions_too(run):
    x, out = np.arange(32, dtype=np.int32).reshape(8, 4), np.zeros((3, 8, 4), np.int32)

    def check():
        np.testing.assert_array_equal(out[0], x + 7)
        assert not out[1].any()
        assert (out[2, :, 0] == 32 + 4).all()

    run(whole, 1, 8, [lambda place, a=a: from_dlpack(place(a)) for a in (x, out)], outputs=[out], check=check)


@pytest.mark.parametrize("call", [lambda: cute.load(3), lambda: cute.clear((1, 2)), lambda: cute.fill(None, 0),
                                  lambda: cute.store(3, 4)])  # fmt: skip
def test_what_is_no_tensor_is_refused(call):
    with pytest.raises(cute.CuteError, match="is not a tensor"):
        call()


TILED = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
COPY = cute.make_tiled_copy_tv(
    cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=128),
    cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((4, 8), stride=(8, 1)),
)  # fmt: skip


def test_fragments_and_partitions_are_functions_too(run):
    x = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float16)
    out, sizes = np.zeros_like(x), np.zeros(3, np.int32)

    @cuda.jit
    def kernel(x, out, sizes):
        parts_of(x, out, sizes)

    @cuda.jit(device=True)
    def parts_of(x, out, sizes):
        lane, _, _ = cute.arch.thread_idx()
        cute.autovec_copy(cute.partition_s(COPY, x, lane), cute.partition_d(COPY.get_slice(lane), out))
        thread = TILED.get_slice(lane)
        a = cute.mma_make_fragment_a(TILED, thread.partition_A(cute.local_tile(x, (16, 16), (0, 0))))
        b = cute.mma_make_fragment_b(thread, thread.partition_B(cute.local_tile(x, (8, 16), (0, 0))))
        c = cute.mma_make_fragment_c(TILED, thread.partition_C(cute.local_tile(x, (16, 8), (0, 0))))
        if lane == 0:
            sizes[0], sizes[1], sizes[2] = cute.size(a), cute.size(b), cute.size(c)

    def check():
        np.testing.assert_array_equal(out, x)
        assert sizes.tolist() == [8, 4, 4]

    args = [lambda place: from_dlpack(place(x)), lambda place: from_dlpack(place(out)), sizes]
    run(kernel, 1, 32, args, outputs=[out, sizes], check=check)


def test_partitions_name_what_they_take():
    with pytest.raises(cute.CuteError, match="partition_s: copy="):
        cute.partition_s(COPY, None)
    with pytest.raises(cute.CuteError, match="alone"):
        cute.partition_d(COPY.get_slice(0), None, 3)
    with pytest.raises(cute.CuteError, match="must be a tiled MMA"):
        cute.mma_make_fragment_a(COPY, None)


# ------------------------------------------------------------------ keywords


def test_keywords_are_the_references():
    lay = cute.make_layout((4, (2, 2)), stride=(1, (0, 4)))
    assert cute.make_layout_like(input=lay) == cute.make_layout((4, (2, 2)), stride=(1, (0, 4)))
    assert cute.nullspace(layout=lay) == cute.make_layout(2, stride=4)
    assert cute.increment_coord((3, 0), shape=(4, 8)) == (0, 1)
    assert cute.size_in_bytes(cute.Float16, layout=lay) == 16


def test_a_value_is_looked_for_at_the_top_alone():
    assert cute.find(SHAPE, 2, hierarchical=True) == (1, 1, 0) and cute.find(SHAPE, 2, hierarchical=False) is None
    assert cute.find(SHAPE, 16, hierarchical=False) == 2
    assert cute.find_if(SHAPE, lambda x, i: x == 8, hierarchical=False) is None


@cuda.jit
def prints(n):
    cute.printf("{}", n, end="")
    cute.printf("%d", n, end=";")
    cute.printf(n, end="!\n")


def test_printf_ends_as_it_is_told(capsys):
    cute.simulate(prints)[1, 1](np.int32(5))
    assert capsys.readouterr().out == "55;5!\n"
    assert cute.compile(prints, (np.int32(5),)).ptx.count("vprintf") >= 3
    with pytest.raises(cute.CuteError, match="end 3 is not a text"):
        cute.printf("x", end=3)


@cuda.jit
def located(x, out):
    i, _, _ = cute.arch.thread_idx(loc=None, ip=None)
    tile = cute.local_tile(x, (8,), (0,), loc=None)
    regs = cute.make_rmem_tensor((1,), cute.Float32, ip=None)
    regs.fill(cute.size(tile.layout, loc=None, ip=None), loc=None, ip=None)
    cute.arch.sync_threads(loc=None, ip=None)
    cute.tilelang.cpasync.fence_proxy_async(loc=None, ip=None)
    out[i] = tile[i] + regs.load(loc=None, ip=None).reduce(cute.ReductionOp.ADD, 0.0, 0, loc=None, ip=None)


def test_loc_and_ip_are_taken_and_ignored(run):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run(located, 1, 8, [lambda place: from_dlpack(place(x)), out], outputs=[out],
        check=lambda: np.testing.assert_array_equal(out, x + 8))  # fmt: skip
    assert cute.make_layout((4, 2), loc=None, ip=None) == cute.make_layout((4, 2))
    assert nvgpu.warpgroup.make_smem_layout_atom(
        nvgpu.warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16, loc=None, ip=None
    ) == nvgpu.warpgroup.make_smem_layout_atom(nvgpu.warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
    with pytest.raises(TypeError, match="lox"):
        cute.make_layout((4, 2), lox=None)


def test_everything_that_facades_show_takes_loc_and_ip():
    """All traced functions and methods, but for the words of the language itself."""
    words = {"const_expr", "is_static", "range", "range_constexpr", "static"}
    shown = [(f"{m}.{n}", v) for m, n, v in api.names() if inspect.isfunction(v) and seam.is_traced(v)]
    assert len(shown) > 500
    assert {n.rpartition(".")[2] for n, v in shown if not facade.takes_locations(v)} <= words
    for method in (cute.Tensor.load, cute.TiledMma.set, pipeline.PipelineTmaAsync.producer_acquire):
        assert facade.takes_locations(method)


def test_copies_take_how_far_to_unroll():
    atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32)

    @cuda.jit
    def kernel(x, out):
        cute.copy(atom, x, out, unroll_factor=4)

    x, out = np.arange(8, dtype=np.float32).reshape(1, 8), np.zeros((1, 8), np.float32)
    cute.simulate(kernel)[1, 1](from_dlpack(x), from_dlpack(out))
    np.testing.assert_array_equal(out, x)

    @cuda.jit
    def wrong(x, out):
        cute.copy(atom, x, out, unroll_factor=0)

    with pytest.raises(cute.CuteError, match="unroll_factor 0 must be a positive static int"):
        cute.simulate(wrong)[1, 1](from_dlpack(x), from_dlpack(out))


@cuda.jit
def kept(x, out, other):
    i, _, _ = cute.arch.thread_idx()
    regs = cute.make_rmem_tensor(4, cute.Float32)
    smem = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((4, 8)), 16)
    cute.autovec_copy(x[i, None], regs, l1c_evict_priority=CacheEvictionPriority.EVICT_FIRST)
    cute.autovec_copy(x[i, None], smem[None, i], l1c_evict_priority=CacheEvictionPriority.NO_ALLOCATE)
    cute.autovec_copy(regs, out[i, None], l1c_evict_priority=CacheEvictionPriority.EVICT_LAST)
    cute.autovec_copy(smem[None, i], other[i, None], l1c_evict_priority=CacheEvictionPriority.EVICT_NORMAL)


def test_copies_say_how_l1_keeps_what_they_access(run):
    x = np.random.default_rng(0).random((8, 4), np.float32)
    out, other = np.zeros_like(x), np.zeros_like(x)

    def check():
        np.testing.assert_array_equal(out, x)
        np.testing.assert_array_equal(other, x)

    args = [lambda place, a=a: from_dlpack(place(a), assumed_align=16) for a in (x, out, other)]
    run(kept, 1, 8, args, outputs=[out, other], check=check)
    ptx = cute.compile(kept, tuple(from_dlpack(a, assumed_align=16) for a in (x, out, other))).ptx
    for access in ("ld.global.L1::evict_first.v4.b32", "ld.global.L1::no_allocate.v4.b32",
                   "st.global.L1::evict_last.v4.b32"):  # fmt: skip
        assert access in ptx, access


def test_a_priority_is_of_global_memory_on_one_side():
    @cuda.jit
    def kernel(x):
        regs = cute.make_rmem_tensor(4, cute.Float32)
        cute.autovec_copy(regs, regs, l1c_evict_priority=CacheEvictionPriority.EVICT_FIRST)

    with pytest.raises(cute.CuteError, match="src is in rmem and dst in rmem"):
        cute.simulate(kernel)[1, 1](np.zeros(4, np.float32))


# ------------------------------------------------------------------ swizzles, types, tiles of K


def test_swizzles_by_their_bits_and_names():
    s = cute.make_swizzle(3, 4, 3)
    assert (s.num_bits, s.num_base, s.num_shift) == (3, 4, 3)
    assert cute.Swizzle.from_name(str(s)) == s == cute.Swizzle.from_name("K_SW128") == cute.Swizzle.from_name("SW128")
    assert cute.Swizzle.from_name("SW32") == cute.make_swizzle(1, 4, 3)
    assert cute.Swizzle.from_name("S<2,3,-3>") == cute.Swizzle(2, 3, -3)
    assert cute.Swizzle.from_name("MN_INTER").num_bits == 0
    with pytest.raises(cute.CuteError, match="name='SW256' is neither"):
        cute.Swizzle.from_name("SW256")


@pytest.mark.parametrize(
    "kind, is_one",
    [(int, True), (np.int64, True), (cute.Int32, True), (tuple[int, ...], True), (tuple[int, tuple[int, int]], True),
     (cute.Shape, True), (cute.IntTuple, True), (cute.Stride, True), (int | np.int32, True),
     (float, False), (bool, False), (cute.Float32, False), (tuple[int, float], False), (cute.Coord, False),
     (cute.Tile, False), (cute.Tensor, False), (3, False), ((4, 8), False), (str, False), (type(None), False)],
    ids=str,
)  # fmt: skip
def test_types_of_integer_tuples(kind, is_one):
    assert cute.is_int_tuple_type(kind) is is_one


def test_annotations_of_the_reference_are_names_here():
    def tile(
        coord: cute.Coord, shape: cute.Shape, tiler: cute.Tiler, by: cute.Tile, n: cute.Constexpr[int]
    ) -> None: ...

    hints = typing.get_type_hints(tile)
    assert (
        hints["shape"] == cute.IntTuple
        and hints["tiler"] == hints["by"]
        and type(None) in typing.get_args(hints["coord"])
    )


def test_tiles_of_k_are_counted_and_shared():
    assert pipeline.compute_k_tile(256, 64) == (0, 4) and pipeline.compute_k_tile(257, 64) == (0, 5)
    shares = [pipeline.compute_k_tile(320, 64, splits=3, split=i) for i in range(3)]
    assert shares == [(0, 2), (2, 2), (4, 1)]
    assert pipeline.compute_k_tile(64, 64, splits=3, split=2) == (1, 0)
    with pytest.raises(cute.CuteError, match="split=3 is none of the 3 splits"):
        pipeline.compute_k_tile(64, 64, splits=3, split=3)
    with pytest.raises(cute.CuteError, match="tile_k=0 must be positive"):
        pipeline.compute_k_tile(64, 0)


def test_tiles_of_k_are_shared_in_kernels(run):
    out = np.zeros((4, 2), np.int32)

    @cuda.jit
    def kernel(k, out):
        i, _, _ = cute.arch.thread_idx()
        out[i, 0], out[i, 1] = pipeline.compute_k_tile(k, 64, splits=4, split=i)

    run(kernel, 1, 4, [np.int32(600), out], outputs=[out],
        check=lambda: np.testing.assert_array_equal(out, [[0, 3], [3, 3], [6, 3], [9, 1]]))  # fmt: skip


# ------------------------------------------------------------------ unions


@cute.union
class Either:
    numbers: cute.struct.MemRange[cute.Float32, 64]
    halves: cute.struct.Align[cute.struct.MemRange[cute.Float16, 48], 128]
    flag: cute.Int64


@cute.struct
class Storage:
    first: cute.Int32
    either: Either
    last: cute.Int32


@cuda.jit
def overlaid(out):
    i, _, _ = cute.arch.thread_idx()
    s = cute.utils.SmemAllocator().allocate(Storage)
    numbers = s.either.numbers.get_tensor(cute.make_layout(64))
    if i == 0:
        s.first = 5
        s.last = 6
    numbers[i] = cute.Float32(1.5)
    cute.arch.sync_threads()
    halves = cute.recast_tensor(s.either.halves.get_tensor(cute.make_layout(48)), cute.Uint16)
    out[i] = halves[2 * i + 1] if i < 24 else cute.Uint16(s.first.load() + s.last.load())


def test_members_of_a_union_lie_in_one_place(run):
    assert Either.size_in_bytes() == 256 and Either.alignment() == 128
    assert Storage.size_in_bytes() == 128 + 256 + 128
    out = np.zeros(64, np.uint16)

    def check():
        assert (out[:24] == np.float32(1.5).view(np.uint32) >> 16).all() and (out[24:] == 11).all()

    run(overlaid, 1, 64, [out], outputs=[out], check=check)


def test_a_union_has_members():
    with pytest.raises(cute.CuteError, match="a union has members"):

        @cute.union
        class Nothing:
            pass

    with pytest.raises(cute.CuteError, match="is an element type"):

        @cute.union
        class Wrong:
            a: int


def test_bfloat16_is_filled_and_cleared():
    x = np.ones(8, ml_dtypes.bfloat16)

    @cuda.jit
    def kernel(x):
        cute.clear(x)

    cute.simulate(kernel)[1, 1](from_dlpack(x))
    assert not x.any()


# ------------------------------------------------------------------ names that attention kernels have


def test_a_tensor_knows_its_leading_dimension():
    x = from_dlpack(np.zeros((4, 8, 2), np.float16))
    assert x.leading_dim == 2
    assert x.mark_layout_dynamic().leading_dim == 2
    assert cute.group_modes(x, 1, 3).leading_dim == (1, 1)
    assert from_dlpack(np.zeros((4, 8), np.float16).T).leading_dim == 0
    assert from_dlpack(np.zeros((8, 8), np.float16)[:, ::2]).leading_dim is None


def test_a_tiled_mma_has_its_atoms_layouts():
    op = nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    tiled = cute.make_tiled_mma(op, (2, 2, 1))
    for name in ("tv_layout_A", "tv_layout_B", "tv_layout_C"):
        assert getattr(tiled, name) == getattr(tiled.atom, name) == getattr(cute.make_mma_atom(op), name)


@pytest.mark.parametrize("a, b", [(3, 5), (5, cute.Int32(3)), (cute.Int32(3), cute.Int32(4)), (2.5, 1)])
def test_min_and_max_are_of_the_hosts_numbers_too(a, b):
    assert cute.min(a, b) == min(int(a) if a != 2.5 else a, int(b)) and cute.max(a, b) == max(a, b)
    unknown = any(isinstance(x, cute.dtypes.Scalar) for x in (a, b))
    assert all(isinstance(x, cute.dtypes.Scalar) is unknown for x in (cute.min(a, b), cute.max(a, b)))
    assert np.isnan(cute.min(float("nan"), 1.0, propagate_nan=True)) and cute.min(1.0, 2.0, propagate_nan=True) == 1


def test_a_participants_handles_have_their_class():
    assert pipeline.PipelineConsumer.ImmutableResourceHandle is pipeline.ConsumerHandle
    assert pipeline.PipelineProducer.ImmutableResourceHandle is pipeline.ProducerHandle
