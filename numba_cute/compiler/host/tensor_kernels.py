# SPDX-License-Identifier: Apache-2.0
"""Kernels of plain tensors as Numba holds them: their launches bring tensor maps (see mapped.py)."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ...seam import CuteError
from ...seam.ground.naming import described
from ..ground.numba import cuda
from ..ground.numba_cuda import CUDADispatcher
from .kernels import Kernel
from .map_memory import no_memory
from .mapped import mapped


class TensorDispatcher(CUDADispatcher):
    """A kernel that takes plain tensors: `cute.experimental.kernel` makes it."""

    def call(self, args: Any, launch_config: Any) -> None:
        super().call(tuple(mapped(self, args, memory=no_memory)), launch_config)


def taking_tensors(py_func: Any, options: dict[str, Any], takes: Any) -> Kernel:
    """Make the kernel of a function. options: of `cuda.jit`. takes: what makes its arguments: `seeking(args, serial)`
    those that ask for maps, `bringing(args, forms)` those that bring them, `plain(arg)` one whose type Numba knows."""
    if not isinstance(py_func, FunctionType):
        raise CuteError(f"experimental.kernel: {described(py_func)} is not a function")
    vars(py_func)["__cute_arguments__"] = takes
    plain = cuda.jit(**options)(py_func)
    return Kernel(TensorDispatcher(py_func, targetoptions=plain.targetoptions))
