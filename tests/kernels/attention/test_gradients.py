# SPDX-License-Identifier: Apache-2.0
"""Gradients of `flash_attention` with all its options, on tensors of the CPU in a simulation, against float64."""

import math

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.attention import gradients
from numba_cute.kernels.attention.options import capped
from numba_cute.kernels.attention.plan import Lengths, Options

torch = pytest.importorskip("torch")

SLOW = pytest.mark.slow
F16 = torch.float16


pytestmark = pytest.mark.usefixtures("simulated")


def normal(*shape):
    return torch.randn(shape).to(F16)


def reference(q, k, v, causal=False, window=(None, None), softcap=None, bent=None, sink=None, scale=None):
    """O and the logs of one sequence, (rows, heads, d), in float64."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = torch.einsum("qhd,khd->hqk", q, k) * (scale or q.shape[-1] ** -0.5)
    s = softcap * torch.tanh(s / softcap) if softcap else bent(s) if bent else s
    row, key = torch.arange(q.shape[0])[:, None], torch.arange(k.shape[0])[None]
    own, (left, right) = row + k.shape[0] - q.shape[0], (window[0], 0) if causal else window
    seen = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool)
    seen &= key >= own - left if left is not None else seen
    seen &= key <= own + right if right is not None else seen
    s = s.masked_fill(~seen, -math.inf)
    if sink is not None:
        s = torch.cat([s, sink[:, None, None].expand(*s.shape[:2], 1)], -1)
    lse = torch.logsumexp(s, -1)
    none = lse == -math.inf
    p = torch.exp(s - torch.where(none, 0.0, lse)[..., None]).masked_fill(none[..., None], 0.0)
    return torch.einsum("hqk,khd->qhd", p[..., : k.shape[0]], v), lse


def bend(s, batch, head, query, key, slope):
    return cute.math.tanh(s * 0.5) * 2.0 + cute.Float32(query - key) * slope


def bent(s):
    return torch.tanh(s / 2) * 2 + (torch.arange(s.shape[1])[:, None] - torch.arange(s.shape[2])) * 0.1


OPTIONS = {
    "none": {},
    "causal, deterministic": {"causal": True, "deterministic": True},
    "a window": {"window": (20, 9)},
    "a left side": {"causal": True, "window": (70, None)},
    "softcap": {"softcap": 2.0},
    "a function, causal": {"score": bend, "aux": (0.1,), "causal": True},
    "a sink, a window, logs": {"sink": True, "window": (20, 9), "logs": True},
    "a sink, logs": {"sink": True, "logs": True},
}
SEQUENCES = (5, 150), (0, 7), (70, 20), (130, 130)


def check(options, lengths, d=64, dv=64, heads=2, kv_heads=1, scattered=False):
    """Compare the results and all gradients with float64's, sequence by sequence. scattered: whether the sequences lie
    one after the other, with rows behind them that are nobody's, NaN."""
    options = dict(options)
    logs, with_sink = options.pop("logs", False), options.pop("sink", False)
    (queries, keys), beyond = (sum(x) for x in zip(*lengths)), 3 * scattered
    q, k, v = (
        normal(queries + beyond, heads, d),
        normal(keys + beyond, kv_heads, d),
        normal(keys + beyond, kv_heads, dv),
    )
    sink = torch.randn(heads) if with_sink else None
    if scattered:
        for t in (q, k, v):
            t[-beyond:] = math.nan
        at = [torch.tensor([0, *np.cumsum(x)], dtype=torch.int32) for x in zip(*lengths)]
        how = {"cu_seqlens_q": at[0], "cu_seqlens_k": at[1], "max_seqlen_q": max(n for n, _ in lengths)}
    mine = [t.clone().requires_grad_() for t in (q, k, v, *([sink] if with_sink else []))]
    exact = [t.detach().double().requires_grad_() for t in mine]
    given = mine[:3] if scattered else [t[None] for t in mine[:3]]
    o, lse = kernels.flash_attention(
        *given, return_lse=True, sink=mine[3] if with_sink else None, **options, **(how if scattered else {})
    )
    o, lse = (o[:queries], lse[:, :queries]) if scattered else (o[0], lse[0])
    exactly = {n: x for n, x in options.items() if n in ("causal", "window", "softcap")}
    exactly |= {"bent": bent} if "score" in options else {}
    found, first, start = [], 0, 0
    for n, m in lengths:
        rows, of = slice(first, first + n), slice(start, start + m)
        given = exact[0][rows], exact[1][of], exact[2][of]
        found.append(reference(*given, sink=exact[3] if with_sink else None, **exactly))
        first, start = first + n, start + m
    right, wanted_logs = torch.cat([x for x, _ in found]), torch.cat([x for _, x in found], -1)
    do, seen = normal(*o.shape), torch.isfinite(wanted_logs)
    dlse = torch.randn(lse.shape) if logs else torch.zeros(lse.shape)
    loss = (o * do).sum() + (torch.where(seen, lse, 0.0) * dlse).sum() * logs
    exact_loss = (right * do.double()).sum() + (torch.where(seen, wanted_logs, 0.0) * dlse.double()).sum()
    for got, want in zip(
        (o, *torch.autograd.grad(loss, mine)), (right, *torch.autograd.grad(exact_loss, exact)), strict=True
    ):
        assert (got.double() - want).norm() <= (0.006 if got.dtype == torch.float32 else 0.001) * want.norm()


