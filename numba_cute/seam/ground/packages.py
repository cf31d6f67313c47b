# SPDX-License-Identifier: Apache-2.0
"""Whose code a module is: this library's, or a user's."""

from __future__ import annotations

import linecache
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

LIBRARY = __name__.partition(".")[0]
KERNELS = f"{LIBRARY}.kernels"
"""The room whose files are written as users write theirs: both engines take them for a user's."""
_HOME = str(Path(os.path.abspath(__file__)).parents[2]) + os.sep
_KERNELS_HOME = os.path.join(_HOME, "kernels") + os.sep


def package_of(module: object) -> str:
    """Name the package whose rules a module's code goes by: its topmost, but `KERNELS` for what stands there.

    module: the module's name; anything else is of no package.
    """
    if not isinstance(module, str):
        return ""
    if module == KERNELS or module.startswith(KERNELS + "."):
        return KERNELS
    return module.partition(".")[0]


def is_library(module: object) -> bool:
    """Say whether the module of a name is this library's own."""
    return package_of(module) == LIBRARY


def is_librarys(module: ModuleType) -> bool:
    """Say whether a module is this library's own, or has its names under another one's (see `compat.importing`)."""
    return is_library(module.__name__) or _is_mirror(module)


_IMPORTS_DSL = re.compile(r"^\s*(import|from)\s+cutlass\b", re.MULTILINE)
_OF_HOOK: dict[int, tuple[dict[str, Any], bool]] = {}
"""By the number of a module's globals: these, and whether they are of a file that the hook answers."""


def is_of_hook(space: dict[str, Any], file: str) -> bool:
    """Say whether a file imports modules of the CuTe DSL that this library answers for (`compat.install`). space: the
    globals of its module. file: its name."""
    if is_library_file(file):
        return False
    known = _OF_HOOK.get(id(space))
    if known is not None and known[0] is space and (known[1] or "cutlass" not in sys.modules):
        return known[1]
    found = any(map(_is_mirror, list(space.values()))) or (
        _is_mirror(sys.modules.get("cutlass")) and _IMPORTS_DSL.search("".join(linecache.getlines(file))) is not None
    )
    _OF_HOOK[id(space)] = (space, found)
    return found


def _is_mirror(value: Any) -> bool:
    return isinstance(value, ModuleType) and "__cute_mirror__" in vars(type(value))


def is_library_file(file: str) -> bool:
    """Say whether a file of source is this library's own."""
    return file.startswith(_HOME) and not file.startswith(_KERNELS_HOME)


def site() -> str | None:
    """Return where the documentation is on the web, as the installed package says; None if it does not."""
    from importlib import metadata

    try:
        urls = metadata.metadata("numba-cute").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    return next((url.partition(", ")[2].rstrip("/") for url in urls if url.startswith("Documentation,")), None)
