# SPDX-License-Identifier: Apache-2.0
"""Attention whose mask is a function, forward and backward, against float64."""

import math

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.attention import elements, gradients, plan
from numba_cute.kernels.attention.plan import Lengths, Options

from . import reference
from .test_forward import ALL, BF16, CAUSAL, batched, bent, host, on_gpu, random

SMALL = {"tile": (64, 16)}


def thinned(batch, head, query, key, keys):
    """A query sees some of the keys of its batch; some queries see none."""
    return (key < keys[batch]) & ((query * 3 + key + head) % 4 != 0) & (query != 7)


def simulate(q, k, v, window=ALL, lengths=plan.ALL, aux=(), mask_aux=(), listed=None, sms=1, **options):
    """Run the kernels; gives O and the logs of the sums."""
    heads, splits = q.shape[-2], options.get("splits") or 1
    lse_shape = (heads, q.shape[0]) if lengths.cu_q is not None else (q.shape[0], heads, q.shape[1])
    o, lse = np.full((*q.shape[:-1], v.shape[-1]), math.nan, q.dtype), np.full(lse_shape, math.nan, np.float32)
    work = np.full(plan.room(q, v, splits), math.nan, np.float32) if splits > 1 else None
    made = Options(1 / math.sqrt(q.shape[-1]), *window, **options)
    given = q, k, v, o, lse, np.zeros(1, np.int32), sms, made, lengths, None, aux, work
    launches = [plan.arguments(*given, mask_aux=mask_aux, listed=listed)]
    if splits > 1:
        launches.append(plan.joining(q, v, o, lse, made, lengths, None, work))
    for kernel, args, grid, block in launches:
        cute.simulate(kernel, arch="sm_90a")[grid, block](*args)
    return o, lse


@pytest.mark.slow
def test_a_mask_says_what_is_seen():
    q, k, v = random(BF16, (2, 10, 1, 64), (2, 20, 1, 64), (2, 20, 1, 64))
    seen = np.array([18, 0], np.int32)
    o, lse = simulate(q, k, v, mask=thinned, mask_aux=(seen,), **SMALL)
    reference.check(o, lse, *batched(q, k, v, mask=lambda *at: thinned(*at, seen)))
    assert not o[0, 7].any() and (lse[0, :, 7] == -math.inf).all() and (lse[1] == -math.inf).all()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"pack": 4}, {"splits": 2}, {"tile": (128, 32)}], ids=str)
@pytest.mark.parametrize("window", [CAUSAL, (30, 5)], ids=str)
def test_a_mask_goes_with_windows_and_a_score(options, window):
    q, k, v = random(BF16, (2, 20, 3, 64), (2, 70, 1, 64), (2, 70, 1, 64))
    seen = np.array([60, 9], np.int32)
    o, lse = simulate(
        q, k, v, window, mask=thinned, mask_aux=(seen,), score=bent, aux=(cute.Float32(0.01),), **SMALL | options
    )
    want = batched(q, k, v, window=window, mask=lambda *at: thinned(*at, seen), score=lambda *args: bent(*args, 0.01))
    reference.check(o, lse, *want)


@pytest.mark.slow
def test_a_mask_is_asked_of_queries_and_keys_that_there_are():
    queries, keys = [70, 3, 0, 20], [70, 40, 5, 0]
    cu_q, cu_k = (np.cumsum([0, *n]).astype(np.int32) for n in (queries, keys))
    q, k, v = random(BF16, (cu_q[-1], 2, 64), (cu_k[-1], 1, 64), (cu_k[-1], 1, 64))
    table = np.random.default_rng(1).random((4, 70, 70)) < 0.5  # and nothing beyond
    mask = lambda b, h, query, key, table: table[b, query, key]  # noqa: E731
    o, lse = simulate(
        q, k, v, CAUSAL, Lengths(cu_q, cu_k), mask=mask, mask_aux=(table,), most_queries=max(queries), **SMALL
    )
    for i in range(len(queries)):
        rows, seen = slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1])
        want = reference.attention(q[rows], k[seen], v[seen], window=CAUSAL, batch=i, mask=lambda *at: mask(*at, table))
        reference.check(o[rows], lse[:, rows], *want)


@cuda.jit
def asking(x):
    x[0] = elements.kept(cute.arch.thread_idx()[0] * 2, x[0], 0.0)


def test_a_mask_that_gives_no_boolean_is_refused():
    with pytest.raises(CuteError, match="the function of the mask gives Int.*; it must give whether the query sees"):
        cute.simulate(asking)[1, 1](np.zeros(1, np.float32))


def test_a_block_of_a_list_may_have_tiles_behind_the_last_key():
    """Of the block's three tiles the second has the last key."""
    q, k, v = random(BF16, (1, 20, 1, 64), (1, 90, 1, 64), (1, 90, 1, 64))
    counts, lists = np.full((1, 1, 1), 1, np.int32), np.full((1, 1, 1, 1), 1, np.int32)  # block 0, seen whole
    o, lse = simulate(
        q, k, v, listed=(counts, lists), block=(64, 192), tile=(64, 64), mask=thinned, mask_aux=(counts[0, 0],)
    )
    reference.check(o, lse, *batched(q, k, v))


