# SPDX-License-Identifier: Apache-2.0
"""Numba's disk cache (`cache=True`) for kernels of this library: what they become is also a matter of its version.

The entries of other kernels are Numba's own, and the same with this library and without.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from numba.cuda import dispatcher as cuda_dispatcher
from numba.cuda.core import sigutils

from ..ownership import owns
from .launch import CuteKernel

_Cache = cuda_dispatcher.CUDACache
_index_key, _load_overload = _Cache._index_key, _Cache.load_overload


@functools.cache
def version() -> str:
    """What names this library as it is installed: its files, their sizes and times, for versions under work too."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        stat = file.stat()
        digest.update(f"{file.relative_to(package)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _key(self: Any, sig: Any, codegen: Any) -> Any:
    """Numba's key for a signature; for a kernel of this library with its version and the kernel's cluster shape."""
    key = _index_key(self, sig, codegen)
    if not owns(self._py_func, _argument_types(sig)):
        return key
    return (*key, "numba_cute", version(), getattr(self._py_func, "__cute_cluster__", None))


def _load(self: Any, sig: Any, target_context: Any) -> Any:
    """A kernel from the cache: Numba makes it of its own class."""
    kernel = _load_overload(self, sig, target_context)
    if type(kernel) is cuda_dispatcher._Kernel and owns(self._py_func, _argument_types(sig)):
        kernel.__class__ = CuteKernel
    return kernel


def _argument_types(sig: Any) -> tuple[Any, ...]:
    return tuple(sigutils.normalize_signature(sig)[0])


_Cache._index_key = _key
_Cache.load_overload = _load
