# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Matrix multiply-accumulate by a warp (PTX ISA, "mma"): acc (m, 8) += a (m, k) @ b (8, k).T, complete when issued.

A case of these rows, and of the other matrix rows, says what it multiplies: m, n, k, the operands' types and that of
the accumulator, d_type, as PTX names them; operations are checked against these (nvgpu).

Fragments are `fragment_layouts.mma_sync(m, k, bits of an element)`; all registers but those of f64 hold 32 bits. Sums
are formed in float32, in NumPy's order: the hardware's order and its rounding of sums are not documented, so low bits
may differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product as pairs
from typing import Any

import numpy as np

from ..facts import fragment_layouts, fragments
from ..form.instr import WARP, instr
from ..form.kinds import Role, accumulator, f32, f64, s32, same, u16, u32
from ..form.machine import Machine
from ..form.targets import FEATURES

_REF = "warp-level-matrix-instructions-mma"
_F32, _F16, _S32 = accumulator(f32[4]), accumulator(u32[2]), accumulator(s32["c_regs"])
_A, _B = u32["a_regs"], u32["b_regs"]
_PART = same(u16.means(Role.SELECTOR))
_A64, _B64 = f64["a_regs"], f64["b_regs"]
FP8 = ("e4m3", "e5m2")
F8F6F4 = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


