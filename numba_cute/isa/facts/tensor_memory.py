# SPDX-License-Identifier: Apache-2.0
"""Tensor memory as layouts: where elements lie in it, and which thread moves which (PTX ISA, "Tensor Memory" and the
figures of tcgen05.ld and tcgen05.st).

A tensor-memory address counts 32-bit words: the lane in its upper 16 bits, the column in its lower. Strides of
tensors in it count elements, so that a lane is `lane_stride(width)` of them. What is loaded or stored at once is a
block of lanes and columns; thread-value layouts number its elements lane by lane.
"""

from __future__ import annotations

from ...layout import Layout, flatten_to_tuple, make_layout
from ...layout.pure import pure
from ...seam import CuteError
from ...seam.ground.records import dataclass

LANES, COLUMNS, WARP_LANES = 128, 512, 32
LANE = 1 << 16
"""The distance between the words of neighbouring lanes."""
REPETITIONS = (1, 2, 4, 8, 16, 32, 64, 128)


def lane_stride(width: int) -> int:
    """Return how far apart neighbouring lanes are, in elements of `width` bits."""
    return LANE * 32 // width


@dataclass(frozen=True)
class Shape:
    """The block that one tcgen05.ld or tcgen05.st moves, `.num` times along the columns.

    name: as PTX spells it. lanes: of tensor memory. columns: 32-bit ones of one repetition. registers: of one thread
    for each repetition. most: the largest `.num`. halves: how many blocks of columns it takes from two places.
    """

    name: str
    lanes: int
    columns: int
    registers: int
    most: int
    halves: int = 1

    def check(self, num: int) -> None:
        """Refuse a number of repetitions that the instruction does not have."""
        if num not in REPETITIONS or num > self.most:
            legal = ", ".join(f"x{n}" for n in REPETITIONS if n <= self.most)
            raise CuteError(f"tcgen05.ld/st .{self.name}: repetition x{num} is not one of {legal}")

    def elements(self, num: int, width: int) -> int:
        """Return how many elements of `width` bits one instruction moves."""
        return self.lanes * self.columns * self.halves * num * 32 // width


S32X32B = Shape("32x32b", 32, 1, 1, 128)
S16X64B = Shape("16x64b", 16, 2, 1, 128)
S16X128B = Shape("16x128b", 16, 4, 2, 64)
S16X256B = Shape("16x256b", 16, 8, 4, 32)
S16X32BX2 = Shape("16x32bx2", 16, 1, 1, 128, halves=2)


@pure
def thread_values(shape: Shape, num: int, width: int) -> Layout:
    """Return the (thread, value) layout of one instruction's registers onto the elements of its block."""
    v = 32 // width  # elements of a register
    row = shape.elements(num, width) // shape.lanes
    if shape is S32X32B:
        return make_layout((32, num * v), stride=(row, 1))
    if shape is S16X32BX2:
        return make_layout(((16, 2), num * v), stride=((row, row // 2), 1))
    if shape is S16X64B:
        threads, values = make_layout((2, 2, 8), stride=(8 * row, v, row)), [(v, 1), (num, 2 * v)]
    else:
        pair = v * shape.registers // 2  # consecutive elements of a thread
        threads, values = make_layout((4, 8), stride=(pair, row)), [(pair, 1), (2, 8 * row), (num, 4 * pair)]
    extents, strides = zip(*(values if num > 1 else values[:-1]))
    held = (extents, strides) if extents[1:] else (extents[0], strides[0])
    return make_layout((threads, make_layout(held[0], stride=held[1])))


@pure
def block(shape: Shape, num: int, width: int, apart: bool = False) -> Layout:
    """Return the elements of one instruction's block as offsets in tensor memory, lane by lane. apart: each has a
    column of its own."""
    row = shape.elements(num, width) // shape.lanes
    return make_layout((row, shape.lanes), stride=(32 // width if apart else 1, lane_stride(width)))


@pure
def accumulator(rows: int, columns: int, cta_group: int, width: int) -> Layout:
    """Return where one multiply leaves a CTA's part (rows, columns) of D, each element in a column of its own.

    PTX ISA, "Data Path Layout Organization": 128 rows lie in 128 lanes; 64 of one CTA in the first 16 of each 32; 64 of
    each CTA of a pair in lanes 0 to 63, and the second half of the columns in lanes 64 to 127.
    """
    lane, column = lane_stride(width), 32 // width
    if rows == LANES:
        return make_layout((rows, columns), stride=(lane, column))
    if cta_group == 1:
        return make_layout(((16, 4), columns), stride=((lane, 32 * lane), column))
    halves = make_layout((rows, (columns // 2, 2)), stride=(lane, (column, rows * lane)))
    return halves


@pure
def operand(rows: int, k: int, cta_group: int, width: int) -> Layout:
    """Return where one multiply reads a CTA's part (rows, k) of A, packed into 32-bit columns.

    Its rows lie in the lanes of D's; 64 rows of each CTA of a pair must lie in lanes 0 to 63 and again in 64 to 127:
    the layout has 128 rows then.
    """
    lane = lane_stride(width)
    if rows == 64 and cta_group == 1:
        return make_layout(((16, 4), k), stride=((lane, 32 * lane), 1))
    return make_layout((LANES, k), stride=(lane, 1))


@pure
def repeated(one: Layout, rest: tuple[int, ...], width: int, paired: bool = False) -> Layout:
    """Return `one` multiply's layout repeated over the modes `rest`, in columns.

    paired: whether what uses 16 of each 32 lanes stands side by side in them, in pairs along the first mode of even
    extent. (D may, where A is in shared memory; where A is in tensor memory its lanes are D's.)
    """
    modes, step = [one], column_count(one, width) * 32 // width
    lanes = 16 * lane_stride(width)
    paired = paired and isinstance(one.shape[0], tuple)
    for extent in rest:
        if paired and extent % 2 == 0:
            modes.append(
                make_layout(2, stride=lanes) if extent == 2 else make_layout((2, extent // 2), stride=(lanes, step))
            )
            paired, step = False, step * (extent // 2)
            continue
        modes.append(make_layout(extent, stride=step if extent > 1 else 0))
        step *= extent
    return make_layout(tuple(modes))


@pure
def column_count(layout: Layout, width: int) -> int:
    """Return how many 32-bit columns a layout of `width`-bit elements reaches, from its first."""
    lane, last = lane_stride(width), 0
    for extent, stride in zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)):
        last += (extent - 1) * (stride % lane)
    return -(-(last + 1) * width // 32)
