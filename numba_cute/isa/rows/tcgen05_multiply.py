# SPDX-License-Identifier: Apache-2.0
"""The common body of the rows of tcgen05.mma, in all its forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ... import dtypes
from ...seam import CuteError
from ...seam.ground.records import dataclass
from ..facts import tensor_operands as operands
from ..facts.canonical import CHUNK, MN_MAJOR
from ..facts.tensor_descriptors import Tcgen05Descriptor, ZeroColumnMask
from ..form.cases import Cases
from ..form.machine import Machine
from .tcgen05_cases import TYPES, decoded

_PTX = {dtype.ptx: dtype for types in TYPES.values() for dtype in types.values()}


@dataclass(frozen=True)
class Part:
    """Some rows and columns of D in consecutive lanes of one CTA's tensor memory. row: of the CTA's own rows."""

    cta: int
    lane: int
    row: int
    rows: int
    first: int
    columns: int


@dataclass(frozen=True)
class Issue:
    """One multiply as it is issued. case: of its row; form: its instruction descriptor, decoded. d, a, b, meta,
    scale_a, scale_b: its operands, a in tensor memory or a descriptor; None those that it lacks."""

    m: Machine
    case: dict[str, Any]
    form: Any
    d: int
    a: int
    b: int
    meta: int | None = None
    scale_a: int | None = None
    scale_b: int | None = None
    disable: Any = None
    zeros: ZeroColumnMask | None = None

    @cached_property
    def ctas(self) -> list[int]:
        rank = self.m.cta_rank
        return [rank] if self.case["cta_group"] == 1 else [rank & ~1, rank | 1]

    @property
    def stationary(self) -> bool:
        return bool(self.case.get("ws", False))

    @property
    def packed(self) -> bool:
        """Say whether elements smaller than a byte lie without gaps."""
        return self.case["kind"] in ("mxf4", "mxf4nvf4")

    @cached_property
    def parts(self) -> list[Part]:
        """Return the places of D, part by part (PTX ISA, "Data Path Layout Organization")."""
        m, n, ctas, lane = self.case["m"], self.case["n"], self.ctas, self.d >> 16
        half = (not self.stationary and len(ctas) == 1 and m == 64) or (
            len(ctas) == 2 and m == 128 and self.case["sparse"]
        )
        if lane not in ((0, 16) if half else (0,)):
            raise CuteError(
                f"tcgen05.mma: d {self.d:#x} is in lane {lane}: m {m} begins in lane 0{' or 16' if half else ''}"
            )
        if half:
            return [Part(c, lane + 32 * i, 16 * i, 16, 0, n) for c in ctas for i in range(4)]
        if len(ctas) == 2 and m == 128:
            return [Part(c, 64 * h, 0, 64, n // 2 * h, n // 2) for c in ctas for h in range(2)]
        if self.stationary and m < 128:
            share = n * m // 128
            return [Part(ctas[0], m * i, 0, m, share * i, share) for i in range(128 // m)]
        return [Part(c, 0, 0, 128, 0, n) for c in ctas]

    @property
    def k(self) -> int:
        return int(self.case["k"])

    @property
    def stored(self) -> int:
        """Return the number of elements along K that are stored of A."""
        return self.k // 2 if self.case["sparse"] else self.k

    def type_of(self, operand: str) -> dtypes.DType:
        return _PTX[self.case[f"{operand}_type"]]

    @cached_property
    def a_columns(self) -> int:
        """Return the number of columns of tensor memory that A takes."""
        bits: int = operands.container(self.type_of("a"), self.packed)
        return self.stored * bits // 32


# ---------------------------------------------------------------- operands


def _in_shared(i: Issue, word: int, operand: str, mn: int, k: int, cta: int, shift: int = 0) -> tuple[Any, Any]:
    """The chunk addresses of an operand of (mn, k) in CTA `cta`, from row `shift` on, and what reads it."""
    m, dtype, major = i.m, i.type_of(operand), i.case[f"trans_{operand}"]
    bits = operands.container(dtype, i.packed)
    whole = -(-(mn + shift) // 8) * 8
    if major == MN_MAJOR:
        whole = -(-(mn + shift) * bits // (8 * CHUNK)) * (8 * CHUNK) // bits
    size = bits // 8 if bits >= 8 else 1
    d = Tcgen05Descriptor.decode(int(word))
    lay = d.swizzle, bits
    at, shape = operands.addresses(d, major, whole, k * bits // 8, size)

    def fetch() -> Any:
        if cta == m.cta_rank:
            chunks = np.ascontiguousarray(m.read_rows(at, CHUNK, lay=lay))
        else:
            chunks = np.stack([m.read(int(x), CHUNK, cta=cta, lay=lay) for x in at])
        matrix = operands.in_chunks(chunks, dtype, i.packed).reshape(shape[0], -1)
        matrix = matrix.T if major == MN_MAJOR else matrix
        return matrix[shift : shift + mn]

    return np.array([m.mapa(int(x), cta) for x in at], np.int64), fetch


def _a_in_tmem(i: Issue, p: Part) -> Any:
    """The stored rows of A that make a part of D: the lanes of both are the same."""
    a, columns = i.a & 0xFFFF, i.a_columns
    words = i.m.tmem.read(p.lane, p.rows, a, columns, cta=p.cta)
    return operands.in_words(words, i.type_of("a"), i.packed)


def _shifted(i: Issue, rows: Any) -> Any:
    """A's rows of a CTA moved by one: row r is what row r + 1 was, but the last stays."""
    return np.concatenate([rows[1:], rows[-1:]]) if i.case.get("ashift") else rows


