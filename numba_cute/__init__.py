# SPDX-License-Identifier: Apache-2.0
"""CuTe for Numba: layouts, tensors, TMA, tensor cores and pipelines in plain ``@cuda.jit`` kernels."""

import sys as _sys
import typing as _typing

from .seam.ground.collecting import staying as _staying
from .seam.ground.folding import FOLDED as _FOLDED

with _staying:
    from . import (
        arch as arch,
        experimental as experimental,
        inspecting as _inspecting,
        math as math,
        notebooks as _notebooks,  # noqa: F401 - what objects are shown as there
        nvgpu as nvgpu,
        pipeline as pipeline,
        results as _results,  # noqa: F401 - what results are made of
        runtime as runtime,
        tilelang as tilelang,
        utils as utils,
    )
    from .arch.events import *
    from .atoms.atom import *
    from .atoms.copy import *
    from .atoms.copy_atom import *
    from .atoms.gemm import *
    from .atoms.mma_atom import *
    from .atoms.parts import *
    from .compiler import *
    from .dtypes import *
    from .inspecting import *
    from .isa.form.targets import *
    from .layout.algebra import *
    from .layout.basis import *
    from .layout.divides import *
    from .layout.image import *
    from .layout.int_tuple import *
    from .layout.inverses import *
    from .layout.kinds import *
    from .layout.layout import *
    from .layout.leaves import *
    from .layout.mapping import *
    from .layout.modes import *
    from .layout.ordered import *
    from .layout.products import *
    from .layout.recast import *
    from .layout.show import *
    from .layout.slices import *
    from .layout.swizzle import *
    from .layout.tuples import *
    from .math import *
    from .nvgpu.common import CacheEvictionPriority as CacheEvictionPriority
    from .seam import (
        Constexpr as Constexpr,
        CuteError as CuteError,
        InternalError as InternalError,
        PeerError as PeerError,
        const_expr as const_expr,
        range as range,
        range_constexpr as range_constexpr,
    )
    from .seam.ground import names as _names
    from .seam.ground.backend import computed_by as _computed_by
    from .seam.guards import facade as _facade
    from .tensor.algebra import *
    from .tensor.blas import *
    from .tensor.fastdivmod import *
    from .tensor.pointer import *
    from .tensor.printing import *
    from .tensor.ssa import *
    from .tensor.storage import *
    from .tensor.symbolic import *
    from .tensor.tensor import *
    from .tensor.whole import *
    from .timelines import *

_computed_by(lambda trial: _facade.demanded(__name__, "HostBackend", "sim.python.on_host")(trial))

__version__ = "0.2.0"

static = const_expr

# By name, the module that has it; "" for a module itself.
_ON_DEMAND = {
    "autotune": "testing", "compare": "debugging", "debug": "debugging", "kernels": "", "show": "pictures",
    "simulate": "sim", "simulation": "sim", "torch_op": "torch_ops", "testing": "",
}  # fmt: skip

_facade.publish(globals(), arch, experimental, math, nvgpu, pipeline, runtime, tilelang, utils, on_demand=_ON_DEMAND)


if _typing.TYPE_CHECKING:
    from . import ir as ir, kernels as kernels, sim as sim, testing as testing
    from .debugging import compare as compare, debug as debug
    from .pictures import show as show
    from .sim import simulate as simulate, simulation as simulation
    from .testing import autotune as autotune
    from .torch_ops import torch_op as torch_op
else:

    def __getattr__(name: str) -> object:
        """Load a name on demand: the IR, which needs xDSL, the simulator, and tools that measure kernels."""
        if name == "ir":
            return _inspecting.load()
        if name == "sim":
            return _facade.demanded(__name__, name, "")
        if name in _ON_DEMAND:
            return globals().setdefault(name, _facade.demanded(__name__, name, _ON_DEMAND[name]))
        with _FOLDED:
            raise _names.absent_from(__name__, name, _sys._getframe(1))

    def __dir__() -> list[str]:
        return sorted({*globals(), *_ON_DEMAND, "sim"})
