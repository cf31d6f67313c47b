# SPDX-License-Identifier: Apache-2.0
"""Matrix instructions: fragments and operands in shared memory filled at random.

Each case is issued twice: on small integers, of which every order of summation gives the same bits, and on fractions
of one sign, whose sums may differ by the rounding that the PTX ISA leaves open.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numba import cuda

from numba_cute import arch, isa, seam
from numba_cute.isa import TABLE, supports
from numba_cute.isa.facts.bits import WgmmaDescriptor, encode_address
from numba_cute.isa.form.instr import WARP, WGMMA_GROUP, Instr
from numba_cute.isa.form.kinds import Kind, Operand

from .program import Issue, Program, Uint32, Uint64, agreement, result_kinds, words_of
from .values import ARCH, family, kernel_of as registers_alone, of_halves, store

FLOATS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
EXACT, ROUNDED = "exact", "rounded"
ORDERED_PAIRS = np.array([4, 8, 9, 12, 13, 14], np.uint32)
"""Two different positions of four, the lower first: a digit of the metadata of sparse operands."""
ORDERED_HALVES = np.array([4, 14], np.uint32)
"""The same of tf32, of which one of two is kept."""


def typed(rng: np.random.Generator, kind: str, shape: tuple[int, ...], how: str) -> np.ndarray:
    """32-bit words full of elements of a type."""
    dtype = FLOATS.get(kind)
    if dtype is None:
        return rng.integers(0, 1 << 32, shape, dtype=np.uint32)
    size = np.dtype(dtype).itemsize
    elements = (*shape[:-1], shape[-1] * 4 // size)
    values = rng.integers(-3, 4, elements) if how == EXACT else rng.uniform(0.5, 1.0, elements)
    words = np.ascontiguousarray(values.astype(dtype)).view(np.uint32)
    return words & 0xFFFFE000 if kind == "tf32" else words  # what the lower digits do is not documented


def types_of(row: Instr, case: dict[str, Any]) -> tuple[str, str]:
    """The types of the operands."""
    if "ab" in case:
        return case["ab"], case["ab"]
    if "a_type" in case:
        return case["a_type"], case["b_type"]
    return ("f64", "f64") if "f64" in row.name else ("b1", "b1")


def sum_type(row: Instr, kind: Kind) -> str:
    return "f16" if kind.name == "u32" else kind.name


def metadata(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    digits = rng.choice(ORDERED_HALVES if kind == "tf32" else ORDERED_PAIRS, (n, 8)).astype(np.uint32)
    return (digits << np.arange(0, 32, 4, dtype=np.uint32)).sum(1, dtype=np.uint32)


def _relative(bound: float) -> Any:
    def bad(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = (v.view(np.float32).ravel().astype(np.float64) for v in (x, y))
        return ~(np.abs(a - b) <= bound * np.abs(a))

    return bad


def closeness(row: Instr, case: dict[str, Any], kind: Kind, how: str) -> Any:
    """How the sums of fractions may differ: f16 by its last digits, others by the digits that the unit keeps (Hopper
    sums 8-bit floats with 13 bits below the greatest term, DeepSeek-V3 report, section 3.3)."""
    total = sum_type(row, kind)
    if how == EXACT or total in ("s32", "f64"):
        return None if total != "f64" or how == EXACT else _doubles
    if total == "f16":
        return of_halves(np.float16, 2.0**-8)
    return _relative(2.0**-10 if types_of(row, case)[0] in ("e4m3", "e5m2") else 2.0**-16)


def _doubles(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    a, b = (v.view(np.float64).ravel() for v in (x, y))
    return ~(np.abs(a - b) <= 2.0**-48 * np.abs(a))


class Plan:
    """The issues of one program, and the words that they are given."""

    def __init__(self, name: str, lanes: int) -> None:
        self.rng = np.random.default_rng(list(name.encode()))
        self.lanes, self.width, self.out = lanes, 0, 0
        self.columns: list[np.ndarray] = []
        self.issues: list[Issue] = []
        self.checks: list[Any] = []
        self.how: list[str] = []

    def add(self, row: Instr, case: dict[str, Any], how: str, skip: tuple[str, ...] = ()) -> Issue:
        issue = Issue(row, case, {}, self.out)
        for o in row.operands:
            if o.reads and o.name not in skip:
                issue.inputs[o.name] = self.width
                words = self._words(row, case, o, how)
                self.columns.append(words)
                self.width += words.shape[1]
        label = " ".join([row.name, how, *(f"{k}={v}" for k, v in case.items())])
        for kind in result_kinds(row, case):
            self.checks.append((label, kind, closeness(row, case, kind, how)))
            self.out += words_of(kind)
        self.issues.append(issue)
        self.how.append(how)
        return issue

    def _words(self, row: Instr, case: dict[str, Any], o: Operand, how: str) -> np.ndarray:
        a, b = types_of(row, case)
        count, n = o.size(case) * words_of(o.kind), self.lanes
        if o.name == "e":
            return metadata(self.rng, a, n)[:, None]
        if o.kind.name == "pred":
            return np.full((n, 1), self.rng.integers(0, 2), np.uint32)
        if o.writes:
            total = sum_type(row, o.kind)
            if total == "s32":
                near = self.rng.integers(-(1 << 31), 1 << 31, (n, count)) >> self.rng.integers(0, 16, (n, count))
                return near.astype(np.int32).view(np.uint32)
            return typed(self.rng, total, (n, count), how)
        return typed(self.rng, {"a": a, "b": b}.get(o.name, "b1"), (n, count), how)

    @property
    def given(self) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate(self.columns, 1))

    @property
    def got(self) -> np.ndarray:
        return np.zeros((self.lanes, self.out), np.uint32)


def of_warps(row: Instr) -> bool:
    """mma: fragments in, fragments out."""
    return row.issuer == WARP and row.name.startswith("mma_") and row.done_by is None


def warps(name: str, rows: list[Instr]) -> Program:
    plan = Plan(name, 128)
    for row in rows:
        for case in row.cases:
            plan.add(row, case, EXACT)
            if types_of(row, case)[0] in FLOATS:
                plan.add(row, case, ROUNDED)
    return Program(name, registers_alone(plan.issues), {"given": plan.given}, {"got": plan.got},
                   agree={"got": agreement(plan.checks)}, rows=names(rows))  # fmt: skip


def names(rows: list[Instr]) -> frozenset[str]:
    return frozenset(r.name for r in rows)


# ------------------------------------------------------------------ warpgroups


def of_warpgroups(row: Instr) -> bool:
    return row.done_by == WGMMA_GROUP


WHOLE = ("wgmma_ss", "wgmma_s32_rs")
"""Rows that are run with the greatest n, too: what a program costs here is its results."""


def spread(row: Instr, at_most: int = 4) -> list[dict[str, Any]]:
    """Cases that differ in all static parameters but n and regs, as many as `at_most`, of small n."""
    seen: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for case in row.cases:
        seen.setdefault(tuple(v for k, v in case.items() if k not in ("n", "regs")), []).append(case)
    picked = list(seen.values())
    if len(picked) > at_most:  # a stride that shares no factor with their number, so that every parameter varies
        stride = next(s for s in range(len(picked) // at_most, len(picked)) if math.gcd(s, len(picked)) == 1)
        picked = [picked[stride * i % len(picked)] for i in range(at_most)]
    whole = [picked[0][-1]] if row.name in WHOLE else []
    return whole + [sorted(g, key=lambda c: c["n"])[i % 4] for i, g in enumerate(picked)]


REGION = 1 << 14
"""Bytes of one operand's memory: more than the greatest operand has."""


