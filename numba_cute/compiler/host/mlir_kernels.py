# SPDX-License-Identifier: Apache-2.0
"""Kernels and device functions that numba-cuda-mlir's `cuda.jit` was given and that are this library's: numba-cuda's,
which take that package's options, types, launch configurations, arrays and streams."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from ...seam import CuteError
from ...seam.ground.counterparts import TOLD
from ...seam.ground.naming import described
from ..ground import ownership
from ..ground.numba import cuda
from ..ground.numba_cuda import CUDADispatcher, typeof_impl
from . import elsewhere
from .cluster import copied
from .launching import Launch
from .mlir_names import PACKAGE, numba_type, of_numba, type_of_array
from .native import arrays

_SAME = (
    "device", "debug", "fastmath", "lineinfo", "max_registers", "launch_bounds", "forceinline",
    "shared_memory_carveout",
)  # fmt: skip
"""Options of that package's `cuda.jit` that numba-cuda has, with their meaning."""
_NOTHING = (
    "cache", "signature", "annotations_as_signatures", "no_cpython_wrapper", "nopython", "_nrt", "fast_math", "opt",
    "_lto_explicit", "_dbg_optnone",
)  # fmt: skip
"""Options that its `cuda.jit` has followed when the kernel is made, or that say nothing of ours."""


