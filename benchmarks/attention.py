# SPDX-License-Identifier: Apache-2.0
"""The attention forward of numba_cute.kernels against cuDNN, as torch's scaled_dot_product_attention calls it.

Interleaved in one process, sustained: the GPU is kept busy first, and then both take turns without a pause.

    python -m benchmarks attention                      bf16, 16 heads: half a minute
    python -m benchmarks attention --dims 128 --sizes 4x4096 --rounds 9
    python -m benchmarks attention --kv-heads 4 --dtype float16
"""

import argparse
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks import harness
from benchmarks.harness import Entry, Figure, Result
from numba_cute.kernels import flash_attention
from numba_cute.testing import Pace, compare


def contenders(q, k, v, causal):
    """Launches of ours and of cuDNN's, on the same tensors (batch, rows, heads, d)."""
    out = torch.empty_like(q)
    turned = [x.transpose(1, 2) for x in (q, k, v)]
    grouped = q.shape[2] != k.shape[2]

    def ours():
        flash_attention(q, k, v, causal=causal, out=out)

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(*turned, is_causal=causal, enable_gqa=grouped)

    return {"ours": ours, "cudnn": cudnn}


def size(text):
    """Batch and rows from "4x4096"."""
    parts = text.split("x")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"{text}: BATCHxROWS")
    return int(parts[0]), int(parts[1])


def measured(d, batch, rows, causal, options):
    dtype = getattr(torch, options.dtype)
    q = torch.randn(batch, rows, options.heads, d, device="cuda", dtype=dtype)
    k, v = (torch.randn(batch, rows, options.kv_heads or options.heads, d, device="cuda", dtype=dtype) for _ in "kv")
    pace = Pace(turn=options.turn, least=1.0, most=3.0)
    found = compare(contenders(q, k, v, causal), baseline="cudnn", rounds=options.rounds, pace=pace)
    work = 4 * batch * options.heads * rows**2 * d / (2 if causal else 1)
    name = f"{options.dtype} d{d}, {batch} x {options.heads} x {rows}, {'causal' if causal else 'all'}"
    ratio, interval = found.speed("ours")
    print(f"{name}: {ratio:.3f} of cuDNN ({interval.low:.3f} to {interval.high:.3f})", flush=True)
    rates = {who: [work / us * 1e-6 for us in t.samples] for who, t in found.timings.items()}
    figures = {
        f"{name}: {who}": Figure(statistics.median(x), "TFLOP/s", True, (min(x), max(x)), who != "ours")
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
    parser.add_argument("--sizes", type=size, nargs="+", default=[(4, 4096), (1, 16384)], help="BATCHxROWS")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--kv-heads", type=int, help="heads of keys and values; default: as many")
    parser.add_argument("--dtype", choices=("bfloat16", "float16"), default="bfloat16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.15, help="seconds")


ENTRY = Entry("attention", "the attention forward against cuDNN", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
