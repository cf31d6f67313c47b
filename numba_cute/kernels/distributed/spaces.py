# SPDX-License-Identifier: Apache-2.0
"""Memory that the kernels of a group of GPUs work in: made once for a group and a shape, and used by one launch at a
time. Making it is something that all ranks of the group do together."""

from __future__ import annotations

import weakref
from typing import Any

from numba_cute import CuteError
from numba_cute.runtime import from_symmetric
from numba_cute.seam.hooks.driver import DRIVER
from numba_cute.utils.distributed import Signals

from .. import entry
from .experts_plan import Extents, Room
from .keys_plan import KeysRoom
from .plan import GATHER_SLOTS, GatherRoom
from .routes import SLOTS, WORDS

LIMIT = 20.0
"""Seconds that a kernel waits for another rank before it gives up, with a PeerError that names it."""
LAUNCHES: dict[Any, Any] = {}
"""Launches, which hold the memory that they work in, and makers of their results, by the kinds of the calls."""
_spaces: dict[Any, Space] = {}


class Group:
    """The ranks of a torch.distributed group, which this process is of. group: torch's. name: torch's too."""

    def __init__(self, group: Any) -> None:
        import torch.distributed as dist  # here: no other part of the library needs it

        self.group, self.name = group, str(group.group_name)
        self.world, self.rank = dist.get_world_size(group), dist.get_rank(group)

    def gather(self, mine: Any) -> list[Any]:
        """Give what each rank gives. All ranks, together."""
        import torch.distributed as dist

        found = [None] * self.world
        dist.all_gather_object(found, mine, group=self.group)
        return found


_groups: weakref.WeakKeyDictionary[Any, Group] = weakref.WeakKeyDictionary()


