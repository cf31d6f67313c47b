# SPDX-License-Identifier: Apache-2.0
"""Attention's backward pass against cuDNN's (torch's scaled_dot_product_attention, that backend, the backward alone).

The contenders take turns in one process; what counts is the median of the rounds' ratios (docs/testing.md). FLOPs: 2.5
times those of the forward pass, half of them where it is causal. All launches of a pass count.

    python -m benchmarks attention_backward
    python -m benchmarks attention_backward --shapes 4x16x4096x128 --rounds 7 --warm 3
"""

import argparse
import itertools
import math
import statistics
import sys
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
import numba_cute as cute  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from numba_cute.kernels.attention import gradients  # noqa: E402
from numba_cute.testing import Pace, compare  # noqa: E402

SHAPES = [
    "4x16x4096x128", "1x16x16384x128", "4x16x4096x64", "1x16x16384x64", "4x16x4096x256", "1x16x16384x256"
]  # fmt: skip


def contenders(shape, causal, dtype):
    """A pass of ours and of cuDNN's on the same tensors, and how far they are apart: dq, dk and dv."""
    batch, heads, rows, d = shape
    q, k, v, do = (torch.randn(batch, rows, heads, d, device="cuda", dtype=dtype) for _ in range(4))
    given = [x.transpose(1, 2).detach().requires_grad_() for x in (q, k, v)]
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=causal)
    his = lambda: torch.autograd.grad(o, given, do.transpose(1, 2), retain_graph=True)  # noqa: E731
    forward = torch.ops.aten._scaled_dot_product_cudnn_attention
    lse = forward(*[x.detach() for x in given], None, True, 0.0, causal, False)[1].reshape(batch, heads, rows)
    out = o.detach().transpose(1, 2).contiguous()
    results = [torch.empty_like(x) for x in (q, k, v)]
    types = {True: torch.float32, False: torch.int32}
    work = [torch.empty(s, device="cuda", dtype=types[len(s) > 1]) for s in gradients.room(q)]
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    arrays = (q, k, v, out, do, lse.contiguous(), *results)
    todo = gradients.launches(arrays, work, causal=causal, scale=1 / math.sqrt(d), sms=sms)
    ready = [cute.launch(of.kernel, grid=of.grid, block=of.block, pdl=of.overlaps).prepare(*of.args) for of in todo]

    def ours():
        for launch in ready:
            launch()

    ours()
    apart = [
        float((a.float() - b.transpose(1, 2).float()).norm() / b.float().norm())
        for a, b in zip(results, his(), strict=True)
    ]
    return {"ours": ours, "cudnn": his}, apart, (arrays, work)


def benchmark(shape, causal, options):
    """The rates of both in each round, the ratio, and the GPU's clock and power."""
    launches, apart, _kept = contenders(shape, causal, getattr(torch, options.dtype))
    batch, heads, rows, d = shape
    flops = 2.5 * 4 * batch * heads * rows * rows * d / (2 if causal else 1)
    pace = Pace(turn=options.turn, least=options.warm, most=2 * options.warm)
    found = compare(launches, baseline="cudnn", regime="sustained", rounds=options.rounds, pace=pace)
    ratio, interval = found.speed("ours")
    rates = {name: [flops / us * 1e-6 for us in t.samples] for name, t in found.timings.items()}
    return {
        "batch": batch, "heads": heads, "rows": rows, "d": d, "causal": causal, "dtype": options.dtype,
        "tflops": {name: statistics.median(r) for name, r in rates.items()}, "rounds": rates,
        "ratio_to_cudnn": ratio, "ratio_interval": [interval.low, interval.high], "apart_from_cudnn": apart,
        "clocks": {name: t.clocks for name, t in found.timings.items()}, "settled": found.settled,
    }  # fmt: skip


def figures(results):
    """The rate of each contender, by shape."""
    out = {}
    for r in results:
        what = "{dtype} {batch} x {heads} x {rows} x {d}".format(**r) + (" causal" if r["causal"] else "")
        for name, rates in r["rounds"].items():
            out[f"{what}: {name}"] = Figure(
                r["tflops"][name], "TFLOP/s", True, (min(rates), max(rates)), name != "ours"
            )  # fmt: skip
    return out


def arguments(parser):
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="batch x heads x rows x head dimension")
    parser.add_argument("--dtype", choices=("bfloat16", "float16"), default="bfloat16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.25, help="seconds of each contender's turns")
    parser.add_argument("--warm", type=float, default=2.0, help="seconds of warm-up for each shape, at least")


def run(options: argparse.Namespace) -> Result:
    results = []
    for text, causal in itertools.product(options.shapes, (False, True)):
        shape = tuple(int(x) for x in text.split("x"))
        try:
            results.append(benchmark(shape, causal, options))
        except KeyboardInterrupt:  # what there is counts
            break
        r = results[-1]
        print(f"{text} {'causal' if causal else 'all'}: {r['tflops']['ours']:.0f} : {r['tflops']['cudnn']:.0f} TFLOP/s,"
              f" {r['ratio_to_cudnn']:.3f}", flush=True)  # fmt: skip
        torch.cuda.empty_cache()
    return Result(figures(results), {"results": results})


ENTRY = Entry("attention_backward", "attention's backward pass against cuDNN's", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
