# SPDX-License-Identifier: Apache-2.0
"""Attention of few queries, whose keys several CTAs share, against float64: small in the simulator, ragged on a GPU."""

import math

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.attention import options, plan, split
from numba_cute.kernels.attention.plan import Lengths, Options
from numba_cute.seam import CuteError

from . import reference
from .test_forward import ALL, BF16, CAUSAL, batched, bent, host, on_gpu, random


def simulate(q, k, v, window=ALL, *, splits, sms=2, lengths=plan.ALL, sink=None, aux=(), lse_shape=None, **options):
    """Run both kernels; gives O and the logs of the sums."""
    batch, queries, heads = (1, *q.shape[:-1])[-3:]
    lse_shape = (heads, queries) if lengths.cu_q is not None else (batch, heads, queries)
    o, lse = np.full((*q.shape[:-1], v.shape[-1]), math.nan, q.dtype), np.full(lse_shape, math.nan, np.float32)
    counter, work = np.zeros(1, np.int32), np.full(plan.room(q, v, splits), math.nan, np.float32)
    made = Options(1 / math.sqrt(q.shape[-1]), *window, splits=splits, **options)
    for kernel, args, grid, block in (
        plan.arguments(q, k, v, o, lse, counter, sms, made, lengths, sink, aux, work),
        plan.joining(q, v, o, lse, made, lengths, sink, work),
    ):
        cute.simulate(kernel, arch="sm_90a")[grid, block](*args)
    assert counter[0] == 0
    return o, lse


