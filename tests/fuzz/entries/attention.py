# SPDX-License-Identifier: Apache-2.0
"""Cases of attention, forward and backward."""

from __future__ import annotations

import math

import torch

import numba_cute as cute
from numba_cute import kernels

from .draw import Draw, close, gradients

F8 = torch.float8_e4m3fn


def attend(q, k, v, *, causal=False, window=(None, None), scale=None, softcap=None, sink=None, score=None):
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
    s = s.masked_fill(~seen, -math.inf)
    if sink is not None:
        s = torch.cat((s, sink[:, None, None].expand(heads, queries, 1)), -1)
        v = torch.cat((v, v.new_zeros(1, heads, v.shape[-1])))
    lse = torch.logsumexp(s, -1)
    p = torch.where(torch.isneginf(lse)[..., None], torch.zeros_like(s), (s - lse.masked_fill(torch.isneginf(lse), 0.0)[
        ..., None]).exp())  # fmt: skip
    return torch.einsum("hqk,khd->qhd", p, v), lse


def _dims(d: Draw, narrow: bool = False) -> tuple[int, int]:
    return d.of((64, 64), (64, 64), (128, 128), *(() if narrow else ((192, 128), (256, 256), (64, 128), (128, 64))))


@cute.seam.traced
def sloped(s, batch, head, query, key, slope):
    return s + slope


