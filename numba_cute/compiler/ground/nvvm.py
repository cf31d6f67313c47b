# SPDX-License-Identifier: Apache-2.0
"""What stands for libNVVM while kernels are typed and lowered to be checked: Numba asks it for two constants alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cuda.pathfinder import DynamicLibNotFoundError
from numba.cuda.cudadrv import nvvm
from numba.cuda.cudadrv.error import NvvmSupportError


class StandIn:
    """Answers what Numba asks libNVVM when it makes a module. What is made so comes to no libNVVM: there is none."""

    data_layout: str = nvvm._datalayout

    @staticmethod
    def get_ir_version() -> tuple[int, int, int, int]:
        return 2, 0, 3, 2


_without: list[None] = []


@contextmanager
def without_nvvm() -> Iterator[None]:
    """Make modules for the front end alone: libNVVM need not be installed."""
    _without.append(None)
    try:
        yield
    finally:
        _without.pop()


def is_left_out() -> bool:
    """Say whether modules are made for the front end alone."""
    return bool(_without)


def standing_in(new: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make of how Numba finds libNVVM one for which something else stands within `without_nvvm`, where it is not
    installed."""

    def found(cls: Any) -> Any:
        if not _without:
            return new(cls)
        try:
            library = new(cls)
            library.get_ir_version()  # what there is of it is loaded
        except (NvvmSupportError, DynamicLibNotFoundError):
            return StandIn
        return library

    return found
