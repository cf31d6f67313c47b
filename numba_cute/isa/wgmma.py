# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Asynchronous warpgroup matrix multiply-accumulate (PTX ISA, "wgmma").

The order that the hardware wants: `wgmma_fence` before the first wgmma and whenever registers that it uses were
touched; the multiplies; `wgmma_commit_group`; `wgmma_wait_group` before the accumulators are read or the shared
memory is overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import dtypes
from ..layout.layout import Layout
from ..seam import CuteError
from . import atoms
from .bits import WgmmaDescriptor
from .canonical import CHUNK, MN_MAJOR, chunk_offsets, swizzle_addresses
from .instr import ASYNC, WARPGROUP, WGMMA_GROUP, f32, inout, instr, pred, u32, u64
from .machine import Machine

_REF = "asynchronous-warpgroup-level-matrix-instructions-wgmma"
_NUMPY = {"bf16": dtypes.BFloat16.numpy, "f16": dtypes.Float16.numpy}
_K = 16
_ACC, _ACC_F16, _A_WORDS = inout(f32["regs"]), inout(u32["regs"]), u32[4]
_Matrix = Callable[[], Any]
"""What gives an operand as float32 when the instruction is done: shape (mn, 16)."""


@instr("wgmma.fence.sync.aligned;", target="sm_90a", issuer=WARPGROUP, ref=f"{_REF}-fence")
def wgmma_fence(m: Machine) -> None:
    """Order accesses to registers before the wgmmas that use them: before the first one, and after each change of an
    accumulator or A fragment. It does not order shared memory: see `fence_proxy_async`. The whole warpgroup."""
    m.fence("wgmma")


@instr("wgmma.commit_group.sync.aligned;", target="sm_90a", issuer=WARPGROUP, ref=f"{_REF}-commit-group")
def wgmma_commit_group(m: Machine) -> None:
    """Close the group of all wgmmas issued since the last one. The whole warpgroup."""
    m.commit(WGMMA_GROUP)


@instr("wgmma.wait_group.sync.aligned {n};", target="sm_90a", issuer=WARPGROUP, ref=f"{_REF}-wait-group",
       over=[{"n": n} for n in range(8)])  # fmt: skip
def wgmma_wait_group(m: Machine, *, n: int) -> None:
    """Wait until at most the `n` (0 to 7) latest groups are incomplete. The whole warpgroup, before it reads the
    accumulators or lets the operands' memory go."""
    m.wait(WGMMA_GROUP, n)


def _operand(m: Machine, descriptor: Any, major: int, mn: int, ab: str) -> tuple[NDArray[np.int64], _Matrix]:
    """An operand in shared memory: the addresses of its chunks, and what reads it as float32 of shape (mn, 16)."""
    d = WgmmaDescriptor.decode(int(m.uniform(descriptor)) & 0xFFFFFFFFFFFFFFFF)
    if d.base_offset:
        raise CuteError(
            f"wgmma descriptor with base_offset {d.base_offset}: the simulator knows only 0; "
            f"let the tile start at a multiple of {8 * d.swizzle} bytes"
        )
    offsets = chunk_offsets(major, d.swizzle, d.leading, d.stride, mn, _K, 2)
    addresses = swizzle_addresses(d.start + offsets.ravel(), d.swizzle)

    def fetch() -> Any:
        chunks = np.ascontiguousarray(m.read_rows(addresses, CHUNK)).view(_NUMPY[ab])
        matrix = chunks.reshape(offsets.shape[0], -1).astype(np.float32)
        return matrix.T if major == MN_MAJOR else matrix

    return addresses, fetch


@cache
def _row_major(layout: Layout, rows: int, columns: int) -> NDArray[np.int64]:
    """A fragment's column-major indices as indices into a C-ordered (rows, columns) array."""
    column, row = np.divmod(atoms.elements(layout), rows)
    return np.asarray(row * columns + column)


def _registers_a(a: Any, ab: str) -> Any:
    """The A fragment of registers (128, 4) as float32 of shape (64, 16)."""
    values = np.ascontiguousarray(np.asarray(a).astype(np.uint32).reshape(128, 4)).view(_NUMPY[ab])
    matrix = np.empty(64 * _K, np.float32)
    matrix[_row_major(atoms.wgmma_m64k16(8, True).a, 64, _K)] = values.astype(np.float32)
    return matrix.reshape(64, _K)


@dataclass(frozen=True)
class _Form:
    """What the static parameters choose: the shape, the operands' type, the accumulator's type, the signs' product."""

    n: int
    ab: str
    acc: Any
    sign: int


def _multiply(
    m: Machine, form: _Form, acc: Any, a: _Matrix, b: _Matrix, use_acc: Any, reads: list[tuple[Any, int]]
) -> None:
    """Issue acc = sign * a @ b.T + (acc if use_acc else 0). Products are exact and summed in float32, in NumPy's
    order: the hardware's order and its rounding of sums are not documented, so low bits may differ."""
    keep = bool(m.uniform(use_acc))
    registers = m.accumulate(acc)
    index = _row_major(atoms.wgmma_m64k16(form.n).c, 64, form.n)

    def effect() -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results like others
            result = (form.sign * a() @ b().T).ravel()[index]
            if keep:
                result += np.ascontiguousarray(registers).view(form.acc)
            registers[...] = result.astype(form.acc, copy=False).view(registers.dtype)

    m.later(effect, reads=reads)


