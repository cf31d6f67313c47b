# SPDX-License-Identifier: Apache-2.0
"""Numba's type inference, but that a device function may return an array that it was not given: one in shared memory, a
part of an argument. Only what lies in the function's own frame is gone when it returns: a local array, registers."""

from __future__ import annotations

from typing import Any

from numba import cuda
from numba.cuda import types
from numba.cuda.core import ir
from numba.cuda.core.compiler_machinery import register_pass
from numba.cuda.core.errors import NumbaTypeError
from numba.cuda.core.typed_passes import NopythonTypeInference

from ...seam import CuteError
from ..bridge.leaf_types import Registers
from ..bridge.object_types import StructRef, Value
from ..bridge.shared_arrays import SharedArray
from ..ground.errors import located


@register_pass(mutates_CFG=True, analysis_only=False)
class TypeInference(NopythonTypeInference):
    _name = "numba_cute_type_inference"

    def run_pass(self, state: Any) -> bool:
        try:
            done = bool(super().run_pass(state))
            _refuse_own_registers(state)
            return done
        except NumbaTypeError:  # all may be typed, and then only the result's type is refused
            if not isinstance(state.return_type, types.Array):
                raise
        if isinstance(state.return_type, SharedArray) or not _has_own_arrays(state.typemap):
            return True
        raise located(
            CuteError(
                f"{state.func_id.func_name} has cuda.local.array, which is gone when it returns, and returns an array: "
                "have the caller make that, and pass it"
            ), _first_return(state.func_ir),
        )  # fmt: skip


def _refuse_own_registers(state: Any) -> None:
    """Refuse a device function that returns registers and is given none: they are of its own frame."""
    if _has_registers(state.return_type) and not any(map(_has_registers, state.args)):
        raise located(
            CuteError(
                f"{state.func_id.func_name} returns a register tensor of its own, which is gone when it returns: have "
                "the caller make it, and pass it; or leave out @cuda.jit: a plain function is part of its caller"
            ), _first_return(state.func_ir),
        )  # fmt: skip


def _has_registers(ty: Any) -> bool:
    """Say whether values of a type hold register files."""
    if isinstance(ty, Value):
        return any(map(_has_registers, ty.leaves))
    if isinstance(ty, StructRef):
        return any(_has_registers(t) for _, t in ty.fields)
    if isinstance(ty, types.BaseTuple):
        return any(map(_has_registers, ty))
    return isinstance(ty, Registers)


def _has_own_arrays(typemap: Any) -> bool:
    """Say whether a function makes an array in its frame."""
    return any(isinstance(t, types.Function) and t.typing_key is cuda.local.array for t in typemap.values())


def _first_return(func_ir: Any) -> Any:
    return next(inst.loc for block in func_ir.blocks.values() for inst in block.find_insts(ir.Return))
