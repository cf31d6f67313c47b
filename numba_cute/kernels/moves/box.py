# SPDX-License-Identifier: Apache-2.0
"""Boxes of any modes and any alignment, by way of shared memory.

A block moves a box: of each mode some elements, so that those that lie together in x, and those that lie together in y,
make *runs* as long as possible. It reads the vectors of 16 bytes that x's runs touch, leaves their elements in shared
memory in x's order, gathers from there the vectors that lie in y's runs, and writes them. Where runs of y do not begin
and end with a vector, the elements before the first and after the last vector are moved alone, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.kernels import entry, tuning
from numba_cute.kernels.moves.places import VECTOR, Moved, bring, divisor
from numba_cute.seam import frozen, traced

__all__ = ["THREADS", "Box", "move", "work"]

THREADS = 256


@frozen
class Box:
    """The static parameters of a box. width: bytes of an element. places: elements that shared memory has room for.
    flight: vectors of a thread that are on their way at once. whole_in, whole_out: True if all vectors of x's runs, and
    of y's, lie in them. together: True if those of x stay together in shared memory. dense: True if all vectors between
    x's first and last element may be read. even: True if the elements of a vector of y lie in shared memory at equal
    steps. far: True if offsets in a box take 64 bits. slack: places before and after a run, for what comes with its
    vectors. in_runs, out_runs: the modes of which there are several runs in x, and in y; in_length, out_length: the
    mode whose extent is the length of a run. Modes are those of `grid`."""

    width: int
    places: int
    flight: int
    whole_in: bool
    whole_out: bool
    together: bool
    dense: bool
    even: bool
    far: bool
    slack: int
    in_runs: tuple[int, ...]
    in_length: int
    out_runs: tuple[int, ...]
    out_length: int

    @property
    def vector(self) -> int:
        """Elements of a vector."""
        return VECTOR // self.width

    @property
    def words(self) -> int:
        """Numbers that make an element."""
        return 2 if self.width == 16 else 1

    @property
    def offset(self) -> Any:
        """The type of an offset in a box, in elements."""
        return cute.Int64 if self.far else cute.Int32

    @property
    def number(self) -> Any:
        """The type of such a number."""
        return {1: cute.Uint8, 2: cute.Uint16, 4: cute.Uint32}.get(self.width, cute.Uint64)


@traced
def elements(t: Any, start: Any, box: Box) -> tuple[Any, Any, Any]:
    """Find the memory of `t` from the vector on in which its element `start` lies, as (numbers of an element, elements,
    vectors), which element of it `start` is, and which element of a vector `t`'s first is."""
    first = cute.make_tensor(t).iterator.toint()
    at = first + start * box.width
    pointer = cute.make_ptr(box.number, at - at % VECTOR, cute.AddressSpace.gmem, VECTOR)
    shape = (box.words, box.vector, cute.Int64(1 << 40))
    stride = (1, box.words, box.words * box.vector)
    beside = cute.Int32(at % VECTOR) // box.width
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride)), beside, first % VECTOR // box.width


@traced
def begun(block: Any, grid: Any) -> tuple[Any, Any, Any]:
    """Find where box `block` begins, in x and in y, and how much of each mode is in it."""
    left, in_x, in_y, there = cute.Int32(block), cute.Int64(0), cute.Int64(0), []
    for boxes, extent, whole, x_stride, y_stride in grid:
        left, at = boxes.divmod(left)
        at = at * extent
        in_x, in_y = in_x + cute.Int64(at) * x_stride, in_y + cute.Int64(at) * y_stride
        there.append(cute.min(extent, whole - at))
    return in_x, in_y, tuple(there)


@traced
def run(index: Any, runs: Any, numbers: Any, start: Any, there: Any, box: Box) -> tuple[Any, Any, Any]:
    """Find run `index`: where it begins in memory and in shared memory, and whether it is there.

    runs: of the modes of which there are several, a divisor, and strides in both. numbers: of these modes. start: where
    the box begins. there: extents of all modes in it.
    """
    left, at, place, inside = cute.Int32(index), box.offset(start), cute.Int32(box.slack), cute.Boolean(True)
    for n, ((extent, stride, step), mode) in enumerate(zip(runs, numbers)):
        c = left
        if n + 1 < len(runs):
            left, c = extent.divmod(left)
        at, place = at + box.offset(c) * stride, place + c * step
        inside = inside & (c < there[mode])
    return at, place, inside


