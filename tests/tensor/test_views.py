# SPDX-License-Identifier: Apache-2.0
"""Identity tensors of any shape, and tensors seen in elements of another width."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError
from numba_cute.tensor.pointer import Pointer


def gmem(dtype=cute.Float32):
    return Pointer(dtype, cute.AddressSpace.gmem, 4096, 0, 16)


@pytest.mark.parametrize("shape", [7, (7,), (7, 5), ((2, 3), 5), (7, (2, 3))], ids=str)
def test_identity_tensors_of_any_shape_are_indexed_divided_and_gone_over(shape):
    t = cute.make_identity_tensor(shape)
    every = [cute.idx2crd(i, shape) for i in range(cute.size(shape))]
    assert list(t) == every and [t[i] for i in range(cute.size(t))] == every and [t[c] for c in every] == every
    assert t.element_type == cute.Int32
    tiler = tuple(2 for _ in range(cute.rank(shape)))
    tiles = cute.zipped_divide(t, tiler)
    seen = [tiles[i] for i in range(cute.size(tiles))]
    assert len(set(seen)) == len(seen) and set(every) <= set(seen)
    ones, twos = (1,) * len(tiler), (2,) * len(tiler)
    assert cute.local_tile(t, tiler, ones)[0] == t[twos]
    part = cute.local_partition(t, cute.make_layout(tiler), cute.crd2idx(ones, tiler))
    assert part[0] == t[ones]
    assert cute.domain_offset(ones, t)[0] == t[ones]


def test_the_identity_of_an_integer_shape_gives_integers():
    t = cute.make_identity_tensor(7)
    assert t[3] == 3 and repr(t) == "Tensor(0, 7:1)"
    assert cute.elem_less(t[3], 7) and not cute.elem_less(cute.local_tile(t, 4, 1)[3], 7)
    assert repr(cute.flat_divide(t, 4)) == "Tensor(0, (4,2):(1,4))"
    with pytest.raises(CuteError, match="the tensor's elements are coordinates and cannot be set"):
        t[3] = 4


@cuda.jit
def ragged(out, n):
    """One dimension: tiles of 32, the last one cut off."""
    tid = cuda.threadIdx.x
    at = cute.local_tile(cute.make_identity_tensor(n), 32, cuda.blockIdx.x)[tid]
    if cute.elem_less(at, n):
        out[at] = at + 1
    mine = cute.local_partition(cute.make_identity_tensor(64), cute.make_layout(32), tid)
    if cuda.blockIdx.x == 0 and tid == 0:
        out[n] = mine[1] + cute.domain_offset(5, mine)[0]


def test_identities_of_an_integer_shape_in_a_kernel(run):
    out = np.zeros(51, np.int32)

    def check():
        np.testing.assert_array_equal(out, [*range(1, 51), 32 + 160])

    run(ragged, 2, 32, [lambda place: from_dlpack(place(out)), 50], outputs=[out], check=check)


def test_memory_is_gone_over_in_kernels_by_its_indices():
    tensor = cute.make_identity_tensor(4)
    with seam.running(object()), pytest.raises(CuteError, match="cannot be iterated over: its elements are"):
        iter(tensor)


@pytest.mark.parametrize(
    ("layout", "dtype", "shape", "stride"),
    [
        (cute.make_layout((8, 4)), cute.Int64, (4, 4), (1, 4)),
        (cute.make_layout((1, 8), stride=(1, 1)), cute.Int8, (1, 32), (0, 1)),
        (cute.make_layout((1, 1)), cute.Int8, (4, 1), (1, 0)),
        (cute.make_layout(1), cute.Int16, 2, 1),
        (cute.make_layout((3, 4), stride=(5, 0)), cute.Float32, (3, 4), (5, 0)),
    ],
    ids=str,
)
def test_recast_tensors_are_all_of_the_same_memory(layout, dtype, shape, stride):
    t = cute.recast_tensor(cute.make_tensor(gmem(), layout), dtype)
    assert (t.shape, t.stride) == (shape, stride)


@pytest.mark.parametrize(
    ("layout", "dtype", "why"),
    [
        (cute.make_layout(4, stride=3), cute.Int64, "a mode of more than one element must have the static stride 1"),
        (cute.make_layout(3), cute.Int64, "a run of 3 of them is not whole"),
        (cute.make_layout((4, 3), stride=(1, 5)), cute.Int64, "its stride 5 is not a multiple of 2"),
        (cute.make_layout(1), cute.Int64, "are not known to lie together"),
        (cute.make_layout(4, stride=0), cute.Int64, "are not known to lie together"),
        (cute.make_layout(4, stride=3), cute.Int8, "are not known to lie together"),
        (cute.make_layout(4, stride=0), cute.Int8, "are not known to lie together"),
        (cute.make_layout(4, stride=-1), cute.Int8, "are not known to lie together"),
    ],
    ids=str,
)
def test_what_would_be_other_memory_is_no_recast_tensor(layout, dtype, why):
    with pytest.raises(CuteError, match=why):
        cute.recast_tensor(cute.make_tensor(gmem(), layout), dtype)


def test_recasts_take_element_types():
    for call in (lambda: cute.recast_tensor(cute.make_tensor(gmem(), 8), 5), lambda: cute.recast_ptr(gmem(), dtype=5)):
        with pytest.raises(CuteError, match="dtype 5 is not an element type"):
            call()
    with pytest.raises(CuteError, match="is not a tensor in memory"):
        cute.recast_tensor(cute.make_identity_tensor(4), cute.Int8)


@cuda.jit
def pairs(src, out):
    wide = cute.recast_tensor(src, cute.Int64)
    i = cuda.threadIdx.x
    out[i] = wide[i]


def test_recast_tensors_read_the_elements_of_the_narrow_one(run):
    a, out = np.arange(1, 9, dtype=np.int32), np.zeros(4, np.int64)

    def check():
        np.testing.assert_array_equal(out, a.view(np.int64))

    run(pairs, 1, 4, [lambda place, x=x: from_dlpack(place(x)) for x in (a, out)], outputs=[out], check=check)


@cuda.jit
def registers_in_other_widths(x, y):
    words = cute.make_rmem_tensor((4, 2), cute.Float32)
    halves = cute.make_tensor(cute.recast_ptr(words.iterator, dtype=cute.Float16), cute.make_layout((8, 2)))
    for i in range(16):
        halves[i] = cute.Float16(i)
    x[0] = halves[0].to(cute.Float32) + halves[7].to(cute.Float32)
    bits = cute.recast_tensor(words, cute.Uint32)
    bits[1] = bits[1] + cute.Uint32(1)
    x[1] = halves[2].to(cute.Float32)
    cute.recast_tensor(words, cute.Float64)[3] = 1.5
    x[2] = words[7]
    second = cute.make_tensor(cute.recast_ptr(words.iterator + 4, dtype=cute.Float16), cute.make_layout(8))
    second.store(halves[None, 0].load())
    x[3] = halves[9].to(cute.Float32)
    wide = cute.make_rmem_tensor(2, cute.Uint64)
    octets = cute.recast_tensor(wide, cute.Uint8)
    for i in range(16):
        octets[i] = cute.Uint8(i)
    y[0], y[1] = bits[0], cute.recast_tensor(wide, cute.Uint32)[1]


def test_registers_are_seen_as_elements_of_other_widths():
    x, y = np.zeros(4, np.float32), np.zeros(2, np.uint32)
    cute.simulate(registers_in_other_widths)[1, 1](x, y)
    assert x.tolist() == [7.0, 2.001953125, 1.9375, 1.0] and y.tolist() == [0x3C000000, 0x07060504]
    cute.compile(registers_in_other_widths, x, y, arch="sm_90a")


@cuda.jit
def half_of_a_word_is_written(x):
    words = cute.make_rmem_tensor(2, cute.Float32)
    halves = cute.recast_tensor(words, cute.Float16)
    halves[0] = cute.Float16(1)
    halves[2] = cute.Float16(1)
    halves[3] = cute.Float16(1)
    x[0] = words[1]
    x[1] = words[0]


def test_half_of_a_register_that_is_written_is_not_all_of_it():
    with pytest.raises(cute.sim.UninitializedReadError, match="x\\[1\\] = words\\[0\\]"):
        cute.simulate(half_of_a_word_is_written)[1, 1](np.zeros(2, np.float32))


@pytest.mark.parametrize(
    "view, says",
    [
        (lambda r: cute.recast_tensor(r, cute.Int4), "registers of Float16 cannot be viewed as Int4"),
        (lambda r: cute.recast_ptr(r.iterator + 1, dtype=cute.Float32), "may point inside of a Float32"),
    ],
)
def test_registers_in_which_no_element_starts_are_refused(view, says):
    @cuda.jit
    def kernel():
        view(cute.make_rmem_tensor(8, cute.Float16))

    with pytest.raises(CuteError, match=says):
        cute.simulate(kernel)[1, 1]()
