# SPDX-License-Identifier: Apache-2.0
"""Printing: `printf` from kernels, and `print_tensor` from kernels and the host."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import layout, seam
from ..dtypes import (
    Boolean,
    DType,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Scalar,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    from_numpy,
)  # fmt: skip
from ..layout.int_tuple import text
from ..seam import CuteError, traced
from ..seam.guards.messages import how_static
from ..seam.hooks.driver import DRIVER
from .address import Address
from .dlpack import on_host
from .pointer import AddressSpace, Pointer
from .ssa import TensorSSA
from .tensor import Tensor, element, extent, make_rmem_tensor

__all__ = ["pretty_str", "print_tensor", "printf"]

_CONVERSION = re.compile(r"%(?:(%)|([-+ #0]*)(\*|\d*)(\.(?:\*|\d*))?(hh|ll|[hlqjztL]?)([a-zA-Z]))")
_SPEC = re.compile(r"([-+ #0]*\d*(?:\.\d+)?)([duxXoeEfFgGi]?)")
_BRACES = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
_FLOATS, _SIGNED, _UNSIGNED = "eEfFgG", "di", "uoxX"
_BITS = {"hh": 8, "h": 16, "": 0}
"""By a conversion's length; all others are 64."""
_MOST = 32
"""Values that one call of vprintf takes (CUDA C++ programming guide, "Formatted output")."""

Piece = Any
"""A text, or a (conversion of C's, the value that it prints)."""


class Described:
    """Base of what prints as texts and numbers of its own."""

    def described(self) -> tuple[Any, ...]:
        """Give the texts and numbers, some of which are known at run time only."""
        raise NotImplementedError

    def __repr__(self) -> str:
        known = (x.value if isinstance(x, Scalar) else x for x in self.described())
        return "".join("?" if isinstance(x, seam.Leaf) else str(x) for x in known)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, np.number, seam.Leaf)) and not isinstance(x, bool)


def _flat(x: Any) -> list[Any]:
    """Return the texts and numbers as which one argument is printed: a static thing is text."""
    if isinstance(x, tuple):
        out: list[Any] = ["("]
        for i, v in enumerate(x):
            out += [","] * (i > 0) + _flat(v)
        return [*out, ")"]
    if isinstance(x, TensorSSA):
        return _flat(tuple(x[i] for i in range(int(layout.size(x.shape)))))
    if isinstance(x, Described):
        return list(x.described())
    if isinstance(x, (Tensor, Pointer)):
        return [repr(x)]
    if isinstance(x, layout.Layout) and not seam.is_static(x) and not layout.is_basis(x.stride):
        return [*_flat(x.shape), ":", *_flat(x.stride)]
    return [x] if _is_number(x) else [str(x)]


def _dtype(x: Any) -> DType:
    """The type of a number. One of Python's is static, but in the simulator, and as wide as it must be."""
    if isinstance(x, np.generic):
        return from_numpy(x.dtype)
    if type(x) is int:
        return Int32 if -(1 << 31) <= x < 1 << 31 else Int64 if x < 1 << 63 else Uint64
    return Float64 if type(x) is float else seam.current().type_of(x)


def _kind(x: Any) -> str:
    """Describe an argument in words."""
    if not _is_number(x):
        return "text" if isinstance(x, str) else f"a {type(x).__name__}"
    dtype = _dtype(x)
    return "a float" if dtype.is_float else "a bool" if dtype.kind == "bool" else "an integer"


def _conversion(flags: str, length: str, letter: str, x: Any) -> Piece:
    """A conversion of C's for a number that fits it, which is brought to the width that C expects."""
    _bounded(flags)
    dtype, cast = _dtype(x), seam.current().cast
    if letter in _FLOATS:
        return f"%{flags}{letter.replace('F', 'f')}", cast(x, Float64)
    bits = _BITS.get(length, 64)
    if bits in (8, 16):
        signed = letter in _SIGNED
        x = cast(x, (Int8 if signed else Uint8) if bits == 8 else Int16 if signed else Uint16)
    wide = dtype.width == 64 and not bits or bits == 64
    if letter in _UNSIGNED or letter == "c":
        return f"%{flags}{'ll' if wide else ''}{letter}", cast(x, Uint64 if wide else Uint32)
    if dtype is Uint64:
        return f"%{flags}llu", cast(x, Uint64)
    wide = wide or dtype is Uint32 and not bits  # whole, where C's int would be negative
    return f"%{flags}{'lld' if wide else 'd'}", cast(x, Int64 if wide else Int32)


