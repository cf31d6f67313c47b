# SPDX-License-Identifier: Apache-2.0
"""Bulk copies of consecutive bytes by the TMA unit, without a tensor map. sm_90.

One thread calls `cute.copy` with these (`if arch.elect_one(): …`): it issues a copy of `num_bits_per_copy`, a multiple
of 128, from and to addresses that are multiples of 16 bytes; of an atom without a number of bits, copies of as many
bytes as lie together in both tensors. What comes into shared memory completes its bytes on
`tma_bar_ptr`; what leaves for global memory belongs to the thread's bulk group (`arch.cp_async_bulk_commit_group`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ... import isa, layout
from ...atoms.copy_atom import CopyAtom
from ...atoms.instructions import Part, instructions
from ...atoms.op import CopyOp, CopyTraits
from ...dtypes import DType, Uint16, Uint32
from ...isa import Instr
from ...isa.rows.bulk import GLOBAL_REDUCTIONS, PEER_REDUCTIONS
from ...layout import coalesce
from ...seam import CuteError, frozen, is_static, known_as, traced
from ...tensor.pointer import AddressSpace, Pointer, access_alignment, physical, shared_address
from ...tensor.ssa import ReductionOp
from ...tensor.tensor import Tensor
from ..common.checks import plain_layout
from ..common.copies import one_thread

__all__ = [
    "CopyBulkG2SMulticastOp", "CopyBulkG2SOp", "CopyBulkS2GByteMaskOp", "CopyBulkS2GOp", "CopyBulkS2SOp",
    "CopyReduceBulkS2GOp", "CopyReduceBulkS2SOp", "group_bulk_copy_modes",
]  # fmt: skip


@known_as("cute_nvgpu.cpasync")
class BulkCopy(CopyOp):
    """Base of the operations. PTX cp.async.bulk, sm_90."""

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        if num_bits < 0 or num_bits % 128:
            raise CuteError(
                f"{type(self).__name__}: num_bits_per_copy {num_bits} must be a positive multiple of 128 (16 bytes), "
                "or left out"
            )
        return one_thread(num_bits // dtype.width or 1)

    def copy(
        self, atom: CopyAtom, src: Tensor, dst: Tensor, pred: Tensor | None, bar: Any, mask: Any, policy: Any
    ) -> None:
        atom, src, dst = _as_wide(atom, src, dst)
        super().copy(atom, src, dst, pred, bar, mask, policy)


def _as_wide(atom: CopyAtom, src: Tensor, dst: Tensor) -> tuple[CopyAtom, Tensor, Tensor]:
    """Return, for an atom without a number of bits, one that copies the elements that are contiguous in both tensors,
    and the tensors as such parts."""
    if atom.num_bits:
        return atom, src, dst
    lays = [plain_layout(t, f"copy: {name}") for t, name in ((src, "src"), (dst, "dst"))]
    if not is_static([lay.shape for lay in lays]):
        return atom, src, dst  # which `instructions` refuses
    common = layout.max_common_layout(*lays)
    bits = int(layout.size(common)) * atom.value_type.width
    if bits % 128:
        raise CuteError(
            f"copy: {bits // 8} bytes lie together in src {src!r} and dst {dst!r}; a bulk copy takes multiples of 16"
        )
    here, there = (Tensor(t.iterator, layout.logical_divide(lay, common)) for t, lay in zip((src, dst), lays))
    return replace(atom, num_bits=bits), here, there


def _bytes_at(t: Tensor, space: AddressSpace, name: str) -> Any:
    """The address of a tensor of consecutive bytes."""
    p = t.iterator
    generic = (AddressSpace.generic,) if space is AddressSpace.gmem else ()
    if not isinstance(p, Pointer) or p.space not in (space, *generic):
        raise CuteError(f"copy: {name} {t!r} must lie in {space.name} for this bulk copy")
    flat = coalesce(plain_layout(t, f"copy: {name}"))
    if layout.size(flat) > 1 and flat.stride not in (1, (1,)):
        raise CuteError(
            f"copy: {name} {t!r} must be consecutive for a bulk copy; group_bulk_copy_modes does not move it"
        )
    if p.swizzle is not None and p.swizzle.bits:
        raise CuteError(f"copy: {name} {t!r} is swizzled; a bulk copy moves bytes unchanged")
    if access_alignment(p) % 16:
        raise CuteError(f"copy: {name} {t!r} must be aligned to 16 bytes; give assumed_align or byte_alignment")
    return physical(p)


def _plain(parts: Sequence[Part]) -> list[tuple[Tensor, Tensor]]:
    if any(p is not None for _, _, p in parts):
        raise CuteError("copy: pred is not for bulk copies; branch around the call")
    return [(s, d) for s, d, _ in parts]


def _barrier(bar: Any, what: str) -> Any:
    if bar is None:
        raise CuteError(f"copy: {what} needs tma_bar_ptr, the mbarrier that its bytes complete on")
    return shared_address(bar, "copy: tma_bar_ptr")


def _no_barrier(bar: Any, mask: Any) -> None:
    if bar is not None or mask is not None:
        raise CuteError("copy: tma_bar_ptr and mcast_mask are for loads; wait for a bulk store by its bulk group")


def _size(atom: CopyAtom) -> Any:
    return Uint32(atom.num_bits // 8)


def _in(s: Tensor, d: Tensor) -> tuple[Any, Any]:
    return _bytes_at(d, AddressSpace.smem, "dst"), _bytes_at(s, AddressSpace.gmem, "src")


def _out(s: Tensor, d: Tensor) -> tuple[Any, Any]:
    return _bytes_at(d, AddressSpace.gmem, "dst"), _bytes_at(s, AddressSpace.smem, "src")


@frozen
class CopyBulkG2SOp(BulkCopy):
    """Copy consecutive bytes from global to shared memory, completed on an mbarrier. One thread.
    PTX cp.async.bulk, sm_90.

    >>> cute.make_copy_atom(nvgpu.cpasync.CopyBulkG2SOp(), cute.Float32, num_bits_per_copy=4096).layout_src_tv
    (1,128):(0,1)
    """

    rows = (isa.cp_async_bulk_g2s,)

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        if mask is not None:
            raise CuteError("copy: mcast_mask needs an atom of CopyBulkG2SMulticastOp()")
        at = _barrier(bar, "a bulk load")
        for s, d in _plain(parts):
            isa.cp_async_bulk_g2s(*_in(s, d), _size(atom), at, policy=policy)

    def issue_prefetch(self, atom: CopyAtom, src: Tensor) -> None:
        atom, src, _ = _as_wide(atom, src, src)
        for t, *_ in instructions(atom, src, src, None):
            isa.cp_async_bulk_prefetch(_bytes_at(t, AddressSpace.gmem, "src"), _size(atom))


@frozen
class CopyBulkG2SMulticastOp(BulkCopy):
    """Copy consecutive bytes from global memory to the same place in several blocks of a cluster, those of
    `mcast_mask`, completed on their mbarriers. One thread. PTX cp.async.bulk.multicast, sm_90.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(bar, 16)
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     if arch.block_idx_in_cluster() == 0:
    ...         atom = cute.make_copy_atom(nvgpu.cpasync.CopyBulkG2SMulticastOp(), cute.Float32)
    ...         cute.copy(atom, x, s, tma_bar_ptr=bar, mcast_mask=0b11)
    ...     arch.mbarrier_wait(bar, 0)
    ...     print(s[3])
    >>> cute.simulate(kernel, cluster=2)[2, 1](x)
    3.0
    3.0
    """

    rows = (isa.cp_async_bulk_g2s,)
    multicast = True

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        if mask is None:
            raise CuteError("copy: a multicast load needs mcast_mask; make it with cpasync.create_tma_multicast_mask")
        at = _barrier(bar, "a bulk load")
        for s, d in _plain(parts):
            isa.cp_async_bulk_g2s(*_in(s, d), _size(atom), at, Uint16(mask), policy=policy)


@frozen
class CopyBulkS2GOp(BulkCopy):
    """Copy consecutive bytes from shared to global memory, completed by a bulk group. One thread, after the writers'
    proxy fences and a barrier. PTX cp.async.bulk, sm_90.

    >>> cute.make_copy_atom(nvgpu.cpasync.CopyBulkS2GOp(), cute.Float32, num_bits_per_copy=4096).layout_src_tv
    (1,128):(0,1)
    """

    rows = (isa.cp_async_bulk_s2g,)

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        _no_barrier(bar, mask)
        for s, d in _plain(parts):
            isa.cp_async_bulk_s2g(*_out(s, d), _size(atom), policy=policy)


@frozen
class CopyBulkS2GByteMaskOp(BulkCopy):
    """Copy those of each 16 bytes whose bit is set in `mcast_mask` (16 bits, lowest first) from shared to global
    memory, as `CopyBulkS2GOp`. One thread. PTX cp.async.bulk.cp_mask, sm_100.

    >>> out = np.zeros(16, np.uint8)
    >>> def kernel(out):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Uint8, 16, alignment=16), cute.make_layout(16))
    ...     s.fill(9)
    ...     arch.fence_view_async_shared()
    ...     atom = cute.make_copy_atom(nvgpu.cpasync.CopyBulkS2GByteMaskOp(), cute.Uint8)
    ...     cute.copy(atom, s, out, mcast_mask=0b101)
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 1](cute.runtime.from_dlpack(out, assumed_align=16))
    >>> out[:4]
    array([9, 0, 9, 0], dtype=uint8)
    """

    rows = (isa.cp_async_bulk_s2g,)
    gives = ("mask",)

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        _no_barrier(bar, None)
        if mask is None:
            raise CuteError("copy: CopyBulkS2GByteMaskOp needs mcast_mask, the bytes of each 16 that it writes")
        for s, d in _plain(parts):
            isa.cp_async_bulk_s2g(*_out(s, d), _size(atom), Uint16(mask), policy=policy)


def _kind(op: Any, atom: CopyAtom, table: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The row's parameters for a reduction of the atom's elements."""
    name, dtype = op.reduction_kind.value, atom.value_type
    bitwise = name in ("and", "or", "xor") and dtype.is_integer
    ptx = f"b{dtype.width}" if bitwise else dtype.ptx
    if ptx not in table.get(name, ()):
        types = ", ".join(table[name]) if name in table else "no type"
        raise CuteError(f"{type(op).__name__}: {name} of {dtype}: the instruction has it for {types}")
    return {"op": name, "type": ptx}


