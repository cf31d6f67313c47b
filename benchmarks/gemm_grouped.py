# SPDX-License-Identifier: Apache-2.0
"""The grouped GEMM against our dense one of the same rows, and torch's grouped one, interleaved in one process.

python -m benchmarks gemm_grouped
python -m benchmarks gemm_grouped --cases 8x1024x4096x4096 8x~1024x4096x4096 --dtypes bf16 e4m3 --rounds 7
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from numba_cute.kernels.gemm import grouped  # noqa: E402
from numba_cute.testing import Pace, compare  # noqa: E402

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402

L2_TIMES_TWO = 120e6
CUTS = {
    "n256": grouped.Cut(256, (1, 1)),
    "m2": grouped.Cut(256, (2, 1)),
    "n2": grouped.Cut(256, (1, 2)),
    "n128": grouped.Cut(128, (1, 1)),
}


def case(text):
    """(groups, rows of each, N, K, whether the rows are ragged) from "8x1024x4096x4096", or ~1024 about that."""
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


def arrays(what, dtype, seed):
    groups, rows, n, k, ragged = what
    t = gemm_host.torch_type(dtype)
    a = torch.randn(groups * rows, k, device="cuda").to(t)
    b = torch.randn(groups, n, k, device="cuda").to(t)
    ends = torch.from_numpy(ends_of(groups, rows, ragged, seed)).cuda()
    return a, b, ends, torch.empty(groups * rows, n, device="cuda", dtype=torch.bfloat16)


def contenders(buffers, dtype):
    """By name, a launch for each set of buffers."""
    result = gemm_host.RESULTS[dtype]
    out = {"dense": [hopper_gemm.launcher(a, b[0], c, dtype) for a, b, _, c in buffers]}
    for name, cut in CUTS.items():
        out[name] = [grouped.launcher(a, b, e, c, dtype, result, cut) for a, b, e, c in buffers]
    if hasattr(torch, "_grouped_mm") and dtype.width == 16:
        out["torch"] = [lambda a=a, b=b, e=e: torch._grouped_mm(a, b.transpose(1, 2), e) for a, b, e, _ in buffers]
    return out


def run(options):
    figures, details = {}, []
    for text in options.cases:
        what = groups, rows, n, k, _ = case(text)
        for name in options.dtypes:
            dtype = gemm_host.DTYPES[name]
            nbytes = (groups * rows * k + groups * n * k) * dtype.width // 8 + groups * rows * n * 2
            buffers = [arrays(what, dtype, i) for i in range(max(2, math.ceil(L2_TIMES_TWO / nbytes)))]
            found = compare(
                contenders(buffers, dtype), baseline="dense", rounds=options.rounds, keep_going=True,
                pace=Pace(turn=options.turn, least=options.warm, most=2 * options.warm),
            )  # fmt: skip
            print(text, name, {x: round(found.speed(x)[0], 4) for x in found.timings}, found.failed, flush=True)
            for x, t in found.timings.items():
                rate = [2 * groups * rows * n * k / us * 1e-6 for us in t.samples]
                figures[f"{text} {name}: {x}"] = Figure(
                    float(np.median(rate)), "TFLOP/s", True, (min(rate), max(rate)), x in ("dense", "torch")
                )
            details.append({"case": text, "dtype": name, "found": found.as_dict()})
            del buffers
            torch.cuda.empty_cache()
    return Result(figures, {"results": details})


def arguments(parser):
    parser.add_argument("--cases", nargs="+", default=["8x1024x4096x4096", "8x~1024x4096x4096", "64x128x2048x2048"])
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "e4m3"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn", type=float, default=0.25)
    parser.add_argument("--warm", type=float, default=3.0, help="seconds")


ENTRY = Entry("gemm_grouped", "the grouped GEMM against the dense one and torch's", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
