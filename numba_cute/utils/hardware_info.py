# SPDX-License-Identifier: Apache-2.0
"""Facts about the GPU: its processors, its cache, and its room for clusters."""

from __future__ import annotations

import functools
import re
from typing import Any

from ..seam import CuteError

__all__ = ["HardwareInfo", "get_kernel_smem_size", "get_smem_capacity_in_bytes"]

# CUDA C++ Programming Guide, "Compute Capabilities": shared memory of a block, in KiB.
_CAPACITY_KIB = {"80": 163, "86": 99, "87": 163, "89": 99, "90": 227, "100": 227, "103": 227, "120": 99, "121": 99}


def get_smem_capacity_in_bytes(compute_capability: str | None = None) -> int:
    """Return the most shared memory that one CTA may take, in bytes.

    compute_capability: "90", "sm_90" or "sm_90a"; None: that of the current GPU. A kernel's own need is in
    `cute.compile(…).resources`.
    """
    if compute_capability is None:
        return int(HardwareInfo().device.properties.max_shared_memory_per_block_optin)
    found = re.fullmatch(r"(?:sm_)?(\d+)[af]?", str(compute_capability))
    if found is None or found[1] not in _CAPACITY_KIB:
        raise CuteError(
            f"get_smem_capacity_in_bytes: compute_capability {compute_capability!r} is not one of "
            + ", ".join(f"sm_{cc}" for cc in _CAPACITY_KIB)
        )
    return _CAPACITY_KIB[found[1]] * 1024


def get_kernel_smem_size(kernel: Any) -> int:
    """Return the shared memory that a compiled kernel takes, static and dynamic, in bytes. kernel: of
    `cute.compile`."""
    resources = getattr(kernel, "resources", None)
    if resources is None:
        raise CuteError(f"get_kernel_smem_size: {kernel!r} is not compiled; give cute.compile(kernel, args)")
    return int(resources.shared + resources.dynamic_shared)


class HardwareInfo:
    """Facts about one GPU, asked of the CUDA driver. device_id: its ordinal."""

    def __init__(self, device_id: int = 0) -> None:
        try:
            from cuda.core import Device

            self.device: Any = Device(device_id)
            self.device.set_current()
        except Exception as e:
            raise CuteError(f"HardwareInfo: device_id {device_id}: no such GPU here ({e})") from e

    def get_device_multiprocessor_count(self) -> int:
        """Count the SMs of the GPU."""
        return int(self.device.properties.multiprocessor_count)

    def get_l2_cache_size_in_bytes(self) -> int:
        """Return the bytes of the L2 cache."""
        return int(self.device.properties.l2_cache_size)

    def get_max_active_clusters(self, cluster_size: int) -> int:
        """Count the clusters of `cluster_size` (1 to 16) CTAs that the GPU runs at once, one CTA to an SM.

        Uneven GPCs may leave SMs idle for clusters of more than two. It needs NVRTC, which the cu12 and cu13 extras
        install.
        """
        if not isinstance(cluster_size, int) or not 1 <= cluster_size <= 16:
            raise CuteError(f"get_max_active_clusters: cluster_size {cluster_size!r} must be 1 to 16 CTAs")
        if cluster_size == 1:
            return self.get_device_multiprocessor_count()
        return _max_active_clusters(int(self.device.device_id), cluster_size)


@functools.cache
def _max_active_clusters(device_id: int, cluster_size: int) -> int:
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions

    device = Device(device_id)
    major, minor = device.compute_capability
    program = Program(
        'extern "C" __global__ void probe() {}', code_type="c++", options=ProgramOptions(arch=f"sm_{major}{minor}")
    )
    kernel = program.compile("cubin").get_kernel("probe")
    # All of an SM's shared memory, so that no two CTAs share one: what a persistent kernel does.
    room = device.properties.max_shared_memory_per_block_optin
    _raise_limit(kernel, room, device_id)
    if cluster_size > 8:  # which not every GPU with clusters runs
        _set_attribute(kernel, "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1, device_id)
    config = LaunchConfig(grid=1, cluster=cluster_size, block=128, shmem_size=room)  # the grid counts clusters
    return int(kernel.occupancy.max_active_clusters(config, stream=device.default_stream))


def _raise_limit(kernel: Any, nbytes: int, device_id: int) -> None:
    """Let a kernel take this much dynamic shared memory (cuda.core 1.2 can only read the limit on CUDA 13.0)."""
    _set_attribute(kernel, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", nbytes, device_id)


def _set_attribute(kernel: Any, name: str, value: int, device_id: int) -> None:
    from cuda.bindings import driver

    attribute = getattr(driver.CUfunction_attribute, name)
    (error,) = driver.cuKernelSetAttribute(attribute, value, driver.CUkernel(int(kernel.handle)), device_id)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise CuteError(f"the driver refused {name} = {value} for a kernel: {error.name}")