def descriptor(rng: np.random.Generator, mn: int, k: int, kind: str, major: int) -> tuple[int, int]:
    """A descriptor of an operand (mn, k) whose start is to be added, in one of the canonical layouts; its swizzle."""
    bits = {"tf32": 32, "f16": 16, "bf16": 16, "b1": 1}.get(kind, 8)
    across = (mn if major else k) * bits // 8
    swizzle = int(rng.choice([s for s in (0, 32, 64, 128) if s <= max(across, 16) and across % max(s, 16) == 0]))
    atom = 8 * max(swizzle, 16)
    column, row = atom, atom * max(across // max(swizzle, 16), 1)
    if major and not swizzle:
        column, row = row, column
    return WgmmaDescriptor(0, column, row, 0, swizzle).encode(), swizzle


def warpgroups(row: Instr) -> Program:
    plan, regions = Plan(row.name, 128), {}  # type: ignore[var-annotated]
    starts: list[dict[str, tuple[int, int]]] = []
    for case in spread(row):
        kinds = types_of(row, case)
        for how in (EXACT, ROUNDED) if kinds[0] in FLOATS else (EXACT,):
            plan.add(row, case, how, skip=("a_desc", "b_desc"))
            where = {}
            k = case.get("k") or {"b1": 256, "s8": 32, "u8": 32}.get(kinds[0], 16) * (2 if "_sp" in row.name else 1)
            for name, kind, mn in (("a_desc", kinds[0], 64), ("b_desc", kinds[1], case["n"])):
                if all(o.name != name for o in row.operands):
                    continue
                at = regions.setdefault((kind, how), REGION * len(regions))
                stored = k // 2 if name == "a_desc" and "_sp" in row.name else k
                word, _ = descriptor(plan.rng, mn, stored, kind, case.get(f"trans_{name[0]}", 0))
                where[name] = (word, at)
            starts.append(where)
    memory = np.concatenate([typed(plan.rng, kind, (REGION // 4,), how) for kind, how in regions])
    return Program(
        row.name, warpgroup_kernel(plan.issues, starts, memory.size), {"given": plan.given, "memory": memory[None]},
        {"got": plan.got}, smem=memory.nbytes, agree={"got": agreement(plan.checks)},
        rows=frozenset((row.name, "wgmma_fence", "wgmma_commit_group", "wgmma_wait_group")),
    )  # fmt: skip


def warpgroup_kernel(issues: list[Issue], starts: list[dict[str, tuple[int, int]]], size: int) -> Any:
    @seam.traced
    def body(given: Any, memory: Any, got: Any) -> None:
        b = seam.current()
        i = arch.thread_idx()[0]
        b.smem_needs(4 * size)
        base = Uint32(b.smem_base())
        b.loop(0, size // 128, lambda j: fill(b, memory, base, i + 128 * j))
        isa.fence_proxy_async(space="shared::cta")
        isa.bar_sync(Uint32(0))
        for issue, where in zip(issues, starts):
            values, files = issue.operands(lambda c: given[i, c])
            for name, (word, at) in where.items():
                values[name] = Uint64(encode_address(base + at)) + word
            isa.wgmma_fence()
            issue.row(**values, **issue.case)
            isa.wgmma_commit_group()
            isa.wgmma_wait_group(n=0)
            issue.keep(None, files, lambda c, w: store(got, i, c, w))

    @cuda.jit
    def warpgroup(given, memory, got):
        body(given, memory, got)

    return warpgroup


def fill(b: Any, memory: Any, base: Any, at: Any) -> None:
    b.store(Uint32, "smem", base + 4 * Uint32(at), (memory[0, at],), 4)


# ------------------------------------------------------------------ ldmatrix, stmatrix


def rows_of_matrices() -> Program:
    """ldmatrix from rows anywhere in shared memory, stmatrix to rows of a region that each warp and issue has."""
    name, lanes = "matrix rows", 128
    plan = Plan(name, lanes)
    loads = [plan.add(isa.ldmatrix, c, EXACT, skip=("addr",)) for c in isa.ldmatrix.cases]
    stores = [plan.add(isa.stmatrix, c, EXACT, skip=("addr",)) for c in isa.stmatrix.cases]
    rng, kept = plan.rng, 512 * 4  # bytes that an issue of stmatrix writes
    memory = rng.integers(0, 1 << 32, (1, 4096 + kept // 4 * len(stores)), dtype=np.uint32)
    first = plan.width
    for _ in loads:
        plan.columns.append((rng.integers(0, 1024, lanes) * 16).astype(np.uint32)[:, None])
    for n in range(len(stores)):
        rows = np.concatenate([rng.permutation(32) + 32 * w for w in range(4)])
        plan.columns.append((16384 + n * kept + rows * 16).astype(np.uint32)[:, None])
    issues, size = [*loads, *stores], memory.size

    @seam.traced
    def body(given: Any, memory: Any, got: Any) -> None:
        b = seam.current()
        i = arch.thread_idx()[0]
        b.smem_needs(4 * size)
        base = Uint32(b.smem_base())
        b.loop(0, size // 128, lambda j: fill(b, memory, base, i + 128 * j))
        isa.bar_sync(Uint32(0))
        for n, issue in enumerate(issues):
            address = base + given[i, first + n]
            issue.issue(lambda c: given[i, c], lambda c, w: store(got, i, c, w), addr=address)
        isa.bar_sync(Uint32(0))
        b.loop(0, size // 128, lambda j: drain(b, memory, base, i + 128 * j))

    @cuda.jit
    def matrices(given, memory, got):
        body(given, memory, got)

    return Program(
        name, matrices, {"given": plan.given, "memory": memory}, {"got": plan.got}, smem=memory.nbytes,
        changed=("memory",), agree={"got": agreement(plan.checks)}, rows=frozenset(("ldmatrix", "stmatrix")),
    )  # fmt: skip


def drain(b: Any, memory: Any, base: Any, at: Any) -> None:
    memory[0, at] = b.load(Uint32, "smem", base + 4 * Uint32(at), 1, 4)[0]


def programs() -> list[Program]:
    out, found = [rows_of_matrices()], {}  # type: ignore[var-annotated]
    for row in TABLE.values():
        if not supports(ARCH, row.target):
            continue
        if of_warps(row):
            found.setdefault(f"{family(row)} {row.name}", []).append(row)
        elif of_warpgroups(row):
            out.append(warpgroups(row))
    return out + [warps(name, rows) for name, rows in found.items()]
