# SPDX-License-Identifier: Apache-2.0
"""The gradients of attention, for PyTorch's tensors: the launches of its backward pass."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.seam import CuteError

from .. import entry, tuning
from . import backward, backward_parts, backward_tiles, visits
from .backward import KEYS, Form
from .backward_arrays import covering, flat, ragged, strides
from .blocks import check_for_gradients, check_listed, of_blocks
from .options import DIMS, HEAD_DIMS, How, aux_of, how_of, options_of
from .plan import ALL, Lengths, Options, bound, rows_first, view
from .schedule import order_of

if TYPE_CHECKING:
    import torch

__all__ = ["attention_backward"]

WHAT = "attention_backward"
ALONE = 128  # queries for which the kernel before those adds up dO * O


class Launch(NamedTuple):
    """One launch of a backward pass. overlaps: whether it begins while the one before it ends."""

    kernel: Any
    grid: Any
    block: int
    args: tuple[Any, ...]
    overlaps: bool = True


def l2_bytes() -> int:
    """Give the bytes of Q, dO and the sums of dQ that a section of heads may take, which were best on the GPU."""
    return int(tuning.numbers("attention_backward").l2)


def room(q: Any, sequences: tuple[int, int] | None = None, together: bool = True) -> list[tuple[int, ...]]:
    """The shapes of the Float32 arrays that a pass works in, for q (batch, queries, heads, d): the logs of the sums of
    exponentials, rowsum(dO * O), the sums of dQ, and the number of tiles drawn (an Int32). The last two only where one
    kernel gives all. sequences: how many, and the rows of the longest, where they have their own lengths. together:
    whether one kernel gives all, if it can."""
    batch, rows, heads, d = q.shape
    batch, rows = sequences or (batch, rows)
    if d not in HEAD_DIMS or not together:
        return [(batch, heads, math.ceil(rows / 256) * 256)] * 2
    queries = HEAD_DIMS[d]
    tiles = math.ceil(rows / queries)
    return [(batch, heads, tiles * queries), (batch, heads, tiles * queries), (batch, heads, tiles, queries * d), (1,)]


def beginning(
    arrays: Any, flats: Any, queries: int, grid: Any, rows: int, more: More, cu: Any = None, overlaps: bool = True
) -> Launch:
    """The launch that comes first. flats: of the arrays that a pass works in, or None. queries: of a tile. rows: of Q.
    cu: where sequences begin, or None. overlaps: whether the next one may begin while it runs."""
    _, _, _, o, do, lse, *_ = arrays
    args = rows_first(o), rows_first(do), view(lse), *flats, cute.Int32(rows), strides(o), strides(do)
    dlse = None if more.dlse is None else view(more.dlse)
    kernel = backward_parts.make_before(entry.element_type(o), o.shape[-1], queries, overlaps)
    return Launch(kernel, grid, backward_parts.THREADS, (*args, dlse, cu), False)


def wide(arrays: Any, work: Any, options: Options, more: More) -> list[Launch]:
    """The launches of a pass with wide heads, or options; as of `launches`. Arrays of sequences that lie one after the
    other have a batch of one."""
    from . import backward_queries, backward_rows, backward_wide

    q, k, v, o, do, lse, dq, dk, dv = arrays
    (_, rows, heads, d), (_, keys, kv_heads, width) = q.shape, v.shape
    dtype, tile = entry.element_type(q), backward_rows.TILE
    lengths, of_lengths = more.lengths, any(x is not None for x in more.lengths)
    left, causal = options.left is not None, options.right is not None
    cluster, kinds = 1 if options.block is not None else 2, (options.mask, options.block)  # by lists each tile alone
    form = backward_wide.Form(dtype, d, width, causal, left, options.score, of_lengths, cluster, *kinds)
    cu_q, cu_k, used, _ = (None if x is None else view(x) for x in lengths)
    batch = sequences_of(q, lengths)
    rows, keys = longest(q, k, options, lengths, more.most_keys)
    logs, dot = map(flat, work)
    statistics_rows = work[0].shape[2]
    grid = statistics_rows // ALONE, heads, batch
    begin = beginning(arrays, (logs, dot, None, None), ALONE, grid, rows, more, cu_q)
    key_pairs, query_pairs = math.ceil(keys / tile / cluster), statistics_rows // ALONE // cluster
    load, put = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    shared = cpasync.CopyBulkTensorTileG2SMulticastOp()

    def map_of(op: Any, x: Any, columns: int, extent: int) -> tuple[Any, Any]:
        made: Any = cpasync.make_tiled_tma_atom(
            op, ragged(x, tile) if of_lengths else rows_first(x), backward_tiles.rows_of(dtype, tile, columns),
            (tile, columns), cluster if op is shared else 1,
        )  # fmt: skip
        return made if of_lengths else covering(made, extent)

    all_keys, all_queries = key_pairs * cluster * tile, query_pairs * cluster * ALONE
    section = l2_bytes() // max(1, rows * (d + width) * 2) if causal else 1

    def numbers(counts: Any, pairs: int, heads: int, listed: Any) -> Any:
        order = order_of(pairs, heads, batch, section)
        apart = 0 if of_lengths else keys - rows
        shift, behind = apart + min(options.right or 0, rows), apart - min(options.left or 0, keys)
        return (
            *map(cute.Int32, counts), order, *map(cute.Int32, (shift, statistics_rows)), cute.Float32(options.scale),
            *map(cute.Int32, (rows, behind)), cu_q, cu_k, used, tuple(more.aux), tuple(more.mask_aux),
            visits.of(*listed) if listed else (),
        )  # fmt: skip

    of_keys = (
        *map_of(shared, q, d, all_queries), *map_of(load, k, d, all_keys), *map_of(load, v, width, all_keys),
        *map_of(shared, do, width, all_queries), *map_of(put, dk, 64, all_keys), *map_of(put, dv, 64, all_keys),
        logs, dot,
        *numbers((keys, math.ceil(rows / tile), heads // kv_heads, kv_heads), key_pairs, kv_heads, more.listed[2:]),
    )  # fmt: skip
    of_queries = (
        *map_of(load, q, d, all_queries), *map_of(shared, k, d, all_keys), *map_of(shared, v, width, all_keys),
        *map_of(load, do, width, all_queries), *map_of(put, dq, 64, all_queries), logs, dot,
        *numbers((keys, heads // kv_heads, heads), query_pairs, heads, more.listed[:2]),
    )  # fmt: skip
    by_keys, by_queries = backward_wide.make_keys_kernel(form), backward_queries.make_queries_kernel(form)
    return [
        begin,
        Launch(by_keys, key_pairs * cluster * kv_heads * batch, backward_wide.THREADS, of_keys),
        Launch(by_queries, query_pairs * cluster * heads * batch, backward_wide.THREADS, of_queries),
    ]


def by_warps(
    arrays: Any, work: Any, options: Options, more: More, target: Any, tile: tuple[int, int] | None = None
) -> list[Launch]:
    """The launches of a pass on a GPU whose tensor cores are a warp's. target: its record. tile: as of
    `warps_gradients.launches`. All others as of `wide`."""
    from . import warps_gradients

    q, k, v, _, do, _, *results = arrays
    heads, lengths = q.shape[2], more.lengths
    batch = sequences_of(q, lengths)
    rows, keys = longest(q, k, options, lengths, more.most_keys)
    grid = work[0].shape[2] // ALONE, heads, batch
    cu_q = None if lengths.cu_q is None else view(lengths.cu_q)
    flats = *map(flat, work), None, None
    todo = warps_gradients.launches(
        (q, k, v, do, *results), work, (batch, rows, keys), options, lengths, more.aux, more.mask_aux, more.listed,
        target, tile,
    )  # fmt: skip
    begin = beginning(arrays, flats, ALONE, grid, rows, more, cu_q, False)
    return [begin, *(Launch(kernel, grid, block, args, False) for kernel, grid, block, args in todo)]


def by_threads(arrays: Any, work: Any, options: Options, more: More) -> list[Launch]:
    """The launches of a pass on a GPU with tensor memory, whose tensor cores a thread uses; as of `wide`."""
    from . import umma_backward_plan, umma_gradients

    q, k, v, _, do, _, *results = arrays
    (batch, heads, tiles, _), lengths = work[2].shape, more.lengths
    rows, keys = longest(q, k, options, lengths, more.most_keys)
    todo = umma_gradients.launches(
        (q, k, v, do, *results), work, (batch, rows, keys), options, lengths, more.aux, more.mask_aux, more.listed
    )
    cu_q = None if lengths.cu_q is None else view(lengths.cu_q)
    begin = beginning(
        arrays, (*map(flat, work), None), umma_backward_plan.TILE, (tiles, heads, batch), rows, more, cu_q
    )
    return [begin, *(Launch(*launch) for launch in todo)]


class More(NamedTuple):
    """Hold what a backward pass takes beside its arrays and `plan.Options`. lengths: of the sequences. most_keys: of
    the longest. aux, mask_aux: arguments of the functions of the scores and of the mask. dlse: the gradient of the
    log-sum-exp. listed: where options have blocks their counts and lists, and these two of keys."""

    lengths: Lengths = ALL
    most_keys: int | None = None
    aux: tuple[Any, ...] = ()
    dlse: Any = None
    mask_aux: tuple[Any, ...] = ()
    listed: tuple[Any, ...] = ()


def longest(q: Any, k: Any, options: Options, lengths: Lengths, most_keys: int | None) -> tuple[int, int]:
    """Give the queries and keys of the longest sequence, as far as they are known without reading lengths."""
    rows = q.shape[1] if lengths.cu_q is None else min(options.most_queries, q.shape[1])
    return rows, k.shape[1] if lengths.cu_k is None or most_keys is None else min(most_keys, k.shape[1])


def sequences_of(q: Any, lengths: Lengths) -> int:
    """Count the sequences."""
    return int(next((cu.shape[0] - 1 for cu in lengths[:2] if cu is not None), q.shape[0]))


def alone(d: int, options: Options, lengths: Lengths, deterministic: bool) -> bool:
    """Say whether one kernel gives dq, dk and dv, which adds up parts of dq in memory, in no order."""
    plain = options.left is None and options.right in (None, 0) and options.score is None and options.mask is None
    plain = plain and options.block is None
    return d in HEAD_DIMS and plain and not deterministic and all(x is None for x in lengths)


def launches(
    arrays: Any, work: Any, *, sms: int, causal: bool = False, scale: float = 1.0, options: Options | None = None,
    more: More | None = None, target: Any = None,
) -> list[Launch]:  # fmt: skip
    """The launches of a pass, for arrays of the host (to simulate or compile) or of the device: q, k, v, o, do and lse,
    and dq, dk and dv, which they write. work: arrays of the shapes that `room` gives. options: by default what causal
    and scale say. target: the record of the GPU, None of Hopper. Arrays of sequences that lie one after
    the other have a batch of one."""
    q, k, v, o, do, lse, dq, dk, dv = arrays
    options, more = options or Options(scale, right=0 if causal else None), more or More()
    causal, scale = options.right is not None, options.scale
    if target is not None and entry.family_of(target) == entry.TENSOR_MEMORY:
        return by_threads(arrays, work, options, more)
    if target is not None:
        return by_warps(arrays, work, options, more, target)
    if len(work) == 2:
        return wide(arrays, work, options, more)
    logs, dot, sums, drawn = work
    (batch, rows, heads, d), (_, keys, kv_heads, _) = q.shape, k.shape
    dtype = entry.element_type(q)
    form = Form(dtype, d, HEAD_DIMS[d], causal)
    queries = form.queries
    query_tiles, key_tiles = math.ceil(rows / queries), math.ceil(keys / KEYS)
    work = query_tiles, heads, batch
    flats = [flat(x) for x in (logs, dot, sums, drawn)]
    begin = beginning(arrays, flats, queries, work, rows, more)
    end = Launch(
        backward_parts.make_after(*form[:3], backward.sums_layout(form)), work, backward_parts.THREADS,
        (flat(sums), rows_first(dq), cute.Int32(rows), strides(dq), cute.Float32(scale), None),
    )  # fmt: skip

    load, put = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    tile_of_q, tile_of_k = backward_tiles.rows_of(dtype, queries, d), backward_tiles.rows_of(dtype, KEYS, d)
    half_of_k = backward_tiles.rows_of(dtype, 64, d)
    maps: list[Any] = []
    for x, op, layout, tile, extent in (
        (q, load, tile_of_q, queries, query_tiles * queries), (k, load, tile_of_k, KEYS, key_tiles * KEYS),
        (v, load, tile_of_k, KEYS, key_tiles * KEYS), (do, load, tile_of_q, queries, query_tiles * queries),
        (dk, put, half_of_k, 64, key_tiles * KEYS), (dv, put, half_of_k, 64, key_tiles * KEYS),
    ):  # fmt: skip
        maps += covering(cpasync.make_tiled_tma_atom(op, rows_first(x), layout, (tile, d)), extent)
    tiles = key_tiles * kv_heads * batch
    group = heads // kv_heads
    section = max(1, l2_bytes() // max(1, rows * d * group * 8)) if causal else 1
    numbers = (*map(cute.Int32, (keys, query_tiles, group, kv_heads)), order_of(key_tiles, kv_heads, batch, section))
    args = (
        *maps,
        flat(logs),
        flat(dot),
        flat(sums),
        flat(drawn),
        *numbers,
        cute.Int32(keys - rows),
        cute.Float32(scale),
    )
    return [begin, Launch(backward.make_kernel(form), min(tiles, sms), backward.THREADS, args), end]


@cute.runtime.remembered
def found(
    q: Any, k: Any, v: Any, o: Any, do: Any, lse: Any, dq: Any, dk: Any, dv: Any, logs: Any, dot: Any, sums: Any,
    drawn: Any, cu_q: Any, cu_k: Any, used: Any, dlse: Any, counts: Any, lists: Any, counts_of_keys: Any,
    lists_of_keys: Any, sms: int, options: Options, most_keys: int | None, target: str | None, own: int, *aux: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Give the `launches` of a pass as plain tuples. logs, dot, sums, drawn: of `room`, None where it gives fewer.
    counts to lists_of_keys: `More.listed`, or None. target: the GPU's name, None of Hopper. aux: what the functions of
    the scores, its `own` first, and of the mask take; numbers are pairs of their type and value."""
    numbers = tuple(x[0](x[1]) if type(x) is tuple else x for x in aux)
    listed = () if counts is None else (counts, lists, counts_of_keys, lists_of_keys)
    more = More(Lengths(cu_q, cu_k, used), most_keys, numbers[:own], dlse, numbers[own:], listed)
    work = tuple(x for x in (logs, dot, sums, drawn) if x is not None)
    arrays, record = (q, k, v, o, do, lse, dq, dk, dv), None if target is None else cute.target(target)
    return tuple(tuple(x) for x in launches(arrays, work, sms=sms, options=options, more=more, target=record))


