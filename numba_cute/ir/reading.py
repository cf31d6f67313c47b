# SPDX-License-Identifier: Apache-2.0
"""Texts of modules: in the form of this library, or as the CuTe DSL prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from . import module
from .lift import module as lifting
from .module import Module

_KERNEL, _MODULE, _OURS = (
    re.compile(rf"^\s*\"?{name}\b", re.MULTILINE) for name in (r"cuda\.kernel", r"gpu\.module", r"gpu\.func")
)


def _is_printed(text: str) -> bool:
    """Say whether the CuTe DSL printed a text: it has its kernels, or a `gpu.module` without functions."""
    return bool(_KERNEL.search(text) or _MODULE.search(text) and not _OURS.search(text))


def parse(
    text: str, file: str | None = None, target: str | None = None, *,
    names: Mapping[str, Any] | Iterable[ModuleType] | None = None,
) -> Module:  # fmt: skip
    """Read a module, as `module.parse` does, or as the CuTe DSL prints it: it has kernels of `cuda` then, or a
    `gpu.module` of none, names none of the user's, and says its target nowhere. text, file, target, names: as there.
    Raises CuteError as it does."""
    if isinstance(text, str) and _is_printed(text):
        return lifting.parse(text, file)
    return module.parse(text, file, target, names=names)


__all__ = ["parse"]
