# SPDX-License-Identifier: Apache-2.0
"""Activations by weights of 4 bits: beside cuBLAS with weights of 16 bits, and, where tokens are few, beside a copy of
as many bytes as the packed weights and scales have, interleaved in one process.

    python -m benchmarks gemm_mixed
    python -m benchmarks gemm_mixed --sizes 16x8192x8192 4096x4096x4096 --zeros --rounds 7
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]
import numba_cute as cute  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from numba_cute.kernels.gemm import mixed, pack  # noqa: E402
from numba_cute.testing import Pace, compare  # noqa: E402

L2_TIMES_TWO = 120e6  # bytes: two times the H200's L2
SIZES = ["16x8192x8192", "16x14336x4096", "64x8192x8192", "256x8192x8192", "4096x4096x4096", "8192x8192x8192"]


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
    return cute.launch(work.kernel, grid=work.grid, block=work.block, cluster=work.cluster).prepare(*work.static)


def contenders(sets, cuts):
    """By name, a launch for each set of tensors; ours also in so many parts of K, and so many CTAs on an SM."""
    out = {"cublas": [lambda x=x, w=w, c=c: torch.matmul(x, w.T, out=c) for x, _, w, c in sets]}
    out["ours"] = [launch(one) for one in sets]
    out["its entry"] = [lambda x=x, w=w, c=c: mixed.mixed_gemm(x, w, out=c) for x, w, _, c in sets]
    usual = mixed.cut_of(sets[0][0].shape[0], *sets[0][1].words.shape[:1], *sets[0][1].factors.shape[1:3], 132)
    for parts, resident in cuts:
        stages = mixed.stages_of(usual.tile_n, usual.per_stage, sets[0][1].factors.shape[2], parts, resident)
        cut = usual._replace(parts=parts, resident=resident, stages=stages, sharers=1 if parts > 1 else usual.sharers)
        out[f"{parts} parts, {resident} on an SM"] = [launch(one, cut) for one in sets]
    if sets[0][0].shape[0] <= 256:  # a copy reads and writes half of the bytes each
        half = sum(x.nbytes for x in sets[0][1][:2]) // 2
        memory = [[torch.empty(half, device="cuda", dtype=torch.uint8) for _ in range(2)] for _ in sets]
        out["copy"] = [lambda a=a, b=b: b.copy_(a) for a, b in memory]
    return out


def run(options):
    figures, details = {}, []
    for text in options.sizes:
        m, n, k = (int(x) for x in text.split("x"))
        one = problem(m, n, k, options.zeros)
        count = max(2, math.ceil(L2_TIMES_TWO / sum(x.nbytes for x in one[1][:2])))
        sets = [one] + [problem(m, n, k, options.zeros) for _ in range(count - 1)]
        found = compare(
            contenders(sets, options.cuts), baseline="cublas", rounds=options.rounds,
            pace=Pace(turn=options.turn, least=options.warm, most=2 * options.warm),
        )  # fmt: skip
        medians = {x: float(np.median(t.samples)) for x, t in found.timings.items()}
        print(text, {x: (round(us, 1), round(medians["cublas"] / us, 3)) for x, us in medians.items()}, flush=True)
        for x, t in found.timings.items():
            figures[f"{text}: {x}"] = Figure(
                medians[x], "us", False, (min(t.samples), max(t.samples)), x in ("cublas", "copy")
            )
        if "copy" in medians:
            figures[f"{text}: share of the copy rate"] = Figure(medians["copy"] / medians["ours"], "", True)
        details.append({"size": text, "zeros": options.zeros, "found": found.as_dict()})
        del one, sets
        torch.cuda.empty_cache()
    return Result(figures, {"results": details})


def arguments(parser):
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="tokens x N x K")
    parser.add_argument("--zeros", action="store_true", help="with zero points")
    parser.add_argument(
        "--cuts", nargs="*", default=[], help="others to compare: parts of K,CTAs on an SM as 4,2",
        type=lambda text: tuple(int(x) for x in text.split(",")),
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn", type=float, default=0.25, help="seconds of each turn")
    parser.add_argument("--warm", type=float, default=3.0, help="seconds before")


ENTRY = Entry("gemm_mixed", "weights of 4 bits against cuBLAS and the copy rate", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