@SLOW
@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_of_options_are_those_of_float64(name):
    check(OPTIONS[name], [(70, 150)])


@SLOW
@pytest.mark.parametrize("name", ["none", "causal, deterministic", "a window", "softcap", "a sink, logs"])
def test_sequences_of_their_own_lengths_have_gradients(name):
    check(OPTIONS[name], SEQUENCES, scattered=True)


@SLOW
@pytest.mark.parametrize(
    ("dims", "options"), [((96, 96), {}), ((40, 72), {"softcap": 3.0}), ((128, 128), {"window": (20, 9)}),
                          ((192, 128), {"window": (20, 9)}), ((128, 128), {"causal": True, "deterministic": True})]
)  # fmt: skip
def test_heads_of_other_dimensions_have_gradients(dims, options):
    check(options, [(70, 150)], *dims)


@SLOW
def test_keys_that_a_sequence_has_not_are_not_seen():
    q, k, v = normal(2, 5, 1, 64), normal(2, 70, 1, 64), normal(2, 70, 1, 64)
    used = torch.tensor([70, 9], dtype=torch.int32)
    k[1, 9:], v[1, 9:] = math.nan, math.nan
    mine = [t.clone().requires_grad_() for t in (q, k, v)]
    exact = [t.double().requires_grad_() for t in (q, k.nan_to_num(), v.nan_to_num())]
    o, do = kernels.flash_attention(*mine, seqused_k=used), normal(2, 5, 1, 64)
    right = torch.stack([reference(exact[0][i], exact[1][i, :n], exact[2][i, :n])[0] for i, n in enumerate((70, 9))])
    for got, want in zip(torch.autograd.grad(o, mine, do), torch.autograd.grad(right, exact, do.double()), strict=True):
        assert (got.double() - want).norm() <= 0.001 * want.norm()


@SLOW
@pytest.mark.parametrize("options", [{}, {"window": (4, 2), "softcap": 2.0}, {"sink": torch.zeros(1)}], ids=str)
def test_it_is_traced_whole(options):
    mine = [normal(1, 8, 1, 64).requires_grad_() for _ in range(3)]
    call = lambda q, k, v: kernels.flash_attention(q, k, v, **options) * 2  # noqa: E731
    traced = torch.compile(call, fullgraph=True, backend="aot_eager")
    for f in (traced, call):
        o = f(*mine)
        found = torch.autograd.grad(o.sum(), mine)
        if f is traced:
            first = (o, *found)
    assert all(torch.equal(x, y) for x, y in zip(first, (o, *found)))


@pytest.mark.parametrize(
    "options", [{"page_table": torch.zeros(1, 1, dtype=torch.int32)}, {"out": normal(1, 8, 1, 64)}]
)
def test_options_without_gradients_are_refused(options):
    q = normal(1, 8, 1, 64).requires_grad_()
    with pytest.raises(CuteError, match="flash_attention: a gradient is asked for, with (page_table|out), of which"):
        kernels.flash_attention(q, q, q, seqused_k=torch.tensor([8], dtype=torch.int32), **options)


def test_what_a_function_reads_has_no_gradient():
    q, slopes = normal(1, 8, 1, 64), torch.ones(1, requires_grad=True)
    with pytest.raises(CuteError, match="a tensor of aux requires a gradient"):
        kernels.flash_attention(q, q, q, score=bend, aux=(slopes,))


CU = np.array([0, 100, 256], np.int32)
FORMS = {
    "a window": (Options(1.0, 3, 4), gradients.More()),
    "softcap": (Options(1.0, score=capped), gradients.More(aux=(cute.Float32(2.0),))),
    "softcap, causal, lengths": (
        Options(1.0, None, 0, capped, most_queries=256), gradients.More(Lengths(CU, CU), aux=(cute.Float32(2.0),))
    ),
}  # fmt: skip


@SLOW
@pytest.mark.parametrize("dims", gradients.DIMS)
@pytest.mark.parametrize("name", FORMS)
def test_the_kernels_of_options_hold_all_in_registers(dims, name):
    options, more = FORMS[name]
    q, o, lse = np.zeros((1, 256, 2, dims[0])), np.zeros((1, 256, 2, dims[1])), np.zeros((1, 2, 256), np.float32)
    q, o = (x.astype(cute.BFloat16.numpy) for x in (q, o))
    work = [np.zeros(s, np.float32) for s in gradients.room(q, None, False)]
    for launch in gradients.launches((q, q, o, o, o, lse, q, q, o), work, sms=1, options=options, more=more)[1:]:
        made = cute.compile(launch.kernel, launch.args, arch="sm_90a")
        assert (made.resources.spill_stores, made.resources.spill_loads, made.resources.local) == (0, 0, 0)
