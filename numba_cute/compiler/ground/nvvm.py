# SPDX-License-Identifier: Apache-2.0
"""What stands for libNVVM while kernels are typed and lowered to be checked: Numba asks it for two constants alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.cuda.cudadrv import nvvm


class _StandIn:
    """Answers what Numba asks libNVVM when it makes a module. No module that is made so comes to libNVVM, so the
    version says nothing to anybody."""

    data_layout: str = nvvm._datalayout

    @staticmethod
    def get_ir_version() -> tuple[int, int, int, int]:
        return 2, 0, 3, 2


_without: list[None] = []


@contextmanager
def without_nvvm() -> Iterator[None]:
    """Make modules that libNVVM does not see: it is neither loaded nor needed."""
    _without.append(None)
    try:
        yield
    finally:
        _without.pop()


def standing_in(library: Callable[[], Any]) -> Callable[[], Any]:
    """Make of Numba's libNVVM one for which something else stands within `without_nvvm`."""

    @functools.wraps(library, updated=())
    def made() -> Any:
        return _StandIn if _without else library()

    return made