def group_of(group: Any, what: str) -> Group:
    """Find a group's ranks. group: of torch.distributed, or None for the default one. what: who asks, for errors.
    CuteError: there is none, or this process is not of it."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        raise CuteError(
            f"{what}: torch.distributed is not initialized: start with torchrun, and call "
            'torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank)) first'
        )
    group = dist.group.WORLD if group is None else group
    found = _groups.get(group) if isinstance(group, dist.ProcessGroup) else None
    if found is None:
        if not isinstance(group, dist.ProcessGroup):
            raise CuteError(
                f"{what}: group {group!r:.80} is no torch.distributed group of this process: make one by "
                "torch.distributed.new_group, and call this on its ranks alone"
            )
        found = _groups[group] = Group(group)
    return found


class Space:
    """Memory of a group's kernels, and the stream that used it last: a launch on another one waits for that.
    signals: between the ranks."""

    def __init__(self, name: str, slots: int, group: Group) -> None:
        self.signals = Signals.create(slots, group.group, LIMIT, name)
        self._stream: Any = None

    def enter(self, like: Any) -> None:
        """Let the current stream wait for the launch before, if that was on another one. like: a tensor on the GPU."""
        torch = entry.pytorch()
        stream = torch.cuda.current_stream(like.device)
        if self._stream is not None and stream != self._stream and not entry.capturing(like):
            stream.wait_stream(self._stream)
        if not entry.capturing(like):
            self._stream = stream


class Gathering(Space):
    """Room for all ranks' rows, of which each has (rows, k) of a type of torch's."""

    def __init__(self, group: Group, rows: int, k: int, dtype: Any, device: Any) -> None:
        super().__init__("all_gather_matmul", GATHER_SLOTS, group)
        torch = entry.pytorch()

        def room(shape: Any) -> Any:
            return torch.empty(shape, dtype=dtype, device=device)

        def zeros(shape: Any) -> Any:
            return torch.zeros(shape, dtype=torch.int32, device=device)

        self.room = GatherRoom.make(group.world, rows, k, room, zeros)


class Attending(Space):
    """Room for all ranks' keys and values. of_q, of_k, of_v: the shapes of a rank's. seen: in words, which keys a query
    sees. Of other shapes of queries, and where other keys are seen, other pieces come at other places. CuteError, on
    all ranks alike, where ranks differ in it."""

    def __init__(
        self, group: Group, of_q: tuple[int, ...], of_k: tuple[int, ...], of_v: tuple[int, ...],
        seen: str, dtype: Any, device: Any,
    ) -> None:  # fmt: skip
        every = group.gather(seen)
        if len(set(every)) > 1:
            raise CuteError(f"ring_attention: causal and order must be the same on all ranks; by rank it is: {every}")
        super().__init__("ring_attention", GATHER_SLOTS, group)
        torch, (k, v, *counts) = entry.pytorch(), KeysRoom.shapes(group.world, of_k, of_v)
        memory = (torch.empty(shape, dtype=dtype, device=device) for shape in (k, v))
        self.room = KeysRoom(*memory, *(torch.zeros(n, dtype=torch.int32, device=device) for n in counts))


class Summing(Space):
    """Room for all ranks' parts, of (rows, n) each, on every rank. shares: whether for sums of all ranks too. slots: of
    signals."""

    def __init__(
        self, group: Group, rows: int, n: int, shares: bool, slots: int, dtype: Any, device: Any, name: str
    ) -> None:  # fmt: skip
        from torch.distributed import _symmetric_memory as symm_mem

        def make() -> Any:
            return symm_mem.empty((group.world, rows, n), dtype=dtype, device=device)

        self.memory = [make() for _ in range(1 + shares)]
        made = [from_symmetric(x, group.group, assumed_align=16) for x in self.memory]
        self.parts, self.shared = made[0], made[1] if shares else None
        super().__init__(name, slots, group)


class Routing(Space):
    """Room for the tokens of all ranks, for what they read of each other to find where these go, and for the rows that
    come back: `x`, and as tensors of all ranks `tokens`, `sorted` and `back`. room: this rank's."""

    def __init__(self, group: Group, extents: Extents, dtype: Any, device: Any) -> None:
        from torch.distributed import _symmetric_memory as symm_mem

        torch = entry.pytorch()
        of_rows = (extents.tokens, extents.hidden), (extents.pairs, extents.hidden)
        self.memory = [symm_mem.empty(shape, dtype=dtype, device=device) for shape in of_rows]
        self.memory.append(symm_mem.empty((extents.sorted,), dtype=torch.int32, device=device))
        self.x = self.memory[0]
        self.tokens, self.back, self.sorted = (from_symmetric(x, group.group, assumed_align=16) for x in self.memory)
        self.room = Room.make(
            extents, lambda shape: torch.empty(shape, dtype=dtype, device=device),
            lambda shape: torch.zeros(shape, dtype=torch.int32, device=device), DRIVER.pinned(WORDS),
        )  # fmt: skip
        super().__init__("ExpertParallel", SLOTS, group)


def address_of(x: Any) -> int | None:
    """Return where a symmetric tensor lies, for a launch is made for that place; None of what is not a tensor."""
    return x.data_ptr() if hasattr(x, "data_ptr") else None


def space(kind: Any, group: Group, like: Any, *how: Any) -> Any:
    """Give a group's memory of a kind, which is made when it is first asked for. like: a tensor on the GPU. how: what
    `kind` takes between the group and the name."""
    key = kind, group.name, like.device, how
    if key not in _spaces:
        if entry.capturing(like):
            raise CuteError(
                f"{kind.__name__.lower()}: a CUDA graph is being captured, and the memory of all ranks for these "
                "shapes does not exist yet: call it once before, with tensors of these shapes"
            )
        _spaces[key] = kind(group, *how)
    return _spaces[key]


def forget() -> None:
    """Give back the memory that the kernels of groups work in. All ranks, with no launch under way: what is called next
    makes it anew; graphs that were captured use it still, and must not be replayed."""
    LAUNCHES.clear()
    _spaces.clear()