def flash_attention(d: Draw) -> None:
    narrow = d.one_in(6)
    kind = F8 if narrow else d.of(torch.bfloat16, torch.float16)
    dim, dim_v = _dims(d, narrow)
    kv_heads, group = d.of(1, 1, 2), d.of(1, 1, 2, 3, 4)
    heads, batch = kv_heads * group, d.of(1, 1, 2, 3)
    unit = 16 // kind.itemsize
    fill = lambda name, *shape: d.laid(name, torch.randn(shape, generator=d.torch).to(kind), unit=unit)  # noqa: E731
    how = d.note("lengths", d.of("all", "all", "all", "used", "cu_q", "cu", "pages") if not narrow else
                 d.of("all", "used"))  # fmt: skip
    lengths_q = [d.of(0, 1, 2, 7, 33, 64, 70) if how in ("cu", "cu_q") else 0 for _ in range(batch)]
    rows = d.of(0, 1, 1, 3, 16, 40, 64, 65, 100)
    keys = d.of(0, 1, 2, 16, 33, 64, 72, 130, 200) if how != "all" or not d.one_in(8) else 0
    keys = keys or d.of(0, 1, 50)
    named = {}
    q_shape = (sum(lengths_q), heads) if how in ("cu", "cu_q") else (batch, rows, heads)
    q = fill("q", *q_shape, dim)
    lengths_q = lengths_q if how in ("cu", "cu_q") else [rows] * batch
    lengths_k = [keys] * batch
    if how in ("cu", "cu_q"):
        starts = [0]
        for n in lengths_q:
            starts.append(starts[-1] + n)
        named |= {"cu_seqlens_q": torch.tensor(starts, dtype=torch.int32), "max_seqlen_q": max(lengths_q)}
    if how == "cu":
        lengths_k = [d.of(0, 1, 8, 33, 64, 100) for _ in range(batch)]
        ends = [sum(lengths_k[:i]) for i in range(batch + 1)]
        named["cu_seqlens_k"] = torch.tensor(ends, dtype=torch.int32)
        k, v = fill("k", sum(lengths_k), kv_heads, dim), fill("v", sum(lengths_k), kv_heads, dim_v)
        of_k = [(k[b:e], v[b:e]) for b, e in zip(ends, ends[1:])]
    elif how == "pages":
        page = d.of(8, 16, 64)
        count = -(-max(keys, 1) // page)
        pages = d.random.sample(range(batch * count + 2), batch * count)
        k, v = fill("k", batch * count + 2, page, kv_heads, dim), fill("v", batch * count + 2, page, kv_heads, dim_v)
        table = torch.tensor(pages, dtype=torch.int32).reshape(batch, count)
        lengths_k = [d.random.randint(0, keys) for _ in range(batch)]
        named |= {"page_table": table, "seqused_k": torch.tensor(lengths_k, dtype=torch.int32)}
        of_k = [
            tuple(x[t.long()].reshape(-1, kv_heads, x.shape[-1])[:n] for x in (k, v)) for t, n in zip(table, lengths_k)
        ]
    else:
        k, v = fill("k", batch, keys, kv_heads, dim), fill("v", batch, keys, kv_heads, dim_v)
        if how == "used":
            lengths_k = [d.random.randint(0, keys) for _ in range(batch)]
            named["seqused_k"] = torch.tensor(lengths_k, dtype=torch.int32)
            if not narrow:  # what lies behind is anything
                k, v = k.clone(), v.clone()
                for x in (k, v):
                    for i, n in enumerate(lengths_k):
                        x[i, n:] = math.nan
        of_k = [(k[i, :n], v[i, :n]) for i, n in enumerate(lengths_k)]
    options = {}
    if d.one_in(2):
        options["causal"] = True
    elif d.one_in(3):
        options["window"] = (d.of(None, 0, 5, 40), d.of(None, 0, 3))
    if d.one_in(5):
        options["softcap"] = 5.0
    if d.one_in(5):
        options["sink"] = torch.randn(heads, generator=d.torch)
    if d.one_in(4):
        options["scale"] = 0.2
    splits = d.of(0, 0, 1, 2, 3)
    d.note("options", list(options.items())), d.note("keys", lengths_k), d.note("queries", lengths_q)
    o, lse = kernels.flash_attention(q, k, v, **options, **named, num_splits=splits, return_lse=True)
    sink = options.pop("sink", None)
    begin = 0
    for i, (n, (ki, vi)) in enumerate(zip(lengths_q, of_k)):
        packed = how in ("cu", "cu_q")
        qi = q[begin : begin + n] if packed else q[i]
        want, logs = attend(
            qi.double(), ki.double(), vi.double(), **options, sink=None if sink is None else sink.double()
        )
        got, got_logs = (o[begin : begin + n], lse[:, begin : begin + n]) if packed else (o[i], lse[i])
        begin += n
        size = float(vi.double().abs().max()) if vi.numel() else 1.0
        close(f"O of sequence {i}", got, want, size=size, add=2.0**-4 if narrow else 2.0**-8)
        close(f"lse of sequence {i}", got_logs, logs, size=4.0, add=3e-3 if narrow else 2.0**-12)


def attention_gradients(d: Draw) -> None:
    kind, (dim, dim_v) = (
        d.of(torch.bfloat16, torch.float16),
        d.of((64, 64), (64, 64), (128, 128), (192, 128), (256, 256)),
    )
    kv_heads, group, batch = d.of(1, 1, 2), d.of(1, 1, 2, 3), d.of(1, 1, 2)
    rows, keys = d.of(1, 3, 40, 64, 70, 100), d.of(1, 2, 33, 72, 130)
    fill = lambda name, *shape: d.laid(name, torch.randn(shape, generator=d.torch).to(kind), unit=8)  # noqa: E731
    q, k = fill("q", batch, rows, kv_heads * group, dim), fill("k", batch, keys, kv_heads, dim)
    v = fill("v", batch, keys, kv_heads, dim_v)
    options = {"causal": d.note("causal", d.one_in(2)), "scale": d.note("scale", d.of(None, 0.1))}

    def exact(q, k, v):
        return torch.stack([attend(*x, **options)[0] for x in zip(q, k, v)])

    gradients(d, lambda *t: kernels.flash_attention(*t, **options), exact, [q, k, v], add=2.0**-7)


CASES = {"flash_attention": flash_attention, "attention_gradients": attention_gradients}
