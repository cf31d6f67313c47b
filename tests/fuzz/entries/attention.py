# SPDX-License-Identifier: Apache-2.0
"""Cases of attention, forward and backward."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch

from numba_cute import kernels

from .draw import Draw, close, gradients

F8 = torch.float8_e4m3fn
SCALES = ("q_descale", "k_descale", "v_descale")


def attend(
    q, k, v, *, causal=False, window=(None, None), scale=None, softcap=None, sink=None, score=None, seen_by=None
):
    """O (queries, heads, dv) and the logs of the sums (heads, queries) of one sequence, in float64."""
    (queries, heads, dim), (keys, kv_heads, _) = q.shape, k.shape
    scale = 1 / math.sqrt(dim) if scale is None else scale
    k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in (k, v))
    s = torch.einsum("qhd,khd->hqk", q, k) * scale
    if softcap is not None:
        s = softcap * torch.tanh(s / softcap)
    if score is not None:
        s = score(s)
    at = torch.arange(keys)[None] - (torch.arange(queries)[:, None] + keys - queries)
    left, right = (window[0], 0) if causal else window
    seen = torch.ones_like(at, dtype=torch.bool)
    seen &= at >= -left if left is not None else seen
    seen &= at <= right if right is not None else seen
    if seen_by is not None:
        seen = seen & seen_by(torch.arange(heads)[:, None, None], torch.arange(queries)[:, None], torch.arange(keys))
    s = s.masked_fill(~seen, -math.inf)
    if sink is not None:
        s = torch.cat((s, sink[:, None, None].expand(heads, queries, 1)), -1)
        v = torch.cat((v, v.new_zeros(1, heads, v.shape[-1])))
    lse = torch.logsumexp(s, -1)
    p = torch.where(torch.isneginf(lse)[..., None], torch.zeros_like(s), (s - lse.masked_fill(torch.isneginf(lse), 0.0)[
        ..., None]).exp())  # fmt: skip
    return torch.einsum("hqk,khd->qhd", p, v), lse


def bent(s, batch, head, query, key):
    """A score that knows its key."""
    return s * 0.5 + (key % 4) * 0.25


def bent_exactly(s):
    return s * 0.5 + (torch.arange(s.shape[-1]) % 4) * 0.25


def sparse(batch, head, query, key):
    """Some keys of some blocks: what a mask of one's own may be."""
    return ((query // 64 + key // 32 + head) % 3 != 0) & ((query + 2 * key) % 5 != head)


def _dims(d: Draw, narrow: bool = False) -> tuple[int, int]:
    return d.option((64, 64), (64, 64), (128, 128), *(() if narrow else ((192, 128), (256, 256), (64, 128), (128, 64))))


@dataclasses.dataclass
class Sequences:
    """q, k and v of a call, and what it is told of their lengths; of each sequence the queries, and its keys and
    values. packed: whether the rows of q are of several sequences."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    named: dict[str, Any]
    queries: list[int]
    of_k: list[Any]
    packed: bool


def int32(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def starts(lengths: list[int]) -> list[int]:
    return [sum(lengths[:i]) for i in range(len(lengths) + 1)]


def sequences(
    d: Draw, kind: torch.dtype, dims: tuple[int, int], heads: int, kv_heads: int, most: int
) -> Sequences:  # fmt: skip
    """Draw what is attended. most: rows of all heads, but for those of one sequence."""
    batch, unit, narrow = d.of(1, 1, 2, 3), 16 // kind.itemsize, kind == F8
    lengths_q = [n for n in (0, 1, 1, 2, 3, 7, 16, 33, 40, 64, 65, 70, 100) if n * heads * batch <= most]

    def fill(name: str, *shape: int) -> torch.Tensor:
        return d.laid(name, torch.randn(shape, generator=d.torch).to(kind), unit=unit)

    def both(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
        return fill("k", *shape, kv_heads, dims[0]), fill("v", *shape, kv_heads, dims[1])

    how = d.note(
        "lengths", d.option("all", "used") if narrow else d.option("all", "all", "all", "used", "cu_q", "cu", "pages")
    )
    named: dict[str, Any] = {}
    keys = d.of(0, 1, 2, 16, 33, 50, 64, 72, 130, 200)
    packed = how in ("cu", "cu_q")
    if packed:
        queries = [d.of(*lengths_q) for _ in range(batch)]
        named |= {"cu_seqlens_q": int32(*starts(queries)), "max_seqlen_q": max(queries)}
    else:
        queries = [d.of(*lengths_q)] * batch
    q = fill("q", *((sum(queries),) if packed else (batch, queries[0])), heads, dims[0])
    if how == "cu":
        lengths = [d.of(0, 1, 8, 33, 64, 100) for _ in range(batch)]
        ends = starts(lengths)
        named["cu_seqlens_k"] = int32(*ends)
        k, v = both(sum(lengths))
        of_k = [(k[b:e], v[b:e]) for b, e in zip(ends, ends[1:])]
    elif how == "pages":
        page = d.option(8, 16, 64)
        count = -(-max(keys, 1) // page)
        k, v = both(batch * count + 2, page)
        table = int32(*d.random.sample(range(batch * count + 2), batch * count)).reshape(batch, count)
        lengths = [d.random.randint(0, keys) for _ in range(batch)]
        named |= {"page_table": table, "seqused_k": int32(*lengths)}
        of_k = [
            tuple(x[t.long()].reshape(-1, kv_heads, x.shape[-1])[:n] for x in (k, v)) for t, n in zip(table, lengths)
        ]
    else:
        k, v = both(batch, keys)
        lengths = [keys] * batch
        if how == "used":
            lengths = [d.random.randint(0, keys) for _ in range(batch)]
            named["seqused_k"] = int32(*lengths)
            k, v = (x if narrow else x.clone() for x in (k, v))
            for x in () if narrow else (k, v):  # what lies behind is anything
                for i, n in enumerate(lengths):
                    x[i, n:] = math.nan
        of_k = [(k[i, :n], v[i, :n]) for i, n in enumerate(lengths)]
    d.note("keys", lengths), d.note("queries", queries)
    return Sequences(q, k, v, named, queries, of_k, packed)


def options_of(d: Draw, heads: int) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if d.option_in(2):
        options["causal"] = True
    elif d.option_in(3):
        left, right = d.option(None, (0, 5, 40)), d.option(None, (0, 3))
        options["window"] = (left and d.of(*left), right and d.of(*right))
    if d.option_in(5):
        options["softcap"] = 5.0
    elif d.option_in(6):
        options["score"] = bent
    if d.option_in(5):
        options["sink"] = torch.randn(heads, generator=d.torch)
    if d.one_in(4):
        options["scale"] = 0.2
    return d.note("options", options)


def masked(d: Draw, s: Sequences, heads: int) -> dict[str, Any]:
    """Draw a mask, by itself or by blocks."""
    kind = d.note("mask", d.option(None, None, None, "mask", "blocks"))
    if kind == "mask":
        return {"mask": sparse}
    if kind is None or not s.q.numel() or not s.k.numel():
        return {}
    if "cu_seqlens_k" in s.named:
        s.named["max_seqlen_k"] = max(1, max(len(k) for k, _ in s.of_k))
    pages = s.named.get("page_table")
    keys = s.named.get("max_seqlen_k", s.k.shape[1] * (1 if pages is None else pages.shape[1]))
    block = d.of((64, 64), (128, 64), (64, 128))
    made = kernels.block_mask(
        sparse, d.of(None, len(s.queries)), heads, s.named.get("max_seqlen_q", s.q.shape[1]), keys, block=block
    )
    return {"blocks": made}


def flash_attention(d: Draw) -> None:
    narrow = d.option_in(6)
    kind, dims = F8 if narrow else d.option(torch.bfloat16, torch.float16), _dims(d, narrow)
    kv_heads, group = d.of(1, 1, 2), d.option(1, 1, 2, 3, 4)
    splits, heads = d.note("splits", d.of(*d.option((0,), (1,), (2, 3)))), kv_heads * group
    s = sequences(d, kind, dims, heads, kv_heads, 600 if splits == 1 else 120)  # of splits a block joins each row
    options = options_of(d, heads)
    exact = options | ({"sink": options["sink"].double()} if "sink" in options else {})
    exact |= {"score": bent_exactly} if "score" in options else {}
    if narrow and d.option_in(2):
        for name in SCALES:
            s.named[name] = torch.rand(len(s.queries), kv_heads, generator=d.torch) + 0.5
    mask = masked(d, s, heads)
    exact |= {"seen_by": lambda *at: sparse(0, *at)} if mask else {}
    o, lse = kernels.flash_attention(s.q, s.k, s.v, **options, **mask, **s.named, num_splits=splits, return_lse=True)
    begin = 0
    for i, (n, (k, v)) in enumerate(zip(s.queries, s.of_k)):
        of = slice(begin, begin + n)
        begin += n
        q, got, logs = (s.q[of], o[of], lse[:, of]) if s.packed else (s.q[i], o[i], lse[i])
        by = [t[i].double()[:, None] if t is not None else 1.0 for t in map(s.named.get, SCALES)]
        q = q.double() * (by[0].repeat_interleave(group, 0) if "q_descale" in s.named else 1.0)
        want, want_logs = attend(q, k.double() * by[1], v.double() * by[2], **exact)
        size = float(v.double().abs().max()) * 1.5 if v.numel() else 1.0
        close(f"O of sequence {i}", got, want, size=size, add=2.0**-4 if narrow else 2.0**-8)
        close(f"lse of sequence {i}", logs, want_logs, size=4.0, add=3e-3 if narrow else 2.0**-12)


def attention_gradients(d: Draw) -> None:
    kind, (dim, dim_v) = (
        d.option(torch.bfloat16, torch.float16),
        d.option((64, 64), (64, 64), (128, 128), (192, 128), (256, 256)),
    )
    kv_heads, group, batch = d.of(1, 1, 2), d.option(1, 1, 2, 3), d.of(1, 1, 2)
    rows, keys = d.of(1, 3, 40, 64, 70, 100), d.of(1, 2, 33, 72, 130)
    fill = lambda name, *shape: d.laid(name, torch.randn(shape, generator=d.torch).to(kind), unit=8)  # noqa: E731
    q, k = fill("q", batch, rows, kv_heads * group, dim), fill("k", batch, keys, kv_heads, dim)
    v = fill("v", batch, keys, kv_heads, dim_v)
    options = {"causal": d.note("causal", d.option_in(2)), "scale": d.note("scale", d.of(None, 0.1))}

    how, mask = d.note("mask", d.option(None, None, "mask", "blocks")), {}
    if how == "mask":
        mask = {"mask": sparse}
    elif how == "blocks":
        block = d.note("block", d.of((128, 128), (256, 128), (128, 64)))  # the last not on Blackwell
        mask = {"blocks": kernels.block_mask(sparse, None, kv_heads * group, rows, keys, block=block)}
    seen = {"seen_by": lambda *at: sparse(0, *at)} if mask else {}

    def exact(q, k, v):
        return torch.stack([attend(*x, **options, **seen)[0] for x in zip(q, k, v)])

    gradients(d, lambda *t: kernels.flash_attention(*t, **options, **mask), exact, [q, k, v], add=2.0**-7)


def turned(x, cos, sin, interleaved):
    """Turn the first elements of heads (tokens, heads, d) by angles (tokens, R/2), in float64."""
    x, half = x.double(), cos.shape[-1]
    y, c, s = x.clone(), cos.double()[:, None], sin.double()[:, None]
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    y[..., first] = x[..., first] * c - x[..., second] * s
    y[..., second] = x[..., second] * c + x[..., first] * s
    return y


def angles(d: Draw, kind: torch.dtype, dim: int, positions: int) -> dict[str, Any]:
    """Draw the angles by which keys and queries are turned, or none."""
    if kind == F8 or d.option_in(3):
        return {}
    half = d.option(8, 16, dim // 2)
    at = torch.rand(positions, half, generator=d.torch) * 6
    dtype = d.option(torch.float32, torch.float32, kind)
    named = {"rotary_cos": at.cos().to(dtype), "rotary_sin": at.sin().to(dtype)}
    return named | ({"interleaved": True} if d.option_in(2) else {})


def attention_with_cache(d: Draw) -> None:
    narrow = d.option_in(8)
    kind, dims = F8 if narrow else d.option(torch.bfloat16, torch.float16), _dims(d, narrow)
    kv_heads, group, batch = d.of(1, 1, 2), d.option(1, 1, 2, 3, 4), d.of(1, 1, 2, 3)
    heads, room = kv_heads * group, d.of(8, 40, 64, 130, 200)
    page = 0 if narrow else d.note("page", d.option(0, 0, 8, 16, 64))
    columns = -(-room // page) if page else 0
    room = page * columns or room
    new = min(room, d.of(*(n for n in (0, 1, 1, 2, 3, 7, 16, 33, 64) if n == 1 or n * heads * batch <= 120)))
    lengths = [d.of(0, room - new, d.random.randint(0, room - new)) for _ in range(batch)]
    d.note("new", new), d.note("lengths", lengths)

    def fill(name: str, *shape: int, broadcast: bool = True) -> torch.Tensor:
        x = torch.randn(shape, generator=d.torch).to(kind)
        return d.laid(name, x, unit=16 // kind.itemsize, broadcast=broadcast)

    (dim, dv), outer = dims, (batch * columns + 2, page) if page else (batch, room)
    table = None
    if page:
        table = int32(*d.random.sample(range(outer[0]), batch * columns)).reshape(batch, columns)
    k_cache, v_cache = (fill(n, *outer, kv_heads, x, broadcast=False) for n, x in (("k_cache", dim), ("v_cache", dv)))
    k, v = fill("k_new", batch, new, kv_heads, dim), fill("v_new", batch, new, kv_heads, dv)
    turns = angles(d, kind, dim, room + 3)
    queries = new if turns else d.of(new, 1, 5)
    q = fill("q", batch, queries, heads, dim)
    options = options_of(d, heads) | ({"mask": sparse} if d.option_in(6) else {})
    splits = d.note("splits", d.of(*d.option((0,), (1,), (2, 3))))
    of = lambda cache, b: cache[b] if table is None else cache[table[b].long()].flatten(0, 1)  # noqa: E731
    before = [[of(c, b).clone() for b in range(batch)] for c in (k_cache, v_cache)]
    o, lse = kernels.attention_with_cache(
        q, k_cache, v_cache, k, v, int32(*lengths), page_table=table, **turns, **options, num_splits=splits,
        return_lse=True,
    )  # fmt: skip
    exact = options | ({"sink": options["sink"].double()} if "sink" in options else {})
    exact |= {"score": bent_exactly} if "score" in options else {}
    exact |= {"seen_by": lambda *at: sparse(0, *at)} if exact.pop("mask", None) else {}
    for b, n in enumerate(lengths):
        by = [x[n : n + new] for x in (turns.get("rotary_cos"), turns.get("rotary_sin")) if x is not None]
        turn = lambda x: turned(x, *by, turns.get("interleaved", False)) if by else x.double()  # noqa: B023, E731
        for name, cache, old, x in (("k", k_cache, before[0][b], turn(k[b])), ("v", v_cache, before[1][b], v[b])):
            want = old.double()
            want[n : n + new] = x.double()
            close(f"{name}_cache of sequence {b}", of(cache, b), want, size=6.0, add=2.0**-16)
        seen = [of(c, b)[: n + new].double() for c in (k_cache, v_cache)]
        want_o, want_lse = attend(turn(q[b]).to(kind).double(), *seen, **exact)
        size = float(seen[1].abs().max()) * 1.5 if seen[1].numel() else 1.0
        close(f"O of sequence {b}", o[b], want_o, size=size, add=2.0**-4 if narrow else 2.0**-7)
        close(f"lse of sequence {b}", lse[b], want_lse, size=4.0, add=3e-3)


CASES = {
    "flash_attention": flash_attention, "attention_gradients": attention_gradients,
    "attention_with_cache": attention_with_cache,
}  # fmt: skip
