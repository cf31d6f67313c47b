# SPDX-License-Identifier: Apache-2.0
"""Attention over a latent cache against float64: small in the simulator, with all checks, and ragged ones on a GPU."""

import math
import types

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.attention import latent, latent_plan, plan
from numba_cute.seam import CuteError

from . import reference
from .test_forward import BF16, CAUSAL, F16, host, random

SLOW = pytest.mark.slow
SCALE = 192**-0.5


def attended(q, of_cache, width, causal):
    """O and the logs of one sequence, in float64."""
    window = CAUSAL if causal else (None, None)
    return reference.attention(q, of_cache[:, None], of_cache[:, None, :width], window=window, scale=SCALE)


def launched(q, cache, width, *, used=None, pages=None, causal=False, splits=1, sms=2, **options):
    """The launches of a call on arrays, and what they write: O, the logs of the sums, and the counter."""
    batch, queries, heads, _ = q.shape
    o, lse = np.full((*q.shape[:3], width), math.nan, q.dtype), np.full((batch, heads, queries), math.nan, np.float32)
    counter, work = np.zeros(1, np.int32), np.full(plan.room(q, o, splits), math.nan, np.float32)
    made = latent_plan.Options(SCALE, width, causal, splits, **options)
    todo = latent_plan.launches(q, cache, o, lse, counter, sms, made, used, pages, work if splits > 1 else None)
    return todo, o, lse, counter


def check(q, cache, width, *, used=None, pages=None, causal=False, **options):
    """Run a call in the simulator, and compare with float64."""
    todo, o, lse, counter = launched(q, cache, width, used=used, pages=pages, causal=causal, **options)
    for kernel, args, grid, block in todo:
        cute.simulate(kernel, arch="sm_90a")[grid, block](*args)
    assert counter[0] == 0
    for b in range(len(q)):
        own = cache[b] if pages is None else cache[pages[b]].reshape(-1, q.shape[-1])
        own = own if used is None else own[: used[b]]
        reference.check(o[b], lse[b], *attended(q[b], own, width, causal))


CASES = {
    # batch, queries, heads, keys, columns of a value, options
    "one_query": (1, 1, 16, 150, 128, {}),
    "causal": (2, 3, 16, 130, 128, {"causal": True}),
    "fewer_keys": (1, 70, 1, 33, 128, {"causal": True}),
    "heads_of_no_power": (2, 5, 24, 150, 128, {"causal": True, "sms": 3}),
    "two_tiles_of_heads": (1, 1, 128, 200, 128, {}),
    "a_tile_and_a_half": (1, 1, 96, 70, 128, {}),
    "no_cluster": (1, 1, 128, 130, 128, {"cluster": 1}),
    "clusters_end_apart": (1, 16, 8, 66, 128, {"causal": True}),
    "more_tiles_than_ctas": (5, 1, 4, 64, 128, {"sms": 2}),
    "no_draws": (5, 1, 4, 64, 128, {"sms": 2, "draws": False}),
    "splits": (1, 2, 16, 300, 128, {"splits": 3, "causal": True}),
    "more_splits_than_blocks": (1, 1, 16, 70, 128, {"splits": 3}),
    "deepseek": (1, 1, 64, 130, 512, {}),
    "between": (1, 2, 32, 130, 256, {"causal": True}),
}


@SLOW
@pytest.mark.parametrize("case", CASES)
def test_it_agrees_with_float64_in_the_simulator(case):
    batch, queries, heads, keys, width, options = CASES[case]
    dtype = F16 if case in ("causal", "splits") else BF16
    check(*random(dtype, (batch, queries, heads, width + 64), (batch, keys, width + 64)), width, **options)


@SLOW
def test_a_tile_agrees_with_float64():
    check(*random(BF16, (1, 1, 16, 192), (1, 9, 192)), 128)


RAGGED = {
    # queries, heads, keys of each sequence, of a page, options
    "contiguous": (1, 16, [150, 0, 64, 33], 0, {}),
    "cluster": (1, 128, [300, 0, 170, 20], 0, {}),
    "cluster_of_pages": (2, 64, [200, 70], 64, {"sms": 4}),
    "pages_of_8": (2, 16, [150, 0, 33], 8, {}),
    "pages_of_48": (1, 16, [150, 96, 1], 48, {}),
    "pages_and_splits": (2, 16, [200, 70, 0], 16, {"splits": 2}),
}


