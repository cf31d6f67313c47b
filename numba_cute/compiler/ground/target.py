# SPDX-License-Identifier: Apache-2.0
"""The target being compiled for. Numba asks the current GPU; here one can be named instead, with no GPU at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ...isa.form.targets import answering_for, named
from .numba_cuda import cuda_api, targetconfig


class _Offline:
    """A device that is not here, as Numba's device functions ask of "the current device"."""

    def __init__(self, cc: tuple[Any, ...]) -> None:
        self.compute_capability = cc


_offline: list[_Offline] = []


def naming_the_target(get_current_device: Callable[[], Any]) -> Callable[[], Any]:
    """Make of Numba's `get_current_device`, which overloaded device functions ask for their target, one that knows the
    target of `compiling_for`."""

    def current_device() -> Any:
        return _offline[-1] if _offline else get_current_device()

    return current_device


def knowing_defaults(values: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """Make of Numba's list of all options that a function is compiled with one that asks each class once what they are
    by default: its own asks option by option, for each pass, a twentieth of the calls of a compilation."""
    defaults: dict[type, dict[str, Any]] = {}

    def all_values(self: Any) -> dict[str, Any]:
        cls = type(self)
        if cls not in defaults:
            defaults[cls] = {name: option.default for name, option in cls.options.items()}
        return {**defaults[cls], **self._values}

    return all_values


def parse_arch(arch: str) -> tuple[Any, ...]:
    """Return a target ("sm_90a") as Numba's compute capability (9, 0, "a"); CuteError for an unknown name."""
    major, minor, suffix = re.fullmatch(r"sm_(\d+)(\d)([af]?)", named(arch).name).groups()  # type: ignore[union-attr]
    return (int(major), int(minor), suffix)


def arch_name(cc: Any) -> str:
    """Name Numba's compute capability as a target; on a GPU Numba compiles for its "a" variant from 9.0 on."""
    major, minor = cc[0], cc[1]
    suffix = cc[2] if len(cc) == 3 else ("a" if (major, minor) >= (9, 0) else "")
    return f"sm_{major}{minor}{suffix}"


@contextmanager
def compiling_for(arch: str, at_hand: bool = False) -> Iterator[tuple[Any, ...]]:
    """Compile for `arch` whatever GPU is here, or none; gives its compute capability. at_hand: it is the target of the
    GPU that is here, which answers what is asked of it."""
    _offline.append(_Offline(parse_arch(arch)))
    try:
        with nullcontext() if at_hand else answering_for(arch):
            yield _offline[-1].compute_capability
    finally:
        _offline.pop()


def current_arch() -> str:
    """Return the target of the function that is being compiled now."""
    flags = targetconfig.ConfigStack.top_or_none()
    if flags is not None:
        return arch_name(flags.compute_capability)
    return arch_name((_offline[-1] if _offline else cuda_api.get_current_device()).compute_capability)