def _cases(types: Iterable[tuple[str, str]], ks: Iterable[int], m: int = 16, **more: Any) -> Iterator[dict[str, Any]]:
    for (a, b), k in pairs(types, ks):
        width = fragments.WIDTHS[a]
        sizes = {"a_regs": m * k * width // 1024, "b_regs": 8 * k * width // 1024, "c_regs": m // 4}
        yield {"m": m, "n": 8, "k": k, "a_type": a, "b_type": b, **sizes, **more}


def _same(*types: str) -> list[tuple[str, str]]:
    return [(t, t) for t in types]


def _accumulate(acc: Any, total: Any, atom: fragment_layouts.MmaLayouts, view: Any) -> None:
    """Add `total` (m, 8) to the accumulators, rounded to their type `view`. A zero is +0, of whatever signs the terms
    are, as on an H200."""
    index = fragment_layouts.row_major(atom.c, atom.shape_mnk[0], 8)
    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results like others
        old = np.ascontiguousarray(acc).view(view)
        acc[...] = ((old + total.ravel()[index]).astype(view) + view(0)).view(acc.dtype)


def _operands(a: Any, b: Any, m: int, k: int, a_type: str, b_type: str) -> tuple[Any, Any, fragment_layouts.MmaLayouts]:
    atom = fragment_layouts.mma_sync(m, k, fragments.WIDTHS[a_type])
    a_matrix = fragments.matrix(fragments.values(a, a_type), atom.a, m, k)
    return a_matrix, fragments.matrix(fragments.values(b, b_type), atom.b, 8, k), atom


def _multiply(acc: Any, a: Any, b: Any, k: int, types: tuple[str, str], view: Any) -> None:
    a_matrix, b_matrix, atom = _operands(a, b, 16, k, *types)
    with np.errstate(over="ignore", invalid="ignore"):
        total = a_matrix @ b_matrix.T
    _accumulate(acc, total, atom, view)


def _forms(d: str, over: Iterable[dict[str, Any]], target: str = "sm_80", kind: str = "") -> dict[str, Any]:
    types = "{d_type}.{a_type}.{b_type}.{d_type}"
    text = f"mma.sync.aligned.m{{m}}n{{n}}k{{k}}.row.col.{kind}{types} $acc, $a, $b, $acc;"
    cases = [{**case, "d_type": d} for case in over]
    return {"ptx": text, "target": target, "issuer": WARP, "ref": _REF, "over": cases}


_WIDE = [*_cases(_same("f16", "bf16"), (16, 8)), *_cases(_same("tf32"), (8, 4))]
_HALF = list(_cases(_same("f16"), (16, 8)))
_FP8 = list(_cases(pairs(FP8, FP8), (32, 16)))


@instr(**_forms("f32", _WIDE))
def mma_f32(m: Machine, acc: _F32, a: _A, b: _B, *, k: int, a_type: str, b_type: str) -> None:
    """acc (16, 8) += a (16, k) @ b (8, k).T in float32. f16 and bf16: k 16 or 8; tf32: k 8 or 4 (the 13 low bits of
    each float are ignored). All 32 lanes."""
    _multiply(acc, a, b, k, (a_type, b_type), np.float32)


@instr(**_forms("f16", _HALF))
def mma_f16(m: Machine, acc: _F16, a: _A, b: _B, *, k: int) -> None:
    """`mma_f32` of f16 operands with an f16 accumulator: 2 words a lane, two elements each, low half first."""
    _multiply(acc, a, b, k, ("f16", "f16"), np.float16)


@instr(**_forms("f32", _FP8, "sm_89"))
def mma_f32_fp8(m: Machine, acc: _F32, a: _A, b: _B, *, k: int, a_type: str, b_type: str) -> None:
    """`mma_f32` of e4m3 or e5m2 operands, each its own; k 32 or 16."""
    _multiply(acc, a, b, k, (a_type, b_type), np.float32)


@instr(**_forms("f16", _FP8, "sm_89"))
def mma_f16_fp8(m: Machine, acc: _F16, a: _A, b: _B, *, k: int, a_type: str, b_type: str) -> None:
    """`mma_f32_fp8` with an f16 accumulator: 2 words a lane, two elements each, low half first."""
    _multiply(acc, a, b, k, (a_type, b_type), np.float16)


def _padded(types: Iterable[tuple[str, str]], ks: Iterable[int], **more: Any) -> Iterator[dict[str, Any]]:
    """Cases of .kind::f8f6f4, where each element takes a byte."""
    for a, b in types:
        case = next(_cases([("e4m3", "e4m3")], ks, **more))
        yield {**case, "a_type": a, "b_type": b}


def _byte(name: str) -> str:
    return "e2m1x8" if name == "e2m1" else name


_F8F6F4 = [c for c in _padded(pairs(F8F6F4, F8F6F4), (32,))]


@instr(**_forms("f32", _F8F6F4, FEATURES["block-scaled mma"], "kind::f8f6f4."))
def mma_f32_f8f6f4(m: Machine, acc: _F32, a: _A, b: _B, *, k: int, a_type: str, b_type: str) -> None:
    """`mma_f32` of e4m3, e5m2, e2m3, e3m2 or e2m1 operands, each its own; k 32. Each element takes a byte: a 6-bit
    one its bits 0 to 5, an e2m1 its bits 2 to 5."""
    _multiply(acc, a, b, k, (_byte(a_type), _byte(b_type)), np.float32)


@instr(**_forms("f16", _F8F6F4, FEATURES["block-scaled mma"], "kind::f8f6f4."))
def mma_f16_f8f6f4(m: Machine, acc: _F16, a: _A, b: _B, *, k: int, a_type: str, b_type: str) -> None:
    """`mma_f32_f8f6f4` with an f16 accumulator: 2 words a lane, two elements each, low half first."""
    _multiply(acc, a, b, k, (_byte(a_type), _byte(b_type)), np.float16)


def _count(acc: Any, total: Any, atom: fragment_layouts.MmaLayouts, saturate: bool) -> None:
    """Add `total` (m, 8) to integer accumulators, which wrap or are clamped."""
    index = fragment_layouts.row_major(atom.c, atom.shape_mnk[0], 8)
    exact = total.ravel()[index].astype(np.int64) + acc
    acc[...] = np.clip(exact, -(1 << 31), (1 << 31) - 1) if saturate else exact.astype(np.int32)


def _integer_cases() -> Iterator[dict[str, Any]]:
    for types, big in ((("s8", "u8"), (32, 16)), (("s4", "u4"), (64, 32))):
        for saturate, text in ((False, ""), (True, ".satfinite")):
            yield from _cases(pairs(types, types), big, 16, d_type="s32", saturate=saturate, sat=text)
            yield from _cases(pairs(types, types), big[1:], 8, d_type="s32", saturate=saturate, sat=text)


@instr("mma.sync.aligned.m{m}n8k{k}.row.col{sat}.s32.{a_type}.{b_type}.s32 $acc, $a, $b, $acc;",
       target="sm_80", issuer=WARP, ref=_REF, over=_integer_cases(), defaults={"saturate": False})  # fmt: skip
def mma_s32(
    machine: Machine, acc: _S32, a: _A, b: _B, *, m: int, k: int, a_type: str, b_type: str, saturate: bool
) -> None:
    """acc (m, 8) += a (m, k) @ b (8, k).T in int32, wrapping, or with `saturate` clamping the result. s8, u8: (m, k)
    = (16, 32), (16, 16), (8, 16); s4, u4: (16, 64), (16, 32), (8, 32); each operand its own sign. All 32 lanes."""
    a_matrix, b_matrix, atom = _operands(a, b, m, k, a_type, b_type)
    _count(acc, a_matrix @ b_matrix.T, atom, saturate)


_BITS = [
    *(c for op in ("xor", "and") for c in _cases(_same("b1"), (256, 128), 16, d_type="s32", op=op)),
    *(c for op in ("xor", "and") for c in _cases(_same("b1"), (128,), 8, d_type="s32", op=op)),
]


@instr("mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{op}.popc $acc, $a, $b, $acc;",
       target="sm_80", issuer=WARP, ref=_REF, over=_BITS)  # fmt: skip
def mma_b1(machine: Machine, acc: _S32, a: _A, b: _B, *, m: int, k: int, op: str) -> None:
    """acc (m, 8) += the number of bits set in `op` ("xor", "and") of row i of a (m, k) and row j of b (8, k), 32 bits
    to a register. (m, k) = (16, 256), (16, 128), (8, 128). All 32 lanes."""
    a_matrix, b_matrix, atom = _operands(a, b, m, k, "b1", "b1")
    _count(acc, fragments.product(a_matrix, b_matrix, op), atom, False)


def _double(acc: Any, a: Any, b: Any, m: int, k: int) -> None:
    atom = fragment_layouts.mma_sync(m, k, 64)
    a_matrix, b_matrix = fragments.matrix(a, atom.a, m, k), fragments.matrix(b, atom.b, 8, k)
    index = fragment_layouts.row_major(atom.c, m, 8)
    total = acc + (a_matrix @ b_matrix.T).ravel()[index]
    if (total == 0).any():
        total = _signed(total, acc, a_matrix, b_matrix, index)
    acc[...] = total


def _signed(total: Any, acc: Any, a: Any, b: Any, index: Any) -> Any:
    """With the signs of the sums whose terms are all zero or too small: those of a chain of fused multiply-adds from
    the accumulator on, seen on an H200. -0 stays only if each term is -0, and a product that underflows gives its
    sign."""
    terms = (a[:, None] * b[None]).reshape(-1, a.shape[1])[index]
    exact = ((a[:, None] == 0) | (b[None] == 0)).reshape(-1, a.shape[1])[index]
    negative = np.signbit(acc)
    for k in range(a.shape[1]):
        minus = np.signbit(terms[..., k])
        negative = np.where(exact[..., k], negative & minus, minus)
    small = (acc == 0) & (terms == 0).all(axis=-1)
    return np.where(small, np.copysign(0.0, np.where(negative, -1.0, 1.0)), total)


def _double_cases(m: int, ks: tuple[int, ...]) -> list[dict[str, Any]]:
    types = {"a_type": "f64", "b_type": "f64", "d_type": "f64"}
    return [{"m": m, "n": 8, "k": k, **types, "a_regs": m * k // 32, "b_regs": k // 4} for k in ks]


@instr("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 $acc, $a, $b, $acc;", target="sm_80", issuer=WARP, ref=_REF,
       over=_double_cases(8, (4,)))  # fmt: skip
def mma_f64(m: Machine, acc: accumulator(f64[2]), a: f64[1], b: f64[1]) -> None:
    """acc (8, 8) += a (8, 4) @ b (8, 4).T in float64. All 32 lanes."""
    _double(acc, a, b, 8, 4)


_OPAQUE = "{ .reg .b32 low, high; mov.b64 {low, high}, $acc[0]; max.u32 high, high, 0; mov.b64 $acc[0], {low, high}; "
"""Hides from ptxas where the accumulator comes from. For sm_90, ptxas 13.4 makes of `selp` with zero and a 16-row f64
mma a predicated one whose c2 and c3 are copies of c1 (seen in its SASS, and as wrong rows 8 to 15 on an H200,
2026-11-21); it does not see through the maximum with 0."""


@instr(_OPAQUE + "mma.sync.aligned.m16n8k{k}.row.col.f64.f64.f64.f64 $acc, $a, $b, $acc; }", target="sm_90",
       issuer=WARP, ref=_REF, over=_double_cases(16, (16, 8, 4)))  # fmt: skip
def mma_f64_m16(m: Machine, acc: accumulator(f64[4]), a: _A64, b: _B64, *, k: int) -> None:
    """acc (16, 8) += a (16, k) @ b (8, k).T in float64, k 16, 8 or 4. All 32 lanes."""
    _double(acc, a, b, 16, k)


_SCALE_TYPES: dict[str, Any] = {
    "ue8m0": lambda raw: np.ldexp(np.float32(1), raw.astype(np.int32) - 127),
    "ue4m3": lambda raw: (raw & 127).view(fragments._VIEWS["e4m3"]).astype(np.float32),
}


def _scales(words: Any, byte: Any, thread: Any, per_k: int, k: int, sf: str, rows: int) -> Any:
    """The factors (rows, k) of an operand: rows 0 to 7 from lane 4 * row + …, and for A rows 8 on from the next lane
    (PTX ISA, "Block Scaling for mma.sync")."""
    raw = np.ascontiguousarray(np.asarray(words).astype(np.uint32)).view(np.uint8).reshape(32, 4)
    row = np.arange(rows)
    lane = 4 * (row % 8) + (2 * int(thread) + row // 8 if rows == 16 else int(thread))
    factors = _SCALE_TYPES[sf](raw[lane, int(byte) : int(byte) + per_k])
    return np.repeat(factors, k // per_k, axis=1)


def _scaled(m: Machine, acc: Any, operands: tuple[Any, Any], scales: tuple[Any, ...], form: tuple[Any, ...]) -> None:
    k, a_type, b_type, per_k, sf = form
    scale_a, byte_a, thread_a, scale_b, byte_b, thread_b = scales
    a, b, atom = _operands(*operands, 16, k, a_type, b_type)
    a = a * _scales(scale_a, byte_a, thread_a, per_k, k, sf, 16)
    b = b * _scales(scale_b, byte_b, thread_b, per_k, k, sf, 8)
    with np.errstate(over="ignore", invalid="ignore"):
        _accumulate(acc, a @ b.T, atom, np.float32)


def _block(kind: str, k: int, over: Iterable[dict[str, Any]]) -> dict[str, Any]:
    form = f"mma.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale.scale_vec::{{vec}}X"
    operands = "$acc, $a, $b, $acc, {$scale_a}, {$byte_a, $thread_a}, {$scale_b}, {$byte_b, $thread_b};"
    text = f"{form}.f32.{{a_type}}.{{b_type}}.f32.{{sf}} " + operands
    cases = [{**case, "d_type": "f32"} for case in over]
    return {
        "ptx": text,
        "target": FEATURES["block-scaled mma"],
        "issuer": WARP,
        "ref": f"{_REF}-block-scaling",
        "over": cases,
    }


_MXF4 = list(_cases(_same("e2m1"), (64,), vec=2, sf="ue8m0"))
_NVF4 = [*_cases(_same("e2m1"), (64,), vec=4, sf="ue4m3"), *_MXF4]
_MXF8F6F4 = list(_padded(pairs(F8F6F4, F8F6F4), (32,), vec=1, sf="ue8m0"))


@instr(**_block("mxf4", 64, _MXF4))
def mma_mxf4(
    m: Machine, acc: _F32, a: _A, b: _B, scale_a: u32, byte_a: _PART, thread_a: _PART, scale_b: u32, byte_b: _PART,
    thread_b: _PART, *, k: int, a_type: str, b_type: str, vec: int, sf: str,
) -> None:  # fmt: skip
    """acc (16, 8) += (a * its factors) @ (b * its factors).T in float32, of e2m1 operands (16, 64) and (8, 64), with a
    ue8m0 factor for each 32 of a row. Of `scale_a` the bytes from `byte_a` on (0 or 2) count, in lanes 2 * thread_a
    (row t / 4) and 2 * thread_a + 1 (row t / 4 + 8) of each four; of `scale_b` in lane `thread_b` of each four. Byte
    and thread numbers are the same in all lanes. All 32 lanes."""
    scales = (scale_a, byte_a, thread_a, scale_b, byte_b, thread_b)
    _scaled(m, acc, (a, b), scales, (k, a_type, b_type, vec, sf))


@instr(**_block("mxf4nvf4", 64, _NVF4))
def mma_mxf4nvf4(
    m: Machine, acc: _F32, a: _A, b: _B, scale_a: u32, byte_a: _PART, thread_a: _PART, scale_b: u32, byte_b: _PART,
    thread_b: _PART, *, k: int, a_type: str, b_type: str, vec: int, sf: str,
) -> None:  # fmt: skip
    """`mma_mxf4` with a ue4m3 factor for each 16 of a row (vec 4; bytes from 0 on), or as `mma_mxf4` (vec 2)."""
    scales = (scale_a, byte_a, thread_a, scale_b, byte_b, thread_b)
    _scaled(m, acc, (a, b), scales, (k, a_type, b_type, vec, sf))


@instr(**_block("mxf8f6f4", 32, _MXF8F6F4))
def mma_mxf8f6f4(
    m: Machine, acc: _F32, a: _A, b: _B, scale_a: u32, byte_a: _PART, thread_a: _PART, scale_b: u32, byte_b: _PART,
    thread_b: _PART, *, k: int, a_type: str, b_type: str, vec: int, sf: str,
) -> None:  # fmt: skip
    """`mma_f32_f8f6f4` with a ue8m0 factor for each row: `mma_mxf4` of operands (16, 32) and (8, 32), bytes 0 to 3."""
    scales = (scale_a, byte_a, thread_a, scale_b, byte_b, thread_b)
    _scaled(m, acc, (a, b), scales, (k, _byte(a_type), _byte(b_type), vec, sf))
