# SPDX-License-Identifier: Apache-2.0
"""The tables of operations in docs/nvgpu.md, from their rows. `python -m tests.utils.operation_table` writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

from numba_cute import nvgpu
from numba_cute.atoms.op import Field
from numba_cute.nvgpu.common import CopyOp, MmaOp, by_row

from .instruction_table import PAGE, family, order

FACADES = (nvgpu, nvgpu.warp, nvgpu.warpgroup, nvgpu.tcgen05, nvgpu.cpasync)
ANY = {"CopyUniversalOp": "ld, st", "CopyG2ROp": "ld.global", "CopyR2GOp": "st.global", "CopyS2ROp": "ld.shared",
       "CopyR2SOp": "st.shared", "MmaUniversalOp": "fma"}  # fmt: skip
"""What the compiler makes of operations without rows."""


def operations(base: type) -> Iterator[tuple[str, Any]]:
    """(name, class) of all public operations of a kind, but bases."""
    for module in FACADES:
        for name in sorted(module.__all__):
            cls = getattr(module, name)
            if inspect.isclass(cls) and issubclass(cls, base) and cls is not base and (cls.rows or name in ANY):
                yield f"{module.__name__.removeprefix('numba_cute.')}.{name}", cls


def head(name: str, cls: Any) -> str:
    """The operation, its instruction and its targets."""
    ptx = ", ".join(dict.fromkeys(str(family(row)) for row in cls.rows)) or ANY[cls.__name__]
    return f"| `{name}` | `{ptx}` | {', '.join(targets(cls)) or 'any'} |"


def in_mode(cls: Any, row: Any) -> dict[str, Any]:
    """The form of a row that a TMA operation with a mode of its own issues first."""
    mode = getattr(cls, "mode", "tile")
    return next((case for case in row.cases if mode != "tile" and case.get("mode") == mode), {})


def first_targets(cls: Any) -> set[str]:
    """The target that each form of the operation needs, as its rows say it."""
    forms = (
        by_row.cases(cls, "target") if issubclass(cls, by_row.ByRow) else [(row, in_mode(cls, row)) for row in cls.rows]
    )
    gives = cls.gives if issubclass(cls, CopyOp) else ()
    return {max(row.needs(case, gives), key=lambda t: order(t.split("|")[0])) for row, case in forms}


def targets(cls: Any) -> list[str]:
    return sorted({t for target in first_targets(cls) for t in target.split("|")}, key=order)


def cases(cls: Any, *names: str) -> list[Any]:
    return [case for _, case in by_row.cases(cls, *names)]


def _distinct(found: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(found))


def types(cls: Any) -> str:
    """What is multiplied into what."""
    into: dict[tuple[Any, ...], list[str]] = {}
    held = cases(cls, "a_type", "b_type", "d_type")
    for d in _distinct(c["d_type"] for c in held):
        pairs = _distinct((c["a_type"], c["b_type"]) for c in held if c["d_type"] == d)
        own = any(c.field == "b_dtype" for c in by_row.choices(cls))
        into.setdefault(tuple(pairs if own else [(a, b) for a, b in pairs if a == b]), []).append(d)
    out = []
    for pairs, ds in into.items():
        names = ", ".join(_distinct(a for a, _ in pairs))
        out.append(f"{names}{', each its own,' if any(a != b for a, b in pairs) else ''} into {' or '.join(ds)}")
    return "; ".join([*out, *remarks(cls)])


def remarks(cls: Any) -> Iterator[str]:
    some = cases(cls, "sf", "k", "vec", "block", "op", "trans_b")
    if Field.SFA in cls.fields:
        each = sorted({c["block"] if "block" in c else c["k"] // c["vec"] for c in some}, reverse=True)
        names = _distinct(c["sf"] for c in some)
        yield f"a {' or '.join(names)} factor for each {' or '.join(map(str, each))} of a row"
    if "op" in some[0]:
        yield "by " + " or ".join(_distinct(c["op"] for c in some))
    if cls.sparsity > 1:
        yield "A half stored"
    if "trans_b" in some[0]:
        yield "either major" if any(c["trans_b"] for c in some) else "K-major"


def shapes(cls: Any) -> str:
    found = sorted({(c["m"], c["n"], c["k"]) for c in cases(cls, "m", "n", "k")})
    ns = sorted({n for _, n, _ in found})
    if len(ns) == 1:
        return ", ".join("x".join(map(str, s)) for s in found)
    each = _distinct(f"{m}xNx{k}" for m, _, k in found)
    return f"{', '.join(each)}, N {by_row.numbers(ns)}"


def says(cls: Any) -> str:
    """The first sentence of its docstring."""
    text = re.sub(r"\s+", " ", inspect.getdoc(cls) or "")
    return re.split(r"\. |\.$", text)[0]


def matrix_table() -> str:
    lines = ["| operation | PTX | target | types | (M, N, K) |", "| --- | --- | --- | --- | --- |"]
    for name, cls in operations(MmaOp):
        said = (types(cls), shapes(cls)) if cls.rows else ("any", "1x1x1 by one thread")
        lines.append(f"{head(name, cls)} {said[0]} | {said[1]} |")
    return "\n".join(lines) + "\n"


def copy_table() -> str:
    lines = ["| operation | PTX | target | what it does |", "| --- | --- | --- | --- |"]
    lines += [f"{head(name, cls)} {says(cls)} |" for name, cls in operations(CopyOp)]
    return "\n".join(lines) + "\n"


TABLES = {"matrix operations": matrix_table, "copy operations": copy_table}


def marks(title: str) -> tuple[str, str]:
    return f"<!-- {title} -->\n", f"<!-- end of {title} -->\n"


def between(page: str, title: str) -> str:
    """A table as the page has it."""
    begin, end = marks(title)
    return page.split(begin)[1].split(end)[0]


if __name__ == "__main__":
    page = PAGE.read_text()
    for title, table in TABLES.items():
        begin, end = marks(title)
        page = page.replace(begin + between(page, title) + end, begin + table() + end)
    PAGE.write_text(page)
