# SPDX-License-Identifier: Apache-2.0
"""Make a thing once for many processes that need it: one makes it while the others wait.

A lock only saves work: whoever gives up waiting makes the thing as well. So nobody waits beyond a limit, nor for a
process that is stopped, nor while holding another lock. The system frees the locks of a process that ends, and a fork
has none of its parent's (POSIX record locks).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from . import files

try:
    import fcntl
except ImportError:  # no POSIX: everybody makes everything
    fcntl = None  # type: ignore[assignment]

_POLL = 0.02
_MOST = 4096


class _Held(threading.local):
    """The number of locks that this thread holds."""

    count = 0


_held = _Held()
_here: dict[Path, str] = {}
"""The locks that threads of this process hold, and for what: a record lock does not keep these apart."""
_guard = threading.Lock()


def _forget() -> None:
    """Hold nothing, in a child that was forked."""
    global _guard
    _guard = threading.Lock()
    _here.clear()
    _held.count = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextlib.contextmanager
def alone(path: Path, what: str, limit: float) -> Iterator[None]:
    """Keep other threads and processes that ask for this path out for a while.

    path: of the lock, in a folder that may be used. what: is made, for those who wait. limit: seconds to wait for
    another; then a RuntimeWarning says who it is. Where files cannot be locked, nobody is kept out.
    """
    handle = _acquired(path, what, 0.0 if _held.count else limit)
    if handle is None:
        yield
        return
    pid = os.getpid()
    _held.count += 1
    try:
        yield
    finally:
        if pid == os.getpid():  # and not a fork's
            _held.count -= 1
            files.remove(path)
            with _guard:
                _here.pop(path, None)
                os.close(handle)
        else:
            os.close(handle)


def _acquired(path: Path, what: str, limit: float) -> int | None:
    """Take a lock; gives the file that holds it, None if it is not to be had."""
    if fcntl is None:
        return None
    until = time.monotonic() + limit
    while True:
        handle, holder = _tried(path, what)
        if handle is not None or holder is None or holder.stopped or not limit:
            return handle
        if time.monotonic() >= until:
            warnings.warn(
                f"waited {limit:g} s for {holder}, and goes on without (NUMBA_CUTE_CACHE_WAIT sets the limit)",
                RuntimeWarning,
                stacklevel=5,
            )
            return None
        time.sleep(_POLL)


class _Holder:
    """The holder of a lock, as the lock says."""

    def __init__(self, said: bytes) -> None:
        try:
            found = json.loads(said)
            self.host, self.pid, self.what = str(found["host"]), int(found["pid"]), str(found["what"])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            self.host, self.pid, self.what = "", 0, "something"

    @property
    def stopped(self) -> bool:
        """Say whether it is a process of this machine that does not run: stopped, or in a debugger."""
        if self.host != socket.gethostname() or not self.pid:
            return False
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return text.rpartition(")")[2].split()[0] in ("T", "t", "Z", "X")

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, which makes {self.what}" if self.pid else "another process"


def _tried(path: Path, what: str) -> tuple[int | None, _Holder | None]:
    """(the file that holds the lock, None) if it is free; else (None, who holds it, None where there are no locks)."""
    me = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "what": what[: _MOST // 2]})
    with _guard:
        if path in _here:  # opening the file and closing it would free what the other thread holds
            return None, _Holder(_here[path].encode())
        handle = files.opened(path, os.O_RDWR | os.O_CREAT)
        if handle is None:
            return None, None
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            said = os.pread(handle, _MOST, 0)
            os.close(handle)
            return None, _Holder(said)
        except OSError:  # a file system without locks
            os.close(handle)
            return None, None
        if not _is(path, handle):  # whoever held it has removed the file
            os.close(handle)
            return None, _Holder(b"")
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, me.encode(), 0)
        _here[path] = me
        return handle, None


def _is(path: Path, handle: int) -> bool:
    """Say whether an open file is still the one of this path."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    return False
