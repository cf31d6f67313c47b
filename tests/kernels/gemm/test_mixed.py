# SPDX-License-Identifier: Apache-2.0
"""The GEMM whose weights have 4 bits: packed as its threads read them, right on ragged shapes, without spills."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.gemm import mixed, pack

from ...conftest import _need_gpu
from . import problems

try:
    import torch
except ImportError:
    torch = None

BF16, F16 = cute.BFloat16, cute.Float16
SLOW = pytest.mark.slow


@pytest.fixture(autouse=True)
def _on_gpus_alone(request):
    if request.node.get_closest_marker("gpu"):
        _need_gpu("sm_90a")
        pytest.importorskip("torch")


def cut(tile_n, parts=1, sharers=1):
    return mixed.Cut(tile_n, sharers, parts, 2 if tile_n <= 128 else 1)


def test_words_hold_what_a_thread_multiplies():
    digits = np.random.default_rng(0).integers(0, 16, (256, 256)).astype(np.uint8)
    words = pack.words_of(digits).view(np.uint32).reshape(2, 4, 2, 128, 4)
    for tile, k_tile, group, thread, block in ((0, 0, 0, 0, 0), (1, 3, 1, 77, 2), (0, 2, 1, 127, 3)):
        row = 128 * tile + 64 * group + thread // 32 * 16 + thread % 32 // 4
        column = 64 * k_tile + 16 * block + thread % 4 * 2
        word = int(words[tile, k_tile, group, thread, block])
        for pair in range(4):
            for which in range(2):
                digit = digits[row + 8 * (pair % 2), column + 8 * (pair // 2) + which]
                assert word >> 4 * pair + 16 * which & 15 == digit


def test_numpy_and_torch_pack_alike():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    w, zeros = rng.integers(-8, 8, (136, 200)).astype(np.int8), rng.integers(-8, 8, (136, 2)).astype(np.int8)
    scales = rng.random((136, 2)).astype(np.float16)
    here = pack.int4_weights(w, scales, zeros)
    there = pack.int4_weights(*(torch.from_numpy(x) for x in (w, scales, zeros)))
    assert here.words.shape == (2, 4, 1024) and here.factors.shape == (2, 2, 1, 2, 128)
    assert (here.words == there.words.numpy()).all() and (here.factors == there.factors.numpy()).all()
    assert here[2:] == there[2:] == (0x6408, (136, 200), "float16")


@pytest.mark.parametrize(
    ("w", "scales", "zeros", "says"),
    [
        (
            np.full((8, 16), 8, np.int8),
            np.ones((8, 1), np.float16),
            None,
            "w holds 8 to 8; of int8 weights it must hold -8 to 7",
        ),
        (np.zeros((8, 16), np.uint8), np.ones((8, 1), np.float16), np.full((8, 1), 16), "zeros holds 16 to 16"),
        (np.zeros((8, 16), np.uint8), np.ones((8, 1), np.float16), np.full((8, 1), 0.5), "zeros is float64 .* int8"),
        (np.zeros((8, 16), np.uint8), np.ones((8, 2), np.float16), None, r"its shape must be \(8, 1\)"),
        (np.zeros((8, 16), np.uint8), np.ones((8, 1), np.float32), None, "its elements must be bfloat16 or float16"),
        (np.zeros((12, 16), np.uint8), np.ones((12, 1), np.float16), None, "N must be a multiple of 8"),
    ],
)
def test_weights_that_are_none_are_refused_in_words(w, scales, zeros, says):
    with pytest.raises(cute.CuteError, match=says):
        pack.int4_weights(w, scales, zeros)


@pytest.mark.parametrize("size", [0, 16, 48, 96, 192, -2])
def test_groups_of_other_sizes_are_refused_in_words(size):
    with pytest.raises(cute.CuteError, match=f"group_size {size}: it must be 32, 64, a multiple of 128, or -1"):
        pack.int4_weights(np.zeros((8, 128), np.uint8), np.ones((8, 1), np.float16), group_size=size)


# ---------------------------------------------------------------- other packings


def packed(digits, order):
    """Words of 8 digits along the last mode: at bit 4 * i the digit number order[i] of them."""
    of_words = digits.reshape(*digits.shape[:-1], -1, 8).astype(np.int64)
    words = sum(of_words[..., place] << 4 * i for i, place in enumerate(order))
    return words.astype(np.uint32).view(np.int32)


def of_others(n, k, group_size, shift):
    """Digits (N, K), zero points and scales (N, groups) of one problem. shift: the least zero point."""
    rng = np.random.default_rng(0)
    groups = k // group_size
    digits, zeros = rng.integers(0, 16, (n, k)), rng.integers(shift, 16, (n, groups))
    return digits, zeros, (rng.random((n, groups)) + 0.1).astype(np.float16)


def same(a, b):
    return (a.words == b.words).all() and (a.factors == b.factors).all() and a.shape == b.shape and a.dtype == b.dtype


@pytest.mark.parametrize("size", [32, 64, 128, 256])
def test_awq_s_files_are_read(size):
    digits, zeros, scales = of_others(24, 512, size, 0)
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    made = pack.int4_weights_from_awq(packed(digits.T, order), packed(zeros.T, order), scales.T.copy())
    assert same(made, pack.int4_weights(digits.astype(np.uint8), scales, zeros, group_size=size))


@pytest.mark.parametrize("size", [32, 128])
@pytest.mark.parametrize("version", [1, 2])
def test_gptq_s_files_are_read(size, version):
    digits, zeros, scales = of_others(24, 256, size, 1)
    words = packed(digits, range(8)).T.copy()
    told = packed((zeros - (version == 1)).T, range(8))
    made = pack.int4_weights_from_gptq(words, told, scales.T.copy(), np.arange(256) // size, version=version)
    assert same(made, pack.int4_weights(digits.astype(np.uint8), scales, zeros, group_size=size))


def test_gptq_s_files_that_cannot_be_read_are_refused_in_words():
    digits, zeros, scales = of_others(24, 256, 128, 1)
    words, told = packed(digits, range(8)).T.copy(), packed(zeros.T, range(8))
    given = words, told, scales.T.copy()
    with pytest.raises(cute.CuteError, match="g_idx is not in order .desc_act=True.* multiply x"):
        pack.int4_weights_from_gptq(*given, np.arange(256) % 2)
    with pytest.raises(cute.CuteError, match="qzeros holds 15, which readers of version 1 take for 16 or for 0"):
        pack.int4_weights_from_gptq(*given)
    with pytest.raises(cute.CuteError, match="scales has 3 groups, of which K of 256 must be a multiple"):
        pack.int4_weights_from_gptq(words, told, np.ones((3, 24), np.float16))
    with pytest.raises(cute.CuteError, match="version 3, N 24; version is 1 or 2"):
        pack.int4_weights_from_gptq(*given, version=3)


@SLOW
@pytest.mark.parametrize(
    ("shape", "dtype", "how", "given"),
    [
        ((5, 72, 136), BF16, cut(16), {}),
        ((5, 72, 136), F16, cut(16), {"zeros": True, "signed": False}),
        ((20, 200, 264), BF16, cut(32, parts=2, sharers=2), {"zeros": True}),
        ((70, 264, 192), F16, cut(128, sharers=2), {}),
        ((40, 24, 520), BF16, cut(64, parts=3), {}),
        ((260, 136, 256), BF16, cut(256), {}),
        ((130, 136, 520), F16, cut(256, parts=4), {}),
        ((100, 264, 264), BF16, cut(128, parts=2, sharers=2), {}),
        ((5, 72, 136), BF16, cut(16), {"group_size": 64}),
        ((5, 72, 200), F16, cut(16), {"group_size": 32, "zeros": True}),
        ((20, 200, 264), BF16, cut(32, parts=2, sharers=2), {"group_size": 32}),
        ((260, 136, 160), F16, cut(256), {"group_size": 64, "zeros": True, "signed": False}),
        ((260, 24, 160), BF16, cut(256), {"group_size": 32, "zeros": True}),
        ((5, 72, 520), BF16, cut(16), {"group_size": 256, "zeros": True}),
        ((5, 72, 300 + 4), F16, cut(16), {"group_size": -1}),
    ],
    ids=str,
)
def test_weights_are_widened_on_their_way(shape, dtype, how, given):
    m, n, k = shape
    x, weights, c, want = problems.mixed(m, n, k, dtype, **given)
    mixed.plan(x, weights.words, weights.factors, c, weights.middle, n, how).simulate()
    assert not len(problems.wrong(c, want, 8 * k))


@SLOW
@pytest.mark.parametrize("how", [cut(16, parts=2), cut(64, parts=2), cut(256, sharers=2)], ids=str)
def test_nothing_is_spilled(how):
    x, weights, c, _ = problems.mixed(how.tile_n, 512, 512, BF16)
    found = mixed.plan(x, weights.words, weights.factors, c, weights.middle, 512, how).compile()
    assert found.resources.local == 0 and not found.notes


def test_few_tokens_are_cut_along_k_and_many_share():
    room = {1: 132, 2: 66, 3: 42, 4: 30, 5: 22, 6: 20, 7: 16, 8: 14}.get  # clusters on an H200
    few, some, many = (mixed.cut_of(tokens, 32, 32, 1, room) for tokens in (16, 256, 4096))
    assert few.parts == 3 and few.tile_n == 16 and few.sharers == 1  # 32 clusters of 4 do not fit at once
    assert some.parts > 1 or some.tile_n == 128
    assert many.parts == 1 and many.tile_n == 256 and many.sharers == 2
    for found in (few, some, many):
        assert found.stages >= 3


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (mixed.Cut(48), "tile_n is 16, 32, 64, 128 or 256"),
        (mixed.Cut(16, per_stage=3), "per_stage is 1 or 2"),
        (mixed.Cut(16, sharers=4, parts=4), "a cluster has 1 to 8 CTAs"),
        (mixed.Cut(16, parts=8), "K has 4 blocks of 128, one for each part or more"),
        (mixed.Cut(16, stages=40, per_stage=2), "40 stages of .* has room for"),
        (mixed.Cut(256, per_stage=2, stages=1), "1 stages of .* there must be 2 or more"),
    ],
)
def test_a_cut_that_does_not_fit_is_refused_in_words(how, says):
    with pytest.raises(cute.CuteError, match=says):
        mixed.fitted(how, 4, 1)


# ---------------------------------------------------------------- on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("m", [1, 16, 33, 64, 100, 300, 1000])
@pytest.mark.parametrize(("dtype", "zeros"), [("bfloat16", False), ("float16", True)])
def test_products_are_right_on_a_gpu(m, dtype, zeros):
    n, k = 1048, 1016
    t, rng = getattr(torch, dtype), np.random.default_rng(0)
    w = torch.from_numpy(rng.integers(-8, 8, (n, k)).astype(np.int8)).cuda()
    scales = (torch.rand(n, 8, device="cuda") + 0.1).to(t)
    zero = torch.from_numpy(rng.integers(-8, 8, (n, 8)).astype(np.int8)).cuda() if zeros else None
    x = torch.randn(m, k, device="cuda").to(t)
    less = zero.float().repeat_interleave(128, 1)[:, :k] if zeros else 0
    wide = ((w.float() - less) * scales.float().repeat_interleave(128, 1)[:, :k]).to(t).double()
    out = torch.full((m, n), torch.nan, device="cuda", dtype=t)
    assert mixed.mixed_gemm(x, pack.int4_weights(w, scales, zero), out=out) is out
    want = x.double() @ wide.T
    bound = want.abs() * (2.0**-8 if dtype == "bfloat16" else 2.0**-11)
    bound += 1e-5 * x.double().norm(dim=1)[:, None] * wide.norm(dim=1)
    assert ((out.double() - want).abs() <= bound).all()
