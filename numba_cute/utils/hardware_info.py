# SPDX-License-Identifier: Apache-2.0
"""Facts about the GPU, or the target that is compiled for: its processors, its cache, and its room for clusters."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, cast

from ..isa.form.limits import check_cluster
from ..isa.form.targets import LARGEST_CLUSTER, PORTABLE_CLUSTER, Product, Target, asked
from ..seam import CuteError

__all__ = ["HardwareInfo"]


class HardwareInfo:
    """Facts about one GPU, asked of the CUDA driver. device_id: its ordinal.

    While a kernel or host function is compiled for a named target or simulated, they are of that target: of the first
    GPU among `cute.target(arch).products`, whichever GPU is here. target: that target, else None. device: None then.

    >>> with cute.simulation(arch="sm_90a", sms=132):
    ...     print(utils.HardwareInfo().get_device_multiprocessor_count())
    132
    """

    def __init__(self, device_id: int = 0) -> None:
        self.target, self.device = asked(), cast(Any, None)
        if self.target is not None:
            return
        try:
            from cuda.core import Device

            self.device = Device(device_id)
            with _current(self.device):  # its context is made, if there was none
                pass
        except Exception as e:
            raise CuteError(f"HardwareInfo: device_id {device_id}: no such GPU here ({e})") from e

    @staticmethod
    def _product(target: Target) -> Product:
        """Return the GPU that stands for a target."""
        if not target.products:
            raise CuteError(f"HardwareInfo: no GPU of {target.name} is known, whose SMs could be counted")
        return target.products[0]

    def get_device_multiprocessor_count(self) -> int:
        """Count the SMs of the GPU."""
        if self.target is not None:
            return self._product(self.target).sms
        return int(self.device.properties.multiprocessor_count)

    def get_l2_cache_size_in_bytes(self) -> int:
        """Return the bytes of the L2 cache."""
        if self.target is None:
            return int(self.device.properties.l2_cache_size)
        product = self._product(self.target)
        if not product.l2:
            raise CuteError(f"HardwareInfo: the L2 cache of {product.name} ({self.target.name}) is not known")
        return product.l2

    def get_max_active_clusters(self, cluster_size: int) -> int:
        """Count the clusters of `cluster_size` (1 to 16) CTAs that the GPU runs at once, one CTA to an SM.

        Uneven GPCs may leave SMs idle for clusters of more than two, which only the GPU itself tells: of a target it
        is what all SMs hold.
        """
        if not isinstance(cluster_size, int) or not 1 <= cluster_size <= LARGEST_CLUSTER:
            raise CuteError(
                f"get_max_active_clusters: cluster_size {cluster_size!r} must be 1 to {LARGEST_CLUSTER} CTAs"
            )
        if self.target is not None:
            check_cluster(self.target, (cluster_size,))
        if self.target is not None or cluster_size == 1:
            return self.get_device_multiprocessor_count() // cluster_size
        return _max_active_clusters(int(self.device.device_id), cluster_size)


_PROBE = ".version 7.8\n.target {}\n.address_size 64\n.visible .entry probe()\n{{ ret; }}\n\0"
"""PTX of a kernel that does nothing, which the driver assembles itself: to load NVRTC for it takes 50 ms."""


def probe(target: str) -> bytes:
    """Return the PTX of a kernel that does nothing, which a driver on any later GPU assembles too."""
    return _PROBE.format(target).encode()


@contextlib.contextmanager
def _current(device: Any) -> Iterator[None]:
    """Make a GPU the current one, for as long as the context lasts: a process that works on another goes on there."""
    from cuda.bindings import driver

    error, before = driver.cuCtxGetCurrent()
    device.set_current()
    try:
        yield
    finally:
        if error == driver.CUresult.CUDA_SUCCESS and int(before):
            driver.cuCtxSetCurrent(before)


@functools.cache
def _max_active_clusters(device_id: int, cluster_size: int) -> int:
    from cuda.core import Device

    device = Device(device_id)
    with _current(device):
        return _counted(device, device_id, cluster_size)


def _counted(device: Any, device_id: int, cluster_size: int) -> int:
    """Count the clusters of a GPU, which is the current one."""
    from cuda.core import LaunchConfig, ObjectCode

    ptx = probe("sm_90" if device.compute_capability[0] >= 9 else "sm_80")
    kernel = ObjectCode.from_ptx(ptx).get_kernel("probe")
    # All of an SM's shared memory, so that no two CTAs share one: what a persistent kernel does.
    room = device.properties.max_shared_memory_per_block_optin
    _raise_limit(kernel, room, device_id)
    if cluster_size > PORTABLE_CLUSTER:  # which not every GPU with clusters runs
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