def _metadata(i: Issue) -> tuple[int, int]:
    """(the first column of A's metadata, how many there are)"""
    assert i.meta is not None
    column, width = i.meta & 0xFFFF, _width(i)
    count = operands.metadata_columns(width)
    if column % 2:
        raise CuteError(
            f"tcgen05.mma.sp: meta {i.meta:#x} is in column {column}: it must be even (the selector of the instruction "
            "descriptor names one from there)"
        )
    lane = i.meta >> 16 & 0x3FFF
    if lane != i.d >> 16:
        raise CuteError(f"tcgen05.mma.sp: meta {i.meta:#x} is in lane {lane}, d in lane {i.d >> 16}: they must agree")
    selector = getattr(i.form, "selector", 0)
    if selector and count == 2:
        raise CuteError(
            f"tcgen05.mma.sp: selector {selector} of the instruction descriptor must be 0 for kind {i.case['kind']}"
        )
    return column + selector, count


def _width(i: Issue) -> int:
    """The width of an element of A, as the metadata counts them."""
    return operands.container(i.type_of("a"), i.packed)


def _dense(i: Issue, p: Part, rows: Any) -> Any:
    """The rows of A that make a part of D, of what is stored of them."""
    if not i.case["sparse"]:
        return rows
    column, count = _metadata(i)
    words = i.m.tmem.read(0, 128, column, count, cta=p.cta)
    return operands.expand(rows, words, p.lane + np.arange(p.rows), i.k, _width(i))


# ---------------------------------------------------------------- scale factors


@dataclass(frozen=True)
class _Factors:
    """The places of an operand's scale factors: see `facts.tensor_operands.factors`."""

    name: str
    column: int
    rows: int
    per_k: int
    first: int
    stride: int
    halves: int = 1

    @property
    def columns(self) -> int:
        return operands.factor_columns(self.rows, self.per_k, self.first, self.stride)


