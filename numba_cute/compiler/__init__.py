# SPDX-License-Identifier: Apache-2.0
"""Know Numba, llvmlite and the CUDA tools, for all of the package. Importing it teaches Numba this library's types."""

from ..isa.form.limits import LaunchWarning
from ..seam.hooks.engines import COMPILER
from ..seam.marks.launches import LAUNCHES
from .host import absent

if absent.missing():
    from .host.absent import (
        cluster_shape,
        compile,
        inspect_layouts,
        inspect_ptx,
        launch,
        taking_tensors as taking_tensors,
    )
else:
    from .ground import versions

    versions.check()
    from . import mlir, patches
    from .bridge import (  # noqa: F401
        attributes,
        builtins,
        calls,
        classes,
        list_operators,
        mixed_arithmetic,
        mixed_comparisons,
        narrow_division,
        objects,
        operators,
        range_steps,
        reference,
        sameness,
        struct_operators,
        structs,
        typeofs,
    )
    from .host.checking import check, likely_wrong
    from .host.cluster import cluster_shape
    from .host.elsewhere import Taken
    from .host.launching import launch
    from .host.offline import compile
    from .host.tensor_kernels import taking_tensors as taking_tensors
    from .inspection.report import inspect_layouts, inspect_ptx
    from .passes import literals  # noqa: F401  (these register)

    patches.apply(patches.PATCHES)
    mlir.watch()
    COMPILER.check, COMPILER.likely_wrong = check, likely_wrong
    LAUNCHES.taken = Taken
from .host.kernels import dsl_user_op, jit, kernel
from .host.result import Compiled, MistakeWarning, PerformanceWarning

COMPILER.compile = lambda kernel, args, arch: compile(kernel, args, arch=arch)

__all__ = [
    "Compiled",
    "LaunchWarning",
    "MistakeWarning",
    "PerformanceWarning",
    "cluster_shape",
    "compile",
    "dsl_user_op",
    "inspect_layouts",
    "inspect_ptx",
    "jit",
    "kernel",
    "launch",
]
