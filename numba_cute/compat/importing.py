# SPDX-License-Identifier: Apache-2.0
"""`install`: an import hook that answers for the modules of the CuTe DSL.

Each is a `Mirror`: a module of that name whose attributes are those of modules here (`MODULES`), first of the file in
`numba_cute/compat/cutlass` that has what only the CuTe DSL has a name for.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from ..seam import CuteError
from ..seam.ground.names import UnknownName
from .modules import MODULES, STAND_INS

ROOT = "cutlass"


def install() -> None:
    """Have `import cutlass` and its modules answered by this library, in this process. CuteError: the CuTe DSL itself
    was imported before."""
    loaded = sys.modules.get(ROOT)
    if loaded is not None and not isinstance(loaded, Mirror):
        raise CuteError(
            "compat.install: cutlass has been imported already, from "
            f"{getattr(loaded, '__file__', None)!r}: call install() before the first `import cutlass`"
        )
    if not any(isinstance(f, Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, Finder(MODULES))
        sys.meta_path.append(Finder(STAND_INS))  # after Python's own: what is installed is found


def uninstall() -> None:
    """Undo `install`: later imports of cutlass are Python's own. Modules that were imported keep what they have."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, Finder)]
    for name in [n for n, m in sys.modules.items() if isinstance(m, Mirror)]:
        del sys.modules[name]


_OF_NUMBA = frozenset(("_numba_type_",))
"""Attributes that Numba looks for on every object; no module has them."""


class Mirror(ModuleType):
    """A module of the CuTe DSL, whose names are those of modules here."""

    __cute_mirror__ = True

    def __init__(self, name: str, sources: Sequence[str]) -> None:
        super().__init__(name, f"The CuTe DSL's {name}, answered by numba_cute.")
        self.__sources__ = tuple(map(importlib.import_module, sources))
        if name == ROOT:
            self.__file__ = self.__sources__[0].__file__  # by which files tell one release from another
        names = [n for m in self.__sources__ for n in _public(m)]
        self.__all__ = sorted({n for n in names if not isinstance(self._found(n), ModuleType)})
        vars(self).update((n, self._found(n)) for n in self.__all__)  # what is looked up later would change the module

    def _found(self, name: str) -> Any:
        """Return a name's value from the first source module that defines it."""
        return next(vars(m)[name] for m in self.__sources__ if name in vars(m))

    def __getattr__(self, name: str) -> Any:
        why: list[AttributeError] = []
        if name not in _OF_NUMBA and (not name.startswith("__") or name in _DUNDERS):
            for module in self.__sources__:
                if _is_only_imported(module, name):
                    continue
                try:
                    found = getattr(module, name)
                except AttributeError as e:
                    why = [e]
                    continue
                if isinstance(found, ModuleType) and f"{self.__name__}.{name}" in MODULES:
                    break
                return found
            if f"{self.__name__}.{name}" in MODULES:
                return importlib.import_module(f"{self.__name__}.{name}")
        # the words when they are asked for: Numba asks each global for its protocols, by `getattr` with a default
        raise UnknownName(lambda: f"{self.__name__} has no {name!r} in numba_cute{''.join(f': {e}' for e in why)}")

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self.__all__})


def _is_only_imported(module: ModuleType, name: str) -> bool:
    """Say whether a module of this package has a name for its own use alone, which another may show in its own form."""
    own = module.__name__.startswith("numba_cute.compat.cutlass")
    return own and not name.startswith("_") and name in vars(module) and name not in getattr(module, "__all__", (name,))


_DUNDERS = ("__version__", "__STR_TO_DTYPE__")


def _public(module: ModuleType) -> list[str]:
    return [
        n for n in getattr(module, "__all__", None) or dir(module)
        if not n.startswith("_") and n in vars(module) and not isinstance(vars(module)[n], ModuleType)
    ]  # fmt: skip


class Finder:
    """The finder of some modules. modules: by their names, the modules here that have theirs."""

    def __init__(self, modules: Mapping[str, Sequence[str]]) -> None:
        self.modules = modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of the module `name`; None if it is another's."""
        if name not in self.modules:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> ModuleType:
        """Make the module of a spec."""
        return Mirror(spec.name, self.modules[spec.name])

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a mirror has no code of its own."""