def _bounded(how: str) -> None:
    """Refuse a width or precision beyond what every printf of C's can do (C17 7.21.6.1: 4095 characters)."""
    if any(len(number) > 4 or int(number) > 4095 for number in re.findall(r"\d+", how)):
        raise CuteError(f"printf: {how[:40]}: a width or precision is at most 4095")


def _shown(x: Any, spec: str = "") -> Piece:
    """A number as `{}` prints it, by a format like ".3f" or "08x" if one is given."""
    dtype, found = _dtype(x), _SPEC.fullmatch(spec)
    if found is None or found[2] and (found[2] in _FLOATS) != dtype.is_float:
        raise CuteError(f"printf: {{:{spec}}} is not a format of {_kind(x)}; give a width and one of d, u, x, e, f, g")
    if dtype.kind == "bool" and not spec:
        return "%s", seam.current().cast(x, Boolean)
    letter = found[2] or ("f" if dtype.is_float else "u" if dtype.kind == "uint" else "d")
    return _conversion(found[1], "", letter, x)


def _braced(fmt: str, args: tuple[Any, ...]) -> list[Piece]:
    """Fill in a format with `{}`."""
    out: list[Piece] = []
    rest, last = list(args), 0
    for match in _BRACES.finditer(fmt):
        out.append(fmt[last : match.start()])
        last = match.end()
        field = match.group()
        if field in ("{{", "}}"):
            out.append(field[0])
            continue
        if field != "{}" and not field.startswith("{:"):
            raise CuteError(f"printf: {field} in {fmt!r}: values are printed in their order, by {{}} or as {{:.3f}}")
        if not rest:
            raise CuteError(f"printf: {fmt!r} has more {{}} than the {len(args)} values given")
        x = rest.pop(0)
        parts = [int(x)] if isinstance(x, bool) and field != "{}" else _flat(x)
        out += [part if isinstance(part, str) else _shown(part, field[2:-1]) for part in parts]
    if rest:
        raise CuteError(f"printf: {fmt!r} has no {{}} for the last {len(rest)} of the {len(args)} values given")
    return [*out, fmt[last:]]


def _in_c(fmt: str, args: tuple[Any, ...]) -> list[Piece]:
    """Fill in a format with C's conversions; each must fit its value."""
    texts = _CONVERSION.split(fmt)[:: 1 + _CONVERSION.groups]
    for wrong in [t[t.index("%") :] for t in texts if "%" in t] + [f.group() for f in _of_values(fmt) if not _known(f)]:
        raise CuteError(
            f"printf: {wrong.strip()!r} in {fmt!r} is not a conversion of a kernel's printf, which has diouxXc, "
            "eEfFgG, s and p; write %% for the sign, or use {}"
        )
    if len(_of_values(fmt)) != len(args):
        raise CuteError(f"printf: {fmt!r} takes {len(_of_values(fmt))} values, but got {len(args)}")
    out: list[Piece] = [texts[0]]
    rest = list(enumerate(args, 1))
    for after, found in zip(texts[1:], _CONVERSION.finditer(fmt)):
        if found[1] is not None:
            out += ["%", after]
            continue
        nth, x = rest.pop(0)
        out += [_converted(found, x, f"value {nth} of {fmt!r}"), after]
    return out


def _is_c(fmt: str) -> bool:
    """Return whether a format is one of C's: beside braces, "100% of" is not a conversion with a blank for its sign."""
    found = _of_values(fmt)
    return any(" " not in f[2] for f in found) or bool(found) and not _BRACES.search(fmt)


def _of_values(fmt: str) -> list[re.Match[str]]:
    """The conversions in a format, %% aside."""
    return [found for found in _CONVERSION.finditer(fmt) if found[1] is None]