CASES = {
    # batch, queries, keys, heads, KV heads, d, dv, window, splits, options
    "one_query": (2, 1, 300, 8, 2, 64, 64, ALL, 3, {}),
    "more_splits_than_blocks": (1, 1, 70, 2, 1, 64, 64, ALL, 4, {"tile": (64, 32)}),
    "causal": (1, 5, 200, 3, 1, 64, 128, CAUSAL, 2, {"tile": (64, 32)}),
    "window": (1, 3, 300, 4, 4, 64, 64, (100, 0), 2, {"tile": (64, 16)}),
    "many_queries": (1, 140, 200, 1, 1, 64, 64, CAUSAL, 2, {"tile": (128, 32)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_parts_join_to_what_float64_gives_in_the_simulator(case):
    batch, queries, keys, heads, kv_heads, d, dv, window, splits, options = CASES[case]
    q, k, v = random(BF16, (batch, queries, heads, d), (batch, keys, kv_heads, d), (batch, keys, kv_heads, dv))
    o, lse = simulate(q, k, v, window, splits=splits, **options)
    reference.check(o, lse, *batched(q, k, v, window=window))


@pytest.mark.slow
def test_caches_are_ragged_and_have_a_sink():
    used, page, sink = np.array([150, 0, 33], np.int32), 32, np.array([0.5, 30.0], np.float32)
    pages = np.random.default_rng(1).permutation(3 * 5).reshape(3, 5).astype(np.int32)
    q, k, v = random(BF16, (3, 2, 2, 64), (15, page, 1, 64), (15, page, 1, 64))
    options = {"lengths": Lengths(used=used, pages=pages), "sink": sink, "tile": (64, 32), "splits": 3}
    o, lse = simulate(q, k, v, CAUSAL, **options)
    for b in range(3):
        flat_k, flat_v = (x[pages[b]].reshape(-1, 1, 64)[: used[b]] for x in (k, v))
        reference.check(o[b], lse[b], *reference.attention(q[b], flat_k, flat_v, window=CAUSAL, sink=sink))


def test_parts_are_weighed_by_their_sums():
    rng, splits, dv = np.random.default_rng(0), 5, 64
    q, v = np.zeros((1, 2, 2, 64), BF16), np.zeros((1, 7, 1, dv), BF16)
    parts, logs = rng.standard_normal((splits, 1, 2, 2, dv)), rng.standard_normal((splits, 1, 2, 2)) * 3
    logs[2], logs[:, 0, 0, 0] = -math.inf, -math.inf  # a part that saw no key, and a row none of whose parts did
    parts[logs == -math.inf] = math.nan
    work = np.concatenate([parts.ravel(), logs.ravel()]).astype(np.float32)
    assert work.size == plan.room(q, v, splits)
    o, lse = np.full(q.shape, math.nan, BF16), np.full((1, 2, 2), math.nan, np.float32)
    kernel, args, grid, block = plan.joining(q, v, o, lse, Options(1.0, splits=splits), plan.ALL, None, work)
    cute.simulate(kernel, arch="sm_90a")[grid, block](*args)
    weights = np.exp(logs)
    with np.errstate(invalid="ignore", divide="ignore"):
        want = (weights[..., None] * np.nan_to_num(parts)).sum(0) / weights.sum(0)[..., None]
        reference.check(o, lse, np.nan_to_num(want), np.log(weights.sum(0)).transpose(0, 2, 1))


def test_tiles_share_keys_where_that_keeps_the_gpu_busy():
    assert split.splits_of(8, 32, 132, False) == 16
    assert split.splits_of(8 * 32, 32, 132, False) == 1
    assert split.splits_of(1, 1, 132, False) == 1
    assert split.splits_of(1, 10**6, 132, False) <= split.MOST_SPLITS
    assert split.splits_of(8 * 32, 256, 132, True) > 4  # lengths are not known: small parts
    q, cache = np.zeros((2, 1, 8, 64), BF16), np.zeros((2, 4096, 2, 64), BF16)
    assert plan.best_splits(q, cache, cache, Options(1.0), plan.ALL, 132) == 16
    assert plan.best_splits(q, cache, cache, Options(1.0, 100, 0), plan.ALL, 132) == 1
    rows = np.zeros((2, 4096, 8, 64), BF16)
    assert plan.best_splits(rows, cache, cache, Options(1.0), plan.ALL, 132) == 1


def test_a_wrong_number_of_splits_is_refused_in_words():
    for wrong in (-1, 300, 2.0):
        with pytest.raises(CuteError, match="num_splits is .*; it must be 1 to 256, or 0"):
            options.chosen("flash_attention", False, (None, None), None, None, None, 64, wrong)


# ---------------------------------------------------------------- on a GPU


def cache(torch, used, page, kv_heads, d, dv):
    """A paged cache of sequences of so many keys: K, V, the table, and each sequence's own K and V."""
    each = -(-max(used) // page)
    pages = torch.randperm(len(used) * each + 2, device="cuda")[: len(used) * each].reshape(len(used), each).int()
    k, v = (torch.randn(len(used) * each + 2, page, kv_heads, n, device="cuda", dtype=torch.bfloat16) for n in (d, dv))
    flat = [
        [host(x[pages[b].long()].reshape(-1, kv_heads, x.shape[-1])[:n].contiguous()) for x in (k, v)]
        for b, n in enumerate(used)
    ]
    return k, v, pages, flat


RAGGED = [  # d, dv, keys of each sequence, of a page, queries, heads, KV heads, window, splits
    (64, 64, [5000, 1, 1300, 0], 16, 1, 8, 1, CAUSAL, 0),
    (128, 128, [700, 2049], 128, 5, 16, 2, CAUSAL, 7),
    (192, 128, [3000], 64, 3, 4, 4, (500, 0), 0),
    (256, 256, [3000, 40], 48, 1, 8, 2, CAUSAL, 0),
]


@pytest.mark.gpu
@pytest.mark.parametrize("d, dv, used, page, queries, heads, kv_heads, window, splits", RAGGED, ids=str)
def test_ragged_caches_on_a_gpu(d, dv, used, page, queries, heads, kv_heads, window, splits):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    torch.manual_seed(0)
    k, v, pages, flat = cache(torch, used, page, kv_heads, d, dv)
    q = torch.randn(len(used), queries, heads, d, device="cuda", dtype=torch.bfloat16)
    lengths = torch.tensor(used, device="cuda", dtype=torch.int32)
    o, lse = flash_attention(
        q, k, v, window=window, seqused_k=lengths, page_table=pages, return_lse=True, num_splits=splits
    )
    for b in range(len(used)):
        want = reference.attention(host(q[b]), *flat[b], window=window)
        reference.check(host(o[b]), lse[b].cpu().numpy(), *want)


FEW = [  # batch, queries, keys, heads, KV heads, splits, type
    (1, 1, 5000, 8, 1, 0, "bfloat16"),
    (40, 1, 700, 16, 8, 0, "bfloat16"),
    (2, 70, 1500, 2, 2, 5, "bfloat16"),
    (1, 2, 9000, 5, 1, 256, "bfloat16"),
    (1, 300, 3000, 2, 1, 0, "bfloat16"),
    (2, 7, 1000, 14, 2, 0, "float16"),
]


@pytest.mark.gpu
@pytest.mark.parametrize("b, queries, keys, heads, kv_heads, splits, name", FEW, ids=str)
def test_few_queries_on_a_gpu(b, queries, keys, heads, kv_heads, splits, name):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    shapes = (b, queries, heads, 128), (b, keys, kv_heads, 128), (b, keys, kv_heads, 128)
    q, k, v = on_gpu(torch, getattr(torch, name), *shapes)
    first = flash_attention(q, k, v, causal=True, num_splits=splits)
    o, lse = flash_attention(q, k, v, causal=True, num_splits=splits, return_lse=True)
    assert torch.equal(o, first)
    reference.check(host(o), lse.cpu().numpy(), *batched(*map(host, (q, k, v)), window=CAUSAL))


@pytest.mark.gpu
def test_splits_go_with_all_options_on_a_gpu():
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    q, k, v = on_gpu(torch, torch.bfloat16, (2, 4, 8, 128), (2, 1500, 2, 128), (2, 1500, 2, 128))
    arrays, sink, out = [host(x) for x in (q, k, v)], torch.linspace(-2, 9, 8, device="cuda"), torch.empty_like(q)
    o, lse = flash_attention(q, k, v, causal=True, sink=sink, scale=0.2, out=out, return_lse=True, num_splits=6)
    assert o is out
    reference.check(host(o), lse.cpu().numpy(), *batched(*arrays, window=CAUSAL, sink=sink.cpu().numpy(), scale=0.2))
    o, lse = flash_attention(q, k, v, score=bent, aux=(cute.Float32(0.01),), return_lse=True, num_splits=6)
    reference.check(host(o), lse.cpu().numpy(), *batched(*arrays, score=lambda *args: bent(*args, 0.01)))
    queries, keys = [5, 1, 0, 60], [2000, 600, 1, 333]
    at_q, at_k = (np.cumsum([0, *n]).astype(np.int32) for n in (queries, keys))
    cu_q, cu_k = (torch.from_numpy(x).cuda() for x in (at_q, at_k))
    q, k, v = on_gpu(torch, torch.bfloat16, (at_q[-1] + 3, 4, 128), (at_k[-1], 2, 128), (at_k[-1], 2, 128))
    out = torch.full_like(q, 7)
    o, lse = flash_attention(
        q, k, v, causal=True, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, max_seqlen_q=60, return_lse=True,
        num_splits=5, out=out,
    )  # fmt: skip
    assert (o[at_q[-1] :] == 7).all()
    o, lse, q, k, v = host(o), lse.cpu().numpy(), host(q), host(k), host(v)
    for i in range(len(queries)):
        rows, seen = slice(at_q[i], at_q[i + 1]), slice(at_k[i], at_k[i + 1])
        reference.check(o[rows], lse[:, rows], *reference.attention(q[rows], k[seen], v[seen], window=CAUSAL))
