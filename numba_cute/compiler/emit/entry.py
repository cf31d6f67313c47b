# SPDX-License-Identifier: Apache-2.0
"""The kernel's own LLVM function: tensor maps by value, the cluster's shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import seam
from ..ground import llvmlite as ir
from ..ground.building import building_kernel, kernel, known_launch
from ..ground.llvmlite import get_or_insert_named_metadata
from ..ground.target import current_arch
from .tracer import Tracer

_I32 = ir.IntType(32)
TENSOR_MAP_BYTES = ir.ArrayType(ir.IntType(8), 128)


class _ByValue(ir.ArgumentAttributes):
    """`byval` with or without its type: libNVVM reads LLVM 7's dialect below sm_100 and a newer one from there."""

    def __init__(self, typed: bool) -> None:
        super().__init__()
        self.add("byval")
        self.align = 64
        self._typed = typed

    def _expand(self, name: str, typ: Any) -> str:
        return f"{name}({typ.pointee})" if name == "byval" and self._typed else name


def _annotate(function: Any, name: str, value: Any) -> None:
    module = function.module
    node = module.add_metadata((function, ir.MetaDataString(module, name), value))
    get_or_insert_named_metadata(module, "nvvm.annotations").add(node)


def _mark_tensor_maps(function: Any) -> None:
    """Mark tensor maps as 128 bytes by value in the parameter space, which the hardware reads in place."""
    at = [i for i, a in enumerate(function.args) if a.type == TENSOR_MAP_BYTES.as_pointer()]
    if not at:
        return
    newer = int(current_arch().removeprefix("sm_").rstrip("af")) >= 100
    for i in at:
        function.args[i].attributes = _ByValue(newer)
    module = function.module
    _annotate(function, "grid_constant", module.add_metadata([_I32(i + 1) for i in at]))


def _add_exits(function: Any) -> None:
    """Put what a kernel's threads do at its end before each of its returns."""
    exits = kernel().exits if building_kernel() else []
    for block in list(function.blocks) if exits else []:
        if isinstance(block.terminator, ir.Ret):
            block.instructions.pop()
            block.terminator = None
            builder = ir.IRBuilder(block)
            for context, what in exits:
                with seam.running(Tracer(context, builder)):
                    what()
            builder.ret_void()


def marking(set_cuda_kernel: Callable[[Any], None]) -> Callable[[Any], None]:
    """Make of Numba's `set_cuda_kernel`, which marks a function as a kernel, one that says the rest of it too; of a
    kernel that is not this library's there is nothing to say."""

    def mark(function: Any) -> None:
        set_cuda_kernel(function)
        _mark_tensor_maps(function)
        _add_exits(function)
        cluster, _ = known_launch()
        if cluster is not None:
            for axis, n in zip("xyz", cluster):
                _annotate(function, f"cluster_dim_{axis}", _I32(n))

    return mark
