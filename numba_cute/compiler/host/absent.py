# SPDX-License-Identifier: Apache-2.0
"""Go on where there is no compiler to teach: with `NUMBA_ENABLE_CUDASIM=1`, and where numba-cuda is not installed.

With that setting `numba.cuda` is Numba's own simulator, which this library leaves as it is; without numba-cuda, which
has no wheels for macOS, it is what numba itself brings. What needs the compiler refuses. The host's part of this
library and `cute.simulate(kernel)` need nothing of Numba, and work as ever.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ...seam import CuteError
from ..ground.numba import config, cuda
from . import cluster
from .kernels import Kernel


def missing() -> str:
    """Say why there is no compiler, or nothing if there is one."""
    if config is None:
        return "and so numba-cuda, which is not installed here (it has no wheels for macOS)"
    return "which NUMBA_ENABLE_CUDASIM=1 turns off: unset it" if config.ENABLE_CUDASIM else ""


def cluster_shape(*shape: int) -> Callable[[Any], Any]:
    """Decorate a kernel with its cluster shape, as `cluster.cluster_shape` does: `cute.simulate` reads it."""
    mark = cluster.cluster_shape(*shape)

    def marked(kernel: Any) -> Any:
        plain = getattr(kernel, "py_func", kernel)
        function = mark(plain)
        if function is plain:
            return kernel
        if plain is kernel:
            return function
        other = copy.copy(kernel)  # Numba's simulated kernel: no dispatcher that could be made anew
        other.fn = other.__wrapped__ = function
        return other

    return marked


def taking_tensors(py_func: Any, options: dict[str, Any], takes: Any) -> Any:
    """Make the kernel of a function, as `mapped.taking_tensors` does: `cute.simulate` reads what it is marked with."""
    py_func.__cute_arguments__ = takes
    return Kernel(cuda.jit(**options)(py_func))


def unavailable(name: str) -> Callable[..., Any]:
    """Give what stands for `cute.<name>`, which needs the compiler: it refuses."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise CuteError(
            f"cute.{name} needs the compiler, {missing()}; cute.simulate(kernel)[grid, block](…) runs the kernel "
            "without it"
        )

    return refuse


compile = unavailable("compile")
inspect_layouts = unavailable("inspect_layouts")
inspect_ptx = unavailable("inspect_ptx")
launch = unavailable("launch")
