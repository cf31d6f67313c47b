# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""The matrix unit of Blackwell (PTX ISA, "tcgen05.mma", "tcgen05.mma.sp"): D = A @ B.T + D, D in tensor memory, A there
or in shared memory, B in shared memory; without scale factors.

One thread issues multiplies, which run in order; `tcgen05_commit` lets an mbarrier track all those that the thread
issued before. Where the rows of D (and of A in tensor memory) lie (PTX ISA, "Data Path Layout Organization"):

| CTAs | m | of each CTA: rows | lanes |
| --- | --- | --- | --- |
| 1 | 128 | all | row i in lane i |
| 1 | 64 | all | row i in lane 32 * (i // 16) + i % 16; the other 16 of each 32 lanes are free (address lane 16) |
| 2 | 256 | 128 | row i in lane i |
| 2 | 128 | 64 | columns below n / 2 of row i in lane i, the others in lane 64 + i; A in both |
| 2 | 128, sparse | 64 | as those of 1 CTA with m 64 |
"""

from __future__ import annotations

from typing import Any

from ..facts.canonical import SWIZZLE_128B_BASE32B as SWIZZLE_128B_BASE32B
from ..facts.tensor_descriptors import Tcgen05Descriptor as Tcgen05Descriptor, Tcgen05Instruction as Tcgen05Instruction
from ..form.instr import ASYNC, TABLE, TCGEN05_GROUP, instr
from ..form.kinds import Role, accumulate, descriptor, only, optional, tmem, u32
from ..form.machine import Machine
from .tcgen05_cases import ALL_BUT_I8, plain
from .tcgen05_multiply import multiply

_ROW: dict[str, Any] = {
    "target": ALL_BUT_I8, "proxy": ASYNC, "done_by": TCGEN05_GROUP,
    "ref": "tensorcore-5th-generation-instructions-tcgen05-mma",
    "defaults": {"sparse": False, "collector": None, "ashift": False, "scale_d": None},
}  # fmt: skip
_WORD = u32.means(Role.DESCRIPTOR)
_META = only(tmem, "sparse", True)
_LANES = optional(u32["lanes"].means(Role.SELECTOR))
_HEAD = (
    "tcgen05.mma<sparse:.sp>.cta_group::{cta_group}.kind::{kind}<ashift:.ashift><collector:.collector::a::{collector}>"
)
_TAIL = "$b_desc, <sparse:[$meta], >$idesc, <disable:$disable, >$use_acc<scale_d:, {scale_d}>;"


@instr(f"{_HEAD} [$d], $a_desc, {_TAIL}", **_ROW, over=plain("smem"))
def tcgen05_mma_ss(
    m: Machine, d: tmem, a_desc: descriptor, b_desc: descriptor, idesc: _WORD, use_acc: accumulate, meta: _META,
    disable: _LANES, *, cta_group: int, kind: str, sparse: bool, collector: str | None, scale_d: int | None,
) -> None:  # fmt: skip
    """d (m, n) = a (m, 32 bytes of K) @ b (n, 32 bytes of K).T + (d if use_acc else 0), asynchronously.

    a_desc, b_desc: `Tcgen05Descriptor` words; idesc: a `Tcgen05Instruction` word. cta_group 1: m 64 or 128, n 8 to 256
    in steps of 8; 2: m 128 or 256, n in steps of 16, the even CTA of a pair issues for both, and each holds half of
    a's rows, of b's rows and of d's rows. kind: "f16", "tf32", "f8f6f4", or of 8-bit integers with 32-bit results "i8"
    (n above 32 in steps of 16, for a pair of 32; sm_103 has it not). sparse: a is the stored half of (m, 64 bytes), b
    has 64 bytes of K, and meta is where a's metadata lies in tensor memory, from an even column on. disable: lanes that
    keep what they hold, a bit each: 4 words, for a pair 8. scale_d: d is multiplied by 2 ** -scale_d first (f16, tf32).
    collector: what is done with the buffer of a. One thread; complete when a later `tcgen05_commit` says so."""
    given = {"cta_group": cta_group, "kind": kind, "sparse": sparse, "a_src": "smem", "collector": collector,
             "ashift": False, "scale_d": scale_d}  # fmt: skip
    words = (d, a_desc, b_desc, idesc)
    multiply(m, TABLE["tcgen05_mma_ss"].cases, given, words, use_acc, meta=meta, disable=disable)


@instr(f"{_HEAD} [$d], [$a], {_TAIL}", **_ROW, over=plain("tmem"))
def tcgen05_mma_ts(
    m: Machine, d: tmem, a: tmem, b_desc: descriptor, idesc: _WORD, use_acc: accumulate, meta: _META, disable: _LANES,
    *, cta_group: int, kind: str, sparse: bool, collector: str | None, ashift: bool, scale_d: int | None,
) -> None:  # fmt: skip
    """`tcgen05_mma_ss` with a in tensor memory: 8 columns of each of its lanes, elements in their order along K, in
    the lanes of its rows (see above); of less than a byte each has a byte, 6-bit ones its bits 0 to 5, e2m1 its bits
    2 to 5. ashift: row i is taken from where row i + 1 lies, but the last from its own place (m 128, 256). What wrote
    it is complete: a multiply of the same thread, or `tcgen05_wait_st`."""
    given = {"cta_group": cta_group, "kind": kind, "sparse": sparse, "a_src": "tmem", "collector": collector,
             "ashift": ashift, "scale_d": scale_d}  # fmt: skip
    multiply(m, TABLE["tcgen05_mma_ts"].cases, given, (d, a, b_desc, idesc), use_acc, meta=meta, disable=disable)
