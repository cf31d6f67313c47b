# SPDX-License-Identifier: Apache-2.0
"""Launch kernels with what Numba's launches lack: clusters, large shared memory, programmatic dependent launch.

Plain `kernel[grid, block, stream, smem](…)` of a kernel of this library comes here as well (host/kernel.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda.bindings import driver as bindings
from cuda.core import LaunchConfig, launch as core_launch
from numba.cuda.cudadrv import devices, driver
from numba.cuda.dispatcher import (
    _LAUNCH_CONFIG_KW,
    _dispatcher,
    _Kernel,
    _LaunchConfiguration,
    normalize_kernel_dimensions,
)

from ...seam import CuteError
from ...seam.constexpr import static_arguments
from ...seam.recording import recording
from .cluster import checked_cluster
from .facts import facts
from .mapped import mapped
from .recording import launch_recorded
from .streams import core_stream


def _check_smem(self: Any, cufunc: Any, sharedmem: int) -> int:
    """Return the dynamic shared memory of this launch: the kernel's own need if the user named none; limits raised."""
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
    """Return the cluster shape to launch with: None if the kernel carries its own, which the driver then uses."""
    own = facts(kernel).cluster
    if own is not None and cluster is not None and cluster != own:
        raise CuteError(f"cluster={cluster}: the kernel is compiled for clusters of {own}")
    if own is not None or cluster is not None:
        _check_grid(griddim, own or cluster)
    return None if own is not None else cluster


def launched(
    kernel: Any, args: Any, griddim: Any, blockdim: Any, stream: Any, sharedmem: int, cluster: Any, pdl: bool
) -> None:
    """Launch a compiled kernel, this library's or Numba's own; while a timeline is recorded, what tells it."""
    recorder = recording()
    if recorder is not None and hasattr(kernel, "_cute_options") and not hasattr(kernel, "_cute_records"):
        launch_recorded(
            kernel, griddim, blockdim, recorder,
            lambda twin: launched(twin, args, griddim, blockdim, stream, sharedmem, cluster, pdl),
        )  # fmt: skip
        return
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
    """A kernel with its launch configuration; calling it with the kernel's arguments launches. See `launch`."""

    def __init__(self, kernel: Any, grid: Any, block: Any, cluster: Any, smem: int, stream: Any, pdl: bool) -> None:
        self.given = kernel
        kernel = getattr(kernel, "dispatcher", kernel)
        grid, block = normalize_kernel_dimensions(grid, block)
        self.kernel, self.grid, self.block = kernel, grid, block
        self.cluster = None if cluster is None else checked_cluster(cluster)
        self.smem, self.pdl = smem, pdl
        self.configuration = _LaunchConfiguration(kernel, grid, block, core_stream(stream), smem)

    def _compiled(self, args: Any) -> Any:
        return _dispatcher.Dispatcher._cuda_call(self.kernel, *args, **{_LAUNCH_CONFIG_KW: self.configuration})

    def __call__(self, *args: Any, **named: Any) -> None:
        args = mapped(self.kernel, static_arguments(self.given, args, named))
        compiled = self._compiled(args)
        launched(compiled, args, self.grid, self.block, self.configuration.stream, self.smem, self.cluster, self.pdl)

    def prepare(self, *args: Any, **named: Any) -> Callable[[], None]:
        """Compile, check and pack once; the call that is returned only launches, on the same arguments.

        args, named: the kernel's arguments. Arrays must already be on the device (CuteError): nothing is copied back.
        """
        if recording() is not None:
            raise CuteError("timeline: a prepared launch records nothing: give the launch itself, not its prepare(…)")
        args = mapped(self.kernel, static_arguments(self.given, args, named))
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
    """Prepare a launch with what `kernel[grid, block, stream, smem]` cannot say: ``launch(kernel, grid=…, …)(*args)``.

    kernel: a ``@cuda.jit`` kernel. grid: CTAs, an int or up to three. block: threads of a CTA, likewise. cluster: CTAs
    of a cluster, likewise, at most 16 (sm_90); None for the kernel's own shape. smem: bytes of dynamic shared memory;
    0 takes what the kernel's SmemAllocator needs. stream: Numba's, torch's, CuPy's, an int, or anything with
    `__cuda_stream__`; 0 is the default one. pdl: programmatic dependent launch (sm_90).

    CuteError, here or by the call: a cluster that is none or is not the kernel's, a grid that is no multiple of it,
    less shared memory than the kernel's allocations take, or more than the device has.
    """
    return Launch(kernel, grid, block, cluster, smem, stream, pdl)
