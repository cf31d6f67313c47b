# SPDX-License-Identifier: Apache-2.0
"""What a swizzle means in each function that takes one: of a layout it is of elements, counted from the pointer; of a
pointer, of the bytes of addresses. NumPy says where each element lies."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from numba import cuda, types

import numba_cute as cute
from numba_cute import experimental, utils
from numba_cute.nvgpu import cpasync, tcgen05, warp, warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced

from ..engines import SIMULATOR_AND_GPU, on
from ..native import Native

OF_ELEMENTS, OF_BYTES = cute.make_swizzle(2, 3, 3), cute.make_swizzle(2, 4, 3)
COMPOSED = cute.tile_to_shape(
    cute.make_composed_layout(OF_ELEMENTS, 0, cute.make_layout((8, 32), stride=(32, 1))), (8, 32), (0, 1)
)
PLAIN = COMPOSED.outer
MOVED = cute.make_composed_layout(OF_ELEMENTS, 64, PLAIN)
FOR_TMA = cute.make_composed_layout(OF_BYTES, 0, PLAIN)
COUNT = 256
DTYPES = {
    cute.Float8E4M3FN: ml_dtypes.float8_e4m3fn, cute.Float16: np.float16, cute.Float32: np.float32,
    cute.Float64: np.float64,
}  # fmt: skip
VALUES = np.array([(37 * i >> 3) % 16 for i in range(COUNT)], np.float32)
"""Whole numbers that every type holds."""


def elements(lay, size):
    """The byte of each element where a layout's swizzle is of elements."""
    return [size * lay(i) for i in range(COUNT)]


def addresses(lay, size):
    """The byte of each element where a pointer's swizzle is of bytes."""
    return [OF_BYTES(size * lay(i)) for i in range(COUNT)]


def holding(dtype):
    @cute.struct
    class Storage:
        before: cute.Float64
        a: cute.struct.Align[cute.struct.MemRange[dtype, COUNT], 1024]
        b: cute.struct.Align[cute.struct.MemRange[dtype, COUNT], 16]

    return Storage


STORAGE = {dtype: holding(dtype) for dtype in DTYPES}


@traced
def allocated(dtype, storage):
    smem = utils.SmemAllocator()
    held = smem.allocate(storage)
    p, q = (cute.arch.alloc_smem(dtype, COUNT, align) for align in (1024, 16))
    return (
        smem.allocate_tensor(dtype, PLAIN, 1024, OF_BYTES),
        smem.allocate_tensor(dtype, COMPOSED, 16),
        smem.allocate_tensor(dtype, COMPOSED, 1024),
        smem.allocate_tensor(dtype, MOVED, 16),
        held.a.get_tensor(PLAIN, swizzle=OF_BYTES),
        held.b.get_tensor(COMPOSED),
        cute.make_tensor(cute.recast_ptr(p, OF_BYTES), PLAIN),
        cute.make_tensor(q, COMPOSED),
    )


MODELS = (
    (addresses, PLAIN), (elements, COMPOSED), (elements, COMPOSED), (elements, MOVED), (addresses, PLAIN),
    (elements, COMPOSED), (addresses, PLAIN), (elements, COMPOSED),
)  # fmt: skip
"""Of what `allocated` gives, in its order."""


@cuda.jit
def written(dtype, storage, word, values, memory):
    t, _, _ = cute.arch.thread_idx()
    tensors = allocated(dtype, storage)
    for k in cute.range_constexpr(len(tensors)):
        s = tensors[k]
        for i in range(t, COUNT, 32):
            s[i] = dtype(values[i])
    cute.arch.sync_threads()
    for k in cute.range_constexpr(len(tensors)):
        raw = cute.recast_ptr(tensors[k].iterator, dtype=word, reinterpret=True)
        for i in range(t, COUNT, 32):
            memory[k, i] = (raw + i).load()


def modelled(positions, kind):
    """The memory that elements at these bytes make; what is none of theirs is 0."""
    size = np.dtype(kind).itemsize
    out = np.zeros(COUNT * size, np.uint8)
    held = VALUES.astype(kind).view(np.uint8).reshape(COUNT, size)
    for i, at in enumerate(positions):
        if at < COUNT * size:
            out[at : at + size] = held[i]
    return out.view(f"uint{8 * size}")


