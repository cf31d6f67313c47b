# SPDX-License-Identifier: Apache-2.0
"""Launch a function of the driver's: what is checked of a launch's setting, and how the driver is asked.

Nothing here knows who compiled it, or whose call it is: `launching.py` makes a `Function` of Numba's kernels.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

from cuda.bindings import driver as bindings

from ...isa.form.limits import enough_smem
from ...isa.form.targets import PORTABLE_CLUSTER
from ...seam import CuteError
from ...seam.ground.records import dataclass
from ..ground.numba import devices
from ..ground.numba_cuda import driver
from .facts import Facts
from .failed import LaunchFailed
from .native import packing
from .native.driver import driver as native_driver, function_of
from .native.plans import Setting


@dataclass(frozen=True)
class Function:
    """A function that is loaded on the current device. handle: the driver's. static_smem: the bytes of shared memory
    that it declares. facts: what else a launch must know of it."""

    handle: Any
    static_smem: int
    facts: Facts


def _check_smem(function: Function, smem: int) -> int:
    """Return the dynamic shared memory of this launch: the kernel's own need if the user named none; limits raised."""
    known = function.facts
    need = enough_smem(smem, known.smem)
    device = devices.get_context().device
    if need > 48 * 1024 and known.raised.get(device.id, 0) < need:
        static, most = function.static_smem, device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        if need + static > most:
            raise CuteError(
                f"smem={need}: too much shared memory; with {static} bytes static the device's limit for a CTA is "
                f"{most} bytes, so at most {most - static}"
            )
        attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.driver.cuKernelSetAttribute(attribute, need, function.handle, device.id)
        known.raised[device.id] = need
    return need


def _check_grid(griddim: Any, cluster: Any) -> None:
    for axis, g, c in zip("xyz", griddim, cluster):
        if g % c:
            raise CuteError(
                f"grid={tuple(griddim)}: {axis} = {g} is not a multiple of the cluster's {c}; "
                f"round it up to {-(-g // c) * c} and let the kernel ignore the extra CTAs"
            )


def _own_or_given_cluster(own: Any, griddim: Any, cluster: Any, fallback: Any) -> Any:
    """Return the cluster shape to launch with: None if the kernel carries its own, which the driver then uses."""
    if own is not None and cluster is not None and cluster != own:
        raise CuteError(f"cluster={cluster}: the kernel is compiled for clusters of {own}")
    if own is not None and fallback is not None:
        raise CuteError(
            f"fallback_cluster={fallback}: the kernel is compiled for clusters of {own} alone; give it no "
            "cute.cluster_shape, and the launch cluster="
        )
    if own is not None or cluster is not None:
        _check_grid(griddim, own or cluster)
    return None if own is not None else cluster


def _allow_cluster(function: Function, shape: Any) -> None:
    """Let a function run in clusters of more than 8 CTAs, if such are launched."""
    known, device = function.facts, devices.get_context().device
    x, y, z = shape or known.cluster or (1, 1, 1)
    if x * y * z > PORTABLE_CLUSTER and device.id not in known.large:
        attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        driver.driver.cuKernelSetAttribute(attribute, 1, function.handle, device.id)
        known.large.add(device.id)


def settled(function: Function, setting: Setting) -> Setting:
    """Check a launch's setting against the function and the device, and fill in what the function knows itself."""
    known = function.facts
    cluster = _own_or_given_cluster(known.cluster, setting.grid, setting.cluster, setting.options.fallback_cluster)
    _allow_cluster(function, cluster)
    smem = _check_smem(function, setting.smem)
    return replace(setting, handle=function_of(function.handle), cluster=cluster, smem=smem)


def submit(setting: Setting, stream: int, parameters: list[Any], name: str) -> None:
    """Give a launch to the driver. name: of the kernel. LaunchFailed: the driver refuses it."""
    data, offsets = packing.block(parameters)
    values = ctypes.create_string_buffer(len(data) + packing.MAP)
    start = ctypes.addressof(values)
    start += -start % packing.MAP
    ctypes.memmove(start, data, len(data))
    pointers = (ctypes.c_void_p * max(1, len(offsets)))(*(start + o for o in offsets))
    config = setting.config(stream)
    code = native_driver().launch(ctypes.addressof(config), setting.handle, ctypes.addressof(pointers), None)
    if code:
        error = bindings.CUresult(code)
        said = bindings.cuGetErrorString(error)[1]
        why = said.decode() if isinstance(said, bytes) else "no description"
        what = f"{name} with grid {tuple(setting.grid)}, block {tuple(setting.block)}"
        raise LaunchFailed(
            code, f"{error.name}: {why}; launch of {what} and {setting.smem} bytes of dynamic shared memory"
        )  # fmt: skip
