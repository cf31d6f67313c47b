# SPDX-License-Identifier: Apache-2.0
"""The only part that knows Numba, llvmlite and the CUDA tools. Importing it teaches Numba this library's types."""

from . import cudasim

if cudasim.enabled():
    from .cudasim import cluster_shape, compile, inspect, inspect_layouts, launch
else:
    from . import (  # noqa: F401  (they register)
        assign,
        builtins,
        caching,
        calls,
        literals,
        pipeline,
        streams,
        struct_operators,
        structs,
        typeofs,
    )
    from .cluster import cluster_shape
    from .inspect import inspect, inspect_layouts
    from .launch import launch
    from .offline import compile
from .result import Compiled, PerformanceWarning

__all__ = [
    "Compiled",
    "PerformanceWarning",
    "cluster_shape",
    "compile",
    "inspect",
    "inspect_layouts",
    "launch",
]
