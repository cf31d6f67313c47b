# SPDX-License-Identifier: Apache-2.0
"""A folder of compiled kernels: a file each, named by a digest of all that the kernel is a matter of.

A file is written whole or not at all, is read only if its checksum is right, and holds no code that reading it runs:
facts as JSON, and blobs. Any number of processes may share the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numba.cuda.misc.appdirs import AppDirs

from ... import config

MOST_BYTES = 1 << 30
"""What the folder may hold; beyond that the files that were not used for the longest time go."""
_SUFFIX = ".kernel"
_LOCKS = 64


@dataclass(frozen=True)
class Entry:
    """A kernel as it is kept. facts: what JSON holds. blobs: bytes by name."""

    facts: dict[str, Any]
    blobs: dict[str, bytes]


def folder() -> Path:
    """Return where the kernels are kept: NUMBA_CUTE_CACHE_DIR, or the user's folder for such."""
    named = config.current().cache_dir
    return Path(named) if named else Path(AppDirs("numba_cute", appauthor=False).user_cache_dir)


def load(key: str) -> Entry | None:
    """Read the entry of a key; None where there is none, or one that is broken, which goes."""
    path = _path(key)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    entry = _unpacked(data)
    with contextlib.suppress(OSError):
        if entry is None:
            path.unlink()
        else:
            os.utime(path)  # the last use, by which `prune` goes
    return entry


def save(key: str, entry: Entry) -> None:
    """Write an entry. What cannot be written (no room, no right) is not kept: that is no error."""
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_packed(entry))
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
        prune()


def prune(most: int = MOST_BYTES) -> None:
    """Remove the files that were not used for the longest time, until at most `most` bytes are left."""
    files = [(stat.st_mtime, stat.st_size, path) for path, stat in _files()]
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


def clear() -> int:
    """Remove all entries; gives how many there were."""
    found = [path for path, _ in _files()]
    for path in found:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(found)


def entries() -> Iterator[tuple[str, float, int, Entry]]:
    """Give each sound entry: its key, the time of its last use, its bytes and what it holds."""
    for path, stat in sorted(_files(), key=lambda found: found[1].st_mtime):
        with contextlib.suppress(OSError):
            entry = _unpacked(path.read_bytes())
            if entry is not None:
                yield path.stem, stat.st_mtime, stat.st_size, entry


@contextlib.contextmanager
def alone(key: str) -> Iterator[None]:
    """Keep other processes that ask for this key out for a while (and a few more, that ask for others): of many that
    need one kernel one compiles it. Where files cannot be locked, all do."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    path = folder() / f"{int(key[:8], 16) % _LOCKS:02d}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = path.open("w")
    except OSError:
        yield
        return
    with file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file frees it, as the end of the process does


def _path(key: str) -> Path:
    return folder() / key[:2] / (key + _SUFFIX)


def _files() -> Iterator[tuple[Path, os.stat_result]]:
    for path in folder().glob(f"??/*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            yield path, path.stat()


def _packed(entry: Entry) -> bytes:
    facts = {**entry.facts, "blobs": {name: len(blob) for name, blob in entry.blobs.items()}}
    body = json.dumps(facts).encode() + b"\n" + b"".join(entry.blobs.values())
    return hashlib.sha256(body).digest() + body


def _unpacked(data: bytes) -> Entry | None:
    digest, body = data[:32], data[32:]
    if hashlib.sha256(body).digest() != digest:
        return None
    head, _, rest = body.partition(b"\n")
    facts = json.loads(head)
    blobs = {}
    for name, size in facts.pop("blobs").items():
        blobs[name], rest = rest[:size], rest[size:]
    return Entry(facts, blobs)
