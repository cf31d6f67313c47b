# SPDX-License-Identifier: Apache-2.0
"""The attention forward against float64: small problems in the simulator, with all checks, and ragged ones on a GPU."""

import math

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.kernels.attention import again, entry, forward, plan, schedule
from numba_cute.kernels.attention.form import Form
from numba_cute.kernels.attention.options import capped
from numba_cute.kernels.attention.plan import Lengths, Options
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from ...compiler.casts import Array, casts, python_only
from ...launches.gpu import a_gpu
from ...launches.slow import casts as kept
from . import reference

__all__ = ["casts"]

BF16, F16 = ml_dtypes.bfloat16, np.float16
CAUSAL, ALL = (None, 0), (None, None)
SMALL = {"tile": (128, 64)}


def random(dtype, *shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def simulate(q, k, v, window, dtype, lse_shape, sms=1, lengths=plan.ALL, sink=None, aux=(), **options):
    """Run the kernel on at most `sms` CTAs; gives O and the logs of the sums."""
    o, lse = np.full((*q.shape[:-1], v.shape[-1]), math.nan, dtype), np.full(lse_shape, math.nan, np.float32)
    counter = np.zeros(1, np.int32)
    made = Options(1 / math.sqrt(q.shape[-1]), *window, **options)
    kernel, args, grid, block = plan.arguments(q, k, v, o, lse, counter, sms, made, lengths, sink, aux)
    cute.simulate(kernel, arch="sm_90a")[grid, block](*args)
    assert counter[0] == 0
    return o, lse


def batched(q, k, v, **options):
    each = [reference.attention(*x, batch=b, **options) for b, x in enumerate(zip(q, k, v))]
    return [np.stack(x) for x in zip(*each)]


CASES = {
    # batch, queries, keys, heads, KV heads, d, dv, window, CTAs, options
    "ragged": (1, 200, 100, 1, 1, 64, 64, ALL, 1, SMALL),
    "causal": (2, 70, 130, 2, 1, 64, 64, CAUSAL, 2, SMALL),
    "fewer_keys": (1, 140, 50, 1, 1, 64, 64, CAUSAL, 1, SMALL),
    "window": (1, 70, 200, 1, 1, 64, 64, (40, 10), 1, SMALL),
    "three_groups": (1, 200, 70, 1, 1, 64, 64, CAUSAL, 1, {"tile": (192, 64)}),
    "no_turns": (1, 130, 130, 1, 1, 128, 128, ALL, 1, {"turns": False}),
    "no_draws": (1, 260, 40, 1, 1, 64, 64, CAUSAL, 2, {"draws": False, **SMALL}),
    "d256": (1, 128, 170, 1, 1, 256, 256, CAUSAL, 1, {}),
    "d192": (1, 100, 140, 1, 1, 192, 128, ALL, 1, {}),
    "packed_of_three": (1, 20, 60, 6, 2, 64, 64, CAUSAL, 1, {"pack": 4, **SMALL}),
    "packed": (1, 20, 100, 4, 1, 64, 64, CAUSAL, 1, {"pack": 4, **SMALL}),
    "cluster": (1, 400, 60, 1, 1, 64, 64, ALL, 2, {"cluster": 2, "tile": (128, 48)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_it_agrees_with_float64_in_the_simulator(case):
    batch, queries, keys, heads, kv_heads, d, dv, window, sms, options = CASES[case]
    dtype = F16 if case == "ragged" else BF16
    q, k, v = random(dtype, (batch, queries, heads, d), (batch, keys, kv_heads, d), (batch, keys, kv_heads, dv))
    o, lse = simulate(q, k, v, window, dtype, (batch, heads, queries), sms, **options)
    reference.check(o, lse, *batched(q, k, v, window=window))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["causal", "window", "three_groups", "cluster", "d192"])
@pytest.mark.parametrize("grown", [1, 60])
def test_maxima_are_found_where_there_may_be_none_yet_and_scores_again_where_they_grow(case, grown):
    batch, queries, keys, heads, kv_heads, d, dv, window, sms, options = CASES[case]
    q, k, v = random(BF16, (batch, queries, heads, d), (batch, keys, kv_heads, d), (batch, keys, kv_heads, dv))
    k[:, : keys // 3] *= grown  # which come last
    o, lse = simulate(q, k, v, window, BF16, (batch, heads, queries), sms, lazy=True, **options)
    reference.check(o, lse, *batched(q, k, v, window=window))


@pytest.mark.slow
def test_scores_are_computed_again_where_they_grow_by_more_than_a_bfloat16_has_room_for(monkeypatch, capsys):
    make = again.make_again

    def counted(form):
        of_form = make(form)

        def again(*given):
            print("again")
            of_form(*given)

        return again

    monkeypatch.setattr(forward, "make_again", counted)
    monkeypatch.setattr(plan, "kernel_of", forward.make_kernel)
    q, k, v = random(BF16, (1, 128, 1, 64), (1, 96, 1, 64), (1, 96, 1, 64))
    q[..., 0], k[..., 0] = 16, np.repeat([100, 80, 60, 40, 20, 0], 16)[None, :, None]  # the last block comes first
    o, lse = simulate(q, k, v, ALL, BF16, (1, 1, 128), lazy=True, tile=(64, 16))
    reference.check(o, lse, *batched(q, k, v, window=ALL))
    assert capsys.readouterr().out.count("again") == 128 * 2 * 2  # by 58 a block: in every second, of two tiles


@pytest.mark.slow
def test_sequences_have_their_own_lengths():
    queries, keys = [130, 3, 0, 20], [70, 40, 5, 0]
    cu_q, cu_k = (np.cumsum([0, *n]).astype(np.int32) for n in (queries, keys))
    q, k, v = random(BF16, (cu_q[-1], 2, 64), (cu_k[-1], 1, 64), (cu_k[-1], 1, 64))
    lengths = Lengths(cu_q, cu_k)
    o, lse = simulate(q, k, v, CAUSAL, BF16, (2, cu_q[-1]), lengths=lengths, most_queries=max(queries), **SMALL)
    for i in range(len(queries)):
        rows, seen = slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1])
        reference.check(o[rows], lse[:, rows], *reference.attention(q[rows], k[seen], v[seen], window=CAUSAL))


@cuda.jit
def biased(s, batch, head, query, key, bias):
    return s + bias[batch, query, key]


@pytest.mark.slow
def test_a_score_is_asked_of_queries_and_keys_that_there_are():
    q, k, v = random(BF16, (2, 5, 1, 64), (2, 20, 1, 64), (2, 20, 1, 64))
    used = np.array([20, 0], np.int32)
    bias = np.random.default_rng(1).standard_normal((2, 5, 20)).astype(np.float32)  # and nothing beyond
    window = 2**40, 2**40  # more than there are, in 32 bits 0
    o, lse = simulate(
        q, k, v, window, BF16, (2, 1, 5), lengths=Lengths(used=used), aux=(bias,), score=biased, tile=(64, 32)
    )
    s = np.einsum("qd,kd->qk", *(x[0, :, 0].astype(np.float64) for x in (q, k))) / 8 + bias[0]
    p = np.exp(s)
    want = p / p.sum(1, keepdims=True) @ v[0, :, 0].astype(np.float64)
    assert np.abs(o[0, :, 0].astype(np.float64) - want).max() < 0.02 and not o[1].astype(np.float32).any()
    np.testing.assert_allclose(lse[0, 0], np.log(p.sum(1)), atol=1e-3)


@cute.kernel
def finding(found, order):
    i, _, _ = cute.arch.block_idx()
    found[i, 0], found[i, 1], found[i, 2] = schedule.tile_at(i, order, True)


@pytest.mark.parametrize("sizes", [(3, 5, 2, 4), (1, 1, 1, 9)], ids=str)
def test_each_tile_is_found_once_section_by_section(sizes):
    blocks, heads, batch, section = sizes
    order = schedule.order_of(*sizes)
    found = np.full((blocks * heads * batch, 3), -1, np.int32)
    cute.simulate(finding)[len(found), 1](from_dlpack(found), order)
    firsts = range(0, heads * batch, section)
    sections = [range(first, min(first + section, heads * batch)) for first in firsts]
    want = [(b, h % heads, h // heads) for of in sections for b in reversed(range(blocks)) for h in of]
    assert list(map(tuple, found.tolist())) == want


@pytest.mark.parametrize("longest", [2**40, 9])
def test_a_window_and_a_length_that_are_more_than_all_are_all(longest):
    q, k = random(BF16, (9, 1, 64), (9, 1, 64))
    cu, o, lse = np.array([0, 9], np.int32), np.empty((9, 1, 64), BF16), np.empty((1, 9), np.float32)
    made = Options(1.0, 2**40, 2**33, most_queries=longest, **SMALL)
    _, args, grid, _ = plan.arguments(q, k, k, o, lse, np.zeros(1, np.int32), 4, made, Lengths(cu, cu))
    queries, keys, _, left, right, _, _ = args[-7:]
    assert (queries, keys, left, right, grid) == (9, 9, 9, 9, 1)


@pytest.mark.slow
@pytest.mark.parametrize("page, tile_n", [(8, 48), (16, 32), (128, 32)])
def test_keys_and_values_may_lie_in_pages(page, tile_n):
    used = np.array([70, 130], np.int32)
    pages = np.random.default_rng(1).permutation(2 * 17)[: 2 * -(-130 // page)].reshape(2, -1).astype(np.int32)
    q, k, v = random(BF16, (2, 5, 2, 64), (34, page, 1, 64), (34, page, 1, 64))
    options = {**SMALL, "tile": (64, tile_n)}
    o, lse = simulate(q, k, v, CAUSAL, BF16, (2, 2, 5), lengths=Lengths(used=used, pages=pages), pack=2, **options)
    for b in range(2):
        flat_k, flat_v = (x[pages[b]].reshape(-1, 1, 64)[: used[b]] for x in (k, v))
        reference.check(o[b], lse[b], *reference.attention(q[b], flat_k, flat_v, window=CAUSAL))


@pytest.mark.slow
@pytest.mark.parametrize("page", [0, 16])
def test_what_lies_behind_the_last_key_is_not_seen(page):
    used = np.array([70, 64, 0], np.int32)
    q, k, v = random(BF16, (3, 5, 1, 64), (3, 96, 1, 64), (3, 96, 1, 64))
    for x, n in zip(zip(k, v), used):
        x[0][n:], x[1][n:] = math.nan, math.nan
    pages, given = None, (k, v)
    if page:
        pages = np.arange(3 * 96 // page, dtype=np.int32).reshape(3, -1)
        given = [x.reshape(-1, page, 1, 64) for x in (k, v)]
    o, lse = simulate(q, *given, ALL, BF16, (3, 1, 5), lengths=Lengths(used=used, pages=pages), **SMALL)
    for b, n in enumerate(used):
        reference.check(o[b], lse[b], *reference.attention(q[b], k[b, :n], v[b, :n]))


def bent(s, batch, head, query, key, slope):
    """A score with a bias of its head, and of distance."""
    return s * 0.5 + 0.25 * (head + batch) - slope * abs(query - key)


@pytest.mark.slow
def test_a_function_may_change_the_scores():
    q, k, v = random(BF16, (2, 20, 2, 64), (2, 70, 2, 64), (2, 70, 2, 64))
    aux = (cute.Float32(0.01),)
    o, lse = simulate(q, k, v, CAUSAL, BF16, (2, 2, 20), score=bent, aux=aux, **SMALL)
    reference.check(o, lse, *batched(q, k, v, window=CAUSAL, score=lambda *args: bent(*args, 0.01)))


@pytest.mark.slow
def test_scores_may_be_capped_and_have_a_sink():
    q, k, v = random(BF16, (1, 20, 2, 64), (1, 70, 2, 64), (1, 70, 2, 64))
    sink, aux = np.array([0.5, 90.0], np.float32), (cute.Float32(2.0),)
    o, lse = simulate(q, k, v, ALL, BF16, (1, 2, 20), score=capped, aux=aux, sink=sink, **SMALL)
    reference.check(o, lse, *batched(q, k, v, sink=sink, score=lambda s, *_: 2 * np.tanh(s / 2)))


@pytest.mark.slow
def test_exponentials_run_beside_the_products():
    q, lse = np.zeros((1, 128, 1, 64), BF16), np.zeros((1, 1, 128), np.float32)
    options = Options(0.125, tile=(128, 32))
    kernel, args, _, _ = plan.arguments(q, q, q, q, lse, np.zeros(1, np.int32), 1, options)
    compiled = cute.compile(kernel, args, arch="sm_90a")
    beside = [w.beside for w in compiled.waits if w.pending == 0]
    # the loop begins with the exponentials, and ends with the wait for S, behind which P V still runs
    assert any(b.get("MUFU.EX2", 0) >= 16 for b in beside), beside
    assert sum(w.pending for w in compiled.waits) == 2
    assert any(b.get("STG", 0) > 1 for b in beside), beside  # rows of O beside the next tile's first scores
    assert compiled.resources.group_registers == (24, 240) and not compiled.notes


def test_launches_are_made_anew_for_tensors_elsewhere(casts):
    ran, function = [], entry.launches.function
    entry.launches.templates._function = lambda *args: ran.append(1) or function(*args)
    codes = {"bfloat16": (4, 16), "float32": (2, 32), "int32": (0, 32)}

    def array(place, name, *shape):
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        made = Array(place, shape, strides, dtype=f"torch.{name}")
        made.view.code, made.view.bits = codes[name]
        return made

    for call in range(4):
        at = iter(range((1 + call) << 24, (2 + call) << 24, 1 << 20))
        q, k, v, o = (array(next(at), "bfloat16", 2, 256, 4, 64) for _ in range(4))
        lse, counter = array(next(at), "float32", 2, 4, 256), array(next(at), "int32", 1)
        used = array(next(at), "int32", 2)
        options = Options(0.1, None, 0, capped)
        given = q, k, v, o, lse, counter, None, None, used, *[None] * 9, 132, options, 1, (cute.Float32, 2.0)
        ((kernel, args, grid, block),) = entry.launches(*given)
        ((wanted, want, *size),) = python_only(lambda given=given: function(*given))
        assert kernel is wanted and [grid, block] == size
        assert [x.iterator.address for x in args[6:8]] == [o.data_ptr(), lse.data_ptr()] and args == want
    assert len(ran) == 1


@pytest.mark.filterwarnings("ignore::numba.cuda.core.errors.NumbaPerformanceWarning")
def test_a_launch_like_the_last_is_made_in_machine_code():
    at = iter(range(1 << 24, 2 << 24, 1 << 20))

    def array(name, *shape):
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        made = Array(next(at), shape, strides, dtype=f"torch.{name}")
        made.view.code, made.view.bits = {"bfloat16": (4, 16), "float32": (2, 32), "int32": (0, 32)}[name]
        return made

    tensors = *(array("bfloat16", 2, 256, 4, 64) for _ in range(4)), array("float32", 2, 4, 256), array("int32", 1)
    with a_gpu(), kept():
        for _ in range(6):
            ((kernel, args, grid, block),) = entry.launches(*tensors, *[None] * 12, 132, Options(0.1, None, 0), 0)
            launch = plan.bound(kernel, grid, block, 5)
            launch(*args)
        plan.bound.cache_clear()
    assert sum(plan.launched for plan in launch._site.plans) >= 3


def test_tiles_take_the_room_that_there_is():
    def tile(d, dv, **more):
        return plan.tile_of(Form(cute.BFloat16, d, dv, 1, 0, 0, **more))

    assert tile(64, 64) == (192, 128)
    assert (tile(128, 128), tile(128, 128, right=True)) == ((128, 160), (128, 128))
    assert (tile(192, 128), tile(256, 256)) == ((128, 128), (128, 80))
    assert (tile(128, 128, page=64), tile(256, 256, page=64), tile(128, 128, page=24)) == (
        (128, 128), (128, 64), (128, 96),
    )  # fmt: skip


def test_heads_are_packed_where_queries_are_few():
    assert plan.pack_of(1, 8, 128) == 8
    assert plan.pack_of(4096, 8, 128) == 1
    assert plan.pack_of(1, 7, 128) == 8
    assert plan.pack_of(1, 65, 128) == 1


def refusal(q, k, v, **more):
    given = {"sink": None, "cu_q": None, "cu_k": None, "used": None, "pages": None, "most_queries": None, **more}
    with pytest.raises(CuteError) as e:
        entry.checked(q, k, v, **given)
    return str(e.value)


def test_what_does_not_fit_is_refused_in_words():
    q, k, v = random(BF16, (2, 5, 4, 64), (2, 7, 2, 64), (2, 7, 2, 64))
    assert "its elements must be bfloat16, float16 or float8_e4m3fn" in refusal(q.astype(np.float32), k, v)
    assert "the head dimension is 32 of q" in refusal(q[..., :32], k[..., :32], v)
    assert "k must have v's shape" in refusal(q, k[:, :3], v)
    assert "q has 3 heads, which is not a multiple of the 2" in refusal(q[:, :, :3], k, v)
    assert "q has a batch of 1" in refusal(q[:1], k, v)
    assert "max_seqlen_q is 3" in refusal(q, k, v, most_queries=3)
    assert "page_table is given; it needs seqused_k" in refusal(q, k, v, pages=np.zeros((2, 1), np.int32))
    assert "sink is bfloat16" in refusal(q, k, v, sink=q[0, 0, :, 0])
    with pytest.raises(CuteError, match="copies want it"):
        entry.check_for_tma("q", np.zeros((2, 5, 4, 65), BF16)[..., :64])


# ---------------------------------------------------------------- on a GPU


def on_gpu(torch, dtype, *shapes):
    torch.manual_seed(0)
    return [torch.randn(shape, device="cuda", dtype=dtype) for shape in shapes]


def host(t):
    import torch

    return t.view(torch.int16).cpu().numpy().view(BF16 if t.dtype == torch.bfloat16 else F16)


@pytest.mark.gpu
@pytest.mark.parametrize("dims", [(64, 64), (128, 128), (256, 256), (192, 128)], ids=str)
@pytest.mark.parametrize("window, name", [(ALL, "bfloat16"), (CAUSAL, "bfloat16"), ((100, 30), "float16")], ids=str)
def test_ragged_problems_on_a_gpu(dims, window, name):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    (d, dv), dtype = dims, getattr(torch, name)
    for b, queries, keys, heads, kv_heads in (
        (2, 333, 333, 4, 2), (1, 1, 500, 8, 1), (1, 257, 77, 3, 1), (3, 128, 1024, 2, 2), (1, 1, 1, 1, 1),
    ):  # fmt: skip
        q, k, v = on_gpu(torch, dtype, (b, queries, heads, d), (b, keys, kv_heads, d), (b, keys, kv_heads, dv))
        o, lse = flash_attention(q, k, v, window=window, return_lse=True)
        reference.check(host(o), lse.cpu().numpy(), *batched(*map(host, (q, k, v)), window=window))


@pytest.mark.gpu
def test_the_options_of_the_entry_on_a_gpu():
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    q, k, v = on_gpu(torch, torch.bfloat16, (2, 300, 8, 128), (2, 500, 2, 128), (2, 500, 2, 128))
    arrays = [host(x) for x in (q, k, v)]
    sink = torch.linspace(-2, 5, 8, device="cuda")
    out = torch.empty_like(q)
    o, lse = flash_attention(q, k, v, causal=True, sink=sink, scale=0.2, out=out, return_lse=True)
    assert o is out
    reference.check(host(o), lse.cpu().numpy(), *batched(*arrays, window=CAUSAL, sink=sink.cpu().numpy(), scale=0.2))
    o, lse = flash_attention(q, k, v, softcap=3.0, return_lse=True)
    want = batched(*arrays, score=lambda s, *_: 3 * np.tanh(s / 3))
    np.testing.assert_allclose(host(o).astype(np.float64), want[0], atol=0.02)  # tanh.approx
    o, lse = flash_attention(q, k, v, score=bent, aux=(cute.Float32(0.01),), return_lse=True)
    reference.check(host(o), lse.cpu().numpy(), *batched(*arrays, score=lambda *args: bent(*args, 0.01)))


@pytest.mark.gpu
def test_sequences_and_pages_on_a_gpu():
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    queries, keys = [500, 3, 700, 128, 0, 64], [500, 600, 1, 128, 5, 300]
    at_q, at_k = (np.cumsum([0, *n]).astype(np.int32) for n in (queries, keys))
    cu_q, cu_k = (torch.from_numpy(x).cuda() for x in (at_q, at_k))
    q, k, v = on_gpu(torch, torch.bfloat16, (at_q[-1], 4, 128), (at_k[-1], 2, 128), (at_k[-1], 2, 128))
    o, lse = flash_attention(
        q, k, v, causal=True, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, max_seqlen_q=700, return_lse=True
    )
    o, lse, q, k, v = host(o), lse.cpu().numpy(), host(q), host(k), host(v)
    for i in range(len(queries)):
        rows, seen = slice(at_q[i], at_q[i + 1]), slice(at_k[i], at_k[i + 1])
        reference.check(o[rows], lse[:, rows], *reference.attention(q[rows], k[seen], v[seen], window=CAUSAL))
    for page in (16, 64, 256):
        used = np.array([700, 1, 1300], np.int32)
        each = -(-1300 // page)
        pages = torch.randperm(3 * each + 2, device="cuda")[: 3 * each].reshape(3, each).int()
        q, k, v = on_gpu(torch, torch.bfloat16, (3, 5, 8, 128), *[(3 * each + 2, page, 2, 128)] * 2)
        behind = torch.arange(each * page) >= torch.from_numpy(used)[:, None]
        for x in (k, v):  # what lies behind the last key is not seen
            own = x[pages.long()]
            own[behind.view(3, each, page).cuda()] = math.nan
            x[pages.long()] = own
        o, lse = flash_attention(
            q, k, v, causal=True, seqused_k=torch.from_numpy(used).cuda(), page_table=pages, return_lse=True
        )
        for b in range(3):
            flat = [host(x[pages[b].long()].reshape(-1, 2, 128)[: used[b]].contiguous()) for x in (k, v)]
            reference.check(host(o[b]), lse[b].cpu().numpy(), *reference.attention(host(q[b]), *flat, window=CAUSAL))


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_on_a_gpu(causal):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    q, k, v = on_gpu(torch, torch.bfloat16, (2, 300, 4, 128), (2, 300, 2, 128), (2, 300, 2, 128))
    weight = torch.randn_like(q)
    ours, exact = ([x.detach().to(dtype).requires_grad_() for x in (q, k, v)] for dtype in (q.dtype, torch.float64))
    flash_attention(*ours, causal=causal).backward(weight)
    turned = [x.transpose(1, 2) for x in exact]
    turned[1:] = [x.repeat_interleave(2, 1) for x in turned[1:]]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        o = torch.nn.functional.scaled_dot_product_attention(*turned, is_causal=causal)
    o.backward(weight.double().transpose(1, 2))
    for a, b in zip(ours, exact):
        assert (a.grad.double() - b.grad).norm() <= 1e-2 * b.grad.norm()
