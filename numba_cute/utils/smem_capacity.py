# SPDX-License-Identifier: Apache-2.0
"""Report the capacity of shared memory, and the amount that a kernel takes."""

from __future__ import annotations

from typing import Any

from ..isa.form.targets import asked, named
from ..seam import CuteError, current_or
from .hardware_info import HardwareInfo

__all__ = ["get_kernel_smem_size", "get_smem_capacity_in_bytes"]


def get_smem_capacity_in_bytes(compute_capability: str | None = None) -> int:
    """Return the most shared memory that one CTA may take, in bytes.

    compute_capability: "90", "sm_90" or "sm_90a"; None: the target that is compiled for or simulated, else the current
    GPU. A kernel's own need is in `cute.compile(…).resources`. Raises CuteError for a name that is not a target.

    >>> utils.get_smem_capacity_in_bytes("sm_90")
    232448
    """
    arch = compute_capability or getattr(current_or(None), "arch", None)
    if arch is not None:
        return named(f"sm_{arch}" if str(arch).isdigit() else arch).smem_per_block
    target = asked()
    if target is not None:
        return target.smem_per_block
    return int(HardwareInfo().device.properties.max_shared_memory_per_block_optin)


def get_kernel_smem_size(kernel: Any) -> int:
    """Return the shared memory that a compiled kernel takes, static and dynamic, in bytes. kernel: of
    `cute.compile`.

    >>> def kernel():
    ...     arch.alloc_smem(cute.Float32, 256).store(1.0)
    >>> utils.get_kernel_smem_size(cute.compile(kernel, (), arch="sm_90a"))
    1024
    """
    resources = getattr(kernel, "resources", None)
    if resources is None:
        raise CuteError(f"get_kernel_smem_size: {kernel!r} is not compiled; give cute.compile(kernel, args)")
    return int(resources.shared + resources.dynamic_shared)
