# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass` itself: versions, element types by name, marks of parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba_cute as cute

from ...compiler.host.ptxas import version
from ...dtypes import DType

__all__ = [
    "DataType",
    "Float8E4M3",
    "Float8E4M3B11FNUZ",
    "GridConstant",
    "__STR_TO_DTYPE__",
    "__version__",
    "dtype",
    "target_version",
]

__version__ = "4.8.1"
"""The version of the CuTe DSL whose names these are."""

__STR_TO_DTYPE__ = {n: getattr(cute, n) for n in sorted(dir(cute)) if isinstance(getattr(cute, n, None), DType)}
"""By their names, the element types."""
DataType = DType


class Float8E4M3:
    """Stand for an element type that no GPU has: files name it to refuse it. The hardware's is `Float8E4M3FN`."""


class Float8E4M3B11FNUZ:
    """Stand for another element type that no GPU has."""


class Version(NamedTuple):
    """A version of the CUDA toolkit. major, minor: its numbers."""

    major: int
    minor: int


class GridConstant:
    """Mark a parameter that is the same for the whole grid: all parameters of kernels are. `GridConstant[T]` is T."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return kind


def dtype(name: str) -> DType:
    """Return the element type of a name.

    name: as "Float16". CuteError: there is none.
    """
    found = getattr(cute, name, None) if isinstance(name, str) else None
    if not isinstance(found, DType):
        raise cute.CuteError(f"dtype: {name!r} is not the name of an element type; one is 'Float16'")
    return found


def target_version(min_version: str | None = None, max_version: str | None = None) -> bool:
    """Return whether the CUDA toolkit here lies between two versions.

    min_version, max_version: as "13.1", both included; None: no limit.
    """
    here = version()
    low, high = (tuple(map(int, v.split(".")[:2])) if v else None for v in (min_version, max_version))
    return (low is None or here >= low) and (high is None or here <= high)


def __getattr__(name: str) -> Any:
    """Return the toolkit's version, for which the assembler is asked."""
    if name == "CUDA_VERSION":
        return Version(*version())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
