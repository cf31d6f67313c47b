# SPDX-License-Identifier: Apache-2.0
"""`cute.struct` as storage: what C would lay out, in kernels on the host, in the simulator, in PTX and on the GPU."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import warpgroup
from numba_cute.seam import traced

STAGES, ROWS, COLUMNS = 3, 64, 64
ATOM = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
TILE = cute.tile_to_shape(ATOM, (ROWS, COLUMNS), (0, 1))


@cute.struct
class Pair:
    x: cute.Float32
    y: cute.Int16


@cute.struct
class Shared:
    """What a kernel keeps in shared memory."""

    bars: cute.struct.MemRange[cute.Int64, 2 * STAGES]
    flag: cute.Int16
    pair: Pair
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, ROWS * COLUMNS], 1024]
    counts: cute.struct.Align[cute.Int32, 16]
    none: cute.struct.MemRange[cute.Float32, 0]


@cute.struct
class Outer:
    first: cute.Int8
    inner: cute.struct.Align[Shared, 128]


class CPair(ctypes.Structure):
    _fields_ = (("x", ctypes.c_float), ("y", ctypes.c_int16))


def test_storage_is_laid_out_as_c_does():
    assert Pair.size_in_bytes() == ctypes.sizeof(CPair)
    assert (Shared.size_in_bytes(), Shared.alignment()) == (10240, 1024)
    offsets = {"bars": 0, "flag": 48, "pair": 52, "tile": 1024, "counts": 9216, "none": 9220}
    assert Shared.__cute_offsets__ == offsets
    assert (Outer.size_in_bytes(), Outer.alignment(), Outer.__cute_offsets__["inner"]) == (11264, 1024, 1024)


def test_the_annotations_tell_storage_from_run_time_structs():
    @cute.struct
    class State:
        count: cute.Int32
        params: tuple

        def advance(self):
            self.count += 1

    state = State(3, (1, 2))
    state.advance()
    assert state.count == 4, "a class without MemRange, Align or storage holds values"
    assert not hasattr(State, "size_in_bytes"), "and has no size in memory unless all its fields are element types"
    pair = Pair(1.0, 2)
    assert pair.x == 1.0


@cute.struct
class Counted:
    values: cute.struct.MemRange[cute.Int32, 32]
    total: cute.Int32

    def tensor(self):
        return self.values.get_tensor(cute.make_layout((8, 4)))


@cuda.jit
def counted(out):
    t, _, _ = arch.thread_idx()
    storage = utils.SmemAllocator().allocate(Counted)
    tensor = storage.tensor()
    tensor[t % 8, t // 8] = t
    if t == 0:
        storage.total = 0
    arch.sync_threads()
    cuda.atomic.add(out, 0, storage.values[31 - t] + storage.total.load())


def test_a_storage_class_may_have_methods(run):
    sums = np.zeros(1, np.int32)

    def check():
        np.testing.assert_array_equal(sums, 496)

    run(counted, 1, 32, (sums,), inouts=(sums,), check=check)


def test_storage_is_not_inherited():
    with pytest.raises(cute.CuteError, match="cannot be inherited; make Counted a member"):

        @cute.struct
        class Wider(Counted):
            more: cute.struct.MemRange[cute.Int8, 1]


def test_annotations_may_use_local_names():
    size = 5

    @cute.struct
    class Local:
        data: cute.struct.MemRange[cute.Float32, size]

    assert Local.size_in_bytes() == 20


@cuda.jit
def members(out):
    t, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    smem.allocate(12)
    outer = smem.allocate(Outer)
    shared = outer.inner
    pair = smem.allocate(Pair)
    tile = shared.tile.get_tensor(TILE.outer, swizzle=TILE.inner)
    if t == 0:
        outer.first = 5
        shared.flag = 7
        shared.pair.x = 1.5
        shared.pair.y = 20
        pair.x = 100.25
        shared.counts = 1000
        shared.bars[1] = 4096
        arch.mbarrier_init(shared.bars.data_ptr() + 2, 1)
    for i in range(t, ROWS * COLUMNS, 32):
        tile[i % ROWS, i // ROWS] = cute.Float16(i % 512)
    arch.sync_threads()
    total = shared.pair.x.load() + pair.x.load() + cute.Float32(shared.counts.load() + shared.pair.y.load())
    total += cute.Float32(outer.first.load()) + cute.Float32(shared.flag.ptr.load()) + cute.Float32(shared.bars[1])
    out[t] = total + cute.Float32(tile[t, 3])
    if t == 0:
        out[32] = Outer.size_in_bytes()


def test_members_are_set_and_read_in_a_kernel(run):
    out = np.zeros(33, np.float32)

    def check():
        want = 1.5 + 100.25 + 1000 + 20 + 5 + 7 + 4096 + (np.arange(32) + 3 * ROWS) % 512
        np.testing.assert_array_equal(out, np.append(want, 11264).astype(np.float32))

    run(members, 1, 32, (out,), outputs=(out,), check=check)


ELEMENTS = cute.tile_to_shape(
    cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 32), stride=(32, 1))),
    (16, 32),
    (0, 1),
)


@cute.struct
class Little:
    before: cute.Float32
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, cute.cosize(ELEMENTS)], 16]


@cuda.jit
def swizzled_by_its_layout(out, whole):
    """A swizzle of elements; its memory need not be aligned to more than the bytes that it mixes (64 here)."""
    t, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    a = smem.allocate_tensor(cute.Float16, ELEMENTS, 1024)
    bytes_ = smem.allocate(Little.size_in_bytes() + 48, byte_alignment=64)
    b = Little(bytes_ + 48).tile.get_tensor(ELEMENTS)
    for i in range(t, 512, 32):
        a[i % 16, i // 16] = cute.Float16(i)
        b[i % 16, i // 16] = cute.Float16(i + 512)
    arch.sync_threads()
    raw = cute.make_tensor(cute.recast_ptr(a.iterator, cute.make_swizzle(0, 4, 3)), cute.make_layout(512))
    for i in range(t, 512, 32):
        out[i] = cute.Float32(raw[i])
        whole[i] = cute.Float32(b[i % 16, i // 16])


def test_a_swizzled_layout_moves_its_elements(run):
    out, whole = np.empty(512, np.float32), np.empty(512, np.float32)

    def check():
        want = np.empty(512)
        for i in range(512):
            want[ELEMENTS((i % 16, i // 16))] = i
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(whole, np.arange(512, 1024))

    run(swizzled_by_its_layout, 1, 32, (out, whole), outputs=(out, whole), check=check)


def test_the_launch_is_given_what_storage_takes():
    compiled = cute.compile(members, (np.zeros(33, np.float32),))
    assert compiled.resources.dynamic_shared == 1024 + 11264 + 8  # 12 bytes, rounded up to the alignment of Outer
    assert utils.get_kernel_smem_size(compiled) == compiled.resources.dynamic_shared


@cuda.jit
def unwritten(out):
    shared = utils.SmemAllocator().allocate(Shared)
    arch.sync_threads()
    out[0] = shared.pair.x.load()


@cuda.jit
def outside(out):
    shared = utils.SmemAllocator().allocate(Shared)
    out[0] = cute.Float32(shared.bars[6])


@cuda.jit
def too_large(out):
    shared = utils.SmemAllocator().allocate(Shared)
    t = shared.bars.get_tensor(cute.make_layout(7))
    out[0] = cute.Float32(t[0])


@cute.struct
class Unaligned:
    flag: cute.Int64
    tile: cute.struct.MemRange[cute.Float16, ROWS * COLUMNS]


@cuda.jit
def swizzled_unaligned(out):
    shared = utils.SmemAllocator().allocate(Unaligned)
    t = shared.tile.get_tensor(TILE.outer, swizzle=TILE.inner)
    out[0] = cute.Float32(t[0])


@cuda.jit
def swizzled_twice(out):
    shared = utils.SmemAllocator().allocate(Shared)
    out[0] = cute.Float32(shared.tile.get_tensor(TILE, swizzle=TILE.inner)[0])


@cuda.jit
def assigned(out):
    shared = utils.SmemAllocator().allocate(Shared)
    shared.tile = 3
    out[0] = 0


@cuda.jit
def layout_assigned(out):
    lay = cute.make_layout(4)
    lay.shape = 3
    out[0] = 0


@traced
def not_memory():
    utils.SmemAllocator().allocate(dict)


@cuda.jit
def no_storage(out):
    not_memory()
    out[0] = 0


WRONG = {
    outside: "index 6 is outside the 6 elements",
    too_large: "takes 56 bytes, but the MemRange has 48",
    swizzled_unaligned: r"its period is 1024 bytes, .*Align\[MemRange",
    swizzled_twice: "swizzles its elements, and swizzle=S<3,4,3> the bytes of its addresses: give layout.outer",
    assigned: "Shared.tile cannot be assigned.*element type are: flag, counts",
    no_storage: "dict does not describe memory",
}


@pytest.mark.parametrize("kernel", WRONG, ids=lambda k: k.py_func.__name__)
def test_what_storage_cannot_do_is_explained_alike_everywhere(kernel):
    out = np.zeros(1, np.float32)
    with pytest.raises(cute.CuteError, match=WRONG[kernel]):
        cute.simulate(kernel)[1, 1](out)
    with pytest.raises(cute.CuteError, match=WRONG[kernel]):
        cute.compile(kernel, (out,))


def test_assigning_to_what_is_immutable_is_refused_when_compiling():
    with pytest.raises(cute.CuteError, match=r"Layout.shape cannot be assigned"):
        cute.compile(layout_assigned, (np.zeros(1, np.float32),))


def test_the_simulator_calls_members_by_their_names():
    with pytest.raises(cute.CuteError, match=r"uninitialised: shared memory pair\.x \("):
        cute.simulate(unwritten)[1, 1](np.zeros(1, np.float32))


BAD = {
    "MemRange.*element type and how many": lambda: cute.struct.MemRange[3],
    "static int >= 0": lambda: cute.struct.MemRange[cute.Int8, -1],
    "power of two, at most 1024": lambda: cute.struct.Align[cute.Int8, 3],
    "a member and its alignment": lambda: cute.struct.Align[cute.Int8],
    "a member of storage is": lambda: cute.struct.Align[int, 8],
}


@pytest.mark.parametrize("message", BAD)
def test_a_wrong_member_says_what_it_may_be(message):
    with pytest.raises(cute.CuteError, match=message):
        BAD[message]()


def test_storage_has_no_initial_values_and_no_foreign_members():
    with pytest.raises(cute.CuteError, match="no initial values"):

        @cute.struct
        class WithDefault:
            data: cute.struct.MemRange[cute.Int8, 4] = 3

    with pytest.raises(cute.CuteError, match="a member of storage is"):

        @cute.struct
        class Foreign:
            data: cute.struct.MemRange[cute.Int8, 4]
            name: str


@cuda.jit
def own_allocators(x):
    """Threads that part make one each, and ask for the same memory."""
    thread = arch.thread_idx()[0]
    if thread == 0:
        smem = utils.SmemAllocator()
        own = smem.allocate_array(cute.Int32, 4)
        own.store(7)
        x[0] = own.load()
    else:
        smem = utils.SmemAllocator()
        aside = smem.allocate_array(cute.Int32, 4)
        other = smem.allocate_array(cute.Int32, 4)
        x[1] = other.toint() - aside.toint()


def test_threads_that_part_may_make_an_allocator_each():
    x = np.zeros(2, np.int32)
    cute.simulate(own_allocators)[1, 2](x)
    assert x.tolist() == [7, 16]
    assert "own_allocators" in cute.compile(own_allocators, (x,), arch="sm_90a").ptx
