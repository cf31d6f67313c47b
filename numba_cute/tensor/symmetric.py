# SPDX-License-Identifier: Apache-2.0
"""Finding symmetric memory, which each rank of a group has of the same shape: torch's, mapped side by side by the
driver, and the simulator's, which says so by `__cute_symmetric__` and has arrays for it (`peers`, `multicast`)."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

from ..seam import CuteError
from ..seam.hooks.driver import DRIVER
from .dlpack import ArrayInfo, inspect_array

_NEWLINE = "\n"
_PLAIN = (
    "is not symmetric memory with handles: allocate it on a GPU by torch.distributed._symmetric_memory.empty "
    '(symm_mem.empty) of the CUDA backend (symm_mem.set_backend("CUDA")), not by torch.empty, and not by NVSHMEM'
)
_ALIKE = "allocate it on each rank by symm_mem.empty with the same shape and dtype, and take the same part of it"


class Ranks:
    """The ranks of a torch.distributed group. what: who asks, for errors."""

    def __init__(self, group: Any, what: str) -> None:
        import torch.distributed as dist  # here: who has such a tensor has imported torch
        from torch.distributed import _symmetric_memory as memory

        if not dist.is_initialized():
            raise CuteError(
                f"{what}: torch.distributed is not initialized: start with torchrun, and call dist.init_process_group"
                '("nccl", device_id=…) first'
            )
        self._dist, self._memory = dist, memory
        self.group = dist.group.WORLD if group is None else group
        self.world, self.rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        self.name = str(self.group.group_name)

    def gather(self, mine: Any) -> list[Any]:
        """Return what each rank gives."""
        found = [None] * self.world
        self._dist.all_gather_object(found, mine, group=self.group)
        return found

    def rendezvous(self, x: Any) -> Any:
        """Return torch's handle of a symmetric tensor."""
        return self._memory.rendezvous(x, self.group)


class Shared:
    """The memory of one storage on all ranks. handle: torch's. side_by_side: the mapping, once it was asked for. views:
    the shapes, strides, types and places that the ranks agreed on."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.side_by_side: Any = None
        self.views: set[Any] = set()


_SHARED: dict[tuple[int, str], Shared] = {}
"""By the address of a storage and the name of a group."""


def side_by_side(x: Any, group: Any) -> ArrayInfo:
    """Return the memory of a symmetric array on all ranks, as one array whose last mode is the rank."""
    what = "from_symmetric"
    if hasattr(type(x), "__cute_symmetric__"):
        return inspect_array(x.peers)
    info, ranks = _checked(x, group, what)
    shared = _shared(x, info, ranks, what)
    if shared.side_by_side is None:
        shared.side_by_side = _mapped(list(shared.handle.buffer_ptrs), x, ranks)
    beside = shared.side_by_side
    offset = info.address - beside.bases[ranks.rank]
    return dataclasses.replace(
        info,
        address=beside.address + offset,
        shape=(*info.shape, ranks.world),
        strides=(*info.strides, beside.distance * 8 // info.dtype.width),
        owner=(x, beside),  # no array that a function was given: what is made of it is not cast for others
    )


def multicast(x: Any, group: Any) -> ArrayInfo:
    """Return the memory of a symmetric array in the mapping that stands for all ranks."""
    what = "from_multicast"
    if hasattr(type(x), "__cute_symmetric__"):
        return inspect_array(x.multicast)
    info, ranks = _checked(x, group, what)
    shared = _shared(x, info, ranks, what)
    everywhere = int(shared.handle.multicast_ptr or 0)
    if not everywhere:
        raise CuteError(
            f"{what}: {_named(x)} has no multicast mapping: the GPUs, the driver or the machine lack NVLink multicast "
            "(NVSwitch of the third generation, nvidia-fabricmanager), or the group is of other GPUs; use "
            "from_symmetric, and add up what it loads of each rank"
        )
    offset = info.address - DRIVER.base(info.address)
    return dataclasses.replace(info, address=DRIVER.base(everywhere) + offset, owner=(x, shared))


def _named(x: Any) -> str:
    return f"a {type(x).__name__} of shape {tuple(getattr(x, 'shape', ()))}"


def _checked(x: Any, group: Any, what: str) -> tuple[ArrayInfo, Any]:
    """Return what lies in a tensor's memory, and the ranks of its group."""
    if not callable(getattr(x, "untyped_storage", None)):
        raise CuteError(
            f"{what}: x, {_named(x)}, is not symmetric memory: give a tensor of torch's, allocated by "
            "torch.distributed._symmetric_memory.empty, or in the simulator cute.sim.symmetric(…)"
        )
    ranks = group if isinstance(group, Ranks) else Ranks(group, what)
    if ranks.world == 1:
        raise CuteError(
            f"{what}: the group has one rank alone, and no peer: start more (torchrun --nproc-per-node 2), or pass "
            "from_dlpack(x)"
        )
    return inspect_array(x), ranks