def _multiply_ss(
    m: Machine, form: _Form, acc: Any, a_desc: Any, b_desc: Any, use_acc: Any, majors: tuple[int, int]
) -> None:
    a_at, a = _operand(m, a_desc, majors[0], 64, form.ab)
    b_at, b = _operand(m, b_desc, majors[1], form.n, form.ab)
    _multiply(m, form, acc, a, b, use_acc, [(a_at, CHUNK), (b_at, CHUNK)])


def _multiply_rs(m: Machine, form: _Form, acc: Any, a: Any, b_desc: Any, use_acc: Any, b_major: int) -> None:
    a_matrix = _registers_a(a, form.ab)
    b_at, b = _operand(m, b_desc, b_major, form.n, form.ab)
    _multiply(m, form, acc, lambda: a_matrix, b, use_acc, [(b_at, CHUNK)])


def _cases(types: tuple[str, ...], columns_per_register: int, a_in_smem: bool) -> Iterator[dict[str, Any]]:
    """All forms; those with both signs +1 come first, so that they are meant where a caller names no sign."""
    for scale_a, scale_b in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        for n in range(8, 257, 8):
            for ab in types:
                for trans_a in (0, 1) if a_in_smem else (0,):
                    for trans_b in (0, 1):
                        case = {"n": n, "ab": ab, "trans_a": trans_a, "trans_b": trans_b}
                        case |= {"scale_a": scale_a, "scale_b": scale_b, "regs": n // columns_per_register}
                        yield case


_SS = "$acc, $a_desc, $b_desc, $use_acc, {scale_a}, {scale_b}, {trans_a}, {trans_b};"
_RS = "$acc, $a, $b_desc, $use_acc, {scale_a}, {scale_b}, {trans_b};"
_MMA: dict[str, Any] = {
    "target": "sm_90a",
    "issuer": WARPGROUP,
    "proxy": ASYNC,
    "done_by": WGMMA_GROUP,
    "ref": f"{_REF}-mma",
}


@instr("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ab}.{ab} " + _SS, **_MMA, over=_cases(("bf16", "f16"), 2, True))
def wgmma_ss(
    m: Machine, acc: _ACC, a_desc: u64, b_desc: u64, use_acc: pred,
    *, n: int, ab: str, trans_a: int, trans_b: int, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """acc (64, n) = scale_a * a (64, 16) @ scale_b * b (n, 16).T + (acc if use_acc else 0), asynchronously.

    a_desc, b_desc: `bits.WgmmaDescriptor` words of the operands in shared memory, ab ("bf16", "f16") their type;
    trans_a, trans_b: 0 if K-major, 1 if MN-major. n: 8 to 256, a multiple of 8. scale: 1 or -1. acc: n / 2 floats a
    thread, as `atoms.wgmma_m64k16(n).c`. The whole warpgroup, with equal operands. Done when its group is."""
    _multiply_ss(m, _Form(n, ab, np.float32, scale_a * scale_b), acc, a_desc, b_desc, use_acc, (trans_a, trans_b))


@instr("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ab}.{ab} " + _RS, **_MMA, over=_cases(("bf16", "f16"), 2, False))
def wgmma_rs(
    m: Machine, acc: _ACC, a: _A_WORDS, b_desc: u64, use_acc: pred,
    *, n: int, ab: str, trans_b: int, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_ss` with `a` in registers: 8 elements a thread in 4 words, as `atoms.wgmma_m64k16(n, True).a`. They must
    not be changed before the group is done."""
    _multiply_rs(m, _Form(n, ab, np.float32, scale_a * scale_b), acc, a, b_desc, use_acc, trans_b)


@instr("wgmma.mma_async.sync.aligned.m64n{n}k16.f16.f16.f16 " + _SS, **_MMA, over=_cases(("f16",), 4, True))
def wgmma_f16_ss(
    m: Machine, acc: _ACC_F16, a_desc: u64, b_desc: u64, use_acc: pred,
    *, n: int, trans_a: int, trans_b: int, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_ss` of f16 operands with an f16 accumulator: n / 4 words a thread, two elements each, low half first."""
    _multiply_ss(m, _Form(n, "f16", np.float16, scale_a * scale_b), acc, a_desc, b_desc, use_acc, (trans_a, trans_b))


@instr("wgmma.mma_async.sync.aligned.m64n{n}k16.f16.f16.f16 " + _RS, **_MMA, over=_cases(("f16",), 4, False))
def wgmma_f16_rs(
    m: Machine, acc: _ACC_F16, a: _A_WORDS, b_desc: u64, use_acc: pred,
    *, n: int, trans_b: int, scale_a: int, scale_b: int,
) -> None:  # fmt: skip
    """`wgmma_rs` of f16 operands with an f16 accumulator: n / 4 words a thread, two elements each, low half first."""
    _multiply_rs(m, _Form(n, "f16", np.float16, scale_a * scale_b), acc, a, b_desc, use_acc, trans_b)