@pytest.mark.parametrize("engine", SIMULATOR_AND_GPU)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_lie_where_the_swizzle_says(dtype, engine):
    kind = DTYPES[dtype]
    size = np.dtype(kind).itemsize
    memory = np.zeros((len(MODELS), COUNT), f"uint{8 * size}")
    word = {1: cute.Uint8, 2: cute.Uint16, 4: cute.Uint32, 8: cute.Uint64}[size]
    on(engine, written, checks="races")[1, 32](dtype, STORAGE[dtype], word, VALUES, memory)
    for k, (model, lay) in enumerate(MODELS):
        want = modelled(model(lay, size), kind)
        where = [x < COUNT * size for x in model(lay, size)]
        if all(where):
            np.testing.assert_array_equal(memory[k], want, err_msg=f"tensor {k}")
        else:  # an offset moves the last elements beyond what is read; the first ones are not written
            np.testing.assert_array_equal(memory[k, 64:], want[64:], err_msg=f"tensor {k}")


@cuda.jit
def in_arrays(values, halves, doubles):
    t = cuda.threadIdx.x
    f16 = cuda.shared.array(COUNT, types.float16)
    f64 = cuda.shared.array(COUNT, types.float64)
    s, d = cute.make_tensor(f16, COMPOSED), cute.make_tensor(f64, COMPOSED)
    for i in range(t, COUNT, 32):
        s[i] = cute.Float16(values[i])
        d[i] = values[i]
    cuda.syncthreads()
    for i in range(t, COUNT, 32):
        halves[i] = f16[i]
        doubles[i] = f64[i]


def test_arrays_of_numba_are_swizzled_by_elements():
    halves, doubles = np.zeros(COUNT, np.float16), np.zeros(COUNT, np.float64)
    cute.simulate(in_arrays)[1, 32](VALUES, halves, doubles)
    for array in (halves, doubles):
        np.testing.assert_array_equal(array[elements(COMPOSED, 1)], VALUES)


@cuda.jit
def for_tma(dtype, values, memory):
    t = cuda.threadIdx.x
    s = experimental.allocate(dtype, cute.AddressSpace.smem, FOR_TMA, alignment=1024)
    for i in range(t, COUNT, 32):
        s[i] = dtype(values[i])
    cuda.syncthreads()
    raw = cute.recast_ptr(s.iterator, reinterpret=True)
    for i in range(t, COUNT, 32):
        memory[i] = cute.Float32((raw + i).load())


