# SPDX-License-Identifier: Apache-2.0
"""from_symmetric and from_multicast, with stand-ins for torch's tensors, its groups and the driver."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_multicast, from_symmetric
from numba_cute.seam import CuteError
from numba_cute.seam.hooks.driver import DRIVER
from numba_cute.tensor import symmetric

MAPPED, DISTANCE, BASE = 1 << 40, 1 << 21, 1 << 30


class Storage:
    def __init__(self, at, nbytes):
        self.data_ptr, self.nbytes = (lambda: at), (lambda: nbytes)


class Tensor:
    """As much of torch.Tensor as is asked. at: its place in an allocation whose data begin 256 bytes in."""

    def __init__(self, shape, strides, dtype="torch.float32", at=0, storage=None, is_cuda=True):
        self.shape, self._strides, self.dtype, self.is_cuda = shape, strides, dtype, is_cuda
        self.device = SimpleNamespace(index=1)
        self._storage = storage or Storage(BASE + 256, 4096)
        self._at = BASE + 256 + at

    def data_ptr(self):
        return self._at

    def stride(self):
        return self._strides

    def untyped_storage(self):
        return self._storage

    def __dlpack_device__(self):
        return 2, 1


class Ranks(symmetric.Ranks):
    """Four ranks, of which this is rank 1. theirs: what the other ranks give differently, by the question's number."""

    def __init__(self, world=4, theirs=None, handle=None):
        self.world, self.rank, self.name, self.asked = world, 1, f"group {id(self)}", 0
        self.theirs, self.handle = theirs or {}, handle

    def gather(self, mine):
        self.asked += 1
        found = ["" if isinstance(mine, str) and r != self.rank else mine for r in range(self.world)]
        for rank, change in self.theirs.get(self.asked, {}).items():
            found[rank] = {**mine, **change} if isinstance(mine, dict) else change
        return found

    def rendezvous(self, x):
        return self.handle or SimpleNamespace(
            buffer_ptrs=[BASE + 256 + (r - 1 << 24) for r in range(self.world)], multicast_ptr=0
        )


class Mapping:
    def __init__(self, addresses, device):
        assert device == 1
        self.address, self.distance = MAPPED, DISTANCE
        self.bases = [a - 256 for a in addresses]
        self.bases[1] = BASE


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    monkeypatch.setattr(DRIVER, "beside", Mapping)
    monkeypatch.setattr(DRIVER, "shareable", lambda address: True)
    monkeypatch.setattr(DRIVER, "base", lambda address: address >> 24 << 24)
    monkeypatch.setattr(symmetric, "_SHARED", {})


