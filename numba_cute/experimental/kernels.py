# SPDX-License-Identifier: Apache-2.0
"""`kernel`: kernels whose plain tensors TMA copies.

Names and parameters are those that NVIDIA documents of `cute.experimental`."""

from __future__ import annotations

from typing import Any

from ..compiler import compile as compile, jit as jit, taking_tensors
from ..seam.guards.kinds import UserFunction
from .tensors import ARGUMENTS

__all__ = ["compile", "jit", "kernel"]


def kernel(function: UserFunction = None, **options: Any) -> Any:
    """Decorate a function as a kernel that takes plain tensors and copies them by TMA: ``@cute.experimental.kernel``.

    function: the kernel's function. options: those of `cuda.jit`, as ``launch_bounds=(384, 1)`` or ``cache=True``. It
    is launched, simulated and compiled as any other kernel, ``kernel[grid, block](…)``, `cute.launch`, `cute.simulate`,
    `cute.compile`. Its tensors in global memory are GlobalTensors in it, for which `tma_load` and `tma_store` need no
    atom: the maps that they ask for are found while the kernel is compiled, made on the host, and passed beside its
    arguments. Raises CuteError, when it is compiled or launched, for tensors that TMA cannot copy. sm_90 where TMA is
    used.

    >>> from numba_cute import experimental as ext
    >>> @ext.kernel
    ... def kernel(x):
    ...     x[arch.thread_idx()[0]] = 7
    >>> x = np.zeros(4, np.int32)
    >>> cute.simulate(kernel)[1, 4](cute.runtime.from_dlpack(x, assumed_align=16))
    >>> x
    array([7, 7, 7, 7], dtype=int32)
    """
    if function is None:
        return lambda f: kernel(f, **options)
    return taking_tensors(getattr(function, "py_func", function), options, ARGUMENTS)
