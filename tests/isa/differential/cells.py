# SPDX-License-Identifier: Apache-2.0
"""Rows that read or write a few bytes of memory: each issue of each lane has 16 bytes of its own, in global memory, in
shared memory, or in the shared memory of the other CTA of a cluster, and all of it is compared afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from numba_cute import arch, isa, seam
from numba_cute.isa import TABLE
from numba_cute.isa.form.instr import THREAD, Instr
from numba_cute.isa.form.kinds import Role
from numba_cute.isa.rows import multimem, spin

from . import inputs
from .program import Issue, Program, Uint32, Uint64, agreement, forms_for, result_kinds, words_of
from .values import ARCH, store

LANES, BLOCKS, CELL = 32, 2, 16
SPACES = {"gmem": "global", "smem": "shared", "cluster_smem": "dsmem"}
VARIED = ("sem", "scope", "cop", "evict", "prefetch", "target")
"""Static parameters that change no result of a single access: every other combination is run with some of them."""


NOT_OF_CELLS = tuple(row for rows in (multimem, spin) for row in vars(rows).values() if isinstance(row, Instr))
"""Rows whose addresses stand for the memory of several GPUs, or that wait for another thread to write."""


def of_cells(row: Instr) -> bool:
    """Whether a row's first operand is the address of what it reads or changes, at once."""
    first = row.operands[0] if row.operands else None
    if first is None or row.issuer != THREAD or row.done_by is not None or first.kind.name not in SPACES:
        return False
    return first.name == "addr" and first.role is Role.ADDRESS and row not in NOT_OF_CELLS


def space_of(row: Instr, case: dict[str, Any]) -> str:
    return SPACES[row.operands_in(case)[0].kind.name]


Form = tuple[dict[str, Any], tuple[str, ...]]