def checked(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    dlse: torch.Tensor | None, sink: torch.Tensor | None, cu_q: torch.Tensor | None, cu_k: torch.Tensor | None,
    used: torch.Tensor | None, listed: list[torch.Tensor], aux: list[torch.Tensor], how: object,
) -> Any:  # fmt: skip
    """Refuse tensors that do not fit; gives those for the gradients of q, k, v and the sink."""
    entry.check(WHAT, "q", q, dtypes=("bfloat16", "float16"), rank=4 if cu_q is None else 3)
    entry.check(WHAT, "k", k, dtypes=(entry.type_name(q),), rank=4 if cu_k is None else 3, like=q)
    entry.check(WHAT, "v", v, dtypes=(entry.type_name(q),), rank=4 if cu_k is None else 3, like=q)
    (heads, d), (kv_heads, _), width = q.shape[-2:], k.shape[-2:], v.shape[-1]
    if (d, width) not in DIMS:
        raise CuteError(
            f"{WHAT}: q is {entry.described(q)}, and v {entry.described(v)}; their head dimensions must be one of "
            f"{', '.join(f'{a} and {b}' for a, b in DIMS)}: pad them"
        )
    if kv_heads < 1 or heads % kv_heads:
        raise CuteError(f"{WHAT}: q has {heads} heads, which is not a multiple of the {kv_heads} of k and v")
    batch = len(cu_q) - 1 if cu_q is not None else q.shape[0]
    outer = k.shape[:-2] if cu_k is not None else (batch, k.shape[1])
    logs = (heads, q.shape[0]) if cu_q is not None else (batch, heads, q.shape[1])
    for name, x, shape in (
        ("k", k, (*outer, kv_heads, d)), ("v", v, (*outer, kv_heads, width)),
        ("out", out, (*q.shape[:-1], width)), ("dout", dout, (*q.shape[:-1], width)),
    ):  # fmt: skip
        entry.check(WHAT, name, x, dtypes=(entry.type_name(q),), shape=shape, like=q)
    entry.check(WHAT, "lse", lse, dtypes=("float32",), shape=logs, like=q)
    entry.check(WHAT, "dlse", dlse, dtypes=("float32",), shape=logs, like=q, optional=True)
    entry.check(WHAT, "sink", sink, dtypes=("float32",), shape=(heads,), like=q, optional=True)
    for name, x, length in (
        ("cu_seqlens_q", cu_q, batch + 1),
        ("cu_seqlens_k", cu_k, batch + 1),
        ("seqused_k", used, batch),
    ):
        entry.check(WHAT, name, x, dtypes=("int32",), shape=(length,), like=q, optional=True)
    check_listed(WHAT, q, k, Lengths(cu_q, cu_k, used), listed, How(*how))  # type: ignore[misc]
    check_for_gradients(WHAT, q, How(*how).block)  # type: ignore[misc]
    whole = all(x is None for x in (cu_q, cu_k, used))  # else some rows are no sequence's
    made = (x.new_empty(x.shape) if whole else x.new_zeros(x.shape) for x in (q, k, v))
    return *made, lse.new_empty((0,) if sink is None else (heads,))