@frozen
class CopyReduceBulkS2GOp(BulkCopy):
    """Combine consecutive elements in shared memory with those in global memory, each atomically and in no order. One
    thread, after the writers' proxy fences and a barrier. PTX cp.reduce.async.bulk, sm_90.

    reduction_kind: how. `cute.copy` raises CuteError for types that the instruction does not have it for.

    >>> out = np.full(4, 10, np.float32)
    >>> def kernel(out):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     s.fill(1)
    ...     arch.fence_view_async_shared()
    ...     cute.copy(cute.make_copy_atom(nvgpu.cpasync.CopyReduceBulkS2GOp(), cute.Float32), s, out)
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    >>> cute.simulate(kernel)[2, 1](cute.runtime.from_dlpack(out, assumed_align=16))
    >>> out
    array([12., 12., 12., 12.], dtype=float32)
    """

    reduction_kind: ReductionOp = ReductionOp.ADD

    rows = (isa.cp_reduce_async_bulk_s2g,)

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        _no_barrier(bar, mask)
        kind = _kind(self, atom, GLOBAL_REDUCTIONS)
        for s, d in _plain(parts):
            isa.cp_reduce_async_bulk_s2g(*_out(s, d), _size(atom), policy=policy, **kind)


@frozen
class _ToPeer(BulkCopy):
    """Base of the copies to the shared memory of another block of the cluster, and on its barrier. peer: its rank, to
    which destination and barrier, this block's addresses, are mapped; None: they are the peer's already."""

    peer: Any = None

    def _of_peer(self, address: Any) -> Any:
        return address if self.peer is None else isa.mapa(address, Uint32(self.peer))

    def issue_to_peer(
        self, row: Instr, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any, **kind: str
    ) -> None:
        """Issue `parts` by `row`, with its static parameters `kind`."""
        name = type(self).__name__
        if mask is not None or policy is not None:
            raise CuteError(f"copy: mcast_mask and cache_policy are not for {name}, which writes to one block")
        at = self._of_peer(_barrier(bar, "a copy to a peer"))
        for s, d in _plain(parts):
            to = self._of_peer(_bytes_at(d, AddressSpace.smem, "dst"))
            row(to, _bytes_at(s, AddressSpace.smem, "src"), _size(atom), at, **kind)


