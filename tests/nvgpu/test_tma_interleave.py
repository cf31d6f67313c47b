# SPDX-License-Identifier: Apache-2.0
"""Interleaved tensor maps carry NC/8HWC8 and NC/16HWC16 tensors there and back, bit for bit: ranks, types, swizzles,
ragged edges, steps, fills, multicast, reductions, im2col."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, utils
from numba_cute.isa.facts.tensormap import TensorMapRecord
from numba_cute.nvgpu import ReductionOp, cpasync
from numba_cute.runtime import from_dlpack, make_fake_tensor
from numba_cute.seam import CuteError, traced
from numba_cute.sim import SimError

from . import test_tma_im2col as im2col
from .test_tma_atoms import Map
from .test_tma_modes import DTYPES, LOAD, MULTICAST, STORE, Case, aligned, atoms, grid, seen_by, shown, tensor
from .tma_kernels import combined, one_mode, shared_among_blocks, there_and_back

BYTES = {"16B": 16, "32B": 32}


def case(outer, tile, interleave="16B", dtype=np.uint16, swizzle=None):
    """A tensor (outer…, slice) in tiles (tile…, slice)."""
    within = BYTES[interleave] // np.dtype(dtype).itemsize
    swizzle = swizzle or ("32B" if interleave == "32B" else "none")
    return Case((*outer, within), (*tile, within), swizzle, dtype)


def interleaved(c):
    return f"{c.shape[-1] * np.dtype(c.dtype).itemsize}B"


ALWAYS = [  # (N,) (C / slice,) (D,) H, W
    case((2, 3, 5, 20), (1, 1, 4, 8)),
    case((2, 3, 3, 11), (1, 2, 2, 8), dtype=np.float16, swizzle="128B"),
    case((3, 20), (2, 8)),
    case((19,), (16,)),
    case((2, 3, 3, 3, 9), (1, 1, 2, 2, 8)),
    case((2, 3, 5, 18), (1, 2, 4, 8), "32B", np.float16),
    case((2, 3, 3, 10), (2, 2, 2, 8), dtype=np.float32, swizzle="64B"),
    case((2, 3, 3, 10), (2, 3, 2, 8), dtype=np.float32),  # nothing that the box holds one of: several boxes a tile
]
MORE = [
    case(outer, tile, i, t, s)
    for (outer, tile), (i, s), t in itertools.product(
        [((2, 3, 5, 35), (1, 2, 2, 16)), ((2, 35), (1, 32)), ((2, 2, 3, 2, 20), (2, 1, 2, 1, 16))],
        [("16B", "none"), ("16B", "32B"), ("16B", "64B"), ("16B", "128B"), ("32B", "32B")],
        [np.uint8, np.uint16, np.int32, np.float32, np.uint64, ml_dtypes.bfloat16],
    )
]


@pytest.mark.parametrize("c", grid(ALWAYS, MORE))
def test_slices_go_there_and_back(run, c):
    src, dst, seen = aligned(c.shape, c.dtype), aligned(c.shape, c.dtype), seen_by(c, c.blocks)

    def check():
        np.testing.assert_array_equal(seen, c.images(src))
        np.testing.assert_array_equal(dst.view(np.uint8), src.view(np.uint8))

    how = dict(interleave=interleaved(c))
    args = [*atoms(LOAD, src, c.swizzled, c.tile, **how), *atoms(STORE, dst, c.swizzled, c.tile, **how)]
    args += [lambda place: shown(place, seen), DTYPES[c.dtype], c.swizzled]
    run(there_and_back, c.blocks, 32, args, outputs=[dst, seen], check=check, arch="sm_90")


def test_a_tile_is_one_copy_if_the_box_can_hold_it():
    t = make_fake_tensor(cute.Uint16, (2, 4, 5, 16, 8), (5120, 1280, 256, 8, 1), assumed_align=16)

    def mapped(tile):
        lay = cute.make_ordered_layout(tile, (4, 3, 2, 1, 0))
        atom = cpasync.make_tiled_tma_atom(LOAD, t, lay, tile, interleave="16B").atom
        return atom.tensor_map, cute.size(atom.layout_src_tv)

    several, elements = mapped((1, 2, 4, 8, 8))
    assert (several.dims, several.box) == ((16, 5, 2, 4), (8, 4, 1, 2)), "the images are before the last dimension"
    assert several.strides_bytes == (512, 10240, 2560) and elements == 2 * 4 * 8 * 8
    one, elements = mapped((2, 1, 4, 8, 8))
    assert (one.dims, one.box) == ((16, 5, 4, 2), (8, 4, 1, 2)) and elements == 2 * 4 * 8 * 8
    parts, elements = mapped((2, 2, 4, 8, 8))
    assert parts.box == (8, 4, 1, 1) and elements == 4 * 8 * 8


@pytest.mark.parametrize("interleave, swizzle", [("16B", "none"), ("32B", "32B")])
def test_multicast_fills_each_block_with_slices(run, interleave, swizzle, blocks=2):
    c = case((2, 3, 5, 18), (1, 1, 4, 8), interleave, np.float32, swizzle)
    src, seen = aligned(c.shape, c.dtype), seen_by(c, blocks)
    want = c.images(src)[:1]

    def check():
        np.testing.assert_array_equal(seen, np.broadcast_to(want, seen.shape))

    args = [*atoms(MULTICAST, src, c.swizzled, c.tile, blocks, interleave=interleave)]
    args += [lambda place: shown(place, seen), DTYPES[c.dtype], c.swizzled, cute.make_layout(blocks)]
    run(shared_among_blocks, blocks, 32, args, outputs=[seen], check=check, cluster=blocks, arch="sm_90")


def test_slices_are_reduced(run):
    c = case((2, 3, 3, 10), (1, 2, 2, 8), dtype=np.int32)
    src, start = aligned(c.shape, c.dtype), np.roll(aligned(c.shape, c.dtype), 1)
    dst = start.copy()

    def filled(make):
        def argument(place):
            dst[...] = start
            return make(place)

        return argument

    how = dict(interleave="16B")
    reduction = cpasync.CopyReduceBulkTensorTileS2GOp(ReductionOp.ADD)
    args = [*atoms(LOAD, src, c.layout, c.tile, **how), *map(filled, atoms(reduction, dst, c.layout, c.tile, **how))]
    args += [DTYPES[c.dtype], c.layout, np.int64(0)]
    check = lambda: np.testing.assert_array_equal(dst, start + src)  # noqa: E731
    run(combined, c.blocks, 32, args, inouts=[dst], check=check, arch="sm_90")


@pytest.mark.parametrize("steps", [(1, 1, 2, 3, 1), (2, 1, 1, 2, 1)], ids=str)
def test_element_strides_take_every_nth_slice(run, steps):
    c = case((3, 2, 5, 19), (1, 1, 2, 8))
    src, every = aligned(c.shape, c.dtype), tuple(slice(None, None, s) for s in steps)
    taken = Case(tuple(-(-n // s) for n, s in zip(c.shape, steps)), c.tile, "none", c.dtype)
    dst, seen = aligned(c.shape, c.dtype), seen_by(c, taken.blocks)
    want = np.full(dst.shape, 0xA5A5, np.uint16)
    want[every] = src[every]

    def check():
        np.testing.assert_array_equal(seen, taken.images(src[every]))
        np.testing.assert_array_equal(dst, want)

    how = dict(interleave="16B", element_strides=steps)
    args = [*atoms(LOAD, src, c.layout, c.tile, **how), *atoms(STORE, dst, c.layout, c.tile, **how)]
    args += [lambda place: shown(place, seen), DTYPES[c.dtype], c.layout]
    run(there_and_back, taken.blocks, 32, args, outputs=[dst, seen], check=check, arch="sm_90")


def test_slices_outside_are_nan_if_wanted(run):
    c = case((1, 3, 3, 10), (1, 1, 2, 8), dtype=np.float16)
    src, dst, seen = aligned(c.shape, c.dtype), aligned(c.shape, c.dtype), seen_by(c, c.blocks)
    want = c.images(src, np.nan).view(c.dtype)

    def check():
        np.testing.assert_array_equal(seen.view(c.dtype).astype(np.float64), want.astype(np.float64))
        np.testing.assert_array_equal(dst, src)

    load = atoms(LOAD, src, c.layout, c.tile, oob_fill="nan", interleave="16B")
    args = [*load, *atoms(STORE, dst, c.layout, c.tile, interleave="16B")]
    args += [lambda place: shown(place, seen), DTYPES[c.dtype], c.layout]
    run(there_and_back, c.blocks, 32, args, outputs=[dst, seen], check=check, arch="sm_90")


# ------------------------------------------------------------------ any coordinates, as an H200 has them


def loading(at):
    @traced
    def issue(map, s, bar):
        isa.cp_async_bulk_tensor_g2s(s, map.tensor_map, at, bar, rank=len(at))

    @cuda.jit
    def kernel(map, seen):
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(cute.Uint16, cute.make_layout(seen.shape[0]), 1024, None, "s")
        bar = smem.allocate_array(cute.Int64, 1, name="bar")
        if arch.elect_one():
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(bar, 2 * seen.shape[0])
            issue(map, s.iterator.toint(), bar.toint())
        arch.sync_warp()
        arch.mbarrier_wait(bar, 0)
        lying = cute.recast_ptr(s.iterator, reinterpret=True)
        for i in range(arch.lane_idx(), seen.shape[0], 32):
            seen[i] = (lying + i).load()

    return kernel


PLACES = [  # dims, box, coordinates: (W, …, slice, image), none of them a multiple of anything
    ((30, 5, 3), (8, 7, 2), (-3, 1, 1)),
    ((30, 5, 3), (8, 16, 1), (27, 4, 2)),
    ((30, 5, 3), (16, 1, 2), (1, -1, -1)),
    ((10, 4, 5, 2), (8, 3, 9, 2), (5, -1, 3, 0)),
]


@pytest.mark.parametrize("dims, box, at", PLACES, ids=str)
def test_a_box_begins_at_any_slice_and_holds_one_before_the_last_dimension(run, dims, box, at):
    x = aligned((*reversed(dims), 8), np.uint16)
    strides = tuple(16 * math.prod(dims[:d]) for d in range(1, len(dims)))
    held = [*box[:-2], 1, box[-1]]
    want = np.zeros((*reversed(held), 8), np.uint16)
    for index in itertools.product(*map(range, held)):
        place = [a + i for a, i in zip(at, index)]
        if all(0 <= p < n for p, n in zip(place, dims)):
            want[tuple(reversed(index))] = x[tuple(reversed(place))]
    seen = np.zeros(want.size, np.uint16)

    def mapped(place):
        of = tensor(place, x)
        return Map(TensorMapRecord(cute.Uint16, int(of.iterator.address), dims, strides, box, interleave="16B"), of)

    check = lambda: np.testing.assert_array_equal(seen, want.reshape(-1))  # noqa: E731
    run(loading(at), 1, 32, [mapped, lambda place: tensor(place, seen)], outputs=[seen], check=check, arch="sm_90")


# ------------------------------------------------------------------ im2col

CONV = im2col.Conv((2, 5, 7, 32), (2, 3), ((1, 0), (1, 1)), (1, 2), (1, 1), (32, 16))
SWIZZLED = {"16B": 0, "32B": 1}


def sliced_image(place, x):
    """((W, H, N), (slice, C / slice)) of an array (N, C / slice, H, W, slice)."""
    t = tensor(place, x)
    lay = cute.select(t.layout, (3, 2, 0, 4, 1))
    return cute.make_tensor(t.iterator, cute.group_modes(cute.group_modes(lay, 0, 3), 1, 3))


@pytest.mark.parametrize("interleave", ["16B", "32B"])
def test_columns_of_slices_are_those_of_the_im2col_matrix(run, interleave):
    within, (pixels, channels) = BYTES[interleave] // 2, CONV.tile
    x = aligned(CONV.image, np.float16)
    n, h, w, c = x.shape
    slices = aligned((n, c // within, h, w, within), np.float16)
    slices[...] = x.reshape(n, h, w, c // within, within).transpose(0, 3, 1, 2, 4)
    tiles = im2col.tiles_of(CONV.matrix(x), CONV.tile).reshape(-1, pixels, channels // within, within)
    want = im2col.images(tiles.transpose(0, 2, 1, 3), "32B" if interleave == "32B" else "none")
    seen = np.zeros_like(want)
    outer = cute.make_layout((pixels, (within, channels // within)), stride=(within, (1, within * pixels)))
    lay = cute.make_composed_layout(cute.make_swizzle(SWIZZLED[interleave], 4, 3), 0, outer)
    lower, upper = (tuple(p[i] for p in reversed(CONV.pad)) for i in (0, 1))
    taps, step, dilation = (tuple(reversed(v)) for v in (CONV.taps, CONV.stride, CONV.dilation))
    corner = tuple(p - (t - 1) * d for p, t, d in zip(upper, taps, dilation))
    first = tuple(-p for p in lower)

    def make(place, i):
        return cpasync.make_im2col_tma_atom(
            im2col.LOAD, sliced_image(place, slices), lay, CONV.tile, first, corner, lower, upper, step,
            (0,) * len(taps), dilation, interleave=interleave,
        )[i]  # fmt: skip

    args = [lambda place: make(place, 0), lambda place: make(place, 1), lambda place: shown(place, seen)]
    args += [cute.Float16, lay, cute.make_layout(CONV.tile)]
    check = lambda: np.testing.assert_array_equal(seen, want)  # noqa: E731
    run(im2col.columns, len(want), 32, args, outputs=[seen], check=check, arch="sm_90")


@cuda.jit
def stored_slices(store, coords, values, layout, tile):
    """Block i writes tile i of pixels."""
    lane, block = arch.lane_idx(), arch.block_idx()[0]
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(values.element_type, layout, 1024, None, "s")
    for i in range(lane, cute.size(layout), 32):
        s[i] = values[i, block]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_warp()
    tiles = cute.group_modes(cute.local_tile(coords, tile.shape, (None, 0)), 0, 2)
    source, to = cpasync.tma_partition(store, 0, cute.make_layout(1), one_mode(s), tiles)
    cute.copy(store, source[None], to[None, block])
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


def test_pixels_of_slices_are_stored_row_after_row(run):
    conv = im2col.Conv((2, 5, 7, 16), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))
    x, out = aligned(conv.image, np.float16), aligned((2, 2, 5, 7, 8), np.float16)
    want = np.ascontiguousarray(x.reshape(2, 5, 7, 2, 8).transpose(0, 3, 1, 2, 4))
    values = np.ascontiguousarray(im2col.tiles_of(conv.matrix(x), conv.tile).transpose(0, 2, 1)).reshape(-1, 512)
    lay = cute.make_layout((32, (8, 2)), stride=(8, (1, 256)))
    geometry = [(0, 0)] * 4 + [(1, 1), (0, 0), (1, 1)]

    def make(place, i):
        image = sliced_image(place, out)
        op = cpasync.CopyBulkTensorIm2ColS2GOp()
        return cpasync.make_im2col_tma_atom(op, image, lay, conv.tile, *geometry, interleave="16B")[i]

    args = [lambda place: make(place, 0), lambda place: make(place, 1), lambda place: shown(place, values)]
    args += [lay, cute.make_layout(conv.tile)]
    check = lambda: np.testing.assert_array_equal(out, want)  # noqa: E731
    run(stored_slices, len(values), 32, args, outputs=[out], check=check, arch="sm_90")


# ------------------------------------------------------------------ what cannot be


def fake(shape, stride, dtype=cute.Uint16):
    return make_fake_tensor(dtype, shape, stride, assumed_align=32)


NHWC = fake((2, 3, 5, 16, 8), (1920, 640, 128, 8, 1))


@pytest.mark.parametrize(
    "t, tile, order, how, why",
    [
        (NHWC, (1, 1, 4, 8, 4), (4, 3, 2, 1, 0), "16B", "a mode of 8 with stride 1, 4 in a row"),
        (NHWC, (1, 1, 4, 8, 8), (4, 3, 2, 1, 0), "32B", "interleave '32B' wants a mode of 16 Uint16"),
        (NHWC, (1, 1, 4, 8, 8), (4, 3, 1, 2, 0), "16B", "has stride 128 along the mode that comes after the slice"),
        (NHWC, (1, 1, 4, 4, 8), (4, 3, 2, 1, 0), "16B", r"box\[0\] is 4 slices; the driver wants a multiple of 8"),
        (NHWC, (1, 1, 4, 8, 8), (4, 3, 2, 1, 0), "64B", "interleave '64B' is none of 'none', '16B', '32B'"),
        (fake((64, 8), (16, 1)), (8, 8), (1, 0), "16B", "has stride 16 along the mode that comes after the slice"),
        (fake((5, 64, 8), (516, 8, 1)), (1, 8, 8), (2, 1, 0), "16B", "is 1032 bytes; it must be a multiple of 16"),
    ],
    ids=range(7),
)
def test_slices_that_cannot_be_are_refused(t, tile, order, how, why):
    with pytest.raises(CuteError, match=why):
        cpasync.make_tiled_tma_atom(LOAD, t, cute.make_ordered_layout(tile, order), tile, interleave=how)


def test_a_store_of_slices_begins_inside():
    x = aligned((3, 5, 30, 8), np.uint16)
    record = TensorMapRecord(cute.Uint16, x.ctypes.data, (30, 5, 3), (480, 2400), (8, 1, 1), interleave="16B")

    @traced
    def issue(map, s):
        isa.cp_async_bulk_tensor_s2g(map.tensor_map, (-1, 0, 0), s, rank=3)

    @cuda.jit
    def kernel(map):
        s = utils.SmemAllocator().allocate_tensor(cute.Uint16, cute.make_layout(64), 1024, None, "s")
        s.fill(0)
        arch.fence_proxy("async.shared", space="cta")
        if arch.elect_one():
            issue(map, s.iterator.toint())
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)

    with pytest.raises(SimError, match="it cannot begin before it"):
        cute.simulate(kernel)[1, 1](Map(record))


def test_an_image_of_no_slices_is_refused():
    image = fake(((7, 5, 2), 32), ((32, 224, 1120), 1))
    lay = cute.make_layout((32, (8, 2)), stride=(8, (1, 256)))
    with pytest.raises(CuteError, match=r"C \(slice, C / slice\) if it is interleaved"):
        cpasync.make_im2col_tma_atom(
            im2col.LOAD, image, lay, (32, 16), *[(0, 0)] * 4, (1, 1), (0, 0), (1, 1), interleave="16B"
        )


def test_an_interleaved_map_takes_no_other_tensor():
    x, maps = aligned((5, 16, 8), np.uint16), aligned((128,), np.uint8)
    lay = cute.make_ordered_layout((1, 8, 8), (2, 1, 0))
    t = tensor(lambda a: a, x)
    atom = cpasync.make_tiled_tma_atom(LOAD, t, lay, (1, 8, 8), interleave="16B").atom

    @cuda.jit
    def kernel(load, t, maps):
        cpasync.update_tma_descriptor(load, t, maps.iterator)

    with pytest.raises(CuteError, match="is of an im2col or interleaved map, which takes no other tensor"):
        cute.simulate(kernel)[1, 1](atom, t, from_dlpack(maps, assumed_align=128))
