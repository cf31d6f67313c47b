# SPDX-License-Identifier: Apache-2.0
"""`NUMBA_ENABLE_CUDASIM=1`: Numba's own switch, on this library's simulator.

Numba then replaces `numba.cuda` by a simulator of one OS thread a CUDA thread, without warps, TMA or tensor cores.
Its kernels keep their form here (`@cuda.jit`, `kernel[grid, block]`, device arrays) and run in ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from numba import config, cuda

from ..seam import CuteError


def enabled() -> bool:
    return bool(config.ENABLE_CUDASIM)


def install(simulate: Callable[[Any], Any]) -> None:
    """Run the kernels of Numba's simulated `cuda` by `simulate(kernel)[grid, block, stream, smem](*args)`."""
    from numba.cuda.simulator.kernel import FakeCUDAKernel

    original = FakeCUDAKernel.__call__

    def call(self: Any, *args: Any) -> None:
        if self._device or self.grid_dim is None:
            original(self, *args)
            return
        launch = simulate(self)[self.grid_dim, self.block_dim, self.stream, self.dynshared_size]
        launch(*(_plain(a) for a in args))

    FakeCUDAKernel.__call__ = call
    cuda.jit = _jit(cuda.jit)


def _plain(arg: Any) -> Any:
    """The NumPy array in what Numba's simulator calls a device array."""
    inner = getattr(arg, "_ary", None)
    return inner if isinstance(inner, np.ndarray) else arg


def _jit(original: Callable[..., Any]) -> Callable[..., Any]:
    """`cuda.jit`, leaving out the options that only mean something to the real compiler (launch_bounds, …)."""
    known = signature(original).parameters

    @functools.wraps(original)
    def jit(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **{k: v for k, v in kwargs.items() if k in known})

    return jit


def _unavailable(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise CuteError(f"cute.{name} needs the compiler, which NUMBA_ENABLE_CUDASIM=1 turns off: unset it")

    return refuse


compile = _unavailable("compile")
inspect = _unavailable("inspect")
inspect_layouts = _unavailable("inspect_layouts")
launch = _unavailable("launch")
