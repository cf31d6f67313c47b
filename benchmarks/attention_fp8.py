# SPDX-License-Identifier: Apache-2.0
"""The attention forward of e4m3 beside this library's of bf16 and cuDNN's, which has none of 8 bits in torch.

python -m benchmarks attention_fp8                      16 heads
python -m benchmarks attention_fp8 --dims 128 --sizes 4x4096 --rounds 9

V is turned along keys by a kernel of its own in each call, which is timed with it.
"""

import statistics

import torch

from benchmarks import attention, harness
from benchmarks.harness import Entry, Figure, Result
from numba_cute.kernels import flash_attention
from numba_cute.testing import Pace, compare


def measured(d, batch, rows, causal, options):
    q, k, v = (torch.randn(batch, rows, options.heads, d, device="cuda", dtype=torch.bfloat16) for _ in "qkv")
    narrow, out = [x.to(torch.float8_e4m3fn) for x in (q, k, v)], torch.empty_like(q)
    both = attention.contenders(q, k, v, causal)
    launches = {
        "e4m3": lambda: flash_attention(*narrow, causal=causal, out=out), "bf16": both["ours"], "cudnn": both["cudnn"]
    }  # fmt: skip
    pace = Pace(turn=options.turn, least=6 * options.turn, most=20 * options.turn)
    found = compare(launches, baseline="bf16", rounds=options.rounds, pace=pace)
    work = 4 * batch * options.heads * rows**2 * d / (2 if causal else 1)
    name = f"d{d}, {batch} x {options.heads} x {rows}, {'causal' if causal else 'all'}"
    ratio, interval = found.speed("e4m3")
    rates = {who: [work / us * 1e-6 for us in t.samples] for who, t in found.timings.items()}
    said = ", ".join(f"{who} {statistics.median(x):.0f}" for who, x in rates.items())
    print(f"{name}: {ratio:.3f} of bf16 ({interval.low:.3f} to {interval.high:.3f}); TFLOP/s: {said}", flush=True)
    figures = {
        f"{name}: {who}": Figure(statistics.median(x), "TFLOP/s", True, (min(x), max(x)), who != "e4m3")
        for who, x in rates.items()
    }
    return figures, {name: {**found.as_dict(), "ratio": ratio, "ratio_interval": [interval.low, interval.high]}}


def run(options):
    figures, details = {}, {}
    for d in options.dims:
        for batch, rows in options.sizes:
            for causal in (False, True):
                more, detail = measured(d, batch, rows, causal, options)
                figures |= more
                details |= detail
    return Result(figures, {"comparisons": details})


def arguments(parser):
    parser.add_argument("--dims", type=int, nargs="+", default=[128, 64, 256], help="head dimensions")
    parser.add_argument("--sizes", type=attention.size, nargs="+", default=[(4, 4096), (1, 16384)], help="BATCHxROWS")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.15, help="seconds")


ENTRY = Entry("attention_fp8", "the attention forward of e4m3 against that of bf16", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
