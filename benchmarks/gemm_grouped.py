# SPDX-License-Identifier: Apache-2.0
"""Grouped GEMMs, plain and with scales of blocks, against a dense one of the same rows and torch's grouped one,
interleaved in one process.

    python -m benchmarks gemm_grouped
    python -m benchmarks gemm_grouped --cases 8x1024x4096x4096 8x~1024x4096x4096 --kinds bf16 scaled --rounds 7

A case is groups x rows of each x N x K; ~ before the rows: ragged ones, of that many in the mean. Kinds: bf16, f16,
e4m3, and scaled, which is e4m3 with the scales of blocks. The dense contender multiplies all rows by one matrix: the
example hopper_gemm.py, with plain e4m3 beside scaled.
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
from benchmarks import contests, harness  # noqa: E402
from benchmarks.contests import contest  # noqa: E402
from benchmarks.harness import Entry, Result  # noqa: E402
from numba_cute.kernels.gemm import grouped  # noqa: E402

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402

CASES = ["8x1024x4096x4096", "8x~1024x4096x4096", "1x8192x8192x8192", "64x128x2048x2048"]


def case(text):
    """(groups, rows of each, N, K, whether the rows are ragged)."""
    groups, rows, n, k = text.split("x")
    return int(groups), int(rows.lstrip("~")), int(n), int(k), rows.startswith("~")


def ends_of(groups, rows, ragged, seed):
    """Where groups end, of `rows` rows each, or of that many in the mean."""
    total = groups * rows
    if not ragged:
        return np.arange(rows, total + 1, rows, dtype=np.int32)
    shares = np.random.default_rng(seed).dirichlet(np.full(groups, 8.0))
    ends = np.round(np.cumsum(shares) * total).astype(np.int32)
    ends[-1] = total
    return ends


def tensors(what, kind, seed):
    """The tensors that the launch takes: A, B, ends, the scales if there are any, and C."""
    groups, rows, n, k, ragged = what
    t = gemm_host.torch_type(gemm_host.DTYPES["e4m3" if kind == "scaled" else kind])
    a = torch.randn(groups * rows, k, device="cuda").to(t)
    b = torch.randn(groups, n, k, device="cuda").to(t)
    ends = torch.from_numpy(ends_of(groups, rows, ragged, seed)).cuda()
    scales = ()
    if kind == "scaled":
        scales_a = torch.rand(groups * rows, math.ceil(k / 128), device="cuda") + 0.1
        scales = scales_a, torch.rand(groups, math.ceil(n / 128), math.ceil(k / 128), device="cuda") + 0.1
    c = torch.empty(groups * rows, n, device="cuda", dtype=torch.float16 if kind == "f16" else torch.bfloat16)
    return a, b, ends, *scales, c


def launch(given, cut=None):
    """A launch of ours, cut so, or as is thought best."""
    a, b, ends, *scales, c = given
    run = grouped.plan(a, b, ends, c, *scales, cut=cut).launcher()
    return lambda: run(*given)


def contenders(sets, kind, cuts):
    """By name, a launch for each set of tensors."""
    dtype = gemm_host.DTYPES["e4m3" if kind == "scaled" else kind]
    out = {"dense": [hopper_gemm.launcher(x[0], x[1][0], x[-1], dtype) for x in sets]}
    out["ours"] = [launch(x) for x in sets]
    for tile_n, cluster_m, cluster_n, *draws in cuts:
        cut = grouped.Cut(tile_n, (cluster_m, cluster_n), bool(draws))
        out[f"{tile_n} {cluster_m}x{cluster_n}{', drawn' if draws else ''}"] = [launch(x, cut) for x in sets]
    if hasattr(torch, "_grouped_mm") and kind == "bf16":
        out["torch"] = [lambda x=x: torch._grouped_mm(x[0], x[1].transpose(1, 2), x[2]) for x in sets]
    return out


def run(options):
    figures, details = {}, []
    for text in options.cases:
        what = groups, rows, n, k, _ = case(text)
        for kind in options.kinds:
            found = contest(
                lambda i, what=what, kind=kind: tensors(what, kind, i), lambda one: sum(x.nbytes for x in one),
                lambda sets, kind=kind: contenders(sets, kind, options.cuts), "dense", options,
            )  # fmt: skip
            print(text, kind, {x: round(found.speed(x)[0], 3) for x in found.timings}, found.failed or "", flush=True)
            for x, t in found.timings.items():
                rate = [2 * groups * rows * n * k / us * 1e-6 for us in t.samples]
                figures[f"{text} {kind}: {x}"] = contests.figure(rate, "TFLOP/s", True, x in ("dense", "torch"))
            details.append({"case": text, "kind": kind, "found": found.as_dict()})
    return Result(figures, {"results": details})


def arguments(parser):
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--kinds", nargs="+", choices=("bf16", "f16", "e4m3", "scaled"), default=["bf16", "scaled"])
    contests.arguments(parser, "columns,CTAs along M,along N as 256,2,1, and perhaps ,1 for tiles that are drawn")


ENTRY = Entry("gemm_grouped", "grouped and block-scaled GEMMs against dense ones", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
