# SPDX-License-Identifier: Apache-2.0
"""Files that are kept for later processes: read only if this user, or root, wrote them where nobody else may write.

What is a symlink, a FIFO, a device or a directory in the place of a file is neither followed nor opened.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path

from ..ground.numba_cuda import AppDirs

ABANDONED = 60.0
"""Seconds after which a temporary file is one that its writer left: it writes for milliseconds."""
_TEMPORARY = ".tmp"
_FLAGS = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def user_folder(name: str) -> Path | None:
    """Return the user's folder of this name for what can be made again; None where the user has no home."""
    found = Path(AppDirs(name, appauthor=False).user_cache_dir)
    return found if found.is_absolute() else None


def trusted(found: os.stat_result) -> bool:
    """Say whether nobody but this user and root can have written a file or folder."""
    if not hasattr(os, "geteuid"):
        return True
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & _OTHERS


def trusted_folder(folder: Path) -> bool:
    """Say whether a folder is one whose files may be used: there, and nobody else may write in it."""
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(found.st_mode) and trusted(found)


def made_folder(folder: Path) -> bool:
    """Make a folder for this user alone, unless it is there; says whether it may be used."""
    with contextlib.suppress(OSError, ValueError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return trusted_folder(folder)


def regular(path: Path) -> os.stat_result | None:
    """Return what is known of a file that may be used; None if there is none."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) and trusted(found) else None


def opened(path: Path, flags: int) -> int | None:
    """Open a file that may be used, or that `flags` make; None if it may not."""
    if os.path.lexists(path) and regular(path) is None:
        return None
    try:
        handle = os.open(path, flags | _FLAGS, 0o600)
    except (OSError, ValueError):
        return None
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and trusted(found):
        return handle
    os.close(handle)
    return None


def read(path: Path, most: int) -> bytes | None:
    """Read a file of at most `most` bytes; None of one that is not there or may not be used."""
    handle = opened(path, os.O_RDONLY) if trusted_folder(path.parent) else None
    if handle is None:
        return None
    with contextlib.suppress(OSError), os.fdopen(handle, "rb") as file:
        if os.fstat(file.fileno()).st_size <= most:
            return file.read()
    return None


def write(path: Path, data: bytes) -> None:
    """Write a file in one step: others see the old one or the new one. OSError: it cannot be (no room, no right), or
    others may write in its folder."""
    if not made_folder(path.parent):
        raise PermissionError(f"{path.parent} is not a folder of this user's in which nobody else may write")
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=_TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def remove(path: Path) -> bool:
    """Remove a file; says whether it was there."""
    with contextlib.suppress(OSError):
        path.unlink()
        return True
    return False


def remove_abandoned(folder: Path, pattern: str = "*", age: float = ABANDONED) -> None:
    """Remove the temporary files of writers that were killed. pattern: of the folders within `folder`."""
    for path in folder.glob(f"{pattern}{_TEMPORARY}"):
        found = regular(path)
        if found is not None and time.time() - found.st_mtime > age:
            remove(path)