def _known(found: re.Match[str]) -> bool:
    return found[6] in (*_FLOATS, *_SIGNED, *_UNSIGNED, "c", "s", "p")


def _converted(found: re.Match[str], x: Any, which: str) -> Piece:
    """A value as a conversion of C's prints it. which: the value, for messages."""
    _, flags, width, precision, length, letter = found.groups()
    how = flags + width + (precision or "")
    if "*" in how:
        raise CuteError(f"printf: {found.group()}: a width or precision is a number in the format, not {which}")
    if isinstance(x, bool) and letter != "s":
        x = int(x)
    kind = _kind(x)
    if letter in _FLOATS:
        if kind != "a float":
            raise CuteError(f"printf: {found.group()} takes a float, and {which} is {kind}; write {_fitting(kind)}")
    elif letter == "s":
        parts = _flat(x)
        if not all(isinstance(part, str) for part in parts):
            raise CuteError(
                f"printf: {found.group()} takes values that are known at compile time, and {which} is {kind}; write "
                f"{_fitting(kind)}, or a format with {{}}"
            )
        _bounded(how)
        return f"%{how}s" % "".join(parts)
    elif letter == "p":
        of_memory = isinstance(x, Pointer) and x.space is not AddressSpace.rmem
        if not of_memory and kind != "an integer":
            raise CuteError(f"printf: {found.group()} takes a pointer or an address, and {which} is {kind}")
        return "0x%llx", seam.current().cast(x.address if of_memory else x, Uint64)
    elif letter == "c" and isinstance(x, str) and len(x) == 1:
        return x
    elif kind not in ("an integer", "a bool"):
        raise CuteError(f"printf: {found.group()} takes an integer, and {which} is {kind}; write {_fitting(kind)}")
    return _conversion(how, length, letter, x)


def _fitting(kind: str) -> str:
    """The conversions of C's for what a value is."""
    return {"a float": "%f, %e or %g", "an integer": "%d, %u or %x", "a bool": "%d", "text": "%s"}.get(kind, "{}")


def _print(pieces: list[Piece]) -> None:
    """Print texts and values, as many with each call as it takes."""
    fmt = ""
    values: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str):
            fmt += piece.replace("%", "%%")
            continue
        if len(values) == _MOST:
            seam.current().printf(fmt, values)
            fmt, values = "", []
        fmt += piece[0]
        values.append(piece[1])
    seam.current().printf(fmt, values)


@traced
def printf(*args: Any, end: str | None = None) -> None:
    """Print from a kernel, a line for each thread that calls it. Any thread.

    args: a format and its values. The format has "{}" for values of any type: numbers, tuples, register vectors, and
    static objects ("{:.3f}" and "{:08x}" state a format), or C's conversions: d i u o x X c of integers, e f g of
    floats, s of what is static, p of pointers. Each must fit its value, which is printed whole whatever its width: h
    and hh cut it. Without a format each value is printed. A newline is added unless it ends with one. A line of more
    than 32 values is printed in several pieces, between which other threads may print. end: static text to print after
    it in place of that newline, "" for nothing.

    >>> cute.simulate(lambda: cute.printf("lane {}", cute.arch.lane_idx()))[1, 2]()
    lane 0
    lane 1
    """
    if not args or not isinstance(args[0], str):
        args = (" ".join(["{}"] * len(args)), *args)
    fmt, values = args[0], args[1:]
    if end is not None and not isinstance(end, str):
        raise CuteError(f"printf: end {end!r} is not a text")
    if end is None:
        fmt, end = (fmt if fmt.endswith("\n") else fmt + "\n"), ""
    _print([*(_in_c if _is_c(fmt) else _braced)(fmt, values), end])


@traced
def pretty_str(arg: Any) -> str:
    """Write `arg` (a layout, tensor, atom, tuple, ...) in CuTe's notation.

    >>> cute.pretty_str(cute.make_layout((4, 8)))
    '(4,8):(1,4)'
    """
    return text(arg) if isinstance(arg, tuple) else str(arg)


