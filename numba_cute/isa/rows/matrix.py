# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Matrices of 8 rows of 16 bytes between shared memory and a warp's registers (fragments:
`fragment_layouts.ldmatrix_b16`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..facts import fragment_layouts
from ..form.instr import WARP, WARPS, instr
from ..form.kinds import out, smem, u32
from ..form.machine import Machine

_OVER = [{"num": n, "trans": t, "suffix": ".trans" if t else ""} for n in (1, 2, 4) for t in (False, True)]
_WORDS = u32["num"]
_REF = "warp-level-matrix-instructions"


def _rows(m: Machine, addr: Any, rows: int) -> Any:
    """Give the rows of 16 bytes to which the first `rows` lanes of each warp point."""
    return np.asarray(addr).astype(np.int64).reshape(_warps(m), -1)[:, :rows].ravel()


def _warps(m: Machine) -> int:
    return max(1, m.lanes // 32)


def _of_warps(m: Machine, rows: Any, held: Any, dtype: Any) -> Any:
    """Give what each lane gets of its warp's rows: the elements `held`. Shape (lanes, words)."""
    elements = rows.view(dtype).reshape(_warps(m), -1)[:, held]
    return elements.reshape(-1, held.shape[1]).view(np.uint32)


def _store(m: Machine, addr: Any, src: Any, rows: int, held: Any, dtype: Any) -> None:
    """Store the lanes' registers as the elements `held` of their warp's rows."""
    registers: Any = np.ascontiguousarray(np.asarray(src).astype(np.uint32, copy=False))
    elements = np.empty((_warps(m), held.size), dtype)
    elements[:, held] = registers.view(dtype).reshape(-1, *held.shape)
    m.write_rows(_rows(m, addr, rows), elements.view(np.uint8).reshape(-1, 16))


@instr("ldmatrix.sync.aligned.m8n8.x{num}{suffix}.shared::cta.b16 $dst, [$addr];", target="sm_75",
       issuer=WARP, lanes=WARPS, ref=f"{_REF}-ldmatrix", over=_OVER, defaults={"trans": False})  # fmt: skip
def ldmatrix(m: Machine, dst: out(_WORDS), addr: smem, *, num: int, trans: bool) -> Any:
    """Load `num` (1, 2, 4) matrices of 8 by 8 16-bit elements. Lane i gives the address of row i % 8 of matrix i // 8
    (16 bytes, aligned; lanes from 8 * num on are not used). Register r of lane t holds columns 2 * (t % 4) and the
    next (low half first) of row t // 4 of matrix r; with `trans`, of the transposed matrix. All 32 lanes."""
    held = fragment_layouts.elements(fragment_layouts.ldmatrix_b16(num, trans).dst)
    return _of_warps(m, m.read_rows(_rows(m, addr, 8 * num), 16), held, np.uint16)


@instr("stmatrix.sync.aligned.m8n8.x{num}{suffix}.shared::cta.b16 [$addr], $src;", target="sm_90",
       issuer=WARP, lanes=WARPS, ref=f"{_REF}-stmatrix", over=_OVER, defaults={"trans": False})  # fmt: skip
def stmatrix(m: Machine, addr: smem, src: _WORDS, *, num: int, trans: bool) -> None:
    """Store `num` (1, 2, 4) matrices of 8 by 8 16-bit elements: `ldmatrix` the other way. All 32 lanes. Generic
    proxy: a TMA store or wgmma that reads it needs `fence_proxy_async` in each lane first."""
    held = fragment_layouts.elements(fragment_layouts.stmatrix_b16(num, trans).src)
    _store(m, addr, src, 8 * num, held, np.uint16)


@instr(
    "movmatrix.sync.aligned.m8n8.trans.b16 $dst, $src;",
    target="sm_75",
    issuer=WARP,
    lanes=WARPS,
    ref=f"{_REF}-movmatrix",
)
def movmatrix(m: Machine, src: u32, dst: out(u32)) -> Any:
    """Transpose an 8 by 8 matrix of 16-bit elements in registers: lane t holds columns 2 * (t % 4) and the next (low
    half first) of row t // 4, before and after. All 32 lanes."""
    held = fragment_layouts.elements(fragment_layouts.ldmatrix_b16(1, False).dst)
    elements = np.empty((_warps(m), 64), np.uint16)
    elements[:, held] = np.ascontiguousarray(np.asarray(src).astype(np.uint32)).view(np.uint16).reshape(-1, 32, 2)
    turned = np.ascontiguousarray(elements.reshape(-1, 8, 8).transpose(0, 2, 1))
    return _of_warps(m, turned, held, np.uint16)[:, 0]


_BYTES = "sm_100f|sm_110f|sm_120f"
_B8 = [{"num": n, "regs": 2 * n, "trans": True} for n in (1, 2)]


@instr("ldmatrix.sync.aligned.m16n16.x{num}.trans.shared::cta.b8 $dst, [$addr];", target=_BYTES,
       issuer=WARP, lanes=WARPS, ref=f"{_REF}-ldmatrix", over=_B8)  # fmt: skip
def ldmatrix_m16n16_b8(m: Machine, dst: out(u32["regs"]), addr: smem, *, num: int) -> Any:
    """Load `num` (1, 2) 16 by 16 matrices of bytes, transposed. Lane i gives the address of row i % 16 of matrix i //
    16 (16 bytes, aligned; lanes from 16 * num on are not used). Fragment: `fragment_layouts.ldmatrix_m16n16_b8`. All 32
    lanes."""
    held = fragment_layouts.elements(fragment_layouts.ldmatrix_m16n16_b8(num).dst)
    return _of_warps(m, m.read_rows(_rows(m, addr, 16 * num), 16), held, np.uint8)


@instr("stmatrix.sync.aligned.m16n8.x{num}.trans.shared::cta.b8 [$addr], $src;", target=_BYTES,
       issuer=WARP, lanes=WARPS,
       ref=f"{_REF}-stmatrix", over=[{"num": n, "trans": True} for n in (1, 2, 4)])  # fmt: skip
def stmatrix_m16n8_b8(m: Machine, addr: smem, src: _WORDS, *, num: int) -> None:
    """Store `num` (1, 2, 4) 16 by 8 matrices of bytes, transposed: 8 rows of 16 bytes each. Lane i gives the address
    of row i % 8 of matrix i // 8. Fragment: `fragment_layouts.stmatrix_m16n8_b8`. All 32 lanes."""
    _store(m, addr, src, 8 * num, fragment_layouts.elements(fragment_layouts.stmatrix_m16n8_b8(num).src), np.uint8)


def _unpacked(rows: Any, bits: int) -> Any:
    """Rows of 16 elements of 4 or 6 bits, in 16 bytes, as rows of 16 bytes: each in its low bits."""
    each = np.unpackbits(rows, axis=1, bitorder="little")[:, : 16 * bits].reshape(len(rows), 16, bits)
    return np.packbits(each, axis=2, bitorder="little")[..., 0]


_PACKED = [{"bits": b, "fmt": f} for b, f in ((4, "b4x16_p64"), (6, "b6x16_p32"))]


@instr("ldmatrix.sync.aligned.m8n16.x{num}.shared::cta.b8x16.{fmt} $dst, [$addr];", target=_BYTES,
       issuer=WARP, lanes=WARPS,
       ref=f"{_REF}-ldmatrix", over=[{"num": n, "trans": False, **p} for n in (1, 2, 4) for p in _PACKED])  # fmt: skip
def ldmatrix_m8n16_unpack(m: Machine, dst: out(_WORDS), addr: smem, *, num: int, bits: int) -> Any:
    """Load `num` (1, 2, 4) 8 by 16 matrices of elements of `bits` (4, 6) bits, each into the low bits of a byte: rows
    as in `ldmatrix`, of 16 packed elements and padding. Lane t holds columns 4 * (t % 4) to + 3 of row t // 4. All 32
    lanes."""
    rows = np.ascontiguousarray(_unpacked(m.read_rows(_rows(m, addr, 8 * num), 16), bits)).view(np.uint32)
    return rows.reshape(_warps(m), num, 32).transpose(0, 2, 1).reshape(-1, num)


@instr("ldmatrix.sync.aligned.m16n16.x{num}.trans.shared::cta.b8x16.{fmt} $dst, [$addr];", target=_BYTES,
       issuer=WARP, lanes=WARPS, ref=f"{_REF}-ldmatrix", over=[{**c, **p} for c in _B8 for p in _PACKED])  # fmt: skip
def ldmatrix_m16n16_unpack(m: Machine, dst: out(u32["regs"]), addr: smem, *, num: int, bits: int) -> Any:
    """`ldmatrix_m16n16_b8` of elements of `bits` (4, 6) bits, each into the low bits of a byte; a row is 16 packed
    elements and padding up to 16 bytes. All 32 lanes."""
    held = fragment_layouts.elements(fragment_layouts.ldmatrix_m16n16_b8(num).dst)
    rows = _unpacked(m.read_rows(_rows(m, addr, 16 * num), 16), bits)
    return _of_warps(m, np.ascontiguousarray(rows), held, np.uint8)
