# SPDX-License-Identifier: Apache-2.0
"""Attention for PyTorch's tensors over a sequence of which each GPU of a host has a part: `ring_attention`, and
`zigzag`, which gives a rank's part of what all have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba_cute import CuteError
from numba_cute.runtime import from_symmetric

from .. import entry
from ..attention.entry import HEAD_DIMS, flash_attention
from ..attention.plan import Options
from ..memo import remembered
from . import keys_plan
from .bringing import USUAL
from .launches import launcher
from .spaces import LAUNCHES, Attending, Group, address_of, group_of, space

if TYPE_CHECKING:
    import torch

OF_Q, OF_O = (0, 1), (6, 7)
"""The kernel's arguments that are made of Q, and of the results."""
ORDERS = CONTIGUOUS, ZIGZAG = "contiguous", "zigzag"


def zigzag(x: torch.Tensor, group: Any = None, *, dim: int = 1) -> torch.Tensor:
    """Give this rank's rows of a whole sequence in zigzag order: of 2 * ranks chunks along `dim`, which must be a
    multiple of that, number `rank` and then number 2 * ranks - 1 - `rank`. What is computed row by row, as all of a
    model but its attention, needs no other order; `zigzag(torch.arange(rows), dim=0)` gives the positions in the
    sequence, which rotary embeddings take. group: of torch.distributed; None for the default one.

    Gives a new tensor. Gradients flow through it. CuteError for what has no such chunks.
    """
    what = "zigzag"
    own = group_of(group, what)
    if not isinstance(x, entry.pytorch().Tensor) or not -x.ndim <= dim < x.ndim:
        raise CuteError(f"{what}: x is {entry.described(x)}; give a tensor that has a mode {dim}")
    chunks = 2 * own.world
    if x.shape[dim] % chunks or not x.shape[dim]:
        raise CuteError(
            f"{what}: mode {dim} of x has {x.shape[dim]} rows, and {own.world} ranks need {chunks} chunks of equal "
            f"length: pad it to a multiple of {chunks}"
        )
    cut = x.chunk(chunks, dim)
    both: torch.Tensor = entry.pytorch().cat([cut[own.rank], cut[chunks - 1 - own.rank]], dim)
    return both


def ring_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, order: str = CONTIGUOUS,
    scale: float | None = None, group: Any = None, return_lse: bool = False, out: torch.Tensor | None = None,
) -> Any:  # fmt: skip
    """Compute softmax(scale q k^T) v of each head, over a sequence of which each rank has a part: this rank's queries,
    and the keys of all ranks. One kernel on each GPU (Hopper, of one host) brings the others' keys and values over
    NVLink while it multiplies those that are there. All ranks of the group call it.

    q: (batch, rows, heads, d), k, v: (batch, rows, KV heads, d), bfloat16 or float16, of the same rows, those of the
    sequence that are this rank's. d (of v its own) 64, 128, 192 or 256; heads is a multiple of the KV heads. k and v
    are contiguous and lie in symmetric memory: allocate them by torch.distributed._symmetric_memory.empty, once, and
    write each step's to them. When the result is there the others have read them, and they may be written again on this
    stream. causal: whether a query sees no key after its own; keys that no query of a rank sees do not travel to it.
    order: which rows of the sequence a rank has, alike on all. "contiguous": rank r's begin at row r * rows; if causal,
    the first rank has the least to do, and the last, of n, 2 - 1 / n times the mean, for which all wait. "zigzag": the
    sequence is cut into 2 * n chunks, and rank r has chunk r and then chunk 2 * n - 1 - r: all have as much to do. rows
    is even then; `zigzag` gives a rank's rows of a whole sequence. If it is not causal the order changes nothing.
    scale: 1 / sqrt(d) by default. group: of torch.distributed; None for the default one. return_lse: whether to give
    the logs of the sums of exponentials too, float32, (batch, heads, rows). out: where to write the result.

    Gives the result, of q's shape but for v's d. Of a group of one it is `flash_attention`. What is said of
    `all_gather_matmul` about the first call, graphs, gradients and ranks that do not come holds here.
    """
    what = "ring_attention"
    instead = "gather k and v by torch.distributed.nn.functional.all_gather and call flash_attention"
    entry.refuse_gradients(what, [q, k, v, out], instead)
    if order not in ORDERS:
        raise CuteError(f'{what}: order {order!r} must be "contiguous" or "zigzag"')
    own = group_of(group, what)
    if own.world == 1:
        return flash_attention(q, k, v, causal=causal, scale=scale, return_lse=return_lse, out=out)
    make = lambda: _ringing(what, q, k, v, own, bool(causal), order, scale, out)  # noqa: E731
    static = what, own.name, address_of(k), address_of(v), bool(causal), order, scale
    launch, empty = remembered(LAUNCHES, [q, k, v, out], static, make)
    o, lse = empty(out)
    launch(q, o, lse)
    return (o, lse) if return_lse else o


