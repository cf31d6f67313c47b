# SPDX-License-Identifier: Apache-2.0
"""Signals and memory that the kernels of several GPUs share: flags that count arrivals, and memory that stands for that
of all GPUs (multicast mappings).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import isa
from ..arch import atomic_add, load, red, store
from ..dtypes import BFloat16, DType, Float8E4M3FN, Float8E5M2, Float16, Float32, Int32, Uint32, Uint64
from ..runtime import from_dlpack, from_symmetric
from ..seam import CuteError, Int, Leaf, current, current_or, frozen, traced
from ..seam.hooks.watch import watch
from ..tensor.pointer import AddressSpace, Pointer, check_writable, physical
from ..tensor.ssa import bitcast
from ..tensor.tensor import Tensor, domain_offset

__all__ = [
    "Signals",
    "multimem_ld_reduce", "multimem_ld_reduce_4xf32", "multimem_ld_reduce_8xbf16", "multimem_ld_reduce_8xf16",
    "multimem_ld_reduce_16xe4m3", "multimem_ld_reduce_16xe5m2", "multimem_red_add1", "multimem_st",
    "multimem_st_4xb32", "red_add1", "spin_lock_atom_cas_acquire_wait", "spin_lock_atom_cas_relaxed_wait",
    "spin_lock_ld_lt_relaxed_wait",
]  # fmt: skip

_SUMS = {
    Float32: ("f32", None), Float16: ("f16x2", "f32"), BFloat16: ("bf16x2", "f32"),
    Float8E4M3FN: ("e4m3x4", "f16"), Float8E5M2: ("e5m2x4", "f16"),
}  # fmt: skip
"""The words that hold elements of a type, and the type in which they are added."""


def _global(ptr: Any, what: str, name: str = "ptr") -> Any:
    if not isinstance(ptr, Pointer) or ptr.space not in (AddressSpace.gmem, AddressSpace.generic):
        raise CuteError(f"{what}: {name} {ptr!r} must be a Pointer to global memory")
    return ptr


def _everywhere(ptr: Any, what: str, name: str = "ptr") -> Any:
    """The address of a multicast mapping, of a pointer that says what it is or of a plain one."""
    return physical(replace(_global(ptr, what, name), multicast=False))


def _flag(ptr: Any, what: str) -> Any:
    if not isinstance(ptr, Pointer) or ptr.dtype not in (Int32, Uint32):
        raise CuteError(f"{what}: lock_ptr {ptr!r} must be a Pointer to an Int32 or Uint32")
    return _global(ptr, what, "lock_ptr")


def _said(value: Any, legal: tuple[str, ...], name: str, what: str) -> str:
    if value not in legal:
        raise CuteError(f"{what}: {name} {value!r} must be {' or '.join(map(repr, legal))}")
    return str(value)


_SCOPES = ("sys", "gpu", "cluster", "cta")


@traced
def multimem_ld_reduce(ptr: Pointer, *, dtype: DType, num_elements: int) -> tuple[Any, ...]:
    """Load the sums over all GPUs of elements in a multicast mapping: as words of 32 bits, which `multimem_st` takes
    (Int32; Float32 for Float32). Any thread.

    ptr: a Pointer into the mapping, at a multiple of all their bytes. dtype: Float32, or Float16 and BFloat16, added as
    Float32, or Float8E4M3FN and Float8E5M2, added as Float16 (sm_100f). num_elements: 4, 8 or 16 bytes of them. Raises
    CuteError for others. PTX multimem.ld_reduce, relaxed, of the system, sm_90.

    >>> x = cute.sim.symmetric((4,), np.float32, ranks=2)
    >>> x.arrays[0][:], x.arrays[1][:] = [1, 2, 3, 4], 10
    >>> def kernel(everywhere):
    ...     words = utils.distributed.multimem_ld_reduce(everywhere.iterator, dtype=cute.Float32, num_elements=4)
    ...     print(words[0], words[3])
    >>> cute.simulate(kernel, ranks=2)[1, 1](cute.runtime.from_multicast(x, assumed_align=16))
    11.0 14.0
    11.0 14.0
    """
    what = "multimem_ld_reduce"
    at = _everywhere(ptr, what)
    if dtype not in _SUMS:
        raise CuteError(f"{what}: dtype {dtype!r} must be {' or '.join(map(repr, _SUMS))}")
    bits = num_elements * dtype.width if type(num_elements) is int else 0
    if bits not in (32, 64, 128):
        raise CuteError(f"{what}: num_elements {num_elements!r} of {dtype} must make 4, 8 or 16 bytes")
    kind, acc = _SUMS[dtype]
    order: dict[str, Any] = {"op": "add", "acc": acc, "sem": "relaxed", "scope": "sys", "type": kind}
    if bits == 32:
        words = (isa.multimem_ld_reduce(at, **order),)
    else:
        words = tuple(isa.multimem_ld_reduce_vector(at, count=bits // 32, **order))
    return words if dtype == Float32 else tuple(Int32(w) for w in words)


@traced
def multimem_ld_reduce_4xf32(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of four Float32 at `ptr`, as four Float32. Any thread. PTX multimem.ld_reduce, sm_90.

    >>> x = cute.sim.symmetric((4,), np.float32, ranks=2)
    >>> of = utils.distributed
    >>> def kernel(x):
    ...     at = x.iterator
    ...     loaded = of.multimem_ld_reduce_4xf32(at), of.multimem_ld_reduce_8xf16(at), of.multimem_ld_reduce_8xbf16(at)
    ...     loaded += of.multimem_ld_reduce_16xe4m3(at), of.multimem_ld_reduce_16xe5m2(at)
    ...     print(loaded[0][0], loaded[1][0], len(loaded[4]))
    >>> everywhere = cute.runtime.from_multicast(x, assumed_align=16)
    >>> cute.simulate(kernel, ranks=2, arch="sm_100f")[1, 1](everywhere)
    0.0 0 4
    0.0 0 4
    """
    return multimem_ld_reduce(ptr, dtype=Float32, num_elements=4)


