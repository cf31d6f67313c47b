# SPDX-License-Identifier: Apache-2.0
"""Rows whose operands and results are registers: each in every case, many lanes at once; one program for a family."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from numba_cute import arch, seam
from numba_cute.isa import TABLE
from numba_cute.isa.form.instr import THREAD, WARP, Instr

from . import inputs
from .program import Issue, Program, agreement, forms_for, result_kinds, words_of

ARCH = "sm_90a"
LANES = 128
MEMORY = {"smem", "cluster_smem", "gmem", "tmap", "tmem"}

BY_NATURE = {
    "clock32": "a counter", "clock64": "a counter", "globaltimer": "a timer", "globaltimer_lo": "a timer",
    "gridid": "another in each launch", "sreg_volatile": "where the hardware put the warp",
    "activemask": "the simulator runs lanes one by one, as its documentation says",
    **{f"createpolicy_{kind}": "an opaque word that changes speed alone" for kind in ("l2", "fractional", "cvt")},
    "mapa": "an address, whose form is the machine's own", "getctarank": "takes such an address",
}  # fmt: skip
"""Rows whose results are no function of their operands: `relations` in `others` holds what they promise."""


def of_values(row: Instr) -> bool:
    """Whether a row takes and gives registers alone, and is done when it is issued."""
    if row.name in BY_NATURE or row.issuer not in (THREAD, WARP) or row.done_by is not None:
        return False
    plain = not any(o.kind.name in MEMORY for o in row.operands)
    return plain and bool(result_kinds(row, row.cases[0])) and not row.name.startswith("mma_")


def family(row: Instr) -> str:
    return str(row.run.__module__.rsplit(".", 1)[-1])


def ulps(bound: float, least: float = 2.0**-126) -> Any:
    """Where two floats are more than `bound` units in the last place apart (and more than `least`)."""

    def bad(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = (v.view(np.float32).ravel().astype(np.float64) for v in (x, y))
        with np.errstate(invalid="ignore", over="ignore"):
            unit = np.exp2(np.maximum(np.floor(np.log2(np.abs(a) + (a == 0))), -126) - 23)
            near = np.abs(a - b) <= np.maximum(bound * unit, least)
        return ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))

    return bad


def absolutely(bound: float) -> Any:
    """Where two floats are more than `bound` apart."""

    def bad(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = (v.view(np.float32).ravel().astype(np.float64) for v in (x, y))
        with np.errstate(invalid="ignore"):
            return ~((np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b)))

    return bad


def logarithm(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """1 ulp, and 2**-22 around 1, where the logarithm is small."""
    return ulps(1.5)(x, y) & absolutely(2.0**-22)(x, y)  # type: ignore[no-any-return]


def of_halves(dtype: Any, bound: float) -> Any:
    """Where pairs of 16-bit floats are more than `bound` apart relatively."""

    def bad(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = (v.view(np.uint16).view(dtype).astype(np.float64).reshape(len(v), -1) for v in (x, y))
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= bound * np.abs(a) + 2.0**-126
        return ~(near | (a == b) | (np.isnan(a) & np.isnan(b))).all(1)

    return bad


# What the PTX ISA documents, and half a unit for the simulator's own rounding.
APPROXIMATE = {
    "ex2_approx": ulps(2.5), "lg2_approx": logarithm, "rcp_approx": ulps(1.5), "div_full": ulps(2.5),
    "sqrt_approx": ulps(1.5), "rsqrt_approx": ulps(2.5), "sin_approx": absolutely(2.0**-20.5),
    "cos_approx": absolutely(2.0**-20.5), "tanh_approx": ulps(2.0**13),
    "ex2_f16x2": of_halves(np.float16, 2.0**-9.0), "ex2_bf16x2": of_halves(inputs.ml_dtypes.bfloat16, 2.0**-6.5),
}  # fmt: skip


def any_nan(dtype: Any) -> Any:
    """Where words that hold floats differ, one NaN being as good as another."""

    def bad(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        unit = np.dtype(f"u{np.dtype(dtype).itemsize}")
        a, b = (v.view(unit).reshape(len(v), -1) for v in (x, y))
        both = np.isnan(a.view(dtype).astype(np.float32)) & np.isnan(b.view(dtype).astype(np.float32))
        return ~((a == b) | both).all(1)

    return bad


def nan_or_infinite(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`any_nan` of f32, where a NaN may also have become infinite: an H200 cuts a NaN's low digits off, and those may
    be all that it has."""
    a, b = (v.view(np.float32).reshape(len(v), -1) for v in (x, y))
    both = (np.isnan(a) & ~np.isfinite(b)) | (np.isnan(b) & ~np.isfinite(a))
    return ~((x.reshape(len(x), -1) == y.reshape(len(y), -1)) | both).all(1)