def test_the_last_mode_is_the_rank_and_the_rest_is_as_it_was():
    x = Tensor((8, 5), (1, 16), at=64)
    peers = from_symmetric(x, Ranks(), assumed_align=64)
    assert peers.layout == cute.make_layout((8, 5, 4), stride=(1, 16, DISTANCE // 4))
    assert int(peers.iterator.address) == MAPPED + 256 + 64 and peers.element_type == cute.Float32
    own = peers[None, None, 3]
    assert own.shape == (8, 5) and int(own.iterator.address) == MAPPED + 256 + 64 + 3 * DISTANCE


@pytest.mark.parametrize("dtype, width", [("torch.bfloat16", 16), ("torch.float8_e4m3fn", 8), ("torch.int64", 64)])
def test_the_distance_is_in_elements(dtype, width):
    assert from_symmetric(Tensor((4,), (1,), dtype), Ranks()).stride == (1, DISTANCE * 8 // width)


def test_elements_of_four_bits_lie_two_to_a_byte():
    peers = from_symmetric(Tensor((4, 8), (8, 1), "torch.float4_e2m1fn_x2"), Ranks())
    assert peers.layout == cute.make_layout((4, 16, 4), stride=(16, 1, 2 * DISTANCE))


def test_a_storage_is_mapped_once_and_freed_with_it():
    ranks, storage = Ranks(), Storage(BASE + 256, 4096)
    first = from_symmetric(Tensor((8,), (1,), storage=storage), ranks)
    mapping = weakref.ref(next(iter(symmetric._SHARED.values())).side_by_side)
    asked = ranks.asked
    again = from_symmetric(Tensor((8,), (1,), storage=storage), ranks)
    assert ranks.asked == asked, "what the ranks agreed on is not asked again"
    part = from_symmetric(Tensor((4,), (1,), storage=storage, at=16), ranks)
    assert ranks.asked == asked + 1 and int(part.iterator.address) == int(first.iterator.address) + 16
    del storage, first, again
    gc.collect()
    assert mapping() is not None, "a tensor of it lives"
    del part
    gc.collect()
    assert mapping() is None and not symmetric._SHARED


@pytest.mark.parametrize(
    "theirs, says",
    [
        ({1: {2: {"shape": (9, 5)}}}, r"shape of x must be the same on all ranks, and is \(8, 5\) on rank 0, .*empty"),
        ({1: {0: {"dtype": "Float64"}}}, "dtype of x must be the same on all ranks, and is Float64 on rank 0"),
        ({1: {3: {"strides": (5, 1)}}}, "strides of x must be the same on all ranks"),
        ({1: {3: {"place in its storage": 4}}}, "take the same part of it"),
        ({1: {0: {"shareable": False}, 2: {"shareable": False}}}, "x of rank 0, 2 is not symmetric memory.*empty"),
        ({2: {3: "rank 0 is on another host"}}, r"rank 0 is on another host \(said by rank 3\)"),
        ({3: {2: 512}}, r"x begins at different places of the ranks' symmetric memory, \[0, 0, 512, 0\] bytes in"),
        ({4: {0: "devices 0 and 1 have no NVLink"}}, r"devices 0 and 1 have no NVLink \(said by rank 0\)"),
    ],
)  # fmt: skip
def test_what_is_wrong_on_one_rank_is_said_on_all(theirs, says):
    with pytest.raises(CuteError, match=says):
        from_symmetric(Tensor((8, 5), (1, 16)), Ranks(theirs=theirs))


def test_what_this_rank_says_is_its_own(monkeypatch):
    def refused(addresses, device):
        raise CuteError("device 1 cannot access the memory of device 0")

    monkeypatch.setattr(DRIVER, "beside", refused)
    with pytest.raises(CuteError, match="cannot access the memory of device 0$"):
        from_symmetric(Tensor((8, 5), (1, 16)), Ranks())


@pytest.mark.parametrize(
    "x, ranks, says",
    [
        (np.zeros(4), Ranks(), "x, a ndarray .* is not symmetric memory: give a tensor of torch's.*cute.sim.symmetric"),
        (Tensor((4,), (1,), is_cuda=False), Ranks(), "x of rank 0, 1, 2, 3 is not symmetric memory .* on a GPU by"),
        (Tensor((4,), (1,)), Ranks(world=1), "one rank alone, and no peer: .* pass from_dlpack"),
        (Tensor((4,), (1,)), Ranks(handle=SimpleNamespace(buffer_ptrs=[1, 2, 0, 0])), "rank 2, 3 is on another host"),
    ],
)
@pytest.mark.parametrize("make", [from_symmetric, from_multicast])
def test_what_cannot_be_reached_is_refused_with_what_to_do(make, x, ranks, says):
    with pytest.raises(CuteError, match=says) as refused:
        make(x, ranks)
    assert str(refused.value).startswith(make.__name__)


def test_what_torch_says_is_passed_on():
    def refused(x):
        raise RuntimeError("no such pointer\nand a trace")

    ranks = Ranks()
    ranks.rendezvous = refused
    with pytest.raises(CuteError, match="^from_symmetric: torch's rendezvous of x failed: no such pointer$"):
        from_symmetric(Tensor((8, 5), (1, 16)), ranks)
    ranks.rendezvous = lambda x: None
    with pytest.raises(CuteError, match="^from_symmetric: x is not symmetric memory"):
        from_symmetric(Tensor((8, 5), (1, 16)), ranks)


def test_a_multicast_mapping_has_the_same_places():
    at = 7 << 32
    handle = SimpleNamespace(buffer_ptrs=[BASE + 256] * 4, multicast_ptr=at + 256)
    everywhere = from_multicast(Tensor((8, 5), (1, 16), at=64), Ranks(handle=handle))
    assert everywhere.layout == cute.make_layout((8, 5), stride=(1, 16))
    assert int(everywhere.iterator.address) == at + 256 + 64


def test_no_multicast_is_said():
    with pytest.raises(CuteError, match=r"has no multicast mapping: .*use from_symmetric"):
        from_multicast(Tensor((8, 5), (1, 16)), Ranks())


@pytest.mark.parametrize("name", ["from_symmetric", "from_multicast"])
def test_in_a_kernel_they_are_refused(name):
    x = Tensor((8, 5), (1, 16))
    with pytest.raises(CuteError, match=f"{name} in a kernel"):
        cute.simulate(lambda: getattr(cute.runtime, name)(x))[1, 1]()
