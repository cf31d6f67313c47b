# SPDX-License-Identifier: Apache-2.0
"""Mapping the ranks' memory side by side, by a driver that stands in for CUDA's and keeps what it is told."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from enum import Enum
from types import SimpleNamespace

import pytest

from numba_cute.compiler.host import peer_memory
from numba_cute.seam import CuteError

SIZE = 1 << 21


class Result(Enum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2


class Location(Enum):
    CU_MEM_LOCATION_TYPE_DEVICE = 1


class Access(Enum):
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3


class Driver:
    """Rank r's memory lies on GPU r, at r << 32. refuses: the call that fails, and at which time."""

    CUresult, CUmemLocationType, CUmemAccess_flags = Result, Location, Access

    def __init__(self, refuses=("", 0), sizes=None, reach=lambda device, other: 1):
        self.refuses, self.sizes, self.reach = refuses, sizes or {}, reach
        self.handles, self.mapped, self.reserved, self.accessed, self.calls = 0, {}, [], [], {}

    def CUmemAccessDesc(self):
        return SimpleNamespace(location=SimpleNamespace(type=None, id=None), flags=None)

    def _said(self, name, *values):
        self.calls[name] = self.calls.get(name, 0) + 1
        failed = self.refuses == (name, self.calls[name])
        return (Result.CUDA_ERROR_OUT_OF_MEMORY if failed else Result.CUDA_SUCCESS, *values)

    def cuMemGetAddressRange(self, address):
        rank = address >> 32
        return self._said("range", rank << 32, self.sizes.get(rank, SIZE))

    def cuMemRetainAllocationHandle(self, address):
        self.handles += 1
        return self._said("handle", address >> 32)

    def cuMemRelease(self, handle):
        self.handles -= 1

    def cuMemGetAllocationPropertiesFromHandle(self, handle):
        location = SimpleNamespace(type=Location.CU_MEM_LOCATION_TYPE_DEVICE, id=handle)
        return self._said("properties", SimpleNamespace(location=location))

    def cuDeviceCanAccessPeer(self, device, other):
        return self._said("peer", self.reach(device, other))

    def cuMemAddressReserve(self, size, *_):
        self.reserved.append(size)
        return self._said("reserve", 1 << 40)

    def cuMemMap(self, at, size, offset, handle, flags):
        said = self._said("map")
        if said[0] is Result.CUDA_SUCCESS:
            self.mapped[at] = (size, offset, handle)
        return said

    def cuMemSetAccess(self, at, size, descriptions, count):
        self.accessed.append((at, size, descriptions[0].location.id, descriptions[0].flags))
        return self._said("access")

    def cuMemUnmap(self, at, size):
        del self.mapped[at]
        return self._said("unmap")

    def cuMemAddressFree(self, at, size):
        self.reserved.remove(size)
        return self._said("free")

    def cuCtxSynchronize(self):
        return self._said("synchronize")


@pytest.fixture
def of(monkeypatch):
    """Map four ranks' memory for GPU 1 by such a driver."""

    def beside(driver, places=(256, 256, 256, 256)):
        monkeypatch.setattr(peer_memory, "bindings", driver)
        return peer_memory.beside([(r << 32) + at for r, at in enumerate(places)], 1)

    monkeypatch.setattr(peer_memory, "current_device", lambda device: nullcontext())
    return beside


def test_each_rank_lies_a_distance_on_and_all_is_given_back(of):
    driver = Driver()
    made = of(driver)
    assert (made.address, made.distance, made.bases) == (1 << 40, SIZE, [r << 32 for r in range(4)])
    assert driver.mapped == {(1 << 40) + r * SIZE: (SIZE, 0, r) for r in range(4)}
    assert driver.accessed == [(1 << 40, 4 * SIZE, 1, Access.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)]
    assert driver.handles == 0, "the mapping holds the memory"
    del made
    gc.collect()
    assert not driver.mapped and not driver.reserved and driver.calls["synchronize"] == 1


@pytest.mark.parametrize("refuses", [("handle", 3), ("reserve", 1), ("map", 1), ("map", 4), ("access", 1)])
def test_what_the_driver_refuses_leaves_nothing_behind(of, refuses):
    driver = Driver(refuses)
    with pytest.raises(CuteError, match="the driver says CUDA_ERROR_OUT_OF_MEMORY"):
        of(driver)
    assert not driver.mapped and (refuses[0] == "reserve" or not driver.reserved)
    assert driver.handles == (1 if refuses[0] == "handle" else 0), "one was not given"


def test_gpus_that_cannot_reach_each_other(of):
    driver = Driver(reach=lambda device, other: 0 if other == 2 else 1)
    with pytest.raises(CuteError, match="device 1 cannot access the memory of device 2, where rank 2's lies.*NCCL"):
        of(driver)
    assert driver.handles == 0 and not driver.reserved


@pytest.mark.parametrize("sizes, places", [({2: 2 * SIZE}, (0, 0, 0, 0)), ({}, (256, 256, 0, 256))])
def test_allocations_that_are_not_alike(of, sizes, places):
    with pytest.raises(CuteError, match="must lie alike in allocations of the same size, and do so at .* bytes, "):
        of(Driver(sizes=sizes), places)


def test_a_context_that_is_lost_is_left_alone(of):
    driver = Driver(("synchronize", 1))
    made = of(driver)
    del made
    gc.collect()
    assert driver.mapped, "nothing can be unmapped any more"


@pytest.mark.parametrize("refuses, found", [(("", 0), True), (("handle", 1), False)])
def test_memory_is_shareable_if_it_has_a_handle(monkeypatch, refuses, found):
    monkeypatch.setattr(peer_memory, "bindings", Driver(refuses))
    assert peer_memory.shareable(1 << 32) is found
