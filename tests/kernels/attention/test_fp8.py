# SPDX-License-Identifier: Apache-2.0
"""The attention forward of e4m3 against float64: small problems in the simulator, with all checks, and on a GPU."""

import math

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.attention import entry, plan, values
from numba_cute.kernels.attention.plan import Options
from numba_cute.seam import CuteError

from . import reference
from .test_forward import ALL, BF16, CAUSAL, random

E4M3 = ml_dtypes.float8_e4m3fn
ROUNDING = 2.0**-4  # of P, to three bits


def exact(q, k, v, scales, used=None, **options):
    """O and the logs of the sums of each sequence, of its first `used` keys, in float64."""
    found = []
    for b in range(q.shape[0]):
        keys = slice(None if used is None else used[b])
        by_q, by_k, by_v = (s[b].astype(np.float64)[None, :, None] for s in scales)
        group = q.shape[2] // k.shape[2]
        given = (q[b].astype(np.float64) * np.repeat(by_q, group, 1), k[b, keys].astype(np.float64) * by_k,
                 v[b, keys].astype(np.float64) * by_v)  # fmt: skip
        found.append(reference.attention(*given, **options))
    return [np.stack(x) for x in zip(*found)]


def check(o, lse, want_o, want_lse):
    """Fail unless O is as near as rounding P to e4m3 leaves it, and the logs to 5e-3: wgmma cuts off what is 13 bits
    below the greatest of 32 products and their sum, which makes errors of up to 3e-3 in the logs of these problems."""
    got = np.asarray(o).astype(np.float64)
    assert np.linalg.norm(got - want_o) <= 0.5 * ROUNDING * np.linalg.norm(want_o)
    assert (np.abs(got - want_o) <= 2 * ROUNDING * (np.abs(want_o) + np.abs(want_o).max())).all()
    seen = np.isfinite(want_lse)
    assert (np.asarray(lse)[~seen] == want_lse[~seen]).all()
    assert (np.abs(np.asarray(lse)[seen] - want_lse[seen]) <= 5e-3).all()


def scales_of(batch, kv_heads):
    return [np.random.default_rng(i).uniform(0.5, 2, (batch, kv_heads)).astype(np.float32) for i in range(3)]


def turned(v, used=None):
    """V as the kernel has it that turns it."""
    made = np.full(values.turned_shape(v), math.nan, E4M3)
    kernel, args, grid, block = plan.turning(v, made, used)
    cute.simulate(kernel, arch="sm_90a")[grid, block](*args)
    return made


@pytest.mark.slow
def test_values_are_turned_along_keys_in_the_order_of_p():
    (v,) = random(E4M3, (1, 90, 1, 64))
    v[:, 70:] = math.nan
    padded = np.zeros((1, 96, 1, 64), E4M3)
    padded[:, :70] = v[:, :70]
    order = [i // 2 * 8 + 2 * t + i % 2 for t in range(4) for i in range(4)]
    want = padded.reshape(1, 6, 16, 1, 64)[:, :, order].reshape(padded.shape).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(turned(v, np.array([70], np.int32)).view(np.uint8), want.view(np.uint8))


CASES = {
    # batch, queries, keys, heads, KV heads, d, dv, window, splits, options
    "ragged": (1, 100, 150, 1, 1, 64, 64, ALL, 1, {"tile": (128, 64)}),
    "causal": (2, 40, 130, 2, 1, 128, 64, CAUSAL, 1, {"tile": (128, 64), "cluster": 1}),
    "wide": (1, 64, 100, 1, 1, 256, 256, CAUSAL, 1, {"tile": (64, 32)}),
    "split": (1, 1, 200, 4, 1, 64, 64, ALL, 2, {"tile": (64, 32)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_it_agrees_with_float64_in_the_simulator(case):
    batch, queries, keys, heads, kv_heads, d, dv, window, splits, options = CASES[case]
    q, k, v = random(E4M3, (batch, queries, heads, d), (batch, keys, kv_heads, d), (batch, keys, kv_heads, dv))
    scales, sink = scales_of(batch, kv_heads), np.linspace(-1, 1, heads).astype(np.float32)
    o, lse = np.full((*q.shape[:-1], dv), math.nan, BF16), np.full((batch, heads, queries), math.nan, np.float32)
    counter, work = np.zeros(1, np.int32), np.full(plan.room(q, v, splits), math.nan, np.float32)
    made, lengths = Options(1 / math.sqrt(d), *window, splits=splits, **options), plan.ALL
    todo = [plan.arguments(q, k, v, o, lse, counter, 2, made, lengths, sink, (), work, scales, turned(v))]
    if splits > 1:
        todo.append(plan.joining(q, v, o, lse, made, lengths, sink, work))
    for kernel, args, grid, block in todo:
        cute.simulate(kernel, arch="sm_90a")[grid, block](*args)
    check(o, lse, *exact(q, k, v, scales, window=window, sink=sink))


def refusal(q, *more, **options):
    with pytest.raises(CuteError) as e:
        entry.check_narrow(q, *more, **options)
    return str(e.value)


def test_what_does_not_fit_is_refused_in_words():
    q, k = random(E4M3, (2, 5, 4, 64), (2, 7, 2, 64))
    none, table = (None, None, None), np.zeros((2, 1), np.int32)
    assert "cu_seqlens_k is given" in refusal(q, k, k, table[0], None, none)
    assert "page_table is given" in refusal(q, k, k, None, table, none)
    assert "192 is not for 8 bits" in refusal(np.zeros((1, 1, 1, 192), E4M3), k, k, None, None, none)
    assert "its shape must be (2, 2)" in refusal(q, k, k, None, None, (np.zeros((2, 4), np.float32), None, None))
    bf16 = q.astype(BF16)
    assert "it is for float8_e4m3fn alone" in refusal(bf16, k, k, None, None, (None, None, np.zeros((2, 2))))


# ---------------------------------------------------------------- on a GPU


SHAPES = [  # batch, queries, keys, heads, KV heads, d, window, splits
    (2, 333, 777, 4, 2, 128, ALL, 0),
    (1, 512, 1000, 2, 2, 128, CAUSAL, 0),
    (2, 500, 300, 3, 1, 64, ALL, 0),
    (1, 300, 300, 2, 2, 256, CAUSAL, 0),
    (3, 1, 3000, 8, 2, 128, ALL, 3),  # and keys that are not used
]


@pytest.mark.gpu
@pytest.mark.parametrize("batch, queries, keys, heads, kv_heads, d, window, splits", SHAPES, ids=str)
def test_ragged_problems_on_a_gpu(batch, queries, keys, heads, kv_heads, d, window, splits):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels import flash_attention

    arrays = random(E4M3, (batch, queries, heads, d), (batch, keys, kv_heads, d), (batch, keys, kv_heads, d))
    scales, used, more = scales_of(batch, kv_heads), None, {}
    if splits:
        used = np.array([3000, 17, 1000], np.int32)
        more["seqused_k"] = torch.from_numpy(used).cuda()
        for b, n in enumerate(used):
            arrays[1][b, n:] = arrays[2][b, n:] = math.nan
    q, k, v = (torch.from_numpy(x.view(np.uint8)).cuda().view(torch.float8_e4m3fn) for x in arrays)
    by = dict(zip(("q_descale", "k_descale", "v_descale"), (torch.from_numpy(s).cuda() for s in scales)))
    o, lse = flash_attention(q, k, v, window=window, return_lse=True, num_splits=splits, **by, **more)
    check(o.float().cpu().numpy(), lse.cpu().numpy(), *exact(*arrays, scales, used, window=window))