@traced
def touched(index: Any, count: Any, side: Any, numbers: Any, start: Any, there: Any, length: Any, box: Box) -> Any:
    """Find vector `index` of the `count` that runs touch: (its number in memory, the place of its first element in
    shared memory, which element of the run that is, whether all are of the run, whether any are). side: (divisor by the
    vectors that a run touches at most, runs)."""
    (vectors_of_run, runs), vector = side, box.vector
    nth, q = vectors_of_run.divmod(cute.Int32(index))
    at, place, inside = run(nth, runs, numbers, start, there, box)
    first = q * vector - cute.Int32(at % vector)
    inside = inside & (cute.Int32(index) < count)
    whole = inside & (first >= 0) & (first + vector <= length)
    return at // vector + box.offset(q), place, first, whole, inside & (first < length)


@traced
def inner(index: Any, of: Any) -> Any:
    """Find the place of element `index` of a run of y, from where the run begins. of: (divisor, step) of its modes."""
    left, at = cute.Int32(index), cute.Int32(0)
    for extent, step in of[:-1]:
        left, c = extent.divmod(left)
        at = at + c * step
    return at + left * of[-1][1]


@traced
def gathered(box: Box, place: Any, first: Any, e: int, places: Any) -> Any:
    """Find the place of element `e` of a vector whose first is number `first` of a run that begins at `place`."""
    if box.even:
        return place + inner(first, places) + e * places[0][1]
    return place + inner(first + e, places)


@traced
def edge(index: Any, count: Any, runs: Any, numbers: Any, start: Any, there: Any, length: Any, box: Box) -> Any:
    """Find element `index` of the ends of runs, `vector` at either: (where it is in memory, the place in shared memory
    where its run begins, which element of it it is, whether it is not part of a whole vector)."""
    vector = box.vector
    nth, k = cute.Int32(index) // (2 * vector), cute.Int32(index) % (2 * vector)
    at, place, inside = run(nth, runs, numbers, start, there, box)
    head = cute.min(cute.Int32((-at) % vector), length)
    tail = cute.max(length - cute.Int32((at + box.offset(length)) % vector), head)
    last = k >= vector
    element = cute.where(last, tail + k - vector, k)
    end = cute.where(last, length, head)
    return at + box.offset(element), place, element, inside & (cute.Int32(index) < count) & (element < end)


@traced
def bounds(start: Any, before: Any, count: Any, box: Box) -> tuple[Any, Any]:
    """Find the first vector that lies in x's `count` elements, and the first that does not again, counted from the one
    of element `start`. before: elements of the first vector before x."""
    zero, most = (start + before) // box.vector, cute.Int64(1 << 30)
    low = (before + cute.Int64(box.vector - 1)) // box.vector - zero
    high = (before + count) // box.vector - zero
    return box.offset(cute.max(low, -most)), box.offset(cute.min(high, most))


@traced
def readable(box: Box, at: Any, whole: Any, some: Any, within: Any) -> Any:
    """Say whether vector `at` of x may be read as a whole: it lies in its run, or in x."""
    if box.whole_in or not box.dense:
        return whole
    return some & (at >= within[0]) & (at < within[1])


