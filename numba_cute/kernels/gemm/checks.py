# SPDX-License-Identifier: Apache-2.0
"""Check the arguments of `matmul`, and make its result."""

from __future__ import annotations

from typing import Any

from numba_cute import CuteError

from .. import entry
from .cuts import Umma, Warps
from .epilogue import Epilogue
from .plan import Plan
from .taken import broadcast

OPERANDS = ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2", "int8")
RESULT_TYPES = ("bfloat16", "float16", "float32")
INDICES = ("int32", "int64")


def result_of(a: Any, b: Any, epilogue: Any, rows: Any, out: Any, out_dtype: Any, cut: Any) -> Any:
    """Give what is written to: `out`, if it fits, or a new tensor. What does not fit is refused. All as of `matmul`;
    rows: the indices of A's rows and C's, or None."""
    torch, (rows_a, rows_c) = entry.pytorch(), rows
    for name, x in (("a", a), ("b", b)):
        entry.check("matmul", name, x, dtypes=OPERANDS, least_rank=2, last=False, like=a)
    if epilogue is not None and not isinstance(epilogue, Epilogue):
        raise CuteError(f"matmul: epilogue is {entry.described(epilogue)}; give an Epilogue, or None")
    if cut is not None and not isinstance(cut, (Plan, Warps, Umma)):
        raise CuteError(f"matmul: cut is {entry.described(cut)}; give a Plan, an Umma, a Warps, or None")
    if a.dtype != b.dtype or a.shape[-1] != b.shape[-2]:
        raise CuteError(
            f"matmul: a is {entry.described(a)} and b {entry.described(b)}; both must have the same elements, and a as "
            "many columns as b has rows"
        )
    spread = epilogue.spread if epilogue else 1
    if b.shape[-1] % spread:
        raise CuteError(f"matmul: b is {entry.described(b)}; its columns must be two halves, an even number")
    shape = (*broadcast(a, b), a.shape[-2], b.shape[-1] // spread)
    if rows_a is not None or rows_c is not None:
        shape = of_rows(a, b, rows_a, rows_c, shape, out)
    usual = {torch.int8: torch.float32 if epilogue else torch.int32}
    usual |= {torch.float8_e4m3fn: torch.bfloat16, torch.float8_e5m2: torch.bfloat16}
    dtype = out_dtype or (out.dtype if out is not None else usual.get(a.dtype, a.dtype))
    allowed = RESULT_TYPES if a.dtype != torch.int8 or epilogue else ("int32",)
    if out is None:
        out = (torch.empty if rows_c is None else torch.zeros)(shape, dtype=dtype, device=a.device)
    entry.check("matmul", "out", out, dtypes=allowed, shape=shape, last=False, like=a)
    if out.dtype != dtype:
        raise CuteError(f"matmul: out is {entry.described(out)}, and out_dtype {out_dtype}: leave one out")
    if any(n > 1 and not s for n, s in zip(out.shape, out.stride())):
        raise CuteError(f"matmul: out is {entry.described(out)}; its elements must lie apart: give a tensor of its own")
    return out


def of_rows(a: Any, b: Any, rows_a: Any, rows_c: Any, shape: Any, out: Any) -> tuple[int, ...]:
    """Return the result's shape where an index names rows; refuse what is not an index, or is empty. shape: without."""
    if a.ndim != 2 or b.ndim != 2:
        raise CuteError(
            f"matmul: rows are named by an index, and a is {entry.described(a)} and b {entry.described(b)}; both must "
            "be matrices: reshape a"
        )
    rows, columns = shape
    if rows_a is not None:
        entry.check("matmul", "rows_of_a", rows_a, dtypes=INDICES, rank=1, last=False, like=a)
        rows = rows_a.shape[0]
        if rows and not a.shape[0]:
            raise CuteError(f"matmul: rows_of_a names rows, and a is {entry.described(a)}, which has none: give them")
        if entry.type_name(a) == "int8":
            raise CuteError(
                "matmul: rows_of_a is given, and a is int8, which has no NaN for a row outside a: give a[rows_of_a]"
            )
    if rows_c is None:
        return rows, columns
    entry.check("matmul", "rows_of_c", rows_c, dtypes=INDICES, shape=(rows,), last=False, like=a)
    if out is None:
        return rows, columns
    entry.check("matmul", "out", out, rank=2, last=False, like=a)
    return out.shape[0], columns


def check(a: Any, b: Any, c: Any, given: list[Any], family: str, rows: Any = (None, None)) -> None:
    """Refuse tensors that a family cannot multiply, and what the epilogue cannot take. rows: the indices."""
    if family == entry.WARPS and entry.type_name(a).startswith("float8"):
        from . import warps_plan

        target = entry.target_at(a)
        if not warps_plan.has_float8(target):
            raise CuteError(
                f"matmul: a is {entry.described(a)}; on {target.name} mma.sync multiplies "
                f"{', '.join(warps_plan.OPERANDS)}, and float8 on sm_89, sm_120 and sm_121: convert it, or leave out "
                "a cut that is a Warps"
            )
    for name, x in (("a", a), ("b", b), ("out", c)):
        entry.check_place("matmul", name, x)
    shape = c.shape if rows[1] is None else (rows[1].shape[0], c.shape[1])
    for x in given:
        x.check(c, shape)
