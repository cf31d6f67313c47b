# SPDX-License-Identifier: Apache-2.0
"""The result of each operation, for the values that types show and for those of a running program alike: one function
each, by the layout algebra."""

from __future__ import annotations

from ..checked import Refused
from . import accessors, arithmetic, constructors, domains, sizes, tiling
from .values import Function, Value

FUNCTIONS: dict[str, Function] = {
    **constructors.FUNCTIONS,
    **accessors.FUNCTIONS,
    **domains.FUNCTIONS,
    **sizes.FUNCTIONS,
    **arithmetic.FUNCTIONS,
    **tiling.FUNCTIONS,
}
"""By the operation's name without its dialect: (operands, attributes) to results."""

__all__ = ["FUNCTIONS", "Function", "Refused", "Value"]
