# SPDX-License-Identifier: Apache-2.0
"""Measurements of GPUs, by which plans choose: a table for each, a file in `tuned/`, which `python -m benchmarks tune`
writes.

A table has, by entry, the numbers of its plan's model and its thresholds (`numbers`), and what was best for some shapes
(`shapes`). A GPU without a table takes that of the nearest one, and a shape near one of the table its row: of both a
PerformanceWarning tells, once. In a simulation, and for arrays of NumPy's, GPUs are an H200, or the nearest of the
target.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from numba_cute import PerformanceWarning

from . import entry

__all__ = [
    "FOLDER",
    "Gpu",
    "Table",
    "here",
    "near",
    "numbers",
    "read",
    "table_for",
    "tables",
    "using",
    "with_numbers",
    "written",
]

FOLDER = Path(__file__).with_name("tuned")
NEAR = 2.0
"""The largest factor by which the extents of a shape may differ from those of a row that it takes."""


class Gpu(NamedTuple):
    """A GPU. name: of the product. capability: as "9.0". sms: how many SMs it has."""

    name: str
    capability: str
    sms: int


USUAL = Gpu("NVIDIA H200", "9.0", 132)
"""The GPU that stands for those of a simulation, and of arrays of NumPy's."""


class Table(NamedTuple):
    """The measurements of a GPU. date, by: when, and what measured it. numbers: by entry, those of its plan. shapes: by
    entry, rows: the extents, the kind of operands, and the cut that was best."""

    gpu: Gpu
    date: str
    by: str
    numbers: dict[str, Any]
    shapes: dict[str, list[dict[str, Any]]]


def read(text: str) -> Table:
    """Read a table of a file's text."""
    held = json.loads(text)
    numbers = {name: SimpleNamespace(**_keyed(values)) for name, values in held["numbers"].items()}
    return Table(Gpu(held["gpu"], held["capability"], held["sms"]), held["date"], held["by"], numbers, held["shapes"])


def written(table: Table) -> str:
    """Give a table as its file's text."""
    numbers = {name: _named(vars(values)) for name, values in table.numbers.items()}
    gpu = {"gpu": table.gpu.name, "capability": table.gpu.capability, "sms": table.gpu.sms}
    held = {**gpu, "date": table.date, "by": table.by, "numbers": numbers, "shapes": table.shapes}
    return json.dumps(held, indent=1) + "\n"


def file_of(gpu: Gpu, folder: Path = FOLDER) -> Path:
    """Give the file of a GPU's table."""
    return folder / f"{re.sub(r'[^a-z0-9]+', '_', gpu.name.lower()).strip('_')}.json"


def _keyed(values: Any) -> Any:
    """JSON's dicts, with numbers for keys that are some: "256", and "256,2" for several."""
    if not isinstance(values, dict):
        return values
    return {_key(k): _keyed(v) for k, v in values.items()}


def _key(text: str) -> Any:
    if not re.fullmatch(r"\d+(,\d+)*", text):
        return text
    numbers = tuple(map(int, text.split(",")))
    return numbers if len(numbers) > 1 else numbers[0]


def _named(values: Any) -> Any:
    """The reverse of `_keyed`."""
    if not isinstance(values, Mapping):
        return values
    return {",".join(map(str, k)) if isinstance(k, tuple) else str(k): _named(v) for k, v in values.items()}


@functools.cache
def tables() -> tuple[Table, ...]:
    """Give all tables that there are."""
    return tuple(read(file.read_text()) for file in sorted(FOLDER.glob("*.json")))


def near(gpu: Gpu, among: Sequence[Table]) -> Table:
    """Give a GPU's own table, or that of the nearest: of its compute capability, and with as many SMs, about."""

    def apart(table: Table) -> tuple[bool, float, float]:
        far = abs(float(table.gpu.capability) - float(gpu.capability))
        return table.gpu.name != gpu.name or far > 0, far, abs(math.log(table.gpu.sms / gpu.sms))

    return min(among, key=apart)


@functools.cache
def _nearest(gpu: Gpu) -> Table:
    return near(gpu, tables())


@functools.cache
def table_for(gpu: Gpu) -> Table:
    """Give a GPU's own table, or the nearest, with a warning, once."""
    found = _nearest(gpu)
    if found.gpu[:2] != gpu[:2]:
        _tell(
            f"numba_cute.kernels: of {gpu.name} ({gpu.sms} SMs, {gpu.capability}) nothing was measured: plans choose "
            f"by the table of {found.gpu.name}; `python -m benchmarks tune` measures this one"
        )
    return found


def _tell(what: str) -> None:
    warnings.warn(what, PerformanceWarning, stacklevel=2)


def here() -> Gpu:
    """Give the GPU to which launches go now."""
    target, torch = entry.simulated(), sys.modules.get("torch")
    real = _device(torch.cuda.current_device()) if torch is not None and torch.cuda.is_initialized() else None
    if target is None:
        return real or USUAL
    at = re.sub(r"\D", "", target.name)
    capability = f"{at[:-1]}.{at[-1]}"
    alike = [gpu for gpu in (real, USUAL) if gpu is not None and gpu.capability == capability]
    return alike[0] if alike else Gpu(target.name, capability, target.products[0].sms if target.products else USUAL.sms)


@functools.cache
def _device(index: int) -> Gpu:
    found = entry.pytorch().cuda.get_device_properties(index)
    return Gpu(found.name, f"{found.major}.{found.minor}", found.multi_processor_count)


_used: Table | None = None  # a plain global, which `cute.runtime.remembered` looks at before what it remembers


@contextlib.contextmanager
def using(table: Table) -> Iterator[None]:
    """Let plans choose by a table, whatever GPU is here, as long as the context lasts: those of the whole process."""
    global _used
    before, _used = _used, table
    try:
        yield
    finally:
        _used = before


def with_numbers(table: Table, name: str, **values: Any) -> Table:
    """Give a table with some other numbers. name: of an entry. values: of these numbers."""
    changed = SimpleNamespace(**{**vars(table.numbers[name]), **values})
    return table._replace(numbers={**table.numbers, name: changed})


def table() -> Table:
    """Give the table of the GPU to which launches go now, or the one that is used; in a simulation the nearest, without
    a word."""
    if _used is not None:
        return _used
    gpu = here()
    return _nearest(gpu) if gpu is USUAL or entry.simulated() is not None else table_for(gpu)


def numbers(name: str) -> Any:
    """Give what an entry's plan knows of the GPU to which launches go now, as attributes. name: the entry's."""
    return table().numbers[name]


def row_of(name: str, kind: str, extents: Sequence[int]) -> dict[str, Any] | None:
    """Give the row of a shape: its own, or the nearest one, if no extent is more than NEAR times that of the row or
    the other way round; None without one. name: the entry's. kind: of operands. extents: of the shape."""
    rows = [r for r in table().shapes.get(name, ()) if r["kind"] == kind]
    if not rows:
        return None
    apart = lambda r: max(abs(math.log(a / b)) for a, b in zip(r["extents"], extents, strict=True))  # noqa: E731
    best = min(rows, key=apart)
    if apart(best) > math.log(NEAR):
        return None
    if list(best["extents"]) != list(extents):
        _say_nearest(name)
    return best


@functools.cache
def _say_nearest(name: str) -> None:
    _tell(
        f"numba_cute.kernels: {name}: of some shapes nothing was measured, and they are cut as the nearest ones that "
        "were: `tune=True` measures them"
    )
