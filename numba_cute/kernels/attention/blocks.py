# SPDX-License-Identifier: Apache-2.0
"""Masks of attention as blocks of queries and keys: which of them are visited at all, and which are seen whole, so that
the mask's function is asked of the others alone.

A kernel asks the function of all queries and keys, once, in the making of a `BlockMask`; attention skips what nobody
sees, and reads no key of it. The lists are those of `visits.py`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.seam import CuteError

from .elements import truth
from .plan import Options, sizes

__all__ = ["BlockMask", "block_mask", "block_mask_from"]

WHAT = "block_mask"
ROWS, KEYS = 64, 16  # of which a block has multiples


class BlockMask(NamedTuple):
    """Hold a mask of attention by blocks; `block_mask` and `block_mask_from` make one.

    counts, lists: int32, (batch, heads, rows of blocks) and with the blocks of a row as a last mode, as `visits.Visits`
    has them; 1 where all batches, or heads, have the same. of_keys: the two of the blocks' columns: which rows see
    them. block: queries and keys of a block. mask, aux: the function that is asked of what is not seen whole, or None,
    and what it takes beside. extents: the queries and keys of which the function was asked, or None.
    """

    counts: Any
    lists: Any
    of_keys: tuple[Any, Any]
    block: tuple[int, int]
    mask: Any = None
    aux: tuple[Any, ...] = ()
    extents: tuple[int, int] | None = None


@functools.cache
def make_ask(mask):
    """The kernel that asks the mask's function of all queries and keys of a block. Its grid: (columns of blocks, rows,
    batch times heads); its block: a warp."""

    @cuda.jit(launch_bounds=32)
    def ask(found, rows, keys, queries, all_keys, heads, aux):
        """Write to found, uint8 (batch times heads, rows, columns), 0 where nothing is seen of a block of so many rows
        and keys, 2 where all is, of what there is, and else 1."""
        column, row, which = cute.arch.block_idx()
        lane = cute.arch.lane_idx()
        some, every = False, True
        for i in range(rows * keys // 32):
            at = i * 32 + lane
            query, key = cute.Int32(row * rows + at // keys), cute.Int32(column * keys + at % keys)
            if query < queries and key < all_keys:
                seen = truth(mask(cute.Int32(which // heads), cute.Int32(which % heads), query, key, *aux))
                some, every = some or seen, every and seen
        some, every = cute.arch.vote_any_sync(some), cute.arch.vote_all_sync(every)
        if lane == 0:
            found[which, row, column] = (2 if every else 1) if some else 0

    return ask


def listed(visited: Any, whole: Any) -> tuple[Any, Any]:
    """Give counts and lists of the last mode's blocks, as of `BlockMask`. visited, whole: booleans."""
    torch, n = entry.pytorch(), visited.shape[-1]
    numbers = torch.arange(n, dtype=torch.int32, device=visited.device) * 2 + whole.int()
    lists = torch.where(visited, numbers, 2 * n).sort(-1).values
    return visited.sum(-1, dtype=torch.int32), lists.to(torch.int32).contiguous()


def made(
    visited: Any, whole: Any, block: tuple[int, int], mask: Any, aux: tuple[Any, ...], extents: Any = None
) -> BlockMask:  # fmt: skip
    """Make the structure of booleans (batch, heads, rows, columns)."""
    counts, lists = listed(visited, whole)
    return BlockMask(counts, lists, listed(visited.mT, whole.mT), block, mask, tuple(aux), extents)


def check_block(block: Any) -> tuple[int, int]:
    """Refuse an extent of blocks that no kernel has; gives it as a tuple."""
    if (
        not isinstance(block, (tuple, list)) or len(block) != 2 or any(type(n) is not int or n < 1 for n in block)
        or block[0] % ROWS or block[1] % KEYS
    ):  # fmt: skip
        raise CuteError(
            f"{WHAT}: block is {block!r}; it must be (queries, keys), a multiple of {ROWS} and one of {KEYS}; "
            "(128, 128) is fast"
        )
    return block[0], block[1]


