# SPDX-License-Identifier: Apache-2.0
"""Stores to a peer's shared memory that complete on its barrier. sm_90."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import isa, seam
from ...atoms.copy_atom import CopyAtom
from ...atoms.instructions import Part
from ...atoms.op import CopyOp, CopyTraits
from ...dtypes import DType, Uint32
from ...isa.rows.cluster import st_async
from ...layout import coalesce, size
from ...seam import CuteError, frozen, known_as
from ...tensor.pointer import AddressSpace, Pointer, access_alignment, physical, shared_address
from ...tensor.tensor import Tensor
from ..common.by_row import alternatives
from ..common.checks import in_shared, plain_layout
from ..common.copies import one_thread

__all__ = ["CopyDsmemStoreOp"]


@frozen
@known_as("cute_nvgpu.cpasync")
class CopyDsmemStoreOp(CopyOp):
    """Store 4, 8 or 16 bytes (`num_bits_per_copy` 32, 64, 128) of each thread's registers to shared memory of a block
    of the cluster, some time later; the bytes complete on `tma_bar_ptr` there. Any thread. PTX st.async, sm_90.

    peer: a rank in the cluster, to which destination and barrier, this block's addresses, are mapped; None: they are
    the peer's already (`arch.mapa`).

    >>> cute.make_copy_atom(nvgpu.cpasync.CopyDsmemStoreOp(), cute.Float32, num_bits_per_copy=128).layout_src_tv
    (1,4):(0,1)
    """

    peer: Any = None

    rows = (st_async,)

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        bits = num_bits or max(32, dtype.width)
        widths = [32 * case["count"] for case in st_async.cases]
        if bits not in widths or bits % dtype.width:
            raise CuteError(
                f"CopyDsmemStoreOp: num_bits_per_copy {num_bits} with {dtype} elements: use {alternatives(widths)} bits"
            )
        return one_thread(bits // dtype.width)

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        if bar is None:
            raise CuteError("copy: CopyDsmemStoreOp needs tma_bar_ptr, the barrier that its bytes complete on")
        if mask is not None or policy is not None:
            raise CuteError("copy: mcast_mask and cache_policy are not for CopyDsmemStoreOp, which writes to one block")
        at = self._of_peer(shared_address(bar, "copy: tma_bar_ptr"))
        for s, d, p in parts:
            if p is None:
                self._store(atom, s, d, at)
            else:
                seam.current().when(p, lambda s=s, d=d: self._store(atom, s, d, at))  # type: ignore[misc]

    def _of_peer(self, address: Any) -> Any:
        return address if self.peer is None else isa.mapa(address, Uint32(self.peer))

    def _store(self, atom: CopyAtom, src: Tensor, dst: Tensor, bar: Any) -> None:
        bits = atom.num_bits or max(32, atom.value_type.width)
        p, q = src.iterator, dst.iterator
        if not isinstance(p, Pointer) or p.space is not AddressSpace.rmem:
            raise CuteError(f"copy: src {src!r} must be in registers for CopyDsmemStoreOp; load it first")
        in_shared(dst, "copy: dst")
        for t, name in ((src, "src"), (dst, "dst")):
            flat = coalesce(plain_layout(t, f"copy: {name}"))
            if size(flat) > 1 and flat.stride not in (1, (1,)):
                raise CuteError(f"copy: {name} {t!r} must be {bits // 8} consecutive bytes; partition it so")
        if access_alignment(q) % (bits // 8):
            raise CuteError(
                f"copy: dst {dst!r} is not known to be aligned to {bits // 8} bytes; allocate it with byte_alignment, "
                "or use a narrower num_bits_per_copy"
            )
        count = bits // p.dtype.width
        vector = seam.current().vector(seam.Regs(p.address, p.dtype, p.offset, count))
        words = seam.current().bitcast(vector, Uint32)
        lanes = [seam.current().lane(words, i) for i in range(bits // 32)]
        st_async(self._of_peer(physical(q)), lanes, bar, count=len(lanes))
