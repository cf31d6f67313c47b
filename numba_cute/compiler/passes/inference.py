# SPDX-License-Identifier: Apache-2.0
"""Numba's type inference, but that a device function may return an array that it was not given: one in shared memory, a
part of an argument. Only what lies in the function's own frame is gone when it returns: a local array."""

from __future__ import annotations

from typing import Any

from ...seam import CuteError
from ..bridge.shared_arrays import SharedArray
from ..ground.errors import located
from ..ground.numba import cuda
from ..ground.numba_cuda import NopythonTypeInference, NumbaTypeError, ir, register_pass, types
from ..ground.refusals import kind
from .rounds import letting_go


@register_pass(mutates_CFG=True, analysis_only=False)
class TypeInference(NopythonTypeInference):
    _name = "numba_cute_type_inference"

    def run_pass(self, state: Any) -> bool:
        try:
            with letting_go():
                done = bool(super().run_pass(state))
            _refuse_nones(state)
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


def _refuse_nones(state: Any) -> None:
    """Refuse a result, or a variable, that is None on some ways: Numba ends the thread where it reads such a one."""
    if isinstance(state.return_type, types.Optional):
        words = f"{state.func_id.func_name} returns {kind(str(state.return_type.type))} on one way and None on another"
        raise located(
            CuteError(f"{words}: a kernel's function returns one type; convert the result, as cute.Float32(x)"),
            _first_return(state.func_ir),
        )
    for block in state.func_ir.blocks.values():
        for inst in block.find_insts(ir.Assign):
            ty = state.typemap[inst.target.name]
            if isinstance(ty, types.Optional):
                name = inst.target.name.split(".")[0]
                words = f"{name} is {kind(str(ty.type))} on one way to here and None on another"
                raise located(
                    CuteError(f"{words}: kernels need one type; use two names, or a number that says so"), inst.loc
                )


def _has_own_arrays(typemap: Any) -> bool:
    """Say whether a function makes an array in its frame."""
    return any(isinstance(t, types.Function) and t.typing_key is cuda.local.array for t in typemap.values())


def _first_return(func_ir: Any) -> Any:
    return next(inst.loc for block in func_ir.blocks.values() for inst in block.find_insts(ir.Return))
