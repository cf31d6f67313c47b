# SPDX-License-Identifier: Apache-2.0
"""Convolutions of `numba_cute.kernels` beside cuDNN's, sustained and in turns, called as they are: bf16, channels last.

python -m benchmarks conv
python -m benchmarks conv --rounds 3 --cases "ResNet 14, 3x3" "U-Net 64"
python -m benchmarks conv --cuts 6        as many cuts as the model finds best, each beside cuDNN
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import torch

from benchmarks import harness
from benchmarks.harness import Entry, Figure, Result
from numba_cute.kernels import conv2d
from numba_cute.kernels.conv import plan, tensors
from numba_cute.kernels.gemm.launches import operands_of, sms_here
from numba_cute.testing import Pace, compare

PACE = Pace(turn=0.05, least=0.3, most=0.8)
L2_TIMES_TWO = 120e6  # bytes: two times the H200's L2
CASES = {
    "ResNet 56, 3x3": ((256, 64, 56, 56), (64, 3), {"padding": 1}),
    "ResNet 28, 3x3": ((256, 128, 28, 28), (128, 3), {"padding": 1}),
    "ResNet 14, 3x3": ((256, 256, 14, 14), (256, 3), {"padding": 1}),
    "ResNet 7, 3x3": ((256, 512, 7, 7), (512, 3), {"padding": 1}),
    "ResNet 56 to 28, 3x3": ((256, 128, 56, 56), (128, 3), {"padding": 1, "stride": 2}),
    "ResNet 56, 1x1": ((256, 64, 56, 56), (256, 1), {}),
    "ResNet 56 to 28, 1x1": ((256, 256, 56, 56), (512, 1), {"stride": 2}),
    "ResNet 14, 3x3, batch 32": ((32, 256, 14, 14), (256, 3), {"padding": 1}),
    "ResNet 7, 3x3, batch 32": ((32, 512, 7, 7), (512, 3), {"padding": 1}),
    "VGG 224": ((32, 64, 224, 224), (64, 3), {"padding": 1}),
    "VGG 56": ((32, 256, 56, 56), (256, 3), {"padding": 1}),
    "U-Net 64": ((16, 320, 64, 64), (320, 3), {"padding": 1}),
    "dilated 64": ((8, 512, 64, 64), (512, 3), {"padding": 2, "dilation": 2}),
}
"""The images (N, C, H, W), the outputs and the filter's extent, and what else conv2d gets."""


def drawn(case):
    """Images and filters, channels last."""
    shape, (outs, taps), _ = CASES[case]
    x = torch.randn(shape, device="cuda").bfloat16()
    w = torch.randn(outs, shape[1], taps, taps, device="cuda") / math.sqrt(shape[1] * taps * taps)
    return [t.to(torch.bfloat16).contiguous(memory_format=torch.channels_last) for t in (x, w)]


def cuts_of(case, count):
    """So many cuts that the model finds best."""
    x, w = drawn(case)
    *_, how = CASES[case]
    walk = tensors.walk_of(
        "conv2d", tuple(w.shape[2:]), how.get("stride", 1), how.get("padding", 0), how.get("dilation", 1)
    )
    kind = operands_of(x)
    a, _ = tensors.operands(tensors.last(x), tensors.last(w), walk, kind)
    c = torch.empty(a.shape[0], w.shape[0], device="cuda", dtype=x.dtype)
    read = x.nbytes + w.nbytes
    cost = lambda cut: plan.modelled(cut, c, a.shape[1], kind, sms_here(), read)  # noqa: E731
    return sorted(plan.cuts(c, a.shape[1], kind), key=cost)[:count]


def measured(case, rounds, cuts) -> Any:
    """A comparison with cuDNN, and the multiplications."""
    *_, how = CASES[case]
    x, w = drawn(case)
    got, want = conv2d(x, w, **how), torch.nn.functional.conv2d(x, w, **how)
    off = (got.double() - want.double()).abs().max() / want.abs().max()
    assert off < 2**-7, f"{case}: off by {off:.3g} of the greatest"
    sets = max(1, math.ceil(L2_TIMES_TWO / (x.nbytes + got.nbytes)))
    given = [(x, w)] + [drawn(case) for _ in range(sets - 1)]
    outs = [torch.empty_like(got) for _ in given]

    def ours(cut=None):
        return [lambda x=x, w=w, y=y: conv2d(x, w, out=y, cut=cut, **how) for (x, w), y in zip(given, outs)]

    contenders = {"cudnn": [lambda x=x, w=w: torch.nn.functional.conv2d(x, w, **how) for x, w in given], "ours": ours()}
    contenders |= {str(tuple(cut)): ours(cut) for cut in cuts}
    return compare(contenders, baseline="cudnn", rounds=rounds, pace=PACE), 2 * got.numel() * w[0].numel()


def run(options: argparse.Namespace) -> Result:
    torch.backends.cudnn.benchmark = True
    figures, clocks = {}, {}
    for case in options.cases:
        found, flops = measured(case, options.rounds, cuts_of(case, options.cuts) if options.cuts else ())
        for name, timing in found.timings.items():
            rate = flops * 1e-6 / timing.median
            figures[f"{case}, {name}"] = Figure(rate, "TFLOP/s", True, peer=name != "ours")
            if name != "cudnn":
                ratio, held = found.speed(name)
                figures[f"{case}, {name}, of cuDNN"] = Figure(ratio, "of cuDNN", True, (held.low, held.high))
                print(f"{case}: {name} {ratio:.3f}, {rate:.0f} TFLOP/s", flush=True)
            clocks[f"{case}, {name}"] = timing.clocks
        torch.cuda.empty_cache()
    return Result(figures, {"clocks": clocks})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cuts", type=int, default=0, help="how many cuts to time, of those the model finds best")


ENTRY = Entry("conv", "im2col convolutions beside cuDNN's", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
