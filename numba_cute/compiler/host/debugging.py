# SPDX-License-Identifier: Apache-2.0
"""Numba's debug information of values that take no room: all that layouts and the like are stands in their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.cuda.datamodel.models import UniTupleModel


def telling_of_nothing(var_type: Callable[..., Any]) -> Callable[..., Any]:
    """Make of Numba's `DIBuilder._var_type` one that knows of tuples whose items have no size, by which it divides."""

    def told(self: Any, lltype: Any, size: int, datamodel: Any = None) -> Any:
        if isinstance(datamodel, UniTupleModel) and not self.cgctx.get_abi_sizeof(lltype.element):
            lltype, datamodel = ir.LiteralStructType([lltype.element] * lltype.count), None
        return var_type(self, lltype, size, datamodel=datamodel)

    return told
