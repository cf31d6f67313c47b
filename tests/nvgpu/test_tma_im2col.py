# SPDX-License-Identifier: Apache-2.0
"""TMA in im2col mode gives the rows of NumPy's im2col matrix: one to three spatial dimensions, padding, strides,
dilation; and stores pixels."""

from __future__ import annotations

import itertools
from dataclasses import astuple, dataclass

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, nvgpu, utils
from numba_cute.isa.facts.tensormap import Im2col, TensorMapRecord
from numba_cute.nvgpu import cpasync
from numba_cute.seam import CuteError, traced
from numba_cute.sim import SimError

from .test_tma_atoms import Map
from .test_tma_modes import SWIZZLES, aligned, flipped, image, shown, tensor
from .tma_kernels import allocated, dump, one_mode

LOAD = cpasync.CopyBulkTensorIm2ColG2SOp()


@dataclass(frozen=True)
class Conv:
    """A convolution of an image (N, D, H, W, C) of float16; all else per spatial dimension, D or H first."""

    image: tuple[int, ...]
    taps: tuple[int, ...]
    pad: tuple[tuple[int, int], ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    tile: tuple[int, int] = (32, 16)

    @property
    def out(self):
        return tuple(
            (n + sum(p) - (t - 1) * d - 1) // s + 1
            for n, t, p, s, d in zip(self.image[1:], self.taps, self.pad, self.stride, self.dilation)
        )

    def matrix(self, x):
        """(pixels, (C, W taps, H taps, D taps)), all first index fastest."""
        padded = np.pad(x, [(0, 0), *self.pad, (0, 0)])
        rows = []
        for n, *pixel in np.ndindex(x.shape[0], *self.out):
            columns = []
            for tap in np.ndindex(*self.taps):
                at = tuple(p * s + t * d for p, s, t, d in zip(pixel, self.stride, tap, self.dilation))
                columns.append(padded[(n, *at)])
            rows.append(np.concatenate(columns))
        return np.array(rows)

    def __str__(self):
        parts = (self.image, self.taps, self.pad, self.stride, self.dilation)
        return "_".join("x".join(map(str, np.ravel(v))) for v in parts)


CONVS = [
    Conv((2, 21, 16), (3,), ((1, 1),), (1,), (1,)),
    Conv((1, 5, 7, 32), (2, 2), ((1, 0), (0, 1)), (1, 1), (1, 1)),
    Conv((1, 9, 11, 16), (3, 2), ((1, 0), (2, 1)), (2, 3), (1, 2)),
    Conv((2, 3, 2, 5, 16), (2, 1, 2), ((0, 1), (0, 0), (1, 1)), (1, 2, 1), (1, 1, 1)),
]
MORE = [
    Conv((n, *size, 16), (t,) * d, ((p, p),) * d, (s,) * d, (apart,) * d)
    for n, d, t, p, s, apart in itertools.product((2,), (1, 2, 3), (1, 3), (0, 1), (1, 2), (1, 2))
    for size in [(4, 5, 6)[:d]]
    if all(n + 2 * p - (t - 1) * apart >= 1 for n in size) and (t > 1 or apart == 1)
]


def smem_layout(tile, swizzle):
    outer = cute.make_layout(tile, stride=(tile[1], 1))
    return cute.make_composed_layout(cute.make_swizzle(SWIZZLES[swizzle], 4, 3), 0, outer)


def image_tensor(place, x, dynamic=False):
    """((W, H, D, N), C)"""
    t = tensor(place, x)
    t = t.mark_layout_dynamic() if dynamic else t
    n = x.ndim
    order = [*reversed(range(n - 1)), n - 1]
    return cute.make_tensor(t.iterator, cute.group_modes(cute.select(t.layout, order), 0, n - 1))


def make_atom(place, x, conv, lay, op=LOAD, blocks=1, dynamic=False):
    lower, upper = (tuple(p[i] for p in reversed(conv.pad)) for i in (0, 1))
    taps, step, dilation = (tuple(reversed(v)) for v in (conv.taps, conv.stride, conv.dilation))
    corner = tuple(p - (t - 1) * d for p, t, d in zip(upper, taps, dilation))
    first, along = tuple(-p for p in lower), (step, (0,) * len(taps), dilation)
    image = image_tensor(place, x, dynamic)
    return cpasync.make_im2col_tma_atom(op, image, lay, conv.tile, first, corner, lower, upper, *along, blocks)


@cuda.jit
def columns(load, coords, seen, dtype, layout, tile):
    """Block i: tile i of the im2col matrix, in shared memory of this layout."""
    block = arch.block_idx()[0]
    smem = utils.SmemAllocator()
    s = allocated(smem, dtype, layout)
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    tiles = cute.local_tile(coords, tile.shape, (None, None))
    tiles = cute.group_modes(cute.group_modes(tiles, 0, 2), 1, 3)
    to, source = cpasync.tma_partition(load, 0, cute.make_layout(1), one_mode(s), tiles)
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(dtype, layout))
    arch.sync_warp()
    cute.prefetch(load, source[None, block])
    cute.copy(load, source[None, block], to[None], tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    if arch.elect_one():
        dump(s, seen[None, block])
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


def atom_and_tensor(*args, **options):
    return [lambda place, i=i: make_atom(place, *args, **options)[i] for i in range(2)]


def tiles_of(matrix, tile):
    """(tile, pixel, channel): tiles of pixels fastest."""
    rows, cols = -(-len(matrix) // tile[0]), matrix.shape[1] // tile[1]
    whole = np.zeros((rows * tile[0], matrix.shape[1]), matrix.dtype)
    whole[: len(matrix)] = matrix
    split = whole.reshape(rows, tile[0], cols, tile[1]).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(split).reshape(rows * cols, *tile)


def images(tiles, swizzle):
    return np.array([image(tile, swizzle) for tile in tiles])


WALKS = [pytest.param(c, w, id=f"{c}_{w}") for c, w in zip(CONVS, ("none", "32B", "none", "32B"))]
WALKS += [pytest.param(c, "none", id=f"{c}_none", marks=pytest.mark.slow) for c in MORE if c not in CONVS]


@pytest.mark.parametrize("conv, swizzle", WALKS)
def test_tiles_are_those_of_the_im2col_matrix(run, conv, swizzle):
    x = aligned(conv.image, np.float16)
    want = images(tiles_of(conv.matrix(x), conv.tile), swizzle)
    seen = np.zeros_like(want)
    lay = smem_layout(conv.tile, swizzle)
    args = [*atom_and_tensor(x, conv, lay), lambda place: shown(place, seen), cute.Float16, lay, lay.outer]
    check = lambda: np.testing.assert_array_equal(seen, want)  # noqa: E731
    run(columns, len(want), 32, args, outputs=[seen], check=check, arch="sm_90")


def test_a_tap_has_whole_tiles_of_channels_and_zeros_behind_its_own(run):
    conv = Conv((1, 5, 3, 24), (2, 2), ((1, 1), (1, 1)), (1, 1), (1, 1))
    x = aligned(conv.image, np.float16)
    padded = Conv((*conv.image[:-1], 32), *astuple(conv)[1:])
    want = images(tiles_of(padded.matrix(np.pad(x, [(0, 0)] * 3 + [(0, 8)])), conv.tile), "none")
    seen, lay = np.zeros_like(want), smem_layout(conv.tile, "none")
    args = [*atom_and_tensor(x, conv, lay), lambda place: shown(place, seen), cute.Float16, lay, lay.outer]
    check = lambda: np.testing.assert_array_equal(seen, want)  # noqa: E731
    run(columns, len(want), 32, args, outputs=[seen], check=check, arch="sm_90")


def test_images_of_run_time_extents_need_no_new_kernel(run):
    conv = Conv((2, 5, 3, 16), (3, 3), ((1, 1), (1, 1)), (1, 1), (1, 1))
    x = aligned(conv.image, np.float16)
    want = images(tiles_of(conv.matrix(x), conv.tile), "none")
    seen, lay = np.zeros_like(want), smem_layout(conv.tile, "none")
    args = [*atom_and_tensor(x, conv, lay, dynamic=True), lambda place: shown(place, seen), cute.Float16]
    args += [lay, lay.outer]
    assert not cute.is_static(args[1](lambda a: a).shape)
    check = lambda: np.testing.assert_array_equal(seen, want)  # noqa: E731
    run(columns, len(want), 32, args, outputs=[seen], check=check, arch="sm_90")


@cuda.jit
def shared_columns(load, coords, seen, dtype, layout, blocks):
    """The blocks of a cluster load the parts of tile 0 for each other."""
    rank = arch.block_idx_in_cluster()
    smem = utils.SmemAllocator()
    s = allocated(smem, dtype, layout)
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    tiles = cute.group_modes(cute.local_tile(coords, layout.shape, (0, 0)), 0, 2)
    to, source = cpasync.tma_partition(load, rank, blocks, one_mode(s), tiles)
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(dtype, layout))
    arch.cluster_arrive()
    arch.cluster_wait()
    cute.copy(load, source[None], to[None], tma_bar_ptr=bar, mcast_mask=(1 << cute.size(blocks)) - 1)
    arch.mbarrier_wait(bar, 0)
    if arch.elect_one():
        dump(s, seen[None, rank])
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)
    arch.cluster_arrive()
    arch.cluster_wait()