@cuda.jit(launch_bounds=THREADS)
def move(x_memory, y_memory, grid, x_side, y_side, lengths, places, counts, box):
    """y = x, a box to a block.

    grid: of each mode a divisor by its boxes, a box's extent, its extent, its strides in x and in y. x_side, y_side: as
    of `touched`. lengths: elements of a run in x and in y for one of the mode that says how long it is. places: as of
    `inner`. counts: elements of x's memory; vectors that runs touch in x, and in y; elements of the ends of y's runs.
    """
    tidx, _, _ = arch.thread_idx()
    n, vector = box.flight, box.vector
    x_start, y_start, there = begun(arch.block_idx()[0], grid)
    x, x_beside, x_before = elements(x_memory, x_start, box)
    y, y_beside, _ = elements(y_memory, y_start, box)
    within = bounds(x_start, x_before, counts[0], box)
    x_length = cute.Int32(lengths[0] * there[box.in_length])
    y_length = cute.Int32(lengths[1] * there[box.out_length])
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(box.number, cute.make_layout((box.words, box.places)), VECTOR, None, "box")

    for begin in range(0, counts[1], THREADS * n):
        held = cute.make_rmem_tensor((box.words, vector, n), box.number)
        places_in = cute.make_rmem_tensor(n, cute.Int32)
        for k in cute.range_constexpr(n):
            at, place, first, whole, some = touched(
                begin + k * THREADS + tidx, counts[1], x_side, box.in_runs, x_beside, there, x_length, box
            )
            places_in[k] = -vector
            if readable(box, at, whole, some, within):
                bring(x[None, None, at], held[None, None, k])
                places_in[k] = place + first
            elif cute.const_expr(not box.whole_in) and some:
                for e in range(vector):
                    if first + e >= 0 and first + e < x_length:
                        s[0, place + first + e] = x[0, e, at]
        for k in cute.range_constexpr(n):
            if places_in[k] >= 0:
                if cute.const_expr(box.together):
                    into = cute.local_tile(s, (box.words, vector), (0, cute.Int32(places_in[k] // vector)))
                    cute.autovec_copy(held[None, None, k], into)
                else:
                    for e in cute.range_constexpr(vector):
                        cute.autovec_copy(held[None, e, k], s[None, places_in[k] + e])
    arch.sync_threads()

    for index in range(tidx, counts[2], THREADS):
        at, place, first, whole, _ = touched(index, counts[2], y_side, box.out_runs, y_beside, there, y_length, box)
        if whole:
            piece = cute.make_rmem_tensor((box.words, vector), box.number)
            for e in cute.range_constexpr(vector):
                cute.autovec_copy(s[None, gathered(box, place, first, e, places)], piece[None, e])
            cute.autovec_copy(piece, y[None, None, at])
    if cute.const_expr(not box.whole_out):
        for index in range(tidx, counts[3], THREADS):
            at, place, element, alone = edge(index, counts[3], y_side[1], box.out_runs, y_beside, there, y_length, box)
            if alone:
                y[0, at % vector, at // vector] = s[0, place + inner(element, places)]


def _extents(of: Moved, most: int, longer: int) -> list[int]:
    """Choose the extents of a box: the shorter of the two runs grows until there are `most` elements, or that of y, if
    it is not so many times as long."""
    extents = [1] * len(of.shape)
    while True:
        sides = []
        for order, length in ((of.in_x(), longer), (range(len(of.shape)), 1)):
            grows = -1
            for m in order:
                length *= extents[m]
                if extents[m] < of.shape[m]:
                    grows = m
                    break
            sides.append((length, grows))
        for _, m in sorted((s for s in sides if s[1] >= 0), key=lambda s: s[0]):
            more = of.shape[m] if of.shape[m] <= 2 * extents[m] else 2 * extents[m]
            if math.prod(extents) // extents[m] * more <= most:
                extents[m] = more
                break
        else:
            return extents


class Side:
    """The runs of a box in x or in y. order: the modes as they lie there. strides: of all modes. aligned: whether
    memory begins with a vector."""

    def __init__(
        self, of: Moved, extents: list[int], order: Sequence[int], strides: Sequence[int], aligned: bool
    ) -> None:
        self.modes: list[int] = []  # of a run
        for m in order:
            if strides[m] != of.size(self.modes):
                break
            self.modes.append(m)
            if extents[m] < of.shape[m]:
                break
        self.strides, self.last, vector = strides, self.modes[-1], of.vector
        self.outer = [m for m in of.in_x() if m not in self.modes and extents[m] > 1]
        self.length = math.prod(extents[m] for m in self.modes)
        self.runs = math.prod(extents[m] for m in self.outer)
        begins = [strides[m] * (extents[m] if m == self.last else 1) for m in range(len(strides))
                  if m not in self.modes or extents[m] < of.shape[m]]  # fmt: skip
        self.whole = aligned and not any(n % vector for n in (*begins, self.length, of.size(self.modes)))
        self.far = sum((e - 1) * abs(s) for e, s in zip(extents, strides)) >= 1 << 30
        self.touched = self.length // vector if self.whole else (self.length + 2 * vector - 2) // vector

    def takes(self, extents: list[int], place: dict[int, int], far: bool) -> Any:
        """Give what `touched` takes of this side."""
        number = cute.Int64 if far else cute.Int32
        runs = ((divisor(extents[m]), number(self.strides[m]), cute.Int32(place[m])) for m in self.outer)
        return divisor(self.touched), tuple(runs)


def _placed(x: Side, extents: list[int], pitch: int) -> dict[int, int]:
    """Find the steps of modes in shared memory, in x's order, for runs that are so far apart."""
    place, n = {}, 1
    for m in x.modes:
        place[m], n = n, n * extents[m]
    n = pitch
    for m in x.outer:
        place[m], n = n, n * extents[m]
    return place


def _runs(of: Moved, most: int, longer: int = 1) -> tuple[list[int], Side, Side]:
    """Choose a box of so many bytes at most, and find its runs in x and in y."""
    extents = _extents(of, most // of.width, longer)
    x = Side(of, extents, of.in_x(), of.x, of.x_aligned)
    return extents, x, Side(of, extents, range(len(of.shape)), of.y, of.y_aligned)


def _in_order(of: Moved) -> list[int]:
    return list(range(len(of.shape)))


def work(of: Moved) -> entry.Work:
    """Plan `move`, which does everything.

    Of a GPU it knows: `box`, bytes of a box, of which there are twice as many where vectors reach beyond runs;
    `flight`, vectors of a thread that are on their way at once, at most, and `flight_ragged`, there; `longer`, how many
    times as long as x's runs those of y are to be, where vectors reach beyond these."""
    known = tuning.numbers("permute")
    dense, most = of.reach == math.prod(of.shape), known.box
    extents, x, y = _runs(of, most)
    ragged, longer = not (x.whole and y.whole), 1 if y.whole else known.longer
    if ragged:  # longer runs have fewer ends
        most = 2 * known.box
        extents, x, y = _runs(of, most, longer)
    while True:
        slack = of.vector - 1 if dense and not x.whole else 0  # elements beside a run that come with its vectors
        pitch = x.length + 2 * slack | bool(x.outer)
        room = (pitch * x.runs + 2 * slack) * of.width
        if room <= 4 * known.box:
            break
        most //= 2
        extents, x, y = _runs(of, most, longer)
    grid = _in_order(of)  # blocks follow each other as their boxes do in y
    box = Box(
        width=of.width,
        places=-(-room // 4096) * 4096 // of.width,  # few kinds of kernels
        flight=max(1, min(known.flight_ragged if ragged else known.flight, -(-x.touched * x.runs // THREADS))),
        whole_in=x.whole,
        whole_out=y.whole,
        together=x.whole and (not x.outer or of.width == VECTOR),
        dense=dense,
        even=len(y.modes) == 1 or y.whole and extents[y.modes[0]] % of.vector == 0,
        far=x.far or y.far,
        slack=slack,
        in_runs=tuple(map(grid.index, x.outer)),
        in_length=grid.index(x.last),
        out_runs=tuple(map(grid.index, y.outer)),
        out_length=grid.index(y.last),
    )
    place, i32, i64 = _placed(x, extents, pitch), cute.Int32, cute.Int64
    boxes = {m: -(-of.shape[m] // extents[m]) for m in grid}
    return entry.Work(
        move,
        grid=math.prod(boxes.values()),
        block=THREADS,
        static=(
            tuple((divisor(boxes[m]), i32(extents[m]), i32(of.shape[m]), i64(of.x[m]), i64(of.y[m])) for m in grid),
            x.takes(extents, place, box.far),
            y.takes(extents, place, box.far),
            (i32(x.length // extents[x.last]), i32(y.length // extents[y.last])),
            tuple((divisor(extents[m]), i32(place.get(m, 0))) for m in y.modes),
            (i64(of.reach), i32(x.touched * x.runs), i32(y.touched * y.runs), i32(2 * of.vector * y.runs)),
            box,
        ),
    )