@pytest.mark.parametrize("dtype", [cute.Float8E4M3FN, cute.Float32], ids=str)
def test_experimental_memory_is_swizzled_by_bytes(dtype):
    memory = np.zeros(COUNT, np.float32)
    cute.simulate(for_tma)[1, 32](dtype, VALUES, memory)
    size = dtype.width // 8
    np.testing.assert_array_equal(memory[np.array(addresses(PLAIN, size)) // size], VALUES)


def test_both_engines_know_the_same_tensors():
    """What the compiler knows of each tensor is what the simulator makes."""

    storage = STORAGE[cute.Float16]

    @cuda.jit
    def kernel(out):
        a, b, c, d, e, f, g, h = allocated(cute.Float16, storage)
        out[0] = cute.Float32(a[0] + b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0])

    text = str(cute.inspect_layouts(kernel, (np.zeros(1, np.float32),)))
    for name, (model, _), k in zip("abcdefgh", MODELS, range(8)):
        (line,) = (x.replace('"', "") for x in text.splitlines() if f" {name}: !" in x)
        lay = (PLAIN, COMPOSED, COMPOSED, MOVED, PLAIN, COMPOSED, PLAIN, COMPOSED)[k]
        want = f"S<2,4,3>, {lay}" if model is addresses else f", {lay}"
        assert want in line and line.count("S<") == 1


# ------------------------------------------------------------------ compiled code, run on this machine's processor


@cuda.jit
def compiled_views(x, y):
    t = cuda.threadIdx.x
    for tensor in cute.range_constexpr(2):
        p = cute.make_tensor(x if tensor == 0 else y).iterator
        if cute.const_expr(tensor == 0):
            s = cute.make_tensor(p, MOVED)
        else:
            s = cute.make_tensor(cute.recast_ptr(p, OF_BYTES), PLAIN)
        s[t] = s[t] + t


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=lambda k: k.__name__)
def test_compiled_code_finds_elements_where_numpy_does(kind):
    size = np.dtype(kind).itemsize
    room = np.zeros(2 * (COUNT + 1024), kind)
    start = -room.ctypes.data % 1024 // size
    x, y = room[start : start + 1024], room[start + 1024 : start + 1024 + COUNT]
    Native(compiled_views, (x, y)).run(COUNT, x, y)
    for array, positions in ((x, elements(MOVED, size)), (y, addresses(PLAIN, size))):
        np.testing.assert_array_equal(array[np.array(positions) // size], np.arange(COUNT))


# ------------------------------------------------------------------ one view writes, another reads


@cuda.jit
def seen_by_others(dtype, values, out):
    """Row k of `out` is what the k-th pair of views gives."""
    t, _, _ = cute.arch.thread_idx()
    smem = utils.SmemAllocator()
    a = smem.allocate_tensor(dtype, COMPOSED, 1024)
    b = smem.allocate_tensor(dtype, PLAIN, 1024, OF_BYTES)
    for i in range(t, COUNT, 32):
        a[i] = dtype(values[i])
        b[i] = dtype(values[i])
    cute.arch.sync_threads()
    again = cute.make_tensor(a.iterator, COMPOSED)
    other = cute.make_tensor(b.iterator, PLAIN)
    turned = cute.composition(a, cute.make_layout((32, 8), stride=(8, 1)))
    row = cute.make_rmem_tensor((32,), dtype)
    for i in range(t, COUNT, 32):
        out[0, i] = cute.Float32(again[i])
        out[1, i] = cute.Float32(other[i])
        out[2, i] = cute.Float32(turned[i // 8, i % 8])
    if t < 8:
        cute.autovec_copy(a[t, None], row)
        for i in cute.range_constexpr(32):
            out[3, t + 8 * i] = cute.Float32(row[i])
        cute.autovec_copy(b[t, None], row)
        for i in cute.range_constexpr(32):
            out[4, t + 8 * i] = cute.Float32(row[i])


@pytest.mark.parametrize("dtype", [cute.Float8E4M3FN, cute.Float32], ids=str)
def test_what_one_view_writes_another_reads(dtype):
    out = np.zeros((5, COUNT), np.float32)
    cute.simulate(seen_by_others)[1, 32](dtype, VALUES, out)
    np.testing.assert_array_equal(out, np.tile(VALUES, (5, 1)))


# ------------------------------------------------------------------ as NVIDIA's examples for Ampere have it

ATOM = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
TILE = cute.tile_to_shape(ATOM, (16, 64), (0, 1))
FAR = cute.make_composed_layout(cute.make_swizzle(3, 3, 4), 0, cute.make_layout((16, 64), stride=(64, 1)))
"""Its period, 2,048 bytes of f16, is more than any alignment that an allocation may ask for."""


def ampere(lay, align):
    @cute.struct
    class Storage:
        flag: cute.Int32
        q: cute.struct.Align[cute.struct.MemRange[cute.Float16, cute.cosize(lay)], align]

    @cuda.jit
    def kernel(x, y, z):
        """cp.async in, ldmatrix to registers, out again through a second view of the same pointer."""
        t, _, _ = cute.arch.thread_idx()
        q = utils.SmemAllocator().allocate(Storage).q.get_tensor(lay)
        g2s = cute.make_tiled_copy_tv(
            cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float16, num_bits_per_copy=128),
            cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 8)),
        )  # fmt: skip
        mine = g2s.get_slice(t)
        cute.copy(g2s, mine.partition_S(x), mine.partition_D(q))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (1, 1, 1))
        part = mma.get_slice(t)
        fragment = mma.make_fragment_A(part.partition_A(q))
        s2r = cute.make_tiled_copy_A(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16), mma)
        thread = s2r.get_slice(t)
        cute.copy(s2r, thread.partition_S(q), thread.retile(fragment))
        cute.autovec_copy(fragment, part.partition_A(y))
        cute.arch.sync_threads()
        twice = cute.make_rmem_tensor_like(fragment)
        twice.store((fragment.load() * 2.0).to(cute.Float16))
        o = cute.make_tensor(q.iterator, lay)
        cute.autovec_copy(twice, part.partition_A(o))
        cute.arch.sync_threads()
        wide = cute.make_rmem_tensor((32,), cute.Float16)
        cute.autovec_copy(cute.local_tile(o, (1, 32), (t // 2, t % 2)), wide)
        cute.autovec_copy(wide, cute.local_tile(z, (1, 32), (t // 2, t % 2)))

    return kernel


@pytest.mark.parametrize("lay, align", [(TILE, 1024), (TILE, 16), (FAR, 16)], ids=["period", "16", "far"])
def test_copies_of_16_bytes_and_ldmatrix_follow_a_swizzled_layout(lay, align):
    x = np.arange(1024, dtype=np.float16).reshape(16, 64)
    y, z = np.zeros_like(x), np.zeros_like(x)
    given = [from_dlpack(array, assumed_align=16) for array in (x, y, z)]
    cute.simulate(ampere(lay, align))[1, 32](*given)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, 2 * x)
    ptx = cute.compile(ampere(lay, align), tuple(given), arch="sm_80").ptx
    assert ptx.count("cp.async.ca.shared::cta.global") == 4 and ptx.count("ldmatrix") == 4
    addresses = {line[line.rindex("[") :] for line in ptx.splitlines() if "ldmatrix" in line}
    assert len(addresses) == 4 and "ld.shared.v4" in ptx


# ------------------------------------------------------------------ elements on one side, bytes on the other

IN_ROWS = cute.make_layout((64, 32), stride=(32, 1))
BY_ELEMENTS = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, IN_ROWS)


@cute.struct
class Tile:
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 2048], 1024]


@cuda.jit
def stored(atom, coords):
    """Written by elements, one by one and in vectors, and taken by TMA by bytes."""
    t = cuda.threadIdx.x
    storage = utils.SmemAllocator().allocate(Tile)
    s = storage.tile.get_tensor(BY_ELEMENTS)
    row = cute.make_rmem_tensor((32,), cute.Float16)
    for i in cute.range_constexpr(32):
        s[t, i] = 32 * t + i
        row[i] = 1024 + 32 * t + i
    cute.autovec_copy(row, s[t + 32, None])
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    taken = storage.tile.get_tensor(IN_ROWS, swizzle=OF_BYTES)
    utils.block_copy(atom, taken, cute.local_tile(coords, (64, 32), (0, 0)))
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0)


def test_elements_of_aligned_memory_are_the_bytes_that_tma_takes():
    room = np.zeros(2048 + 64, np.float16)
    out = room[-room.ctypes.data % 128 // 2 :][:2048].reshape(64, 32)
    held = cute.make_composed_layout(OF_BYTES, 0, IN_ROWS)
    op = cpasync.CopyBulkTensorTileS2GOp()
    cute.simulate(stored)[1, 32](*cpasync.make_tiled_tma_atom(op, from_dlpack(out, assumed_align=16), held, (64, 32)))
    np.testing.assert_array_equal(out.ravel(), np.arange(2048, dtype=np.float16))


# ------------------------------------------------------------------ what cannot be meant

HALF = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
ON = cute.make_swizzle(3, 4, 3)
OUT = np.zeros(1, np.float32)


def alike(kernel, *given):
    """What both engines say of a kernel that they refuse."""
    said = []
    for engine in (lambda: cute.compile(kernel, given, arch="sm_90a"), lambda: cute.simulate(kernel)[1, 128](*given)):
        with pytest.raises(cute.CuteError) as error:
            engine()
        said.append(str(error.value))
    assert said[0] == said[1]
    return said[0]


@cuda.jit
def twice_at_once(out):
    s = utils.SmemAllocator().allocate_tensor(cute.Float16, HALF.outer, 1024, ON)
    out[0] = cute.Float32(cute.make_tensor(s.iterator, HALF)[0])


@cuda.jit
def twice_by_recast(out):
    s = utils.SmemAllocator().allocate_tensor(cute.Float16, HALF, 1024)
    out[0] = cute.Float32(cute.recast_tensor(s, cute.Float16, ON)[0])


@cuda.jit
def twice_allocated(out):
    out[0] = cute.Float32(utils.SmemAllocator().allocate_tensor(cute.Float16, HALF, 1024, ON)[0])


@cuda.jit
def elements_where_bytes_are_meant(out):
    s = experimental.allocate(cute.Float16, cute.AddressSpace.smem, HALF, alignment=1024)
    out[0] = cute.Float32(s[0])


WGMMA = cute.make_mma_atom(
    warpgroup.MmaF16BF16Op(
        cute.Float16, cute.Float32, (64, 64, 16), warpgroup.OperandSource.SMEM, warpgroup.OperandMajorMode.K,
        warpgroup.OperandMajorMode.K,
    )
)  # fmt: skip
K_SW128 = cute.tile_to_shape(
    warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16), (64, 64), (0, 1)
)


def operand(lay, align=1024):
    @cuda.jit
    def kernel(out):
        s = utils.SmemAllocator().allocate_tensor(cute.Float16, lay, align)
        mma = cute.make_tiled_mma(WGMMA)
        out[0] = cute.size(mma.make_fragment_A(mma.get_slice(0).partition_A(s)))

    return kernel


@cuda.jit
def taken_in_parts(lay):
    """ldmatrix of 16 bytes, of which the swizzle moves halves."""
    s = utils.SmemAllocator().allocate_tensor(cute.Float16, lay, 1024)
    row = cute.make_rmem_tensor((2,), cute.Float16)
    cute.copy(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 1), cute.Float16), s[0, (None, 4)], row)