# The PTX ISA says of conversions from 8 bits and to tf32 that NaN stays NaN, not which: an H200 keeps the sign and, of
# what it can, the payload; the simulator gives one NaN (test_hardware, "widen", 2026-11-21).
NANS = {
    "cvt_f16x4_e4m3x4": any_nan(np.float16), "cvt_f16x4_e5m2x4": any_nan(np.float16),
    "cvt_bf16x4_e4m3x4": any_nan(inputs.ml_dtypes.bfloat16), "cvt_rn_f16x4_e4m3x4": any_nan(np.float16),
    "cvt_rn_bf16x4_e4m3x4": any_nan(inputs.ml_dtypes.bfloat16), "cvt_rna_tf32_f32": nan_or_infinite,
    "cvt_rn_tf32_f32": nan_or_infinite,
}  # fmt: skip


def program(name: str, rows: list[Instr], lanes: int = LANES) -> Program:
    """All cases of the rows, which share their operands."""
    rng = np.random.default_rng(list(name.encode()))
    columns: list[np.ndarray] = []
    issues, checks, width, out = [], [], 0, 0
    for row in rows:
        found: dict[tuple[str, Any], int] = {}
        for case, given in forms_for(row, ARCH):
            at: dict[str, int] = {}
            for o in row.operands_in(case):
                if not o.reads or (o.optional and o.name not in given):
                    continue
                if (o.name, o.kind) not in found:
                    found[o.name, o.kind] = width
                    columns.append(inputs.operand(rng, row.name, o, case, lanes))
                    width += columns[-1].shape[1]
                at[o.name] = found[o.name, o.kind]
            issues.append(Issue(row, case, at, out))
            label = " ".join([row.name, *(str(v) for v in case.values()), *given])
            for kind in result_kinds(row, case):
                checks.append((label, kind, APPROXIMATE.get(row.name) or NANS.get(row.name)))
                out += words_of(kind)
    words = np.concatenate(columns, 1) if columns else np.zeros((lanes, 1), np.uint32)
    return Program(name, kernel_of(issues), {"given": np.ascontiguousarray(words)},
                   {"got": np.zeros((lanes, out), np.uint32)}, grid=lanes // 128, agree={"got": agreement(checks)},
                   smem=4096, rows=frozenset(r.name for r in rows))  # fmt: skip


def kernel_of(issues: list[Issue]) -> Any:
    """A kernel whose threads each issue everything on their own row of words."""

    @seam.traced
    def body(given: Any, got: Any) -> None:
        i = arch.thread_idx()[0] + 128 * arch.block_idx()[0]
        for issue in issues:
            issue.issue(lambda c: given[i, c], lambda c, w: store(got, i, c, w))

    @cuda.jit
    def values(given, got):
        body(given, got)

    return values


def store(got: Any, i: Any, c: int, word: Any) -> None:
    got[i, c] = word


SPLIT = 160
"""Issues in one kernel at most: half a second of compiling."""


def programs() -> list[Program]:
    found: dict[str, list[Instr]] = {}
    for row in TABLE.values():
        if forms_for(row, ARCH) and of_values(row):
            found.setdefault(family(row), []).append(row)
    out = []
    for name, rows in found.items():
        parts: list[list[Instr]] = [[]]
        for row in rows:
            if parts[-1] and sum(len(forms_for(r, ARCH)) for r in (*parts[-1], row)) > SPLIT:
                parts.append([])
            parts[-1].append(row)
        out += [program(f"{name}{i or ''}", part) for i, part in enumerate(parts)]
    return out
