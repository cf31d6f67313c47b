# SPDX-License-Identifier: Apache-2.0
"""What a launch needs beyond Numba's: CuTe arguments, tensor maps by value, clusters, large shared memory.

Plain `kernel[grid, block, stream, smem](…)` gets all of it: a kernel of this library is compiled as a `CuteKernel`. Any
other kernel stays Numba's own (see `ownership`).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba.cuda.compiler as cuda_compiler
import numba.cuda.dispatcher as cuda_dispatcher
from cuda.core import LaunchConfig, ObjectCode, launch as core_launch
from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.cudadrv import devices, driver, nvvm

from ... import dtypes
from ...seam import CuteError
from .. import errors
from ..bridge import tree
from ..bridge.numba_types import TENSOR_MAP_BYTES, Multiple, TensorMapType, Value
from ..emit.casts import HALVES
from ..emit.leaves import dtype_of
from ..emit.tracer import SMEM_MARK
from ..ownership import owns
from . import ptxas
from .cluster import LAUNCHES, checked_cluster
from .result import warn_if_slow
from .target import arch_name, current_arch

_Kernel = cuda_dispatcher._Kernel
_I32 = ir.IntType(32)

# ---------------------------------------------------------------- the kernel's own LLVM function


class _ByValue(ir.values.ArgumentAttributes):
    """`byval` with or without its type: libNVVM reads LLVM 7's dialect below sm_100 and a newer one from there."""

    def __init__(self, typed: bool) -> None:
        super().__init__()
        self.add("byval")
        self.align = 64
        self._typed = typed

    def _expand(self, name: str, typ: Any) -> str:
        return f"{name}({typ.pointee})" if name == "byval" and self._typed else name


def _annotate(function: Any, name: str, value: Any) -> None:
    module = function.module
    node = module.add_metadata((function, ir.MetaDataString(module, name), value))
    cgutils.get_or_insert_named_metadata(module, "nvvm.annotations").add(node)


def _mark_tensor_maps(function: Any) -> None:
    """Tensor maps are 128 bytes by value in the parameter space, which the hardware reads in place."""
    at = [i for i, a in enumerate(function.args) if a.type == TENSOR_MAP_BYTES.as_pointer()]
    if not at:
        return
    newer = int(current_arch().removeprefix("sm_").rstrip("af")) >= 100
    for i in at:
        function.args[i].attributes = _ByValue(newer)
    module = function.module
    _annotate(function, "grid_constant", module.add_metadata([_I32(i + 1) for i in at]))


_building: list[tuple[int, int, int] | None] = []
"""The cluster shapes of the kernels being compiled, innermost last."""


def _set_cuda_kernel(function: Any, _original: Callable[[Any], None] = nvvm.set_cuda_kernel) -> None:
    _original(function)
    _mark_tensor_maps(function)
    cluster = _building[-1] if _building else None
    if cluster is not None:
        for axis, n in zip("xyz", cluster):
            _annotate(function, f"cluster_dim_{axis}", _I32(n))


nvvm.set_cuda_kernel = _set_cuda_kernel  # kernels that are not being built by `building` have nothing to mark
assert cuda_compiler.nvvm is nvvm


class building:
    """While a kernel is compiled: its cluster shape is known to `_set_cuda_kernel`, and errors are explained."""

    def __init__(self, py_func: Any, launch_bounds: Any = None) -> None:
        self.py_func = py_func
        self.threads = launch_bounds[0] if isinstance(launch_bounds, tuple) else launch_bounds

    def __enter__(self) -> None:
        if not _building:
            errors.forget()
        _building.append(getattr(self.py_func, "__cute_cluster__", None))
        LAUNCHES.append((_building[-1], self.threads))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _building.pop()
        LAUNCHES.pop()
        if error is not None:
            errors.explain(error, self.py_func)


