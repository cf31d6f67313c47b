# SPDX-License-Identifier: Apache-2.0
"""The machine code of launches, kept beside the kernels: compiling it takes a process as long as a small kernel."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable

from ... import config
from ..ground.llvmlite import VERSION, binding
from . import files, store
from .installed import compiler_version

_MOST_BYTES = 1 << 22
"""The most bytes of the code of a module's functions."""


def kept(module: str, make: Callable[[], bytes]) -> bytes:
    """Give the code of a module's functions, from another time where it can be. module: its name. make: gives the code.

    One version is kept for each Python installation: what it depends on stands before it, with its checksum."""
    folder = store.folder() if config.current().cache else None
    if folder is None:
        return make()
    versions = sys.version, compiler_version(), VERSION, binding.get_process_triple()
    key = hashlib.sha256(repr((module, versions)).encode()).digest()
    path = folder / "launches" / hashlib.sha256(f"{sys.prefix} {module}".encode()).hexdigest()[:32]
    held = files.read(path, _MOST_BYTES) or b""
    right, code = held[:64], held[64:]
    if right == key + hashlib.sha256(code).digest():
        return code
    code = make()
    if files.made_folder(folder):
        with contextlib.suppress(OSError):
            files.write(path, key + hashlib.sha256(code).digest() + code)
    return code