@traced
def multimem_ld_reduce_8xf16(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of eight Float16 at `ptr`, as four words. Any thread. PTX multimem.ld_reduce,
    sm_90.

    See the example of `multimem_ld_reduce_4xf32`.
    """
    return multimem_ld_reduce(ptr, dtype=Float16, num_elements=8)


@traced
def multimem_ld_reduce_8xbf16(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of eight BFloat16 at `ptr`, as four words. Any thread. PTX multimem.ld_reduce,
    sm_90.

    See the example of `multimem_ld_reduce_4xf32`.
    """
    return multimem_ld_reduce(ptr, dtype=BFloat16, num_elements=8)


@traced
def multimem_ld_reduce_16xe4m3(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of sixteen Float8E4M3FN at `ptr`, as four words. Any thread. PTX multimem.ld_reduce,
    sm_100f.

    See the example of `multimem_ld_reduce_4xf32`.
    """
    return multimem_ld_reduce(ptr, dtype=Float8E4M3FN, num_elements=16)


@traced
def multimem_ld_reduce_16xe5m2(ptr: Pointer) -> tuple[Any, ...]:
    """Load the sums over all GPUs of sixteen Float8E5M2 at `ptr`, as four words. Any thread. PTX multimem.ld_reduce,
    sm_100f.

    See the example of `multimem_ld_reduce_4xf32`.
    """
    return multimem_ld_reduce(ptr, dtype=Float8E5M2, num_elements=16)


def _as_float(word: Any) -> Any:
    """The bits of a word as a Float32: what multimem.st takes several of."""
    dtype = getattr(word, "dtype", None)
    if dtype == Float32 or isinstance(word, float):
        return Float32(word)
    return bitcast(Uint32(word), Uint32, Float32)


@traced
def multimem_st(ptr: Pointer, *words: Any) -> None:
    """Store 1, 2 or 4 `words` of 32 bits (Int32, Uint32 or Float32) to each GPU's memory of a multicast mapping. Any
    thread. ptr: a Pointer into the mapping, at a multiple of all their bytes. Raises CuteError for other numbers. PTX
    multimem.st, relaxed, of the system, sm_90.

    >>> x, flags = cute.sim.symmetric((8,), np.float32, ranks=2), cute.sim.symmetric((1,), np.int32, ranks=2)
    >>> def kernel(x, flags, rank):
    ...     if rank == 1:
    ...         utils.distributed.multimem_st(x.iterator, cute.Float32(7), cute.Float32(8))
    ...         utils.distributed.multimem_st_4xb32(x.iterator + 4, *(cute.Float32(9) for i in range(4)))
    ...         utils.distributed.multimem_red_add1(flags.iterator)
    >>> args = [cute.runtime.from_multicast(t, assumed_align=4) for t in (x, flags)]
    >>> cute.simulate(kernel, ranks=2)[1, 1](*args, cute.sim.PerRank(0, 1))
    >>> x.arrays[0].tolist(), flags.arrays[0].tolist()
    ([7.0, 8.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0], [1])
    """
    at = _everywhere(ptr, "multimem_st")
    check_writable(ptr, "multimem_st: ptr")
    if len(words) not in (1, 2, 4):
        raise CuteError(f"multimem_st: {len(words)} words must be 1, 2 or 4")
    floats = [_as_float(w) for w in words]
    if len(words) == 1:
        isa.multimem_st(at, floats[0], type="f32", sem="relaxed", scope="sys")
    else:
        isa.multimem_st_vector(at, floats, type="f32", count=len(words), sem="relaxed", scope="sys")


@traced
def multimem_st_4xb32(ptr: Pointer, x: Any, y: Any, z: Any, w: Any) -> None:
    """Store the words `x`, `y`, `z` and `w` to `ptr` in each GPU's memory, as `multimem_st` does. Any thread. PTX
    multimem.st, sm_90.

    See the example of `multimem_st`.
    """
    multimem_st(ptr, x, y, z, w)


@traced
def multimem_red_add1(lock_ptr: Pointer, *, order: str = "release", scope: str = "sys") -> None:
    """Add 1 to a flag in each GPU's memory of a multicast mapping: say to all that what came before is done. Any
    thread, after a barrier if others' writes are meant.

    lock_ptr: a Pointer to an Int32 or Uint32 in the mapping. order: "release" or "relaxed". scope: "sys", "gpu",
    "cluster" or "cta". Raises CuteError for others. PTX multimem.red, sm_90.

    See the example of `multimem_st`.
    """
    what = "multimem_red_add1"
    at = _everywhere(_flag(lock_ptr, what), what, "lock_ptr")
    check_writable(lock_ptr, f"{what}: lock_ptr")
    sem, seen = _said(order, ("relaxed", "release"), "order", what), _said(scope, _SCOPES, "scope", what)
    isa.multimem_red(at, Uint32(1), op="add", type="u32", sem=sem, scope=seen)


@traced
def red_add1(lock_ptr: Pointer, *, order: str = "release", scope: str = "sys") -> None:
    """Add 1 to a flag in global memory: say that what came before is done. Any thread. lock_ptr: a Pointer to an Int32
    or Uint32. order, scope: as for `multimem_red_add1`. PTX red, sm_70.

    >>> flags = np.zeros(3, np.int32)
    >>> of = utils.distributed
    >>> def kernel(flags):
    ...     if arch.block_idx()[0] == 0:
    ...         for i in range(3):
    ...             of.red_add1(flags.iterator + i, scope="gpu")
    ...     else:
    ...         of.spin_lock_atom_cas_acquire_wait(flags.iterator, expected_val=1, reset_val=0)
    ...         of.spin_lock_atom_cas_relaxed_wait(flags.iterator + 1, expected_val=1, reset_val=7)
    ...         of.spin_lock_ld_lt_relaxed_wait(flags.iterator + 2, expected_val=1)
    >>> cute.simulate(kernel)[2, 1](cute.runtime.from_dlpack(flags))
    >>> flags.tolist()
    [0, 7, 1]
    """
    _flag(lock_ptr, "red_add1")
    red(lock_ptr, 1, "add", Uint32, sem=_said(order, ("relaxed", "release"), "order", "red_add1"), scope=scope)


def _wait(lock_ptr: Any, expected_val: Any, reset_val: Any, sem: str, scope: Any, what: str) -> None:
    at = physical(_flag(lock_ptr, what))
    check_writable(lock_ptr, f"{what}: lock_ptr")
    isa.wait_for_flag(at, Uint32(expected_val), Uint32(reset_val), sem=sem, scope=_said(scope, _SCOPES, "scope", what))


@traced
def spin_lock_atom_cas_acquire_wait(
    lock_ptr: Pointer, *, expected_val: Int, reset_val: Int, scope: str = "gpu"
) -> None:
    """Wait until a flag is `expected_val`, and make it `reset_val` in the same step; later accesses see what was done
    before those who counted it up. One thread; a barrier lets the others go on.

    lock_ptr: a Pointer to an Int32 or Uint32 in global memory. scope: "gpu", "sys", "cluster" (sm_90) or "cta". Raises
    CuteError for others. PTX atom.acquire.cas, sm_70.

    See the example of `red_add1`.
    """
    _wait(lock_ptr, expected_val, reset_val, "acquire", scope, "spin_lock_atom_cas_acquire_wait")


@traced
def spin_lock_atom_cas_relaxed_wait(
    lock_ptr: Pointer, *, expected_val: Int, reset_val: Int, scope: str = "gpu"
) -> None:
    """Wait as `spin_lock_atom_cas_acquire_wait` does, for `lock_ptr` to be `expected_val`, made `reset_val`, with no
    order for later accesses. scope: as there. One thread. PTX atom.relaxed.cas, sm_70.

    See the example of `red_add1`.
    """
    _wait(lock_ptr, expected_val, reset_val, "relaxed", scope, "spin_lock_atom_cas_relaxed_wait")


@traced
def spin_lock_ld_lt_relaxed_wait(lock_ptr: Pointer, *, expected_val: Int, scope: str = "gpu") -> None:
    """Wait while the flag at `lock_ptr` is less than `expected_val`, with no order for later accesses. scope: as for
    `spin_lock_atom_cas_acquire_wait`. One thread. PTX ld.relaxed, sm_70.

    See the example of `red_add1`.
    """
    what = "spin_lock_ld_lt_relaxed_wait"
    at = physical(_flag(lock_ptr, what))
    isa.wait_for_count(at, Uint32(expected_val), sem="relaxed", scope=_said(scope, _SCOPES, "scope", what))


@frozen
class Signals:
    """Signals between the ranks of a group: each has a flag for each slot and rank, which that rank sets or counts up,
    and it waits for. Made on the host by `create`, and given to a kernel; or made in one.

    flags: a tensor of Int32 or Uint32 of shape (slots + 1, ranks, ranks), zeroed, from `runtime.from_symmetric`: of a
    slot, of the rank that signals, and on the rank that waits; the last slot counts epochs. rank: this one's. limit:
    nanoseconds that a wait may take; then the kernel writes to `report` who did not come, and traps. report: made by
    `create`, or None.

    A flag only grows: `epoch` is the number of this launch, from 1, so that a kernel that signals once in a launch puts
    it and waits for it, and a CUDA graph of the kernel can be replayed. Raises CuteError for flags of another form. The
    simulator knows no limit: it reports a rank that waits for nobody.

    >>> flags = np.zeros((2, 2, 2), np.int32)
    >>> peers = cute.runtime.from_dlpack(flags)
    >>> def kernel(peers):  # two blocks, in the place of two ranks
    ...     rank = arch.block_idx()[0]
    ...     signals = utils.distributed.Signals(peers, rank)
    ...     if rank == 0:
    ...         signals.put(1, 0, signals.epoch())
    ...     else:
    ...         signals.wait(0, 0, signals.epoch())
    ...     signals.advance(1)
    >>> cute.simulate(kernel)[2, 1](peers)
    >>> flags[0].tolist(), flags[1].tolist()
    ([[0, 1], [0, 0]], [[1, 1], [0, 0]])
    """

    flags: Tensor
    rank: Int
    limit: Int = 10_000_000_000
    report: Any = None

    def __post_init__(self) -> None:
        t = self.flags
        if not isinstance(t, Tensor) or t.has_coordinates or t.element_type not in (Int32, Uint32):
            raise CuteError(f"Signals: flags {t!r} must be a tensor of Int32 or Uint32 in global memory")
        shape = t.shape
        static = isinstance(shape, tuple) and len(shape) == 3 and all(type(n) is int for n in shape)
        if not static or not shape[1] == shape[2] > 1 < shape[0]:
            raise CuteError(f"Signals: flags of shape {shape} must be of static shape (slots + 1, ranks, ranks)")
        for name, value in (("rank", self.rank), ("limit", self.limit)):
            if not isinstance(value, (int, Leaf)) or isinstance(value, bool):
                raise CuteError(f"Signals: {name} {value!r} must be an integer{' of nanoseconds' * (name == 'limit')}")
        if type(self.rank) is int and not 0 <= self.rank < shape[2]:
            raise CuteError(f"Signals: rank {self.rank} is not one of {shape[2]}")
        if self.report is not None and not isinstance(self.report, Tensor):
            raise CuteError(f"Signals: report {self.report!r} must be what Signals.create makes, or None")

    @staticmethod
    def create(slots: int, group: Any = None, limit: float = 10.0, name: str = "signals") -> Signals:
        """Return signals for the ranks of a group, with flags in memory of torch's and a report that the host watches.
        All ranks, on the host.

        slots: how many each rank has for each other; 65535 at most. group: of torch.distributed; None for the default
        one. limit: seconds. name: what they are for, in errors. Where a wait takes longer, `check` and the next launch
        raise a PeerError, and the process prints it: all else that uses the GPU says "unspecified launch failure".
        """
        if current_or(None) is not None:
            raise CuteError("Signals.create in a kernel: call it on the host, and give the kernel what it made")
        import torch  # here: nothing else needs it
        import torch.distributed as dist
        from torch.distributed import _symmetric_memory as symm_mem

        if type(slots) is not int or not 0 < slots < 1 << 16:
            raise CuteError(f"Signals.create: slots {slots!r} must be an int of 1 to 65535")
        if not limit > 0:
            raise CuteError(f"Signals.create: limit {limit!r} must be seconds, more than 0")
        world, rank = dist.get_world_size(group), dist.get_rank(group)
        flags = symm_mem.empty(slots + 1, world, dtype=torch.int32, device=torch.device("cuda"))
        flags.zero_()
        torch.cuda.current_stream().synchronize()  # before a rank can signal another
        watched = watch(limit, name)
        report = None if watched is None else from_dlpack(watched.words)
        made = Signals(from_symmetric(flags, group), rank, round(limit * 1e9), report)
        object.__setattr__(made, "_cute_watch", watched)
        return made

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self.flags.shape[2]  # type: ignore[no-any-return]

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.flags.shape[0] - 1  # type: ignore[no-any-return]

    def check(self) -> None:
        """Raise the PeerError of a wait that took too long, if there was one. On the host, after a launch: before the
        kernel has ended there may be none yet."""
        if current_or(None) is not None:
            raise CuteError("Signals.check in a kernel: call it on the host, after the launch")
        watched = getattr(self, "_cute_watch", None)
        error = None if watched is None else watched.error()
        if error is not None:
            raise error

    def put(self, peer: Int, slot: Int, value: Int) -> None:
        """Set the flag that `peer` has for this rank in `slot` to `value`: what came before is done. One thread, after
        a barrier if others' writes are meant, and after their completion if they are TMA's. PTX st.release.sys,
        sm_70."""
        store(self._flag(slot, self.rank, peer, "put"), value, sem="release", scope="sys")

    def add(self, peer: Int, slot: Int, n: Int = 1) -> None:
        """Add `n` to the flag that `peer` has for this rank in `slot`, as `put` sets it: several blocks or threads say
        that they are done. PTX red.release.sys, sm_70."""
        red(self._flag(slot, self.rank, peer, "add"), n, "add", Uint32, sem="release", scope="sys")

    def wait(self, peer: Int, slot: Int, value: Int) -> None:
        """Wait until the flag that this rank has for `peer` in `slot` has come to `value`; later accesses see what was
        done before. One thread; a barrier lets the others go on. PTX ld.acquire.sys, sm_70."""
        at = physical(self._flag(slot, peer, self.rank, "wait"))
        report = Uint64(0) if self.report is None else Uint64(self.report.iterator.toint())
        isa.wait_for_peer(
            at, Uint32(value), Uint32(peer), Uint32(slot), Uint64(self.limit), report, sem="acquire", scope="sys"
        )

    def meet(self, slot: Int, value: Int) -> None:
        """Put `value` to all other ranks and wait for theirs: a barrier of all ranks. One thread."""
        for step in range(1, self.world):
            self.put((self.rank + step) % self.world, slot, value)
        for step in range(1, self.world):
            self.wait((self.rank + step) % self.world, slot, value)

    def epoch(self) -> Any:
        """Return the number of this launch, from 1 on (Uint32): the same for all its threads until their block calls
        `advance`; the next one's once all blocks have, and what they did before is seen. Any thread. PTX
        ld.acquire.gpu, sm_70."""
        return Uint32(load(self._own(0), Uint32, sem="acquire", scope="gpu")) + Uint32(1)

    def advance(self, blocks: Int) -> None:
        """Say that this block is done with `epoch`; the last of so many blocks begins the next one, for the next launch
        in the stream. One thread of each block, after a barrier."""
        arrived, done = self._own(1), Uint32(blocks)
        last = atomic_add(arrived, 1, sem="acq_rel", scope="gpu") == done - Uint32(1)

        def begin() -> None:
            store(arrived, 0)
            store(self._own(0), self.epoch(), sem="release", scope="gpu")

        current().when(last, begin)

    def _own(self, i: int) -> Any:
        return domain_offset((self.slots, i, self.rank), self.flags).iterator

    def _flag(self, slot: Any, source: Any, at: Any, what: str) -> Any:
        for name, value, end in (("slot", slot, self.slots), ("peer", source, self.world), ("peer", at, self.world)):
            if type(value) is int and not 0 <= value < end:
                raise CuteError(f"Signals.{what}: {name} {value} is not in [0, {end})")
        return domain_offset((slot, source, at), self.flags).iterator
