# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Asynchronous warpgroup matrix multiply-accumulate (PTX ISA, "wgmma").

The order that the hardware wants: `wgmma_fence` before the first wgmma and whenever registers that it uses were
touched; the multiplies; `wgmma_commit_group`; `wgmma_wait_group` before the accumulators are read or the shared
memory is overwritten.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...seam.ground.records import dataclass
from ..facts import fragment_layouts, fragments
from ..facts.bits import WgmmaDescriptor
from ..facts.canonical import CHUNK, K_MAJOR, MN_MAJOR, chunk_offsets, need_canonical, swizzle_addresses
from ..form.cases import each
from ..form.instr import ASYNC, WARPGROUP, WGMMA_GROUP, instr
from ..form.kinds import accumulate, accumulator, descriptor, f32, s32, same, u32
from ..form.machine import Machine
from ..form.targets import FEATURES

_REF = "asynchronous-warpgroup-level-matrix-instructions-wgmma"
_ACC, _ACC_F16, _ACC_S32 = accumulator(f32["regs"]), accumulator(u32["regs"]), accumulator(s32["regs"])
_A_WORDS, _DESC, _USE_ACC = u32[4], same(descriptor), same(accumulate)
_Matrix = Callable[[], Any]
"""A function that gives an operand as float32 (int32 for integers) when the instruction is done: shape (mn, k)."""


@instr("wgmma.fence.sync.aligned;", target=FEATURES["wgmma"], issuer=WARPGROUP, ref=f"{_REF}-fence")
def wgmma_fence(m: Machine) -> None:
    """Order accesses to registers before the wgmmas that use them: before the first one, and after each change of an
    accumulator or A fragment. It does not order shared memory: see `fence_proxy_async`. The whole warpgroup."""
    m.fence_registers()


@instr("wgmma.commit_group.sync.aligned;", target=FEATURES["wgmma"], issuer=WARPGROUP, ref=f"{_REF}-commit-group")
def wgmma_commit_group(m: Machine) -> None:
    """Close the group of all wgmmas issued since the last one. The whole warpgroup."""
    m.commit(WGMMA_GROUP)


@instr("wgmma.wait_group.sync.aligned {n};", target=FEATURES["wgmma"], issuer=WARPGROUP, ref=f"{_REF}-wait-group",
       over=[{"n": n} for n in range(8)])  # fmt: skip
def wgmma_wait_group(m: Machine, *, n: int) -> None:
    """Wait until at most the `n` (0 to 7) latest groups are incomplete. The whole warpgroup, before it reads the
    accumulators or lets the operands' memory go."""
    m.wait(WGMMA_GROUP, n)


@instr("{ .reg .pred p; setp.eq.u32 p, $after, 0x7fedcba9; @p pmevent 7; wgmma.wait_group.sync.aligned {n}; }",
       target=FEATURES["wgmma"], issuer=WARPGROUP, ref=f"{_REF}-wait-group",
       over=[{"n": n} for n in range(8)])  # fmt: skip
def wgmma_wait_group_after(m: Machine, after: u32, *, n: int) -> None:
    """`wgmma_wait_group`, which does not begin before `after` is known. The assembler moves a wait up, over arithmetic
    that follows the multiplies; it does not over an event for profilers, which no thread has unless `after` is one
    certain word (and then it does no harm)."""
    m.wait(WGMMA_GROUP, n)


