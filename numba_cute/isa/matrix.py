# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Matrices of 8 rows of 16 bytes between shared memory and a warp's registers (fragments: `atoms.ldmatrix_b16`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import atoms
from .instr import WARP, instr, out, smem, u32
from .machine import Machine

_OVER = [{"num": n, "trans": t, "suffix": ".trans" if t else ""} for n in (1, 2, 4) for t in (False, True)]
_WORDS = u32["num"]
_REF = "warp-level-matrix-instructions"


def _rows(m: Machine, addr: Any, num: int) -> Any:
    return np.asarray(addr).astype(np.int64)[: 8 * num]


@instr("ldmatrix.sync.aligned.m8n8.x{num}{suffix}.shared::cta.b16 $dst, [$addr];", target="sm_75", issuer=WARP,
       ref=f"{_REF}-ldmatrix", over=_OVER)  # fmt: skip
def ldmatrix(m: Machine, dst: out(_WORDS), addr: smem, *, num: int, trans: bool) -> Any:
    """Load `num` (1, 2, 4) matrices of 8 by 8 16-bit elements. Lane i gives the address of row i % 8 of matrix i // 8
    (16 bytes, aligned; lanes from 8 * num on are not used). Register r of lane t holds columns 2 * (t % 4) and the
    next (low half first) of row t // 4 of matrix r; with `trans`, of the transposed matrix. All 32 lanes."""
    elements = m.read_rows(_rows(m, addr, num), 16).view(np.uint16).ravel()
    return elements[atoms.elements(atoms.ldmatrix_b16(num, trans).dst)].view(np.uint32)


@instr("stmatrix.sync.aligned.m8n8.x{num}{suffix}.shared::cta.b16 [$addr], $src;", target="sm_90", issuer=WARP,
       ref=f"{_REF}-stmatrix", over=_OVER)  # fmt: skip
def stmatrix(m: Machine, addr: smem, src: _WORDS, *, num: int, trans: bool) -> None:
    """Store `num` (1, 2, 4) matrices of 8 by 8 16-bit elements: `ldmatrix` the other way. All 32 lanes. Generic
    proxy: a TMA store or wgmma that reads it needs `fence_proxy_async_shared_cta` in each lane first."""
    elements = np.empty(64 * num, np.uint16)
    registers = np.ascontiguousarray(np.asarray(src).astype(np.uint32).reshape(32, num))
    elements[atoms.elements(atoms.stmatrix_b16(num, trans).src)] = registers.view(np.uint16)
    m.write_rows(_rows(m, addr, num), elements.view(np.uint8).reshape(8 * num, 16))
