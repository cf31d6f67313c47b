# SPDX-License-Identifier: Apache-2.0
"""Attention in float64, of one sequence."""

import math

import numpy as np


def attention(q, k, v, *, window=(None, None), scale=None, score=None, sink=None, batch=0, mask=None):
    """O (queries, heads, dv) and the logs of the sums (heads, queries) for q (queries, heads, d), k and v (keys, KV
    heads, d or dv)."""
    q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
    queries, heads, d = q.shape
    keys, group = k.shape[0], heads // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = np.einsum("qhd,khd->hqk", q, k) * (1 / math.sqrt(d) if scale is None else scale)
    query, key = np.arange(queries)[:, None], np.arange(keys)[None]
    if score is not None:
        s = score(s, batch, np.arange(heads)[:, None, None], query[None], key[None])
    own = query + keys - queries
    seen = np.ones((queries, keys), bool)
    if window[0] is not None:
        seen &= key >= own - window[0]
    if window[1] is not None:
        seen &= key <= own + window[1]
    if mask is not None:
        seen = seen & mask(batch, np.arange(heads)[:, None, None], query[None], key[None])
    s = np.where(seen, s, -math.inf)
    if sink is not None:
        s = np.concatenate([s, np.broadcast_to(np.asarray(sink, np.float64)[:, None, None], (heads, queries, 1))], 2)
    top = s.max(-1, keepdims=True, initial=-math.inf)
    top = np.where(np.isinf(top), 0, top)
    weights = np.exp(s - top)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        lse, weights = (top + np.log(total))[..., 0], np.where(total > 0, weights / total, 0)
    return np.einsum("hqk,khd->qhd", weights[..., :keys], v), lse


def check(o, lse, want_o, want_lse):
    """Fail unless O is as near as rounding it and P to 16 bits leaves it, and the logs to 1e-4."""
    got, unit = np.asarray(o).astype(np.float64), {"bfloat16": 2.0**-8, "float16": 2.0**-11}[np.asarray(o).dtype.name]
    assert np.linalg.norm(got - want_o) <= unit * max(np.linalg.norm(want_o), 1e-30)
    assert (np.abs(got - want_o) <= 4 * unit * (np.abs(want_o) + 1)).all()
    seen = np.isfinite(want_lse)
    assert (np.asarray(lse)[~seen] == want_lse[~seen]).all()
    assert (np.abs(np.asarray(lse)[seen] - want_lse[seen]) <= 1e-4).all()
