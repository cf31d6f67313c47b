# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Copies and shifts of Blackwell's matrix unit in tensor memory (PTX ISA, "tcgen05.cp", "tcgen05.shift").

One thread issues copies and shifts; `tcgen05_commit` lets an mbarrier track them with its multiplies. Without a wait a
copy or shift runs ahead of a later multiply, a multiply ahead of a later shift, what a multiply reads ahead of a later
copy, and a shift ahead of a later "4x256b" copy; nothing else (PTX ISA, "Pipelined tcgen05 Instructions").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...seam import CuteError
from ..facts.canonical import CHUNK, K_MAJOR, SWIZZLE_128B_BASE32B, chunk_offsets, need_canonical, swizzle_addresses
from ..facts.tensor_copies import PACKED, QUARTER, SHAPES, CopyShape, spread
from ..form.instr import ASYNC, TCGEN05_GROUP, instr
from ..form.kinds import descriptor, tmem
from ..form.machine import Machine
from ..form.targets import FEATURES
from .tcgen05_mma import Tcgen05Descriptor

_REF = "tensorcore-5th-generation-instructions-tcgen05"
_SHIFTED = 8
"""The columns of 32 bytes."""
_SHAPES = {(s.name, s.multicast): s for s in SHAPES}
_COPIES = [
    {"shape": s.name, "multicast": s.multicast, "source": source, "cta_group": g}
    for s in SHAPES for source in (None, *PACKED) for g in (1, 2)
]  # fmt: skip


def _ctas(m: Machine, cta_group: int) -> list[int]:
    """The CTAs whose memories are meant: this one, or both of the pair."""
    return [m.cta_rank] if cta_group == 1 else [m.cta_rank & ~1, m.cta_rank | 1]


def _chunks(m: Machine, word: int, form: CopyShape, cta: int) -> tuple[Any, Callable[[], Any]]:
    """The cluster addresses of the source's chunks in CTA `cta`, and what reads them: (chunks, 16) bytes."""
    d = Tcgen05Descriptor.decode(int(word))
    if d.swizzle == SWIZZLE_128B_BASE32B:
        raise CuteError(
            "tcgen05.cp: s_desc has the swizzle of 128 bytes in atoms of 32, which is for MN-major operands of a "
            "multiply; the rows of a copy are K-major: swizzle 0, 32, 64 or 128"
        )
    need_canonical("tcgen05.cp: s_desc", d.start, d.swizzle, form.row_bytes, d.base_offset)
    offsets = chunk_offsets(K_MAJOR, d.swizzle, d.leading, d.stride, form.rows, form.row_bytes, 1)
    addresses = swizzle_addresses(d.start + offsets.ravel(), d.swizzle)

    def fetch() -> Any:
        if cta == m.cta_rank:
            return np.ascontiguousarray(m.read_rows(addresses, CHUNK, lay=(d.swizzle, 0)))
        return np.stack([m.read(int(a), CHUNK, cta=cta, lay=(d.swizzle, 0)) for a in addresses])

    return np.array([m.mapa(int(a), cta) for a in addresses], np.int64), fetch


@instr("tcgen05.cp.cta_group::{cta_group}.{shape}<multicast:.{multicast}><source:.b8x16.{source}> [$taddr], $s_desc;",
       target=FEATURES["tcgen05"], proxy=ASYNC, done_by=TCGEN05_GROUP, ref=f"{_REF}-cp", over=_COPIES,
       defaults={"multicast": None, "source": None})  # fmt: skip
def tcgen05_cp(
    m: Machine, taddr: tmem, s_desc: descriptor, *, cta_group: int, shape: str, multicast: str | None,
    source: str | None,
) -> None:  # fmt: skip
    """Copy rows of shared memory to lanes of tensor memory from `taddr` on, asynchronously: `shape` is rows x bits.

    s_desc: a `Tcgen05Descriptor` word; the rows are K-major. shape, multicast: "128x256b" and "128x128b" copy row i to
    lane i; "4x256b" row i to lane 32 * i, from a lane below 32 on; "64x128b" with multicast "warpx2::02_13" row i to
    lanes i and 64 + i, with "warpx2::01_23" row i to lanes 64 * (i // 32) + i % 32 and 32 more; "32x128b" with "warpx4"
    row i to lanes i, 32 + i, 64 + i and 96 + i. source: None, or the format of 16 elements in the first bytes of each
    16 that get a byte each, in its bits 0 to 5 ("b6x16_p32") or 2 to 5 ("b4x16_p64"). cta_group 2: the same in both
    CTAs of the pair, each from its own shared memory. One thread; complete when a later `tcgen05_commit` says so; later
    multiplies of the same thread see it without that."""
    form = _SHAPES[shape, multicast]
    lane, column = taddr >> 16, taddr & 0xFFFF
    last = QUARTER - 1 if form.rows == 4 else 0
    if lane > last:
        where = f"lanes 0 to {last}" if last else "lane 0"
        raise CuteError(f"tcgen05.cp: taddr {taddr:#x} is in lane {lane}: a copy of shape {shape} begins in {where}")
    sources = {c: _chunks(m, s_desc, form, c) for c in _ctas(m, cta_group)}

    def effect() -> None:
        for cta, (_, fetch) in sources.items():
            chunks = fetch() if source is None else spread(fetch(), source)
            rows = np.ascontiguousarray(chunks).view(np.uint32).reshape(form.rows, form.columns)
            for at in form.landings:
                m.tmem.write(lane + at.lane, column, rows[at.row : at.row + at.rows], cta=cta)

    reads = [(addresses, CHUNK) for addresses, _ in sources.values()]
    parts = [(c, lane + at.lane, at.rows, form.columns) for c in sources for at in form.landings]
    m.tmem.multiply(
        effect, reads, column, form.columns, list(sources), accumulates=False, parts=parts, what="cp",
        after_shift=form.rows == 4,
    )  # fmt: skip


@instr("tcgen05.shift.cta_group::{cta_group}.down [$taddr];", target="sm_100a|sm_103a|sm_107a|sm_110a", proxy=ASYNC,
       done_by=TCGEN05_GROUP, ref=f"{_REF}-shift", over=[{"cta_group": g} for g in (1, 2)])  # fmt: skip
def tcgen05_shift(m: Machine, taddr: tmem, *, cta_group: int) -> None:
    """Move 32 bytes of each of the 32 lanes from `taddr` on (a multiple of 32) down by one lane, asynchronously: lane i
    gets those of lane i + 1. The last lane keeps its own: a "4x256b" `tcgen05_cp` renews that of each warp. cta_group
    2: in both CTAs of the pair. One thread; complete when a later `tcgen05_commit` says so; later multiplies, and
    copies of "4x256b", of the same thread see it without that."""
    lane, column = taddr >> 16, taddr & 0xFFFF
    if lane % QUARTER or lane >= 4 * QUARTER:
        raise CuteError(f"tcgen05.shift: taddr {taddr:#x} is in lane {lane}: it must be 0, 32, 64 or 96")
    ctas = _ctas(m, cta_group)

    def effect() -> None:
        for cta in ctas:
            m.tmem.write(lane, column, m.tmem.read(lane + 1, QUARTER - 1, column, _SHIFTED, cta=cta), cta=cta)

    parts = [(c, lane, QUARTER - 1, _SHIFTED) for c in ctas]
    sources = [(c, lane + 1, QUARTER - 1, column, _SHIFTED) for c in ctas]
    m.tmem.multiply(effect, [], column, _SHIFTED, ctas, accumulates=False, parts=parts, sources=sources, what="shift")
