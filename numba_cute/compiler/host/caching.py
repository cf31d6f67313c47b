# SPDX-License-Identifier: Apache-2.0
"""Numba's disk cache (`cache=True`) for kernels of this library: what they become is also a matter of its version.

The entries of other kernels are Numba's own, and the same with this library and without.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.cuda.core import sigutils
from numba.cuda.dispatcher import _Kernel

from ..ground.ownership import owns
from .kernel import CuteKernel


@functools.cache
def version() -> str:
    """Name this library as it is installed: its files, their sizes and times, for versions under work too."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        stat = file.stat()
        digest.update(f"{file.relative_to(package)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def keying(index_key: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the cache's key for a signature one that has, for a kernel of this library, its version and the kernel's
    cluster shape."""

    def key(self: Any, sig: Any, codegen: Any) -> Any:
        found = index_key(self, sig, codegen)
        if not owns(self._py_func, _argument_types(sig)):
            return found
        return (*found, "numba_cute", version(), getattr(self._py_func, "__cute_cluster__", None))

    return key


def loading(load_overload: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the cache's loading, which makes kernels of Numba's class, one that gives this library's own theirs."""

    def load(self: Any, sig: Any, target_context: Any) -> Any:
        kernel = load_overload(self, sig, target_context)
        if type(kernel) is _Kernel and owns(self._py_func, _argument_types(sig)):
            kernel.__class__ = CuteKernel
        return kernel

    return load


def _argument_types(sig: Any) -> tuple[Any, ...]:
    return tuple(sigutils.normalize_signature(sig)[0])