@pytest.mark.parametrize("blocks", [2, 4])
def test_columns_are_shared_among_blocks(run, blocks):
    conv = Conv((1, 5, 7, 16), (3, 3), ((1, 1), (1, 1)), (1, 1), (1, 1))
    x = aligned(conv.image, np.float16)
    want = images(tiles_of(conv.matrix(x), conv.tile)[:1], "none")
    seen, lay = np.zeros((blocks, want.size), np.uint8), smem_layout(conv.tile, "none")
    op = cpasync.CopyBulkTensorIm2ColG2SMulticastOp()
    args = [*atom_and_tensor(x, conv, lay, op, blocks), lambda place: shown(place, seen), cute.Float16, lay.outer]

    def check():
        np.testing.assert_array_equal(seen, np.broadcast_to(want, seen.shape))

    run(
        shared_columns, blocks, 32, [*args, cute.make_layout(blocks)], outputs=[seen], check=check, cluster=blocks,
        arch="sm_90",
    )  # fmt: skip


@cuda.jit
def stored(store, coords, values, layout):
    """Block i writes tile i of pixels."""
    lane, block = arch.lane_idx(), arch.block_idx()[0]
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(values.element_type, layout.outer, 1024, layout.inner, "s")
    for i in range(lane, cute.size(layout), 32):
        s[i] = values[i, block]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_warp()
    tiles = cute.group_modes(cute.local_tile(coords, layout.shape, (None, 0)), 0, 2)
    source, to = cpasync.tma_partition(store, 0, cute.make_layout(1), one_mode(s), tiles)
    cute.copy(store, source[None], to[None, block])
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


