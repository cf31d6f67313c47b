# SPDX-License-Identifier: Apache-2.0
"""cp.async: each thread copies a few bytes from global to shared memory, some time later. sm_80.

`arch.cp_async_commit_group` closes a group of copies, `arch.cp_async_wait_group` waits for it, and then a barrier
shows them to the block.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import isa, seam
from ...atoms.copy_atom import CopyAtom
from ...atoms.op import CopyOp, CopyTraits
from ...dtypes import DType, Uint32
from ...layout import coalesce, size
from ...seam import CuteError, frozen, known_as
from ...tensor.pointer import AddressSpace, Pointer, access_alignment, physical
from ...tensor.tensor import Tensor
from ..common.by_row import ByRow, Choice, alternatives, remembered
from ..common.checks import plain_layout
from ..common.choices import L2PrefetchSize, LoadCacheMode
from ..common.copies import one_thread

_CACHE = Choice("cache_mode", ("cache",), {mode.value: mode for mode in LoadCacheMode})
_PREFETCH = Choice("prefetch", ("prefetch",), {size.value: size for size in L2PrefetchSize})

__all__ = ["CopyG2SOp"]


@remembered
def _sizes(cache: str) -> tuple[int, ...]:
    """The bytes that the instruction copies with this cache mode."""
    return tuple(dict.fromkeys(case["nbytes"] for case in isa.cp_async.cases if case["cache"] == cache))


@frozen
@known_as("cute_nvgpu.cpasync")
class CopyG2SOp(ByRow, CopyOp):
    """Copy 4, 8 or 16 bytes (`num_bits_per_copy` 32, 64, 128) from global to shared memory by each thread, some time
    later. Commit a group and wait for it before reading. PTX cp.async, sm_80.

    cache_mode: LoadCacheMode.ALWAYS, or GLOBAL (L2 alone; 16 bytes). prefetch: bytes fetched into L2 beside it. zfill:
    where a copy's predicate is false, write zeros (the default: tiles that overhang a matrix are multiplied whole);
    otherwise it is left out, and shared memory keeps what it holds. policy: an L2 policy word, as
    `cute.copy(…, cache_policy=word)` gives it. Raises CuteError for others.

    >>> cute.make_copy_atom(nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128).layout_src_tv
    (1,4):(0,1)
    """

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS
    prefetch: L2PrefetchSize = L2PrefetchSize.NONE
    zfill: bool = True
    policy: Any = None

    _by_lanes = True
    rows = (isa.cp_async,)
    choices = (_CACHE, _PREFETCH)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.zfill) is not bool:
            raise CuteError(f"cpasync.CopyG2SOp: zfill {self.zfill!r} must be True or False")

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return one_thread(max(1, num_bits // dtype.width))

    def with_cache_policy(self, policy: Any) -> CopyG2SOp:
        """Give the operation with the L2 cache policy `policy`."""
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
        legal = _sizes(self.cache_mode.value)
        if nbytes not in legal:
            bits = alternatives(8 * n for n in legal)
            raise CuteError(f"CopyG2SOp: num_bits_per_copy {8 * nbytes} with {self.cache_mode}: it must be {bits}")
        p, q = _contiguous(src, nbytes, AddressSpace.gmem, "src"), _contiguous(dst, nbytes, AddressSpace.smem, "dst")
        statics = {"nbytes": nbytes, "cache": self.cache_mode.value, "prefetch": self.prefetch.value}
        return physical(q), physical(p), statics


def _contiguous(t: Tensor, nbytes: int, space: AddressSpace, name: str) -> Pointer:
    """The pointer to `nbytes` consecutive bytes, proved to be so and aligned."""
    p = t.iterator
    if not isinstance(p, Pointer) or p.space not in (space, *((AddressSpace.generic,) if name == "src" else ())):
        raise CuteError(f"copy: {name} {t!r} must lie in {space.name}; cp.async copies from global to shared memory")
    flat = coalesce(plain_layout(t, f"copy: {name}"))
    if size(flat) * p.dtype.width != 8 * nbytes or (size(flat) > 1 and flat.stride not in (1, (1,))):
        raise CuteError(f"copy: {name} {t!r} must be {nbytes} consecutive bytes for cp.async; partition it so")
    if access_alignment(p) % nbytes:
        raise CuteError(
            f"copy: {name} {t!r} is not known to be aligned to {nbytes} bytes; give assumed_align and static strides, "
            "or use a narrower num_bits_per_copy"
        )
    return p
