# SPDX-License-Identifier: Apache-2.0
"""numba-cuda-mlir, where a program imports it, before or after this library: what is changed in it, and why. Nothing
here imports it, and what knows it is imported with it.

Its `cuda.jit` gives numba-cuda's kernels for functions of this library (`host/mlir_kernels.py`), and its own for all
others. Another version than those that this is written for keeps all its own, and refuses a function of this library.
"""

from __future__ import annotations

import sys
from typing import Any

from ..seam import CuteError
from .ground.versions import NUMBA_CUDA_MLIR as MLIR
from .patches import Patch, apply

_MODULE = "numba_cuda_mlir.descriptor"
"""The module that has its kernels and their launches."""


def patches() -> tuple[Patch, ...]:
    """List what is changed in numba-cuda-mlir, which is loaded."""
    from .host import mlir_kernels

    of: Any = sys.modules[_MODULE]
    jit: Any = sys.modules["numba_cuda_mlir.decorators"]
    kernels, launch = of.MLIRDispatcher, of._ArgMarshaller
    return (
        Patch(
            kernels, "__new__", mlir_kernels.deciding, digest="eb5c641e77c00d5e", added=True,
            why="to compile its own kernels by numba-cuda", reads=(kernels.__init__, jit.mlir_jit, jit._get_schema),
        ),
        Patch(
            launch, "__call__", mlir_kernels.launching, digest="d3203d62e208e60f",
            why="to launch kernels that are given its objects", reads=(launch.__init__, kernels._configure_cached),
        ),
    )  # fmt: skip


def watch() -> None:
    """Meet numba-cuda-mlir: now, if it is loaded, else when it is."""
    if _MODULE in sys.modules:
        meet()
    else:
        sys.meta_path.insert(0, _Finder())


def meet() -> None:
    """Change what is listed, or have numba-cuda-mlir refuse functions of this library, if it is another version."""
    from .host import mlir_kernels

    try:
        found = mlir_kernels.classes()
        apply(patches(), MLIR)
    except CuteError as e:
        _refuse(e)
    except (AttributeError, ImportError) as e:
        _refuse(MLIR.refused(str(e), "changes its kernels"))
    else:
        mlir_kernels.meet(*found)


def _refuse(why: CuteError) -> None:
    from .host import mlir_kernels

    kernels: Any = sys.modules[_MODULE].MLIRDispatcher
    begin = kernels.__init__

    def init(self: Any, py_func: Any, *args: Any, **named: Any) -> None:
        if mlir_kernels.owns(py_func):
            raise CuteError(f"{py_func.__name__}: it uses numba_cute. {why}") from why
        begin(self, py_func, *args, **named)

    kernels.__init__ = init


class _Finder:
    """Has Python find one module as it does, and meets it once it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of the module; None for any other."""
        if name != _MODULE:
            return None
        others = (f.find_spec(name, path, target) for f in sys.meta_path if f is not self)
        spec: Any = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def loading(module: Any) -> None:
                load(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    meet()

            spec.loader.exec_module = loading
        return spec
