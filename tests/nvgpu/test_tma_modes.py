# SPDX-License-Identifier: Apache-2.0
"""TMA in every mode carries tensors there and back, bit for bit: each rank, swizzle, element type, ragged edges,
steps, fills, multicast, reductions. The whole grid is slow; a part of it runs always."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute
from numba_cute.isa.facts.reduction import combine
from numba_cute.isa.facts.tensormap import TENSOR_REDUCTIONS
from numba_cute.nvgpu import ReductionOp, cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from .tma_kernels import combined, from_column, shared_among_blocks, there_and_back, to_row

LOAD, STORE = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
MULTICAST = cpasync.CopyBulkTensorTileG2SMulticastOp()
SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
DTYPES = {
    np.uint8: cute.Uint8, np.int8: cute.Int8, np.uint16: cute.Uint16, np.int16: cute.Int16, np.float16: cute.Float16,
    ml_dtypes.bfloat16: cute.BFloat16, np.int32: cute.Int32, np.uint32: cute.Uint32, np.float32: cute.Float32,
    np.int64: cute.Int64, np.uint64: cute.Uint64, np.float64: cute.Float64,
    ml_dtypes.float8_e4m3fn: cute.Float8E4M3FN, ml_dtypes.float8_e5m2: cute.Float8E5M2,
}  # fmt: skip


def aligned(shape, dtype):
    """Random bits without NaNs, at a multiple of 128 bytes."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(math.prod(shape) * size + 128, np.uint8)
    start = -raw.ctypes.data % 128
    out = raw[start : start + math.prod(shape) * size].view(dtype).reshape(shape)
    rng = np.random.default_rng([size, *shape])
    out[...] = rng.integers(-100 if np.dtype(dtype).kind != "u" else 0, 100, shape).astype(dtype)
    return out


def image(elements, swizzle):
    """Consecutive elements as bytes of shared memory: 16-byte chunk i of line j lies at i ^ j, in as many bits of j as
    the swizzle has (PTX ISA, "Swizzling Modes")."""
    chunks = np.ascontiguousarray(elements).view(np.uint8).reshape(-1, 16)
    i = np.arange(len(chunks))
    out = np.zeros((len(chunks), 16), np.uint8)
    out[i ^ (i >> 3 & (1 << SWIZZLES[swizzle]) - 1)] = chunks
    return out.reshape(-1)


