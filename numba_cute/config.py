# SPDX-License-Identifier: Apache-2.0
"""The settings of this library: one object, read from environment variables that start with ``NUMBA_CUTE_``.

``with config.override(traceback=True): …`` changes them for a while. docs/environment.md lists them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .seam import CuteError
from .seam.ground.folding import unfolded_where
from .seam.ground.records import dataclass

Backend = str | None


@dataclass(frozen=True)
class Settings:
    """The settings.

    ptxas, nvdisasm: paths of these tools, where the NVIDIA wheels' or the toolkit's are not wanted. traceback: show the
    library's own frames, and Numba's, in tracebacks. cache: keep compiled kernels on disk. cache_dir: the folder for
    them, where the user's usual one is not wanted. tool_seconds: how long a run of one of these tools may take.
    cache_wait: how many seconds to wait for another process that compiles the same kernel, before it is compiled here
    too. tuned: the directory of what `autotune` found, in place of numba_cute/tuned in the user's cache.
    check_launches: compare what launches in machine code give the driver with the arguments packed again.
    backend: "mlir" has kernels compiled by way of MLIR, an experiment (docs/numba_cuda_mlir.md).
    """

    ptxas: str | None = None
    nvdisasm: str | None = None
    traceback: bool = False
    cache: bool = True
    cache_dir: str | None = None
    tool_seconds: float = 600.0
    cache_wait: float = 60.0
    tuned: str | None = None
    check_launches: bool = False
    backend: Backend = None


_MOST_SECONDS = 10**8
"""Three years: the clocks of Python end at some hundred."""


def _seconds(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= _MOST_SECONDS:
        raise CuteError(f"NUMBA_CUTE_{name.upper()}={text}: give a number of seconds above 0, at most {_MOST_SECONDS}")
    return found


def _backend(name: str, text: str) -> str:
    if text != "mlir":
        raise CuteError(f"NUMBA_CUTE_{name.upper()}={text}: only mlir is supported; unset it for the default")
    return text


_KINDS: dict[str, Callable[[str, str], Any]] = {
    "bool": lambda _, text: text not in ("0", "false"),
    "float": _seconds,
    "str | None": lambda _, text: text,
    "Backend": _backend,
}


def _from_environment() -> Settings:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Settings):
        text = os.environ.get(f"NUMBA_CUTE_{field.name.upper()}")
        if text:
            values[field.name] = _KINDS[str(field.type)](field.name, text)
    return Settings(**values)


_overrides: list[Settings] = []


def current() -> Settings:
    """Return the settings that hold now."""
    return _overrides[-1] if _overrides else _from_environment()


def _asked_for_tracebacks() -> bool:
    if _overrides:
        return _overrides[-1].traceback
    text = os.environ.get("NUMBA_CUTE_TRACEBACK", "")  # alone: each error that folds asks
    return bool(text and _KINDS["bool"]("traceback", text))


unfolded_where(_asked_for_tracebacks)


@contextmanager
def override(**settings: Any) -> Iterator[Settings]:
    """Change settings inside a `with`. settings: names and values of `Settings`; others are errors."""
    known = {field.name for field in dataclasses.fields(Settings)}
    if not set(settings) <= known:
        raise CuteError(f"config.override: {sorted(set(settings) - known)} is not a setting; there are {sorted(known)}")
    _overrides.append(dataclasses.replace(current(), **settings))
    try:
        yield _overrides[-1]
    finally:
        _overrides.pop()
