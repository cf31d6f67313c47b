# SPDX-License-Identifier: Apache-2.0
"""Attention by mma.sync, and its gradients: right against float64 in the simulator, with all checks; no spills for any
of its targets."""

import itertools
import math

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.attention import gradients, plan, warps_plan
from numba_cute.kernels.attention.options import capped
from numba_cute.kernels.attention.plan import ALL as WHOLE, Lengths, Options
from numba_cute.kernels.attention.warps_plan import Tile

from . import reference, test_backward
from .test_forward import ALL, BF16, CAUSAL, F16, batched, bent, biased, host, on_gpu, random

SLOW = pytest.mark.slow
LEAST = Tile(16, 16, 16, 1)
TARGETS = ("sm_80", "sm_86", "sm_120a")


def simulate(
    q, k, v, window, tile=LEAST, lengths=WHOLE, sink=None, aux=(), arch="sm_80", mask_aux=(), listed=None, **options
):
    """Run the kernel, and the one that joins its parts; gives O and the logs of the sums."""
    (*outer, heads, d), splits = q.shape, options.get("splits", 1)
    lse_shape = (outer[0], heads, outer[1]) if len(outer) == 2 else (heads, outer[0])
    o, lse = np.full((*q.shape[:-1], v.shape[-1]), math.nan, q.dtype), np.full(lse_shape, math.nan, np.float32)
    made = Options(1 / math.sqrt(d), *window, tile=tile, **options)
    work = np.full(plan.room(q, v, splits), math.nan, np.float32) if splits > 1 else None
    for kernel, args, grid, block in warps_plan.launches.function(
        q, k, v, o, lse, *lengths, sink, work, *(listed or (None, None)), arch, made, len(aux), *aux, *mask_aux
    ):
        cute.simulate(kernel, arch=arch)[grid, block](*args)
    return o, lse


@cuda.jit
def unskipped(batch, head, query, key, skipped):
    return skipped[batch, query, key] == 0


CASES = {
    # batch, queries, keys, heads, KV heads, d, dv, window, options
    "least": (1, 10, 20, 1, 1, 16, 16, CAUSAL, {}),
    "ragged": (1, 20, 40, 1, 1, 32, 32, ALL, {}),
    "causal": (1, 20, 35, 2, 1, 16, 16, CAUSAL, {}),
    "fewer_keys": (1, 40, 18, 1, 1, 32, 32, CAUSAL, {"tile": Tile(32, 16, 32, 1)}),
    "window": (1, 20, 70, 1, 1, 16, 16, (20, 5), {}),
    "packed_of_three": (2, 5, 20, 6, 2, 32, 16, CAUSAL, {"pack": 4}),
    "two_warps": (1, 40, 40, 1, 1, 32, 32, CAUSAL, {"tile": Tile(32, 16, 16, 1)}),
    "splits": (1, 3, 70, 2, 1, 16, 32, ALL, {"splits": 2, "pack": 2}),
    "d64": (1, 100, 100, 1, 1, 64, 64, (40, 20), {"tile": warps_plan.TILES[64][0]}),
    "d128": (1, 70, 60, 1, 1, 128, 128, ALL, {"tile": warps_plan.TILES[128][0]}),
    "d192": (1, 65, 70, 1, 1, 192, 128, CAUSAL, {"tile": warps_plan.FEW[192]}),
    "d256": (1, 20, 70, 1, 1, 256, 256, CAUSAL, {"tile": warps_plan.FEW[256]}),
}


@pytest.mark.parametrize("case", ["least", *(pytest.param(c, marks=SLOW) for c in CASES if c != "least")])
def test_it_agrees_with_float64_in_the_simulator(case):
    batch, queries, keys, heads, kv_heads, d, dv, window, options = CASES[case]
    q, k, v = random(
        F16 if case == "ragged" else BF16, (batch, queries, heads, d), (batch, keys, kv_heads, d),
        (batch, keys, kv_heads, dv),
    )  # fmt: skip
    o, lse = simulate(q, k, v, window, **options)
    reference.check(o, lse, *batched(q, k, v, window=window))


@SLOW
def test_sequences_have_their_own_lengths():
    queries, keys = [20, 3, 0, 9], [35, 18, 5, 0]
    cu_q, cu_k = (np.cumsum([0, *n]).astype(np.int32) for n in (queries, keys))
    q, k, v = random(BF16, (cu_q[-1], 2, 32), (cu_k[-1], 1, 32), (cu_k[-1], 1, 32))
    o, lse = simulate(q, k, v, CAUSAL, lengths=Lengths(cu_q, cu_k), most_queries=max(queries))
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
    o, lse = simulate(q, *given, ALL, lengths=Lengths(used=used, pages=pages))
    for b, n in enumerate(used):
        reference.check(o[b], lse[b], *reference.attention(q[b], k[b, :n], v[b, :n]))


