# SPDX-License-Identifier: Apache-2.0
"""TMA of elements below a byte, packed and unpacked in shared memory, and of scale factors taken as wider elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, nvgpu, utils
from numba_cute.isa.facts.tensormap import TensorMapRecord
from numba_cute.isa.facts.tensormap_bits import pack as map_bytes, unpack as map_record
from numba_cute.nvgpu import cpasync
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode as Major
from numba_cute.runtime import from_dlpack, make_fake_tensor, pack
from numba_cute.seam import CuteError
from numba_cute.sim import SimError
from numba_cute.utils import sm100

from .test_tma_modes import LOAD, MULTICAST, STORE, image

FOUR = (cute.Float4E2M1FN, cute.Int4, cute.Uint4)
SIX = (cute.Float6E2M3FN, cute.Float6E3M2FN)
NAMES = {"ids": lambda d: d.name}


def aligned(bytes_):
    raw = np.zeros(bytes_.size + 128, np.uint8)
    start = -raw.ctypes.data % 128
    out = raw[start : start + bytes_.size].reshape(bytes_.shape)
    out[...] = bytes_
    return out


def random(rng, shape, dtype):
    return rng.integers(0, 1 << dtype.width, shape).astype(np.uint8).view(dtype.numpy)


def tensor(place, packed, dtype):
    return cute.recast_tensor(from_dlpack(place(packed), assumed_align=32), dtype)


def swizzled(tile, bits):
    return cute.make_composed_layout(cute.make_swizzle(bits, 4, 3), 0, cute.make_ordered_layout(tile, (1, 0)))


def there_and_back(dtype, lay, expected, back):
    """A kernel (load, source, store, dest, raw), a block a tile: load it, show the bytes of shared memory, store it."""

    @cuda.jit
    def kernel(load, source, store, dest, raw):
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(dtype, lay.outer, 1024, lay.inner, "s")
        bar = smem.allocate_array(cute.Int64, 1, name="bar")
        tile = lay.outer.shape
        tx, _, _ = arch.thread_idx()
        x, y, _ = arch.block_idx()
        if tx == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(bar, expected)
        arch.sync_warp()
        whole = cute.group_modes(s, 0, 2)
        to, got = cpasync.tma_partition(
            load, 0, cute.make_layout(1), whole, cute.group_modes(cute.local_tile(source, tile, (x, y)), 0, 2)
        )
        cute.copy(load, got, to, tma_bar_ptr=bar)
        arch.mbarrier_wait(bar, 0)
        held = cute.recast_ptr(s.iterator, cute.make_swizzle(0, 4, 3), cute.Uint8)
        size = raw.shape[2]
        lines = cute.make_tensor(held, cute.make_layout(size))
        for i in range(tx, size, 32):
            raw[x, y, i] = lines[i]
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_warp()
        if cute.const_expr(back):
            left, out = cpasync.tma_partition(
                store, 0, cute.make_layout(1), whole, cute.group_modes(cute.local_tile(dest, tile, (x, y)), 0, 2)
            )
            cute.copy(store, left, out)
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)

    return kernel


def chunks_of(packed, dtype):
    """Packed rows with the elements of each 16 in 16 bytes, zeros after them."""
    each = 2 * dtype.width
    return np.pad(packed.reshape(-1, each), ((0, 0), (0, 16 - each))).reshape(len(packed), -1)


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("dtype", FOUR, **NAMES)
def test_four_bits_go_there_and_back_packed(run, rng, dtype, swizzle):
    bits = {"none": 0, "32B": 1, "64B": 2, "128B": 3}[swizzle]
    tile = 8, 32 << bits
    shape = (20, 2 * tile[1])  # rows that end outside
    a = random(rng, shape, dtype)
    src, dst = aligned(pack(a)), aligned(np.zeros((20, tile[1]), np.uint8))
    lay, bytes_ = swizzled(tile, bits), tile[0] * tile[1] // 2
    raw = np.zeros((3, 2, bytes_), np.uint8)
    padded = np.pad(src, ((0, 4), (0, 0))).reshape(3, 8, 2, -1).transpose(0, 2, 1, 3)

    def check():
        np.testing.assert_array_equal(dst, src)
        for x, y in np.ndindex(3, 2):
            np.testing.assert_array_equal(raw[x, y], image(padded[x, y], swizzle))

    def made(op, array, which):
        return lambda place: cpasync.make_tiled_tma_atom(op, tensor(place, array, dtype), lay, tile)[which]

    args = [made(LOAD, src, 0), made(LOAD, src, 1), made(STORE, dst, 0), made(STORE, dst, 1), raw]
    run(there_and_back(dtype, lay, bytes_, True), (3, 2), 32, args, outputs=[dst, raw], check=check, arch="sm_100a")


@pytest.mark.parametrize("swizzle", ["none", "128B"])
@pytest.mark.parametrize("dtype", [cute.Float4E2M1FN, *SIX], **NAMES)
def test_elements_are_unpacked_into_a_byte_each(run, rng, dtype, swizzle):
    """Sixteen in the first bytes of each 16, as kind::f8f6f4 reads them; 6 bits go back, 4 cannot."""
    bits, tile = {"none": 0, "128B": 3}[swizzle], (8, 128)
    a = random(rng, (16, 256), dtype)
    src, dst = aligned(pack(a)), aligned(np.zeros_like(pack(a)))
    lay, back = swizzled(tile, bits), dtype.width == 6
    raw = np.zeros((2, 2, 8 * 128), np.uint8)

    def check():
        wide = chunks_of(src, dtype).reshape(2, 8, 2, 128).transpose(0, 2, 1, 3)
        for x, y in np.ndindex(2, 2):
            np.testing.assert_array_equal(raw[x, y], image(wide[x, y], swizzle))
        if back:
            np.testing.assert_array_equal(dst, src)

    def made(op, array, which, internal=cute.Int8):
        return lambda place: cpasync.make_tiled_tma_atom(
            op, tensor(place, array, dtype), lay, tile, internal_type=internal
        )[which]

    args = [made(LOAD, src, 0), made(LOAD, src, 1)]
    args += [made(STORE, dst, 0, None), made(STORE, dst, 1)] if back else [None, None]
    args.append(raw)
    outputs = [raw, dst] if back else [raw]
    run(
        there_and_back(cute.Int8, lay, 128 * dtype.width, back),
        (2, 2),
        32,
        args,
        outputs=outputs,
        check=check,
        arch="sm_100a",
    )


def test_four_bits_are_not_packed_again_by_a_store(rng):
    dst = aligned(np.zeros((8, 64), np.uint8))
    lay = swizzled((8, 128), 0)
    t = tensor(lambda x: x, dst, cute.Float4E2M1FN)
    atom, coords = cpasync.make_tiled_tma_atom(STORE, t, lay, (8, 128), internal_type=cute.Uint8)

    @cuda.jit
    def kernel(store, dest):
        s = utils.SmemAllocator().allocate_tensor(cute.Uint8, lay.outer, 1024)
        for i in range(cuda.threadIdx.x, 1024, 32):
            s[i] = 0
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_warp()
        to, out = cpasync.tma_partition(
            store, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(dest, 0, 2)
        )
        cute.copy(store, to, out)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)

    with pytest.raises(SimError, match="unpacked in shared memory and swizzle 'none', which only loads have"):
        cute.simulate(kernel, arch="sm_100a")[1, 32](atom, coords)


# ---------------------------------------------------------------- scale factors


def scales(rows, k, vec):
    """The layout of scale factors as the matrix unit's copies take them: 128 rows by 4 of K in 512 bytes (CUTLASS,
    "Scale Factor Layouts")."""
    atoms_m, atoms_k = rows // 128, k // (4 * vec)
    shape = ((32, 4), atoms_m), ((vec, 4), atoms_k)
    return cute.make_layout(shape, stride=(((16, 4), 512 * atoms_k), ((0, 1), 512)))


def load_scales(lay, tile, at, sharing):
    """A kernel (atom, coords, out): each CTA loads its part of a tile of scale factors, and shows all of it."""

    @cuda.jit
    def kernel(atom, coords, out):
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(cute.Float8E8M0FNU, lay, 1024, None, "s")
        bar = smem.allocate_array(cute.Int64, 1, name="bar")
        tx, _, _ = arch.thread_idx()
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        if tx == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(bar, cute.cosize(lay))
        arch.cluster_arrive()
        arch.cluster_wait()
        to, source = cpasync.tma_partition(
            atom, rank, cute.make_layout(sharing), cute.group_modes(s, 0, 2),
            cute.group_modes(cute.local_tile(coords, tile, at), 0, 2),
        )  # fmt: skip
        to, source = cute.filter_zeros(to), cute.filter_zeros(source)
        if cute.const_expr(sharing > 1):
            cute.copy(atom, source, to, tma_bar_ptr=bar, mcast_mask=3)
        else:
            cute.copy(atom, source, to, tma_bar_ptr=bar)
        arch.mbarrier_wait(bar, 0)
        held = cute.make_tensor(cute.recast_ptr(s.iterator, dtype=cute.Uint8), cute.make_layout(cute.cosize(lay)))
        for i in range(tx, cute.cosize(lay), 32):
            out[rank, i] = held[i]
        arch.cluster_arrive()
        arch.cluster_wait()

    return kernel


@pytest.mark.parametrize("sharing", [1, 2])
@pytest.mark.parametrize("internal", [cute.Int16, None, cute.Int32], ids=str)
@pytest.mark.parametrize("vec", [16, 32])
def test_scale_factors_are_loaded_in_blocks_of_512_bytes(run, rng, vec, internal, sharing):
    rows, k = 384, 16 * vec
    whole, tile = scales(rows, k, vec), (256, 8 * vec)
    data = aligned(rng.integers(0, 255, rows * k // vec).astype(np.uint8)).view(ml_dtypes.float8_e8m0fnu)
    smem = scales(256, 8 * vec, vec)
    at = (1, 1)
    out = np.zeros((sharing, 2048), np.uint8)
    op = LOAD if sharing == 1 else MULTICAST

    def make(place):
        flat = from_dlpack(place(data), assumed_align=128)
        t = cute.make_tensor(flat.iterator, whole)
        return cpasync.make_tiled_tma_atom(op, t, smem, tile, sharing, internal_type=internal)

    if internal is cute.Int16:
        assert make(lambda x: x).atom.tensor_map.dims[0] == 256, "a block is one row, as wide as a box can be"

    def check():
        blocks = data.view(np.uint8).reshape(3, 4, 512)
        want = np.concatenate([blocks[2:3, 2:4], np.zeros((1, 2, 512), np.uint8)]).ravel()
        np.testing.assert_array_equal(out, np.broadcast_to(want, out.shape))

    args = [lambda place: make(place)[0], lambda place: make(place)[1], out]
    run(
        load_scales(smem, tile, at, sharing),
        sharing,
        32,
        args,
        outputs=[out],
        check=check,
        cluster=sharing,
        arch="sm_100a",
    )


def test_the_bits_of_packed_maps_are_read_back():
    for dtype, unpacked in ((cute.Float4E2M1FN, False), (cute.Float4E2M1FN, True), (cute.Float6E3M2FN, True)):
        box = (128, 8)
        record = TensorMapRecord(dtype, 1 << 20, (256, 64), (192,), box, unpacked=unpacked)
        assert map_record(map_bytes(record)) == record


@pytest.mark.parametrize(
    "dtype, internal, why",
    [
        (cute.Float4E2M1FN, cute.Int16, "internal_type Int16 of Float4E2M1FN elements must be Int8 or Uint8"),
        (cute.Float16, cute.Int8, "internal_type Int8 has 8 bits, no multiple of the elements' 16"),
        (cute.Float4E2M1FN, cute.Float8E4M3FN, "must be Int8 or Uint8"),
    ],
    ids=str,
)
def test_internal_types_that_cannot_hold_elements_are_refused(dtype, internal, why):
    t = make_fake_tensor(dtype, (64, 256), (256, 1), assumed_align=32)
    with pytest.raises(CuteError, match=why):
        cpasync.make_tiled_tma_atom(LOAD, t, swizzled((8, 128), 0), (8, 128), internal_type=internal)


def test_scale_factors_go_as_the_multiplies_take_them_apart():
    """SFA in shared memory as ((M, K), rest M, rest K): K of one multiply holds one scale factor in 32 elements."""
    mma = sm100.make_trivial_tiled_mma(
        cute.Float8E4M3FN, cute.Float8E4M3FN, Major.K, Major.K, cute.Float32, CtaGroup.ONE, (128, 64)
    )
    tile = (128, 64, 256)
    t = make_fake_tensor(cute.Float8E8M0FNU, (1,), (1,), assumed_align=128)
    whole = cute.append(scales(384, 1024, 32), cute.make_layout(2, stride=384 * 32))
    parts = cute.make_layout((((32, 4), (32, 1)), 1, (4, 2)), stride=(((16, 4), (0, 1)), 1024, (1, 512)))
    info = nvgpu.make_tiled_tma_atom_A(
        LOAD, cute.make_tensor(t.iterator, whole), parts, tile, mma, (1, 1, 1, 1), internal_type=cute.Int16
    )
    assert info.atom.tensor_map.box == (256, 2, 1, 1)
    assert info.atom.tensor_map.dims == (256, 8, 3, 2)
    assert repr(info.tma_tensor.layout) == "(((32,4),3),((32,4),8),2):(((16@0,4@0),1@2),((0,1@0),1@1),1@3)"
    assert cute.size(info.atom.layout_src_tv) == 1024
