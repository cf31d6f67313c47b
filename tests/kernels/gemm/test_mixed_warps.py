# SPDX-License-Identifier: Apache-2.0
"""The GEMM whose weights have 4 bits, by mma.sync: right on ragged shapes and in parts of K, of the same packed weights
as Hopper's, without spills for any of its targets."""

import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.gemm import mixed, mixed_warps_plan, pack
from numba_cute.kernels.gemm.mixed_warps_plan import CUTS, Cut, cut_of, fitted, form_of

from . import problems

try:
    import torch
except ImportError:
    torch = None

BF16, F16 = cute.BFloat16, cute.Float16
SLOW = pytest.mark.slow
LEAST, WIDE = Cut((16, 128)), Cut((128, 256), (2, 4), 1)
TARGETS = ("sm_80", "sm_86", "sm_89", "sm_120a", "sm_100a")


@pytest.mark.parametrize(
    ("shape", "dtype", "cut", "given"),
    [
        ((5, 72, 136), BF16, LEAST, {}),
        ((5, 24, 200), F16, Cut((16, 128), splits=3), {"group_size": 32, "zeros": True, "signed": False}),
        pytest.param((1, 8, 8), F16, LEAST, {}, marks=SLOW),
        pytest.param((5, 72, 520), BF16, LEAST, {"group_size": 256, "zeros": True}, marks=SLOW),
        pytest.param((5, 72, 304), F16, LEAST, {"group_size": -1}, marks=SLOW),
        pytest.param((20, 200, 264), BF16, Cut((32, 128), splits=2), {"group_size": 64}, marks=SLOW),
        pytest.param((70, 264, 192), F16, Cut((64, 128), splits=3), {}, marks=SLOW),
        pytest.param((40, 24, 520), BF16, Cut((32, 128), (2, 2)), {"zeros": True}, marks=SLOW),
        pytest.param((130, 72, 160), F16, Cut((128, 128)), {"group_size": 64, "zeros": True}, marks=SLOW),
        pytest.param((130, 72, 72), BF16, WIDE, {"group_size": 32}, marks=SLOW),  # of 256 rows half are packed
        pytest.param((17, 264, 136), F16, WIDE, {"zeros": True, "signed": False}, marks=SLOW),
        pytest.param((33, 136, 72), BF16, Cut((16, 128), (1, 2)), {}, marks=SLOW),
        pytest.param((33, 264, 72), BF16, Cut((32, 256), (1, 8)), {"zeros": True}, marks=SLOW),
    ],
    ids=str,
)
def test_weights_are_widened_on_their_way(shape, dtype, cut, given):
    m, n, k = shape
    x, weights, c, want = problems.mixed(m, n, k, dtype, **given)
    mixed.plan(x, weights.words, weights.factors, c, weights.middle, n, cut).simulate(arch="sm_80")
    assert not len(problems.wrong(c, want, 8 * k))


def compiled(cut, target, dtype, zeros, group_size):
    n, k = 512, 1024
    x, weights, c, _ = problems.mixed(cut.tile[0], n, k, dtype, zeros=zeros, group_size=group_size)
    form = form_of(cut, *weights.factors.shape[2:4])
    cut = fitted(cut, form, k, cute.target(target))  # NumPy's arrays are an sm_80's
    return mixed.plan(x, weights.words, weights.factors, c, weights.middle, n, cut).compile(arch=target)


@SLOW
@pytest.mark.parametrize("target", ["sm_80", "sm_120a"])
@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_nothing_is_spilled(cut, target):
    for given in ((BF16, True, 32), (F16, False, 128)):
        r = compiled(cut, target, *given)
        assert (r.resources.spill_stores, r.resources.local, r.notes) == (0, 0, ()), given
        assert r.resources.registers * cut.threads * cut.ctas <= 65536


def test_few_tokens_have_small_tiles_and_share_k():
    for target in map(cute.target, TARGETS):
        few, many = (cut_of(m, 8192, 8192, (1, 1), 108, target) for m in (1, 4096))
        assert few.tile == (16, 128) and few.splits > 1
        assert many.tile[0] == 128 and many.splits == 1
        assert min(few.stages, many.stages) >= mixed_warps_plan.FEWEST_STAGES