def sampled(row: Instr, space: str) -> list[Form]:
    """Forms of a row in a space: each combination of what changes results, with different orders, scopes and hints."""
    groups: dict[tuple[Any, ...], list[Form]] = {}
    for case, given in forms_for(row, ARCH):
        if space_of(row, case) == space:
            key = tuple((k, v) for k, v in case.items() if k not in VARIED)
            groups.setdefault(key, []).append((case, given))
    each = min(6, max(2, 44 // max(len(groups), 1)))
    picked = []
    for i, forms in enumerate(groups.values()):
        step = max(1, len(forms) // each)
        picked += [forms[(i * 5 + j * step) % len(forms)] for j in range(min(each, len(forms)))]
    return picked


def _finite(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """16 bytes of floats whose sums are finite, and no NaN: which one a sum gives is not documented."""
    if kind == "f64":
        return inputs.any_doubles(rng, 2 * n).reshape(n, 4)
    if kind == "f32":
        single = (rng.standard_normal((n, 4)) * np.exp2(rng.integers(-130, 100, (n, 4)))).astype(np.float32)
        return single.view(np.uint32)
    half = rng.integers(0, 0x7800, (n, 8)).astype(np.uint16) | (rng.integers(0, 2, (n, 8)) << 15).astype(np.uint16)
    return np.ascontiguousarray(half).view(np.uint32)


def _float_kind(issue: Issue) -> str | None:
    """Which floats a row adds."""
    text = " ".join([issue.row.name, str(issue.case.get("type", ""))])
    for kind in ("f64", "f32", "bf16", "f16"):
        if kind in text:
            return kind
    return None


def _contents(rng: np.random.Generator, issue: Issue, n: int) -> np.ndarray:
    kind = _float_kind(issue)
    return inputs.any_words(rng, 4 * n).reshape(n, 4) if kind is None else _finite(rng, kind, n)


def program(name: str, space: str, forms: list[tuple[Instr, Form]]) -> Program:
    rng = np.random.default_rng(list(name.encode()))
    lanes = LANES * BLOCKS
    issues, checks, columns, cells, width, out = [], [], [], [], 0, 0
    for row, (case, there) in forms:
        issue = Issue(row, case, {}, out)
        cells.append(_contents(rng, issue, lanes))
        for o in row.operands_in(case)[1:]:
            if not o.reads or (o.optional and o.name not in there):
                continue
            issue.inputs[o.name] = width
            columns.append(_operand(rng, issue, o, cells[-1], lanes))
            width += columns[-1].shape[1]
        issues.append(issue)
        for kind in result_kinds(row, case):
            checks.append((" ".join([row.name, *map(str, case.values()), *there]), kind, None))
            out += words_of(kind)
    given = np.concatenate(columns, 1) if columns else np.zeros((lanes, 1), np.uint32)
    memory = np.ascontiguousarray(np.stack(cells, 1).reshape(lanes, -1))
    got = np.zeros((lanes, max(out, 1)), np.uint32)
    agree = {"got": agreement(checks)} if out else {}
    agree["memory"] = _memory(issues)
    return Program(
        name, kernel_of(space, issues), {"memory": memory, "given": np.ascontiguousarray(given)}, {"got": got},
        grid=BLOCKS, block=LANES, cluster=2 if space == "dsmem" else None, changed=("memory",), agree=agree,
        smem=len(issues) * LANES * CELL if space != "global" else 0, rows=frozenset(r.name for r, _ in forms),
    )  # fmt: skip


def _operand(rng: np.random.Generator, issue: Issue, o: Any, cell: np.ndarray, n: int) -> np.ndarray:
    count = o.size(issue.case) * words_of(o.kind)
    if o.name == "policy":  # what createpolicy gives for evict_normal, _first and _last (CUTLASS, TMA::CacheHintSm90)
        high = np.array([0x10000000, 0x12F00000, 0x14F00000], np.uint32)[np.arange(n) % 3]
        return np.stack([np.zeros(n, np.uint32), high], 1)
    if o.name == "expected":  # what is there, in every other lane
        held = cell[:, :count] if o.kind.name != "u16" else cell[:, :1] & 0xFFFF
        return np.where((np.arange(n) % 2 == 0)[:, None], held, inputs.any_words(rng, n * count).reshape(n, count))
    kind = _float_kind(issue)
    if kind is None:
        return inputs.operand(rng, issue.row.name, o, issue.case, n)
    words = _finite(rng, kind, n)
    if o.kind.name == "u16":
        return np.ascontiguousarray(words.view(np.uint16)[:, : o.size(issue.case)]).astype(np.uint32)
    return np.ascontiguousarray(words[:, :count])


def _memory(issues: list[Issue]) -> Any:
    def compare(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
        wrong = []
        for i, issue in enumerate(issues):
            x, y = ours[:, 4 * i : 4 * i + 4], theirs[:, 4 * i : 4 * i + 4]
            bad = (x != y).any(1)
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                label = " ".join([issue.row.name, *map(str, issue.case.values())])
                shown = [[hex(int(w)) for w in v[at]] for v in (x, y)]
                wrong.append(f"{label}: {int(bad.sum())} lanes, lane {at}: {shown[0]} here, {shown[1]}")
        assert not wrong, f"{name}: simulator and GPU differ\n  " + "\n  ".join(wrong[:40])

    return compare


def kernel_of(space: str, issues: list[Issue]) -> Any:
    """All threads put their cells where the rows reach them, issue everything, and bring the cells back."""

    @seam.traced
    def here(memory: Any, i: Any, n: int) -> Any:
        """The address of this lane's cell `n`, as this thread may access it."""
        if space == "global":
            return Uint64((memory.iterator + i * (4 * len(issues)) + 4 * n).toint())
        return Uint32(base() + (n * LANES + arch.lane_idx()) * CELL)

    def base() -> Any:
        b = seam.current()
        b.smem_needs(len(issues) * LANES * CELL)
        return b.smem_base()

    def meet() -> None:
        if space == "dsmem":
            isa.cluster_arrive()
            isa.cluster_wait()

    @seam.traced
    def body(memory: Any, given: Any, got: Any) -> None:
        b = seam.current()
        i = arch.lane_idx() + LANES * arch.block_idx()[0]
        if space != "global":
            for n in range(len(issues)):
                cell = tuple(memory[i, 4 * n + j] for j in range(4))
                b.store(Uint32, "smem", here(memory, i, n), cell, CELL)
        meet()
        for n, issue in enumerate(issues):
            address = here(memory, i, n)
            if space == "dsmem":
                address = isa.mapa(address, Uint32(1 - arch.block_idx_in_cluster()))
            issue.issue(lambda c: given[i, c], lambda c, w: store(got, i, c, w), addr=address)
        meet()
        if space != "global":
            for n in range(len(issues)):
                for j, w in enumerate(b.load(Uint32, "smem", here(memory, i, n), 4, CELL)):
                    memory[i, 4 * n + j] = w

    @cuda.jit
    def cells(memory, given, got):
        body(memory, given, got)

    return cells


PART = 72
"""Issues in one program at most: their cells fill shared memory."""


def programs() -> list[Program]:
    rows = [row for row in TABLE.values() if of_cells(row)]
    out = []
    for space in SPACES.values():
        forms = [(row, form) for row in rows for form in sampled(row, space)]
        parts = [forms[i : i + PART] for i in range(0, len(forms), PART)]
        out += [program(f"{space} cells {i}", space, part) for i, part in enumerate(parts)]
    return out
