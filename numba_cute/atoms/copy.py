# SPDX-License-Identifier: Apache-2.0
"""`cute.copy` and the copies that need no atom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import layout, seam
from ..layout.pure import pure
from ..seam import CuteError, traced
from ..tensor.move import move
from ..tensor.pointer import AddressSpace, Pointer, check_writable
from ..tensor.tensor import Tensor, element
from .copy_atom import CopyAtom, TiledCopy

__all__ = ["autovec_copy", "basic_copy", "basic_copy_if", "copy", "copy_atom_call", "prefetch"]


@traced
def copy(
    atom: Any,
    src: Tensor,
    dst: Tensor,
    *,
    pred: Tensor | None = None,
    tma_bar_ptr: Any = None,
    mcast_mask: Any = None,
    cache_policy: Any = None,
    tma_desc_ptr: Any = None,
) -> None:
    """Copy `src` to `dst` by `atom` (or a tiled copy): both (V, rest…), V the values of one instruction.

    pred: a tensor of bools of shape (1, rest…) or (rest…): which instructions to issue. tma_bar_ptr: the mbarrier
    that a TMA load completes its bytes on. mcast_mask: the blocks of the cluster that receive it, one bit each.
    cache_policy: an L2 policy word (arch.createpolicy_fractional) for TMA, cp.async, CopyG2ROp and CopyR2GOp.
    tma_desc_ptr: a tensor map in global memory, used in place of the atom's (cpasync.update_tma_descriptor). A TMA copy
    is executed by a whole converged warp and issued by one of its lanes; it expects no bytes, commits nothing and waits
    for nothing.
    """
    if isinstance(atom, TiledCopy):
        atom.check_whole()
        atom = atom.atom
    if not isinstance(atom, CopyAtom):
        raise CuteError(f"copy: atom {atom!r} is neither a CopyAtom nor a TiledCopy")
    for t, name in ((src, "src"), (dst, "dst")):
        if not isinstance(t, Tensor):
            raise CuteError(f"copy: {name} {t!r} is not a tensor")
    check_writable(dst.iterator, "copy")
    bulk = getattr(atom.op, "issue_tma", None)
    if tma_desc_ptr is not None:
        atom = with_tensor_map(atom, tma_desc_ptr)
    if bulk is not None:
        bulk(atom, _instructions(atom, src, dst, pred), tma_bar_ptr, mcast_mask, cache_policy)
        return
    if cache_policy is not None and hasattr(atom.op, "with_cache_policy"):
        atom, cache_policy = replace(atom, op=atom.op.with_cache_policy(cache_policy)), None
    for value, name in ((tma_bar_ptr, "tma_bar_ptr"), (mcast_mask, "mcast_mask"), (cache_policy, "cache_policy")):
        if value is not None:
            raise CuteError(f"copy: {name} is for TMA operations, and the atom's is {atom.op!r}")
    whole = getattr(atom.op, "issue_whole", None)
    if whole is not None and atom.num_bits == 0 and pred is None:
        whole(src, dst)
        return
    guarded = getattr(atom.op, "issue_if", None)
    for s, d, p in _instructions(atom, src, dst, pred):
        if p is None:
            atom.op.issue(atom, s, d)
        elif guarded is not None:
            guarded(atom, s, d, p)
        else:
            seam.current().when(p, lambda s=s, d=d: atom.op.issue(atom, s, d))  # type: ignore[misc]


def with_tensor_map(atom: CopyAtom, ptr: Any) -> CopyAtom:
    """A TMA atom that uses the tensor map at `ptr`."""
    if atom.tensor_map is None:
        raise CuteError(f"copy: tma_desc_ptr is for TMA atoms, and the atom's operation is {atom.op!r}")
    if not isinstance(ptr, Pointer) or ptr.space not in (AddressSpace.gmem, AddressSpace.generic):
        raise CuteError(f"copy: tma_desc_ptr {ptr!r} must be a Pointer to global memory")
    return replace(atom, tensor_map=ptr.address)


def _instructions(atom: CopyAtom, src: Tensor, dst: Tensor, pred: Tensor | None) -> list[tuple[Tensor, Tensor, Any]]:
    """(src, dst, predicate) of each instruction."""
    lists = []
    for t, name, tv in ((src, "src", atom.layout_src_tv), (dst, "dst", atom.layout_dst_tv)):
        if not seam.is_static(t.shape):
            raise CuteError(f"copy: {name} has shape {t.shape}; it must be static: index its run-time modes")
        lists.append(_split(t, int(layout.size(tv, (1,))), name))
    srcs, dsts = lists
    if len(srcs) != len(dsts):
        raise CuteError(
            f"copy: src of shape {src.shape} makes {len(srcs)} instructions, but dst of shape {dst.shape} {len(dsts)}"
        )
    if pred is None:
        return [(s, d, None) for s, d in zip(srcs, dsts)]
    count = int(layout.size(pred.shape))
    if len(srcs) % count:
        raise CuteError(f"copy: pred has shape {pred.shape}, but there are {len(srcs)} instructions to guard")
    each = len(srcs) // count
    return [(s, d, _truth(pred, i // each)) for i, (s, d) in enumerate(zip(srcs, dsts))]


def _split(t: Tensor, values: int, name: str) -> list[Tensor]:
    """The parts of `values` elements: mode 0 over all the others, or, where it holds more, over its own modes."""
    out = []
    for path in instruction_paths(t.layout, values, name):
        part = t
        for opened, coord in path:
            part = (Tensor(part.iterator, part.layout[0]) if opened else part)[coord]
        out.append(part)
    return out


@pure
def instruction_paths(lay: Any, values: int, name: str) -> tuple[tuple[tuple[bool, Any], ...], ...]:
    """For each part its slices, one after the other: (whether mode 0 is opened first, the coordinate taken)."""
    opened = False
    if layout.rank(lay) == 1:
        if int(layout.size(lay)) == values:
            return ((),)
        inner = layout.unwrap(lay.shape)
        if not isinstance(inner, tuple) or len(inner) < 2:
            raise CuteError(f"copy: {name} has {layout.size(lay)} values, {lay}, but the atom copies {values}")
        lay, opened = lay[0], True
    paths: list[Any] = []
    for i in range(int(layout.size(lay.shape[1:]))):
        coord = (None, *layout.idx2crd(i, lay.shape[1:]))
        rest = instruction_paths(layout.slice_(lay, coord), values, name)
        paths += [((opened, coord), *more) for more in rest]
    return tuple(paths)


@traced
def copy_atom_call(
    atom: CopyAtom,
    src: Tensor,
    dst: Tensor,
    *,
    pred: Tensor | None = None,
    tma_bar_ptr: Any = None,
    mcast_mask: Any = None,
    cache_policy: Any = None,
    tma_desc_ptr: Any = None,
) -> None:
    """`copy` of tensors of one mode: a single instruction."""
    for t, name in ((src, "src"), (dst, "dst")):
        if layout.rank(t.layout) != 1:
            raise CuteError(f"copy_atom_call: {name} has shape {t.shape}; slice it to one mode, or use copy")
    copy(
        atom, src, dst, pred=pred, tma_bar_ptr=tma_bar_ptr, mcast_mask=mcast_mask, cache_policy=cache_policy,
        tma_desc_ptr=tma_desc_ptr,
    )  # fmt: skip


@traced
def prefetch(atom: CopyAtom, src: Tensor) -> None:
    """Fetch the boxes of a TMA tensor (V, rest…) into L2. A whole converged warp; one lane issues."""
    op = getattr(atom.op, "issue_prefetch", None)
    if op is None:
        raise CuteError(f"prefetch: the atom's operation {atom.op!r} is not a TMA load")
    op(atom, [s for s, _, _ in _instructions(atom, src, src, None)])


def _memory(t: Tensor, what: str, name: str) -> Pointer:
    if not isinstance(t, Tensor) or not isinstance(t.iterator, Pointer):
        raise CuteError(f"{what}: {name} {t!r} must be a tensor in memory or registers")
    return t.iterator


@traced
def autovec_copy(src: Tensor, dst: Tensor) -> None:
    """Copy all elements by this thread, in accesses as wide as layouts and alignment prove (16 bytes at most)."""
    a, b = _memory(src, "autovec_copy", "src"), _memory(dst, "autovec_copy", "dst")
    move(a, src.layout, b, dst.layout)


@traced
def basic_copy(src: Tensor, dst: Tensor) -> None:
    """Copy all elements by this thread, one at a time."""
    a, b = _memory(src, "basic_copy", "src"), _memory(dst, "basic_copy", "dst")
    move(a, src.layout, b, dst.layout, limit=1)


@traced
def basic_copy_if(pred: Tensor, src: Tensor, dst: Tensor) -> None:
    """Copy the elements where `pred`, a tensor of the same shape, is true; by this thread, one at a time."""
    a, b = _memory(src, "basic_copy_if", "src"), _memory(dst, "basic_copy_if", "dst")
    if layout.size(pred.shape) != layout.size(src.shape):
        raise CuteError(f"basic_copy_if: pred has shape {pred.shape}, but src has {src.shape}")
    move(a, src.layout, b, dst.layout, limit=1, pred=lambda i: _truth(pred, i))


def _truth(pred: Tensor, i: int) -> Any:
    at = element(pred, i)
    return at.load() if isinstance(at, Pointer) else at


def in_memory(t: Tensor, space: AddressSpace) -> bool:
    """Whether a tensor lies in this memory."""
    return isinstance(t.iterator, Pointer) and t.iterator.space is space