@traced
def print_tensor(tensor: Tensor | TensorSSA, *, verbose: bool = False) -> None:
    """Print a tensor of static shape: its type and layout, then its elements, a line for each row of mode 0 (mode 1
    along the line; further modes one block after the other).

    tensor: in a kernel, any, or a register vector; each thread that calls this prints. On the host, one made by
    `from_dlpack`, which is copied from the GPU if it is there; in a function of `cute.jit` any that a kernel prints.
    verbose: print the coordinate of each element too.

    >>> cute.print_tensor(cute.runtime.from_dlpack(np.arange(6, dtype=np.int32).reshape(2, 3)))
    Tensor(ptr<Int32, gmem, align 4>, (2,3):(3,1))
    0 1 2
    3 4 5
    """
    if isinstance(tensor, TensorSSA):
        held = make_rmem_tensor(tensor.shape, tensor.dtype)
        held.store(tensor)
        tensor = held
    if not isinstance(tensor, Tensor):
        raise CuteError(f"print_tensor: {tensor!r} is not a tensor")
    if seam.current_or(None) is None:
        if not seam.computes_on_host() or seam.current().tells():
            print(_on_host(tensor, verbose))
        return
    if not seam.is_static(tensor.shape):
        raise CuteError(
            f"print_tensor: the shape {tensor.shape} must be static; slice a static tile first"
            f"{how_static(tensor.shape)}"
        )
    _print([repr(tensor) + "\n"])
    for coords in _rows(tensor):
        pieces: list[Piece] = []
        for c in coords:
            x = element(tensor, c)
            for part in _flat(x.load() if isinstance(x, Pointer) else x):
                gap = [] if isinstance(x, Described) else [" "]
                pieces += [part] if isinstance(part, str) else [*gap, _shown(part)]
            pieces += [f" @{c}"] if verbose else []
        _print([*pieces, "\n"])


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
    number: Any = text
    if isinstance(tensor.iterator, Pointer):
        number = _loaded if seam.computes_on_host() and not _on_gpu(tensor.iterator) else _in_memory(tensor)
    for coords in _rows(tensor):
        parts = []
        for c in coords:
            parts.append(f"{number(element(tensor, c))}" + (f" @{c}" if verbose else ""))
        lines.append(" ".join(parts))
    return "\n".join(lines)


def _on_gpu(p: Pointer) -> bool:
    """Return whether a pointer's array is known to lie on a GPU."""
    return isinstance(p.address, Address) and p.address.owner is not None and not on_host(p.address.owner)


def _loaded(p: Pointer) -> Any:
    """The element that a pointer of a host function points at, as NumPy prints it."""
    return np.array(p.load().value).astype(p.dtype.numpy)[()]


def _in_memory(tensor: Tensor) -> Callable[[Pointer], Any]:
    """Return what gives the element of a tensor's memory that a pointer points at."""
    start, raw = _contents(tensor)
    return lambda p: _number_at(p, start, raw)


def _contents(tensor: Tensor) -> tuple[int, Any]:
    """Return the first address of a tensor's memory and a copy of its bytes, brought from a GPU if they are there."""
    address, nbytes = extent(tensor)
    at = getattr(tensor.iterator, "address", None)
    if not isinstance(tensor.iterator, Pointer) or not nbytes and isinstance(at, Address):
        return 0, np.zeros(0, np.uint8)
    if not isinstance(at, Address) or at.owner is None:
        raise CuteError(f"{tensor!r} was made from an address alone: make it with from_dlpack to read it on the host")
    if on_host(at.owner):
        return address, np.frombuffer(ctypes.string_at(address, nbytes), np.uint8)
    return address, DRIVER.read(address, nbytes)


def _number_at(p: Pointer, start: int, raw: Any) -> Any:
    """The element that `p` points at, in the bytes from address `start` on."""
    at, width = int(p.address) - start, p.dtype.width
    if width >= 8:
        return raw[at : at + p.dtype.bytes].view(p.dtype.numpy)[0]
    first = 8 * at + int(seam.known(p.offset)) * width
    bits = int.from_bytes(raw[first // 8 : first // 8 + 2].tobytes(), "little") >> first % 8
    return np.array([bits & ((1 << width) - 1)], np.uint8).view(p.dtype.numpy)[0]