class CuteKernel(_Kernel):  # type: ignore[misc]
    """A compiled kernel of this library, specialised for its arguments' types. Calls launch it."""

    def __init__(self, py_func: Any, *args: Any, **kwargs: Any) -> None:
        with building(py_func, kwargs.get("launch_bounds")):
            super().__init__(py_func, *args, **kwargs)
        _assemble(self._codelibrary, py_func.__name__)

    def launch(
        self, args: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0, *, cluster: Any = None,
        pdl: bool = False,
    ) -> None:  # fmt: skip
        launched(self, args, griddim, blockdim, stream, sharedmem, cluster, pdl)

    def _prepare_args(self, ty: Any, val: Any, stream: Any, retr: Any, kernelargs: list[Any]) -> None:
        if isinstance(ty, Value):
            kernelargs.extend(_value_args(ty, val))
        elif isinstance(val, dtypes.Scalar):
            kernelargs.append(_scalar_arg(ty, val))
        elif isinstance(ty, types.BaseTuple):
            for t, v in zip(ty, val):
                self._prepare_args(t, v, stream, retr, kernelargs)
        elif isinstance(ty, types.NoneType):
            kernelargs.append(0)  # the null pointer that Numba passes for it, and numba-cuda does not
        else:
            super()._prepare_args(ty, val, stream, retr, kernelargs)


def _new_kernel(cls: type, py_func: Any = None, argtypes: Any = (), *_: Any, **__: Any) -> Any:
    """Whose kernel it is is decided where it is made: Numba names one class for all."""
    return object.__new__(CuteKernel if cls is _Kernel and owns(py_func, argtypes) else cls)


_Kernel.__new__ = _new_kernel


def _assemble(library: Any, name: str) -> None:
    """Assemble a kernel for which the assembler may have notes, so that they are seen here as in `compile`.

    Numba's own linker is used where there is no ptxas, or one older than libNVVM, or more to link than this PTX.
    """
    ptx = library.get_asm_str()
    plain = not (library._linking_files or library.needs_cudadevrt or library._lto or "g" in library._nvvm_options)
    if not plain or not ("wgmma" in ptx or "setmaxnreg" in ptx):
        return
    cc = library._ensure_cc(None)
    try:
        cubin, said = ptxas.assemble(ptx, arch_name(cc), library._max_registers)
    except CuteError:
        return
    library._cubin_cache[cc] = ObjectCode.from_cubin(cubin, name=name)
    warn_if_slow(name, ptxas.notes(said))


@dataclass(frozen=True)
class Facts:
    """What a launch must know of a compiled kernel: the dynamic shared memory that its allocators take, and the
    cluster shape that it was compiled for. Both stand in the PTX, so that kernels from Numba's disk cache have them."""

    smem: int
    cluster: tuple[int, int, int] | None
    raised: dict[int, int]  # the shared memory limit already set, for each device


def facts(kernel: Any) -> Facts:
    found = getattr(kernel, "_cute_facts", None)
    if found is None:
        ptx = kernel._codelibrary.get_asm_str()
        shape = re.search(r"\.reqnctapercluster (\d+), (\d+), (\d+)", ptx)
        cluster = None if shape is None else (int(shape[1]), int(shape[2]), int(shape[3]))
        found = kernel._cute_facts = Facts(required_smem(ptx), cluster, {})
    return found  # type: ignore[no-any-return]


def required_smem(ptx: str) -> int:
    """The dynamic shared memory that a kernel's allocators use, from the marks in its PTX (see Tracer)."""
    return max((int(n) for n in re.findall(re.escape(SMEM_MARK) + r" (\d+)", ptx)), default=0)


# ---------------------------------------------------------------- arguments


def _value_args(ty: Value, val: Any) -> tuple[Any, ...]:
    """The kernel parameters of a compile-time object, which remembers them: it is immutable, and packing takes long."""
    memory = getattr(val, "__dict__", {})
    packed = memory.get("_cute_packed")
    if packed is None or packed[0] is not ty:
        leaves: list[Any] = []
        tree.align(val, ty.spec, leaves)
        packed = ty, tuple(_leaf_arg(t, leaf, val) for t, leaf in zip(ty.leaves, leaves))
        if memory and not isinstance(val, type):  # a class is no object of its own, and has no leaves to pack
            object.__setattr__(val, "_cute_packed", packed)
    return packed[1]  # type: ignore[no-any-return]


