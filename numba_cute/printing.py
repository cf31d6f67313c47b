# SPDX-License-Identifier: Apache-2.0
"""Printing: `printf` from kernels, and `print_tensor` from kernels and the host."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import layout, seam
from .dtypes import DType
from .layout.int_tuple import text
from .pointer import Pointer
from .runtime import contents
from .seam import CuteError, traced
from .tensor import Tensor, element
from .vector import TensorSSA

_C_FORMAT = re.compile(r"%%|%[-+ #0]*\d*(?:\.\d+)?(?:hh|ll|[hlqjzt])?[a-zA-Z]")
_SPEC = re.compile(r"([-+ #0]*\d*(?:\.\d+)?)([duxXoeEfFgGi]?)")
_BRACES = re.compile(r"\{\{|\}\}|\{(?::[^{}]*)?\}")


def _flat(x: Any) -> list[Any]:
    """What one argument is printed as: a static thing as text, the rest as numbers."""
    if isinstance(x, tuple):
        out: list[Any] = ["("]
        for i, v in enumerate(x):
            out += [","] * (i > 0) + _flat(v)
        return [*out, ")"]
    if isinstance(x, TensorSSA):
        return _flat(tuple(x[i] for i in range(int(layout.size(x.shape)))))
    if isinstance(x, Tensor):
        return [repr(x)]
    if isinstance(x, Pointer):
        return [repr(x)]
    number = isinstance(x, (int, float, np.number, seam.Leaf)) and not isinstance(x, bool)
    return [x] if number else [str(x)]


def _specifier(dtype: DType, spec: str = "") -> str:
    """C's conversion of a number, by a format like ".3f" or "08x" if one is given."""
    found = _SPEC.fullmatch(spec)
    if found is None or found[2] and (found[2] in "eEfFgG") != dtype.is_float:
        raise CuteError(f"printf: {{:{spec}}} is no format of a {dtype}; give a width and one of d, u, x, e, f, g")
    how = found[2] or ("f" if dtype.is_float else "u" if dtype.kind == "uint" else "d")
    return f"%{found[1]}{'ll' if dtype.width == 64 and not dtype.is_float else ''}{how}"


def _braced(fmt: str, args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """A format with `{}` as one of C's, by the arguments' types."""
    out, values, rest, last = "", [], list(args), 0
    for match in _BRACES.finditer(fmt):
        out += fmt[last : match.start()].replace("%", "%%")
        last = match.end()
        if match.group() in ("{{", "}}"):
            out += match.group()[0]
            continue
        if not rest:
            raise CuteError(f"printf: {fmt!r} has more {{}} than the {len(args)} values given")
        for part in _flat(rest.pop(0)):
            if isinstance(part, str):
                out += part.replace("%", "%%")
            else:
                out += _specifier(seam.current().type_of(part), match.group()[2:-1])
                values.append(part)
    if rest:
        raise CuteError(f"printf: {fmt!r} has no {{}} for the last {len(rest)} of the {len(args)} values given")
    return out + fmt[last:].replace("%", "%%"), values


@traced
def printf(*args: Any) -> None:
    """Print from a kernel, a line for each thread that calls it. Any thread.

    args: a format and its values. The format has C's specifiers ("%d %f"), or "{}" for values of any type: numbers,
    tuples, register vectors; "{:.3f}" and "{:08x}" say how. Without a format each value is printed. A newline is added
    unless it ends with one.
    """
    if not args or not isinstance(args[0], str):
        args = (" ".join(["{}"] * len(args)), *args)
    fmt, values = args[0], args[1:]
    specifiers = [s for s in _C_FORMAT.findall(fmt) if s != "%%"]
    if specifiers:
        if len(specifiers) != len(values):
            raise CuteError(f"printf: {fmt!r} takes {len(specifiers)} values, and {len(values)} are given")
        text, flat = fmt, list(values)
    else:
        text, flat = _braced(fmt, values)
    seam.current().printf(text if text.endswith("\n") else text + "\n", flat)


@traced
def pretty_str(arg: Any) -> str:
    """What `arg` is (a layout, tensor, atom, tuple, ...), in CuTe's notation."""
    return text(arg) if isinstance(arg, tuple) else str(arg)


@traced
def print_tensor(tensor: Tensor, *, verbose: bool = False) -> None:
    """Print a tensor of static shape: its type and layout, then its elements, a line for each row of mode 0 (mode 1
    along the line; further modes one block after the other). In a kernel by each thread that calls it; on the host of a
    tensor `from_dlpack`, copied from the GPU if it is there. verbose: the coordinate of each element too."""
    if not isinstance(tensor, Tensor):
        raise CuteError(f"print_tensor: {tensor!r} is not a tensor")
    if seam.current_or(None) is None:
        print(_on_host(tensor, verbose))
        return
    if not seam.is_static(tensor.shape):
        raise CuteError(f"print_tensor: the shape {tensor.shape} must be static; slice a static tile first")
    b = seam.current()
    b.printf(repr(tensor).replace("%", "%%") + "\n", ())
    for coords in _rows(tensor):
        text, values = "", []
        for c in coords:
            x = element(tensor, c)
            for part in _flat(x.load() if isinstance(x, Pointer) else x):
                text += "" if isinstance(part, str) else " "
                text += part if isinstance(part, str) else _specifier(b.type_of(part))
                values += [] if isinstance(part, str) else [part]
            text += f" @{c}" if verbose else ""
        b.printf(text + "\n", values)


def _rows(tensor: Tensor) -> list[list[Any]]:
    """The coordinates of each printed line."""
    sizes = [int(layout.size(tensor.layout, (i,))) for i in range(layout.rank(tensor.layout))]
    if len(sizes) == 1:
        return [[(j,) for j in range(sizes[0])]]
    lines = []
    for rest in np.ndindex(*reversed(sizes[2:])):
        lines += [[(i, j, *reversed(rest)) for j in range(sizes[1])] for i in range(sizes[0])]
    return lines


def _on_host(tensor: Tensor, verbose: bool) -> str:
    lines = [repr(tensor)]
    if isinstance(tensor.iterator, Pointer):
        start, raw = contents(tensor)
    for coords in _rows(tensor):
        parts = []
        for c in coords:
            p = element(tensor, c)
            value = _number_at(p, start, raw) if isinstance(p, Pointer) else text(p)
            parts.append(f"{value}" + (f" @{c}" if verbose else ""))
        lines.append(" ".join(parts))
    return "\n".join(lines)


def _number_at(p: Pointer, start: int, raw: Any) -> Any:
    """The element that `p` points at, in the bytes from address `start` on."""
    at, width = int(p.address) - start, p.dtype.width
    if width >= 8:
        return raw[at : at + p.dtype.bytes].view(p.dtype.numpy)[0]
    first = 8 * at + int(p.offset) * width
    bits = int.from_bytes(raw[first // 8 : first // 8 + 2].tobytes(), "little") >> first % 8
    return np.array([bits & ((1 << width) - 1)], np.uint8).view(p.dtype.numpy)[0]