def _ringing(
    what: str, q: Any, k: Any, v: Any, own: Group, causal: bool, order: str, scale: float | None, out: Any
) -> tuple[Callable[..., None], Callable[..., Any]]:
    """Give what launches on q and results like these, and what makes such results but for one that is given."""
    check_parts(what, q, k, v, out, order)
    check_place(what, q, k, v)
    torch = entry.pytorch()
    (batch, rows, heads, d), dv = q.shape, v.shape[-1]
    factor = 1 / math.sqrt(d) if scale is None else float(scale)
    if not factor > 0:
        raise CuteError(f"{what}: scale {scale} must be positive")
    dtype, device, rank = q.dtype, q.device, own.rank

    def empty(out: Any) -> tuple[Any, Any]:
        o = torch.empty((batch, rows, heads, dv), dtype=dtype, device=device) if out is None else out
        return o, torch.empty((batch, heads, rows), dtype=torch.float32, device=device)

    every_k, every_v = (from_symmetric(t, own.group, assumed_align=16) for t in (k, v))
    halves = causal and order == ZIGZAG
    seen, shapes = f"causal, {order}" if causal else "not causal", (tuple(x.shape) for x in (q, k, v))
    memory: Attending = space(Attending, own, q, *shapes, seen, dtype, device)
    signals, room, sms = memory.signals, memory.room, entry.multiprocessors(q)
    options, slots = Options(factor, right=0 if causal else None), USUAL

    def plan(q: Any, o: Any, lse: Any) -> Any:
        return keys_plan.ring_attention(q, every_k, every_v, o, lse, rank, signals, room, sms, options, slots, halves)

    tensors = q, *empty(out)
    kernel, _, _, block = plan(*tensors)
    return launcher(kernel, lambda *x: plan(*x)[1:3], (*OF_Q, *OF_O), memory, tensors, block), empty


def check_parts(what: str, q: Any, k: Any, v: Any, out: Any, order: str = CONTIGUOUS) -> None:
    """Refuse parts of a sequence that do not fit each other."""
    entry.check(what, "q", q, dtypes=("bfloat16", "float16"), rank=4)
    batch, rows, heads, d = q.shape
    like = {"dtypes": (entry.type_name(q),), "like": q}
    entry.check(what, "k", k, shape=(batch, rows, None, d), **like)
    entry.check(what, "v", v, shape=(batch, rows, k.shape[2], None), **like)
    kv_heads, dv = v.shape[2:]
    entry.check(what, "out", out, shape=(batch, rows, heads, dv), optional=True, **like)
    if 0 in (*q.shape, *v.shape):
        raise CuteError(f"{what}: q is {entry.described(q)} and v {entry.described(v)}: give some elements")
    if d not in HEAD_DIMS or dv not in HEAD_DIMS:
        raise CuteError(f"{what}: the head dimension is {d} of q and {dv} of v; each must be {HEAD_DIMS}: pad them")
    if order == ZIGZAG and rows % 2:
        raise CuteError(f"{what}: q has {rows} rows, and zigzag order needs two chunks of equal length: pad them")
    if heads % kv_heads:
        raise CuteError(f"{what}: q has {heads} heads, which is not a multiple of the {kv_heads} of k and v")
    for name, t in (("k", k), ("v", v)):
        wide = [math.prod(t.shape[i + 1 :]) for i in range(4)]
        if any(n > 1 and s != w for n, s, w in zip(t.shape, entry.strides(t), wide)):
            raise CuteError(
                f"{what}: {name} is {entry.described(t)}; other ranks read its rows, so it must be contiguous"
            )
    for name, t in (("q", q), ("k", k), ("v", v), ("out", out)):
        if t is not None and (not entry.aligned(t) or any(s * t.dtype.itemsize % 16 for s in entry.strides(t)[:-1])):
            raise CuteError(
                f"{what}: {name} is {entry.described(t)}; its address and its strides must be multiples of 16 "
                f"bytes: give {name}.contiguous() or {name}.clone()"
            )


def check_place(what: str, *tensors: Any) -> None:
    """Refuse tensors that lie elsewhere than on a GPU that has the kernel."""
    for t in tensors:
        if not t.is_cuda:
            raise CuteError(
                f"{what}: a tensor is {entry.described(t)}; give tensors on the rank's GPU. In the simulator run the "
                "kernels of all ranks at once: numba_cute.kernels.distributed.keys_plan has them"
            )
        entry.check_target(what, t, entry.WARPGROUPS)