def _leaf_arg(ty: types.Type, leaf: Any, owner: Any) -> Any:
    if isinstance(ty, TensorMapType):
        return tensor_map(leaf)
    if isinstance(leaf, (int, dtypes.Scalar)):
        return _scalar_arg(ty, leaf)
    raise CuteError(f"{type(owner).__name__}: {leaf!r} cannot be a kernel argument")


def _scalar_arg(ty: types.Type, number: Any) -> Any:
    """A number as a kernel's parameter; what the kernel was promised of it is checked."""
    value = number.checked() if isinstance(number, dtypes.Scalar) else number
    if isinstance(ty, Multiple) and value % ty.divisor:
        raise CuteError(f"{number!r} is not a multiple of {ty.divisor}, as the kernel was compiled for")
    if ty in HALVES:
        return ctypes.c_uint16(int(dtypes.converted(value, dtype_of(ty)).view("uint16")))
    if isinstance(ty, types.Float):
        return {64: ctypes.c_double, 32: ctypes.c_float}[ty.bitwidth](value)
    if ty == types.boolean:
        return bool(value)
    return getattr(ctypes, f"c_{types.unliteral(ty)}")(value)


_maps: dict[Any, Any] = {}


def tensor_map(record: Any) -> Any:
    """The record as the 128 bytes that the hardware reads, encoded by the driver (cached: encoding takes 1 us)."""
    from . import tensormap

    found = _maps.get(record)
    if found is None:
        if len(_maps) > 4096:
            _maps.clear()
        found = _maps[record] = tensormap.encode(record)
    return found


# ---------------------------------------------------------------- the launch


def _check_smem(self: Any, cufunc: Any, sharedmem: int) -> int:
    """The dynamic shared memory of this launch: the kernel's own need if the user named none; limits raised."""
    known = facts(self)
    need = sharedmem or known.smem
    if need < known.smem:
        raise CuteError(
            f"smem={sharedmem}: the kernel's allocations take {known.smem} bytes of dynamic shared memory; "
            f"pass smem={known.smem}, or 0 to have it computed"
        )
    device = devices.get_context().device
    if need > 48 * 1024 and known.raised.get(device.id, 0) < need:
        static = cufunc.attrs.shared
        most = device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        if need + static > most:
            raise CuteError(
                f"smem={need}: too much shared memory; with {static} bytes static the device's limit for a CTA is "
                f"{most} bytes, so at most {most - static}"
            )
        from cuda.bindings import driver as bindings

        attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.driver.cuKernelSetAttribute(attribute, need, cufunc.handle, device.id)
        known.raised[device.id] = need
    return need


def _check_grid(griddim: Any, cluster: Any) -> None:
    for axis, g, c in zip("xyz", griddim, cluster):
        if g % c:
            raise CuteError(
                f"grid={tuple(griddim)}: {axis} = {g} is not a multiple of the cluster's {c}; "
                f"round it up to {-(-g // c) * c} and let the kernel ignore the extra CTAs"
            )


def _own_or_given_cluster(kernel: Any, griddim: Any, cluster: Any) -> Any:
    """The cluster shape to launch with: None if the kernel carries its own, which the driver then uses."""
    own = facts(kernel).cluster
    if own is not None and cluster is not None and cluster != own:
        raise CuteError(f"cluster={cluster}: the kernel is compiled for clusters of {own}")
    if own is not None or cluster is not None:
        _check_grid(griddim, own or cluster)
    return None if own is not None else cluster