def _shared(x: Any, info: ArrayInfo, ranks: Any, what: str) -> Shared:
    """Return the memory of a tensor's storage on all ranks, which agree on the tensor."""
    storage = x.untyped_storage()
    key = int(storage.data_ptr()), ranks.name
    view = info.dtype.name, info.shape, info.strides, info.address
    shared = _SHARED.get(key)
    if shared is not None and view in shared.views:
        return shared
    _check_alike(_about(x, info), ranks, what)
    if shared is None:
        shared = Shared(_met(x, ranks, what))
        _SHARED[key] = shared
        weakref.finalize(storage, _SHARED.pop, key, None).atexit = False
    shared.views.add(view)
    return shared


def _about(x: Any, info: ArrayInfo) -> dict[str, Any]:
    """Return what must be alike on all ranks of a tensor."""
    storage = x.untyped_storage()
    return {
        "shareable": bool(x.is_cuda)
        and DRIVER.shareable(info.address),  # said to all: a rank alone would be waited for
        "shape": info.shape,
        "strides": info.strides,
        "dtype": info.dtype.name,
        "bytes of its storage": int(storage.nbytes()),
        "place in its storage": info.address - int(storage.data_ptr()),
    }


def _check_alike(mine: dict[str, Any], ranks: Any, what: str) -> None:
    """Raise the same CuteError on all ranks if a tensor is not alike there."""
    found = ranks.gather(mine)
    plain = [r for r, one in enumerate(found) if not one["shareable"]]
    if plain:
        raise CuteError(f"{what}: x of rank {', '.join(map(str, plain))} {_PLAIN}")
    for name in mine:
        values = [one[name] for one in found]
        if any(v != values[0] for v in values):
            said = ", ".join(f"{v} on rank {r}" for r, v in enumerate(values))
            raise CuteError(f"{what}: the {name} of x must be the same on all ranks, and is {said}: {_ALIKE}")


def _met(x: Any, ranks: Any, what: str) -> Any:
    """Return torch's handle. CuteError, the same on all ranks: one of them has none, or has the storage elsewhere."""
    handle: Any = None
    said = ""
    try:
        handle = ranks.rendezvous(x)
    except RuntimeError as e:
        said = f"torch's rendezvous of x failed: {str(e).strip().partition(_NEWLINE)[0] or 'RuntimeError'}"
    if handle is None:
        _check_all(said or f"x {_PLAIN}", ranks, what)
    pointers = list(handle.buffer_ptrs)
    far = ", ".join(str(r) for r, p in enumerate(pointers) if not p)
    if far:
        said = (
            f"rank {far} is on another host, or its GPU is out of reach: a tensor has the GPUs of one host (or NVLink "
            "domain); make a group of these, and use NCCL between the groups"
        )
    _check_all(said, ranks, what)
    places = ranks.gather(int(x.untyped_storage().data_ptr()) - pointers[ranks.rank])
    if len(set(places)) > 1:
        raise CuteError(
            f"{what}: x begins at different places of the ranks' symmetric memory, {places} bytes in: allocate in the "
            "same order on all ranks, or by symm_mem.empty, which gives each tensor memory of its own"
        )
    return handle


def _mapped(pointers: list[int], x: Any, ranks: Any) -> Any:
    """Return the mapping of all ranks' memory, or raise what any rank says."""
    mapping, said = None, ""
    try:
        mapping = DRIVER.beside(pointers, int(x.device.index))
    except CuteError as e:
        said = str(e)
    _check_all(said, ranks, "from_symmetric")
    return mapping


def _check_all(said: str, ranks: Any, what: str) -> None:
    """Raise a CuteError on all ranks if any has something to say."""
    for rank, words in enumerate(ranks.gather(said)):
        if words:
            raise CuteError(f"{what}: {words}" + ("" if rank == ranks.rank else f" (said by rank {rank})"))
