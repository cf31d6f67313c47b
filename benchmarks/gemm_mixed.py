# SPDX-License-Identifier: Apache-2.0
"""Activations by weights of 4 bits: beside cuBLAS with weights of 16 bits, and, where tokens are few, beside a copy of
as many bytes as the packed weights and scales have, interleaved in one process.

    python -m benchmarks gemm_mixed
    python -m benchmarks gemm_mixed --sizes 16x8192x8192 4096x4096x4096 --zeros --rounds 7
    python -m benchmarks gemm_mixed --warps       the kernel for sm_80 too, as that GPU would cut it, on this one's SMs
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]
import numba_cute as cute  # noqa: E402
from benchmarks import contests, harness  # noqa: E402
from benchmarks.contests import contest  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from numba_cute.kernels.gemm import launches, mixed, mixed_warps_plan, pack  # noqa: E402

SIZES = [
    "16x8192x8192",
    "16x14336x4096",
    "64x8192x8192",
    "128x8192x8192",
    "256x8192x8192",
    "512x4096x4096",
    "4096x4096x4096",
    "8192x8192x8192",
]


def problem(m, n, k, zeros):
    """X, the packed weights, wide ones, and C."""
    x = torch.randn(m, k, device="cuda").bfloat16()
    w = torch.randint(-8, 8, (n, k), device="cuda", dtype=torch.int8)
    scales = (torch.rand(n, math.ceil(k / 128), device="cuda") + 0.1).bfloat16()
    zero = torch.randint(-8, 8, scales.shape, device="cuda", dtype=torch.int8) if zeros else None
    wide = (w.float() * scales.float().repeat_interleave(128, 1)[:, :k]).bfloat16()
    return x, pack.int4_weights(w, scales, zero), wide, torch.empty(m, n, device="cuda", dtype=torch.bfloat16)


def launch(given, cut=None):
    """A prepared launch of ours, cut so, or as is thought best."""
    x, weights, _, c = given
    work = mixed.plan(x, weights.words, weights.factors, c, weights.middle, weights.shape[0], cut)
    return cute.launch(work.kernel, grid=work.grid, block=work.block, cluster=work.cluster, pdl=work.pdl).prepare(
        *work.given()
    )


def of_warps(given):
    """The cut of the kernel for sm_80 on that GPU, of so many SMs as this one has."""
    x, weights, *_ = given
    kinds, target = weights.factors.shape[2:4], cute.target("sm_80")
    return mixed_warps_plan.cut_of(x.shape[0], *weights.shape, kinds, launches.sms_here(), target)


def contenders(sets, cuts, warps=False):
    """By name, a launch for each set of tensors; ours also cut otherwise, and, of `warps`, by mma.sync."""
    out = {"cublas": [lambda x=x, w=w, c=c: torch.matmul(x, w.T, out=c) for x, _, w, c in sets]}
    out["ours"] = [launch(one) for one in sets]
    out["its entry"] = [lambda x=x, w=w, c=c: mixed.mixed_gemm(x, w, out=c) for x, w, _, c in sets]
    if warps:
        out["by warps"] = [launch(one, of_warps(one)) for one in sets]
    for cut in cuts:
        out["cut " + ",".join(map(str, cut))] = [launch(one, mixed.Cut(*cut)) for one in sets]
    if sets[0][0].shape[0] <= 256:  # a copy reads and writes half of the bytes each
        half = sum(x.nbytes for x in sets[0][1][:2]) // 2
        memory = [[torch.empty(half, device="cuda", dtype=torch.uint8) for _ in range(2)] for _ in sets]
        out["copy"] = [lambda a=a, b=b: b.copy_(a) for a, b in memory]
    return out


def run(options):
    figures, details = {}, []
    for text in options.sizes:
        size = tuple(int(x) for x in text.split("x"))
        found = contest(
            lambda i, size=size: problem(*size, options.zeros), lambda one: sum(x.nbytes for x in one[1][:2]),
            lambda sets: contenders(sets, options.cuts, options.warps), "cublas", options,
        )  # fmt: skip
        medians = {x: float(np.median(t.samples)) for x, t in found.timings.items()}
        told = {x: (round(us, 1), round(medians["cublas"] / us, 3)) for x, us in medians.items()}
        print(text, told, found.failed or "", flush=True)
        for x, t in found.timings.items():
            figures[f"{text}: {x}"] = contests.figure(t.samples, "us", False, x in ("cublas", "copy"))
        if "copy" in medians:
            figures[f"{text}: share of the copy rate"] = Figure(medians["copy"] / medians["ours"], "", True)
        details.append({"size": text, "zeros": options.zeros, "found": found.as_dict()})
    return Result(figures, {"results": details})


def arguments(parser):
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="tokens x N x K")
    parser.add_argument("--warps", action="store_true", help="the kernel for sm_80 too")
    parser.add_argument("--zeros", action="store_true", help="with zero points")
    contests.arguments(parser, "tokens of a tile,CTAs that share them,parts of K,K tiles of a stage")


ENTRY = Entry("gemm_mixed", "weights of 4 bits against cuBLAS and the copy rate", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
