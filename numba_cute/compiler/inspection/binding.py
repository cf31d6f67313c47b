# SPDX-License-Identifier: Apache-2.0
"""Bind the arguments of a call to its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...seam import CuteError


def bound(
    function: Callable[..., Any], args: tuple[str, ...], keywords: tuple[tuple[str, str], ...], spread: str | None
) -> list[str | None]:
    """Return for each parameter of `function` the variable that it is given; None where it has its default. args,
    keywords: as in the call. Raises CuteError for `*args`, in the call or among the parameters."""
    signature = inspect.signature(function)
    if spread is not None or any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        raise CuteError(f"{function.__name__}: a device function with *args has no form in the IR; name its parameters")
    given = signature.bind(*args, **dict(keywords)).arguments
    return [given.get(name) for name in signature.parameters]
