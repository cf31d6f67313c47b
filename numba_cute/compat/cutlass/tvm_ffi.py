# SPDX-License-Identifier: Apache-2.0
"""Names by which files tell TVM's interface of their argument types, and of the package `tvm_ffi` where it is not
installed. Launches here read their arguments themselves, so nothing asks for what a file registers."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...seam import CuteError
from .dialects import Operation

__all__ = ["AcceptableNumericTypesForScalar", "Function", "NumericToTVMFFIDtype", "spec"]

__version__ = "0.1.12"
"""The version of `tvm_ffi` whose names these are."""

_ELEMENTS = [t for n in dtypes.__all__ if isinstance(t := getattr(dtypes, n), DType)]
NumericToTVMFFIDtype: dict[Any, str] = {t: str(t) for t in _ELEMENTS}
"""By an element type, TVM's name of it."""
AcceptableNumericTypesForScalar: list[Any] = list(_ELEMENTS)
"""The element types that a number may have."""
spec = Operation("spec")


class Function:
    """A function of TVM's interface: what `cute.compile` gives here is none."""


def _convert_single_arg(arg: Any, arg_name: str, arg_type: Any, ctx: Any) -> Any:
    """Refuse: a launch reads its arguments itself."""
    raise CuteError(f"_convert_single_arg: {arg_name}: launches here do not go through TVM's interface")