def target_of(q: Any) -> Any:
    """Give the record of the GPU where `q` lies; None on Hopper. Refuses those of which there is no kernel."""
    family = entry.check_target(WHAT, q, entry.WARPGROUPS, entry.WARPS, entry.TENSOR_MEMORY)
    return None if family == entry.WARPGROUPS else entry.target_at(q)


def planned(*given: Any) -> Any:
    """Plan the work that computes the gradients of such tensors, as `run` is given them."""
    *tensors, said = given
    how, target = How(*said), target_of(given[1])
    if target is not None and entry.family_of(target) == entry.TENSOR_MEMORY:
        from . import umma_backward_plan

        dims = given[1].shape[-1], given[3].shape[-1]
        umma_backward_plan.check(options_of(WHAT, how, dims[0]), dims, how.deterministic)
    for name, x in zip(("dout", "q", "k", "v", "out"), tensors):
        if not entry.aligned(x) or any(s % 8 for s in entry.strides(x)[:-1]):
            raise CuteError(
                f"{WHAT}: {name} is {entry.described(x)}; copies want it, and each of its strides, at multiples of 16 "
                f"bytes: give {name}.contiguous() or {name}.clone()"
            )
    return functools.partial(run, how=how)


def run(
    dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, dlse: Any, sink: Any, cu_q: Any, cu_k: Any, used: Any,
    listed: Any, aux: Any, dq: Any, dk: Any, dv: Any, dsink: Any, how: How,
) -> None:  # fmt: skip
    """Compute dq, dk, dv and dsink."""
    sequences = None if cu_q is None else (len(cu_q) - 1, min(how.most_queries or 0, q.shape[0]))
    if not q.numel() or not k.numel() or 0 in (sequences or ()):
        for x in (dq, dk, dv, dsink):
            x.zero_()
        if sink is not None and dlse is not None and q.numel():  # it is the log
            dsink.copy_(dlse.sum(-1).reshape(-1, dsink.shape[0]).sum(0))
        return
    torch, lengths = entry.pytorch(), Lengths(cu_q, cu_k, used)
    options = options_of(WHAT, how, q.shape[-1])
    target = target_of(q)
    together = target is None and alone(q.shape[-1], options, lengths, how.deterministic)
    of_q, of_k = ((lambda t: t) if cu is None else (lambda t: t[None]) for cu in (cu_q, cu_k))
    arrays = (*(f(t) for f, t in zip((of_q, of_k, of_k, of_q, of_q, of_q), (q, k, v, out, dout, lse))),
              of_q(dq), of_k(dk), of_k(dv))  # fmt: skip
    rooms = room(arrays[0], sequences, together)
    if target is not None and entry.family_of(target) == entry.TENSOR_MEMORY:
        from . import umma_gradients

        rooms = umma_gradients.room(q.shape[-2], q.shape[-1], sequences or q.shape[:2])
    work = [torch.empty(s, dtype=torch.float32 if len(s) > 1 else torch.int32, device=q.device) for s in rooms]
    dlse = None if dlse is None else of_q(dlse.contiguous())
    of_score, of_mask = aux_of(how, aux)
    numbers = [(x.dtype, x.value) if isinstance(x, cute.dtypes.Scalar) else x for x in (*of_score, *of_mask)]
    todo = found(
        *(t.detach() if t.requires_grad else t for t in arrays), *work, *(None,) * (4 - len(work)), *lengths[:3], dlse,
        *(listed or (None,) * 4), entry.multiprocessors(q), options, how.most_keys, target and target.name,
        len(of_score), *numbers,
    )  # fmt: skip
    with entry.on_device_of(q):
        for kernel, grid, block, args, overlaps in todo:
            bound(kernel, grid, block, entry.stream_of(q), overlaps)(*args)
    if sink is not None:
        weights = torch.exp2(sink[:, None] * (1 / math.log(2)) - work[0])
        dsink.copy_(-(weights * work[1]).sum((0, 2)))


