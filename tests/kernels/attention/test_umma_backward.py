# SPDX-License-Identifier: Apache-2.0
"""Gradients of attention on Blackwell: right against float64 in the simulator, with all checks; what they take of each
kind of memory; no spills for any of its targets."""

import itertools
import math

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.attention import gradients, umma_backward_plan, umma_gradients
from numba_cute.kernels.attention.options import capped
from numba_cute.kernels.attention.plan import ALL as WHOLE, Lengths, Options
from numba_cute.kernels.attention.umma_backward_plan import Form, columns_of, operand_layout

from . import test_backward
from .test_backward import aligned, near, reference
from .test_forward import BF16, F16

SLOW = pytest.mark.slow
TARGETS = ("sm_100a", "sm_103a")
NOTHING = gradients.More()


def by_head(x):
    return x.astype(np.float64).transpose(0, 2, 1, 3)


class Given:
    """Random arrays of a pass, poisoned results and working room, (batch, rows, heads, d)."""

    def __init__(self, d, batch, heads, kv_heads, queries, keys, dtype=F16, sequences=None):
        rng = np.random.default_rng(0)
        shapes = (queries, heads), (keys, kv_heads), (keys, kv_heads), (queries, heads)
        self.q, self.k, self.v, self.do = (
            aligned((batch, n, h, d), dtype, rng.standard_normal((batch, n, h, d), np.float32)) for n, h in shapes
        )
        self.o = aligned(self.q.shape, dtype, math.nan)
        self.lse = aligned((batch, heads, queries), np.float32, math.nan)
        self.results = [aligned(x.shape, dtype, math.nan) for x in (self.q, self.k, self.v)]
        rooms = umma_gradients.room(heads, d, sequences or (batch, queries))
        self.work = [aligned(s, np.float32, math.nan) for s in rooms]

    def run(self, options, more=NOTHING, **how):
        """Simulate the pass."""
        arrays = self.q, self.k, self.v, self.o, self.do, self.lse, *self.results
        for launch in gradients.launches(
            arrays, self.work, sms=1, options=options, more=more, target=cute.target("sm_100a")
        ):
            test_backward.run(launch, arch="sm_100a", **how)

    def check(self, batch, rows, seen, causal=False, **more):
        """Make what the forward pass would have left of a sequence, and give what compares its gradients. rows, seen:
        slices of its queries and keys."""
        one, unit = slice(batch, batch + 1), test_backward.UNIT[self.q.dtype.name]
        given = self.q[one, rows], self.k[one, seen], self.v[one, seen], self.do[one, rows]
        scale = 1 / math.sqrt(self.q.shape[-1])
        o, lse, want = reference(np, *map(by_head, given), scale, causal, **more)
        self.o[one, rows], self.lse[one, :, rows] = o.transpose(0, 2, 1, 3), lse

        def compare():
            for got, at, (name, gradient, size) in zip(self.results, (rows, seen, seen), want, strict=True):
                if gradient.size:
                    near(by_head(got[one, at]), gradient, size, unit, f"{name} of {batch}, {rows}")

        return compare


SHAPES = {
    # d, heads, KV heads, queries, keys, causal, dtype
    "one tile": (64, 1, 1, 40, 72, False, BF16),
    "tiles": (128, 1, 1, 150, 200, False, F16),
    "causal": (128, 1, 1, 130, 200, True, BF16),
    "fewer keys": (64, 1, 1, 300, 140, True, F16),
    "group": (64, 2, 1, 70, 140, True, F16),
}


@SLOW
@pytest.mark.parametrize("name", SHAPES)
def test_gradients_are_those_of_float64(name):
    d, heads, kv_heads, queries, keys, causal, dtype = SHAPES[name]
    given = Given(d, 1, heads, kv_heads, queries, keys, dtype)
    compare = given.check(0, slice(queries), slice(keys), causal)
    given.run(Options(1 / math.sqrt(d), right=0 if causal else None))
    compare()


def window(left, right):
    """What a window makes of scores in the reference, and in the options."""

    def bend(s):
        own = np.arange(s.shape[2])[:, None] + s.shape[3] - s.shape[2]
        key = np.arange(s.shape[3])[None]
        seen = np.ones(s.shape[2:], bool)
        seen &= key >= own - left if left is not None else seen
        seen &= key <= own + right if right is not None else seen
        return np.where(seen, s, -math.inf), np.where(seen, 1.0, 0.0)

    return bend, {"left": left, "right": right}


