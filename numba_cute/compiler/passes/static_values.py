# SPDX-License-Identifier: Apache-2.0
"""The values that types say whole."""

from __future__ import annotations

import operator
from typing import Any

from ..bridge.object_types import Value
from ..bridge.values import abstract
from ..emit.tracer import Tracer
from ..ground.numba_cuda import types

FUNCTIONS = {bool, len, max, min, abs, sum, int, operator.not_}
"""Functions that are values too."""


class Unknown(Exception):
    """A value is known only at run time."""


def static_value(ty: Any) -> Any:
    """Return the value of a type that says it whole; Unknown for another."""
    if isinstance(ty, types.Literal):
        return ty.literal_value
    if isinstance(ty, types.NoneType):
        return None
    if isinstance(ty, types.BaseTuple):
        return tuple(map(static_value, ty))
    if isinstance(ty, Value) and not ty.leaves:
        return abstract(ty, None, Tracer())
    if isinstance(ty, types.Function) and ty.typing_key in FUNCTIONS:
        return ty.typing_key
    raise Unknown