OPERATOR = entry.Operator("numba_cute::attention_backward", planned, checked, count=4)


def attention_backward(
    dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *, causal: bool = False, scale: float | None = None,
    window: tuple[int | None, int | None] = (None, None), softcap: float | None = None, score: Any = None,
    aux: tuple[Any, ...] = (), sink: Any = None, dlse: Any = None, cu_seqlens_q: Any = None, cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None, max_seqlen_k: int | None = None, seqused_k: Any = None,
    deterministic: bool = False, mask: Any = None, mask_aux: tuple[Any, ...] = (), blocks: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Compute the gradients (dq, dk, dv) of `flash_attention`, of the same options, on the same GPUs; with a sink
    (dq, dk, dv, dsink).

    dout: the gradient of its result, as out. q: (batch, queries, heads, d), bfloat16 or float16. k, v: (batch, keys, KV
    heads, d); d is 64, 128 or 256 of all, or 192 of q and k and 128 of v; heads is a multiple of the KV heads, each of
    which serves as many heads in a row. out, lse: what it gave with return_lse=True; lse (batch, heads, queries),
    float32, is the natural log of a row's sum of exponentials, -inf for a row that sees no key. dlse: the gradient of
    lse, or None. causal: whether query i sees only the keys up to i + keys - queries. scale: of the scores; 1 / sqrt(d)
    by default. window, softcap, score, aux, mask, mask_aux, blocks, sink, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
    max_seqlen_k, seqused_k: as of `flash_attention`; `score` is differentiated as it is traced. deterministic: whether
    the result must be the same each time.

    Of d up to 128, with no other option than causal and scale, the parts of dq are added up in no order, so that its
    last bit may differ from call to call, unless it is to be deterministic, which computes two products more; all else,
    and all where tensor cores are a warp's, is the same each time. On Blackwell dq is added up so with all options; d
    is 64 or 128, and deterministic is refused. Raises CuteError for tensors of other types and shapes.

    >>> import torch
    >>> q, k, v = [torch.ones(1, 16, 1, 64, dtype=torch.float16) for _ in range(3)]
    >>> with cute.simulation(arch="sm_120a"):
    ...     out, lse = cute.kernels.flash_attention(q, k, v, return_lse=True)
    ...     dq, dk, dv = cute.kernels.attention_backward(torch.ones_like(out), q, k, v, out, lse)
    >>> dv[0, 0, 0, 0]
    tensor(1., dtype=torch.float16)
    """
    mask, mask_aux, listed, *block = of_blocks(WHAT, blocks, mask, mask_aux)
    how, tensors = how_of(
        causal, window, scale, softcap, score, aux, max_seqlen_q, max_seqlen_k, 1, deterministic, q.shape[-1], mask,
        mask_aux, *block,
    )  # fmt: skip
    given = dout, q, k, v, out, lse, dlse, sink, cu_seqlens_q, cu_seqlens_k, seqused_k
    made = OPERATOR(*given, listed, tensors, tuple(how))
    return tuple(made[:3] if sink is None else made)
