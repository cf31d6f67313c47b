# SPDX-License-Identifier: Apache-2.0
"""Makes docs/compatibility.md from the names of other systems, beside this file, and from what there is here.

`python -m tests.compatibility.page` writes it. A name that comes to be appears by itself; what differs, and why a name
is absent, is in remarks.py and in numba_cute/seam/ground/absent.py.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba_cute as cute
from numba_cute.seam.ground import absent

from .remarks import DIFFERENCES, IR

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "compatibility.md"
SEEDS: dict[str, Any] = json.loads((HERE / "seeds.json").read_text())
DSL: dict[str, list[str]] = json.loads((HERE / "cute_dsl_4_8_1.json").read_text())


@dataclass(frozen=True)
class Row:
    """A name of another system, what it is here (None: nothing), and what differs or why it is absent."""

    name: str
    here: str | None
    remark: str


@functools.cache
def found(dotted: str) -> bool:
    """Whether a name such as "arch.load" or "pipeline.PipelineState.advance" is one of numba_cute."""
    at: Any = cute
    for part in dotted.split("."):
        if not inspect.ismodule(at):
            at = next((vars(c)[part] for c in at.__mro__ if part in vars(c)), None) if inspect.isclass(at) else None
            if at is None:
                return part in _fields(dotted)
        elif hasattr(at, part):
            at = getattr(at, part)
        else:
            return False
    return True


def _fields(dotted: str) -> tuple[str, ...]:
    """The fields of the struct class that a dotted name's last part may be one of."""
    owner, _, _ = dotted.rpartition(".")
    at: Any = cute
    for part in owner.split("."):
        at = getattr(at, part, None)
    return tuple(getattr(at, "__cute_fields__", ()))


def row(module: str, name: str) -> Row:
    path = f"{module}.{name}" if module else name
    if found(path):
        return Row(name, f"cute.{path}", DIFFERENCES.get(path, ""))
    return Row(name, None, absent.reason(module, name) or "")


def ir_row(dialect: str, name: str) -> Row:
    """A row of an operation of the CuTe IR: the operation, and what in Python does the same."""
    from numba_cute.ir.library import definitions  # it needs xDSL
    from numba_cute.ir.text import registry  # it needs xDSL

    choices, remark = IR.get(name, ((name,), ""))
    python = next((c for c in choices if found(c)), None)
    operation = registry.own_name(f"{dialect}.{name}")
    said = [f"in Python, `cute.{python}`"] if python else []
    return Row(name, operation if definitions.named(operation) else None, "; ".join(filter(None, [*said, remark])))


def experimental() -> Iterator[tuple[str, list[Row]]]:
    yield "", [row("experimental", n) for n in SEEDS["S0 cute.experimental"]["names"]]


def tilelang() -> Iterator[tuple[str, list[Row]]]:
    yield "", [row("tilelang.cpasync", n) for n in SEEDS["S1 tilelang cpasync"]["names"]]


def pipelines() -> Iterator[tuple[str, list[Row]]]:
    held = SEEDS["S2 cutlass.pipeline"]
    yield "", [row("pipeline", n) for n in held["names"]]
    for cls, methods in held["methods"].items():
        yield f"of `{cls}`", [_method(cls, n) for n in methods]


def _method(cls: str, name: str) -> Row:
    made = row(f"pipeline.{cls}", name)
    return Row(name, made.here and f"{cls}.{name}", made.remark)


def intermediate() -> Iterator[tuple[str, list[Row]]]:
    yield "of the dialect `cute`", [ir_row("cute", n) for n in SEEDS["S3 CuTe IR cute_ir"]["names"]]
    nvgpu = SEEDS["S3 CuTe IR cute_nvgpu_ir"]
    yield "of the dialect `cute_nvgpu`", [ir_row("cute_nvgpu", n) for n in (*nvgpu["names"], *nvgpu["nvgpu"])]


def modules() -> Iterator[tuple[str, list[Row]]]:
    for module, names in DSL.items():
        yield f"of `{'.'.join(filter(None, ('cute', module)))}`", [row(module, n) for n in names]
    for module, names in SEEDS["S4 Blackwell blog"]["names_by_module"].items():
        others = [n for n in names if n not in DSL.get(module, ())]
        if others:
            yield (
                f"of `{'.'.join(filter(None, ('cute', module)))}`, in the announcement of CUTLASS 4",
                [row(module, n) for n in others],
            )


SYSTEMS = {
    "CuTe experimental": experimental,
    "tilelang's cpasync": tilelang,
    "cutlass.pipeline": pipelines,
    "The CuTe IR": intermediate,
    "The CuTe DSL's modules": modules,
}

INTRODUCTION = """# Compatibility

This page lists the names of five systems, and what this library has for each: CuTe's experimental interface, the
functions that TileLang's generated code calls, CUTLASS's pipelines, the operations of the CuTe IR, and the modules of
the CuTe DSL (4.8.1). `python -m tests.compatibility.page` writes it from their lists and from this package.
[differences.md](differences.md) has what else to know for a port.

No Blackwell GPU was available: code that needs one has only run in the simulator and through the assembler.
"""


INTRODUCTION_TO_EXAMPLES = """These public examples also use the following names, which this library lacks.
"""


INTRODUCTION_TO_OTHERS = """Kernels written for the CuTe DSL, CUTLASS or CUDA C++ may use these names. The error
message for each says the same.
"""


def counted(system: str) -> tuple[int, int]:
    """How many names of a system are here, and how many it has."""
    rows = [r for _, part in SYSTEMS[system]() for r in part]
    return sum(r.here is not None for r in rows), len(rows)


def dsl_count() -> tuple[int, int]:
    """How many names of the CuTe DSL's modules are here, of how many."""
    rows = [row(module, n) for module, names in DSL.items() for n in names]
    return sum(r.here is not None for r in rows), len(rows)


def text() -> str:
    """The page."""
    lines = [INTRODUCTION, "| system | names here | of |", "| --- | --- | --- |"]
    for system in SYSTEMS:
        here, total = counted(system)
        lines.append(f"| {system} | {here} | {total} |")
    for system, tables in SYSTEMS.items():
        lines += ["", f"## {system}"]
        for title, rows in tables():
            here = sum(r.here is not None for r in rows)
            lines += ["", f"{title or 'Names'}: {here} of {len(rows)}", "", "| name | here | difference |"]
            lines.append("| --- | --- | --- |")
            lines += [f"| `{r.name}` | {f'`{r.here}`' if r.here else '—'} | {r.remark} |" for r in rows]
    lines += ["", "## The examples for Blackwell", "", INTRODUCTION_TO_EXAMPLES, "| name | why it is absent |"]
    lines += ["| --- | --- |", *(f"| `{name}` | {why} |" for name, why in absent.EXAMPLES.items())]
    lines += [
        "",
        "## Other names",
        "",
        INTRODUCTION_TO_OTHERS,
        "| name | instead, or why it is absent |",
        "| --- | --- |",
    ]
    lines += [f"| `{name.removeprefix('*')}` | {why} |" for name, why in absent.FOREIGN.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    importlib.invalidate_caches()
    PAGE.write_text(text())
    print(*(f"{s}: {'/'.join(map(str, counted(s)))}" for s in SYSTEMS), sep="\n")


if __name__ == "__main__":
    main()
