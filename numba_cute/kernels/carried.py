# SPDX-License-Identifier: Apache-2.0
"""Values of Python as arguments of operators of torch's, which know numbers, strings and tensors alone: by name.

A name says what the value is made of, functions by their code, so that a graph that torch.compile keeps on the disk
means the same in another process, or finds nothing. Of two values that would have one name the second has one that is
this process's alone.
"""

from __future__ import annotations

import hashlib
import struct
import types
import uuid
from typing import Any

import numpy as np

from numba_cute.seam import CuteError

__all__ = ["Known", "carried", "exact", "keep", "known", "name_of"]

_values: dict[str, Any] = {}
_names: dict[Any, str] = {}
MOST = 4096  # things of a kind that are remembered


class Known:
    """A value that was told from all others once: `==` of two is `is`."""

    __slots__ = ()


_known: dict[Any, Known] = {}
_AS_THEY_ARE = frozenset({str, types.NoneType, types.FunctionType, type, Known})
"""Kinds of most of what is remembered by, whose values `==` tells apart: asked for first, for each call asks."""


def exact(value: Any) -> Any:
    """Give what tells a value, which hashes, from all others: of numbers the class and the bits, for Python takes 0.0
    for -0.0, 1 for 1.0 and True, and a NaN for no other. All that is remembered by constants is found by this."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is tuple or isinstance(value, tuple):
        return kind, *[x if type(x) in _AS_THEY_ARE else exact(x) for x in value]
    if isinstance(value, (bool, int)):
        return kind, value
    if isinstance(value, (float, complex)):
        return kind, struct.pack("<2d", value.real, value.imag)
    return (kind, value.tobytes()) if isinstance(value, np.generic) else value


def keep(held: dict[Any, Any], key: Any, value: Any) -> Any:
    """Remember a value, and give it; of more than `MOST` the oldest is dropped."""
    if len(held) >= MOST:
        held.pop(next(iter(held)), None)
    held[key] = value
    return value


def known(value: Any) -> Known:
    """Give the object that stands for a value, which hashes, and all that `exact` does not tell from it."""
    key = exact(value)
    found: Known = _known.get(key) or keep(_known, key, Known())
    return found


def name_of(value: Any) -> str:
    """Name a value, which hashes, so that `carried` gives it back."""
    if value is None:
        return ""
    key = exact(value)
    found = _names.get(key)
    if found is None:
        found = f"{_word(value)}#{hashlib.sha256(_made_of(value).encode()).hexdigest()[:16]}"
        if found in _values:
            found += f"-{uuid.uuid4().hex}"
        _names[key], _values[found] = found, value
    return found


name_of._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch.compile calls it while it traces


def carried(name: str) -> Any:
    """Give the value of a name. CuteError for one that this process has not named."""
    if name and name not in _values:
        raise CuteError(f"kernels: {name!r} names nothing in this process: trace the program again")
    return _values[name] if name else None


def _word(value: Any) -> str:
    """Give a name that people know the value by."""
    return getattr(value, "__qualname__", type(value).__qualname__).replace("<", "").replace(">", "")


def _made_of(value: Any) -> str:
    """Write what a value is made of, the same in each process; a value that cannot be written has a text of its own."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return f"{type(value).__name__}({value!r})"
    if isinstance(value, types.CodeType):
        parts = value.co_code, *value.co_names, *value.co_varnames, *value.co_consts
        return f"code({','.join(map(_made_of, parts))})"
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = value.__module__, value.__qualname__, value.__code__, value.__defaults__, *cells
        return f"function({','.join(map(_made_of, parts))})"
    if isinstance(value, (tuple, frozenset)):
        parts = tuple(value) if isinstance(value, tuple) else tuple(sorted(value, key=repr))
        return f"{type(value).__module__}.{type(value).__qualname__}({','.join(map(_made_of, parts))})"
    if hasattr(type(value), "__dataclass_fields__"):
        parts = tuple(getattr(value, field) for field in type(value).__dataclass_fields__)
        return f"{type(value).__module__}.{type(value).__qualname__}({','.join(map(_made_of, parts))})"
    if type(value).__module__ == "torch":
        return str(value)
    return uuid.uuid4().hex
