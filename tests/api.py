# SPDX-License-Identifier: Apache-2.0
"""The public API, line by line: each public name with its kind and signature.

`python -m tests.api` prints it; `python -m tests.api --record` writes tests/api_snapshot.txt, which
tests/test_public.py compares.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import re
import sys
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
    "numba_cute.kernels.distributed",
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
SNAPSHOT = Path(__file__).with_name("api_snapshot.txt")


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
    held = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("numba_cute") and (base is cls or base not in public_classes()):
            held |= vars(base)
    for name, value in sorted(held.items()):
        if name.startswith("_"):
            continue
        if isinstance(value, (property, functools.cached_property)):
            yield f"{name}: property"
        elif isinstance(value, (staticmethod, classmethod)):
            yield f"{name}: {type(value).__name__} {signature(value.__func__)}"
        elif inspect.isroutine(value):
            yield f"{name}: method {signature(value)}"
        elif isinstance(value, cls) and issubclass(cls, enum.Enum):
            yield f"{name}: member"
        else:
            yield f"{name}: attribute"


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


def lines() -> list[str]:
    first: dict[int, str] = {}
    out = []
    for module, name, value in names():
        path = f"{module}.{name}"
        same = first.setdefault(id(value), path)
        if same != path and not isinstance(value, (int, str)):
            out.append(f"{path}: is {same}")
            continue
        head, *rest = described(value)
        out += [f"{path}: {head}", *(f"{path}.{member}" for member in rest)]
    return out


if __name__ == "__main__":
    text = "\n".join(lines()) + "\n"
    if "--record" in sys.argv:
        SNAPSHOT.write_text(text)
    else:
        print(text, end="")