@SLOW
def test_a_function_may_change_the_scores_and_read_what_there_is():
    q, k, v = random(BF16, (2, 5, 1, 32), (2, 20, 1, 32), (2, 20, 1, 32))
    bias = np.random.default_rng(1).standard_normal((2, 5, 20)).astype(np.float32)  # and nothing beyond
    o, lse = simulate(q, k, v, CAUSAL, aux=(bias,), score=biased)
    want = batched(q, k, v, window=CAUSAL, score=lambda s, b, *_: s + bias[b])
    reference.check(o, lse, *want)
    o, lse = simulate(q, k, v, CAUSAL, aux=((cute.Float32, 0.01),), score=bent)
    reference.check(o, lse, *batched(q, k, v, window=CAUSAL, score=lambda *args: bent(*args, 0.01)))


@SLOW
@pytest.mark.parametrize("splits", [1, 2])
def test_scores_may_be_capped_and_have_a_sink(splits):
    q, k, v = random(BF16, (1, 8, 2, 32), (1, 70, 2, 32), (1, 70, 2, 32))
    sink, aux = np.array([0.5, 90.0], np.float32), ((cute.Float32, 2.0),)
    o, lse = simulate(q, k, v, ALL, sink=sink, score=capped, aux=aux, splits=splits)
    reference.check(o, lse, *batched(q, k, v, sink=sink, score=lambda s, *_: 2 * np.tanh(s / 2)))


@SLOW
def test_a_mask_says_what_is_seen():
    q, k, v = random(BF16, (2, 5, 2, 32), (2, 40, 1, 32), (2, 40, 1, 32))
    skipped = np.random.default_rng(1).integers(0, 2, (2, 5, 40)).astype(np.int32)  # and nothing beyond
    skipped[1, 3] = 1  # a query that sees no key
    o, lse = simulate(q, k, v, CAUSAL, mask=unskipped, mask_aux=(skipped,), pack=2)
    want = batched(q, k, v, window=CAUSAL, score=lambda s, b, *_: np.where(skipped[b], -math.inf, s))
    reference.check(o, lse, *want)


@SLOW
@pytest.mark.parametrize("window", [ALL, (100, 0)], ids=["all", "bounded"])
def test_lists_say_which_blocks_are_visited(window):
    q, k, v = random(BF16, (1, 100, 1, 32), (1, 125, 1, 32), (1, 125, 1, 32))
    counts, lists = np.array([[[2, 3]]], np.int32), np.array([[[[1, 6, 9, 9], [3, 5, 7, 9]]]], np.int32)
    visited = np.zeros((128, 128), bool)
    for row, blocks in enumerate(((0, 3), (1, 2, 3))):
        for block in blocks:
            visited[64 * row : 64 * row + 64, 32 * block : 32 * block + 32] = True
    visited[:64, 96:] &= (np.arange(64)[:, None] + np.arange(32)) % 3 != 0  # of which the function is asked
    how = {"block": (64, 32), "mask": thirds}
    o, lse = simulate(q, k, v, window, Tile(32, 16, 16, 1), listed=(counts, lists), **how)
    want = batched(q, k, v, window=window, mask=lambda b, h, query, key: visited[:100, :125])
    reference.check(o, lse, *want)


@cuda.jit
def thirds(batch, head, query, key):
    return (query + key - 96) % 3 != 0


@SLOW
def test_tensors_may_have_strides():
    q, k, v = (x[:, ::2, :, 32:64] for x in random(BF16, (1, 36, 1, 96), (1, 40, 1, 96), (1, 40, 1, 96)))
    o, lse = simulate(q, k, v, ALL)
    reference.check(o, lse, *batched(q, k, v))


GRADIENTS = {
    # queries, keys, heads, KV heads, d, dv, causal, rows that a CTA keeps and that pass by
    "least": (10, 20, 1, 1, 64, 64, True, (16, 16)),
    "group": (20, 40, 2, 1, 64, 64, False, (16, 16)),
    "fewer_keys": (40, 20, 1, 1, 64, 128, True, (32, 16)),
    "two_warps": (40, 40, 1, 1, 64, 64, False, (32, 16)),
    "d64": (70, 100, 1, 1, 64, 64, True, None),
    "d128": (33, 70, 1, 1, 128, 128, False, None),
    "d192": (33, 70, 1, 1, 192, 128, True, None),
    "d256": (20, 33, 1, 1, 256, 256, True, None),
}


