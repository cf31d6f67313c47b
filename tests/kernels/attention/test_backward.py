# SPDX-License-Identifier: Apache-2.0
"""Attention's backward pass, against float64: in the simulator on a small problem, on a GPU over ragged ones."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.kernels import flash_attention
from numba_cute.kernels.attention import backward_rows, gradients
from numba_cute.seam import CuteError

TYPES = ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32  # of q, of o, and of the logs of sums
UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def aligned(shape, dtype, value):
    """An array that begins at a multiple of 128 bytes."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + 128, np.uint8)
    start = -raw.ctypes.data % 128
    out = raw[start : start + size].view(dtype).reshape(shape)
    out[...] = value
    return out


def reference(xp, q, k, v, do, scale, causal, bend=None, dlse=0.0, sink=None):
    """O, the log of the sums of exponentials, and of dQ, dK and dV name, value and the size of what is rounded: in
    float64, by NumPy or torch (xp), (batch, heads, …). bend: gives what a scaled score becomes, -inf where it is left
    out, and the derivative. dlse: the gradient of the logs. sink: (heads, 1, 1), a score of each that has no value."""
    heads, kv_heads = q.shape[1], k.shape[1]
    kk, vv = (xp.stack([x] * (heads // kv_heads), 2).reshape(x.shape[0], heads, *x.shape[2:]) for x in (k, v))
    s, slope = xp.einsum("bhid,bhjd->bhij", q, kk) * scale, 1.0
    if bend is not None:
        s, slope = bend(s)
    if causal:
        rows, keys = s.shape[2:]
        i, j = np.arange(rows)[:, None], np.arange(keys)[None]
        hidden = np.where(j <= i + keys - rows, 0.0, -np.inf)
        s = s + (hidden if xp is np else xp.as_tensor(hidden, device=s.device))
    top = s.max(-1, keepdims=True) if xp is np else s.amax(-1, keepdim=True)
    top = top if sink is None else xp.maximum(top, sink)
    top = xp.where(top == -math.inf, 0.0, top)
    e = xp.exp(s - top)
    total = e.sum(-1)[..., None] + (0.0 if sink is None else xp.exp(sink - top))
    p = e / xp.where(total == 0, 1.0, total)
    with np.errstate(divide="ignore"):
        lse = (top + xp.log(total))[..., 0]
    o = xp.einsum("bhij,bhjd->bhid", p, vv)
    dp, delta = xp.einsum("bhid,bhjd->bhij", do, vv), (do * o).sum(-1)[..., None] - dlse
    of_kv = lambda x: x.reshape(x.shape[0], kv_heads, heads // kv_heads, *x.shape[2:]).sum(2)  # noqa: E731
    by_query = lambda s, x: xp.einsum("bhij,bhjd->bhid", s, x)  # noqa: E731
    by_key = lambda s, x: of_kv(xp.einsum("bhij,bhid->bhjd", s, x))  # noqa: E731
    rounded = ((do * o) ** 2).sum(-1)[..., None] ** 0.5  # of rowsum(dO * O), of whose products each O is rounded
    ds, large = p * (dp - delta) * slope, (p * (abs(dp) + abs(delta) + rounded) * slope) ** 2
    found = [by_query(ds, kk) * scale, by_key(ds, q) * scale, by_key(p, do)]
    sizes = [by_query(large, kk**2) ** 0.5 * scale, by_key(large, q**2) ** 0.5 * scale, by_key(p**2, do**2) ** 0.5]
    return o, lse, [(name, *pair) for name, pair in zip(("dq", "dk", "dv"), zip(found, sizes))]


def near(got, want, size, unit, what):
    """Whether the error of a gradient is what rounding P, dS, O and the result to so few bits makes of it. size: of its
    summands, added up as of random sign. Arrays of NumPy or torch."""
    size = size + abs(want)
    error = abs(got - want)
    assert not (got != got).any(), f"{what}: NaN"
    assert (error <= 6 * unit * size + 1e-6).all(), f"{what}: {(error / (size + 1e-6)).max() / unit:.2f} units"
    rms = ((error**2).mean() / ((size**2).mean() + 1e-12)) ** 0.5
    assert rms <= 0.75 * unit, f"{what}: {rms / unit:.2f} units"


def working(q):
    """What a pass works in, poisoned."""
    return [
        aligned(s, np.float32, math.nan) if len(s) > 1 else aligned(s, np.int32, -1) for s in gradients.room(q)
    ]  # fmt: skip


def simulate(dims, dtype, batch, heads, kv_heads, rows, keys, causal, sms=1, **options):
    rng = np.random.default_rng(0)
    d, dv = dims
    shapes = [
        (batch, rows, heads, d), (batch, keys, kv_heads, d), (batch, keys, kv_heads, dv), (batch, rows, heads, dv)
    ]  # fmt: skip
    q, k, v, do = (aligned(s, dtype, rng.standard_normal(s, np.float32)) for s in shapes)
    scale = 1 / math.sqrt(d)
    by_head = lambda x: x.astype(np.float64).transpose(0, 2, 1, 3)  # noqa: E731
    o, lse, want = reference(np, *map(by_head, (q, k, v, do)), scale, causal)
    o, lse = aligned(do.shape, dtype, o.transpose(0, 2, 1, 3)), aligned(lse.shape, np.float32, lse)
    results = [aligned(x.shape, dtype, math.nan) for x in (q, k, v)]
    work = working(q)
    todo = gradients.launches((q, k, v, o, do, lse, *results), work, causal=causal, scale=scale, sms=sms)
    for launch in todo:
        run(launch, **options)
    for got, (name, gradient, size) in zip(results, want, strict=True):
        near(by_head(got), gradient, size, UNIT[np.dtype(dtype).name], name)


def whole(d, rows):
    """What there is of a pass for one head of zeros, its working room, and the launches."""
    q, lse = aligned((1, rows, 1, d), np.float16, 0), aligned((1, 1, rows), np.float32, 1)
    work, results = working(q), [aligned(q.shape, np.float16, math.nan) for _ in range(3)]
    given = (q, q, q, aligned(q.shape, np.float16, 2), aligned(q.shape, np.float16, 3), lse, *results)
    return given, work, gradients.launches(given, work, causal=False, scale=0.5, sms=1)


def run(launch, **options):
    cute.simulate(launch.kernel, **options)[launch.grid, launch.block](*launch.args)


def test_before_the_kernel_stand_sums_of_rows_and_logs_to_the_base_of_two():
    given, (logs, dot, sums, drawn), todo = whole(64, 20)
    given[5][0, 0, 3] = -math.inf  # a query that sees no key
    run(todo[0], checks=False)
    assert (dot[0, 0, :20] == 2 * 3 * 64).all() and not dot[0, 0, 20:].any()
    want = np.where(np.arange(logs.shape[2]) < 20, np.float32(math.log2(math.e)), np.inf)
    want[3] = np.inf
    np.testing.assert_array_equal(logs[0, 0], want)
    assert not sums.any() and drawn[0] == 0


def test_after_the_kernel_the_sums_are_where_queries_want_them():
    given, work, todo = whole(128, 20)
    queries = gradients.HEAD_DIMS[128]
    half, j, thread, e = np.ogrid[:2, : queries // 8, :128, :4]
    column = 64 * half + 16 * (thread // 32) + 8 * (e // 2) + thread % 32 // 4
    query = 8 * j + 2 * (thread % 4) + e % 2
    work[2][...] = (column + 128 * (query % 8)).reshape(1, 1, 1, -1)
    run(todo[2], checks=False)
    want = (np.arange(128) + 128.0 * (np.arange(20) % 8)[:, None]) * 0.5
    np.testing.assert_array_equal(given[6][0, :, 0], want)


@pytest.mark.slow
def test_one_tile_is_right_in_the_simulator():
    simulate((64, 64), ml_dtypes.bfloat16, 1, 1, 1, 40, 72, True, checks=False)


@pytest.mark.slow
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize(
    "heads, kv_heads, rows, keys, causal, sms",
    [(1, 1, 150, 200, False, 1), (4, 2, 130, 300, True, 2), (2, 1, 300, 200, True, 1)],
)
def test_it_is_right_in_the_simulator_with_all_checks(d, heads, kv_heads, rows, keys, causal, sms):
    simulate((d, d), np.float16, 1, heads, kv_heads, rows, keys, causal, sms)


@pytest.mark.slow
@pytest.mark.parametrize(
    "dims, heads, kv_heads, rows, keys, causal",
    [((256, 256), 1, 1, 70, 150, False), ((192, 128), 2, 1, 150, 200, True), ((256, 256), 1, 1, 150, 70, True)],
)
def test_wide_heads_are_right_in_the_simulator_with_all_checks(dims, heads, kv_heads, rows, keys, causal):
    simulate(dims, np.float16, 1, heads, kv_heads, rows, keys, causal)


@pytest.mark.slow
@pytest.mark.parametrize("dims", gradients.DIMS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_consumers_hold_all_in_registers_and_never_wait_early(dims, causal):
    q, o, lse = (np.zeros(s, t) for s, t in zip(((1, 256, 2, dims[0]), (1, 256, 2, dims[1]), (1, 2, 256)), TYPES))
    todo = gradients.launches((q, q, o, o, o, lse, q, q, o), working(q), causal=causal, scale=1.0, sms=1)
    for launch in todo[1:]:
        made = cute.compile(launch.kernel, launch.args, arch="sm_90a")
        assert (made.resources.spill_stores, made.resources.spill_loads, made.resources.local) == (0, 0, 0)
        assert not made.notes


SHAPES = [  # heads, KV heads, queries, keys
    (1, 1, 64, 128), (2, 2, 1, 1), (2, 1, 77, 333), (3, 3, 513, 130), (8, 2, 1000, 1000), (4, 4, 1500, 1500),
]  # fmt: skip


def on_gpu(torch, dims, dtype, heads, kv_heads, rows, keys):
    """Random q, k, v and do of two batches."""
    (d, dv), kind = dims, getattr(torch, dtype)
    shapes = (2, rows, heads, d), (2, keys, kv_heads, d), (2, keys, kv_heads, dv), (2, rows, heads, dv)
    return [torch.randn(s, device="cuda", dtype=kind) for s in shapes]


def turned(x):
    """In float64, with heads before rows."""
    return x.detach().double().transpose(1, 2)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "dims, causal, dtype",
    [
        ((64, 64), False, "float16"), ((64, 64), True, "bfloat16"), ((128, 128), False, "bfloat16"),
        ((128, 128), True, "float16"), ((192, 128), True, "float16"), ((256, 256), False, "bfloat16"),
    ],
)  # fmt: skip
def test_it_is_right_on_a_gpu(dims, causal, dtype):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    for shape in SHAPES:
        q, k, v, do = on_gpu(torch, dims, dtype, *shape)
        o, lse, want = reference(torch, *map(turned, (q, k, v, do)), 1 / math.sqrt(dims[0]), causal)
        o = o.transpose(1, 2).to(q.dtype).contiguous()
        got = gradients.attention_backward(do, q, k, v, o, lse.float(), causal=causal)
        for mine, (name, gradient, size) in zip(got, want, strict=True):
            near(turned(mine), gradient, size, UNIT[dtype], f"{name} of {shape}")


@pytest.mark.gpu
@pytest.mark.parametrize("d, causal", [(64, False), (128, True), (256, True)])
def test_autograd_has_the_gradients(d, causal):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    *given, do = on_gpu(torch, (d, d), "bfloat16", 4, 2, 300, 400)
    *_, want = reference(torch, *map(turned, (*given, do)), 1 / math.sqrt(d), causal)
    given = [x.requires_grad_() for x in given]
    attend = lambda q, k, v: flash_attention(q, k, v, causal=causal)  # noqa: E731
    traced = [torch.compile(attend, fullgraph=True, backend="aot_eager")] if d == 64 else []
    for call in (attend, attend, *traced):  # the second launches what the first has prepared
        got = torch.autograd.grad(call(*given), given, do)
        for mine, (name, gradient, size) in zip(got, want, strict=True):
            near(turned(mine), gradient, size, 2 * UNIT["bfloat16"], name)


@pytest.mark.gpu
def test_what_the_kernels_cannot_take_is_refused_in_words():
    torch = pytest.importorskip("torch")
    q = torch.zeros(1, 8, 2, 64, device="cuda", dtype=torch.bfloat16)
    lse = torch.zeros(1, 2, 8, device="cuda")
    with pytest.raises(CuteError, match="k is float16"):
        gradients.attention_backward(q, q, q.half(), q, q, lse)
    with pytest.raises(CuteError, match="lse is float64"):
        gradients.attention_backward(q, q, q, q, q, lse.double())
    with pytest.raises(CuteError, match="head dimensions must be one of 64 and 64, 128 and 128"):
        gradients.attention_backward(*[q[..., :48]] * 5, lse)


@cuda.jit
def hiding(out, places, shift, behind, causal, left):
    """What `hide` leaves of a thread's scores, each 1, for threads with a key, a query and the number of keys each."""
    thread = cuda.threadIdx.x
    scores = cute.make_rmem_tensor(32, cute.Float32)
    scores.fill(1.0)
    key, query, keys = places[thread, 0], places[thread, 1], places[thread, 2]
    backward_rows.hide(scores, key, query, keys, shift, behind, causal, left)
    for i in range(32):
        out[thread, i] = scores[i]


@pytest.mark.parametrize("causal, left", [(True, False), (True, True)])
def test_scores_of_keys_that_a_query_does_not_see_are_hidden(causal, left):
    rng = np.random.default_rng(0)
    places, shift, behind = rng.integers(0, 150, (32, 3)).astype(np.int32), 5, -20
    out = np.zeros((32, 32), np.float32)
    cute.simulate(hiding)[1, 32](out, places, shift, behind, cute.Constexpr(causal), cute.Constexpr(left))
    i, not_causal, endless = np.arange(32), np.array(not causal), np.array(not left)
    query = places[:, 1:2] + i // 4 * 8 + i % 2
    key = places[:, :1] + 8 * (i // 2 % 2)
    seen = (key < places[:, 2:]) & (not_causal | (key <= query + shift)) & (endless | (key >= query + behind))
    assert seen.any() and not seen.all() and np.array_equal(out == 1, seen) and np.isneginf(out[~seen]).all()
