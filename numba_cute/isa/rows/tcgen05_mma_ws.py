# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""The matrix unit of Blackwell where B stays and A changes (PTX ISA, "tcgen05.mma.ws", "tcgen05.mma.ws.sp"), for one
CTA.

Where D lies: of m 128 row i in lane i; of m 64 columns below n / 2 of row i in lane i, the others in lane 64 + i; of
m 32 each quarter of the columns in 32 lanes of its own. A in tensor memory, and its metadata, lie in all of these
lanes."""

from __future__ import annotations

from typing import Any

from ..facts.tensor_descriptors import ZeroColumnMask
from ..form.instr import ASYNC, TABLE, TCGEN05_GROUP, instr
from ..form.kinds import Role, accumulate, descriptor, only, optional, tmem, u32
from ..form.machine import Machine
from .tcgen05_cases import ALL_BUT_I8, stationary
from .tcgen05_multiply import multiply

_ROW: dict[str, Any] = {
    "target": ALL_BUT_I8, "proxy": ASYNC, "done_by": TCGEN05_GROUP,
    "ref": "tensorcore-5th-generation-instructions-tcgen05-mma-ws", "defaults": {"sparse": False, "collector": None},
}  # fmt: skip
_WORD = u32.means(Role.DESCRIPTOR)
_META, _ZEROS = only(tmem, "sparse", True), optional(descriptor)
_HEAD = "tcgen05.mma.ws<sparse:.sp>.cta_group::{cta_group}.kind::{kind}<collector:.collector::{collector}>"
_TAIL = "$b_desc, <sparse:[$meta], >$idesc, $use_acc<zeros:, $zeros>;"


@instr(f"{_HEAD} [$d], $a_desc, {_TAIL}", **_ROW, over=stationary("smem"))
def tcgen05_mma_ws_ss(
    m: Machine, d: tmem, a_desc: descriptor, b_desc: descriptor, idesc: _WORD, use_acc: accumulate, meta: _META,
    zeros: _ZEROS, *, cta_group: int, kind: str, sparse: bool, collector: str | None,
) -> None:  # fmt: skip
    """`tcgen05_mma_ss` of one CTA that keeps B: m 32, 64 or 128, n 64, 128 or (not sparse) 256.

    zeros: a `ZeroColumnMask` word, of columns of b that count as zero, and of its first column. collector: which of
    four buffers of b is meant, and what is done with it, as "b2::fill"."""
    given = {"cta_group": cta_group, "kind": kind, "sparse": sparse, "a_src": "smem", "collector": collector}
    words = (d, a_desc, b_desc, idesc)
    multiply(m, TABLE["tcgen05_mma_ws_ss"].cases, given, words, use_acc, meta=meta, zeros=_mask(zeros))


@instr(f"{_HEAD} [$d], [$a], {_TAIL}", **_ROW, over=stationary("tmem"))
def tcgen05_mma_ws_ts(
    m: Machine, d: tmem, a: tmem, b_desc: descriptor, idesc: _WORD, use_acc: accumulate, meta: _META, zeros: _ZEROS,
    *, cta_group: int, kind: str, sparse: bool, collector: str | None,
) -> None:  # fmt: skip
    """`tcgen05_mma_ws_ss` with a in tensor memory, in all lanes that D has (see above), as `tcgen05_mma_ts` has it."""
    given = {"cta_group": cta_group, "kind": kind, "sparse": sparse, "a_src": "tmem", "collector": collector}
    words = (d, a, b_desc, idesc)
    multiply(m, TABLE["tcgen05_mma_ws_ts"].cases, given, words, use_acc, meta=meta, zeros=_mask(zeros))


def _mask(word: Any) -> ZeroColumnMask | None:
    return None if word is None else ZeroColumnMask.decode(int(word))
