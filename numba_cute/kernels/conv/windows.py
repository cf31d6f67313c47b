# SPDX-License-Identifier: Apache-2.0
"""The gradient of filters with stride 1 on Hopper, whose taps share what is loaded of the images.

Let images be filled up with zeros to `pitch` pixels a row, so that a row's last ones are the next one's first, and so
with rows; and let the output's gradient have zeros in as many places. Then a tap meets, for the places in their order,
the pixels in their order, from its own distance on: the gradient of the tap is a product over all places. TMA's im2col
mode counts pixels so, zeros too, and nothing is stored.

A stage has 64 places: of 64 outputs the gradient, and for each row of taps a window of pixels, which all taps of the row
multiply, each from another pixel on: they are columns of one wgmma, whose operand overlaps itself in shared memory. Of
nine taps that takes from the L2 cache 35 KB, and not 80, and reads from shared memory two thirds of what it can give.
Each of up to three warpgroups has a row of taps. A CTA sums a range of places, and writes its sums in float32.

The zeros beside the output's gradient are multiplied: where pixels are infinite or NaN, all taps that come near are NaN.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warpgroup

from .. import entry
from ..gemm.multiply import release
from ..gemm.operands import load_op, mapped
from ..gemm.output import partition
from ..gemm.plan import mma_op, smem_layout
from .operands import Walk, walked, whole
from .tensors import channels_last

UNIT, DEPTH = 64, 64  # outputs, or channels, of a tile; places of a stage
MOST_ROWS, MOST_TAPS = 3, 3  # rows of taps of a CTA, and taps of each
STAGES = 6
SMEM = cute.target("sm_90a").smem_per_block - 1024
REGISTERS = {
    1: (0, 0),
    2: (40, 232),
    3: (56, 152),
}  # of a producer's and a consumer's thread, by the rows of a CTA; 0: as it is


# ---------------------------------------------------------------- in the kernel


def windows(
    dtype, tma_y, mY, tma_x, mX, sums, tiled_mma, layouts, steps, taps, blocks, depths, rows: cute.Constexpr
):  # fmt: skip
    """sums: where they begin, of whole channels, and how far parts are apart. steps: places from row to row of taps, of H and of
    D, and from tap to tap. taps: rows of H, all rows, and taps of a row. blocks: of a row's taps, of rows of taps, of
    channels, of outputs. depths: stages of a part, and how many parts have one more. rows: of taps, that a CTA has."""
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
            for depth in range(begin, end):
                stage = producer.acquire_and_advance()
                place = cute.Int32(depth * DEPTH)
                gY = cute.local_tile(cute.domain_offset((place, out), mY), (DEPTH, UNIT), (0, 0))
                tYsY, tYgY = partition(tma_y, sY, gY)
                cute.copy(tma_y, tYgY, tYsY[None, stage.index], tma_bar_ptr=stage.barrier)
                for i in cute.range_constexpr(rows):
                    row = first_row + i
                    from_row = row % taps[0] * steps[0] + row // taps[0] * steps[1]
                    there = place + from_row + first_tap * steps[2]
                    gX = cute.local_tile(
                        cute.domain_offset((cute.Int32(there), channel), mX),
                        (cute.size(x_layout, mode=[0]), UNIT),
                        (0, 0),
                    )
                    tXsX, tXgX = partition(tma_x, sX, gX)
                    cute.copy(tma_x, tXgX, tXsX[None, stage.index * rows + i], tma_bar_ptr=stage.barrier)
                stage.commit()
            producer.tail()
    else:
        if cute.const_expr(rows > 1):
            arch.setmaxregister_increase(REGISTERS[rows][1])
        own = cute.Int32((warp_idx - 4) // 4)  # which row of the CTA's
        thread = cute.Int32(tidx % 128)
        mma = tiled_mma.get_slice(thread)
        adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        tCrY = tiled_mma.make_fragment_A(mma.partition_A(cute.make_tensor(sY.iterator, a_layout)))
        tCrX = tiled_mma.make_fragment_B(mma.partition_B(cute.make_tensor(sX.iterator, b_layout)))
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((UNIT, UNIT * along)))
        done = mainloop.make_consumer()
        for depth in range(begin, end):
            stage = consumer.wait_and_advance()
            window = stage.index * rows + own
            warpgroup.fence()
            first = tiled_mma.set(warpgroup.Field.ACCUMULATE, depth > begin)
            cute.gemm(first, acc, tCrY[None, None, 0, stage.index], tCrX[None, None, 0, window], acc)
            for k in cute.range_constexpr(1, cute.size(tCrY, mode=[2])):
                cute.gemm(adds, acc, tCrY[None, None, k, stage.index], tCrX[None, None, k, window], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(1)  # the tensor cores may still read this stage, but not the one before
            if depth > begin:
                release(done)
        warpgroup.wait_group(0)
        release(done)
        row = first_row + own
        if row < taps[1]:
            down, across = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
            each = cute.make_tensor(acc.iterator, cute.make_layout((2, 2, UNIT // 8, along)))
            whole_row = taps[1] * taps[2] * sums[1]
            at = sums[0].iterator + cute.Int64(part) * sums[2] + cute.Int64(out + down) * cute.Int64(whole_row)
            for j in cute.range_constexpr(along):
                tap = first_tap + j
                if tap < taps[2]:
                    there = at + cute.Int64((row * taps[2] + tap) * sums[1] + channel + across)
                    for half in cute.range_constexpr(2):
                        for i in cute.range_constexpr(UNIT // 8):
                            arch.store(there + 8 * i, (each[0, half, i, j], each[1, half, i, j]))
                        there = there + cute.Int64(8 * whole_row)


# ---------------------------------------------------------------- on the host


class Window(NamedTuple):
    """How the gradient of filters is cut. rows: of taps, that a CTA has. along: taps of a row that it has. parts: how
    many share the places."""

    rows: int
    along: int
    parts: int


@dataclass(frozen=True)
class Places:
    """Images filled up, and the places in them. pitch: pixels of a row, rows, and so on, outermost mode first. far:
    places from tap to tap along each mode."""

    pitch: tuple[int, ...]
    far: tuple[int, ...]

    @staticmethod
    def of(walk: Walk, extents: tuple[int, ...]) -> Places | None:
        """Find the places of a walk with stride 1 over images of such extents; None where TMA cannot count them."""
        if max(walk.stride) > 1 or min(*walk.before, *walk.after) < 0:
            return None
        modes = list(zip(extents, walk.out(extents), walk.before, walk.after))
        pitch = tuple(max(out, n + before, n + after) for n, out, before, after in modes)
        most = {1: 1 << 15, 2: 1 << 7, 3: 1 << 4}[len(extents)]  # what a tensor map's corners reach
        corners = (x for p, (n, out, before, _) in zip(pitch, modes) for x in (before, abs(p - n - before), p - out))
        if max(corners) >= most:
            return None
        inner = [math.prod(pitch[i + 1 :]) for i in range(len(pitch))]
        return Places(pitch, tuple(d * n for d, n in zip(walk.dilation, inner)))

    def walks(self, walk: Walk, extents: tuple[int, ...]) -> tuple[Walk, Walk]:
        """Give the walks of a pixel at a time over the output's gradient, and over the images."""
        one = (1,) * len(extents)
        out = walk.out(extents)
        of_y = tuple(p - n for p, n in zip(self.pitch, out))
        of_x = tuple(p - n - before for p, n, before in zip(self.pitch, extents, walk.before))
        return Walk(one, one, (0,) * len(one), of_y, one), Walk(one, one, walk.before, of_x, one)


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
    places = Places.of(walk, extents)
    assert places is not None
    parts, outs, _, channels = map(int, sums.shape)
    apart, stages, (rows, along, _) = walk.dilation[-1], stages_of(cut, walk.dilation[-1]), cut
    pixels = window_of(along, apart)
    y_layout = smem_layout(dtype, 1, DEPTH, UNIT, stages)
    x_layout = smem_layout(dtype, 1, pixels, UNIT, stages * rows)
    a_layout = cute.make_layout((UNIT, DEPTH, stages), stride=(1, UNIT, UNIT * DEPTH))
    b_layout = cute.make_layout(
        ((UNIT, along), DEPTH, stages * rows), stride=((1, UNIT * apart), UNIT, UNIT * pixels)
    )  # fmt: skip
    by = warpgroup.OperandMajorMode.MN
    tiled_mma = cute.make_tiled_mma(mma_op(dtype, UNIT * along, by, by), (1, 1, 1))
    count, given = int(x.shape[0]) * math.prod(places.pitch), []
    for array, own, layout, size in zip((dy, x), places.walks(walk, extents), (y_layout, x_layout), (DEPTH, pixels)):
        smem = cute.slice_(layout, (None, None, 0))
        atom, there = walked(load_op(1, im2col=True), array, dtype, smem, (size, UNIT), own)
        shape = (
            cute.Int32(count + sum((t - 1) * f for t, f in zip(walk.taps, places.far))),
            cute.Int32(whole(int(array.shape[-1]), UNIT)),
        )
        given += [
            atom,
            cute.make_tensor(there.iterator, cute.make_layout(shape, stride=(there.stride[0], there.stride[1][0]))),
        ]
    *outer, last = walk.taps
    far = (0, 0, *places.far)[-3:]
    depths = math.ceil(count / DEPTH)
    steps = far[1], far[0], far[2]
    taps = (outer or [1])[-1], math.prod(outer), last
    blocks = math.ceil(last / along), math.ceil(taps[1] / rows), channels // UNIT, outs // UNIT
    numbers = [tuple(map(cute.Int32, of)) for of in (steps, taps, blocks, divmod(depths, parts))]
    every = cute.make_layout(cute.Int64(int(cute.size(sums))))
    held = cute.make_tensor(sums.iterator, every), cute.Int32(channels), cute.Int64(int(sums.stride[0]))
    return (dtype, *given, held, tiled_mma, (y_layout, x_layout, a_layout, b_layout), *numbers, rows)


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
