# SPDX-License-Identifier: Apache-2.0
"""cp.async: each thread copies a few bytes from global to shared memory, some time later. sm_80.

`arch.cp_async_commit_group` closes a group of copies, `arch.cp_async_wait_group` waits for it, and then a barrier
shows them to the block.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import isa, seam
from ...atoms.copy_atom import CopyAtom, CopyTraits
from ...dtypes import DType, Uint32
from ...layout import coalesce, make_layout, size
from ...layout.pure import pure
from ...seam import CuteError, static
from ...tensor.pointer import AddressSpace, Pointer, access_alignment, physical
from ...tensor.tensor import Tensor
from ..common import L2PrefetchSize, LoadCacheMode

__all__ = ["CopyG2SOp"]


@pure
def _traits(values: int) -> CopyTraits:
    tv = make_layout((1, values), stride=(0, 1))
    return CopyTraits(make_layout(1), tv, tv, tv)


@static
class CopyG2SOp:
    """cp.async of 4, 8 or 16 bytes (`num_bits_per_copy` 32, 64, 128) from global to shared memory by each thread.

    cache_mode: LoadCacheMode.ALWAYS, or GLOBAL (L2 alone; 16 bytes). prefetch: bytes fetched into L2 beside it. zfill:
    where a copy's predicate is false, write zeros (the default: tiles that overhang a matrix are multiplied whole);
    otherwise it is left out, and shared memory keeps what it holds. `cute.copy(…, cache_policy=word)` gives it an L2
    policy. Commit a group and wait for it before reading. PTX cp.async, sm_80."""

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS
    prefetch: L2PrefetchSize = L2PrefetchSize.NONE
    zfill: bool = True
    policy: Any = None

    def __post_init__(self) -> None:
        if self.cache_mode not in (LoadCacheMode.ALWAYS, LoadCacheMode.GLOBAL):
            raise CuteError(f"CopyG2SOp: cache_mode {self.cache_mode!r} must be LoadCacheMode.ALWAYS or .GLOBAL")
        if not isinstance(self.prefetch, L2PrefetchSize):
            raise CuteError(f"CopyG2SOp: prefetch {self.prefetch!r} is not a member of L2PrefetchSize")
        if type(self.zfill) is not bool:
            raise CuteError(f"CopyG2SOp: zfill {self.zfill!r} must be True or False")

    def traits(self, dtype: DType, num_bits_per_copy: int) -> CopyTraits:
        return _traits(max(1, num_bits_per_copy // dtype.width))  # type: ignore[no-any-return]

    def with_cache_policy(self, policy: Any) -> CopyG2SOp:
        """The operation with an L2 cache policy."""
        return replace(self, policy=policy)

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        to, at, statics = self._operands(atom, src, dst)
        isa.cp_async(to, at, policy=self.policy, **statics)

    def issue_if(self, atom: CopyAtom, src: Tensor, dst: Tensor, pred: Any) -> None:
        """Issue it where `pred`; with zfill, write zeros elsewhere."""
        to, at, statics = self._operands(atom, src, dst)
        backend = seam.current()
        if self.zfill:
            nbytes = backend.select(pred, Uint32(statics["nbytes"]), Uint32(0))
            isa.cp_async(to, at, src_size=nbytes, policy=self.policy, **statics)
        else:
            backend.when(pred, lambda: isa.cp_async(to, at, policy=self.policy, **statics))

    def _operands(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> tuple[Any, Any, dict[str, Any]]:
        nbytes = max(atom.num_bits, atom.value_type.width) // 8
        legal = (16,) if self.cache_mode is LoadCacheMode.GLOBAL else (4, 8, 16)
        if nbytes not in legal:
            bits = " or ".join(str(8 * n) for n in legal)
            raise CuteError(f"CopyG2SOp: num_bits_per_copy {8 * nbytes} with {self.cache_mode}: it must be {bits}")
        p, q = _contiguous(src, nbytes, AddressSpace.gmem, "src"), _contiguous(dst, nbytes, AddressSpace.smem, "dst")
        statics = {"nbytes": nbytes, "cache": self.cache_mode.value, "prefetch": self.prefetch.value}
        return physical(q), physical(p), statics


def _contiguous(t: Tensor, nbytes: int, space: AddressSpace, name: str) -> Pointer:
    """The pointer to `nbytes` consecutive bytes, proved to be so and aligned."""
    p = t.iterator
    if not isinstance(p, Pointer) or p.space not in (space, *((AddressSpace.generic,) if name == "src" else ())):
        raise CuteError(f"copy: {name} {t!r} must lie in {space.name}; cp.async copies from global to shared memory")
    flat = coalesce(t.layout)
    if size(flat) * p.dtype.width != 8 * nbytes or (size(flat) > 1 and flat.stride not in (1, (1,))):
        raise CuteError(f"copy: {name} {t!r} must be {nbytes} consecutive bytes for cp.async; partition it so")
    if access_alignment(p) % nbytes:
        raise CuteError(
            f"copy: {name} {t!r} is not known to be aligned to {nbytes} bytes; give assumed_align and static strides, "
            "or use a narrower num_bits_per_copy"
        )
    return p
