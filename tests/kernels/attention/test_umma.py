# SPDX-License-Identifier: Apache-2.0
"""Attention by tcgen05: right against float64 in the simulator, with all checks; no spills for either of its targets,
and tiles that fit shared and tensor memory."""

import itertools
import math

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.attention import plan, umma_plan
from numba_cute.kernels.attention.options import capped
from numba_cute.kernels.attention.plan import ALL as WHOLE, Lengths, Options
from numba_cute.kernels.attention.umma_form import COLUMNS, ROWS

from . import reference
from .test_forward import ALL, BF16, CAUSAL, F16, batched, bent, biased, random
from .test_warps import DIMS, OPTIONS, unskipped

SLOW = pytest.mark.slow
TARGETS = ("sm_100a", "sm_103a")
ONE, TWO = {"tile": (ROWS, 32)}, {"tile": (2 * ROWS, 32)}


def simulate(q, k, v, window, lengths=WHOLE, sink=None, aux=(), mask_aux=(), listed=None, sms=1, **options):
    """Run the kernel on at most `sms` CTAs, and the one that joins its parts; gives O and the logs of the sums."""
    (*outer, heads, d), splits = q.shape, options.get("splits", 1)
    lse_shape = (outer[0], heads, outer[1]) if len(outer) == 2 else (heads, outer[0])
    o, lse = np.full((*q.shape[:-1], v.shape[-1]), math.nan, q.dtype), np.full(lse_shape, math.nan, np.float32)
    made, counter = Options(1 / math.sqrt(d), *window, **options), np.zeros(1, np.int32)
    work = np.full(plan.room(q, v, splits), math.nan, np.float32) if splits > 1 else None
    for kernel, args, grid, block in umma_plan.launches.function(
        q, k, v, o, lse, counter, *lengths, sink, work, *(listed or (None, None)), sms, made, len(aux), *aux, *mask_aux
    ):
        cute.simulate(kernel, arch="sm_100a")[grid, block](*args)
    assert counter[0] == 0
    return o, lse


CASES = {
    # batch, queries, keys, heads, KV heads, d, dv, window, CTAs, options
    "one": (1, 20, 40, 1, 1, 32, 32, ALL, 1, ONE),
    "ragged": (1, 200, 100, 1, 1, 32, 32, ALL, 1, TWO),
    "causal": (2, 150, 130, 2, 1, 32, 32, CAUSAL, 2, TWO),
    "fewer_keys": (1, 300, 50, 1, 1, 32, 32, CAUSAL, 1, TWO),
    "window": (1, 270, 300, 1, 1, 32, 32, (40, 10), 1, TWO),
    "no_draws": (1, 300, 40, 1, 1, 32, 32, CAUSAL, 2, {"draws": False, **ONE}),
    "packed_of_three": (1, 20, 60, 6, 2, 32, 64, CAUSAL, 1, {"pack": 4, **ONE}),
    "one_stage": (1, 140, 100, 1, 1, 32, 32, ALL, 1, {"stages": 1, **TWO}),
    "queries_ahead": (3, 30, 40, 1, 1, 32, 32, ALL, 1, {"q_stages": 2, **ONE}),
    "splits": (1, 20, 200, 2, 1, 32, 32, ALL, 3, {"splits": 3, **ONE}),
    "d64": (1, 140, 140, 1, 1, 64, 64, (60, 20), 1, {}),
    "d96": (1, 20, 140, 1, 1, 96, 96, CAUSAL, 1, {}),
    "d128": (1, 140, 140, 1, 1, 128, 128, CAUSAL, 1, {}),
    "d192": (1, 140, 140, 1, 1, 192, 128, CAUSAL, 1, {}),
    "d256": (1, 20, 140, 1, 1, 256, 256, CAUSAL, 1, {}),
}


@SLOW
@pytest.mark.parametrize("case", CASES)
def test_it_agrees_with_float64_in_the_simulator(case):
    batch, queries, keys, heads, kv_heads, d, dv, window, sms, options = CASES[case]
    q, k, v = random(
        F16 if case == "ragged" else BF16, (batch, queries, heads, d), (batch, keys, kv_heads, d),
        (batch, keys, kv_heads, dv),
    )  # fmt: skip
    o, lse = simulate(q, k, v, window, sms=sms, **options)
    reference.check(o, lse, *batched(q, k, v, window=window))