@SLOW
@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients_agree_with_float64_in_the_simulator(case):
    queries, keys, heads, kv_heads, d, dv, causal, tile = GRADIENTS[case]
    q, k, v, do = random(
        F16, (1, queries, heads, d), (1, keys, kv_heads, d), (1, keys, kv_heads, dv), (1, queries, heads, dv)
    )
    by_head = lambda x: x.astype(np.float64).transpose(0, 2, 1, 3)  # noqa: E731
    o, lse, want = test_backward.reference(np, *map(by_head, (q, k, v, do)), 1 / math.sqrt(d), causal)
    o, lse = np.ascontiguousarray(o.transpose(0, 2, 1, 3)).astype(F16), np.ascontiguousarray(lse, np.float32)
    results = [np.full_like(x, math.nan) for x in (q, k, v)]
    work = [np.full(s, math.nan, np.float32) for s in gradients.room(q, None, False)]
    options = Options(1 / math.sqrt(d), right=0 if causal else None)
    arrays, target = (q, k, v, o, do, lse, *results), cute.target("sm_80")
    for launch in gradients.by_warps(arrays, work, options, gradients.More(), target, tile):
        test_backward.run(launch, arch="sm_80")
    for got, (name, gradient, size) in zip(results, want, strict=True):
        test_backward.near(by_head(got), gradient, size, test_backward.UNIT["float16"], name)


# ---------------------------------------------------------------- plans


DIMS = (*itertools.product((64, 128), repeat=2), (192, 128), (256, 256))
OPTIONS = {
    "plain": {}, "causal": {"right": 0}, "window": {"left": 5, "right": 7}, "softcap": {"score": capped},
    "mask": {"left": 3, "right": 4, "mask": lambda batch, head, query, key: (query * 3 + key + head) % 4 != 0},
    "all": {"left": 5, "right": 7, "score": capped, "pack": 4},
}  # fmt: skip


def compiled(dims, queries, target, name, lengths="whole", dtype=BF16):
    """Compile the kernel that a plan chooses, with a sink, for sequences of their own lengths, or for pages."""
    (d, dv), int32 = dims, lambda *shape: np.zeros(shape, np.int32)
    rows, given = ((512,), Lengths(int32(3), int32(3))) if lengths == "own" else ((2, 512), WHOLE)
    of_k = (8, 64) if lengths == "pages" else rows
    given = Lengths(used=int32(2), pages=int32(2, 4)) if lengths == "pages" else given
    q, k, v, o = (np.zeros((*s, h, n), dtype) for s, h, n in (
        ((queries,) if lengths == "own" else (2, queries), 6, d), (of_k, 2, d), (of_k, 2, dv),
        ((queries,) if lengths == "own" else (2, queries), 6, dv),
    ))  # fmt: skip
    lse = np.zeros((6, queries) if lengths == "own" else (2, 6, queries), np.float32)
    options = Options(0.1, most_queries=queries if lengths == "own" else None, **OPTIONS[name])
    aux, sink = (cute.Float32(2.0),) if options.score else (), np.zeros(6, np.float32) if name == "all" else None
    kernel, args, _, block = warps_plan.arguments(q, k, v, o, lse, options, cute.target(target), given, sink, aux)
    return cute.compile(kernel, args, arch=target), block


@SLOW
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dims", gradients.DIMS, ids=str)
def test_sums_of_gradients_stay_in_registers(dims, target):
    (d, dv), zeros = dims, lambda *shape: np.zeros(shape, BF16)
    q, k, v, o = zeros(2, 512, 6, d), zeros(2, 512, 2, d), zeros(2, 512, 2, dv), zeros(2, 512, 6, dv)
    work = [np.zeros(s, np.float32) for s in gradients.room(q, None, False)]
    for name in ("all", ("plain", "causal", "mask")[(TARGETS.index(target) + gradients.DIMS.index(dims)) % 3]):
        options, used = Options(0.1, **OPTIONS[name])._replace(pack=None), np.zeros(2, np.int32)
        more = gradients.More(
            Lengths(used=used) if name == "all" else WHOLE, aux=(cute.Float32(2.0),) * (name == "all")
        )
        arrays = q, k, v, o, o, np.zeros((2, 6, 512), np.float32), q, k, v
        for launch in gradients.by_warps(arrays, work, options, more, cute.target(target)):
            r = cute.compile(launch.kernel, launch.args, arch=target).resources
            assert (r.spill_stores, r.local) == (0, 0), (name, launch.kernel.py_func.__name__)
            assert r.registers * launch.block <= 65536


