# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Matrix multiply-accumulate by a warp with a structured sparse A (PTX ISA, "mma.sp::ordered_metadata").

A is given as the half of it that is stored, (16, k / 2), in the fragment of a dense operand of that size; the other
operands are those of `mma`. `sparse` has the metadata. Sums as in `mma`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product as pairs
from typing import Any

import numpy as np

from ..facts import fragment_layouts, fragments, sparse
from ..form.instr import WARP, instr
from ..form.kinds import accumulator, f32, metadata, s32, u32
from ..form.machine import Machine
from ..form.targets import FEATURES
from .mma import _PART, F8F6F4, FP8, _accumulate, _byte, _count, _padded, _same, _scales

_REF = "warp-level-matrix-instructions-mma-sp"
_F32, _F16, _S32 = accumulator(f32[4]), accumulator(u32[2]), accumulator(s32[4])
_A, _B = u32["a_regs"], u32["b_regs"]


def _cases(types: Iterable[tuple[str, str]], ks: Iterable[int], **more: Any) -> Iterator[dict[str, Any]]:
    for (a, b), k in pairs(types, ks):
        width = fragments.WIDTHS[a]
        givers = k // sparse.chunk(width) // 4  # of each four lanes
        for selector in range(4 // givers):
            regs = {"a_regs": k * width // 128, "b_regs": k * width // 128}
            yield {"m": 16, "n": 8, "k": k, "a_type": a, "b_type": b, **regs, "selector": selector, **more}


def _product(
    a: Any, b: Any, e: Any, k: int, types: tuple[str, str], selector: int
) -> tuple[Any, fragment_layouts.MmaLayouts]:
    """a @ b.T (16, 8), and the fragments."""
    width = fragments.WIDTHS[types[0]]
    atom = fragment_layouts.mma_sparse(k, width)
    kept = fragments.matrix(fragments.values(a, types[0]), atom.a, 16, k // 2)
    dense = sparse.expand(kept, e, k, width, selector)
    with np.errstate(over="ignore", invalid="ignore"):
        return dense @ fragments.matrix(fragments.values(b, types[1]), atom.b, 8, k).T, atom


def _forms(d: str, over: Iterable[dict[str, Any]], target: str = "sm_80", kind: str = "") -> dict[str, Any]:
    form = (
        f"mma.sp::ordered_metadata.sync.aligned.m16n8k{{k}}.row.col{kind}.{{d_type}}.{{a_type}}.{{b_type}}.{{d_type}}"
    )
    cases = [{**case, "d_type": d} for case in over]
    text = f"{form} $acc, $a, $b, $acc, $e, {{selector}};"
    return {"ptx": text, "target": target, "issuer": WARP, "ref": _REF, "over": cases}


_HALF = list(_cases(_same("f16"), (32, 16)))
_WIDE = [*_HALF, *_cases(_same("bf16"), (32, 16)), *_cases(_same("tf32"), (16, 8))]


@instr(**_forms("f32", _WIDE))
def mma_sp_f32(
    m: Machine, acc: _F32, a: _A, b: _B, e: metadata, *, k: int, a_type: str, b_type: str, selector: int
) -> None:
    """acc (16, 8) += A (16, k) @ b (8, k).T in float32, of A its stored half `a` (16, k / 2) and the metadata `e`, a
    word a lane. f16 and bf16: k 32 or 16; tf32: k 16 or 8. Of each four lanes those count that `selector` names: 0 or
    1 (k 32, 16), the first or the second two; 0 to 3 (k 16, 8), that one. All 32 lanes."""
    total, atom = _product(a, b, e, k, (a_type, b_type), selector)
    _accumulate(acc, total, atom, np.float32)


@instr(**_forms("f16", _HALF))
def mma_sp_f16(m: Machine, acc: _F16, a: _A, b: _B, e: metadata, *, k: int, selector: int) -> None:
    """`mma_sp_f32` of f16 operands with an f16 accumulator: 2 words a lane, two elements each, low half first."""
    total, atom = _product(a, b, e, k, ("f16", "f16"), selector)
    _accumulate(acc, total, atom, np.float16)


@instr(**_forms("f32", _cases(pairs(FP8, FP8), (64,)), "sm_89"))
def mma_sp_f32_fp8(
    m: Machine, acc: _F32, a: _A, b: _B, e: metadata, *, k: int, a_type: str, b_type: str, selector: int
) -> None:
    """`mma_sp_f32` of e4m3 or e5m2 operands, each its own; k 64, selector 0: all lanes' metadata count."""
    total, atom = _product(a, b, e, k, (a_type, b_type), selector)
    _accumulate(acc, total, atom, np.float32)


def _integer_cases() -> Iterator[dict[str, Any]]:
    for types, ks in ((("s8", "u8"), (64, 32)), (("s4", "u4"), (128, 64))):
        for saturate, text in ((False, ""), (True, ".satfinite")):
            yield from _cases(pairs(types, types), ks, saturate=saturate, sat=text)


@instr(**_forms("s32", _integer_cases(), kind="{sat}"), defaults={"saturate": False})
def mma_sp_s32(
    m: Machine, acc: _S32, a: _A, b: _B, e: metadata, *, k: int, a_type: str, b_type: str, selector: int, saturate: bool
) -> None:
    """acc (16, 8) += A (16, k) @ b (8, k).T in int32, wrapping, or with `saturate` clamping; A as in `mma_sp_f32`. s8,
    u8: k 64 (selector 0) or 32 (0, 1); s4, u4: k 128 (0) or 64 (0, 1); each operand its own sign. All 32 lanes."""
    total, atom = _product(a, b, e, k, (a_type, b_type), selector)
    _count(acc, total, atom, saturate)


# ---------------------------------------------------------------- of 8, 6 and 4 bits, with factors (sm_120a)

_BYTES = [
    {**c, "a_regs": 4, "b_regs": 4, "selector": 0} for c in _padded(pairs(F8F6F4, F8F6F4), (64,), vec=1, sf="ue8m0")
]


@instr(**_forms("f32", _BYTES, FEATURES["block-scaled mma"], ".kind::f8f6f4"))
def mma_sp_f32_f8f6f4(
    m: Machine, acc: _F32, a: _A, b: _B, e: metadata, *, k: int, a_type: str, b_type: str, selector: int
) -> None:
    """`mma_sp_f32_fp8` of e4m3, e5m2, e2m3, e3m2 or e2m1 operands, each its own and in a byte, as `mma_f32_f8f6f4` has
    them."""
    total, atom = _product(a, b, e, k, (_byte(a_type), _byte(b_type)), selector)
    _accumulate(acc, total, atom, np.float32)


@instr(**_forms("f16", _BYTES, FEATURES["block-scaled mma"], ".kind::f8f6f4"))
def mma_sp_f16_f8f6f4(
    m: Machine, acc: _F16, a: _A, b: _B, e: metadata, *, k: int, a_type: str, b_type: str, selector: int
) -> None:
    """`mma_sp_f32_f8f6f4` with an f16 accumulator: 2 words a lane, two elements each, low half first."""
    total, atom = _product(a, b, e, k, (_byte(a_type), _byte(b_type)), selector)
    _accumulate(acc, total, atom, np.float16)


def _block(kind: str, over: Iterable[dict[str, Any]], target: str) -> dict[str, Any]:
    form = f"mma.sp::ordered_metadata.sync.aligned.m16n8k{{k}}.row.col.kind::{kind}.block_scale.scale_vec::{{vec}}X"
    operands = "$acc, $a, $b, $acc, $e, {selector}, {$scale_a}, {$byte_a, $thread_a}, {$scale_b}, {$byte_b, $thread_b};"
    text = f"{form}.f32.{{a_type}}.{{b_type}}.f32.{{sf}} " + operands
    cases = [{**case, "d_type": "f32"} for case in over]
    return {"ptx": text, "target": target, "issuer": WARP, "ref": _REF, "over": cases}


def _scaled(
    m: Machine, acc: Any, operands: tuple[Any, ...], scales: tuple[Any, ...], form: tuple[Any, ...], selector: int
) -> None:
    """The factors go with the columns of the whole A: of those that share one, half are stored."""
    k, a_type, b_type, per_k, sf = form
    a, b, e = operands
    scale_a, byte_a, thread_a, scale_b, byte_b, thread_b = scales
    width, atom = fragments.WIDTHS[a_type], fragment_layouts.mma_sparse(k, fragments.WIDTHS[a_type])
    kept = fragments.matrix(fragments.values(a, a_type), atom.a, 16, k // 2)
    dense = sparse.expand(kept, e, k, width, selector)
    dense = dense * _scales(scale_a, byte_a, thread_a, per_k, k, sf, 16)
    other = fragments.matrix(fragments.values(b, b_type), atom.b, 8, k)
    other = other * _scales(scale_b, byte_b, thread_b, per_k, k, sf, 8)
    with np.errstate(over="ignore", invalid="ignore"):
        _accumulate(acc, dense @ other.T, atom, np.float32)


_OF_FP4 = "sm_120a|sm_121a"
_FP4 = [{**c, "vec": 2, "sf": "ue8m0"} for c in _cases(_same("e2m1"), (128,))]
_NVF4 = [{**c, "vec": 4, "sf": "ue4m3"} for c in _cases(_same("e2m1"), (128,))]


@instr(**_block("mxf4", _FP4, _OF_FP4))
def mma_sp_mxf4(
    m: Machine, acc: _F32, a: _A, b: _B, e: metadata, scale_a: u32, byte_a: _PART, thread_a: _PART, scale_b: u32,
    byte_b: _PART, thread_b: _PART, *, k: int, a_type: str, b_type: str, vec: int, sf: str, selector: int,
) -> None:  # fmt: skip
    """acc (16, 8) += (A * its factors) @ (b * its factors).T in float32, of e2m1 operands, A (16, 128) sparse as of
    `mma_sp_s32` with s4, with a ue8m0 factor for each 64 columns of a row, where `mma_mxf4` has them. All 32 lanes."""
    scales = (scale_a, byte_a, thread_a, scale_b, byte_b, thread_b)
    _scaled(m, acc, (a, b, e), scales, (k, a_type, b_type, vec, sf), selector)


@instr(**_block("mxf4nvf4", [*_NVF4, *_FP4], _OF_FP4))
def mma_sp_mxf4nvf4(
    m: Machine, acc: _F32, a: _A, b: _B, e: metadata, scale_a: u32, byte_a: _PART, thread_a: _PART, scale_b: u32,
    byte_b: _PART, thread_b: _PART, *, k: int, a_type: str, b_type: str, vec: int, sf: str, selector: int,
) -> None:  # fmt: skip
    """`mma_sp_mxf4` with a ue4m3 factor for each 32 columns of a row (vec 4), or as `mma_sp_mxf4` (vec 2)."""
    scales = (scale_a, byte_a, thread_a, scale_b, byte_b, thread_b)
    _scaled(m, acc, (a, b, e), scales, (k, a_type, b_type, vec, sf), selector)


@instr(**_block("mxf8f6f4", _BYTES, FEATURES["block-scaled mma"]))
def mma_sp_mxf8f6f4(
    m: Machine, acc: _F32, a: _A, b: _B, e: metadata, scale_a: u32, byte_a: _PART, thread_a: _PART, scale_b: u32,
    byte_b: _PART, thread_b: _PART, *, k: int, a_type: str, b_type: str, vec: int, sf: str, selector: int,
) -> None:  # fmt: skip
    """`mma_sp_f32_f8f6f4` with a ue8m0 factor for each row of 64 columns, where `mma_mxf8f6f4` has them."""
    scales = (scale_a, byte_a, thread_a, scale_b, byte_b, thread_b)
    _scaled(m, acc, (a, b, e), scales, (k, _byte(a_type), _byte(b_type), vec, sf), selector)