@SLOW
@pytest.mark.parametrize("case", RAGGED)
def test_caches_are_ragged_and_what_is_behind_the_last_key_is_not_seen(case):
    queries, heads, lengths, page, options = RAGGED[case]
    used, count = np.array(lengths, np.int32), -(-max(lengths) // page) if page else 0
    shape = (len(used) * count + 2, page) if page else (len(used), max(lengths) + 5)
    q, cache = random(BF16, (len(used), queries, heads, 192), (*shape, 192))
    pages = None
    if page:
        pages = np.random.default_rng(1).permutation(shape[0])[: len(used) * count].reshape(-1, count).astype(np.int32)
    for b, n in enumerate(lengths):
        if page:
            for p, number in enumerate(pages[b]):
                cache[number, max(0, n - p * page) :] = math.nan
            pages[b, -(-n // page) :] = -1
        else:
            cache[b, n:] = math.nan
    check(q, cache, 128, used=used, pages=pages, causal=True, **options)


def test_tiles_are_of_heads_and_queries():
    shaped = lambda *s: types.SimpleNamespace(shape=s)  # noqa: E731
    for queries, heads, pack, tiles, cluster in (
        (1, 128, 64, 2, 2), (1, 16, 16, 1, 1), (4, 16, 16, 1, 1), (5, 16, 16, 2, 2), (3, 128, 64, 6, 2),
        (1, 96, 64, 2, 2), (2, 24, 32, 1, 1), (1, 1, 1, 1, 1),
    ):  # fmt: skip
        q = shaped(2, queries, heads, 576)
        found = latent_plan.pack_of(heads), latent_plan.tiles_of(q), latent_plan.cluster_of(q)
        assert found == (pack, tiles, cluster)
    assert [latent.chunk_of(n) for n in (0, 8, 16, 48, 64, 96, 128)] == [64, 8, 16, 16, 64, 32, 64]


def test_few_sequences_share_their_keys_among_ctas():
    q, cache = np.zeros((1, 1, 64, 576), BF16), np.zeros((1, 8192, 576), BF16)
    assert latent_plan.best_splits(q, cache, None, None, 132) > 30
    many = np.zeros((132, 1, 64, 576), BF16)
    assert latent_plan.best_splits(many, np.broadcast_to(cache, (132, 8192, 576)), None, None, 132) == 1


@SLOW
def test_a_deepseek_tile_spills_nothing_and_keeps_its_products_in_flight():
    q, cache = np.zeros((1, 1, 128, 576), BF16), np.zeros((1, 128, 576), BF16)
    (kernel, args, _, _), *_ = launched(q, cache, 512)[0]
    made = cute.compile(kernel, args, arch="sm_90a")
    r = made.resources
    assert not made.notes and not r.local and not r.spill_stores and r.group_registers == (56, 224, 224)


# ---------------------------------------------------------------- as PyTorch's operator


@pytest.fixture
def entries():
    torch = pytest.importorskip("torch")
    with cute.simulation(checks=False, sms=4):
        yield torch


def tensors(torch, *shapes):
    torch.manual_seed(0)
    return [torch.randn(s).to(torch.float16) for s in shapes]


@SLOW
def test_the_entry_is_right_written_to_what_it_is_given_and_traced_whole(entries):
    torch = entries
    from numba_cute.kernels import latent_attention

    q, cache = tensors(torch, (2, 2, 16, 192), (2, 100, 192))
    options = {"scale": SCALE, "head_dim_v": 128, "causal": True}
    o, lse = latent_attention(q, cache, return_lse=True, **options)
    for b in range(2):
        reference.check(o[b].numpy(), lse[b].numpy(), *attended(q[b].numpy(), cache[b].numpy(), 128, True))
    out = torch.empty_like(o)
    assert latent_attention(q, cache, out=out, **options) is out and torch.equal(o, out)
    call = lambda q, cache: latent_attention(q, cache, **options) * 2  # noqa: E731
    assert torch.equal(torch.compile(call, fullgraph=True, backend="aot_eager")(q, cache), o * 2)
    heads = tensors(torch, (2, 2, 32, 192))[0][:, :, 8:24]  # that lie apart
    lengths, apart = torch.tensor([64, 0], dtype=torch.int32), torch.zeros(2, 70, 256).half()[..., :192].normal_()
    o, lse = latent_attention(heads, apart, seqused_k=lengths, return_lse=True, num_splits=2, **options)
    for b, n in enumerate(lengths.tolist()):
        reference.check(o[b].numpy(), lse[b].numpy(), *attended(heads[b].numpy(), apart[b, :n].numpy(), 128, True))


def test_nothing_to_see_gives_zeros(entries):
    torch = entries
    from numba_cute.kernels import latent_attention

    q, none = tensors(torch, (2, 1, 4, 576), (2, 0, 576))
    o, lse = latent_attention(q, none, scale=SCALE, return_lse=True)
    assert o.shape == (2, 1, 4, 512) and not o.any() and (lse == -math.inf).all()
    assert latent_attention(q[:, :0], none, scale=SCALE).shape == (2, 0, 4, 512)
    assert latent_attention(q[:0], none[:0], scale=SCALE).shape == (0, 1, 4, 512)


def test_what_does_not_fit_is_refused_in_words(entries):
    torch = entries
    from numba_cute.kernels import latent_attention

    q, cache = tensors(torch, (2, 1, 4, 576), (2, 16, 576))
    lengths, pages = torch.zeros(2, dtype=torch.int32), torch.zeros(2, 1, dtype=torch.int32)

    def refused(words, *given, scale=SCALE, **options):
        with pytest.raises(CuteError, match=words):
            latent_attention(*given, scale=scale, **options)

    refused("head_dim_v is 512, and q is .* must be .*, and q's last mode 64 more", q[..., :512], cache)
    refused("head_dim_v is 256, and q is", q, cache, head_dim_v=256)
    refused("cache is .* its shape must be", q, cache[:1])
    refused("cache is .* must be float16", q, cache.bfloat16())
    refused("cache is .* must be", q, cache[:, :, None])
    refused("page_table is given; it needs seqused_k", q, cache, page_table=pages)
    refused("with a multiple of 8 keys", q, cache[:, :12], seqused_k=lengths, page_table=pages)
    refused("seqused_k is .* must be int32", q, cache, seqused_k=lengths.long())
    refused("scale 0.0 must be positive", q, cache, scale=0)
    refused("scale is None; it must be a number", q, cache, scale=None)
    refused("num_splits is 300", q, cache, num_splits=300)
    refused("requires a gradient", q.clone().requires_grad_(), cache)
    refused(r"out\[0\] is", q, cache, out=q)
    refused("copies want it", q, torch.zeros(2, 16, 580).half()[..., :576])


def test_another_gpu_is_refused():
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import latent_attention

    q, cache = tensors(torch, (2, 1, 4, 576), (2, 16, 576))
    for arch in ("sm_80", "sm_100a"):
        with cute.simulation(arch), pytest.raises(CuteError, match="latent_attention: its kernel is for Hopper"):
            latent_attention(q, cache, scale=SCALE)


# ---------------------------------------------------------------- on a GPU

ON_GPU = [  # keys of each sequence, of a page, queries, heads, columns of a value, splits, type
    ([5000, 1, 1300, 0], 64, 1, 128, 512, 0, "bfloat16"),
    ([700, 2049], 128, 5, 16, 512, 7, "float16"),
    ([3000, 3000, 40], 0, 2, 128, 512, 1, "bfloat16"),
    ([3000] * 80, 0, 1, 64, 512, 0, "bfloat16"),
    ([900, 333], 16, 3, 24, 256, 0, "bfloat16"),
    ([9000], 8, 4, 128, 128, 0, "float16"),
]


@pytest.mark.gpu
@pytest.mark.parametrize("used, page, queries, heads, width, splits, name", ON_GPU, ids=str)
def test_it_agrees_with_float64_on_a_gpu(used, page, queries, heads, width, splits, name):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import latent_attention

    torch.manual_seed(0)
    kind, d, each = getattr(torch, name), width + 64, -(-max(used) // page) if page else 0
    shape = (len(used) * each + 2, page, d) if page else (len(used), max(used), d)
    cache = torch.randn(shape, device="cuda", dtype=kind)
    pages = torch.randperm(shape[0], device="cuda")[: len(used) * each].view(len(used), each).int() if page else None
    q = torch.randn(len(used), queries, heads, d, device="cuda", dtype=kind)
    lengths = torch.tensor(used, device="cuda", dtype=torch.int32)
    own = [(cache[b] if pages is None else cache[pages[b].long()].view(-1, d))[:n].clone() for b, n in enumerate(used)]
    if not page:
        for b, n in enumerate(used):
            cache[b, n:] = math.nan
    options = {"scale": SCALE, "head_dim_v": width, "causal": True, "seqused_k": lengths, "page_table": pages}
    o, lse = latent_attention(q, cache, return_lse=True, num_splits=splits, **options)
    assert torch.equal(o, latent_attention(q, cache, num_splits=splits, **options))
    for b in list(range(len(used)))[:4]:
        reference.check(host(o[b]), lse[b].cpu().numpy(), *attended(host(q[b]), host(own[b]), width, True))
