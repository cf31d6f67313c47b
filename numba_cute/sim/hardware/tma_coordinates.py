# SPDX-License-Identifier: Apache-2.0
"""Find where a tensor map's instruction begins and which pixels it walks over, and refuse what it may not ask for."""

from __future__ import annotations

from typing import Any

from ...isa.facts import packed_maps
from ...isa.facts.tensormap import COORDINATE_BITS, Im2col, Im2colWide, TensorMapRecord
from ..ground.report import SimError

Run = tuple[int, int, tuple[int, ...]]
"""A row of pixels: (the first one's number, how many, where in the tensor)."""


def runs(r: TensorMapRecord, at: tuple[int, ...], offsets: tuple[int, ...]) -> list[Run]:
    """The rows of pixels that an im2col copy takes."""
    if isinstance(r.im2col, Im2colWide):
        return _along_w(r, r.im2col, at, *offsets)
    assert r.im2col is not None
    return _in_all_directions(r, r.im2col, at, offsets)


def _in_all_directions(r: TensorMapRecord, walk: Im2col, at: tuple[int, ...], offsets: tuple[int, ...]) -> list[Run]:
    """Each row starts at the filter base, or at the lower corner, and ends at the upper one (PTX ISA, "im2col
    mode")."""
    last = [r.dims[d] - 1 + up for d, up in zip(r.spatial, walk.upper)]
    steps = [r.element_strides[d] for d in r.spatial]
    position, image = [at[d] for d in r.spatial], at[-1]
    found, done = [], 0
    while done < walk.pixels:
        count = max(1, min((last[0] - position[0]) // steps[0] + 1, walk.pixels - done))
        where = [p + o for p, o in zip(position, offsets)]
        where.insert(r.channel, at[r.channel])
        found.append((done, count, (*where, image)))
        done += count
        position[0] = walk.lower[0]
        for d in range(1, len(position)):
            position[d] += steps[d]
            if position[d] <= last[d]:
                break
            position[d] = walk.lower[d]
        else:
            image += 1
    return found


def _along_w(r: TensorMapRecord, walk: Im2colWide, at: tuple[int, ...], halo: int, shift: int) -> list[Run]:
    """Rows of consecutive images, all at one H and D; after each part the halo, which goes on along its last row (PTX
    ISA, "im2col::w and im2col::w::128 modes"; its text, for no such GPU was at hand)."""
    step, lower, last = r.element_strides[1], walk.lower + shift, r.dims[1] - 1 + walk.upper + shift
    w, between, image = at[1] + shift, at[2:-1], at[-1]
    found, done = [], 0
    parts, each = walk.parts
    for _ in range(parts):
        left = each
        while left:
            if w > last:
                w, image = lower, image + 1
            count = max(1, min((last - w) // step + 1, left))
            found.append((done, count, (at[0], w, *between, image)))
            done, left, w = done + count, left - count, w + count * step
        if halo:
            found.append((done, halo, (at[0], w, *between, image)))
            done += halo
    return found


def map_kind(r: TensorMapRecord) -> str:
    if r.im2col is None:
        return "tiled"
    return f"im2col::{r.im2col.mode}" if isinstance(r.im2col, Im2colWide) else "im2col"


def check(
    r: TensorMapRecord, name: str, at: tuple[int, ...], offsets: tuple[int, ...] | None, wide: str | None, machine: Any
) -> None:
    """An error if no such copy can begin at these coordinates."""

    def need(ok: bool, what: str) -> None:
        if not ok:
            raise SimError(f"{name}: {what}; {machine.place}")

    need(len(at) == r.rank, f"{len(at)} coordinates {at} for a tensor map of rank {r.rank}")
    have, want = map_kind(r), "tiled" if offsets is None else "im2col" if wide is None else f"im2col::{wide}"
    need(have == want, f"the tensor map is {have}, but {machine.row.name} is for {want} maps")
    columns = packed_maps.form(r.dtype, r.unpacked).columns if r.dtype.width < 8 else 1
    need(
        at[0] % columns == 0,
        f"the innermost coordinate {at[0]}: TMA needs a multiple of {columns} elements of {r.dtype} there",
    )
    if r.interleave == "none":
        need(
            at[0] * r.dtype.width % COORDINATE_BITS == 0,
            f"the innermost coordinate {at[0]} is {at[0]} x {r.dtype.width} bits from the tensor's beginning; TMA "
            f"needs a multiple of {COORDINATE_BITS // 8} bytes there, and ends the kernel with an illegal instruction; "
            f"use a multiple of {max(1, COORDINATE_BITS // r.dtype.width)} elements",
        )
    if offsets is None or r.im2col is None:
        return
    if isinstance(r.im2col, Im2colWide):
        last, (halo, shift) = r.dims[1] - 1 + r.im2col.upper, offsets
        need(at[1] <= last, f"im2col coordinates {at}: W is {at[1]}, beyond the last place of the row, {last}")
        most = r.im2col.most_halo
        need(0 <= halo <= most, f"im2col halo {halo} must be in 0 to {most}")
        need(0 <= shift < 32, f"im2col shift along W {shift} must be in 0 to 31")
    else:
        most = {3: 1 << 16, 4: 1 << 8, 5: 1 << 5}[r.rank] - 1
        for d, (along, lo, up, o) in enumerate(zip(r.spatial, r.im2col.lower, r.im2col.upper, offsets)):
            need(
                lo <= at[along] <= r.dims[along] - 1 + up,
                f"im2col coordinates {at}: the filter base {at[along]} of spatial dimension {d} lies outside of the "
                f"box of pixels, {lo} to {r.dims[along] - 1 + up}",
            )
            need(0 <= o <= most, f"im2col offset {o} must be in 0 to {most}")
