# SPDX-License-Identifier: Apache-2.0
"""The only part that knows Numba, llvmlite and the CUDA tools. Importing it teaches Numba this library's types."""

from .host import cudasim

if cudasim.enabled():
    from .host.cudasim import cluster_shape, compile, inspect, inspect_layouts, launch
else:
    from . import pipeline  # noqa: F401  (these register)
    from .bridge import assign, builtins, calls, struct_operators, structs, typeofs  # noqa: F401
    from .host import caching, streams  # noqa: F401
    from .host.cluster import cluster_shape
    from .host.launch import launch
    from .host.offline import compile
    from .inspection.inspect import inspect, inspect_layouts
    from .passes import literals  # noqa: F401
from .host.result import Compiled, PerformanceWarning

__all__ = [
    "Compiled",
    "PerformanceWarning",
    "cluster_shape",
    "compile",
    "inspect",
    "inspect_layouts",
    "launch",
]
