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

_PRINTED = re.compile(r"^\s*\"?(cuda\.kernel|gpu\.module)\b", re.MULTILINE)
"""What a text has that the CuTe DSL printed."""


def parse(
    text: str, file: str | None = None, target: str | None = None, *,
    names: Mapping[str, Any] | Iterable[ModuleType] | None = None,
) -> Module:  # fmt: skip
    """Read a module, as `module.parse` does, or as the CuTe DSL prints it: it has a `gpu.module` then, names none of
    the user's, and says its target nowhere. text, file, target, names: as there. Raises CuteError as it does."""
    if isinstance(text, str) and _PRINTED.search(text):
        return lifting.parse(text, file)
    return module.parse(text, file, target, names=names)


__all__ = ["parse"]
