# SPDX-License-Identifier: Apache-2.0
"""`cute.copy` and the copies that need no atom."""

from __future__ import annotations

from typing import Any

from .. import layout, seam
from ..layout.int_tuple import same as alike
from ..seam import CuteError, StaticEnum, traced
from ..seam.guards.messages import how_static
from ..tensor.move import WIDEST, check_formats, move, vector_width
from ..tensor.pointer import AddressSpace, Pointer, check_writable
from ..tensor.tensor import Tensor
from .accesses import hinted_access
from .copy_atom import CopyAtom, ThrCopy, TiledCopy
from .instructions import truth

__all__ = ["autovec_copy", "basic_copy", "basic_copy_if", "copy", "copy_atom_call", "prefetch"]


@traced
def copy(
    atom: CopyAtom | TiledCopy | ThrCopy,
    src: Tensor,
    dst: Tensor | tuple[Tensor, ...],
    *,
    pred: Tensor | None = None,
    tma_bar_ptr: Pointer | None = None,
    mcast_mask: Any = None,
    cache_policy: Any = None,
    tma_desc_ptr: Pointer | None = None,
    unroll_factor: int | None = None,
    mbar_ptr: Pointer | None = None,
) -> None:
    """Copy `src` to `dst` by `atom`, an atom, a tiled copy or a thread's part of one. Both are (V, rest…), V the values
    of one instruction. Of an operation that writes several tensors, such as tcgen05.LdRed32x32bOp, `dst` is a tuple of
    them.

    pred: a tensor of bools of shape (1, rest…) or (rest…): which instructions to issue. tma_bar_ptr: the mbarrier
    that a TMA load completes its bytes on. mcast_mask: the blocks of the cluster that receive it, one bit each;
    a load without multicast takes 0, and 1 as the mask of a single block, and loads for its own block.
    cache_policy: an L2 policy word (arch.createpolicy_fractional) for TMA, cp.async, CopyG2ROp and CopyR2GOp.
    tma_desc_ptr: a tensor map in global memory, used in place of the atom's (cpasync.update_tma_descriptor).
    unroll_factor: how many instructions to unroll at once, a positive static int; all are, whatever it is.
    mbar_ptr: the name that `tma_bar_ptr` has for bulk copies in the CuTe DSL; either is taken, not both. Executed
    by the threads that the operation names: a TMA copy by a whole converged warp, of which one lane issues. It expects
    no bytes, commits nothing and waits for nothing.

    Raises CuteError for shapes that do not make the same number of instructions, for memories that the operation does
    not copy between, and for arguments that it does not take. PTX and least target: the operation's.

    >>> x = cute.runtime.from_dlpack(np.arange(8, dtype=np.float32), assumed_align=16)
    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    >>> tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(2), cute.make_layout(4))
    >>> def kernel(x):
    ...     mine = tiled.get_slice(arch.thread_idx()[0]).partition_S(x)
    ...     r = cute.make_fragment_like(mine)
    ...     cute.copy(tiled, mine, r)
    ...     cute.printf("{}", r[0])
    >>> cute.simulate(kernel)[1, 2](x)
    0.000000
    4.000000
    """
    atom = atom.tiled_copy if isinstance(atom, ThrCopy) else atom
    if isinstance(atom, TiledCopy):
        atom.check_whole()
        atom = atom.atom
    if not isinstance(atom, CopyAtom):
        raise CuteError(f"copy: atom {atom!r} is neither a CopyAtom nor a TiledCopy")
    written = dst if isinstance(dst, tuple) else (dst,)
    if len(written) != atom.op.destinations:
        raise CuteError(f"copy: dst is {len(written)} tensors, but {atom.op!r} writes {atom.op.destinations}")
    for t, name in ((src, "src"), *((t, "dst") for t in written)):
        if not isinstance(t, Tensor):
            raise CuteError(f"copy: {name} {t!r} is not a tensor")
    for t in written:
        check_writable(t.iterator, "copy")
        check_formats(src.iterator, t.iterator)
    if unroll_factor is not None and (not isinstance(unroll_factor, int) or unroll_factor < 1):
        raise CuteError(
            f"copy: unroll_factor {unroll_factor!r} must be a positive static int, or left out"
            f"{how_static(unroll_factor)}"
        )
    if tma_desc_ptr is not None:
        atom = atom.with_tensor_map(tma_desc_ptr)
    to: Any = dst
    atom.op.copy(atom, src, to, pred, _barrier(tma_bar_ptr, mbar_ptr), mcast_mask, cache_policy)


def _barrier(tma_bar_ptr: Any, mbar_ptr: Any) -> Any:
    """Return the mbarrier of a copy, which has two names."""
    if tma_bar_ptr is not None and mbar_ptr is not None:
        raise CuteError("copy: tma_bar_ptr and mbar_ptr are two names of one argument: give one")
    return mbar_ptr if tma_bar_ptr is None else tma_bar_ptr