@pytest.mark.parametrize("swizzle", ["none", "32B"])
def test_pixels_are_stored_row_after_row(run, swizzle):
    conv = Conv((2, 5, 7, 16), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))
    x, out = aligned(conv.image, np.float16), np.zeros_like(aligned(conv.image, np.float16))
    values, lay = tiles_of(conv.matrix(x), conv.tile), smem_layout(conv.tile, swizzle)
    values = np.ascontiguousarray(values.transpose(0, 2, 1)).reshape(len(values), -1)
    args = [*atom_and_tensor(out, conv, lay, cpasync.CopyBulkTensorIm2ColS2GOp())]
    args += [lambda place: flipped(place, values), lay]
    run(stored, len(values), 32, args, outputs=[out], check=lambda: np.testing.assert_array_equal(out, x), arch="sm_90")


def test_operand_a_of_a_convolution_is_made_from_the_filter():
    x = aligned((2, 4, 9, 7, 64), np.float16)
    image = image_tensor(lambda a: a, x)
    mma = utils.make_trivial_tiled_mma(
        cute.Float16,
        cute.Float16,
        nvgpu.OperandMajorMode.K,
        nvgpu.OperandMajorMode.K,
        cute.Float32,
        (1, 1, 1),
        (64, 64),
    )
    atom = nvgpu.warpgroup.make_smem_layout_atom(nvgpu.warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
    lay = cute.tile_to_shape(atom, (64, 64, 3), (0, 1, 2))
    info = nvgpu.make_im2col_tma_atom_A(
        LOAD, image, lay, (64, 64, 64), mma, (3, 2, 1), (1, 1, 0), (1, 0, 0), (1, 2, 1), (1, 1, 1)
    )
    record = info.atom.tensor_map
    assert info.smem_layout == lay
    assert record.im2col.lower == (0, 0, -1) and record.im2col.upper == (0, 0, -1)
    assert (record.im2col.channels, record.im2col.pixels, record.swizzle) == (64, 64, "128B")
    assert record.element_strides == (1, 1, 2, 1, 1)
    assert info.tma_tensor.shape == (7 * 5 * 4 * 2, (64, 1, 2, 3))
    assert info.tma_tensor[8, (0, 0, 1, 2)] == (0, 8, 0, 1, 2), "channel, pixel, and the tap's W, H, D"


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(image=(1, 2, 2, 16), taps=(3, 3)), "leave no pixel of dims"),
        (dict(tile=(32, 264)), "im2col channels is 264; it must be in 1 to 256"),
    ],
    ids=["too_small", "channels"],
)
def test_a_convolution_that_cannot_be_is_explained(change, words):
    given = dict(image=(1, 5, 7, 16), taps=(3, 3), pad=((0, 0),) * 2, stride=(1, 1), dilation=(1, 1))
    conv = Conv(**{**given, **change})
    x = aligned(conv.image, np.float16)
    with pytest.raises(CuteError, match=words):
        make_atom(lambda a: a, x, conv, smem_layout(conv.tile, "none"))


