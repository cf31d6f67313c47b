# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""The matrix unit of Blackwell (PTX ISA, "tcgen05.mma"): D = A @ B.T + D, D in tensor memory, A there or in shared
memory, B in shared memory.

One thread issues multiplies, which run in order; `tcgen05_commit` lets an mbarrier track all those that the thread
issued before. Where the rows of D (and of A in tensor memory) lie (PTX ISA, "Data Path Layout Organization"):

| CTAs | m | of each CTA: rows | lanes |
| --- | --- | --- | --- |
| 1 | 128 | all | row i in lane i |
| 1 | 64 | all | row i in lane 32 * (i // 16) + i % 16; the other 16 of each 32 lanes are free (address lane 16) |
| 2 | 256 | 128 | row i in lane i |
| 2 | 128 | 64 | columns below n / 2 of row i in lane i, the others in lane 64 + i; A in both |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import dtypes
from ...seam import CuteError
from ..facts.bits import Record, bits
from ..facts.canonical import CHUNK, MN_MAJOR, SWIZZLE_128B_BASE32B, chunk_offsets, swizzle_addresses
from ..form.instr import ASYNC, TCGEN05_GROUP, instr
from ..form.kinds import Role, accumulate, descriptor, tmem, u32
from ..form.machine import Machine

_REF = "tensorcore-5th-generation-instructions-tcgen05-mma"
K_BYTES = 32
"""What one multiply takes along K, of 8-bit containers for the types below a byte."""


@dataclass(frozen=True)
class Tcgen05Descriptor(Record):
    """An operand of tcgen05.mma in shared memory (PTX ISA, "tcgen05 shared memory descriptor"); all in bytes.

    start, leading, stride: as in `bits.WgmmaDescriptor`. swizzle: 0, 32, 64, 128 or SWIZZLE_128B_BASE32B. version:
    always 1.
    """

    start: int = bits(0, 14, unit=16)
    leading: int = bits(16, 14, unit=16)
    stride: int = bits(32, 14, unit=16)
    version: int = bits(46, 3, codes={1: 1}, default=1)
    base_offset: int = bits(49, 3)
    swizzle: int = bits(61, 3, codes={0: 0, SWIZZLE_128B_BASE32B: 1, 128: 2, 64: 4, 32: 6})


@dataclass(frozen=True)
class Tcgen05Instruction(Record):
    """The instruction descriptor of the kinds f16, tf32, f8f6f4 and i8 (PTX ISA, "Instruction descriptor").

    d: 0 for f16, 1 for f32, 2 for s32. a, b: the element type's code among those of its kind (see KINDS). saturate: 1
    keeps s32 results in range. negate_a, negate_b: 1 multiplies by -1 (not i8). major_a, major_b: 0 if K-major, 1 if
    MN-major. n, m: the shape (m of both CTAs with cta_group 2).
    """

    WIDTH = 32
    saturate: int = bits(3, 1)
    d: int = bits(4, 2, default=1)
    a: int = bits(7, 3)
    b: int = bits(10, 3)
    negate_a: int = bits(13, 1)
    negate_b: int = bits(14, 1)
    major_a: int = bits(15, 1)
    major_b: int = bits(16, 1)
    n: int = bits(17, 6, unit=8, default=64)
    m: int = bits(24, 5, unit=16, default=128)


_F16, _F32, _S32 = 0, 1, 2
KINDS: dict[str, tuple[dict[int, dtypes.DType], tuple[int, ...]]] = {
    "f16": ({0: dtypes.Float16, 1: dtypes.BFloat16}, (_F16, _F32)),
    "tf32": ({2: dtypes.TFloat32}, (_F32,)),
    "f8f6f4": (
        {
            0: dtypes.Float8E4M3FN, 1: dtypes.Float8E5M2, 3: dtypes.Float6E2M3FN, 4: dtypes.Float6E3M2FN,
            5: dtypes.Float4E2M1FN,
        },
        (_F16, _F32),
    ),
    "i8": ({0: dtypes.Uint8, 1: dtypes.Int8}, (_S32,)),
}  # fmt: skip
"""For each kind its element types by their code, and the codes of its results' types."""


_RESULTS = {_F16: "f16", _F32: "f32", _S32: "s32"}
"""The results' types by their code, as PTX names them."""


def _container(dtype: dtypes.DType) -> int:
    """Bytes of an element in memory."""
    return max(dtype.width, 8) // 8


def k_of(kind: str) -> int:
    """How many elements along K one multiply of this kind takes."""
    return K_BYTES // _container(next(iter(KINDS[kind][0].values())))


def _extents(kind: str, cta_group: int, a_src: str) -> Iterator[tuple[int, int]]:
    """The (m, n) that a multiply of this kind may have (PTX ISA, "Matrix Shape")."""
    for m in (64, 128) if cta_group == 1 else (128, 256):
        unit = 8 if m == 64 or (cta_group == 1 and a_src == "smem") else 16
        for n in range(unit, 257, unit):
            if kind != "i8" or n <= 32 or n % 16 == 0:
                yield m, n


def _pairs(kind: str) -> Iterator[tuple[str, str, str]]:
    """The types (of A, of B, of D) that a kind multiplies."""
    types, results = KINDS[kind]
    for d in sorted(results, reverse=True):
        for a in types.values():
            for b in types.values():
                if kind == "f16" and d == _F16 and (a, b) != (dtypes.Float16, dtypes.Float16):
                    continue
                yield a.ptx, b.ptx, _RESULTS[d]


def forms(a_src: str) -> Iterator[dict[str, Any]]:
    """All multiplies with A in `a_src`, "smem" or "tmem", where it is K-major.

    An MN-major operand has rows of whole 16-byte chunks in each CTA: of 8-bit containers n / cta_group is a multiple
    of 16.
    """
    for kind in KINDS:
        k = k_of(kind)
        target = {"target": "sm_100a|sm_110a"} if kind == "i8" else {}
        for cta_group in (1, 2):
            for a, b, d in _pairs(kind):
                for m, n in _extents(kind, cta_group, a_src):
                    tile = {"m": m, "n": n, "k": k, "a_type": a, "b_type": b, "d_type": d, "a_src": a_src}
                    whole = k < 32 or n // cta_group % CHUNK == 0
                    for trans_a in (0, 1) if a_src == "smem" else (0,):
                        for trans_b in (0, 1) if whole else (0,):
                            yield {"kind": kind, "cta_group": cta_group, **tile, "trans_a": trans_a,
                                   "trans_b": trans_b, **target}  # fmt: skip


def checked(word: int, cta_group: int, kind: str, a_src: str = "smem") -> Tcgen05Instruction:
    """The instruction descriptor, if the hardware has such a multiply (PTX ISA, "Matrix Shape")."""
    form = Tcgen05Instruction.decode(word)
    types, results = KINDS[kind]
    extents = set(_extents(kind, cta_group, a_src))
    rows = sorted({m for m, _ in extents})
    columns = sorted(n for m, n in extents if m == form.m)
    wrong = ""
    if form.m not in rows:
        wrong = f"m {form.m} must be {rows[0]} or {rows[1]} with cta_group {cta_group}"
    elif form.n not in columns:
        step = columns[-1] - columns[-2]
        wrong = f"n {form.n} must be a multiple of {step} of at most 256 with m {form.m} and cta_group {cta_group}"
        if any(n % step for n in columns):
            wrong += f", or {', '.join(str(n) for n in columns if n % step)}"
    elif form.a not in types or form.b not in types:
        wrong = f"a type {form.a}, b type {form.b} must be of {sorted(types)} ({', '.join(map(str, types.values()))})"
    elif form.d not in results:
        wrong = f"result type {form.d} must be of {results}"
    elif kind == "i8" and (form.negate_a or form.negate_b):
        wrong = "integers cannot be negated"
    elif form.d == _F16 and kind == "f16" and (form.a, form.b) != (0, 0):
        wrong = "f16 results need f16 operands"
    elif form.major_b and k_of(kind) == 32 and form.n // cta_group % CHUNK:
        wrong = f"n {form.n}: an MN-major b of 8-bit containers has a multiple of 16 of n in each CTA"
    if wrong:
        raise CuteError(f"tcgen05.mma, kind {kind}: {wrong}")
    return form


def instruction(case: dict[str, Any], negate_a: bool = False, negate_b: bool = False, saturate: bool = False) -> int:
    """The instruction descriptor of a `case` of `forms`."""
    codes = {dtype.ptx: code for code, dtype in KINDS[case["kind"]][0].items()}
    results = {name: code for code, name in _RESULTS.items()}
    return Tcgen05Instruction(
        int(saturate), results[case["d_type"]], codes[case["a_type"]], codes[case["b_type"]], int(negate_a),
        int(negate_b), case["trans_a"], case["trans_b"], case["n"], case["m"],
    ).encode()  # fmt: skip


# ---------------------------------------------------------------- operands


def _elements(chunks: Any, dtype: dtypes.DType) -> Any:
    """The elements of chunks of 16 bytes, (count, 16) bytes: (count, elements), exact in float64 (int64)."""
    if dtype.width < 8:  # 16 elements in the first bytes of each chunk, the rest is padding
        packed = np.unpackbits(chunks[:, : 2 * dtype.width], axis=1, bitorder="little")
        fields = packed.reshape(len(chunks), 16, dtype.width)
        codes = np.packbits(fields, axis=2, bitorder="little")[..., 0]
        return codes.view(dtype.numpy).astype(np.float64)
    if dtype is dtypes.TFloat32:
        return (np.ascontiguousarray(chunks).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(float)
    values = np.ascontiguousarray(chunks).view(dtype.numpy)
    return values.astype(np.int64 if dtype.is_integer else np.float64)


def _addresses(d: Tcgen05Descriptor, major: int, mn: int, size: int) -> tuple[Any, Any]:
    """(the address of each chunk of an operand of (mn, 32 bytes), the shape that they stand in)"""
    offsets = chunk_offsets(major, d.swizzle, d.leading, d.stride, mn, K_BYTES // size, size)
    return swizzle_addresses(d.start + offsets.ravel(), d.swizzle), offsets.shape


def _in_shared(m: Machine, word: int, major: int, mn: int, dtype: dtypes.DType, cta: int) -> tuple[Any, Any]:
    """The chunk addresses of an operand of (mn, 32 bytes along K) in CTA `cta`, and what reads it."""
    size = _container(dtype)
    addresses, shape = _addresses(Tcgen05Descriptor.decode(int(word)), major, mn, size)

    def fetch() -> Any:
        if cta == m.cta_rank:
            chunks = np.ascontiguousarray(m.read_rows(addresses, CHUNK))
        else:
            chunks = np.stack([m.read(int(a), CHUNK, cta=cta) for a in addresses])
        matrix = _elements(chunks, dtype).reshape(shape[0], -1)
        return matrix.T if major == MN_MAJOR else matrix

    return np.array([m.mapa(int(a), cta) for a in addresses], np.int64), fetch


@dataclass(frozen=True)
class _Part:
    """Some rows and columns of D in consecutive lanes of one CTA's tensor memory. row: of the CTA's own rows."""

    cta: int
    lane: int
    row: int
    rows: int
    first: int
    columns: int


def _parts(form: Tcgen05Instruction, ctas: list[int], lane: int) -> list[_Part]:
    """Where D lies, part by part."""
    n = form.n
    if len(ctas) == 1 and form.m == 64:
        return [_Part(ctas[0], lane + 32 * i, 16 * i, 16, 0, n) for i in range(4)]
    if len(ctas) == 2 and form.m == 128:
        return [_Part(c, 64 * h, 0, 64, n // 2 * h, n // 2) for c in ctas for h in range(2)]
    return [_Part(c, 0, 0, 128, 0, n) for c in ctas]


# ---------------------------------------------------------------- results


def _to_words(values: Any, d: int, saturate: int) -> Any:
    """Results as the 32-bit columns of tensor memory hold them: a 16-bit one in the lower half."""
    if d == _S32:
        if saturate:
            values = np.clip(values, -(2**31), 2**31 - 1)
        return (values & 0xFFFFFFFF).astype(np.uint32)
    with np.errstate(over="ignore"):
        if d == _F32:
            return values.astype(np.float32).view(np.uint32)
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)


def _from_words(words: Any, d: int) -> Any:
    if d == _S32:
        return words.view(np.int32).astype(np.int64)
    if d == _F32:
        return words.view(np.float32).astype(np.float64)
    return (words & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)


def _multiply(
    m: Machine, d: int, a: int, a_in_tmem: bool, b_desc: int, idesc: int, use_acc: int, cta_group: int, kind: str
) -> None:
    form = checked(int(idesc), cta_group, kind, "tmem" if a_in_tmem else "smem")
    type_a, type_b = (KINDS[kind][0][code] for code in (form.a, form.b))
    ctas = [m.cta_rank] if cta_group == 1 else [m.cta_rank & ~1, m.cta_rank | 1]
    column, lane = d & 0xFFFF, d >> 16
    if lane not in ((0, 16) if (cta_group, form.m) == (1, 64) else (0,)):
        raise CuteError(f"tcgen05.mma: d {d:#x} is in lane {lane}: m {form.m} begins in lane 0 (m 64 also in 16)")
    parts = _parts(form, ctas, lane)
    b_parts = [_in_shared(m, b_desc, form.major_b, form.n // cta_group, type_b, c) for c in ctas]
    reads = [(at, CHUNK) for at, _ in b_parts]
    uses: list[tuple[int, int]] = []
    if a_in_tmem:
        if form.major_a or type_a.width < 8:
            raise CuteError(f"tcgen05.mma: a in tensor memory is K-major, of 8 bits or more: not {type_a}")
        uses = [(a & 0xFFFF, K_BYTES // 4)]

        def rows_of(p: _Part) -> Any:
            # with m 64 in lanes 16 and up, so is a: the lanes of a and of d are the same
            words = m.tmem.read(p.lane, p.rows, a & 0xFFFF, K_BYTES // 4, cta=p.cta)
            return _elements(np.ascontiguousarray(words).view(np.uint8).reshape(-1, CHUNK), type_a).reshape(p.rows, -1)
    else:
        fetches: dict[int, Callable[[], Any]] = {}
        for c in ctas:
            at, fetches[c] = _in_shared(m, a, form.major_a, form.m // cta_group, type_a, c)
            reads.append((at, CHUNK))

        def rows_of(p: _Part) -> Any:
            return fetches[p.cta]()[p.row : p.row + p.rows]

    sign = -1 if form.negate_a ^ form.negate_b else 1

    def effect() -> None:
        b = np.concatenate([fetch() for _, fetch in b_parts])
        found = []
        for p in parts:
            product = sign * (rows_of(p) @ b[p.first : p.first + p.columns].T)
            if use_acc:
                product = product + _from_words(m.tmem.read(p.lane, p.rows, column, p.columns, cta=p.cta), form.d)
            found.append(_to_words(product, form.d, form.saturate))
        for p, words in zip(parts, found):
            m.tmem.write(p.lane, column, words, cta=p.cta)

    width = max(p.columns for p in parts)
    where = [(p.cta, p.lane, p.rows, p.columns) for p in parts]
    m.tmem.multiply(effect, reads, column, width, ctas, accumulates=bool(use_acc), uses=uses, parts=where)


_ROW: dict[str, Any] = {"target": "sm_100f", "proxy": ASYNC, "done_by": TCGEN05_GROUP, "ref": _REF}
_WORD = u32.means(Role.DESCRIPTOR)


@instr("tcgen05.mma.cta_group::{cta_group}.kind::{kind} [$d], $a_desc, $b_desc, $idesc, $use_acc;", **_ROW,
       over=forms("smem"))  # fmt: skip
def tcgen05_mma_ss(
    m: Machine, d: tmem, a_desc: descriptor, b_desc: descriptor, idesc: _WORD, use_acc: accumulate,
    *, cta_group: int, kind: str,
) -> None:  # fmt: skip
    """d (m, n) = a (m, 32 bytes of K) @ b (n, 32 bytes of K).T + (d if use_acc else 0), asynchronously.

    a_desc, b_desc: `Tcgen05Descriptor` words; idesc: a `Tcgen05Instruction` word. cta_group 1: m 64 or 128, n 8 to 256
    in steps of 8; 2: m 128 or 256, n in steps of 16, the even CTA of a pair issues for both, and each holds half of
    a's rows, of b's rows and of d's rows. kind: "f16", "tf32", "f8f6f4", or of 8-bit integers with 32-bit results "i8"
    (n above 32 in steps of 16; sm_103 has it not). One thread; complete when a later `tcgen05_commit` says so."""
    _multiply(m, d, a_desc, False, b_desc, idesc, use_acc, cta_group, kind)


@instr("tcgen05.mma.cta_group::{cta_group}.kind::{kind} [$d], [$a], $b_desc, $idesc, $use_acc;", **_ROW,
       over=forms("tmem"))  # fmt: skip
def tcgen05_mma_ts(
    m: Machine, d: tmem, a: tmem, b_desc: descriptor, idesc: _WORD, use_acc: accumulate, *, cta_group: int, kind: str
) -> None:
    """`tcgen05_mma_ss` with a in tensor memory: 8 columns of each of its lanes, elements in their order along K, in the
    lanes of its rows (see above). What wrote it is complete: a multiply of the same thread, or `tcgen05_wait_st`."""
    _multiply(m, d, a, True, b_desc, idesc, use_acc, cta_group, kind)