def test_two_swizzles_of_one_tensor_are_refused():
    for kernel, says in (
        (twice_at_once, "swizzles the bytes of its addresses, and layout S<3,3,3> o 0 o"),
        (twice_by_recast, "swizzles the bytes of its addresses, and layout S<3,3,3> o 0 o"),
        (twice_allocated, "swizzles its elements, and swizzle=S<3,4,3> the bytes of its addresses: give layout.outer"),
        (elements_where_bytes_are_meant, "its swizzle is of the bytes of addresses, and keeps 16 of them together"),
    ):
        assert says in alike(kernel, OUT)


def test_an_instruction_that_takes_memory_as_it_lies_refuses_a_swizzle_of_elements():
    said = alike(operand(K_SW128), OUT)
    assert "as S<3,5,3> does bytes" in said and "allocate with layout.outer and swizzle=layout.inner" in said
    small = cute.make_composed_layout(cute.make_swizzle(1, 2, 3), 0, cute.make_layout((8, (8, 8)), stride=(64, (1, 8))))
    assert "16 bytes" in alike(taken_in_parts, small)


def test_a_swizzle_of_elements_that_is_the_one_of_bytes_is_taken():
    """Aligned to its period, S<3,3,3> of f16 is S<3,4,3> of bytes, which wgmma reads."""
    lay = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, K_SW128.outer)
    cute.compile(operand(lay), (OUT,), arch="sm_90a")
    assert "period, 1024 bytes" in alike(operand(lay, 256), OUT)


