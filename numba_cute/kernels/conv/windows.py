# SPDX-License-Identifier: Apache-2.0
"""The gradient of filters with stride 1 on Hopper, whose taps share what is loaded of the images.

Let the rows of images that a row of taps meets be filled up with zeros to `pitch` pixels, so that a row's last zeros
are the next one's first; and let the output's gradient have zeros in as many places. Then a tap meets, for the places
in their order, the pixels in their order, from its own distance on: the gradient of the tap is a product over all
places. TMA's im2col mode counts pixels so, zeros too, and nothing is stored.

A stage has 64 places: of 64 outputs the gradient, and for each row of taps a window of pixels, which all taps of the
row multiply, each from another pixel on: they are columns of one wgmma, whose operand overlaps itself in shared memory.
Of nine taps that takes from the L2 cache 35 KB, and not 80, and reads from shared memory two thirds of what it can
give. Each of up to three warpgroups has a row of taps. A CTA sums a range of places, and writes its sums in float32.

The zeros beside the output's gradient are multiplied: where a pixel at the edge is infinite or NaN, taps that do not
meet it are NaN too.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.seam import traced

from ..gemm import multiply
from ..gemm.operands import load_op
from ..gemm.output import partition
from ..gemm.plan import mma_op, smem_layout
from .operands import UNIT, Walk, walked, whole  # UNIT: outputs, or channels, of a tile

DEPTH = 64  # places of a stage
MOST_ROWS, MOST_TAPS = 3, 3  # rows of taps of a CTA, and taps of each
STAGES = 6
SMEM = cute.target("sm_90a").smem_per_block - 1024
REGISTERS = {
    1: (0, 0),
    2: (40, 232),
    3: (56, 152),
}  # of a producer's and a consumer's thread, by the rows of a CTA; 0: as it is


# ---------------------------------------------------------------- in the kernel


@traced
def tile_at(coordinates: Any, place: Any, channel: Any, tap: Any, size: int) -> Any:
    """Give TMA's coordinates of a tile of so many places. place, channel: its first. tap: along W, H, D."""
    modes = cute.rank(coordinates.layout, mode=[1]) - 1
    tap = (*tap, 0, 0, 0)[:modes]
    there = cute.domain_offset((place, (channel, *tap)), coordinates)
    step, (along, *_) = there.stride
    return cute.make_tensor(there.iterator, cute.make_layout((size, UNIT), stride=(step, along)))