@pytest.mark.parametrize(
    ("cut", "says"),
    [
        (Cut((24, 128)), "a warp has a multiple of 16 tokens"),
        (Cut((16, 64)), "the rows, which are a multiple of 128"),
        (Cut((16, 256), (1, 8)), "its threads are 32 to 256, and copy the same part"),
        (Cut((16, 128), splits=9), "K has 8 tiles of 64, one for each split or more"),
        (Cut((128, 256), (2, 4), 1, stages=9), "9 stages of 25088 bytes; 1 CTAs of sm_86 have room for 4"),
        (Cut((16, 128), ctas=0), "1 CTA or more shares an SM"),
    ],
)
def test_a_cut_that_does_not_fit_is_refused_in_words(cut, says):
    with pytest.raises(CuteError, match=says):
        fitted(cut, form_of(cut, 1, 1), 512, cute.target("sm_86"))


# ---------------------------------------------------------------- the entry, with torch


@pytest.mark.skipif(torch is None, reason="needs torch")
@pytest.mark.parametrize("arch", ["sm_86", *(pytest.param(a, marks=SLOW) for a in ("sm_80", "sm_120", "sm_103a"))])
def test_the_entry_is_right_on_every_family(arch):
    torch.manual_seed(0)
    x, w = torch.randn(3, 136).bfloat16(), torch.randint(-8, 8, (24, 136), dtype=torch.int8)
    scales = torch.rand(24, 2).bfloat16()
    weights = kernels.int4_weights(w, scales)
    wide = (w * scales.repeat_interleave(128, 1)[:, :136]).bfloat16().double()
    with cute.simulation(arch, checks=False, sms=8):
        y = kernels.mixed_gemm(x, weights)
    assert (y.double() - x.double() @ wide.T).abs().max() <= 2.0**-7 * y.abs().max()


@pytest.mark.skipif(torch is None, reason="needs torch")
def test_what_this_family_has_not_is_refused_by_name():
    x, w = torch.zeros(3, 136).half(), torch.zeros(8, 136, dtype=torch.int8)
    weights = kernels.int4_weights(w, torch.ones(8, 2).half())
    with cute.simulation("sm_86"):
        with pytest.raises(CuteError, match="cp.async takes rows that are multiples of 16 bytes"):
            kernels.mixed_gemm(torch.zeros(3, 140).half()[:, :136], weights)
        with pytest.raises(CuteError, match="cut is .*: give a Cut of mixed_warps_plan"):
            mixed.plan(x, weights.words, weights.factors, x[:, :8], weights.middle, 8, mixed.Cut(16))
    with cute.simulation("sm_110a"), pytest.raises(CuteError, match="mixed_gemm: its kernels are for .* is sm_110a"):
        kernels.mixed_gemm(x, weights)


# ---------------------------------------------------------------- on whatever GPU there is


@pytest.mark.gpu
@pytest.mark.parametrize("cut", [*CUTS, Cut((16, 128), splits=5), Cut((64, 128), splits=3)], ids=str)
@pytest.mark.parametrize(("dtype", "group_size", "zeros"), [("bfloat16", 128, False), ("float16", 32, True)])
def test_it_is_right_on_a_gpu(cut, dtype, group_size, zeros):
    pytest.importorskip("torch").manual_seed(0)
    m, n, k, t = 300, 1048, 1016, getattr(torch, dtype)
    w = torch.randint(-8, 8, (n, k), dtype=torch.int8, device="cuda")
    groups = -(-k // group_size)
    scales = (torch.rand(n, groups, device="cuda") + 0.1).to(t)
    zero = torch.randint(-8, 8, (n, groups), dtype=torch.int8, device="cuda") if zeros else None
    wider = lambda f: f.float().repeat_interleave(group_size, 1)[:, :k]  # noqa: E731
    wide = ((w.float() - (wider(zero) if zeros else 0)) * wider(scales)).to(t).double()
    x, weights = torch.randn(m, k, device="cuda").to(t), pack.int4_weights(w, scales, zero, group_size=group_size)
    out = torch.full((m, n), torch.nan, device="cuda", dtype=t)
    launch = mixed.plan(x, weights.words, weights.factors, out, weights.middle, n, cut).launcher()
    for _ in range(3):  # counters of splits are zero again
        launch(x, weights.words, weights.factors, out)
        want = x.double() @ wide.T
        bound = want.abs() * (2.0**-8 if dtype == "bfloat16" else 2.0**-11)
        bound += 1e-5 * x.double().norm(dim=1)[:, None] * wide.norm(dim=1)
        assert ((out.double() - want).abs() <= bound).all()
        out.fill_(torch.nan)