@SLOW
@pytest.mark.parametrize("tile", [ONE, TWO], ids=["one", "two"])
def test_sequences_have_their_own_lengths(tile):
    queries, keys = [130, 3, 0, 20], [70, 40, 5, 0]
    cu_q, cu_k = (np.cumsum([0, *n]).astype(np.int32) for n in (queries, keys))
    q, k, v = random(BF16, (cu_q[-1], 2, 32), (cu_k[-1], 1, 32), (cu_k[-1], 1, 32))
    o, lse = simulate(q, k, v, CAUSAL, Lengths(cu_q, cu_k), sms=2, most_queries=max(queries), **tile)
    for i in range(len(queries)):
        rows, seen = slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1])
        reference.check(o[rows], lse[:, rows], *reference.attention(q[rows], k[seen], v[seen], window=CAUSAL))


@SLOW
@pytest.mark.parametrize("page", [0, 8, 24])
def test_what_lies_behind_the_last_key_is_not_seen(page):
    used = np.array([40, 16, 0], np.int32)
    q, k, v = random(BF16, (3, 5, 1, 32), (3, 48, 1, 32), (3, 48, 1, 32))
    for x, n in zip(zip(k, v), used):
        x[0][n:], x[1][n:] = math.nan, math.nan
    pages, given = None, (k, v)
    if page:
        pages = np.random.default_rng(1).permutation(3 * 48 // page).astype(np.int32).reshape(3, -1)
        given = [np.empty((3 * 48 // page, page, 1, 32), BF16) for _ in (k, v)]
        for paged, x in zip(given, (k, v)):
            paged[pages.reshape(-1)] = x.reshape(-1, page, 1, 32)
    o, lse = simulate(q, *given, ALL, Lengths(used=used, pages=pages), **ONE)
    for b, n in enumerate(used):
        reference.check(o[b], lse[b], *reference.attention(q[b], k[b, :n], v[b, :n]))


@SLOW
def test_a_function_may_change_the_scores_and_read_what_there_is():
    q, k, v = random(BF16, (2, 5, 1, 32), (2, 20, 1, 32), (2, 20, 1, 32))
    bias = np.random.default_rng(1).standard_normal((2, 5, 20)).astype(np.float32)  # and nothing beyond
    o, lse = simulate(q, k, v, CAUSAL, aux=(bias,), score=biased, **ONE)
    reference.check(o, lse, *batched(q, k, v, window=CAUSAL, score=lambda s, b, *_: s + bias[b]))
    o, lse = simulate(q, k, v, CAUSAL, aux=((cute.Float32, 0.01),), score=bent, **ONE)
    reference.check(o, lse, *batched(q, k, v, window=CAUSAL, score=lambda *args: bent(*args, 0.01)))


@SLOW
@pytest.mark.parametrize("splits", [1, 2])
def test_scores_may_be_capped_and_have_a_sink(splits):
    q, k, v = random(BF16, (1, 8, 2, 32), (1, 70, 2, 32), (1, 70, 2, 32))
    sink, aux = np.array([0.5, 90.0], np.float32), ((cute.Float32, 2.0),)
    o, lse = simulate(q, k, v, ALL, sink=sink, score=capped, aux=aux, splits=splits, **ONE)
    reference.check(o, lse, *batched(q, k, v, sink=sink, score=lambda s, *_: 2 * np.tanh(s / 2)))


@SLOW
def test_a_mask_says_what_is_seen():
    q, k, v = random(BF16, (2, 5, 2, 32), (2, 40, 1, 32), (2, 40, 1, 32))
    skipped = np.random.default_rng(1).integers(0, 2, (2, 5, 40)).astype(np.int32)  # and nothing beyond
    skipped[1, 3] = 1  # a query that sees no key
    o, lse = simulate(q, k, v, CAUSAL, mask=unskipped, mask_aux=(skipped,), pack=2, **ONE)
    want = batched(q, k, v, window=CAUSAL, score=lambda s, b, *_: np.where(skipped[b], -math.inf, s))
    reference.check(o, lse, *want)


@SLOW
@pytest.mark.parametrize("window", [ALL, (100, 0)], ids=["all", "bounded"])
def test_lists_say_which_blocks_are_visited(window):
    q, k, v = random(BF16, (1, 200, 1, 32), (1, 250, 1, 32), (1, 250, 1, 32))
    counts, lists = np.array([[[2, 3]]], np.int32), np.array([[[[1, 6, 9, 9], [3, 5, 7, 9]]]], np.int32)
    visited = np.zeros((256, 256), bool)
    for row, blocks in enumerate(((0, 3), (1, 2, 3))):
        for block in blocks:
            visited[128 * row : 128 * row + 128, 64 * block : 64 * block + 64] = True
    visited[:128, 192:] &= (np.arange(128)[:, None] + np.arange(64)) % 3 != 0  # of which the function is asked
    o, lse = simulate(q, k, v, window, listed=(counts, lists), block=(128, 64), mask=thirds, **ONE)
    want = batched(q, k, v, window=window, mask=lambda b, h, query, key: visited[:200, :250])
    reference.check(o, lse, *want)


@cuda.jit
def thirds(batch, head, query, key):
    return (query + key - 192) % 3 != 0


@SLOW
def test_tensors_may_have_strides():
    q, k, v = (x[:, ::2, :, 32:64] for x in random(BF16, (1, 36, 1, 96), (1, 40, 1, 96), (1, 40, 1, 96)))
    reference.check(*simulate(q, k, v, ALL, **ONE), *batched(q, k, v))


@SLOW
def test_every_order_of_warps_and_copies_gives_the_same():
    q, k, v = random(BF16, (2, 140, 1, 32), (2, 70, 1, 32), (2, 70, 1, 32))
    o, lse = np.empty((2, 140, 1, 32), BF16), np.empty((2, 1, 140), np.float32)
    lengths = Lengths(used=np.array([70, 20], np.int32))  # values are cleared, in persistent tiles
    kernel, args, grid, block = umma_plan.arguments(
        q, k, v, o, lse, np.zeros(1, np.int32), 1, Options(0.1, **TWO), lengths
    )
    proof = cute.simulate(kernel, arch="sm_100a").prove()[grid, block](*args)
    assert proof, proof


# ---------------------------------------------------------------- plans


def arrays(dims, queries, name, lengths="whole", dtype=BF16):
    """Q, K, V, O and the logs, lengths and options, of sequences of their own lengths, or of pages."""
    (d, dv), int32 = dims, lambda *shape: np.zeros(shape, np.int32)
    rows, given = ((512,), Lengths(int32(3), int32(3))) if lengths == "own" else ((2, 512), WHOLE)
    of_k = (8, 64) if lengths == "pages" else rows
    given = Lengths(used=int32(2), pages=int32(2, 4)) if lengths == "pages" else given
    of_q = (queries,) if lengths == "own" else (2, queries)
    shapes = (*of_q, 6, d), (*of_k, 2, d), (*of_k, 2, dv), (*of_q, 6, dv)
    lse = np.zeros((6, queries) if lengths == "own" else (2, 6, queries), np.float32)
    options = Options(0.1, most_queries=queries if lengths == "own" else None, **OPTIONS[name])
    return [np.zeros(s, dtype) for s in shapes], lse, given, options


def compiled(dims, queries, target, name, lengths="whole"):
    """Compile the kernel that the plan chooses, with a sink among all options."""
    (q, k, v, o), lse, given, options = arrays(dims, queries, name, lengths)
    aux, sink = (cute.Float32(2.0),) if options.score else (), np.zeros(6, np.float32) if name == "all" else None
    kernel, args, _, block = umma_plan.arguments(
        q, k, v, o, lse, np.zeros(1, np.int32), 8, options, given, sink, aux
    )  # fmt: skip
    return cute.compile(kernel, args, arch=target), block


@SLOW
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_rows_stay_in_registers(dims, target):
    first = TARGETS.index(target) + DIMS.index(dims)
    for i, (queries, name) in [*enumerate(itertools.product((512, 8), OPTIONS))][first % 3 :: 3]:  # each of some dims
        made, block = compiled(dims, queries, target, name, ("whole", "own", "pages")[(first + i // 3) % 3])
        r = made.resources
        assert (r.spill_stores, r.local) == (0, 0), (queries, name)
        assert r.registers * block <= 65536


def test_tiles_fit_shared_and_tensor_memory():
    for dims, queries, name in itertools.product((*DIMS, (256, 64), (64, 256)), (512, 8), OPTIONS):
        (q, k, v, _), _, given, options = arrays(dims, queries, name)
        form = umma_plan.form_of(q, k, v, queries, given, options)
        assert form.groups == (2 if queries == 512 and dims[1] < 256 else 1), dims
        assert form.smem <= umma_plan.SMEM and form.columns <= COLUMNS and min(form.stages_k, form.stages_v) >= 1
        launched = 65536 // form.threads // 8 * 8 * (form.groups + 2)  # registers of a thread of each warpgroup
        assert form.groups * form.registers[0] + sum(form.registers[1:]) <= launched


def test_tiles_divide_the_blocks_of_a_mask():
    (q, k, v, _), _, given, options = arrays((64, 64), 512, "plain")
    found = {
        block: umma_plan.form_of(q, k, v, 512, given, options._replace(block=block))
        for block in ((256, 128), (128, 192), (384, 48))
    }
    assert {b: (f.groups, f.tile_n) for b, f in found.items()} == {(256, 128): (2, 128), (128, 192): (1, 64),
                                                                   (384, 48): (1, 48)}  # fmt: skip


def test_what_the_kernel_has_not_is_refused():
    (q, k, v, _), _, given, options = arrays((64, 64), 512, "plain")
    for option in set(Options._fields) - umma_plan.KNOWN:
        with pytest.raises(CuteError, match=f"{option} is given, which the kernel for Blackwell does not support"):
            umma_plan.form_of(q, k, v, 512, given, options._replace(**{option: 1}))
    for wrong, says in (
        ({"block": (64, 64)}, "blocks is of 64 queries a block; on Blackwell it must be a multiple of 128"),
        ({"tile": (256, 1024)}, r"no tile of \[\(2, 1024\)\] .* fits"),
    ):
        with pytest.raises(CuteError, match=says):
            umma_plan.form_of(q, k, v, 512, given, options._replace(**wrong))
    with pytest.raises(CuteError, match="no kernel for float8 on Blackwell"):
        umma_plan.check(options, True)


# ---------------------------------------------------------------- the entry, with torch


@pytest.fixture
def torch():
    """Run entries in the simulator as on a GPU of Blackwell's."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    with cute.simulation("sm_103a", checks=False, sms=4):
        yield torch


@SLOW
def test_the_entry_takes_blackwell(torch):
    from numba_cute.kernels import block_mask, flash_attention

    q, k, v = (torch.randn(1, n, h, d, dtype=torch.bfloat16) for n, h, d in ((5, 4, 64), (33, 2, 64), (33, 2, 40)))
    for options in ({"num_splits": 0}, {"num_splits": 2}, {"blocks": block_mask(unseen, 1, 4, 5, 33)}):
        o, lse = flash_attention(q, k, v, causal=True, return_lse=True, **options)
        arrays = [x.contiguous().view(torch.int16).numpy().view(BF16) for x in (o, q, k, v)]
        seen = {"mask": unseen.py_func} if "blocks" in options else {}
        reference.check(arrays[0], lse.numpy(), *batched(*arrays[1:], window=CAUSAL, **seen))


@cuda.jit
def unseen(batch, head, query, key):
    return (query + key + head) % 4 != 0


def test_what_blackwell_has_not_is_refused_by_name(torch):
    from numba_cute.kernels import block_mask_from, flash_attention

    q = torch.zeros(1, 64, 2, 64, dtype=torch.bfloat16)
    narrow, blocks = (
        q.to(torch.float8_e4m3fn),
        block_mask_from(torch.ones(1, 1, 1, 1, dtype=torch.bool), block=(64, 64)),
    )
    for says, call in (
        ("no kernel for float8 on Blackwell", lambda: flash_attention(narrow, narrow, narrow)),
        ("blocks is of 64 queries a block", lambda: flash_attention(q, q, q, blocks=blocks)),
    ):
        with pytest.raises(CuteError, match=says):
            call()