@traced
def copy_atom_call(
    atom: CopyAtom,
    src: Tensor,
    dst: Tensor,
    *,
    pred: Tensor | None = None,
    tma_bar_ptr: Pointer | None = None,
    mcast_mask: Any = None,
    cache_policy: Any = None,
    tma_desc_ptr: Pointer | None = None,
    mbar_ptr: Pointer | None = None,
) -> None:
    """Issue a single instruction of `atom`, from `src` to `dst`, tensors of one mode.

    pred, tma_bar_ptr, mcast_mask, cache_policy, tma_desc_ptr, mbar_ptr: as in `copy`. Raises CuteError for tensors of
    more modes.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     r = cute.make_rmem_tensor(4, cute.Float32)
    ...     atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    ...     cute.copy_atom_call(atom, x, r)
    ...     print(r[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    for t, name in ((src, "src"), (dst, "dst")):
        if layout.rank(t.layout) != 1:
            raise CuteError(f"copy_atom_call: {name} has shape {t.shape}; slice it to one mode, or use copy")
    copy(
        atom, src, dst, pred=pred, tma_bar_ptr=tma_bar_ptr, mcast_mask=mcast_mask, cache_policy=cache_policy,
        tma_desc_ptr=tma_desc_ptr, mbar_ptr=mbar_ptr,
    )  # fmt: skip


@traced
def prefetch(atom: CopyAtom, src: Tensor) -> None:
    """Fetch what `atom`, of a bulk or TMA load, would load of `src` (V, rest…) into L2.

    Executed as the load: by a whole converged warp, of which one lane issues, or by one thread for bulk copies. Raises
    CuteError for other operations. PTX cp.async.bulk.prefetch, sm_90.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     cute.prefetch(cute.make_copy_atom(nvgpu.cpasync.CopyBulkG2SOp(), cute.Float32), x)
    >>> cute.simulate(kernel)[1, 1](x)
    """
    atom.op.issue_prefetch(atom, src)


def _memory(t: Tensor, what: str, name: str) -> Pointer:
    if not isinstance(t, Tensor) or not isinstance(t.iterator, Pointer):
        raise CuteError(f"{what}: {name} {t!r} must be a tensor in memory or registers")
    return t.iterator


@traced
def autovec_copy(src: Tensor, dst: Tensor, *, l1c_evict_priority: Any = None) -> None:
    """Copy all elements of `src` to `dst` by this thread, in accesses as wide as layouts and alignment prove (16 bytes
    at most). l1c_evict_priority: a `nvgpu.CacheEvictionPriority`: how L1 keeps what is in global memory (sm_80).
    Raises CuteError unless both lie in memory or registers, and for a priority where neither, or both, lie in global
    memory, or that moves less than a byte. PTX ld, st and mov, any target.

    >>> a, b = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    >>> tensors = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b)]
    >>> cute.simulate(lambda a, b: cute.autovec_copy(a, b))[1, 1](*tensors)
    >>> b
    array([0., 1., 2., 3.], dtype=float32)
    """
    a, b = _memory(src, "autovec_copy", "src"), _memory(dst, "autovec_copy", "dst")
    evict = l1c_evict_priority.value if isinstance(l1c_evict_priority, StaticEnum) else None
    if l1c_evict_priority is not None and not isinstance(evict, str):
        raise CuteError(f"autovec_copy: l1c_evict_priority {l1c_evict_priority!r} is no CacheEvictionPriority")
    move(a, src.layout, b, dst.layout, access=hinted_access(a, b, evict) if evict else None, hoped=True)


@traced
def basic_copy(src: Tensor, dst: Tensor) -> None:
    """Copy all elements of `src` to `dst` by this thread, one at a time. Raises CuteError unless both lie in memory or
    registers. PTX ld, st and mov, any target.

    >>> a, b = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    >>> tensors = [cute.runtime.from_dlpack(x) for x in (a, b)]
    >>> cute.simulate(lambda a, b: cute.basic_copy(a, b))[1, 1](*tensors)
    >>> b
    array([0., 1., 2., 3.], dtype=float32)
    """
    a, b = _memory(src, "basic_copy", "src"), _memory(dst, "basic_copy", "dst")
    move(a, src.layout, b, dst.layout, limit=1)
    seam.loses(lambda: _could_be_wider(a, src.layout, b, dst.layout))


def _could_be_wider(src: Pointer, slayout: Any, dst: Pointer, dlayout: Any) -> str | None:
    width = vector_width(src, slayout, dst, dlayout, WIDEST)
    if width == 1 or src.space is dst.space is AddressSpace.rmem:
        return None
    return f"basic_copy moves {src.dtype} one at a time, and autovec_copy would move {width} at once"


@traced
def basic_copy_if(pred: Tensor, src: Tensor, dst: Tensor) -> None:
    """Copy the elements of `src` to `dst` where `pred`, a tensor of the same size, is true; by this thread, one at a
    time. Raises CuteError for a `pred` of another size. PTX ld, st and mov, any target.

    >>> a, b = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    >>> tensors = [cute.runtime.from_dlpack(x) for x in (np.array([1, 0, 1, 0], bool), a, b)]
    >>> cute.simulate(lambda p, a, b: cute.basic_copy_if(p, a, b))[1, 1](*tensors)
    >>> b
    array([0., 0., 2., 0.], dtype=float32)
    """
    a, b = _memory(src, "basic_copy_if", "src"), _memory(dst, "basic_copy_if", "dst")
    if not alike(layout.size(pred.shape), layout.size(src.shape)):
        raise CuteError(f"basic_copy_if: pred has shape {pred.shape}, but src has {src.shape}")
    move(a, src.layout, b, dst.layout, limit=1, pred=lambda i: truth(pred, i))