def test_an_atom_that_stores_pixels_has_no_padding():
    """An H200 stops with an illegal instruction (2026-11-21)."""
    x = aligned((1, 5, 7, 16), np.float16)
    conv = Conv(x.shape, (3, 3), ((1, 1), (1, 1)), (1, 1), (1, 1))
    with pytest.raises(CuteError, match=r"lower_corner \(-1, -1\) must not be negative, .*CopyBulkTensorIm2ColS2GOp"):
        make_atom(lambda a: a, x, conv, smem_layout(conv.tile, "none"), cpasync.CopyBulkTensorIm2ColS2GOp())


@pytest.mark.parametrize(
    "corner, at, why",
    [
        (-1, (0, 0, 0), r"an im2col map whose lower corner is \(-1,\) .*: stores and reductions have no padding"),
        (1, (0, 2, 0), r"an im2col map whose .* upper one is \(1,\): stores and reductions have no padding"),
        (0, (-8, 0, 0), r"at coordinates \(-8, 0, 0\) .*: the box of a store or a reduction .* cannot begin before it"),
        (0, (4, 0, 0), "the innermost coordinate 4 is 4 x 16 bits from the tensor's beginning; TMA needs a multiple"),
    ],
    ids=["before", "beyond", "channel", "chunk"],
)
def test_pixels_that_no_gpu_stores_are_explained(corner, at, why):
    x = aligned((2, 12, 32), np.float16)
    record = TensorMapRecord(
        cute.Float16, x.ctypes.data, (32, 12, 2), (64, 768), im2col=Im2col((corner,), (corner,), 8, 8)
    )

    @traced
    def issue(map, s):
        isa.cp_async_bulk_tensor_s2g(map.tensor_map, at, s, rank=3, mode="im2col_no_offs")

    @cuda.jit
    def kernel(map):
        s = utils.SmemAllocator().allocate_tensor(cute.Uint16, cute.make_layout(64), 1024, None, "s")
        s.fill(0)
        arch.fence_proxy("async.shared", space="cta")
        if arch.elect_one():
            issue(map, s.iterator.toint())
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)

    with pytest.raises(SimError, match=why):
        cute.simulate(kernel)[1, 1](Map(record))
