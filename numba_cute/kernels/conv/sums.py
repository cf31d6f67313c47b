# SPDX-License-Identifier: Apache-2.0
"""The sums of parts of the pixels, added up to the gradient of filters, in its type and where it lies: one launch.

Several threads add the parts of the same elements, each every so manyth, and meet in shared memory: of few elements and
many parts one thread for each would wait for memory most of the time. The order is the same each time.
"""

from __future__ import annotations

import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils

from .. import entry
from ..moves.places import modes, spread

THREADS = 256
VECTOR = 4  # sums that a thread reads at once
AHEAD = 4  # parts that it has on their way
SLICES = 8  # threads that add the same elements, where there are many parts


@cuda.jit(launch_bounds=THREADS)
def add_up(
    sums, total, of_sums, of_total, count, parts, apart, edge, vector: cute.Constexpr, slices: cute.Constexpr,
    overlaps: cute.Constexpr,
):  # fmt: skip
    """of_sums, of_total: where vectors lie, as of `spread`. count: vectors of elements. parts: how many there are,
    `apart` elements each. edge: elements of a row, and those of them that are in the first part alone. vector: elements
    of one. slices: threads that add the same ones. overlaps: whether the launch begins while the one before ends, which
    makes the sums."""
    if cute.const_expr(overlaps):
        arch.griddepcontrol_wait()
    each = THREADS // slices
    thread, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    own, first = cute.Int32(thread % each), cute.Int32(thread // each)
    index = cute.Int32(block * each + own)
    made = cute.make_rmem_tensor(vector, cute.Float32)
    made.fill(0.0)
    shared = cute.Int32(min(index, cute.Int32(count - 1)))
    offset = spread(shared, of_sums)
    if cute.Int32(offset) % edge[0] < edge[1]:
        parts = cute.Int32(1)
    begin = cute.make_tensor(sums).iterator + offset
    some = cute.make_rmem_tensor((vector, AHEAD), cute.Float32)
    for part in range(first, parts, slices * AHEAD):
        for i in cute.range_constexpr(AHEAD):  # all are asked for before any is looked at
            there = cute.Int32(min(cute.Int32(part + i * slices), cute.Int32(parts - 1)))
            place = begin + cute.Int64(there) * apart
            source = cute.make_ptr(cute.Float32, place.toint(), cute.AddressSpace.gmem, 4 * vector)
            cute.autovec_copy(cute.make_tensor(source, cute.make_layout(vector)), some[None, i])
        for i in cute.range_constexpr(AHEAD):
            if part + i * slices < parts:
                for j in cute.range_constexpr(vector):
                    made[j] = made[j] + some[j, i]
    if cute.const_expr(slices > 1):
        smem = utils.SmemAllocator()
        held = smem.allocate_tensor(cute.Float32, cute.make_layout((vector, each, slices)), 16, None, "held")
        cute.autovec_copy(made, held[None, own, first])
        arch.sync_threads()
        made.fill(0.0)
        if first == 0:
            for i in cute.range_constexpr(slices):
                for j in cute.range_constexpr(vector):
                    made[j] = made[j] + held[j, own, i]
    if first == 0 and index < count:
        target = cute.make_tensor(total)
        rounded = cute.make_rmem_tensor(vector, target.element_type)
        rounded.store(made.load().to(target.element_type))
        at = (target.iterator + spread(index, of_total)).toint()
        nbytes = vector * target.element_type.width // 8
        end = cute.make_ptr(target.element_type, at, cute.AddressSpace.gmem, nbytes)
        cute.autovec_copy(rounded, cute.make_tensor(end, cute.make_layout(vector)))


def plan(sums: Any, total: Any, strides: tuple[int, ...], edge: int) -> Any:
    """Plan total = sums.sum(0). sums: (parts, rows, columns), float32, dense. total: of other shape. strides: of each
    mode of it, those of a part's elements. edge: columns that are in the first part alone."""
    overlaps = entry.family_of(entry.target_at(sums)) != entry.WARPS
    grid, static = arguments(sums, total, strides, edge, overlaps)
    bound = cute.launch(add_up, grid=grid, block=THREADS, pdl=overlaps)
    return lambda sums, total: bound(sums, total, *static)


def arguments(
    sums: Any, total: Any, strides: tuple[int, ...], edge: int, overlaps: bool
) -> tuple[int, tuple[Any, ...]]:
    """Give the grid, and what `add_up` takes beside both arrays. overlaps: as of it. The others: as of `plan`."""
    steps = entry.strides(total)
    order = sorted(range(len(steps)), key=lambda i: (strides[i], steps[i]))
    shown = [(total.shape[i], strides[i], steps[i]) for i in order if total.shape[i] > 1] or [(1, 1, 1)]
    (n, of_sums, of_total), *rest = shown
    alike = of_sums == of_total == 1 and n % VECTOR == 0 and entry.aligned(total) and entry.aligned(sums)
    vector = VECTOR if alike and not any(x % VECTOR for _, *both in rest for x in both) else 1
    shown = [(n // vector, of_sums * vector, of_total * vector), *rest]
    extents, both = [n for n, _, _ in shown], zip(*(steps for _, *steps in shown))
    count, parts = math.prod(extents), sums.shape[0]
    slices = SLICES if parts > 2 * AHEAD else 1
    apart = entry.strides(sums)[0] if parts > 1 else 0
    static = (
        *(modes(extents, of) for of in both), cute.Int32(count), cute.Int32(parts), cute.Int64(apart),
        (cute.Int32(sums.shape[-1]), cute.Int32(edge)), vector, slices, overlaps,
    )  # fmt: skip
    return math.ceil(count / (THREADS // slices)), static


ADD_UP = entry.Planned(plan, "convolution")
