# SPDX-License-Identifier: Apache-2.0
"""Attention that appends to its cache: what is written where, and the result, against float64."""

import math

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.isa.form.targets import answering_for
from numba_cute.kernels.attention import append
from numba_cute.seam.marks.launches import launching

from . import reference
from .test_forward import BF16, CAUSAL, host, random

SLOW = pytest.mark.slow


def turned(x, cos, sin, interleaved):
    """Turn the first elements of the heads of x (tokens, heads, d) by angles (tokens, R/2), in float64."""
    x, half = x.astype(np.float64), cos.shape[-1]
    first, second = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (
        slice(0, half), slice(half, 2 * half)
    )  # fmt: skip
    c, s, y = cos[:, None], sin[:, None], x.copy()
    y[..., first] = x[..., first] * c - x[..., second] * s
    y[..., second] = x[..., second] * c + x[..., first] * s
    return y


def angles(positions, half):
    at = np.random.default_rng(1).random((positions, half), np.float32) * 6
    return np.cos(at), np.sin(at)


@pytest.mark.parametrize("interleaved, arch", [(False, "sm_90a"), (True, "sm_80")])
@pytest.mark.parametrize("paged", [False, True])
def test_keys_and_values_come_where_a_sequence_ends(paged, interleaved, arch):
    lengths, new = np.array([7, 0, 15], np.int32), 2  # the last has room for one alone
    k, v, q = random(BF16, (3, new, 2, 64), (3, new, 2, 128), (3, new, 4, 64))
    shape = (7, 8) if paged else (3, 16)
    pages = np.array([[5, 1], [0, 6], [2, 3]], np.int32) if paged else None
    k_cache, v_cache = random(BF16, (*shape, 2, 64), (*shape, 2, 128))
    (cos, sin), used, of_q = angles(20, 16), np.zeros(3, np.int32), np.zeros_like(q)
    want_k, want_v = k_cache.astype(np.float64), v_cache.astype(np.float64)
    for b, n in enumerate(lengths):
        for i, at in enumerate(range(n, min(n + new, 16))):
            place = (pages[b, at // 8], at % 8) if paged else (b, at)
            want_k[place] = turned(k[b, i : i + 1], cos[at][None], sin[at][None], interleaved)[0]
            want_v[place] = v[b, i]
    given = k_cache, v_cache, k, v, lengths, pages, q, cos, sin, used, of_q, interleaved, arch != "sm_80"
    kernel, args, grid, block = append.appending(*given)
    cute.simulate(kernel, arch=arch)[grid, block](*args)
    assert used.tolist() == [9, 2, 16]
    np.testing.assert_allclose(k_cache.astype(np.float64), want_k, atol=2**-6)
    np.testing.assert_array_equal(v_cache.astype(np.float64), want_v)
    for b, n in enumerate(lengths[:2]):
        at = slice(n, n + new)
        np.testing.assert_allclose(of_q[b].astype(np.float64), turned(q[b], cos[at], sin[at], interleaved), atol=2**-6)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", pytest.param("sm_100a", marks=SLOW)])
def test_it_moves_sixteen_bytes_at_once(arch):
    k, v, cache = random(BF16, (2, 1, 2, 128), (2, 1, 2, 128), (2, 64, 2, 128))
    lengths, (cos, sin) = np.zeros(2, np.int32), angles(64, 64)
    for q, of_angles in ((None, (None, None)), (k, (cos, sin))):
        given = cache, cache, k, v, lengths, None, q, *of_angles, lengths, q, False, arch != "sm_80"
        kernel, args, _, _ = append.appending(*given)
        made = cute.compile(kernel, args, arch=arch)
        assert not made.notes and made.resources.local == 0
        assert made.ptx.count("ld.global.v4") >= 2 and made.ptx.count("st.global.v4") >= 2
        assert ("griddepcontrol.wait" in made.ptx) == (arch != "sm_80")


@pytest.fixture
def entries(request):
    torch = pytest.importorskip("torch")
    with cute.simulation(getattr(request, "param", "sm_90a"), checks=False, sms=4):
        yield torch


EVERYWHERE = pytest.mark.parametrize("entries", ["sm_80", "sm_90a", "sm_120", "sm_100a"], indirect=True)


def arrays(torch, name, *shapes):
    torch.manual_seed(0)
    return [torch.randn(s).to(getattr(torch, name)) for s in shapes]


@SLOW
@EVERYWHERE
@pytest.mark.parametrize("splits", [1, 2])
def test_it_attends_over_what_it_appended(entries, splits):
    torch, new = entries, 2
    from numba_cute.kernels import attention_with_cache

    lengths = torch.tensor([20, 0], dtype=torch.int32)
    q, k, v, k_cache, v_cache = arrays(torch, "float16", (2, new, 2, 64), *[(2, new, 1, 64)] * 2, *[(2, 40, 1, 64)] * 2)
    cos, sin = (torch.from_numpy(x) for x in angles(40, 32))
    k_cache[0, 22:] = math.nan
    o = attention_with_cache(
        q, k_cache, v_cache, k, v, lengths, rotary_cos=cos, rotary_sin=sin, causal=True, num_splits=splits
    )
    for b, n in enumerate(lengths.tolist()):
        at = slice(n, n + new)
        of_q = turned(q[b].numpy(), cos[at].numpy(), sin[at].numpy(), False)
        want, _ = reference.attention(of_q, *(x[b, : n + new].numpy() for x in (k_cache, v_cache)), window=CAUSAL)
        assert np.linalg.norm(o[b].numpy() - want) <= 2e-3 * np.linalg.norm(want)
    assert torch.equal(v_cache[0, 20:22], v[0]) and lengths.tolist() == [20, 0]


@SLOW
def test_it_is_traced_whole(entries):
    torch = entries
    from numba_cute.kernels import attention_with_cache

    q, k_cache = arrays(torch, "float16", (1, 1, 1, 64), (1, 16, 1, 64))
    lengths, caches = torch.tensor([3], dtype=torch.int32), [(k_cache.clone(), k_cache.clone()) for _ in range(2)]
    call = lambda q, k, v: attention_with_cache(q, k, v, q, q, lengths) * 2  # noqa: E731
    one, two = torch.compile(call, fullgraph=True, backend="aot_eager")(q, *caches[0]), call(q, *caches[1])
    assert torch.equal(one, two) and torch.equal(caches[0][0], caches[1][0])
    assert torch.equal(caches[0][0][0, 3], q[0, 0]) and torch.equal(caches[0][0][0, 4:], k_cache[0, 4:])


def test_what_does_not_fit_is_refused_in_words(entries):
    torch = entries
    from numba_cute.kernels import attention_with_cache

    q, k, cache = arrays(torch, "float16", (1, 2, 2, 64), (1, 2, 1, 64), (1, 16, 1, 64))
    lengths, cos = torch.tensor([15], dtype=torch.int32), torch.zeros(16, 32)

    def refused(words, *given, **options):
        with pytest.raises(CuteError, match=words):
            attention_with_cache(*given, **options)

    refused("the cache has room for 16 of a sequence", q, cache, cache, k, k, lengths)
    lengths[0] = 3
    refused("there is no cu_seqlens_q here", q, cache, cache, k, k, lengths, cu_seqlens_q=lengths)
    refused("requires a gradient", q.clone().requires_grad_(), cache, cache, k, k, lengths)
    refused("belong together", q, cache, cache, k, k, lengths, rotary_cos=cos)
    refused("columns must be a multiple of 8", q, cache, cache, k, k, lengths, rotary_cos=cos[:, :4],
            rotary_sin=cos[:, :4])  # fmt: skip
    refused("v_cache is", q, cache, cache[:, :8], k, k, lengths)
    refused("q is .* shape must be", q[:, :1], cache, cache, k, k, lengths, rotary_cos=cos, rotary_sin=cos)


@pytest.mark.parametrize("entries", ["sm_86", "sm_100a"], indirect=True)
def test_what_a_family_has_not_is_refused_before_anything_is_written(entries):
    from numba_cute.kernels import attention_with_cache

    q, cache = arrays(entries, "float8_e4m3fn", (1, 2, 1, 64), (1, 16, 1, 64))
    before, lengths = cache.clone(), entries.zeros(1, dtype=entries.int32)
    with pytest.raises(CuteError, match="attention_with_cache: k_cache is .* has no kernel for float8 yet"):
        attention_with_cache(q, cache, cache, q, q, lengths)
    assert entries.equal(cache.view(entries.uint8), before.view(entries.uint8))


REFUSED = {
    "causal": {"causal": True, "window": (None, 4)}, "window": {"window": (-1, 0)}, "scale": {"scale": -1.0},
    "softcap": {"softcap": 0.0}, "splits": {"num_splits": 999},
    "both": {"softcap": 2.0, "score": lambda s, b, h, q, k: s},
    "descale": {"q_descale": lambda torch: torch.ones(1, 1)}, "sink": {"sink": lambda torch: torch.ones(3)},
    "out": {"out": lambda torch: torch.ones(1, 1, 2, 64)}, "mask_aux": {"mask_aux": (1,), "mask": 3},
    "page_table": {"page_table": lambda torch: torch.zeros(1, 1, dtype=torch.int64)},
}  # fmt: skip
"""What `flash_attention` refuses, by what is wrong with it."""


@pytest.mark.parametrize("entries", ["sm_90a", "sm_86", "sm_100a"], indirect=True)
@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("d", [64, 96])
def test_what_is_refused_is_refused_before_anything_is_written(entries, turns, d):
    """Whoever refuses it: this entry, or the attention that comes after the append."""
    from numba_cute.kernels import attention_with_cache

    torch = entries
    q, cache = arrays(torch, "bfloat16", (1, 1, 2, d), (1, 16, 1, d))
    new, lengths, angles = q[:, :, :1].contiguous() + 1, torch.zeros(1, dtype=torch.int32), torch.ones(16, 8)
    how = {"rotary_cos": angles, "rotary_sin": angles} if turns else {}
    before, values = cache.clone(), cache.clone()
    for name, given in REFUSED.items():
        made = {n: x(torch) if callable(x) and n not in ("score", "mask") else x for n, x in given.items()}
        with pytest.raises(CuteError):
            attention_with_cache(q, cache, values, new, new, lengths, **how, **made)
        assert torch.equal(cache, before) and torch.equal(values, before), name


@pytest.mark.parametrize(
    "name, turns",
    [("splits", False), *(pytest.param(*x, marks=SLOW) for x in [("window", True), ("descale", True), ("out", False)])],
)
def test_a_graph_that_is_refused_has_not_written(entries, turns, name):
    from numba_cute.kernels import attention_with_cache

    torch, d = entries, 64
    q, cache = arrays(torch, "bfloat16", (1, 1, 2, d), (1, 16, 1, d))
    new, lengths, angles = q[:, :, :1].contiguous() + 1, torch.zeros(1, dtype=torch.int32), torch.ones(16, 8)
    how = {"rotary_cos": angles, "rotary_sin": angles} if turns else {}
    how |= {n: x(torch) if callable(x) and n not in ("score", "mask") else x for n, x in REFUSED[name].items()}
    before, values = cache.clone(), cache.clone()
    torch._dynamo.reset()
    with pytest.raises((CuteError, RuntimeError)):  # torch's own, of what fails as it makes the graph
        torch.compile(lambda q, k, v: attention_with_cache(q, k, v, new, new, lengths, **how), backend="eager")(
            q, cache, values
        )
    assert torch.equal(cache, before) and torch.equal(values, before)


# ---------------------------------------------------------------- on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("page", [0, 16])
@pytest.mark.parametrize("d, interleaved", [(64, False), (128, True), (256, False)])
def test_caches_grow_on_a_gpu(page, d, interleaved):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import attention_with_cache

    torch.manual_seed(0)
    lengths, new, most = torch.tensor([700, 0, 1300], device="cuda", dtype=torch.int32), 3, 1600
    flat = [torch.randn(3, most, 2, d, device="cuda").bfloat16() for _ in range(2)]
    table = torch.randperm(3 * most // page, device="cuda").view(3, -1).int() if page else None
    caches = [x.clone() for x in flat]
    if page:
        caches = [torch.empty_like(x).view(-1, page, 2, d) for x in flat]
        for cache, x in zip(caches, flat):
            cache[table.flatten().long()] = x.view(-1, page, 2, d)
    cos, sin = (torch.from_numpy(x).cuda() for x in angles(most, d // 2))
    for _ in range(3):
        q, k, v = (torch.randn(3, new, h, d, device="cuda").bfloat16() for h in (8, 2, 2))
        o = attention_with_cache(
            q, *caches, k, v, lengths, page_table=table, rotary_cos=cos, rotary_sin=sin, interleaved=interleaved,
            causal=True,
        )  # fmt: skip
        for b, n in enumerate(lengths.tolist()):
            at = slice(n, n + new)
            of_q, of_k = (turned(host(x[b]), cos[at].cpu().numpy(), sin[at].cpu().numpy(), interleaved) for x in (q, k))
            flat[0][b, at], flat[1][b, at] = torch.from_numpy(of_k).to(flat[0]), v[b]
            want, _ = reference.attention(of_q, *(host(x[b, : n + new]) for x in flat), window=CAUSAL)
            assert np.linalg.norm(host(o[b]).astype(np.float64) - want) <= 0.01 * np.linalg.norm(want)
        lengths += new


def wants_a_tensor(s, batch, head, query, key):
    return s.no_such_name


def hides_by_a_name(batch, head, query, key):
    return key < no_such_name  # noqa: F821


FUNCTIONS = {"score": {"score": wants_a_tensor}, "mask": {"mask": hides_by_a_name}}


@pytest.mark.parametrize(
    "entries, what", [("sm_80", "mask"), *(pytest.param("sm_90a", w, marks=SLOW) for w in FUNCTIONS)],
    indirect=["entries"],
)  # fmt: skip
def test_functions_that_do_not_compile_are_refused_before_anything_is_written(entries, what):
    from numba_cute.kernels import attention_with_cache

    q, cache = arrays(entries, "float16", (1, 1, 1, 64), (1, 16, 1, 64))
    lengths, before = entries.tensor([3], dtype=entries.int32), cache.clone()
    with pytest.raises(CuteError, match="no_such_name"):
        attention_with_cache(q, cache, cache, q, q, lengths, **FUNCTIONS[what])
    assert entries.equal(cache, before)


def test_autocast_makes_what_is_appended_of_the_caches_type():
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import attention_with_cache

    q, cache, seen = torch.randn(1, 1, 1, 64), torch.zeros(1, 16, 1, 64, dtype=torch.float16), []
    given = q, cache, cache, q, q, torch.tensor([3], dtype=torch.int32)
    with answering_for("sm_90a", 4), launching(lambda kernel, args, launch: seen.append((kernel, args))):
        with pytest.raises(CuteError, match="k_new is .*float32"):
            attention_with_cache(*given)
        assert not seen
        with torch.autocast("cpu", dtype=torch.bfloat16):
            made = attention_with_cache(*given)
    appended = next(args for kernel, args in seen if kernel.py_func.__name__ == "append")
    assert [x.element_type for x in appended[:4]] == [cute.Float16] * 4
    assert made.dtype == cache.dtype == torch.float16 and q.dtype == torch.float32
