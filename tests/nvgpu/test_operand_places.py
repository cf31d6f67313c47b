# SPDX-License-Identifier: Apache-2.0
"""Where the descriptors of swizzled operands say that elements lie, and where pointers and TMA put them: wherever in
shared memory a tile begins that is aligned to 128 bytes."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.isa.facts import tensor_operands
from numba_cute.isa.facts.bits import WgmmaDescriptor
from numba_cute.isa.facts.canonical import CHUNK, K_MAJOR, MN_MAJOR, chunk_offsets, need_canonical, swizzle_addresses
from numba_cute.isa.facts.tensor_descriptors import ABSOLUTE, Tcgen05Descriptor
from numba_cute.nvgpu import tcgen05, warpgroup
from numba_cute.tensor.pointer import AddressSpace, Pointer, physical
from numba_cute.tensor.tensor import Tensor

F16, F32, TF32, U8 = cute.Float16, cute.Float32, cute.TFloat32, cute.Uint8
STARTS = (0, 128, 384, 896, 1920)
SMEM = tcgen05.OperandSource.SMEM


def majors(kind):
    major = tcgen05.OperandMajorMode.K if kind.name.startswith("K") else tcgen05.OperandMajorMode.MN
    return major, K_MAJOR if kind.name.startswith("K") else MN_MAJOR


def at(start, dtype, swizzle, alignment=128):
    return Pointer(dtype, AddressSpace.smem, start, 0, alignment, swizzle)


def chunks_of(tensor, major, mn, k):
    """The addresses that accesses through a tensor (mn, k) touch, of the first element of each 16 bytes."""
    per = CHUNK * 8 // tensor.element_type.width
    rows, columns = (range(mn), range(0, k, per)) if major == K_MAJOR else (range(k), range(0, mn, per))
    found = [[(i, j) if major == K_MAJOR else (j, i) for j in columns] for i in rows]
    return np.array([[physical(tensor.iterator + cute.crd2idx(c, tensor.layout)) for c in row] for row in found])


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("kind", list(warpgroup.SmemLayoutAtomKind), ids=lambda k: k.name)
def test_wgmma_reads_what_pointers_wrote(kind, start):
    major, code = majors(kind)
    order = (0, 1) if code == K_MAJOR else (1, 0)
    lay = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, F16), (64, 64), order)
    mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(F16, F32, (64, 64, 16), SMEM, major, major))
    whole = Tensor(at(start, F16, lay.inner), lay.outer)
    words = mma.make_fragment_A(mma.get_slice(0).partition_A(whole))
    for k in range(4):
        d = WgmmaDescriptor.decode(int(words[None, 0, k].iterator.word()))
        need_canonical("A", d.start, d.swizzle, 32 if code == K_MAJOR else 128, d.base_offset)
        offsets = chunk_offsets(code, d.swizzle, d.leading, d.stride, 64, 16, 2)
        got = swizzle_addresses(d.start + offsets.ravel(), d.swizzle).reshape(offsets.shape)
        part = Tensor(whole.iterator + cute.crd2idx((0, 16 * k), whole.layout), whole.layout)
        np.testing.assert_array_equal(got, chunks_of(part, code, 64, 16))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("kind", list(tcgen05.SmemLayoutAtomKind), ids=lambda k: k.name)
def test_tcgen05_reads_what_pointers_wrote(kind, start):
    major, code = majors(kind)
    wide = kind.name == "MN_SW128_32B"
    dtype, k = (TF32, 8) if wide else (F16, 16)
    one = tcgen05.MmaTF32Op if wide else tcgen05.MmaF16BF16Op
    types = () if wide else (F16, F32)
    mma = cute.make_tiled_mma(one(*types, (128, 64), tcgen05.CtaGroup.ONE, SMEM, major, major))
    shape = mma.partition_shape_A((128, 4 * k))
    lay = tcgen05.tile_to_mma_shape(
        tcgen05.make_smem_layout_atom(kind, dtype), shape, (0, 1) if code == K_MAJOR else (1, 0)
    )
    whole = Tensor(at(start, F32 if wide else F16, lay.inner), lay.outer)
    words = mma.make_fragment_A(whole)
    for i in range(4):
        part = whole[None, 0, i]
        made = tcgen05.make_umma_smem_desc(part.iterator, part.layout, "k" if code == K_MAJOR else "mn")
        assert made.word() == words[None, 0, i].iterator.word(), "a slice's descriptor is its fragment's"
        d = Tcgen05Descriptor.decode(int(made.word()))
        got, shape = tensor_operands.addresses(d, code, 128, 32, dtype.width // 8)
        tile = Tensor(part.iterator, part.layout[0])
        np.testing.assert_array_equal(got.reshape(shape), chunks_of(tile, code, 128, k))


SW128 = tcgen05.tile_to_mma_shape(
    tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, U8), ((128, 16), 1, 8, 3), (0, 1, 2)
)


@pytest.mark.parametrize("block", [0, 3, 5, 6, 7])
def test_48_bytes_of_k_go_on_in_the_next_stage(block):
    """As examples of sm_103a ask: the tile of 16 bytes at which K begins, and where it goes on."""
    stages = Tensor(at(384, U8, SW128.inner), SW128.outer)
    here, there = stages[None, 0, block, 0], stages[None, 0, 0, 2]
    made = tcgen05.make_umma_smem_desc(here.iterator, here.layout, "k", next_src=there.iterator)
    d = Tcgen05Descriptor.decode(int(made.word()))
    assert (d.mode, d.start, d.leading, d.stride, d.swizzle) == (ABSOLUTE, 384 + 16 * block, 384 + 2 * 16384, 1024, 128)
    got, shape = tensor_operands.addresses(d, K_MAJOR, 128, 48, 1)
    for c in range(3):
        block_of, stage = (block + c, 0) if block + c < 8 else (block + c - 8, 2)
        places = [cute.crd2idx(((i, 0), 0, block_of, stage), stages.layout) for i in range(128)]
        want = [physical(stages.iterator + place) for place in places]
        np.testing.assert_array_equal(got.reshape(shape)[:, c], want)


@pytest.mark.parametrize(
    "change, why",
    [
        ({"next_src": 5}, "next_src 5 must be a pointer to shared memory, aligned to 128 bytes"),
        ({"next_src": at(1024, U8, SW128.inner, 64)}, "must be a pointer to shared memory, aligned to 128 bytes"),
        ({"next_src": at(1024, U8, None)}, "next_src is for K-major tiles whose swizzle is of 128 bytes"),
        ({"major": "mn", "next_src": at(1024, U8, SW128.inner)}, 'and here major is "mn"'),
    ],
)
def test_a_next_source_that_no_descriptor_says_is_refused(change, why):
    here = Tensor(at(0, U8, SW128.inner), SW128.outer)[None, 0, 6, 0]
    with pytest.raises(CuteError, match=why):
        tcgen05.make_umma_smem_desc(**{"src": here.iterator, "layout": here.layout, "major": "k", **change})


@pytest.mark.parametrize("swizzle, start, run, why", [(128, 112, 32, "leave it"), (32, 16, 32, "leave it")])
def test_a_tile_that_leaves_its_row_is_refused_where_it_is_read(swizzle, start, run, why):
    with pytest.raises(CuteError, match=why):
        need_canonical("descriptor", start, swizzle, run, 0)
    need_canonical("descriptor", 0, swizzle, run, 0)


def test_a_pattern_that_begins_elsewhere_is_refused_by_tcgen05_too():
    d = Tcgen05Descriptor(start=128, leading=16, stride=1024, base_offset=1, swizzle=128)
    with pytest.raises(CuteError, match="base_offset 1: .* multiple of 1024 bytes"):
        tensor_operands.addresses(d, K_MAJOR, 128, 32, 2)
