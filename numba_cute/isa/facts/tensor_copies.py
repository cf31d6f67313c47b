# SPDX-License-Identifier: Apache-2.0
"""Copies from shared to tensor memory as data (PTX ISA, "tcgen05.cp"): which row lands in which lanes, and how the
elements below a byte are spread over bytes on the way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...layout import Layout, make_layout
from ...layout.pure import pure
from ...seam.ground.records import dataclass
from .tensor_memory import lane_stride

QUARTER = 32
"""The lanes that one warp of a warpgroup reaches."""


@dataclass(frozen=True)
class Landing:
    """Some consecutive rows of the source in as many consecutive lanes."""

    lane: int
    row: int
    rows: int


@dataclass(frozen=True)
class CopyShape:
    """The shape of one tcgen05.cp.

    name: as PTX spells it. rows: of the source. row_bytes: of each, 32-bit columns of its lanes. multicast: to which
    warps it copies the same, as PTX spells it, or None. landings: where the rows lie, from the address's lane on.
    """

    name: str
    rows: int
    row_bytes: int
    multicast: str | None
    landings: tuple[Landing, ...]

    @property
    def columns(self) -> int:
        """The 32-bit columns of one row."""
        return self.row_bytes // 4

    @property
    def groups(self) -> tuple[int, int, int]:
        """The rows that stay together, how many such there are, and in how many places each lands."""
        together = self.landings[0].rows
        count = self.rows // together
        return together, count, len(self.landings) // count

    def lanes_between(self) -> tuple[int, int]:
        """Return how many lanes apart groups of rows land, and the places of one group; 0 where there is one."""
        together, count, places = self.groups
        groups = [at.lane for at in self.landings if at.row == together] if count > 1 else [0]
        again = [at.lane for at in self.landings if at.row == 0]
        return min(groups), again[1] if places > 1 else 0


SHAPES = (
    CopyShape("128x256b", 128, 32, None, (Landing(0, 0, 128),)),
    CopyShape("4x256b", 4, 32, None, tuple(Landing(QUARTER * i, i, 1) for i in range(4))),
    CopyShape("128x128b", 128, 16, None, (Landing(0, 0, 128),)),
    CopyShape("64x128b", 64, 16, "warpx2::02_13", (Landing(0, 0, 64), Landing(64, 0, 64))),
    CopyShape(
        "64x128b", 64, 16, "warpx2::01_23", tuple(Landing(QUARTER * w, QUARTER * (w // 2), 32) for w in range(4))
    ),
    CopyShape("32x128b", 32, 16, "warpx4", tuple(Landing(QUARTER * w, 0, 32) for w in range(4))),
)


@pure
def landed(shape: CopyShape, width: int) -> Layout:
    """Return where the elements of one copy lie in tensor memory, as offsets in elements of `width` bits: (row of a
    group, element of a row, group, place)."""
    together, count, places = shape.groups
    lane, (apart, again) = lane_stride(width), shape.lanes_between()
    return make_layout(
        (together, shape.row_bytes * 8 // width, count, places), stride=(lane, 1, apart * lane, again * lane)
    )


@pure
def source_rows(shape: CopyShape, width: int) -> Layout:
    """Return which of the elements that `landed` numbers stand in the source: (row, element of a row)."""
    together, count, _ = shape.groups
    each = shape.row_bytes * 8 // width
    return make_layout(((together, count), each), stride=((1, together * each), together))


PACKED = {"b6x16_p32": (6, 0), "b4x16_p64": (4, 2)}
"""The source formats whose elements are smaller than a byte: their bits, and where these begin in the byte of the copy.
In shared memory 16 elements lie side by side at the beginning of 16 bytes, whose rest is padding."""


def spread(chunks: NDArray[np.uint8], source: str) -> NDArray[np.uint8]:
    """Return chunks of 16 bytes, (count, 16), with each of the 16 elements of format `source` in a byte of its own."""
    width, first = PACKED[source]
    packed = np.unpackbits(chunks[:, : 2 * width], axis=1, bitorder="little").reshape(len(chunks), 16, width)
    codes = np.packbits(packed, axis=2, bitorder="little")[..., 0]
    return np.left_shift(codes, first, dtype=np.uint8)