def launched(
    kernel: Any, args: Any, griddim: Any, blockdim: Any, stream: Any, sharedmem: int, cluster: Any, pdl: bool
) -> None:
    """Launch a compiled kernel, this library's or Numba's own."""
    cluster = _own_or_given_cluster(kernel, griddim, cluster)
    cufunc = kernel._codelibrary.get_cufunc()
    sharedmem = _check_smem(kernel, cufunc, sharedmem)
    if cluster is None and not pdl:
        _Kernel.launch(kernel, args, griddim, blockdim, stream, sharedmem)
        return
    retr: list[Any] = []
    kernelargs: list[Any] = []
    for t, v in zip(kernel.argument_types, args):
        kernel._prepare_args(t, v, stream, retr, kernelargs)
    core_launch(stream, _config(griddim, blockdim, sharedmem, cluster, pdl), cufunc.kernel, *kernelargs)
    for write_back in retr:
        write_back()


def _config(grid: Any, block: Any, smem: int, cluster: Any, pdl: bool) -> LaunchConfig:
    options: dict[str, Any] = {"block": tuple(block), "shmem_size": smem}
    if cluster is not None:  # cuda.core counts the grid in clusters
        options["cluster"] = tuple(cluster)
        grid = tuple(g // c for g, c in zip(grid, cluster))
    if pdl:
        options["is_programmatic_stream_serialization"] = True
    return LaunchConfig(grid=tuple(grid), **options)


class Launch:
    """A kernel with its launch configuration; calling it launches. See `launch`."""

    def __init__(self, kernel: Any, grid: Any, block: Any, cluster: Any, smem: int, stream: Any, pdl: bool) -> None:
        from numba.cuda.dispatcher import _LaunchConfiguration, normalize_kernel_dimensions

        from .streams import core_stream

        grid, block = normalize_kernel_dimensions(grid, block)
        self.kernel, self.grid, self.block = kernel, grid, block
        self.cluster = None if cluster is None else checked_cluster(cluster)
        self.smem, self.pdl = smem, pdl
        self.configuration = _LaunchConfiguration(kernel, grid, block, core_stream(stream), smem)

    def _compiled(self, args: Any) -> Any:
        from numba.cuda.dispatcher import _LAUNCH_CONFIG_KW, _dispatcher

        return _dispatcher.Dispatcher._cuda_call(self.kernel, *args, **{_LAUNCH_CONFIG_KW: self.configuration})

    def __call__(self, *args: Any) -> None:
        compiled = self._compiled(args)
        launched(compiled, args, self.grid, self.block, self.configuration.stream, self.smem, self.cluster, self.pdl)

    def prepare(self, *args: Any) -> Callable[[], None]:
        """Compile, check and pack once; the call that is returned only launches, on the same arguments.

        Arrays must already be on the device: nothing is copied back.
        """
        compiled = self._compiled(args)
        cufunc = compiled._codelibrary.get_cufunc()
        smem = _check_smem(compiled, cufunc, self.smem)
        cluster = _own_or_given_cluster(compiled, self.grid, self.cluster)
        retr: list[Any] = []
        packed: list[Any] = []
        for t, v in zip(compiled.argument_types, args):
            compiled._prepare_args(t, v, self.configuration.stream, retr, packed)
        if retr:
            raise CuteError("prepare() takes device arrays: a host array would have to be copied at each launch")
        config = _config(self.grid, self.block, smem, cluster, self.pdl)
        stream, kernel = self.configuration.stream, cufunc.kernel
        keep = args  # what the packed pointers point to lives as long as the prepared call

        def call(_keep: Any = keep) -> None:
            core_launch(stream, config, kernel, *packed)

        return call


def launch(kernel: Any, *, grid: Any, block: Any, cluster: Any = None, smem: int = 0, stream: Any = 0,
           pdl: bool = False) -> Launch:  # fmt: skip
    """A launch with what `kernel[grid, block, stream, smem]` cannot say: ``launch(kernel, grid=…, …)(*args)``.

    grid, block: ints or tuples, the grid counted in CTAs. cluster: CTAs of a cluster, as ints (sm_90). smem: bytes
    of dynamic shared memory; 0 takes what the kernel's SmemAllocator needs. pdl: programmatic dependent launch.
    """
    return Launch(kernel, grid, block, cluster, smem, stream, pdl)