def _factors(i: Issue) -> tuple[_Factors, _Factors]:
    """Return the factors of A and of B. Where a pair has 128 rows, lanes 64 and up have those of the second half of
    B."""
    found, per_k = [], i.stored // i.case["block"]
    legal = {1: (0, 1, 2, 3), 2: (0, 2), 3: (0, 1, 2, 3), 4: (0,), 6: (0, 2)}[per_k]
    paired = len(i.ctas) == 2 and i.case["m"] == 128
    for name, address, rows, stride, halves in (
        ("a", i.scale_a, i.case["m"] // len(i.ctas), 4, 1),
        ("b", i.scale_b, i.case["n"] // (1 + paired), (2 if paired else 4) * -(-i.case["n"] // 128), 1 + paired),
    ):
        first = getattr(i.form, f"id_{name}")
        if first not in legal:
            raise CuteError(
                f"tcgen05.mma: id_{name} {first} of the instruction descriptor must be one of {legal}, for each "
                f"row has {per_k} scale factors"
            )
        assert address is not None
        upper = address >> 16 & 0xFFFF
        if upper & 0x3FFF or upper >> 14 not in (0, first):
            raise CuteError(
                f"tcgen05.mma: scale_{name} {address:#x} must be in lane 0 (its two upper bits, if set, say the byte "
                f"that id_{name} {first} of the instruction descriptor says)"
            )
        found.append(_Factors(name, address & 0xFFFF, rows, per_k, first, stride, halves))
    return found[0], found[1]


def _read(i: Issue, f: _Factors, cta: int) -> Any:
    """The factors (halves, rows, k)."""
    words = i.m.tmem.read(0, 128, f.column, f.columns, cta=cta)
    few = operands.factors(words, f.name, f.rows, f.per_k, f.first, f.stride, i.case["sf"], f.halves)
    return np.repeat(few, i.k // f.per_k, axis=2)


# ---------------------------------------------------------------- results


def _to_words(values: Any, d_type: str, saturate: int) -> Any:
    """Results as the 32-bit columns of tensor memory hold them: a 16-bit one in the lower half."""
    if d_type == "s32":
        if saturate:
            values = np.clip(values, -(2**31), 2**31 - 1)
        return (values & 0xFFFFFFFF).astype(np.uint32)
    with np.errstate(over="ignore", invalid="ignore"):
        if d_type == "f32":
            return values.astype(np.float32).view(np.uint32)
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)


def _from_words(words: Any, d_type: str) -> Any:
    if d_type == "s32":
        return words.view(np.int32).astype(np.int64)
    if d_type == "f32":
        return words.view(np.float32).astype(np.float64)
    return (words & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)


def _scaled_down(values: Any, scale_d: int | None) -> Any:
    """Return the accumulated values, times 2 ** -scale_d."""
    return values if not scale_d else values * 2.0**-scale_d


def _kept(i: Issue, p: Part) -> Any:
    """Say for each lane of a part whether it keeps what it holds: (rows, 1)."""
    at = 128 * i.ctas.index(p.cta) + p.lane + np.arange(p.rows)
    return (np.asarray(i.disable).astype(np.uint32)[at // 32] >> (at % 32).astype(np.uint32) & 1).astype(bool)[:, None]


def issue(i: Issue, use_acc: Any) -> None:
    """Multiply: D = A @ B.T + D, each with what the case adds to that."""
    m, case, column, parts = i.m, i.case, i.d & 0xFFFF, i.parts
    shift = i.zeros.shift if i.zeros is not None else 0
    b_parts = [_in_shared(i, i.b, "b", case["n"] // len(i.ctas), i.k, c, shift) for c in i.ctas]
    reads = [(at, CHUNK) for at, _ in b_parts]
    fetches: dict[int, Callable[[], Any]] = {}
    uses, sources = [], []
    if case["a_src"] == "tmem":
        if i.a >> 16 != i.d >> 16:
            raise CuteError(f"tcgen05.mma: a {i.a:#x} is in lane {i.a >> 16}, d in lane {i.d >> 16}: they must agree")
        uses = [(i.a & 0xFFFF, i.a_columns)]
    else:
        for c in i.ctas:
            at, fetches[c] = _in_shared(i, i.a, "a", case["m"] // len(i.ctas), i.stored, c)
            reads.append((at, CHUNK))
    if case["sparse"]:
        sources += [(c, 0, 128, *_metadata(i)) for c in i.ctas]
    scales = _factors(i) if "sf" in case else ()
    sources += [(c, 0, 128, f.column, f.columns) for f in scales for c in i.ctas]
    sign = -1 if i.form.negate_a ^ i.form.negate_b else 1
    kept = {p: _kept(i, p) for p in parts} if i.disable is not None else {}

    def rows_of() -> dict[Part, Any]:
        """The stored rows of A for each part."""
        if fetches:
            whole = {c: fetch() for c, fetch in fetches.items()}
            return {p: whole[p.cta][p.row : p.row + p.rows] for p in parts}
        return {p: _shifted(i, _a_in_tmem(i, p)) for p in parts}

    def effect() -> None:
        b = np.concatenate([fetch() for _, fetch in b_parts])
        if i.zeros is not None:
            b[i.zeros.columns(case["m"], case["n"])] = 0
        held = {c: [_read(i, f, c) for f in scales] for c in i.ctas} if scales else {}
        found = []
        for p, stored in rows_of().items():
            left, right = _dense(i, p, stored), b[p.first : p.first + p.columns]
            if held:
                of_a, of_b = held[p.cta]
                half = of_b[p.first // p.columns if len(of_b) > 1 else 0]
                left, right = left * of_a[0][p.row : p.row + p.rows], right * half
            with np.errstate(over="ignore", invalid="ignore"):
                product = sign * (left @ right.T)
            if use_acc or p in kept:
                old = m.tmem.read(p.lane, p.rows, column, p.columns, cta=p.cta)
            if use_acc:
                product = product + _scaled_down(_from_words(old, case["d_type"]), case.get("scale_d"))
            words = _to_words(product, case["d_type"], getattr(i.form, "saturate", 0))
            found.append(np.where(kept[p], old, words) if p in kept else words)
        for p, words in zip(parts, found):
            m.tmem.write(p.lane, column, words, cta=p.cta)

    width = max(p.columns for p in parts)
    where = [(p.cta, p.lane, p.rows, p.columns) for p in parts]
    m.tmem.multiply(effect, reads, column, width, i.ctas, accumulates=bool(use_acc), uses=uses, parts=where,
                    sources=sources)  # fmt: skip


def multiply(m: Machine, cases: Cases, given: dict[str, Any], words: tuple[int, int, int, int], use_acc: Any,
             **more: Any) -> None:  # fmt: skip
    """Issue one multiply of a row. cases: the row's. given: the static parameters. words: d, a, b and the instruction
    descriptor. more: the other fields of `Issue`."""
    d, a, b, word = (int(x) for x in words)
    case, form = decoded(cases, word, tuple(given.items()))
    for name in ("meta", "scale_a", "scale_b"):
        if more.get(name) is not None:
            more[name] = int(more[name])
    issue(Issue(m, case, form, d, a, b, **more), use_acc)
