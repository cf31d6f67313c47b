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
    found = raced(contenders(q, k, v, causal), "cudnn", options)
    name = f"{options.dtype} {name_of(d, batch, rows, causal, options)}"
    return reported(name, found, "ours", "cuDNN", flops(d, batch, rows, causal, options))


def raced(launches, baseline, options):
    """A comparison in turns of the length, and for the rounds, that were asked for."""
    pace = Pace(turn=options.turn, least=6 * options.turn, most=20 * options.turn)
    return compare(launches, baseline=baseline, rounds=options.rounds, pace=pace)


def flops(d, batch, rows, causal, options):
    """What an attention computes: two products, of which a causal one needs half."""
    return 4 * batch * options.heads * rows**2 * d / (2 if causal else 1)


def name_of(d, batch, rows, causal, options):
    return f"d{d}, {batch} x {options.heads} x {rows}, {'causal' if causal else 'all'}"


def reported(name, found, ours, of, work):
    """Print a comparison's ratio and rates, and give its figures, TFLOP/s, and details, by name."""
    ratio, interval = found.speed(ours)
    rates = {who: [work / us * 1e-6 for us in t.samples] for who, t in found.timings.items()}
    said = ", ".join(f"{who} {statistics.median(x):.0f}" for who, x in rates.items())
    print(f"{name}: {ratio:.3f} of {of} ({interval.low:.3f} to {interval.high:.3f}); TFLOP/s: {said}", flush=True)
    figures = {
        f"{name}: {who}": Figure(statistics.median(x), "TFLOP/s", True, (min(x), max(x)), who != ours)
        for who, x in rates.items()
    }
    return figures, {name: {**found.as_dict(), "ratio": ratio, "ratio_interval": [interval.low, interval.high]}}


def every(measured, options):
    """The result of `measured` for all head dimensions and sizes, without a mask and with a causal one."""
    figures, details = {}, {}
    cases = [(d, *size, causal) for d in options.dims for size in options.sizes for causal in (False, True)]
    # The first is measured twice: in the first seconds of a process ours takes up to 9 % longer than later on, cuDNN
    # does not (H200; the same tensors a few seconds later: 0.96, then 1.05, 1.06, 1.06 of cuDNN).
    for case in [cases[0], *cases]:
        more, detail = measured(*case, options)
        figures |= more
        details |= detail
    return Result(figures, {"comparisons": details})


def run(options):
    return every(measured, options)


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
