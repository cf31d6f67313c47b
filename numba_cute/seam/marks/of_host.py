# SPDX-License-Identifier: Apache-2.0
"""Objects that are the host's alone: no kernel can be given one."""

from __future__ import annotations

from typing import Any

from ..ground.error import CuteError
from .decorators import field_names, is_frozen_class

_WHY = "__cute_host_only__"
_SOME: list[bool] = []


def keep_on_host(obj: Any, why: str) -> None:
    """Mark an object of a frozen class as the host's alone, whose results are not remembered (`pure`), for they may
    change. why: for who gives it to a kernel."""
    vars(obj).update({_WHY: why, "_cute_all_static": False, "_cute_all_kept": False})
    _SOME[:] = [True]


def refuse_of_host(args: Any) -> None:
    """Raise a CuteError if a kernel's arguments hold such an object. As long as there is none, nobody looks."""
    if _SOME:
        for arg in args:
            _refuse(arg)


def _refuse(x: Any) -> None:
    if isinstance(x, (tuple, list)):
        for one in x:
            _refuse(one)
    elif is_frozen_class(type(x)):
        if _WHY in vars(x):
            raise CuteError(f"{x!r}, an argument of a kernel: {vars(x)[_WHY]}")
        cls: Any = type(x)
        for name in field_names(cls):
            _refuse(getattr(x, name, None))
