# SPDX-License-Identifier: Apache-2.0
"""Digest everything that compiling a kernel may read, for the disk cache: the same in every process."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from types import CodeType
from typing import Any

from ..bridge.reach import Walk
from ..bridge.walking import Read, Unfollowed

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

    def digest(self) -> str:
        return hashlib.blake2b(b"".join(self._told), digest_size=20).hexdigest()

    def read(self, get: Read) -> Any:
        return get()

    def value(self, get: Read) -> None:
        for part in get():
            self.tell(part)

    def tell(self, *constants: Any) -> None:
        self._told.append(b"\x1f".join(map(_told, constants)) + b"\x1e")

    def unordered(self, items: Iterable[Any]) -> None:
        self.tell(*sorted(fingerprint((x, "an item of a set")) for x in items))


def _told(x: Any) -> bytes:
    """Return the bytes that tell a constant from all others."""
    if type(x) is str:  # of most
        return b"str " + repr(x).encode(errors="surrogatepass")
    if type(x) is bytes:
        return b"bytes %d " % len(x) + x
    if type(x) is CodeType:
        return _told_code(x)
    if type(x) is tuple:
        return b"tuple %d " % len(x) + b"\x1d".join(map(_told, x))
    if type(x) is frozenset:
        return b"set " + b"\x1d".join(sorted(map(_told, x)))
    if type(x) in (float, complex):  # the bits, of a NaN too
        return type(x).__name__.encode() + struct.pack("<2d", x.real, x.imag)
    text = hex(x) if type(x) is int else repr(x)
    return f"{type(x).__name__} {text}".encode(errors="surrogatepass")


def _told_code(code: CodeType) -> bytes:
    """Return what code does, wherever it stands. The code within it is told after it."""
    consts = tuple(x for x in code.co_consts if not isinstance(x, CodeType))
    parts = (
        code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_names,
        code.co_varnames, code.co_freevars, code.co_cellvars, code.co_code, getattr(code, "co_exceptiontable", b""),
        consts,
    )  # fmt: skip
    return b"\x1d".join(map(_told, parts))
