# SPDX-License-Identifier: Apache-2.0
"""Cases of attention over a latent cache."""

from __future__ import annotations

import math

import torch

from numba_cute import kernels

from .attention import attend, int32
from .draw import Draw, close


def latent_attention(d: Draw) -> None:
    kind, latent = d.option(torch.bfloat16, torch.float16), d.option(128, 128, 256, 512)
    batch, heads, splits = d.of(1, 1, 2, 3), d.of(1, 3, 16, 24, 40, 64, 80, 128), d.note("splits", d.of(0, 1, 1, 2, 3))
    most = 500 if splits == 1 else 130  # rows, of which a block joins each where there are splits
    queries = d.of(*[n for n in (0, 1, 1, 1, 2, 3, 5, 9) if n * heads * batch <= most] or [1])
    causal, scale = d.note("causal", d.option_in(2)), d.note("scale", d.of(0.05, 192**-0.5))
    fill = lambda name, *shape: d.laid(name, torch.randn(shape, generator=d.torch).to(kind), unit=8)  # noqa: E731
    q = fill("q", batch, queries, heads, latent + 64)
    keys, page = d.of(0, 1, 16, 33, 64, 72, 130, 200, 300), d.option(0, 0, 8, 16, 48, 64, 128)
    lengths, named = [keys] * batch, {}
    if page:
        count = -(-max(keys, 1) // page)
        cache = fill("cache", batch * count + 2, page, latent + 64)
        table = int32(*d.random.sample(range(batch * count + 2), batch * count)).reshape(batch, count)
        named["page_table"] = table
        flat = [cache[t.long()].reshape(-1, latent + 64) for t in table]
    else:
        cache = fill("cache", batch, keys, latent + 64)
        flat = list(cache)
    if page or d.option_in(2):
        lengths = [d.random.randint(0, keys) for _ in range(batch)]
        named["seqused_k"] = int32(*lengths)
    own = [x[:n].double() for x, n in zip(flat, lengths)]
    if not page and "seqused_k" in named:  # what lies behind is anything
        cache = cache.clone()
        for i, n in enumerate(lengths):
            cache[i, n:] = math.nan
    d.note("keys", lengths)
    options = {"head_dim_v": latent, "causal": causal, "scale": scale}
    o, lse = kernels.latent_attention(q, cache, num_splits=splits, return_lse=True, **options, **named)
    for i, k in enumerate(own):
        exact = {"causal": causal, "scale": scale}
        want, logs = attend(q[i].double(), k[:, None], k[:, None, :latent], **exact)
        size = float(k.abs().max()) * 1.5 if k.numel() else 1.0
        close(f"O of sequence {i}", o[i], want, size=size, add=2.0**-8)
        close(f"lse of sequence {i}", lse[i], logs, size=4.0, add=2.0**-12)


CASES = {"latent_attention": latent_attention}
