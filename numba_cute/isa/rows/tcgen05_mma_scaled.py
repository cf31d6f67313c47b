# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""The matrix unit of Blackwell with scale factors in tensor memory (PTX ISA, "tcgen05.mma", ".block_scale").

D = (A * its factors) @ (B * its factors).T + D: a factor for each `block` elements of a row of A, and of B. They lie in
the bytes of 32-bit columns (PTX ISA, "Scale Factor A ID", "Scale Factor B ID"): those of row i in lane i % 32 of column
i // 32, from the byte on that the instruction descriptor's id_a or id_b says, and again in each 32 lanes. Where k is 96
and they go beyond the word, they go on 4 columns further, those of B with n above 128 8 columns.

Of a pair each CTA has the factors of its own rows of A, and of all of B. With m 128, where lanes 64 and up have the
second half of D's columns, these lanes have the factors of B's second half: row n / 2 + i in lane 64 + i % 32 (CUTLASS,
"ScaleFactorDuplicated2by2"; the PTX ISA has no figure of it).
"""

from __future__ import annotations

from typing import Any

from ..form.choosing import by
from ..form.instr import ASYNC, TABLE, TCGEN05_GROUP, instr
from ..form.kinds import Role, accumulate, descriptor, only, tmem, u32
from ..form.machine import Machine
from .tcgen05_cases import _VECTORS, ALL_BUT_I8, K_OF, scaled
from .tcgen05_multiply import multiply

_ROW: dict[str, Any] = {
    "target": ALL_BUT_I8, "proxy": ASYNC, "done_by": TCGEN05_GROUP,
    "ref": "tensorcore-5th-generation-instructions-tcgen05-mma",
    "defaults": {
        "sparse": False, "collector": None, "vec": by("kind", {"mxf8f6f4": "block32", "mxf4": "block32"}),
        "k": by(("kind", "sparse"), {(k, s): K_OF[k] * (1 + s) for k in _VECTORS for s in (False, True)}),
    },
}  # fmt: skip
_WORD = u32.means(Role.DESCRIPTOR)
_META = only(tmem, "sparse", True)
_HEAD = (
    "tcgen05.mma<sparse:.sp>.cta_group::{cta_group}.kind::{kind}.block_scale<vec:.{vec}>"
    "<collector:.collector::a::{collector}>"
)
_TAIL = "$b_desc, <sparse:[$meta], >$idesc, [$scale_a], [$scale_b], $use_acc;"


@instr(f"{_HEAD} [$d], $a_desc, {_TAIL}", **_ROW, over=scaled("smem"))
def tcgen05_mma_scaled_ss(
    m: Machine, d: tmem, a_desc: descriptor, b_desc: descriptor, idesc: _WORD, scale_a: tmem, scale_b: tmem,
    use_acc: accumulate, meta: _META, *, cta_group: int, kind: str, sparse: bool, vec: str | None,
    collector: str | None,
) -> None:  # fmt: skip
    """d (m, n) = (a * factors) @ (b * factors).T + (d if use_acc else 0) in f32, asynchronously.

    a_desc, b_desc: `Tcgen05Descriptor` words; idesc: a `Tcgen05ScaledInstruction` word. kind: "mxf8f6f4", whose
    elements are those of "f8f6f4", k 32; "mxf4" and "mxf4nvf4", of e2m1 without gaps, K-major, k 64 or (sm_103a) 96.
    m 128, of a pair 128 or 256; n 8 to 256 in steps of 8, of a pair 16. scale_a, scale_b: where the factors lie (see
    above). vec: how many elements have one: "block32", or "block16" (mxf4nvf4), and of sm_100a the same as
    "scale_vec::1X" (mxf8f6f4), "scale_vec::2X" and "scale_vec::4X"; None is "block32" (not of mxf4nvf4). The factors
    are ue8m0, or with 16 also ue4m3. sparse, meta, collector: as in `tcgen05_mma_ss`; of a pair with m 256. One
    thread; complete when a later `tcgen05_commit` says so."""
    given = {
        "cta_group": cta_group,
        "kind": kind,
        "sparse": sparse,
        "a_src": "smem",
        "vec": vec,
        "collector": collector,
    }
    multiply(m, TABLE["tcgen05_mma_scaled_ss"].cases, given, (d, a_desc, b_desc, idesc), use_acc, meta=meta,
             scale_a=scale_a, scale_b=scale_b)  # fmt: skip


@instr(f"{_HEAD} [$d], [$a], {_TAIL}", **_ROW, over=scaled("tmem"))
def tcgen05_mma_scaled_ts(
    m: Machine, d: tmem, a: tmem, b_desc: descriptor, idesc: _WORD, scale_a: tmem, scale_b: tmem, use_acc: accumulate,
    meta: _META, *, cta_group: int, kind: str, sparse: bool, vec: str | None, collector: str | None,
) -> None:  # fmt: skip
    """`tcgen05_mma_scaled_ss` with a in tensor memory, as `tcgen05_mma_ts` has it; of "mxf4" and "mxf4nvf4" two
    elements to a byte."""
    given = {
        "cta_group": cta_group,
        "kind": kind,
        "sparse": sparse,
        "a_src": "tmem",
        "vec": vec,
        "collector": collector,
    }
    multiply(m, TABLE["tcgen05_mma_scaled_ts"].cases, given, (d, a, b_desc, idesc), use_acc, meta=meta,
             scale_a=scale_a, scale_b=scale_b)  # fmt: skip