@frozen
class CopyBulkS2SOp(_ToPeer):
    """Copy consecutive bytes from this block's shared memory to that of another block of the cluster, completed on its
    mbarrier. One thread, after the writers' proxy fences and a barrier. PTX cp.async.bulk, sm_90.

    peer: that block's rank, to which `dst` and `tma_bar_ptr` are then mapped (None: they are its addresses).

    >>> def kernel():
    ...     bar, me = arch.alloc_smem(cute.Int64, 1), arch.block_idx_in_cluster()
    ...     mine, theirs = [cute.make_tensor(arch.alloc_smem(cute.Int32, 4, alignment=16), 4) for _ in range(2)]
    ...     mine.fill(me)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(bar, 16)
    ...     arch.fence_view_async_shared()
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     atom = cute.make_copy_atom(nvgpu.cpasync.CopyBulkS2SOp(peer=1 - me), cute.Int32)
    ...     cute.copy(atom, mine, theirs, tma_bar_ptr=bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     print(theirs[0])
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    >>> cute.simulate(kernel, cluster=2)[2, 1]()
    1
    0
    """

    rows = (isa.cp_async_bulk_s2s,)

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        self.issue_to_peer(isa.cp_async_bulk_s2s, atom, parts, bar, mask, policy)


@frozen
class CopyReduceBulkS2SOp(_ToPeer):
    """Combine consecutive elements in this block's shared memory with those of another block of the cluster, each
    atomically, completed on its mbarrier. One thread, as `CopyBulkS2SOp`. PTX cp.reduce.async.bulk, sm_90.

    peer: as of `CopyBulkS2SOp`. reduction_kind: how. `cute.copy` raises CuteError for types that the instruction does
    not have it for.

    >>> def kernel():
    ...     bar, me = arch.alloc_smem(cute.Int64, 1), arch.block_idx_in_cluster()
    ...     mine, sums = [cute.make_tensor(arch.alloc_smem(cute.Int32, 4, alignment=16), 4) for _ in range(2)]
    ...     mine.fill(me)
    ...     sums.fill(10)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(bar, 16)
    ...     arch.fence_view_async_shared()
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     atom = cute.make_copy_atom(nvgpu.cpasync.CopyReduceBulkS2SOp(peer=1 - me), cute.Int32)
    ...     cute.copy(atom, mine, sums, tma_bar_ptr=bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     print(sums[0])
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    >>> cute.simulate(kernel, cluster=2)[2, 1]()
    11
    10
    """

    reduction_kind: ReductionOp = ReductionOp.ADD

    rows = (isa.cp_reduce_async_bulk_s2s,)

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        kind = _kind(self, atom, PEER_REDUCTIONS)
        self.issue_to_peer(isa.cp_reduce_async_bulk_s2s, atom, parts, bar, mask, policy, **kind)


@traced
@known_as("cute_nvgpu.cpasync")
def group_bulk_copy_modes(src: Tensor, dst: Tensor) -> tuple[Tensor, Tensor]:
    """Give `src` and `dst` with all modes grouped into one, as bulk copies take them.

    >>> def kernel():
    ...     a, b = [cute.make_rmem_tensor((4, 8), cute.Float32) for _ in range(2)]
    ...     a, b = nvgpu.cpasync.group_bulk_copy_modes(a, b)
    ...     print(a.shape)
    >>> cute.simulate(kernel)[1, 1]()
    ((4, 8),)
    """
    return _grouped(src), _grouped(dst)


def _grouped(t: Tensor) -> Tensor:
    return Tensor(t.iterator, layout.group_modes(t.layout, 0, layout.rank(t.layout)))
