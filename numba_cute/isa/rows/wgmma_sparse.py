# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""wgmma with a structured sparse A (PTX ISA, "wgmma.mma_async.sp"): A is given as the half of it that is stored,
(64, k / 2), where and as a dense operand of that size is; `sparse` has the metadata. All else is as in `wgmma`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..facts import fragments, sparse
from ..form.cases import each
from ..form.instr import instr
from ..form.kinds import metadata
from ..form.machine import Machine
from .wgmma import (
    _A_WORDS,
    _ACC,
    _ACC_F16,
    _ACC_S32,
    _BYTES,
    _DESC,
    _FLOATS,
    _FP8,
    _INTEGER_N,
    _MAJOR,
    _MMA,
    _USE_ACC,
    _Form,
    _Matrix,
    _multiply,
    _operand,
    forms,
)  # fmt: skip

_SP: dict[str, Any] = {**_MMA, "ref": "asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async-sp"}
_PLAIN: dict[str, Any] = {**_SP, "defaults": {**_MAJOR, "scale_a": 1}}
_PLAIN_K: dict[str, Any] = {**_SP, "defaults": {"scale_a": 1}}
_WRAPPING: dict[str, Any] = {**_SP, "defaults": {"saturate": False}}


def _issue(
    m: Machine, form: _Form, acc: Any, a: Any, b_desc: Any, e: Any, use_acc: Any, selector: int, *,
    smem: bool, majors: tuple[int, int] = (0, 0),
) -> None:  # fmt: skip
    """`a`: the descriptor of A's stored half, or its registers."""
    width = fragments.WIDTHS[form.a]
    k, reads = 512 // width, []
    kept: _Matrix
    if smem:
        at, kept = _operand(m, a, majors[0], 64, k // 2, form.a)
        reads.append((at, 16))
    else:
        held = fragments.matrix(fragments.values(np.array(a), form.a), form.atom.a, 64, k // 2)

        def kept() -> Any:
            return held

    b_at, b = _operand(m, b_desc, majors[1], form.n, k, form.b)
    words = np.array(e)
    sparse.stored(words, 64, k, width, selector)  # what is wrong with the metadata is said where it is issued
    _multiply(m, form, acc, lambda: sparse.expand(kept(), words, k, width, selector), b, use_acc, [*reads, (b_at, 16)])


def _cases(types: tuple[str, ...], d: str, a_src: str) -> Iterator[dict[str, Any]]:
    for n in range(8, 257, 8):
        for ab in types:
            case = {"n": n, "ab": ab, "trans_a": each(0, 1) if a_src == "smem" else 0, "trans_b": each(0, 1)}
            yield from forms(32, d, ab, ab, a_src, [{**case, "scale_a": each(1, -1), "selector": each(0, 1)}])


def _k_cases(types: list[tuple[str, str]], d: str, a_src: str) -> Iterator[dict[str, Any]]:
    for n in range(8, 257, 8):
        for a, b in types:
            selector = each(0, 1) if a == "tf32" else 0
            case = {"n": n, "trans_a": 0, "trans_b": 0, "scale_a": each(1, -1), "selector": selector}
            yield from forms(512 // fragments.WIDTHS[a], d, a, b, a_src, [case])


def _integer_cases(a_src: str) -> Iterator[dict[str, Any]]:
    for saturate, text in ((False, ""), (True, ".satfinite")):
        for n in _INTEGER_N:
            for a, b in _BYTES:
                case = {"n": n, "trans_a": 0, "trans_b": 0, "saturate": saturate, "sat": text, "selector": 0}
                yield from forms(64, "s32", a, b, a_src, [case])


_HEAD = "wgmma.mma_async.sp.sync.aligned.m64n{n}"
_SS = "$acc, $a_desc, $b_desc, $e, {selector}, $use_acc, {scale_a}, 1, {trans_a}, {trans_b};"
_RS = "$acc, $a, $b_desc, $e, {selector}, $use_acc, {scale_a}, 1, {trans_b};"
_SS_K = "$acc, $a_desc, $b_desc, $e, {selector}, $use_acc, {scale_a}, 1;"
_RS_K = "$acc, $a, $b_desc, $e, {selector}, $use_acc, {scale_a}, 1;"
_SS_INT = "$acc, $a_desc, $b_desc, $e, {selector}, $use_acc;"
_RS_INT = "$acc, $a, $b_desc, $e, {selector}, $use_acc;"


@instr(_HEAD + "k32.f32.{ab}.{ab} " + _SS, **_PLAIN, over=_cases(("f16", "bf16"), "f32", "smem"))
def wgmma_sp_ss(
    m: Machine, acc: _ACC, a_desc: _DESC, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, ab: str, trans_a: int, trans_b: int, scale_a: int, selector: int,
) -> None:  # fmt: skip
    """acc (64, n) = scale_a * A (64, 32) @ b (n, 32).T + (acc if use_acc else 0), asynchronously: `wgmma_ss` with the
    stored half (64, 16) of A at `a_desc`, and its metadata `e`, a word a thread, of which those of the first (selector
    0) or the second (1) two of each four threads count. `e` must not be changed before the group is done."""
    form = _Form(n, ab, ab, np.float32, scale_a)
    _issue(m, form, acc, a_desc, b_desc, e, use_acc, selector, smem=True, majors=(trans_a, trans_b))


@instr(_HEAD + "k32.f32.{ab}.{ab} " + _RS, **_PLAIN, over=_cases(("f16", "bf16"), "f32", "rmem"))
def wgmma_sp_rs(
    m: Machine, acc: _ACC, a: _A_WORDS, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, ab: str, trans_b: int, scale_a: int, selector: int,
) -> None:  # fmt: skip
    """`wgmma_sp_ss` with A's stored half in registers, as in `wgmma_rs`."""
    form = _Form(n, ab, ab, np.float32, scale_a)
    _issue(m, form, acc, a, b_desc, e, use_acc, selector, smem=False, majors=(0, trans_b))


@instr(_HEAD + "k32.f16.f16.f16 " + _SS, **_PLAIN, over=_cases(("f16",), "f16", "smem"))
def wgmma_sp_f16_ss(
    m: Machine, acc: _ACC_F16, a_desc: _DESC, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, trans_a: int, trans_b: int, scale_a: int, selector: int,
) -> None:  # fmt: skip
    """`wgmma_sp_ss` of f16 operands with an f16 accumulator: n / 4 words a thread, low half first."""
    form = _Form(n, "f16", "f16", np.float16, scale_a)
    _issue(m, form, acc, a_desc, b_desc, e, use_acc, selector, smem=True, majors=(trans_a, trans_b))


@instr(_HEAD + "k32.f16.f16.f16 " + _RS, **_PLAIN, over=_cases(("f16",), "f16", "rmem"))
def wgmma_sp_f16_rs(
    m: Machine, acc: _ACC_F16, a: _A_WORDS, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, trans_b: int, scale_a: int, selector: int,
) -> None:  # fmt: skip
    """`wgmma_sp_rs` of f16 operands with an f16 accumulator: n / 4 words a thread, low half first."""
    form = _Form(n, "f16", "f16", np.float16, scale_a)
    _issue(m, form, acc, a, b_desc, e, use_acc, selector, smem=False, majors=(0, trans_b))


@instr(_HEAD + "k{k}.f32.{a_type}.{b_type} " + _SS_K, **_PLAIN_K, over=_k_cases(_FLOATS, "f32", "smem"))
def wgmma_sp_k_ss(
    m: Machine, acc: _ACC, a_desc: _DESC, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, scale_a: int, selector: int,
) -> None:  # fmt: skip
    """`wgmma_sp_ss` of tf32 operands (k 16), or of fp8 operands, each e4m3 or e5m2 (k 64, selector 0: all threads'
    metadata count); both K-major."""
    form = _Form(n, a_type, b_type, np.float32, scale_a)
    _issue(m, form, acc, a_desc, b_desc, e, use_acc, selector, smem=True)


@instr(_HEAD + "k{k}.f32.{a_type}.{b_type} " + _RS_K, **_PLAIN_K, over=_k_cases(_FLOATS, "f32", "rmem"))
def wgmma_sp_k_rs(
    m: Machine, acc: _ACC, a: _A_WORDS, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, scale_a: int, selector: int,
) -> None:  # fmt: skip
    """`wgmma_sp_k_ss` with A's stored half in registers."""
    form = _Form(n, a_type, b_type, np.float32, scale_a)
    _issue(m, form, acc, a, b_desc, e, use_acc, selector, smem=False)


@instr(_HEAD + "k{k}.f16.{a_type}.{b_type} " + _SS_K, **_PLAIN_K, over=_k_cases(_FP8, "f16", "smem"))
def wgmma_sp_k_f16_ss(
    m: Machine, acc: _ACC_F16, a_desc: _DESC, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, scale_a: int, selector: int,
) -> None:  # fmt: skip
    """`wgmma_sp_k_ss` of fp8 operands with an f16 accumulator: n / 4 words a thread, low half first."""
    form = _Form(n, a_type, b_type, np.float16, scale_a)
    _issue(m, form, acc, a_desc, b_desc, e, use_acc, selector, smem=True)


@instr(_HEAD + "k{k}.f16.{a_type}.{b_type} " + _RS_K, **_PLAIN_K, over=_k_cases(_FP8, "f16", "rmem"))
def wgmma_sp_k_f16_rs(
    m: Machine, acc: _ACC_F16, a: _A_WORDS, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, scale_a: int, selector: int,
) -> None:  # fmt: skip
    """`wgmma_sp_k_rs` of fp8 operands with an f16 accumulator: n / 4 words a thread, low half first."""
    form = _Form(n, a_type, b_type, np.float16, scale_a)
    _issue(m, form, acc, a, b_desc, e, use_acc, selector, smem=False)


@instr(_HEAD + "k64{sat}.s32.{a_type}.{b_type} " + _SS_INT, **_WRAPPING, over=_integer_cases("smem"))
def wgmma_sp_s32_ss(
    m: Machine, acc: _ACC_S32, a_desc: _DESC, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, saturate: bool, selector: int,
) -> None:  # fmt: skip
    """`wgmma_s32_ss` of a sparse A (64, 64) and b (n, 64): A and `e` as in `wgmma_sp_ss`, selector 0."""
    form = _Form(n, a_type, b_type, np.int32, 1, "sat" if saturate else "")
    _issue(m, form, acc, a_desc, b_desc, e, use_acc, selector, smem=True)


@instr(_HEAD + "k64{sat}.s32.{a_type}.{b_type} " + _RS_INT, **_WRAPPING, over=_integer_cases("rmem"))
def wgmma_sp_s32_rs(
    m: Machine, acc: _ACC_S32, a: _A_WORDS, b_desc: _DESC, e: metadata, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, saturate: bool, selector: int,
) -> None:  # fmt: skip
    """`wgmma_sp_s32_ss` with A's stored half in registers."""
    form = _Form(n, a_type, b_type, np.int32, 1, "sat" if saturate else "")
    _issue(m, form, acc, a, b_desc, e, use_acc, selector, smem=False)
