# SPDX-License-Identifier: Apache-2.0
"""Attention of the blocks that a mask sees: lists, and results and gradients in a simulation, against float64."""

import math

import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.attention import plan
from numba_cute.kernels.attention.form import Form

torch = pytest.importorskip("torch")

from .test_gradients import normal  # noqa: E402

SLOW = pytest.mark.slow
pytestmark = pytest.mark.usefixtures("simulated")


def chequered(batch, head, query, key, keys):
    """Blocks of 64 by 64 in a pattern, some of them in part; no query from 190 on sees a key."""
    seen = ((query // 64 + key // 64) % 2 == 0) & (key < keys[batch]) & (query < 190)
    return seen & ((query < 64) | ((query - key) % 3 != head))


def allowed(queries, keys, heads, lengths, window=(None, None)):
    """Which keys are seen, (batch, heads, queries, keys), by torch."""
    at = [torch.arange(n) for n in (len(lengths), heads, queries, keys)]
    b, h, i, j = torch.meshgrid(*at, indexing="ij")
    own, (left, right) = i + keys - queries, window
    seen = chequered(b, h, i, j, lengths)
    seen = seen & (j <= own + right) if right is not None else seen
    return seen & (j >= own - left) if left is not None else seen


def exactly(q, k, v, seen):
    """O and the logs of the sums in float64."""
    k, v = (t.repeat_interleave(q.shape[2] // k.shape[2], 2) for t in (k, v))
    s = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    lse = torch.logsumexp(s.masked_fill(~seen, -math.inf), -1)
    p = torch.exp(s - torch.where(lse == -math.inf, 0.0, lse)[..., None])
    return torch.einsum("bhqk,bkhd->bqhd", torch.where(seen, p, 0.0), v), lse


def same(o, lse, want, logs):
    assert (o.double() - want).norm() <= 0.001 * want.norm()
    none = torch.isinf(logs)
    assert torch.equal(lse[none].double(), logs[none]) and (lse - logs)[~none].abs().max() < 1e-4


def test_a_block_is_visited_where_something_of_it_is_seen():
    visited = torch.tensor([[[[True, False, True], [False, False, False]]]])
    whole = torch.tensor([[[[False, False, True], [True, False, False]]]])  # of what is not visited it means nothing
    made = kernels.block_mask_from(visited, whole, mask=chequered, block=(128, 64))
    assert made.counts.tolist() == [[[2, 0]]] and made.lists[0, 0, 0, :2].tolist() == [0, 5]
    assert made.of_keys[0].tolist() == [[[1, 0, 1]]] and made.of_keys[1][0, 0, :, 0].tolist() == [0, 4, 1]


@SLOW
def test_a_mask_is_asked_of_all_that_there_is():
    lengths, block = torch.tensor([70, 20]), (64, 16)
    made = kernels.block_mask(chequered, 2, 2, 100, 90, aux=(lengths,), block=block)
    seen = torch.zeros(2, 2, 128, 96, dtype=torch.bool)
    seen[:, :, :100, :90] = allowed(100, 90, 2, lengths)
    beyond = torch.ones(128, 96, dtype=torch.bool)
    beyond[:100, :90] = False  # what there is not is no matter
    each = lambda x: x.unflatten(-2, (2, 64)).unflatten(-1, (6, 16))  # noqa: E731
    visited, whole = each(seen).any(-1).any(-2), each(seen | beyond).all(-1).all(-2)
    want = kernels.block_mask_from(visited, whole, block=block, mask=chequered, aux=(lengths,))
    for got, right in ((made[:2], want[:2]), (made.of_keys, want.of_keys)):
        assert all(torch.equal(x, y) for x, y in zip(got, right))


CASES = {"all": {}, "causal": {"causal": True}, "a window": {"window": (90, 20)}, "parts": {"num_splits": 2}}


@SLOW
@pytest.mark.parametrize("name", CASES)
def test_blocks_that_nobody_sees_are_not_read(name):
    lengths, options = torch.tensor([250, 100]), CASES[name]
    queries, heads = (70, 1) if name == "parts" else (200, 2)  # of parts a CTA joins each row
    made = kernels.block_mask(chequered, 2, heads, queries, 260, aux=(lengths,), block=(64, 64))
    window = (None, 0) if options.get("causal") else options.get("window", (None, None))
    seen = allowed(queries, 260, heads, lengths, window)
    q, k, v = normal(2, queries, heads, 64), normal(2, 260, 1, 64), normal(2, 260, 1, 64)
    want = exactly(*(t.double() for t in (q, k, v)), seen)
    k[1, 128:], v[1, 128:] = math.nan, math.nan  # of blocks that no query visits
    same(*kernels.flash_attention(q, k, v, blocks=made, return_lse=True, **options), *want)


@SLOW
def test_sequences_and_lengths_go_with_blocks():
    lengths, queries = torch.tensor([250, 100]), [130, 60]
    cu, used = torch.tensor([0, 130, 190], dtype=torch.int32), torch.tensor([70, 200], dtype=torch.int32)
    made = kernels.block_mask(chequered, 2, 1, 130, 260, aux=(lengths,), block=(64, 64))
    q, k, v = normal(190, 1, 64), normal(2, 260, 1, 64), normal(2, 260, 1, 64)
    exact = [t.nan_to_num().double() for t in (q, k, v)]
    for b, n in enumerate(used):
        k[b, n:], v[b, n:] = math.nan, math.nan
    o, lse = kernels.flash_attention(
        q, k, v, blocks=made, cu_seqlens_q=cu, max_seqlen_q=130, seqused_k=used, return_lse=True
    )
    for b, n in enumerate(used.tolist()):
        rows = slice(int(cu[b]), int(cu[b + 1]))
        seen = allowed(queries[b], n, 1, lengths)[b : b + 1]
        want = exactly(exact[0][None, rows], exact[1][None, b, :n], exact[2][None, b, :n], seen)
        same(o[None, rows], lse[None, :, rows], *want)


@SLOW
@pytest.mark.parametrize("name", ["all", "causal"])
def test_blocks_have_gradients(name):
    lengths, options = torch.tensor([250, 100]), CASES[name]
    made = kernels.block_mask(chequered, 2, 2, 200, 260, aux=(lengths,), block=(128, 64))
    seen = allowed(200, 260, 2, lengths, (None, 0) if options else (None, None))
    mine = [normal(2, n, h, 64).requires_grad_() for n, h in ((200, 2), (260, 1), (260, 1))]
    exact = [t.detach().double().requires_grad_() for t in mine]
    o, lse = kernels.flash_attention(*mine, blocks=made, return_lse=True, **options)
    right, logs = exactly(*exact, seen)
    do, dlse = normal(*o.shape), torch.where(torch.isinf(logs), 0.0, torch.randn(logs.shape))
    found = torch.autograd.grad([o, lse], mine, [do, dlse.float()])
    wanted = torch.autograd.grad([right, logs.masked_fill(torch.isinf(logs), 0.0)], exact, [do.double(), dlse])
    for got, want in zip(found, wanted, strict=True):
        assert (got.double() - want).norm() <= 0.001 * want.norm()


@SLOW
def test_blocks_are_traced_whole():
    made = kernels.block_mask_from(torch.tensor([[[[True, False, True]]]]), block=(128, 64))
    mine = [normal(1, n, 1, 64).requires_grad_() for n in (20, 150, 150)]
    call = lambda q, k, v: kernels.flash_attention(q, k, v, blocks=made) * 2  # noqa: E731
    found = []
    for f in (torch.compile(call, fullgraph=True, backend="aot_eager"), call):
        o = f(*mine)
        found.append((o, *torch.autograd.grad(o.sum(), mine)))
    assert all(torch.equal(x, y) for x, y in zip(*found)) and not found[0][2][0, 64:128].any()


def test_tiles_divide_blocks():
    def tile(d, dv, block, **more):
        return plan.tile_of(Form(cute.BFloat16, d, dv, 1, 0, 0, block=block, **more))

    assert (tile(64, 64, (128, 128)), tile(64, 64, (192, 128))) == ((128, 128), (64, 128))
    assert (tile(256, 256, (128, 128)), tile(128, 128, (64, 96))) == ((128, 64), (64, 96))


def test_what_does_not_fit_is_refused_in_words():
    visited = torch.ones(1, 1, 1, 2, dtype=torch.bool)
    made = kernels.block_mask_from(visited)
    q, k = normal(1, 100, 1, 64), normal(1, 200, 1, 64)
    with pytest.raises(CuteError, match="it must be .queries, keys., a multiple of 64 and one of 16"):
        kernels.block_mask_from(visited, block=(100, 128))
    with pytest.raises(CuteError, match="whole is given without a mask"):
        kernels.block_mask_from(visited, visited)
    with pytest.raises(CuteError, match="make it by kernels.block_mask"):
        kernels.flash_attention(q, k, k, blocks=visited)
    with pytest.raises(CuteError, match="mask is given, and blocks, which has a mask of its own"):
        kernels.flash_attention(q, k, k, blocks=made, mask=chequered)
    with pytest.raises(CuteError, match="mask_aux is given without the mask"):
        kernels.flash_attention(q, k, k, mask_aux=(1,))
    with pytest.raises(CuteError, match="mask is .*; it must be a function"):
        kernels.flash_attention(q, k, k, mask=visited)
    with pytest.raises(CuteError, match=r"1 x 2 blocks of 128 queries and 128 keys; here it must be .* 1 x 3: q is"):
        kernels.flash_attention(q, normal(1, 300, 1, 64), normal(1, 300, 1, 64), blocks=made)
    with pytest.raises(CuteError, match="blocks was found of 90 queries and 200 keys, and here are 100 and 200"):
        kernels.flash_attention(q, k, k, blocks=made._replace(extents=(90, 200)))
    with pytest.raises(CuteError, match="these must be 128 or 256, and a multiple of 64"):
        small = kernels.block_mask_from(torch.ones(1, 1, 2, 2, dtype=torch.bool), block=(64, 128))
        kernels.flash_attention(q.requires_grad_(), k, k, blocks=small)
    with pytest.raises(CuteError, match="give max_seqlen_k too"):
        cu = torch.tensor([0, 100], dtype=torch.int32)
        how = {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 100}
        kernels.flash_attention(q.detach()[0], k[0], k[0], blocks=made, **how)