def resources(dims, options, mask_aux, listed=()):
    """What the kernels of a mask take, forward and backward."""
    q, o, lse = np.zeros((1, 256, 2, dims[0])), np.zeros((1, 256, 2, dims[1])), np.zeros((1, 2, 256), np.float32)
    q, o = (x.astype(BF16) for x in (q, o))
    work = [np.zeros(s, np.float32) for s in gradients.room(q, None, False)]
    more = gradients.More(mask_aux=mask_aux, listed=listed)
    launches = gradients.launches((q, q, o, o, o, lse, q, q, o), work, sms=1, options=options, more=more)
    made = [(launch.kernel, launch.args) for launch in launches[1:]]
    given = {"mask_aux": mask_aux, "listed": listed[:2] or None}
    made.append(plan.arguments(q, q, o, o, lse, np.zeros(1, np.int32), 1, options, **given)[:2])
    return [cute.compile(kernel, args, arch="sm_90a").resources for kernel, args in made]


def near(batch, head, query, key, n):
    return query >= key or key < n


BLOCKS = tuple(np.zeros((1, 1, *s), np.int32) for s in ((2,), (2, 2), (2,), (2, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("dims", gradients.DIMS)
@pytest.mark.parametrize(
    "window, listed", [((3, 4), ()), ((3, 4), BLOCKS), ((), BLOCKS)], ids=["alone", "window", "all"]
)
@pytest.mark.parametrize("loads", [False, True])
def test_kernels_with_masks_hold_all_in_registers(dims, window, listed, loads):
    mask, aux = (documents, np.zeros((1, 256), np.int32)) if loads else (near, cute.Int32(9))
    options = Options(1.0, *window, mask=mask, block=(128, 128) if listed else None)
    *gradients_of, forward = resources(dims, options, (aux,), listed)
    for found in (forward,) if loads and dims == (256, 256) else (forward, *gradients_of):  # these spill up to 40 bytes
        assert (found.spill_stores, found.spill_loads, found.local) == (0, 0, 0)


# ---------------------------------------------------------------- on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("dims", [(64, 64), (128, 128), (256, 256), (192, 128)], ids=str)
def test_masks_on_a_gpu(dims):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    (d, dv), seen = dims, torch.tensor([300, 9], device="cuda", dtype=torch.int32)
    q, k, v = on_gpu(torch, torch.bfloat16, (2, 333, 4, d), (2, 350, 2, d), (2, 350, 2, dv))
    of_host = seen.cpu().numpy()
    for window in (ALL, CAUSAL):
        o, lse = flash_attention(q, k, v, window=window, mask=thinned, mask_aux=(seen,), return_lse=True)
        want = batched(*map(host, (q, k, v)), window=window, mask=lambda *at: thinned(*at, of_host))
        reference.check(host(o), lse.cpu().numpy(), *want)
    mine = [x.requires_grad_() for x in (q, k, v)]
    exact = [x.detach().double().requires_grad_() for x in mine]
    at = [torch.arange(n, device="cuda") for n in (2, 4, 333, 350)]
    b, h, i, j = torch.meshgrid(*at, indexing="ij")
    allowed = (j < seen[b]) & ((i * 3 + j + h) % 4 != 0) & (i != 7) & (j <= i + 350 - 333)
    s = torch.einsum("bqhd,bkhd->bhqk", exact[0], exact[1].repeat_interleave(2, 2)) / math.sqrt(d)
    lse = torch.logsumexp(s.masked_fill(~allowed, -math.inf), -1, keepdim=True)
    p = torch.where(allowed, torch.exp(s - torch.where(lse == -math.inf, 0.0, lse)), 0.0)
    right = torch.einsum("bhqk,bkhd->bqhd", p, exact[2].repeat_interleave(2, 2))
    o = flash_attention(*mine, causal=True, mask=thinned, mask_aux=(seen,))
    weight = torch.randn_like(o)
    for got, want in zip(torch.autograd.grad(o, mine, weight), torch.autograd.grad(right, exact, weight.double())):
        assert (got.double() - want).norm() <= 1e-2 * want.norm()


def documents(batch, head, query, key, of):
    """A query sees the keys before it of its own document; those of the first head all of its document."""
    return (of[batch, query] == of[batch, key]) & ((key <= query) | (head == 0))


@pytest.mark.gpu
@pytest.mark.parametrize("d, block", [(64, (128, 128)), (128, (128, 128)), (256, (256, 64)), (128, (64, 96))], ids=str)
@pytest.mark.parametrize("window", [ALL, (300, 50)], ids=str)
def test_blocks_on_a_gpu(d, block, window):
    torch = pytest.importorskip("torch")
    from numba_cute import kernels

    n, lengths = 1000, torch.tensor([[300, 1, 599, 100], [64, 64, 72, 800]])
    of = torch.stack([torch.repeat_interleave(torch.arange(4), x) for x in lengths]).int().cuda()
    q, k, v = on_gpu(torch, torch.bfloat16, (2, n, 4, d), *[(2, n, 2, d)] * 2)
    made = kernels.block_mask(documents, 2, 4, n, n, aux=(of,), block=block)
    assert int(made.counts[0, 1].sum()) <= made.lists[0, 1].numel() // 2
    o, lse = kernels.flash_attention(q, k, v, blocks=made, window=window, return_lse=True)
    ids = of.cpu().numpy()
    want = batched(*map(host, (q, k, v)), window=window, mask=lambda *at: documents(*at, ids))
    reference.check(host(o), lse.cpu().numpy(), *want)
    if block[0] >= 128:
        mine = [[x.clone().requires_grad_() for x in (q, k, v)] for _ in range(2)]
        weight = torch.randn_like(o)
        found = [
            torch.autograd.grad(kernels.flash_attention(*x, window=window, **how), x, weight)
            for x, how in zip(mine, ({"blocks": made}, {"mask": documents, "mask_aux": (of,)}))
        ]
        for a, b in zip(*found):  # the same sums, in the same order
            assert (a - b).abs().max() <= 2**-6 * b.abs().max()
