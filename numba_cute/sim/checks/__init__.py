# SPDX-License-Identifier: Apache-2.0
"""The checks, each in a file (or package) of this directory that defines a `Check`: nothing else names them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any

from ...seam import CuteError
from ..hardware.watch import Check


def _found() -> dict[str, type[Check]]:
    """All checks by name, a check after those that it needs."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    out: dict[str, type[Check]] = {}

    def add(check: type[Check]) -> None:
        for other in check.needs:
            add(other)
        out.setdefault(check.name, check)

    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Check) and value.__module__ == module.__name__:
                add(value)
    return out


CHECKS = _found()


def chosen(checks: Any) -> tuple[type[Check], ...]:
    """The checks that `simulate(checks=)` asks for: True for all, False for none, or some by name, with those that they
    need; names after a "-" are left out of all, with those that need them. A CuteError says which names there are."""
    if isinstance(checks, bool):
        return tuple(CHECKS.values()) if checks else ()
    try:
        wanted = frozenset((checks,) if isinstance(checks, str) else checks)
    except TypeError:
        raise CuteError(f"simulate: checks {checks!r} is neither True, False nor some of {sorted(CHECKS)}") from None
    out = {n[1:] for n in wanted if isinstance(n, str) and n.startswith("-")}
    if out and len(out) < len(wanted):
        names = sorted(wanted, key=repr)
        raise CuteError(f"simulate: checks {names}: name those that are on, or with - those that are off")
    if out and out <= CHECKS.keys():
        return tuple(c for c in CHECKS.values() if not out & {n.name for n in _with_needs([c])})
    if not wanted <= CHECKS.keys():
        raise CuteError(f"simulate: checks {sorted(wanted - CHECKS.keys(), key=repr)} are none of {sorted(CHECKS)}")
    needed = _with_needs(CHECKS[name] for name in wanted)
    return tuple(check for check in CHECKS.values() if check in needed)


def _with_needs(checks: Iterable[type[Check]]) -> set[type[Check]]:
    return {other for check in checks for other in (check, *_with_needs(check.needs))}