@dataclass(frozen=True)
class _Form:
    """The choices of the static parameters: n, the operands' types, the accumulator's, the signs' product, and whether
    the sum is clamped (op "sat")."""

    n: int
    a: str
    b: str
    acc: Any
    sign: int = 1
    op: str = ""

    @property
    def atom(self) -> fragment_layouts.MmaLayouts:
        width = fragments.WIDTHS[self.a]
        return fragment_layouts.wgmma(self.n, 256 // width, width, True)


def _operand(m: Machine, descriptor: Any, major: int, mn: int, k: int, ab: str) -> tuple[NDArray[np.int64], _Matrix]:
    """An operand in shared memory: the addresses of its chunks, and what reads it as a matrix (mn, k)."""
    addresses, shape, swizzle, width = _chunks(int(descriptor) & 0xFFFFFFFFFFFFFFFF, major, mn, k, ab)

    def fetch() -> Any:
        chunks = np.ascontiguousarray(m.read_rows(addresses, CHUNK, lay=(swizzle, width))).view(np.uint32)
        matrix = fragments.values(chunks.reshape(shape[0], -1), ab)
        return matrix.T if major == MN_MAJOR else matrix

    return addresses, fetch


@functools.lru_cache(maxsize=4096)
def _chunks(
    descriptor: int, major: int, mn: int, k: int, ab: str
) -> tuple[NDArray[np.int64], tuple[int, ...], int, int]:
    """The addresses of an operand's chunks, their shape, the swizzle, and the bits of an element."""
    d = WgmmaDescriptor.decode(descriptor)
    width = fragments.WIDTHS[ab]
    run = (k if major == K_MAJOR else mn) * width // 8
    need_canonical("wgmma descriptor", d.start, d.swizzle, run, d.base_offset)
    if width < 8:  # bits lie K-major, 8 to a byte
        offsets = chunk_offsets(major, d.swizzle, d.leading, d.stride, mn, k * width // 8, 1)
    else:
        offsets = chunk_offsets(major, d.swizzle, d.leading, d.stride, mn, k, width // 8)
    addresses = swizzle_addresses(d.start + offsets.ravel(), d.swizzle)
    addresses.setflags(write=False)
    return addresses, offsets.shape, d.swizzle, width


def _multiply(
    m: Machine, form: _Form, acc: Any, a: _Matrix, b: _Matrix, use_acc: Any, reads: list[tuple[Any, int]]
) -> None:
    """Issue acc = sign * a @ b.T + (acc if use_acc else 0). Products are exact and summed in float32 (int32), in
    NumPy's order: the hardware's order and its rounding of sums are not documented, so low bits may differ."""
    keep = bool(use_acc)
    registers = m.accumulate(acc)
    index = fragment_layouts.row_major(form.atom.c, 64, form.n)

    def effect() -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results like others
            product = a() @ b().T
            sum_ = 0 + (product if form.sign == 1 else form.sign * product)  # which is +0 if it is zero: on an H200 too
            result = sum_.take(index, mode="wrap")  # of no index beyond the end, faster than by default
            if form.op == "sat":
                result = result.astype(np.int64)
            if keep:
                result += registers.view(form.acc)
            if form.op == "sat":
                result = np.clip(result, -(1 << 31), (1 << 31) - 1)
            result = result.astype(form.acc, copy=False)
            if form.acc is np.float16:
                result = result + form.acc(0)  # what rounds to zero is +0 too, as on an H200
            registers[...] = result.view(registers.dtype)

    m.later(effect, reads=reads)


def _multiply_ss(
    m: Machine, form: _Form, acc: Any, a_desc: Any, b_desc: Any, use_acc: Any, majors: tuple[int, int] = (0, 0)
) -> None:
    k = form.atom.shape_mnk[2]
    a_at, a = _operand(m, a_desc, majors[0], 64, k, form.a)
    b_at, b = _operand(m, b_desc, majors[1], form.n, k, form.b)
    _multiply(m, form, acc, a, b, use_acc, [(a_at, CHUNK), (b_at, CHUNK)])


def _multiply_rs(m: Machine, form: _Form, acc: Any, a: Any, b_desc: Any, use_acc: Any, b_major: int = K_MAJOR) -> None:
    k = form.atom.shape_mnk[2]
    a_matrix = fragments.matrix(fragments.values(np.array(a), form.a), form.atom.a, 64, k)
    b_at, b = _operand(m, b_desc, b_major, form.n, k, form.b)
    _multiply(m, form, acc, lambda: a_matrix, b, use_acc, [(b_at, CHUNK)])


def forms(k: int, d: str, a: str, b: str, a_src: str, over: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The cases `over` with what they multiply: (64, n, k) and types. a_src: where A lies, "smem" or "rmem"."""
    regs = 4 if d == "f16" else 2
    for case in over:
        tile = {"m": 64, "n": case["n"], "k": k, "a_type": a, "b_type": b, "d_type": d, "a_src": a_src}
        yield {**tile, **case, "regs": case["n"] // regs}


def _cases(types: tuple[str, ...], d: str, a_src: str) -> Iterator[dict[str, Any]]:
    """All forms."""
    for n in range(8, 257, 8):
        for ab in types:
            majors = {"trans_a": each(0, 1) if a_src == "smem" else 0, "trans_b": each(0, 1)}
            yield from forms(16, d, ab, ab, a_src, [{"n": n, "ab": ab, **majors, **_SIGNS}])


_SIGNS = {"scale_a": each(1, -1), "scale_b": each(1, -1)}
_SS = "$acc, $a_desc, $b_desc, $use_acc, {scale_a}, {scale_b}, {trans_a}, {trans_b};"
_RS = "$acc, $a, $b_desc, $use_acc, {scale_a}, {scale_b}, {trans_b};"
_MMA: dict[str, Any] = {
    "target": FEATURES["wgmma"],
    "issuer": WARPGROUP,
    "proxy": ASYNC,
    "done_by": WGMMA_GROUP,
    "ref": f"{_REF}-mma",
}
_MAJOR = {"trans_a": 0, "trans_b": 0}
_POSITIVE = {"scale_a": 1, "scale_b": 1}
_PLAIN: dict[str, Any] = {**_MMA, "defaults": {**_MAJOR, **_POSITIVE}}
_PLAIN_K: dict[str, Any] = {**_MMA, "defaults": _POSITIVE}
_WRAPPING: dict[str, Any] = {**_MMA, "defaults": {"saturate": False}}


@instr(
    "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ab}.{ab} " + _SS,
    **_PLAIN,
    over=_cases(("f16", "bf16"), "f32", "smem"),
)
def wgmma_ss(
    m: Machine, acc: _ACC, a_desc: _DESC, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, ab: str, trans_a: int, trans_b: int, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """acc (64, n) = scale_a * a (64, 16) @ scale_b * b (n, 16).T + (acc if use_acc else 0), asynchronously.

    a_desc, b_desc: `bits.WgmmaDescriptor` words of the operands in shared memory, ab ("bf16", "f16") their type;
    trans_a, trans_b: 0 if K-major, 1 if MN-major. n: 8 to 256, a multiple of 8. scale: 1 or -1. acc: n / 2 floats a
    thread, as `fragment_layouts.wgmma_m64k16(n).c`. The whole warpgroup, with equal operands. Done when its group
    is."""
    _multiply_ss(m, _Form(n, ab, ab, np.float32, scale_a * scale_b), acc, a_desc, b_desc, use_acc, (trans_a, trans_b))


@instr(
    "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ab}.{ab} " + _RS,
    **_PLAIN,
    over=_cases(("f16", "bf16"), "f32", "rmem"),
)
def wgmma_rs(
    m: Machine, acc: _ACC, a: _A_WORDS, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, ab: str, trans_b: int, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_ss` with `a` in registers: 8 elements a thread in 4 words, as `fragment_layouts.wgmma_m64k16(n, True).a`.
    They must not be changed before the group is done."""
    _multiply_rs(m, _Form(n, ab, ab, np.float32, scale_a * scale_b), acc, a, b_desc, use_acc, trans_b)


@instr("wgmma.mma_async.sync.aligned.m64n{n}k16.f16.f16.f16 " + _SS, **_PLAIN, over=_cases(("f16",), "f16", "smem"))
def wgmma_f16_ss(
    m: Machine, acc: _ACC_F16, a_desc: _DESC, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, trans_a: int, trans_b: int, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_ss` of f16 operands with an f16 accumulator: n / 4 words a thread, two elements each, low half first."""
    form = _Form(n, "f16", "f16", np.float16, scale_a * scale_b)
    _multiply_ss(m, form, acc, a_desc, b_desc, use_acc, (trans_a, trans_b))


@instr("wgmma.mma_async.sync.aligned.m64n{n}k16.f16.f16.f16 " + _RS, **_PLAIN, over=_cases(("f16",), "f16", "rmem"))
def wgmma_f16_rs(
    m: Machine, acc: _ACC_F16, a: _A_WORDS, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, trans_b: int, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_rs` of f16 operands with an f16 accumulator: n / 4 words a thread, two elements each, low half first."""
    _multiply_rs(m, _Form(n, "f16", "f16", np.float16, scale_a * scale_b), acc, a, b_desc, use_acc, trans_b)


# Types that have one major-ness alone: K-major operands, no transpose bits.
_SS_K = "$acc, $a_desc, $b_desc, $use_acc, {scale_a}, {scale_b};"
_RS_K = "$acc, $a, $b_desc, $use_acc, {scale_a}, {scale_b};"
_SS_INT, _RS_INT = "$acc, $a_desc, $b_desc, $use_acc;", "$acc, $a, $b_desc, $use_acc;"
_FLOATS = [("tf32", "tf32"), *((a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2"))]
_BYTES = [(a, b) for a in ("s8", "u8") for b in ("s8", "u8")]
_INTEGER_N = (8, 16, 24, *range(32, 257, 16))


def _k_cases(types: list[tuple[str, str]], d: str, a_src: str) -> Iterator[dict[str, Any]]:
    for n in range(8, 257, 8):
        for a, b in types:
            case = {"n": n, "trans_a": 0, "trans_b": 0, **_SIGNS}
            yield from forms(256 // fragments.WIDTHS[a], d, a, b, a_src, [case])


def _integer_cases(a_src: str) -> Iterator[dict[str, Any]]:
    for saturate, text in ((False, ""), (True, ".satfinite")):
        for n in _INTEGER_N:
            for a, b in _BYTES:
                case = {"n": n, "trans_a": 0, "trans_b": 0, "saturate": saturate, "sat": text}
                yield from forms(32, "s32", a, b, a_src, [case])


_FP8 = _FLOATS[1:]
_F32_K = "wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{a_type}.{b_type} "
_F16_K = "wgmma.mma_async.sync.aligned.m64n{n}k{k}.f16.{a_type}.{b_type} "
_S32_K = "wgmma.mma_async.sync.aligned.m64n{n}k32{sat}.s32.{a_type}.{b_type} "
_B1_K = "wgmma.mma_async.sync.aligned.m64n{n}k256.s32.b1.b1.and.popc "


@instr(_F32_K + _SS_K, **_PLAIN_K, over=_k_cases(_FLOATS, "f32", "smem"))
def wgmma_k_ss(
    m: Machine, acc: _ACC, a_desc: _DESC, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_ss` of tf32 operands (k 8) or fp8 operands, each e4m3 or e5m2 (k 32); both K-major."""
    _multiply_ss(m, _Form(n, a_type, b_type, np.float32, scale_a * scale_b), acc, a_desc, b_desc, use_acc)


@instr(_F32_K + _RS_K, **_PLAIN_K, over=_k_cases(_FLOATS, "f32", "rmem"))
def wgmma_k_rs(
    m: Machine, acc: _ACC, a: _A_WORDS, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_k_ss` with `a` in registers: 4 words a thread, as `fragment_layouts.wgmma(n, k, bits, True).a`."""
    _multiply_rs(m, _Form(n, a_type, b_type, np.float32, scale_a * scale_b), acc, a, b_desc, use_acc)


@instr(_F16_K + _SS_K, **_PLAIN_K, over=_k_cases(_FP8, "f16", "smem"))
def wgmma_k_f16_ss(
    m: Machine, acc: _ACC_F16, a_desc: _DESC, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_k_ss` of fp8 operands with an f16 accumulator: n / 4 words a thread, low half first."""
    _multiply_ss(m, _Form(n, a_type, b_type, np.float16, scale_a * scale_b), acc, a_desc, b_desc, use_acc)


@instr(_F16_K + _RS_K, **_PLAIN_K, over=_k_cases(_FP8, "f16", "rmem"))
def wgmma_k_f16_rs(
    m: Machine, acc: _ACC_F16, a: _A_WORDS, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_k_rs` of fp8 operands with an f16 accumulator: n / 4 words a thread, low half first."""
    _multiply_rs(m, _Form(n, a_type, b_type, np.float16, scale_a * scale_b), acc, a, b_desc, use_acc)


@instr(_S32_K + _SS_INT, **_WRAPPING, over=_integer_cases("smem"))
def wgmma_s32_ss(
    m: Machine, acc: _ACC_S32, a_desc: _DESC, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, saturate: bool,
) -> None:  # fmt: skip
    """acc (64, n) = a (64, 32) @ b (n, 32).T + (acc if use_acc else 0) in int32, asynchronously, wrapping, or with
    `saturate` clamping. s8 or u8, each its own; K-major. n: 8, 16, 24, and multiples of 16 from 32 to 256."""
    form = _Form(n, a_type, b_type, np.int32, 1, "sat" if saturate else "")
    _multiply_ss(m, form, acc, a_desc, b_desc, use_acc)


@instr(_S32_K + _RS_INT, **_WRAPPING, over=_integer_cases("rmem"))
def wgmma_s32_rs(
    m: Machine, acc: _ACC_S32, a: _A_WORDS, b_desc: _DESC, use_acc: _USE_ACC,
    *, n: int, a_type: str, b_type: str, saturate: bool,
) -> None:  # fmt: skip
    """`wgmma_s32_ss` with `a` in registers: 4 words a thread, as `fragment_layouts.wgmma(n, 32, 8, True).a`."""
    form = _Form(n, a_type, b_type, np.int32, 1, "sat" if saturate else "")
    _multiply_rs(m, form, acc, a, b_desc, use_acc)


_BITS = [{"n": n, "trans_a": 0, "trans_b": 0} for n in _INTEGER_N]


@instr(_B1_K + _SS_INT, **_MMA, over=forms(256, "s32", "b1", "b1", "smem", _BITS))
def wgmma_b1_ss(m: Machine, acc: _ACC_S32, a_desc: _DESC, b_desc: _DESC, use_acc: _USE_ACC, *, n: int) -> None:
    """acc (64, n) = the number of bits set in both row i of a (64, 256) and row j of b (n, 256), + (acc if use_acc
    else 0), asynchronously. K-major. n: 8, 16, 24, and multiples of 16 from 32 to 256."""
    _multiply_ss(m, _Form(n, "b1", "b1", np.int32), acc, a_desc, b_desc, use_acc)


@instr(_B1_K + _RS_INT, **_MMA, over=forms(256, "s32", "b1", "b1", "rmem", _BITS))
def wgmma_b1_rs(m: Machine, acc: _ACC_S32, a: _A_WORDS, b_desc: _DESC, use_acc: _USE_ACC, *, n: int) -> None:
    """`wgmma_b1_ss` with `a` in registers: 4 words a thread, as `fragment_layouts.wgmma(n, 256, 1, True).a`."""
    _multiply_rs(m, _Form(n, "b1", "b1", np.int32), acc, a, b_desc, use_acc)
