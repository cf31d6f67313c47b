# SPDX-License-Identifier: Apache-2.0
"""A kernel of this library as Numba holds one: its arguments, the assembler's notes, streams of others.

Any other kernel stays Numba's own (see `ownership`). What Numba makes and launches kernels with is wrapped here; the
wrapping itself is in compiler/patches.py.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from cuda.core import ObjectCode

from ... import dtypes
from ...isa.form.targets import named
from ...seam import CuteError
from ...seam.ground.counterparts import counterpart
from ...seam.marks.constexpr import Constexpr
from ...seam.marks.host_objects import as_argument
from ..bridge.given_floats import GivenFloat
from ..bridge.object_types import Value
from ..ground.building import building
from ..ground.memory import memory
from ..ground.numba_cuda import _Kernel, types
from ..ground.ownership import owns
from ..ground.target import arch_name
from . import ptxas
from .arguments import leaf_arguments, scalar_argument, value_arguments
from .configured import launch_of_numba, noted
from .losses import of_lines
from .result import warn_of
from .roles import check_roles
from .streams import core_stream


class CuteKernel(_Kernel):
    """A compiled kernel of this library, specialised for its arguments' types. Calls launch it."""

    _cute_options: dict[str, Any]
    _cute_notes: tuple[str, ...] = ()

    def __init__(self, py_func: Any, *args: Any, **kwargs: Any) -> None:
        self._cute_options = kwargs
        with building(py_func, kwargs.get("launch_bounds")):
            super().__init__(py_func, *args, **kwargs)
            ptx = self._codelibrary.get_asm_str()
            if "setmaxnreg" in ptx:
                target = named(arch_name(self._codelibrary._ensure_cc(None)))
                check_roles(ptx, target, kwargs.get("launch_bounds"))
            found = of_lines(py_func, memory().losses_in(self._codelibrary), ptx)
        self._cute_notes = (*found, *_assemble(self._codelibrary, py_func.__name__))
        warn_of(py_func.__name__, self._cute_notes)

    def launch(self, args: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> None:
        launch_of_numba(self, args, griddim, blockdim, stream, sharedmem)

    @staticmethod
    def _prepare_leaves(ty: Value, leaves: list[Any], owner: Any) -> tuple[Any, ...]:
        return leaf_arguments(ty, leaves, owner)

    def _prepare_args(self, ty: Any, val: Any, stream: Any, retr: Any, kernelargs: list[Any]) -> None:
        if isinstance(val, Constexpr):
            val = val.value
        if isinstance(val, MethodType):
            val = as_argument(val)
        val = counterpart(val)
        if isinstance(ty, types.Literal):  # the value is in the type, and the parameter not read
            kernelargs.append(scalar_argument(types.unliteral(ty), val))
        elif isinstance(ty, GivenFloat):
            kernelargs.append(scalar_argument(types.float64, val))
        elif isinstance(ty, Value):
            kernelargs.extend(value_arguments(ty, val))
        elif isinstance(val, dtypes.Scalar):
            kernelargs.append(scalar_argument(ty, val))
        elif isinstance(ty, types.BaseTuple):
            for t, v in zip(ty, val):
                self._prepare_args(t, v, stream, retr, kernelargs)
        elif isinstance(ty, (types.NoneType, types.Dispatcher)):
            kernelargs.append(0)  # the null pointer that Numba passes for what has no value, and numba-cuda does not
        else:
            super()._prepare_args(ty, val, stream, retr, kernelargs)


def _assemble(library: Any, name: str) -> tuple[str, ...]:
    """Assemble a kernel, as `compile` does, whose code and notes it then has; gives the notes.

    Numba's own linker is used where there is no ptxas, or one older than libNVVM, or more to link than this PTX. With
    it libNVVM runs twice, for a kernel is optimised once more as a whole (lto); without that it forgets what dynamic
    shared memory is aligned to.
    """
    if library._linking_files or library.needs_cudadevrt or "g" in library._nvvm_options:
        return ()
    cc = library._ensure_cc(None)
    try:
        cubin, said = ptxas.assemble(library.get_asm_str(), arch_name(cc), library._max_registers)
    except CuteError:
        return ()
    library._lto = False
    library._cubin_cache[cc] = ObjectCode.from_cubin(cubin, name=name)
    return ptxas.notes(said)


def making_kernels(new: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the `__new__` of Numba's kernels, for which Numba names one class, one that decides whose each is."""

    def make(cls: type, py_func: Any = None, argtypes: Any = (), *_: Any, **__: Any) -> Any:
        return new(CuteKernel if cls is _Kernel and owns(py_func, argtypes) else cls)

    return make


def taking_streams(init: Callable[..., None]) -> Callable[..., None]:
    """Make of the `__init__` of Numba's launch configurations one that takes streams of torch, CuPy and others too.

    Whose a kernel is may be known only when it is called with its arguments, so a plain kernel's complaint waits until
    then.
    """

    def configure(self: Any, dispatcher: Any, griddim: Any, blockdim: Any, stream: Any, sharedmem: Any) -> None:
        try:
            init(self, dispatcher, griddim, blockdim, stream, sharedmem)
        except TypeError as refused:
            foreign = core_stream(stream)
            if foreign is stream:
                raise
            init(self, dispatcher, griddim, blockdim, foreign, sharedmem)
            self.pre_launch_callbacks.append(_only_ours(refused))
        noted(self, stream)

    return configure


def _only_ours(refused: TypeError) -> Callable[[Any, Any], None]:
    def check(kernel: Any, launch_config: Any) -> None:
        if not isinstance(kernel, CuteKernel):
            raise refused
        launch_config.pre_launch_callbacks = [c for c in launch_config.pre_launch_callbacks if c is not check]

    return check