@cute.jit
def load(tma_y, mY, sY, tma_x, mX, sX, producer, begin, end, place, taps_h, apart, rows):
    """Bring the stages from `begin` to `end`, as TMA has room for them. A whole warp. place: the first output, row of
    taps, tap of a row, and channel. taps_h: rows of H. apart, rows: as of `windows`."""
    out, first_row, first_tap, channel = place
    pixels = cute.size(sX, mode=[0])
    for depth in range(begin, end):
        stage = producer.acquire_and_advance()
        first = cute.Int32(depth * DEPTH)
        tYsY, tYgY = partition(tma_y, sY, tile_at(mY, first, out, (), DEPTH))
        cute.copy(tma_y, tYgY, tYsY[None, stage.index], tma_bar_ptr=stage.barrier)
        for i in cute.range_constexpr(rows):
            row = first_row + i
            gX = tile_at(mX, first + first_tap * apart, channel, (0, row % taps_h, row // taps_h), pixels)
            tXsX, tXgX = partition(tma_x, sX, gX)
            cute.copy(tma_x, tXgX, tXsX[None, stage.index * rows + i], tma_bar_ptr=stage.barrier)
        stage.commit()
    producer.tail()


@cute.jit
def store(acc, sums, taps, place, thread):
    """Write a warpgroup's sums, of which each thread has pairs. sums, taps: as of `windows`. place: the part, the first
    output, the row of taps, the first of its taps, and the first channel."""
    part, out, row, first, channel = place
    along = cute.size(acc) // (UNIT // 2)
    each = cute.make_tensor(acc.iterator, cute.make_layout((2, 2, UNIT // 8, along)))
    down, across = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
    whole_row = taps[1] * taps[2] * sums[1]
    at = sums[0].iterator + cute.Int64(part) * sums[2] + cute.Int64(out + down) * cute.Int64(whole_row)
    for j in cute.range_constexpr(along):
        tap = first + j
        if tap < taps[2]:
            there = at + cute.Int64((row * taps[2] + tap) * sums[1] + channel + across)
            for half in cute.range_constexpr(2):
                for i in cute.range_constexpr(UNIT // 8):
                    arch.store(there + 8 * i, (each[0, half, i, j], each[1, half, i, j]))
                there = there + cute.Int64(8 * whole_row)


def windows(
    dtype, tma_y, mY, tma_x, mX, sums, tiled_mma, layouts, apart, taps, blocks, depths, rows: cute.Constexpr
):  # fmt: skip
    """sums: where they begin, of whole channels, and how far parts are apart. apart: places from tap to tap of a row.
    taps: rows of H, all rows, and taps of a row. blocks: of a row's taps, of rows of taps, of channels, of outputs.
    depths: stages of a part, and how many parts have one more. rows: of taps, that a CTA has."""
    y_layout, x_layout, a_layout, b_layout = layouts
    stages = cute.size(y_layout, mode=[2])
    along = cute.size(b_layout, mode=[0]) // UNIT
    tidx, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    if warp_idx == 0:
        cpasync.prefetch_descriptor(tma_y)
        cpasync.prefetch_descriptor(tma_x)
    smem = utils.SmemAllocator()
    sY = smem.allocate_tensor(dtype, y_layout.outer, 1024, y_layout.inner, "sY")
    sX = smem.allocate_tensor(dtype, x_layout.outer, 1024, x_layout.inner, "sX")
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4 * rows),
        tx_count=(DEPTH + rows * cute.size(x_layout, mode=[0])) * UNIT * dtype.width // 8,
        barrier_storage=smem.allocate_array(cute.Int64, 2 * stages, name="barriers"),
        tidx=tidx,
        name="mainloop",
    )
    producer, consumer = mainloop.make_participants()
    left = cute.Int32(block)
    first_tap, left = cute.Int32(left % blocks[0] * along), left // blocks[0]
    first_row, left = cute.Int32(left % blocks[1] * rows), left // blocks[1]
    channel, left = cute.Int32(left % blocks[2] * UNIT), left // blocks[2]
    out, part = cute.Int32(left % blocks[3] * UNIT), cute.Int32(left // blocks[3])
    begin = cute.Int32(part * depths[0] + min(part, cute.Int32(depths[1])))
    end = cute.Int32(begin + depths[0] + (part < depths[1]))
    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written the images and the gradient

    if warp_idx < 4:
        if cute.const_expr(rows > 1):
            arch.setmaxregister_decrease(REGISTERS[rows][0])
        if warp_idx == 0:
            place = (out, first_row, first_tap, channel)
            load(tma_y, mY, sY, tma_x, mX, sX, producer, begin, end, place, taps[0], apart, rows)
    else:
        if cute.const_expr(rows > 1):
            arch.setmaxregister_increase(REGISTERS[rows][1])
        own = cute.Int32((warp_idx - 4) // 4)  # which row of the CTA's
        thread = cute.Int32(tidx % 128)
        mma = tiled_mma.get_slice(thread)
        tCrY = tiled_mma.make_fragment_A(mma.partition_A(cute.make_tensor(sY.iterator, a_layout)))
        tCrX = tiled_mma.make_fragment_B(mma.partition_B(cute.make_tensor(sX.iterator, b_layout)))
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((UNIT, UNIT * along)))
        multiply.plainly(consumer, tiled_mma, acc, tCrY, tCrX[None, None, None, own, None], cute.Int32(end - begin))
        if first_row + own < taps[1]:
            store(acc, sums, taps, (part, out, first_row + own, first_tap, channel), thread)


# ---------------------------------------------------------------- on the host


class Window(NamedTuple):
    """A cut of the gradient of filters. rows: of taps, that a CTA has. along: taps of a row that it has. parts: how
    many share the places."""

    rows: int
    along: int
    parts: int


def pitch_of(walk: Walk, extents: tuple[int, ...]) -> int | None:
    """Count the pixels of a row that is filled up, which are the places of one; None where TMA cannot count them, or
    the filter makes steps along W. walk, extents: of the images."""
    (*_, n), (*_, out), (*_, before), (*_, after) = extents, walk.out(extents), walk.before, walk.after
    if walk.stride[-1] > 1 or min(before, after) < 0:
        return None
    pitch = max(out, n + before, n + after)
    most = {1: 1 << 15, 2: 1 << 7, 3: 1 << 4}[len(extents)]  # what a tensor map's corners reach
    return pitch if max(before, abs(pitch - n - before), pitch - out) < most else None


def walks_of(walk: Walk, extents: tuple[int, ...], pitch: int) -> tuple[Walk, Walk]:
    """Give the walks over the output's gradient, and over the images, that go from place to place. pitch: as of
    `pitch_of`. The others: of the images."""
    one, none, (*_, n), (*_, out) = (1,) * len(extents), (0,) * (len(extents) - 1), extents, walk.out(extents)
    last = lambda numbers, x: (*numbers[:-1], x)  # noqa: E731
    after = last(walk.after, pitch - n - walk.before[-1])
    of_x = Walk(last(walk.taps, 1), last(walk.stride, 1), walk.before, after, last(walk.dilation, 1))
    return Walk(one, one, (*none, 0), (*none, pitch - out), one), of_x


def places_of(walk: Walk, images: int, extents: tuple[int, ...], pitch: int) -> int:
    """Count the places. images, extents: of the images. pitch: as of `pitch_of`."""
    return images * math.prod(walk.out(extents)[:-1]) * pitch


def window_of(along: int, dilation: int) -> int:
    """Count the pixels of a window, whole rows of a swizzle. along: taps of a row. dilation: between them."""
    return whole(DEPTH + (along - 1) * dilation, 8)


def stages_of(cut: Window, dilation: int) -> int:
    """Count the stages that there is room for."""
    nbytes = (DEPTH + cut.rows * window_of(cut.along, dilation)) * UNIT * 2
    return min(STAGES, SMEM // nbytes)


def arguments(x: Any, dy: Any, sums: Any, walk: Walk, cut: Window, dtype: Any) -> tuple[Any, ...]:
    """Give the kernel's arguments. x: (N, …, C), dy: (N, …, outputs), both with channels contiguous. sums: float32,
    (parts, outputs, taps, channels), of whole tiles of outputs and channels. dtype: of the operands."""
    extents = tuple(map(int, x.shape[1:-1]))
    pitch = pitch_of(walk, extents)
    assert pitch is not None
    parts, outs, _, channels = map(int, sums.shape)
    apart, stages, (rows, along, _) = walk.dilation[-1], stages_of(cut, walk.dilation[-1]), cut
    pixels = window_of(along, apart)
    y_layout = smem_layout(dtype, 1, DEPTH, UNIT, stages)
    x_layout = smem_layout(dtype, 1, pixels, UNIT, stages * rows)
    a_layout = cute.make_layout((UNIT, DEPTH, stages), stride=(1, UNIT, UNIT * DEPTH))
    row = UNIT * pixels
    b_layout = cute.make_layout(
        ((UNIT, along), DEPTH, rows, stages), stride=((1, UNIT * apart), UNIT, row, row * rows)
    )  # fmt: skip
    by = warpgroup.OperandMajorMode.MN
    tiled_mma = cute.make_tiled_mma(mma_op(dtype, UNIT * along, by, by), (1, 1, 1))
    count, given = places_of(walk, int(x.shape[0]), extents, pitch), []
    both = zip((dy, x), walks_of(walk, extents, pitch), (y_layout, x_layout), (DEPTH, pixels))
    for array, own, layout, size in both:
        smem = cute.slice_(layout, (None, None, 0))
        atom, there = walked(load_op(1, im2col=True), array, dtype, smem, (size, UNIT), own)
        _, (_, *more) = there.shape
        shape = cute.Int32(count + size), (cute.Int32(whole(int(array.shape[-1]), UNIT)), *map(cute.Int32, more))
        given += [atom, cute.make_tensor(there.iterator, cute.make_layout(shape, stride=there.stride))]
    *outer, last = walk.taps
    taps = (outer or [1])[-1], math.prod(outer), last
    blocks = math.ceil(last / along), math.ceil(taps[1] / rows), channels // UNIT, outs // UNIT
    numbers = [tuple(map(cute.Int32, of)) for of in (taps, blocks, divmod(math.ceil(count / DEPTH), parts))]
    every = cute.make_layout(cute.Int64(int(cute.size(sums))))
    held = cute.make_tensor(sums.iterator, every), cute.Int32(channels), cute.Int64(int(sums.stride[0]))
    layouts = y_layout, x_layout, a_layout, b_layout
    return (dtype, *given, held, tiled_mma, layouts, cute.Int32(apart), *numbers, rows)


@functools.cache
def kernel_of(rows: int) -> Any:
    """Give the kernel of so many rows of taps: its threads are bounded, and so its registers."""
    return cuda.jit(launch_bounds=(threads_of(rows), 1))(windows)


def threads_of(rows: int) -> int:
    """Count the threads of a CTA."""
    return 128 * (rows + 1)


def grid_of(walk: Walk, outs: int, channels: int, cut: Window) -> int:
    """Count the CTAs. outs, channels: of the filters."""
    *outer, last = walk.taps
    tiles = math.ceil(last / cut.along) * math.ceil(math.prod(outer) / cut.rows)
    return tiles * math.ceil(outs / UNIT) * math.ceil(channels / UNIT) * cut.parts