@SLOW
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_sums_stay_in_registers(dims, target):
    first = TARGETS.index(target) + DIMS.index(dims)
    for i, (queries, name) in [*enumerate(itertools.product((512, 8), OPTIONS))][first % 3 :: 3]:  # each of some dims
        made, block = compiled(dims, queries, target, name, ("whole", "own", "pages")[(first + i // 3) % 3])
        r = made.resources
        assert (r.spill_stores, r.local) == (0, 0), (queries, name)
        assert r.registers * block <= 65536


def test_every_target_has_tiles_that_fit():
    for target, (d, dv) in itertools.product(("sm_80", "sm_86", "sm_87", "sm_89", "sm_120"), DIMS):
        q, v = np.zeros((1, 512, 2, d), BF16), np.zeros((1, 512, 2, dv), BF16)
        of = [
            warps_plan.form_of(q, q, v, n, WHOLE, Options(1.0), cute.target(target)) for n in (512, 8)
        ]  # fmt: skip
        assert [f.tile_m for f in of] == [64 if max(d, dv) == 256 and target not in ("sm_80", "sm_87") else 128, 64]
    q = np.zeros((1, 512, 2, 128), BF16)
    of = {t: warps_plan.form_of(q, q, q, 512, WHOLE, Options(1.0), cute.target(t)).tile_n for t in TARGETS}
    assert of == {"sm_80": 48, "sm_86": 32, "sm_120a": 32}  # of which two CTAs fit an SM


def test_what_the_kernel_has_not_is_refused():
    q, target = np.zeros((1, 512, 2, 64), BF16), cute.target("sm_86")
    for option in set(Options._fields) - warps_plan.KNOWN:
        with pytest.raises(CuteError, match=f"{option} is given, which the kernel for GPUs with mma.sync"):
            warps_plan.form_of(q, q, q, 512, WHOLE, Options(1.0)._replace(**{option: 1}), target)
    with pytest.raises(CuteError, match="needs 131072 bytes of shared memory, and sm_86 does not have that"):
        warps_plan.form_of(q, q, q, 512, WHOLE, Options(1.0, tile=Tile(256, 384, 32, 1)), target)


# ---------------------------------------------------------------- the entry, with torch


@pytest.fixture
def on(request):
    """Run entries in the simulator as on a GPU of a target."""
    pytest.importorskip("torch").manual_seed(0)
    with cute.simulation(request.param, checks=False, sms=4):
        yield request.param


@SLOW
@pytest.mark.parametrize("on", ["sm_80", "sm_86", "sm_120"], indirect=True)
def test_the_entry_chooses_by_the_target(on):
    import torch

    from numba_cute.kernels import flash_attention

    q, k, v = (torch.randn(1, n, h, 64, dtype=torch.bfloat16) for n, h in ((5, 4), (33, 2), (33, 2)))
    for splits in (0, 2):
        o, lse = flash_attention(q, k, v, causal=True, num_splits=splits, return_lse=True)
        arrays = [x.view(torch.int16).numpy().view(BF16) for x in (o, q, k, v)]
        reference.check(arrays[0], lse.numpy(), *batched(*arrays[1:], window=CAUSAL))


@SLOW
@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
@pytest.mark.parametrize("name", ["none", "a window", "a function, causal", "a sink, a window, logs", "sequences"])
def test_autograd_has_the_gradients(on, name):
    from . import test_gradients as of_hopper

    if name == "sequences":
        of_hopper.check(of_hopper.OPTIONS["a sink, logs"], [(5, 50), (0, 7), (20, 9)], scattered=True)
    else:
        of_hopper.check(of_hopper.OPTIONS[name], [(70, 100)])


@SLOW
@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
def test_masks_have_gradients(on):
    import torch

    from numba_cute.kernels import flash_attention

    skipped = torch.randint(0, 2, (1, 20, 40), dtype=torch.int32)
    skipped[0, 3] = 1  # a query that sees no key
    mine = [torch.randn(1, n, 1, 64).half().requires_grad_() for n in (20, 40, 40)]
    exact = [t.detach().double().requires_grad_() for t in mine]
    o, do = flash_attention(*mine, mask=unskipped, mask_aux=(skipped,)), torch.randn(1, 20, 1, 64).half()
    s = torch.einsum("bqhd,bkhd->bhqk", *exact[:2]).masked_fill(skipped[:, None] != 0, -1e9) / 8
    want = torch.einsum("bhqk,bkhd->bqhd", s.softmax(-1) * (skipped[:, None] == 0), exact[2])
    for got, x in zip(
        (o, *torch.autograd.grad(o, mine, do)), (want, *torch.autograd.grad(want, exact, do.double())), strict=True
    ):
        assert (got.double() - x).norm() <= 0.001 * x.norm()


@SLOW
@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
@pytest.mark.parametrize("name", ["all", "causal", "a window", "parts"])
def test_the_entry_takes_blocks(on, name):
    from . import test_blocks as of_hopper

    of_hopper.test_blocks_that_nobody_sees_are_not_read(name)
    if name == "causal":
        of_hopper.test_blocks_have_gradients(name)


@SLOW
@pytest.mark.parametrize("on", ["sm_80"], indirect=True)
def test_sequences_and_lengths_go_with_blocks(on):
    from . import test_blocks as of_hopper

    of_hopper.test_sequences_and_lengths_go_with_blocks()


@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
def test_what_this_family_has_not_is_refused_by_name(on):
    import torch

    from numba_cute.kernels import attention_backward, flash_attention

    q, lse = torch.zeros(1, 4, 2, 64, dtype=torch.bfloat16), torch.zeros(1, 2, 4)
    narrow = q.to(torch.float8_e4m3fn)
    refused = {
        "sm_86 has no kernel for float8 yet": lambda: flash_attention(narrow, narrow, narrow),
        "dout is bfloat16 of shape .* copies want it": lambda: attention_backward(
            torch.zeros(1, 4, 2, 65, dtype=q.dtype)[..., :64], q, q, q, q, lse
        ),
        "copies want it": lambda: flash_attention(torch.zeros(1, 4, 2, 65, dtype=q.dtype)[..., :64], q, q),
    }
    for says, call in refused.items():
        with pytest.raises(CuteError, match=says):
            call()


# ---------------------------------------------------------------- on whatever GPU there is


@pytest.mark.gpu
@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("target", ["sm_80", "sm_86"])
def test_it_is_right_on_a_gpu(dims, target):
    torch = pytest.importorskip("torch")
    d, dv = dims
    for window, shape in ((ALL, (2, 333, 333, 4, 2)), (CAUSAL, (1, 1, 500, 8, 1)), ((100, 30), (1, 257, 77, 3, 1))):
        b, queries, keys, heads, kv_heads = shape
        q, k, v = on_gpu(torch, torch.bfloat16, (b, queries, heads, d), (b, keys, kv_heads, d), (b, keys, kv_heads, dv))
        for splits in (1, 3):
            o, lse = q.new_empty((*q.shape[:-1], dv)), q.new_empty((b, heads, queries), dtype=torch.float32)
            options = Options(1 / math.sqrt(d), *window, splits=splits)
            work = lse.new_empty(plan.room(q, v, splits)) if splits > 1 else None
            for kernel, args, grid, block in warps_plan.launches(
                q, k, v, o, lse, *WHOLE, None, work, None, None, target, options, 0
            ):
                cute.launch(kernel, grid=grid, block=block)(*args)
            reference.check(host(o), lse.cpu().numpy(), *batched(*map(host, (q, k, v)), window=window))


@pytest.mark.gpu
@pytest.mark.parametrize("dims", gradients.DIMS, ids=str)
@pytest.mark.parametrize("target", ["sm_80", "sm_86"])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_right_on_a_gpu(dims, target, causal):
    torch = pytest.importorskip("torch")
    q, k, v, do = test_backward.on_gpu(torch, dims, "bfloat16", 4, 2, 333, 257)
    by_head, scale = test_backward.turned, 1 / math.sqrt(dims[0])
    o, lse, want = test_backward.reference(torch, *(by_head(x).double() for x in (q, k, v, do)), scale, causal)
    o, lse, results = (
        by_head(o).to(q.dtype).contiguous(),
        lse.float().contiguous(),
        [x.new_empty(x.shape) for x in (q, k, v)],
    )
    work = [torch.empty(s, device="cuda") for s in gradients.room(q, None, False)]
    options, arrays = Options(scale, right=0 if causal else None), (q, k, v, o, do, lse, *results)
    for launch in gradients.by_warps(arrays, work, options, gradients.More(), cute.target(target)):
        plan.bound(launch.kernel, launch.grid, launch.block, 0, launch.overlaps)(*launch.args)
    for got, (name, gradient, size) in zip(results, want, strict=True):
        test_backward.near(by_head(got).double(), gradient, size, test_backward.UNIT["bfloat16"], name)
