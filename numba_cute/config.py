# SPDX-License-Identifier: Apache-2.0
"""The settings of this library: one object, read from environment variables that start with ``NUMBA_CUTE_``.

``with config.override(traceback=True): …`` changes them for a while. docs/environment.md lists them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .seam import CuteError


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings.

    ptxas, nvdisasm: paths of these tools, where the NVIDIA wheels' or the toolkit's are not wanted. traceback: show the
    library's own frames beneath a CuteError that was raised while a kernel was compiled. cache: keep compiled kernels
    on disk. cache_dir: the folder for them, where the user's usual one for such is not wanted.
    """

    ptxas: str | None = None
    nvdisasm: str | None = None
    traceback: bool = False
    cache: bool = True
    cache_dir: str | None = None


def _from_environment() -> Settings:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Settings):
        text = os.environ.get(f"NUMBA_CUTE_{field.name.upper()}")
        if text:
            values[field.name] = text not in ("0", "false") if field.type == "bool" else text
    return Settings(**values)


_overrides: list[Settings] = []


def current() -> Settings:
    """Return the settings that hold now."""
    return _overrides[-1] if _overrides else _from_environment()


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
