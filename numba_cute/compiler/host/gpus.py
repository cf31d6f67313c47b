# SPDX-License-Identifier: Apache-2.0
"""Find the CUDA of this machine: the driver, its GPUs, the compiler. Asking needs none of it."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver as bindings

from ..ground.numba_cuda import NvvmSupportError, nvvm

Version = tuple[int, int]


def _ask(call: Any, *args: Any) -> Any:
    """Call the driver. OSError: it says that something is wrong, or is not there."""
    try:
        code, *values = call(*args)
    except RuntimeError as e:  # there is no library of the driver's
        raise OSError("CUDA's driver was not found") from e
    if code != bindings.CUresult.CUDA_SUCCESS:
        raise OSError(f"the driver says {code.name}")
    return values[0] if values else None


def driver_version() -> tuple[Version | None, str]:
    """Return the newest CUDA that the driver runs; None where there is no driver, and why."""
    try:
        _ask(bindings.cuInit, 0)
        version = _ask(bindings.cuDriverGetVersion)
        return (version // 1000, version % 1000 // 10), ""
    except OSError as e:
        return None, str(e)


def gpus_here() -> list[tuple[str, Version, int, int]]:
    """Return of each GPU its name, compute capability, bytes of memory, and SMs. OSError: there is no driver."""
    found = []
    at = bindings.CUdevice_attribute
    for ordinal in range(_ask(bindings.cuDeviceGetCount)):
        device = _ask(bindings.cuDeviceGet, ordinal)
        major, minor, sms = (
            _ask(bindings.cuDeviceGetAttribute, attribute, device)
            for attribute in (
                at.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, at.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                at.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
            )
        )  # fmt: skip
        name = _ask(bindings.cuDeviceGetName, 128, device).split(b"\0")[0].decode()
        found.append((name, (major, minor), _ask(bindings.cuDeviceTotalMem, device), sms))
    return found


def nvvm_version() -> tuple[Version | None, str]:
    """Return the version of the IR that libNVVM takes; None where it is not installed, and why."""
    try:
        major, minor, *_ = nvvm.NVVM().get_ir_version()
        return (major, minor), ""
    except (NvvmSupportError, RuntimeError, OSError) as e:  # what finds it, or loads it, fails by one of these
        return None, f"not found ({type(e).__name__})"
