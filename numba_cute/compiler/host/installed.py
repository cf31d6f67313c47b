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


@functools.cache
def version() -> str:
    """Name this library by its files' text, for versions under work too."""
    return content(_PACKAGE, ".py")


def content(root: str, suffix: str = "") -> str:
    """Name a file, or those of a folder whose names end with `suffix`, by what they hold.

    That is remembered beside the cache for as long as no path, size or time of a file changes: reading takes longer.
    OSError: one cannot be read.
    """
    found = sorted(_files(root, suffix)) if os.path.isdir(root) else [(root, os.stat(root))]
    stamp = hashlib.sha256()
    for path, stat in found:
        stamp.update(f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n".encode())
    folder = store.folder()
    memory = None if folder is None else folder / "installed" / hashlib.sha256(root.encode()).hexdigest()[:32]
    known = None if memory is None else files.read(memory, _MOST_BYTES)
    was, _, name = (known or b"").decode(errors="replace").partition(" ")
    if was == stamp.hexdigest():
        return name
    name = _digest(root, [path for path, _ in found])
    if memory is not None and files.made_folder(memory.parent.parent):
        with contextlib.suppress(OSError):
            files.write(memory, f"{stamp.hexdigest()} {name}".encode())
    return name


def _files(folder: str, suffix: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir():
                yield from _files(entry.path, suffix)
            elif entry.name.endswith(suffix):
                yield entry.path, entry.stat()


def _digest(root: str, paths: list[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        held = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        digest.update(f"{os.path.relpath(path, root)} {held}\n".encode())
    return digest.hexdigest()
