# SPDX-License-Identifier: Apache-2.0
"""The public API, line by line: each public name with its kind and signature.

A file of this folder has the names of a module, and bases.txt the classes that public ones inherit from and that are
not public. `python -m tests.api` prints what differs, and `python -m tests.api --record` writes the files, which
tests/test_public.py compares.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

# The modules whose `__all__` is public. Everything else of the package may change in any version.
PUBLIC = [
    "numba_cute",
    "numba_cute.arch",
    "numba_cute.experimental",
    "numba_cute.experimental.iket",
    "numba_cute.kernels",
    "numba_cute.math",
    "numba_cute.nvgpu",
    "numba_cute.nvgpu.cpasync",
    "numba_cute.nvgpu.tcgen05",
    "numba_cute.nvgpu.warp",
    "numba_cute.nvgpu.warpgroup",
    "numba_cute.pipeline",
    "numba_cute.runtime",
    "numba_cute.sim",
    "numba_cute.tilelang",
    "numba_cute.testing",
    "numba_cute.tilelang.cpasync",
    "numba_cute.utils",
    "numba_cute.utils.distributed",
    "numba_cute.utils.sm80",
    "numba_cute.utils.blackwell_helpers",
    "numba_cute.utils.gemm",
    "numba_cute.utils.gemm.sm100",
    "numba_cute.utils.sm100",
    "numba_cute.utils.sm90",
]
FOLDER = Path(__file__).parent


def names() -> Iterator[tuple[str, str, Any]]:
    """(module, name, value) of every public name."""
    for path in PUBLIC:
        module = importlib.import_module(path)
        for name in module.__all__:
            yield path, name, getattr(module, name)


@functools.cache
def public_classes() -> frozenset[type]:
    return frozenset(value for _, _, value in names() if inspect.isclass(value))


def signature(function: Any) -> str:
    """The parameters, defaults and types as they are written."""
    try:
        return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    except ValueError:
        return "(…)"


def members(cls: type) -> Iterator[str]:
    """A class's public members, those of bases included that are not public themselves."""
    held: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("numba_cute") and (base is cls or base not in public_classes()):
            held |= vars(base)
    return (member(cls, name, value) for name, value in sorted(held.items()) if not name.startswith("_"))


def member(cls: type, name: str, value: Any) -> str:
    if isinstance(value, (property, functools.cached_property)):
        return f"{name}: property"
    if isinstance(value, (staticmethod, classmethod)):
        return f"{name}: {type(value).__name__} {signature(value.__func__)}"
    if inspect.isroutine(value):
        return f"{name}: method {signature(value)}"
    return f"{name}: member" if isinstance(value, cls) and issubclass(cls, enum.Enum) else f"{name}: attribute"


def described(value: Any) -> list[str]:
    """What a public name is: its kind and signature, then the members of a class."""
    if isinstance(value, ModuleType):
        return ["module"]
    if inspect.isclass(value):
        base = "".join(f" of {b.__name__}" for b in value.__bases__ if b is not object)
        made = "" if issubclass(value, (enum.Enum, BaseException)) else " " + signature(value)
        return [f"class{base}{made}", *members(value)]
    if callable(value) and hasattr(value, "__name__") and not hasattr(type(value), "__cute_element__"):
        return [f"function {signature(value)}"]
    return [f"{type(value).__name__} value"]


def recorded() -> dict[str, list[str]]:
    """The lines of each file of this folder: one for each name of a module, and for each member of a class that it does
    not inherit so. Bases that are not public have a file of their own, each once."""
    first: dict[int, str] = {}
    out: dict[str, list[str]] = {}
    bases: dict[type, None] = {}
    for module, name, value in names():
        lines = out.setdefault(file_of(module), [])
        path = f"{module}.{name}"
        same = first.setdefault(id(value), path)
        if same != path and not isinstance(value, (int, str)):
            lines.append(f"{name} is {same}")
        elif inspect.isclass(value):
            lines += class_lines(name, value)
            bases |= dict.fromkeys(base for base in library_bases(value) if base not in public_classes())
        else:
            kind, _, rest = described(value)[0].partition(" ")
            lines.append(f"{name}{rest}" if kind == "function" else f"{name}: {kind} {rest}".rstrip())
    out["bases"] = [line for base in bases for line in class_lines(f"{base.__module__}.{base.__qualname__}", base)]
    return {file: sorted(lines, key=lambda line: re.split(r"[:( ]", line)[0]) for file, lines in out.items()}


def file_of(module: str) -> str:
    return module.removeprefix("numba_cute.") if "." in module else "cute"


def library_bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__[1:] if base.__module__.startswith("numba_cute")]


def class_lines(name: str, cls: type) -> list[str]:
    """A class with its bases and constructor, or an enumeration's members, then what it does not inherit."""
    first = described(cls)[0]
    if issubclass(cls, enum.Enum):
        first += f": {', '.join(cls.__members__)}"
    inherited: dict[str, str] = {}
    for base in reversed(library_bases(cls)):
        inherited |= {n: member(base, n, value) for n, value in vars(base).items()}
    said = {*inspect.signature(cls).parameters} if "(" in first else {*getattr(cls, "__members__", ())}
    out = [f"{name}: {first}"]
    for n, value in sorted(vars(cls).items()):
        line = member(cls, n, value)
        is_said = n in said and line.endswith((": member", ": attribute"))
        if not n.startswith("_") and not is_said and line != inherited.get(n):
            out.append(f"{name}.{line.replace(': method (', '(')}")
    return out


def differences() -> list[str]:
    """What differs from the files: lines that are gone (-) and new (+), file by file."""
    now = recorded()
    was = {file.stem: file.read_text().splitlines() for file in FOLDER.glob("*.txt")}
    out = []
    for file in sorted({*now, *was}):
        before, after = was.get(file, []), now.get(file, [])
        out += [f"  - {file}: {line}" for line in before if line not in set(after)]
        out += [f"  + {file}: {line}" for line in after if line not in set(before)]
        if before != after and set(before) == set(after):
            out.append(f"  {file}.txt is in another order")
    return out


def record() -> None:
    for file in FOLDER.glob("*.txt"):
        file.unlink()
    for name, lines in recorded().items():
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")