def test_room_is_made_for_what_a_swizzle_moves():
    """Of 9 elements S<1,0,3> puts one at 9."""
    lay = cute.make_composed_layout(cute.make_swizzle(1, 0, 3), 0, cute.make_layout(9))

    @cuda.jit
    def kernel(out):
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(cute.Float32, lay, 16)
        r = cute.make_rmem_tensor(lay, cute.Float32)
        for i in cute.range_constexpr(9):
            s[i] = i
            r[i] = 10 * i
        for i in cute.range_constexpr(9):
            out[i] = s[i] + r[i]

    out = np.zeros(9, np.float32)
    cute.simulate(kernel)[1, 1](out)
    np.testing.assert_array_equal(out, 11 * np.arange(9))
    assert cute.compile(kernel, (out,)).resources.dynamic_shared == 40


KINDS = [(kind, dtype) for kind, dtype in itertools.product(tcgen05.SmemLayoutAtomKind, (cute.Float16, cute.Float32))]


def test_layouts_for_tma_and_matrix_instructions_swizzle_bytes():
    """What makes them gives a swizzle of 16 bytes and more, whatever the elements: for `outer` and `swizzle=`."""
    for kind, dtype in KINDS:
        try:
            lay = tcgen05.make_smem_layout_atom(kind, dtype)
        except cute.CuteError:
            continue  # kinds of 32-bit elements alone
        assert not lay.inner.bits or lay.inner.base >= 4
        tiled = cute.tile_to_shape(lay, tuple(2 * n for n in lay.shape), (0, 1))
        assert tiled.inner == lay.inner and tiled.offset == lay.offset
