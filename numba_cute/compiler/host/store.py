# SPDX-License-Identifier: Apache-2.0
"""A folder of compiled kernels: a file each, named by a digest of all that the kernel depends on.

A file is written whole or not at all, and holds no code that reading it runs: facts as JSON, and blobs. It is read only
if its checksum is right, and if this user or root wrote it where nobody else may write (`files`). Any number of
processes may share the folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ... import config
from ...seam.ground.records import dataclass
from . import files, locks

MOST_BYTES = 1 << 30
"""The most bytes that the folder may hold; beyond that the least recently used files are removed."""
_SUFFIX, _LOCK = ".kernel", ".lock"
_KEY = re.compile(r"[0-9a-f]{8,128}")


@dataclass(frozen=True)
class Entry:
    """A kernel as it is kept. facts: what JSON holds. blobs: bytes by name."""

    facts: dict[str, Any]
    blobs: dict[str, bytes]


def folder() -> Path | None:
    """Return where the kernels are kept: NUMBA_CUTE_CACHE_DIR, or the user's folder for such; None if there is none."""
    named = config.current().cache_dir
    return Path(named) if named else files.user_folder("numba_cute")


def load(key: str) -> Entry | None:
    """Read the entry of a key; None where there is none that may be used. One that is broken goes."""
    path = _path(key)
    data = None if path is None else files.read(path, MOST_BYTES)
    if path is None or data is None:
        return None
    entry = _unpacked(key, data)
    if entry is None:
        files.remove(path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the last use, by which `prune` goes
    return entry


def has(key: str) -> bool:
    """Say whether there is a file of a key that may be used."""
    path = _path(key)
    return path is not None and files.regular(path) is not None


def drop(key: str) -> None:
    """Remove the entry of a key: what it holds is not what it should."""
    path = _path(key)
    if path is not None:
        files.remove(path)


def save(key: str, entry: Entry) -> None:
    """Write an entry. What cannot be written (no room, no right) is not kept: that is no error."""
    _write(key, _packed(key, entry))


def _write(key: str, data: bytes) -> bool:
    path = _path(key, make=True)
    with contextlib.suppress(OSError):
        if path is not None:
            files.write(path, data)
            prune()
            return True
    return False


def prune(most: int = MOST_BYTES) -> None:
    """Remove what killed writers left, and the files that were not used for the longest time, until at most `most`
    bytes are left."""
    root = _root()
    if root is not None:
        files.remove_abandoned(root, "??/*")
    found = [(stat.st_mtime, stat.st_size, path) for path, stat in _files()]
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most:
            return
        files.remove(path)
        total -= size


def clear() -> int:
    """Remove all entries, and what else writers left; gives how many entries there were."""
    root = _root()
    if root is not None:
        files.remove_abandoned(root, "??/*", 0.0)
    return sum(files.remove(path) for path, _ in _files())


def entries() -> Iterator[tuple[str, float, int, Entry]]:
    """Give each sound entry: its key, the time of its last use, its bytes and what it holds."""
    for path, stat in sorted(_files(), key=lambda found: found[1].st_mtime):
        data = files.read(path, MOST_BYTES)
        entry = None if data is None else _unpacked(path.stem, data)
        if entry is not None:
            yield path.stem, stat.st_mtime, stat.st_size, entry


def alone(key: str, what: str) -> AbstractContextManager[None]:
    """Keep other processes that ask for this key out for a while: of many that need one kernel one compiles it. what:
    the kernel's name."""
    path = _path(key, make=True)
    if path is None or not files.made_folder(path.parent):
        return contextlib.nullcontext()
    return locks.alone(path.with_suffix(_LOCK), what, config.current().cache_wait)


def packed() -> Iterator[tuple[str, bytes]]:
    """Give each sound entry as its file has it: its key, and its bytes."""
    for key, _, _, entry in entries():
        yield key, _packed(key, entry)


def take(key: str, data: bytes) -> bool:
    """Keep an entry that another folder had, as `packed` gave it; says whether it was kept: not one that is there, nor
    one that is broken."""
    if _KEY.fullmatch(key) is None or has(key) or _unpacked(key, data) is None:
        return False
    return _write(key, data)


def _root(make: bool = False) -> Path | None:
    """The folder, if it may be used. make: it, if it is not there."""
    root = folder()
    if root is None or not (files.made_folder(root) if make else files.trusted_folder(root)):
        if root is not None and os.path.isdir(root):
            _warn_once(str(root))
        return None
    return root


@functools.cache
def _warn_once(root: str) -> None:
    warnings.warn(
        f"{root} may be written by others than its user, so no kernel is kept there: chmod go-w it, or name another "
        "folder (NUMBA_CUTE_CACHE_DIR)",
        RuntimeWarning,
        stacklevel=2,
    )


def _path(key: str, make: bool = False) -> Path | None:
    root = _root(make)
    return None if root is None else root / key[:2] / (key + _SUFFIX)


def _files() -> Iterator[tuple[Path, os.stat_result]]:
    root = _root()
    for path in () if root is None else root.glob(f"??/*{_SUFFIX}"):
        stat = files.regular(path)
        if stat is not None and files.trusted_folder(path.parent):
            yield path, stat


def _packed(key: str, entry: Entry) -> bytes:
    facts = {**entry.facts, "key": key, "blobs": {name: len(blob) for name, blob in entry.blobs.items()}}
    body = json.dumps(facts).encode() + b"\n" + b"".join(entry.blobs.values())
    return hashlib.sha256(body).digest() + body


def _unpacked(key: str, data: bytes) -> Entry | None:
    """The entry that a file of this key holds; None if it is not one."""
    digest, body = data[:32], data[32:]
    if hashlib.sha256(body).digest() != digest:
        return None
    head, _, rest = body.partition(b"\n")
    try:
        facts = json.loads(head)
        sizes = {str(name): int(size) for name, size in facts.pop("blobs").items()}
        sound = facts.pop("key") == key and sum(sizes.values()) == len(rest) and min(sizes.values(), default=0) >= 0
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    blobs = {}
    for name, size in sizes.items():
        blobs[name], rest = rest[:size], rest[size:]
    return Entry(facts, blobs) if sound else None
