# SPDX-License-Identifier: Apache-2.0
"""Name what compiles by what its files hold: the same wherever and whenever it was installed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from . import files, store

_PACKAGE = str(Path(__file__).resolve().parents[2])
_MOST_BYTES = 200
COMPILES_NOTHING = ("cli", "debugging", "ir", "kernels", "pictures", "sim", "testing")
"""Rooms of this library that no compilation runs. Of ready-made kernels a key has what is reached, as of a user's."""


@functools.cache
def version() -> str:
    """Name this library by its files' text, for versions under work too."""
    return content(_PACKAGE, ".py")


@functools.cache
def compiler_version() -> str:
    """Name what of this library compiles by its files' text: each process asks for it, and looks at each file."""
    return content(_PACKAGE, ".py", COMPILES_NOTHING)


def content(root: str, suffix: str = "", without: tuple[str, ...] = ()) -> str:
    """Name a file, or those of a folder whose names end with `suffix`, by what they hold.

    That is remembered beside the cache for as long as no path, size or time of a file changes: reading takes longer.
    without: folders in it that are left out. OSError: one cannot be read.
    """
    found = sorted(_files(root, suffix, without)) if os.path.isdir(root) else [(root, os.stat(root))]
    facts = [(path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for path, stat in found]
    stamp = hashlib.sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()
    folder, which = store.folder(), repr((root, suffix, without)).encode(errors="surrogateescape")
    memory = None if folder is None else folder / "installed" / hashlib.sha256(which).hexdigest()[:32]
    known = None if memory is None else files.read(memory, _MOST_BYTES)
    was, _, name = (known or b"").decode(errors="replace").partition(" ")
    if was == stamp:
        return name
    name = _digest(root, [path for path, _ in found])
    if memory is not None and files.made_folder(memory.parent.parent):
        with contextlib.suppress(OSError):
            files.write(memory, f"{stamp} {name}".encode())
    return name


def _files(folder: str, suffix: str, without: tuple[str, ...] = ()) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name.endswith(suffix) and not entry.is_dir():
                yield entry.path, entry.stat()
            elif entry.name not in (*without, "__pycache__") and entry.is_dir():
                yield from _files(entry.path, suffix)


def _digest(root: str, paths: list[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        held = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        digest.update(f"{os.path.relpath(path, root)} {held}\n".encode())
    return digest.hexdigest()