def bending(s, batch, head, query, key, slope):
    return cute.math.tanh(s * 0.5) * 2.0 + cute.Float32(query - key) * slope


def bent(s):
    far = np.arange(s.shape[2])[:, None] - np.arange(s.shape[3])[None]
    return np.tanh(s / 2) * 2 + far * 0.1, 1 - np.tanh(s / 2) ** 2


@cuda.jit
def third(batch, head, query, key, every):
    return (query + key * 2 + head) % every != 0


def thirds(s):
    head, query, key = np.ogrid[: s.shape[1], : s.shape[2], : s.shape[3]]
    seen = (query + key * 2 + head) % 3 != 0
    return np.where(seen, s, -math.inf), np.where(seen, 1.0, 0.0)


OPTIONS = {
    # what the reference makes of scores, options, arguments of the functions
    "window": (*window(20, 9), {}),
    "left": (*window(70, None), {}),
    "softcap": (
        lambda s: (2 * np.tanh(s / 2), 1 - np.tanh(s / 2) ** 2), {"score": capped}, {"aux": (cute.Float32(2.0),)}
    ),
    "function": (bent, {"score": bending}, {"aux": (cute.Float32(0.1),)}),
    "mask": (thirds, {"mask": third}, {"mask_aux": (cute.Int32(3),)}),
    "logs": (None, {}, {}),
    "sink, given by its logs": (None, {}, {}),
}  # fmt: skip


@SLOW
@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_of_options_are_those_of_float64(name):
    bend, options, more = OPTIONS[name]
    queries, keys = (70, 140) if "window" in name else (140, 72)
    d, given = 64, Given(64, 1, 1, 1, queries, keys)
    dlse, sink, logs = None, None, {}
    if name == "logs":
        dlse = np.random.default_rng(1).standard_normal((1, 1, queries)).astype(np.float32)
        logs = {"dlse": dlse[..., None]}
    if "sink" in name:
        sink = np.array(2.0)[None, None, None]
    compare = given.check(0, slice(queries), slice(keys), bend=bend, sink=sink, **logs)
    given.run(Options(1 / math.sqrt(d), **options), gradients.More(dlse=dlse, **more))
    compare()


@SLOW
def test_sequences_have_their_own_lengths():
    queries, keys = [5, 0, 140, 9], [130, 7, 20, 0]
    cu_q, cu_k = (np.cumsum([0, *n]).astype(np.int32) for n in (queries, keys))
    given = Given(64, 1, 1, 1, cu_q[-1] + 3, cu_k[-1] + 3, sequences=(4, 140))
    for x, n in zip((given.q, given.do, given.k, given.v), (cu_q, cu_q, cu_k, cu_k)):
        x[0, n[-1] :] = math.nan  # of nobody
    comparisons = [
        given.check(0, slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1]), True)
        for i in range(4) if keys[i] and queries[i]
    ]  # fmt: skip
    given.lse[..., cu_q[3] :], given.o[:, cu_q[3] :] = -math.inf, 0  # of those that see no key
    more = gradients.More(Lengths(cu_q, cu_k), 130)
    given.run(Options(1 / math.sqrt(64), right=0, most_queries=140), more)
    for compare in comparisons:
        compare()
    dq, dk, dv = given.results
    assert not dq[0, cu_q[3] : cu_q[4]].any()  # which see no key
    assert not dk[0, cu_k[1] : cu_k[2]].any() and not dv[0, cu_k[1] : cu_k[2]].any()  # which no query sees
    assert all(np.isnan(x[0, -3:].astype(np.float32)).all() for x in given.results)  # left as they were


@SLOW
def test_keys_that_a_sequence_has_not_are_not_seen():
    used = np.array([130, 9], np.int32)
    given = Given(64, 2, 1, 1, 20, 140)
    for b, n in enumerate(used):
        given.k[b, n:], given.v[b, n:] = math.nan, math.nan
    comparisons = [given.check(b, slice(20), slice(n)) for b, n in enumerate(used)]
    given.run(Options(1 / math.sqrt(64)), gradients.More(Lengths(used=used)))
    for compare in comparisons:
        compare()


LISTS = {
    # block, heads, queries, of each head's columns of blocks the rows that see it, and of each whether it is seen whole
    "of each head": ((128, 128), 2, 140, [[[(0, 0), (1, 1)], []], [[(1, 0)], [(0, 0)]]]),
    "of two tiles, of which there is one": ((256, 128), 1, 100, [[[(0, 0)], []]]),
}