def block_mask(
    mask: Any, batch: int | None, heads: int | None, queries: int, keys: int, *, aux: tuple[Any, ...] = (),
    block: tuple[int, int] = (128, 128), device: Any = None,
) -> BlockMask:  # fmt: skip
    """Find which blocks of queries and keys a mask of `flash_attention` sees, for its `blocks`.

    mask: `mask(batch, head, query, key, *aux)`, a function that kernels can call, says whether the query sees the key,
    a boolean. batch, heads: how many; None where the mask is the same for all, and is asked of 0. queries, keys: of the
    longest sequence, in each of which they count from 0. aux: tensors and numbers for it; the mask is of what they hold
    now. block: queries and keys of a block, multiples of 64 and 16; gradients want 128 or 256, and a multiple of 64
    (on Blackwell of 128). device: where the lists lie, by default the current GPU.

    Gives a `BlockMask`: as long as nothing that the function reads changes, it serves as many calls as you like.
    CuteError: what is not so.

    >>> import torch
    >>> def causal(batch, head, query, key):
    ...     return key <= query
    >>> with cute.simulation():
    ...     blocks = cute.kernels.block_mask(causal, None, None, 256, 256, device="cpu")
    >>> blocks.counts  # of each row of blocks
    tensor([[[1, 2]]], dtype=torch.int32)
    """
    torch, block = entry.pytorch(), check_block(block)
    for name, n in (("batch", batch or 1), ("heads", heads or 1), ("queries", queries), ("keys", keys)):
        if type(n) is not int or n < 1:
            raise CuteError(f"{WHAT}: {name} is {n!r}; it must be a number of at least 1")
    if not callable(mask):
        raise CuteError(f"{WHAT}: mask is {mask!r}; it must be a function (batch, head, query, key, …)")
    device = device or ("cpu" if entry.simulated() else "cuda")
    rows, columns = -(-queries // block[0]), -(-keys // block[1])
    found = torch.empty((batch or 1) * (heads or 1), rows, columns, dtype=torch.uint8, device=device)
    entry.check_place(WHAT, "device", found)
    numbers = map(cute.Int32, (*block, queries, keys, heads or 1))
    with entry.on_device_of(found):
        launch = cute.launch(
            make_ask(mask), grid=(columns, rows, len(found)), block=32, stream=entry.stream_of(found)
        )  # fmt: skip
        launch(found, *numbers, tuple(aux))
    found = found.view(batch or 1, heads or 1, rows, columns)
    return made(found > 0, found == 2, block, mask, aux, (queries, keys))


def block_mask_from(
    visited: Any, whole: Any = None, *, block: tuple[int, int] = (128, 128), mask: Any = None,
    aux: tuple[Any, ...] = (),
) -> BlockMask:  # fmt: skip
    """Make the `blocks` of `flash_attention` of a tensor that says which are visited.

    visited: bool, (batch, heads, rows of blocks, columns of blocks); 1 where all batches, or heads, have the same.
    whole: those of them of which all is seen, so that the function is not asked; without a function all are. block:
    queries and keys of a block; mask, aux: the function that is asked of the others: both as of `block_mask`.
    CuteError: what is not so.

    >>> import torch
    >>> visited = torch.tensor([[True, False], [True, True]])[None, None]
    >>> with cute.simulation():
    ...     blocks = cute.kernels.block_mask_from(visited)
    >>> blocks.counts  # of each row of blocks
    tensor([[[1, 2]]], dtype=torch.int32)
    """
    entry.check(WHAT, "visited", visited, dtypes=("bool",), rank=4)
    entry.check_place(WHAT, "visited", visited)
    entry.check(WHAT, "whole", whole, dtypes=("bool",), shape=visited.shape, like=visited, optional=True)
    if whole is not None and mask is None:
        raise CuteError(
            f"{WHAT}: whole is given without a mask: blocks that are visited are then seen whole; give "
            "the mask's function too"
        )
    if mask is None:
        whole = visited
    elif whole is None:
        whole = visited.new_zeros(visited.shape)
    return made(visited, whole & visited, check_block(block), mask, aux)


def of_blocks(what: str, blocks: Any, mask: Any, mask_aux: Any) -> tuple[Any, ...]:
    """Give the mask's function, what it takes, its blocks' lists, and their extents and those of what they are of, as a
    call of an entry says them."""
    if blocks is None and mask is None and mask_aux:
        raise CuteError(f"{what}: mask_aux is given without the mask that it belongs to: give the function too")
    if mask is not None and not callable(mask):
        raise CuteError(f"{what}: mask is {entry.described(mask)}; it must be a function (batch, head, query, key, …)")
    if blocks is None:
        return mask, mask_aux, [], None, None
    if not isinstance(blocks, BlockMask):
        raise CuteError(
            f"{what}: blocks is {entry.described(blocks)}; make it by kernels.block_mask(mask, …), or of a tensor by "
            "kernels.block_mask_from(visited, …)"
        )
    if mask is not None or mask_aux:
        raise CuteError(f"{what}: mask is given, and blocks, which has a mask of its own: give that to what makes it")
    lists = [blocks.counts, blocks.lists, *blocks.of_keys]
    return blocks.mask, blocks.aux, lists, blocks.block, blocks.extents


def check_listed(what: str, q: Any, k: Any, lengths: Any, listed: Any, how: Any) -> None:
    """Refuse lists of a mask's blocks that are not of these queries and keys. what: the entry. listed: none, or
    (counts, lists, …). how: its options."""
    if how.block is None:
        return
    heads, narrow, (counts, lists) = q.shape[-2], q.dtype.itemsize == 1, listed[:2]
    if lengths.cu_k is not None and how.most_keys is None:
        raise CuteError(f"{what}: blocks and cu_seqlens_k are given; give max_seqlen_k too, which blocks depend on")
    batch, queries, keys = sizes(q, k, Options(1.0, most_queries=how.most_queries), lengths)
    if lengths.cu_k is not None:
        keys = how.most_keys
    rows, columns = -(-queries // how.block[0]), -(-keys // how.block[1])
    b, h, *inner = lists.shape
    if b not in (1, batch) or h not in (1, heads) or inner != [rows, columns] or tuple(counts.shape) != (b, h, rows):
        raise CuteError(
            f"{what}: blocks is of {b} batches, {h} heads and {' x '.join(map(str, inner))} blocks of "
            f"{how.block[0]} queries and {how.block[1]} keys; here it must be {batch} (or 1), {heads} (or 1) and "
            f"{rows} x {columns}: q is {entry.described(q)}, and k {entry.described(k)}"
        )
    if how.extents is not None and (queries > how.extents[0] or keys > how.extents[1]):
        raise CuteError(
            f"{what}: blocks was found of {how.extents[0]} queries and {how.extents[1]} keys, and here are "
            f"{queries} and {keys}: give these to block_mask"
        )
    if narrow and how.block[1] % 64:
        raise CuteError(f"{what}: blocks is of {how.block[1]} keys a block; of 8 bits it must be a multiple of 64")
    for name, t in (("counts", counts), ("lists", lists)):
        entry.check(what, f"blocks.{name}", t, dtypes=("int32",), like=q)
        entry.check_place(what, f"blocks.{name}", t)


def check_for_gradients(what: str, q: Any, block: Any) -> None:
    """Refuse blocks of extents of which the kernels for gradients have none. what: the entry. block: or None."""
    if block is None:
        return
    target = None if entry.pytorch().compiler.is_compiling() else entry.target_at(q)  # asked again when it runs
    tile = 128 if target is not None and entry.family_of(target) == entry.TENSOR_MEMORY else 64
    if block[0] not in (128, 256) or block[1] % tile:
        on = " on Blackwell" if tile == 128 else ""
        raise CuteError(
            f"{what}: a gradient is asked for, and blocks is of {block[0]} queries and {block[1]} keys a block; for "
            f"gradients{on} these must be 128 or 256, and a multiple of {tile}"
        )