@dataclass(frozen=True)
class Case:
    """A row-major tensor of `shape`, in tiles, with the inner tile as wide as the swizzle."""

    shape: tuple[int, ...]
    tile: tuple[int, ...]
    swizzle: str = "none"
    dtype: type = np.float32

    @property
    def layout(self):
        """Of a tile in shared memory, but for the swizzle."""
        return cute.make_ordered_layout(self.tile, tuple(reversed(range(len(self.tile)))))

    @property
    def swizzled(self):
        """The same, as make_tiled_tma_atom takes it."""
        return cute.make_composed_layout(cute.make_swizzle(SWIZZLES[self.swizzle], 4, 3), 0, self.layout)

    @property
    def blocks(self):
        return math.prod(-(-n // t) for n, t in zip(self.shape, self.tile))

    def images(self, array, fill=0):
        """The bytes of shared memory of each tile (the first dimension fastest), `fill` outside of the array."""
        counts = [-(-n // t) for n, t in zip(self.shape, self.tile)]
        whole = np.full([c * t for c, t in zip(counts, self.tile)], fill, array.dtype)
        whole[tuple(map(slice, array.shape))] = array
        rank = len(self.tile)
        split = whole.reshape([x for pair in zip(counts, self.tile) for x in pair])
        order = [2 * d for d in reversed(range(rank))] + [2 * d + 1 for d in range(rank)]
        tiles = np.ascontiguousarray(split.transpose(order)).reshape(self.blocks, -1)
        return np.array([image(tile, self.swizzle) for tile in tiles])

    def __str__(self):
        shape, tile = ("x".join(map(str, x)) for x in (self.shape, self.tile))
        return f"{shape}_by_{tile}_{self.swizzle}_{np.dtype(self.dtype).name}"


def inner_of(swizzle, dtype, least=16):
    return max(least, {"none": 16, "32B": 32, "64B": 64, "128B": 128}[swizzle]) // np.dtype(dtype).itemsize


OUTER_TILES = {1: (), 2: (8,), 3: (2, 4), 4: (2, 1, 4), 5: (1, 2, 2, 2)}
OUTER_SHAPES = {1: (), 2: (24,), 3: (4, 8), 4: (2, 3, 4), 5: (2, 2, 4, 2)}
OUTER_RAGGED = {1: (), 2: (19,), 3: (3, 7), 4: (3, 1, 5), 5: (1, 2, 3, 3)}


def case(rank, swizzle, dtype, ragged):
    inner, unit = inner_of(swizzle, dtype), 16 // np.dtype(dtype).itemsize
    outer = (OUTER_RAGGED if ragged else OUTER_SHAPES)[rank]
    return Case((*outer, 2 * inner + (unit if ragged else 0)), (*OUTER_TILES[rank], inner), swizzle, dtype)


ALWAYS = [case(r, s, np.float32, True) for r, s in zip(range(1, 6), ("none", "128B", "32B", "64B", "128B"))]
ALWAYS += [case(2, "64B", np.float16, False), case(3, "128B", np.uint8, True), case(2, "32B", np.float64, True)]
GRID = [
    case(r, s, d, ragged)
    for r, s, ragged in itertools.product(range(1, 6), SWIZZLES, (False, True))
    for d in ((np.float32, np.float16, np.uint8) if r in (2, 3) else (np.float32,))
]
GRID += [case(2, s, d, True) for s in ("none", "128B") for d in DTYPES]


def grid(always, rest):
    """The cases that always run, and the others, which are slow."""
    more = [c for c in dict.fromkeys(rest) if c not in always]
    return [pytest.param(c, id=str(c)) for c in always] + [
        pytest.param(c, id=str(c), marks=pytest.mark.slow) for c in more
    ]


def tensor(place, array):
    return from_dlpack(place(array), assumed_align=16)


def atoms(op, array, *args, **options):
    """The atom and its tensor, as arguments."""
    made = {}

    def make(place, i):
        if id(place) not in made:
            made[id(place)] = cpasync.make_tiled_tma_atom(op, tensor(place, array), *args, **options)
        return made[id(place)][i]

    return [lambda place: make(place, 0), lambda place: make(place, 1)]


@pytest.mark.parametrize("column, says", [(3, "src begins at element 3 .*use a multiple of 4 elements"), (4, None)])
def test_a_tile_begins_at_a_multiple_of_16_bytes(column, says):
    src = aligned((32, 64), np.float32)
    layout = cute.make_ordered_layout((8, 16), (1, 0))
    load, coordinates = cpasync.make_tiled_tma_atom(LOAD, tensor(np.asarray, src), layout, layout.shape)
    with pytest.raises(CuteError, match=says) if says else nullcontext():
        cute.simulate(from_column(column))[1, 32](load, coordinates, layout)


def test_a_store_begins_inside_the_tensor():
    dst = aligned((32, 64), np.float32)
    layout = cute.make_ordered_layout((8, 16), (1, 0))
    store, coordinates = cpasync.make_tiled_tma_atom(STORE, tensor(np.asarray, dst), layout, layout.shape)
    with pytest.raises(CuteError, match=r"dst begins at coordinates \(0, -2\).*use coordinates of 0 or more"):
        cute.simulate(to_row(-2))[1, 32](store, coordinates, layout)


def seen_by(c, blocks):
    return aligned((blocks, math.prod(c.tile) * np.dtype(c.dtype).itemsize), np.uint8)


def flipped(place, array, align=16):
    """The tensor with its modes the other way round, the innermost first."""
    placed = place(array)
    order = tuple(reversed(range(array.ndim)))
    turned = placed.transpose(order) if isinstance(placed, np.ndarray) else placed.permute(order)
    return from_dlpack(turned, assumed_align=align)


def shown(place, seen):
    """(byte, block)"""
    return flipped(place, seen)


@pytest.mark.parametrize("c", grid(ALWAYS, GRID))
def test_tiles_go_there_and_back(run, c):
    src, dst, seen = aligned(c.shape, c.dtype), aligned(c.shape, c.dtype), seen_by(c, c.blocks)

    def check():
        np.testing.assert_array_equal(seen, c.images(src))
        np.testing.assert_array_equal(dst.view(np.uint8), src.view(np.uint8))

    args = [*atoms(LOAD, src, c.swizzled, c.tile), *atoms(STORE, dst, c.swizzled, c.tile)]
    args += [lambda place: shown(place, seen), DTYPES[c.dtype], c.swizzled]
    run(there_and_back, c.blocks, 32, args, outputs=[dst, seen], check=check, arch="sm_90")


MULTICASTS = [  # parts of at least 128 bytes
    (c, n)
    for n, r, s, ragged in itertools.product((2, 4), (2, 3, 4, 5), SWIZZLES, (False, True))
    if math.prod((c := case(r, s, np.float32, ragged)).tile) * 4 >= 128 * n
]


@pytest.mark.parametrize(
    "c, blocks",
    [
        pytest.param(c, n, id=f"{c}_to_{n}", marks=[] if i in (7, 42) else pytest.mark.slow)
        for i, (c, n) in enumerate(MULTICASTS)
    ],
)
def test_multicast_fills_each_block_of_the_cluster(run, c, blocks):
    src, seen = aligned(c.shape, c.dtype), seen_by(c, blocks)
    want = c.images(src)[:1]

    def check():
        np.testing.assert_array_equal(seen, np.broadcast_to(want, seen.shape))

    args = [*atoms(MULTICAST, src, c.swizzled, c.tile, blocks), lambda place: shown(place, seen)]
    args += [DTYPES[c.dtype], c.swizzled, cute.make_layout(blocks)]
    run(shared_among_blocks, blocks, 32, args, outputs=[seen], check=check, cluster=blocks, arch="sm_90")


REDUCED = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
REDUCTIONS = [(op, t) for op, types in TENSOR_REDUCTIONS.items() for t in types]
REDUCTIONS += [("add", "s64"), *((op, t) for op in ("and", "or", "xor") for t in ("s32", "s64"))]  # as unsigned ones
QUICK = [("add", "f32"), ("min", "s64"), ("xor", "s64"), ("dec", "u32")]


@pytest.mark.parametrize(
    "op, kind",
    [pytest.param(op, t, id=f"{op}_{t}", marks=[] if (op, t) in QUICK else pytest.mark.slow) for op, t in REDUCTIONS],
)
def test_reductions_combine_element_by_element(run, op, kind):
    c = case(3, "none", REDUCED[kind], True)
    src, dst = aligned(c.shape, c.dtype), aligned(c.shape, c.dtype)[::-1].copy()
    start = np.roll(dst, 1, axis=0)
    want = combine(op, start, src)

    def check():
        np.testing.assert_array_equal(dst, want)

    def filled(make):
        def argument(place):
            dst[...] = start
            return make(place)

        return argument

    operation = cpasync.CopyReduceBulkTensorTileS2GOp(ReductionOp(op))
    args = [*atoms(LOAD, src, c.layout, c.tile), *map(filled, atoms(operation, dst, c.layout, c.tile))]
    args += [DTYPES[c.dtype], c.layout, np.int64(0)]
    run(combined, c.blocks, 32, args, inouts=[dst], check=check, arch="sm_90")


@pytest.mark.parametrize("steps", [(1, 2, 1), (3, 1, 1), (2, 4, 1)], ids=str)
def test_element_strides_take_every_nth(run, steps):
    c = Case((9, 14, 8), (2, 4, 4))
    src = aligned(c.shape, c.dtype)
    taken = Case(tuple(-(-n // s) for n, s in zip(c.shape, steps)), c.tile)
    every = tuple(slice(None, None, s) for s in steps)
    dst, seen = aligned(c.shape, c.dtype), seen_by(c, taken.blocks)
    want = np.full(dst.shape, np.nan, np.float32)
    want[every] = src[every]

    def check():
        np.testing.assert_array_equal(seen, taken.images(src[every]))
        np.testing.assert_array_equal(dst, want)

    args = [*atoms(LOAD, src, c.layout, c.tile, element_strides=steps)]
    args += atoms(STORE, dst, c.layout, c.tile, element_strides=steps)
    args += [lambda place: shown(place, seen), DTYPES[c.dtype], c.layout]
    run(there_and_back, taken.blocks, 32, args, outputs=[dst, seen], check=check, arch="sm_90")


FILLS = [(np.float32, p) for p in ("none", "64B", "128B", "256B")]
FILLS += [(t, "128B") for t in (np.float16, ml_dtypes.bfloat16, np.float64)]


@pytest.mark.parametrize(
    "dtype, promotion",
    [
        pytest.param(t, p, id=f"{np.dtype(t).name}_{p}", marks=[] if t is np.float16 else pytest.mark.slow)
        for t, p in FILLS
    ],
)
def test_elements_outside_are_nan_if_wanted(run, dtype, promotion):
    c = case(2, "none", dtype, True)
    src, dst, seen = aligned(c.shape, c.dtype), aligned(c.shape, c.dtype), seen_by(c, c.blocks)
    nan = np.full(np.dtype(c.dtype).itemsize // 2, 0x7FF7, np.uint16).view(c.dtype)[0]  # an H200's, of every type
    want = c.images(src, nan)

    def check():
        np.testing.assert_array_equal(seen.view(np.uint8), want.view(np.uint8).reshape(seen.shape))
        np.testing.assert_array_equal(dst, src)

    load = atoms(LOAD, src, c.layout, c.tile, oob_fill="nan", l2_promotion=promotion)
    args = [*load, *atoms(STORE, dst, c.layout, c.tile), lambda place: shown(place, seen), DTYPES[c.dtype], c.layout]
    run(there_and_back, c.blocks, 32, args, outputs=[dst, seen], check=check, arch="sm_90")
