# SPDX-License-Identifier: Apache-2.0
"""Digest everything that compiling a kernel may read, for the disk cache: the same in every process."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from ..bridge.reach import Walk
from ..bridge.walking import ATOMS, Read, Unfollowed

__all__ = ["Unfollowed", "fingerprint"]


def fingerprint(*roots: tuple[Any, str]) -> str:
    """Return the digest of objects, given with their names, and of all that they reach. Unfollowed: there is none."""
    walk = _Digest(prints=True)
    walk.go(roots)
    return walk.digest()


class _Digest(Walk):
    most = 100_000
    largest = 1 << 26

    def __init__(self, prints: bool) -> None:
        super().__init__(prints)
        self._told: list[bytes] = []
        self._classes: dict[tuple[str, type], bytes] = {}

    def digest(self) -> str:
        return hashlib.blake2b(b"".join(self._told), digest_size=20).hexdigest()

    def read(self, get: Read) -> Any:
        return get()

    def value(self, get: Read) -> None:
        for part in get():
            self.tell(part)

    def tell(self, *constants: Any) -> None:
        told = _told(constants[0]) if len(constants) == 1 else b"\x1f".join(map(_told, constants))
        self._told.append(told + b"\x1e")

    def refer(self, obj: Any, name: str) -> None:
        if type(obj) in ATOMS:  # most of all that is told
            self._told.append(_told(obj) + b"\x1e")
        else:
            super().refer(obj, name)

    def tell_class(self, what: str, cls: type) -> None:
        told = self._classes.get((what, cls))
        if told is None:
            super().tell_class(what, cls)
            self._classes[what, cls] = self._told[-1]
        else:
            self._told.append(told)

    def unordered(self, items: Iterable[Any]) -> None:
        self.tell(*sorted(fingerprint((x, "an item of a set")) for x in items))


def _told(x: Any) -> bytes:
    """Return the bytes that tell a constant from all others."""
    tell = _TELLS.get(type(x))
    return f"{type(x).__name__} {x!r}".encode(errors="surrogatepass") if tell is None else tell(x)


def _text(x: str) -> bytes:
    return b"str " + repr(x).encode(errors="surrogatepass")


def _number(x: complex) -> bytes:
    """Return the bits, of a NaN too."""
    return type(x).__name__.encode() + struct.pack("<2d", x.real, x.imag)


def _items(x: tuple[Any, ...]) -> bytes:
    return b"tuple %d " % len(x) + b"\x1d".join(map(_told, x))


def _set(x: frozenset[Any]) -> bytes:
    return b"set " + b"\x1d".join(sorted(map(_told, x)))


def _code(code: CodeType) -> bytes:
    """Return what code does, wherever it stands. The code within it is told after it."""
    numbers_and_names = (
        code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_names,
        code.co_varnames, code.co_freevars, code.co_cellvars,
    )  # fmt: skip
    said = (
        code.co_code,
        getattr(code, "co_exceptiontable", b""),
        *(x for x in code.co_consts if type(x) is not CodeType),
    )
    return b"code " + repr(numbers_and_names).encode(errors="surrogatepass") + b"\x1d" + _items(said)


_TELLS: dict[type, Callable[[Any], bytes]] = {
    str: _text, bytes: lambda x: b"bytes %d " % len(x) + x, CodeType: _code, tuple: _items, frozenset: _set,
    int: lambda x: b"int %x" % x, float: _number, complex: _number,
}  # fmt: skip
"""By the type of a constant what tells it; `repr` tells the others."""