class MlirKernel(CUDADispatcher):
    """A kernel, or a device function, of numba-cuda's that numba-cuda-mlir's `cuda.jit` gives for a function of this
    library. It is configured, and compiled for signatures, as one of that package."""

    def configure(
        self, griddim: Any, blockdim: Any, stream: Any = None, sharedmem: Any = None, cluster: Any = None
    ) -> Any:
        """Return the kernel with a launch configuration, as that package's `kernel[grid, block, …]` spells it."""
        stream, sharedmem = 0 if stream is None else stream, 0 if sharedmem is None else sharedmem
        if cluster is None:
            return super().configure(griddim, blockdim, stream, sharedmem)
        known = self.__dict__.setdefault("_cute_clusters", {})
        key = griddim, blockdim, stream, sharedmem, cluster
        if key not in known:
            known[key] = Launch(self, griddim, blockdim, cluster, sharedmem, stream)
        return known[key]

    def __getitem__(self, given: Any) -> Any:
        if not isinstance(given, tuple) or not 2 <= len(given) <= 5:
            raise CuteError(f"kernel[{described(given)}]: give grid, block, and optionally stream, smem and cluster")
        return self.configure(*given)

    def compile(self, sig: Any, abi_info: Any = None, output: Any = None) -> Any:
        """Compile the kernel for a signature, of that package's types or numba-cuda's."""
        if abi_info is not None or output is not None:
            name = self.py_func.__name__
            raise CuteError(
                f"{name}: it uses numba_cute, so numba-cuda compiles it: cute.compile({name}, …).ptx is its PTX"
            )
        return super().compile(_numba_types(sig))

    def compile_device(self, args: Any, return_type: Any = None) -> Any:
        """Compile the device function for types of arguments, of that package or numba-cuda."""
        return super().compile_device(_numba_types(args), return_type)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(_dispatchers(), name):
            raise AttributeError(
                f"{self.py_func.__name__}.{name}: the kernel uses numba_cute, so numba-cuda compiles it, whose kernels "
                f"have no {name}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _dispatchers() -> Any:
    return sys.modules[f"{PACKAGE}.descriptor"].MLIRDispatcher


def _numba_types(sig: Any) -> Any:
    return tuple(map(numba_type, sig)) if isinstance(sig, (tuple, list)) else sig


def made(py_func: Any, given: dict[str, Any]) -> MlirKernel:
    """Make the kernel, or the device function, of a function of this library. given: the options of that package's
    `cuda.jit`. CuteError: one that says what numba-cuda cannot do."""
    plain = cuda.jit(py_func, **_options(py_func.__name__, given))
    return MlirKernel(py_func, targetoptions=plain.targetoptions)


def _options(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return numba-cuda's options for those of that package."""
    usual = {o.name: o.default_value for o in sys.modules[f"{PACKAGE}.decorators"]._get_schema()}
    asked = {n: v for n, v in given.items() if n not in _NOTHING and v != usual.get(n, _dispatchers)}
    options: dict[str, Any] = {}
    for option, value in asked.items():
        if option in _SAME:
            options[option] = value
        elif option == "opt_level" and value == 0:
            options["opt"] = False
        elif option == "inline" and value in ("always", "never"):
            options["inline"] = value
        elif option == "link" and all(isinstance(x, str) for x in value):
            options["link"] = value
        elif option == "lto":
            options |= {"lto": value} if given.get("_lto_explicit") else {}
        elif value:
            raise CuteError(
                f"cuda.jit({option}={value!r}): kernel {name} uses numba_cute, so numba-cuda compiles it, which does "
                f"not have that option{_INSTEAD.get(option, '')}"
            )
    return options


_INSTEAD = {
    "chip": ": cute.compile(kernel, …, arch=) compiles for a target",
    "cc": ": cute.compile(kernel, …, arch=) compiles for a target", "extensions": ": its extensions are others",
    "link": ": give the names of files", "opt_level": ": opt_level 0 and 3 are known to it",
}  # fmt: skip


def twin(dispatcher: Any) -> MlirKernel:
    """Return what numba-cuda makes of the function of a plain kernel, or device function, of that package: a kernel of
    this library calls it, a launch gives it objects of this library, or it is simulated."""
    found: MlirKernel | None = vars(dispatcher).get("_cute_twin")
    if found is None:
        function = dispatcher.py_func
        if not ownership.owns(function, ()):  # which numba-cuda alone would read as its own, and not know its names
            function = copied(function)
            function.__cute_compiled__ = True
        found = dispatcher._cute_twin = made(function, dispatcher.targetoptions)
    return found


def _told(value: Any) -> Any:
    return twin(value) if isinstance(value, _dispatchers()) else of_numba(value)


def classes() -> tuple[Any, ...]:
    """Find the classes of that package that `meet` takes. AttributeError, ImportError: one is not there."""
    descriptor: Any = sys.modules[f"{PACKAGE}.descriptor"]
    arrays = importlib.import_module(f"{PACKAGE}.numba_cuda.cudadrv.devicearray")
    hints = importlib.import_module(f"{PACKAGE}.numba_cuda.args")
    of_arrays = arrays.DeviceNDArrayBase, arrays.DeviceNDArray
    return descriptor.MLIRDispatcher, descriptor._ArgMarshaller, *of_arrays, hints.ArgHint


def meet(kernels: Any, launch: Any, any_array: Any, array: Any, hint: Any) -> None:
    """Know that package's objects from now on: names in kernels, arguments, launches in a simulation. The parameters:
    what `classes` found."""
    TOLD.append(_told)
    arrays.OF_NUMBA.add(array)
    typeof_impl.register(any_array)(lambda x, c: type_of_array(x))
    typeof_impl.register(hint)(lambda x, c: typeof_impl(x.value, c))
    typeof_impl.register(kernels)(lambda x, c: typeof_impl(twin(x), c))
    elsewhere.also(launch, "__call__", _hand)


def _hand(launcher: Any, configured: Any, *args: Any) -> None:
    """Give a launch of that package's to who makes it."""
    where = configured._available_launch_config
    options = {"grid": where["grid"], "block": where["block"], "smem": where["sharedmem"] or 0}
    if where["cluster"] is not None:
        options["cluster"] = where["cluster"]
    elsewhere.hand(launcher, twin(configured._dispatcher), args, {}, options)


# ---------------------------------------------------------------- what is changed in that package


def deciding(new: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the `__new__` of that package's dispatchers one that gives numba-cuda's for this library's functions."""

    def make(cls: type, py_func: Any = None, targetoptions: Any = None) -> Any:
        if cls is _dispatchers() and owns(py_func):
            return made(py_func, targetoptions or {})
        return new(cls)

    return make


def launching(call: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the call of that package's launch configurations one that launches by numba-cuda what turns out to be
    this library's: a kernel that names it in a function that stands further down, or that is given objects of it.

    Whose a kernel is that was plain when it was made is asked until it has been compiled: what its names stand for then
    is what it means, as for any kernel. A plain kernel's launches pay for a look at the classes of their arguments.
    """
    plain = _PLAIN

    def __call__(self: Any, *args: Any) -> Any:
        for argument in args:
            if type(argument) not in plain:
                return _launched(call, self, args)
        dispatcher = self._dispatcher
        if getattr(dispatcher, "_cute_plain", plain) is getattr(dispatcher, "_c", None):
            return call(self, *args)
        return _launched(call, self, args)

    return __call__


def _is_plain(dispatcher: Any) -> bool:
    """Say whether a kernel has been compiled as a plain one, since the last recompile()."""
    return getattr(dispatcher, "_cute_plain", _PLAIN) is getattr(dispatcher, "_c", None)


def _launched(call: Callable[..., Any], configured: Any, args: Any) -> Any:
    """Launch what may be this library's."""
    dispatcher = configured._dispatcher
    if type(dispatcher) is not _dispatchers():
        return call(configured, *args)
    if any(map(_is_own, args)) or not _is_plain(dispatcher) and owns(dispatcher.py_func):
        return _launch(configured, args)
    result = call(configured, *args)
    dispatcher._cute_plain = dispatcher._c
    return result


def _launch(configured: Any, args: Any) -> Any:
    """Launch by numba-cuda what is configured as a launch of that package's."""
    where = configured._available_launch_config
    stream = configured._launch_stream if configured._stream_ref is None else configured._stream_ref
    made = twin(configured._dispatcher).configure(
        where["grid"], where["block"], stream, where["sharedmem"], where["cluster"]
    )
    return made(*args)


def owns(function: Any) -> bool:
    """Say whether a function is this library's: not, if it names what raises when it is asked what it is."""
    return _answer(lambda: ownership.owns(function, ()))


def _answer(ask: Callable[[], bool]) -> bool:
    """Ask something of the user's objects. One that raises when it is asked belongs to the user: the answer is no."""
    try:
        return ask()
    except Exception:
        return False


_PLAIN: set[type] = set()
"""Classes of arguments that are not this library's, and hold nothing that may be."""


def _is_own(argument: Any) -> bool:
    found = _answer(lambda: ownership.is_own(argument))
    if not found and not isinstance(argument, ownership.HOLDING):
        _PLAIN.add(type(argument))
    return found