@SLOW
@pytest.mark.parametrize("name", LISTS)
def test_lists_say_which_blocks_are_visited(name):
    block, heads, queries, of_heads = LISTS[name]
    rows, keys = -(-queries // block[0]), 140
    counts = np.array([[[len(of) for of in columns] for columns in of_heads]], np.int32)
    lists = np.full((1, heads, 2, rows), 99, np.int32)
    seen = np.zeros((1, heads, rows * block[0], 256), bool)
    for h, columns in enumerate(of_heads):
        for c, of in enumerate(columns):
            for i, (r, whole) in enumerate(of):
                lists[0, h, c, i] = 2 * r + whole
                query, key = np.ogrid[r * block[0] : (r + 1) * block[0], c * 128 : c * 128 + 128]
                part = whole | ((query + key * 2 + h) % 3 != 0)
                seen[0, h, r * block[0] : (r + 1) * block[0], c * 128 : c * 128 + 128] = part
    seen = seen[:, :, :queries, :keys]
    bend = lambda s: (np.where(seen, s, -math.inf), np.where(seen, 1.0, 0.0))  # noqa: E731
    given = Given(64, 1, heads, 1, queries, keys)
    compare = given.check(0, slice(queries), slice(keys), bend=bend)
    more = gradients.More(mask_aux=(cute.Int32(3),), listed=(counts, lists, counts, lists))
    given.run(Options(0.125, mask=third, block=block), more)
    compare()


def test_sums_of_queries_are_where_they_are_wanted():
    d = 64
    given = Given(d, 1, 1, 1, 20, 20)
    arrays = given.q, given.k, given.v, given.o, given.do, given.lse, *given.results
    todo = gradients.launches(arrays, given.work, scale=0.5, sms=1, target=cute.target("sm_100a"))
    four, query, e = np.ogrid[: d // 4, :128, :4]
    given.work[2][...] = (4 * four + e + 64.0 * (query % 8)).reshape(1, 1, 1, -1)
    test_backward.run(todo[2], checks=False)
    want = (np.arange(d) + 64.0 * (np.arange(20) % 8)[:, None]) * 0.5
    np.testing.assert_array_equal(given.results[0][0, :, 0], want)


# ---------------------------------------------------------------- plans


@pytest.mark.parametrize("d", umma_backward_plan.HEAD_DIMS)
def test_all_has_room(d):
    form, columns = Form(cute.BFloat16, d), columns_of(Form(cute.BFloat16, d))
    assert form.smem + 1024 <= cute.target("sm_100a").smem_per_block  # beside barriers
    of_others, of_reduce, of_compute = form.registers
    assert 128 * of_others + 128 * of_reduce + 256 * of_compute <= 65536
    extents = {"s": 128, "dp": 128, "dv": d, "dk": d, **({"dq": d} if d == 64 else {})}
    taken = [c for name, n in extents.items() for c in range(getattr(columns, name), getattr(columns, name) + n)]
    assert len(taken) == len(set(taken)) and max(taken) < columns.whole == 512
    assert d == 64 or columns.dq == columns.dp


def test_terms_lie_where_their_warpgroups_scores_were():
    layout = operand_layout(umma_backward_plan.multiplies(Form(cute.Float16, 64)).sums)
    for query in range(128):
        at = layout(((5, query % 16), 0, query // 16)) - layout(((5, 0), 0, 0))
        assert at // 2 in range(query // 64 * 64, query // 64 * 64 + 32)  # of a word's two


KINDS = {
    "plain": {}, "causal": {"right": 0}, "window": {"left": 5, "right": 7}, "softcap": {"score": capped},
    "mask": {"left": 3, "right": 4, "mask": lambda batch, head, query, key: (query * 3 + key + head) % 4 != 0},
    "all": {"left": 5, "right": 7, "score": capped, "mask": lambda batch, head, query, key: query != key},
}  # fmt: skip


@SLOW
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("d", umma_backward_plan.HEAD_DIMS)
@pytest.mark.parametrize("lengths", ["whole", "used", "own"])
def test_sums_stay_in_registers_and_tensor_memory(d, target, lengths):
    zeros, of = (lambda *shape: np.zeros(shape, np.int32)), {"used": Lengths(used=np.zeros(1, np.int32))}
    of["own"] = Lengths(zeros(3), zeros(3))
    for name, options in KINDS.items():
        given = Given(d, 1, 6, 2, 512, 512, BF16, (2, 512))
        more = gradients.More(of.get(lengths, WHOLE), aux=(cute.Float32(2.0),) * ("score" in options))
        arrays = given.q, given.k, given.v, given.o, given.do, given.lse, *given.results
        todo = gradients.launches(
            arrays, given.work, sms=1, options=Options(0.1, most_queries=512, **options), more=more,
            target=cute.target(target),
        )  # fmt: skip
        for launch in todo:
            made = cute.compile(launch.kernel, launch.args, arch=target)
            r = made.resources
            assert (r.spill_stores, r.spill_loads, r.local) == (0, 0, 0), (name, launch.kernel.py_func.__name__)
            assert not made.notes, name


def test_what_the_kernel_has_not_is_refused():
    check = umma_backward_plan.check
    for dims in (192, 128), (256, 256), (64, 128):
        with pytest.raises(CuteError, match=f"head dimensions of 64 or 128, .* not yet {dims[0]} and {dims[1]}"):
            check(Options(1.0), dims, False)
    for option in set(Options._fields) - umma_backward_plan.KNOWN:
        with pytest.raises(
            CuteError, match=f"{option} is given, which the kernel for Blackwell GPUs does not support yet"
        ):
            check(Options(1.0)._replace(**{option: 1}), (64, 64), False)
    with pytest.raises(CuteError, match="deterministic is True"):
        check(Options(1.0), (64, 64), True)
    for dims, options in itertools.product(((64, 64), (128, 128)), KINDS.values()):
        check(Options(1.0, **options), dims, False)


# ---------------------------------------------------------------- the entry, with torch


@pytest.fixture
def on(request):
    """Run entries in the simulator as on a GPU of a target."""
    pytest.importorskip("torch").manual_seed(0)
    with cute.simulation(request.param, checks=False, sms=4):
        yield request.param


@SLOW
@pytest.mark.parametrize("on", TARGETS, indirect=True)
def test_the_entry_chooses_by_the_target(on):
    import torch

    from numba_cute.kernels import attention_backward

    q, k, v, do = (torch.randn(1, n, h, 64, dtype=torch.bfloat16) for n, h in ((5, 2), (33, 1), (33, 1), (5, 2)))
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    sink = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    s = torch.einsum("bqhd,bkgd->bhqk", exact[0], exact[1]) / 8
    p = torch.cat([s, sink[None, :, None, None].expand(1, 2, 5, 1)], -1)
    lse = torch.logsumexp(p, -1)
    o = torch.einsum("bhqk,bkgd->bqhd", torch.exp(s - lse[..., None]), exact[2])
    want = torch.autograd.grad(o, [*exact, sink], do.double())
    made = attention_backward(do, q, k, v, o.to(q.dtype).detach(), lse.float().detach(), sink=sink.float().detach())
    for got, x in zip(made, want, strict=True):
        assert (got.double() - x).norm() <= 0.01 * x.norm()


@SLOW
@pytest.mark.parametrize("on", ["sm_103a"], indirect=True)
@pytest.mark.parametrize("name", ["a function, causal", "a sink, a window, logs", "sequences"])
def test_autograd_has_the_gradients(on, name):
    from . import test_gradients as of_hopper

    if name == "sequences":
        of_hopper.check(of_hopper.OPTIONS["a sink, logs"], [(5, 50), (0, 7), (20, 9)], scattered=True)
    else:
        of_hopper.check(of_hopper.OPTIONS[name], [(70, 100)], 40, 64)  # padded


@pytest.mark.parametrize("on", ["sm_100a"], indirect=True)
def test_what_blackwell_has_not_is_refused_by_name(on):
    import torch

    from numba_cute.kernels import attention_backward, block_mask_from

    q, lse, wide = torch.zeros(1, 4, 2, 64).half(), torch.zeros(1, 2, 4), torch.zeros(1, 4, 2, 256).half()
    blocks = block_mask_from(torch.ones(1, 1, 1, 1, dtype=torch.bool), block=(128, 64))
    refused = {
        "head dimensions of 64 or 128, .* not yet 256 and 256": lambda: attention_backward(*[wide] * 5, lse),
        "on Blackwell these must be 128 or 256, and a multiple of 128": lambda: attention_backward(
            *[q] * 5, lse, blocks=blocks
        ),
        "deterministic is True": lambda: attention_backward(*[q] * 5, lse, deterministic=True),
    }
    for says, call in refused.items():
        with pytest.raises(CuteError, match=says):
            call()
