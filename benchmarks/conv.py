# SPDX-License-Identifier: Apache-2.0
"""Convolutions of `numba_cute.kernels` beside cuDNN's, sustained and in turns, called as they are: bf16, channels last.

python -m benchmarks conv
python -m benchmarks conv --rounds 3 --cases "ResNet 14, 3x3" "U-Net 64"
python -m benchmarks conv --passes forward images filters        the gradients of images and of filters too
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
from numba_cute.kernels.conv.gradients import gradient_of_filters
from numba_cute.kernels.conv.transposed import gradient_of_images
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


def walk_of(case, w):
    """How the filter goes over the images."""
    *_, how = CASES[case]
    given = how.get("stride", 1), how.get("padding", 0), how.get("dilation", 1)
    return tensors.walk_of("conv2d", tuple(w.shape[2:]), *given)


def cuts_of(case, count):
    """So many cuts that the model finds best."""
    x, w = drawn(case)
    kind = operands_of(x)
    a, _ = tensors.operands(tensors.last(x), tensors.last(w), walk_of(case, w), kind)
    c = torch.empty(a.shape[0], w.shape[0], device="cuda", dtype=x.dtype)
    read = min(x.nbytes, 2 * math.prod(a.shape)) + w.nbytes
    cost = lambda cut: plan.modelled(cut, c, a.shape[1], kind, sms_here(), read)  # noqa: E731
    return sorted(plan.cuts(c, a.shape[1], kind), key=cost)[:count]


def close(case, got, want):
    off = (got.double() - want.double()).abs().max() / want.abs().max()
    assert off < 2**-6, f"{case}: off by {off:.3g} of the greatest"


def forward(case, cuts=()) -> Any:
    """Ours and cuDNN's convolutions, as makers of launches on images, filters and outputs."""
    *_, how = CASES[case]
    conv = torch.nn.functional.conv2d

    def ours(cut=None):
        return lambda x, w, y: lambda: conv2d(x, w, out=y, cut=cut, **how)

    made = {"cudnn": lambda x, w, y: lambda: conv(x, w, **how), "ours": ours()}
    return made | {str(tuple(cut)): ours(cut) for cut in cuts}


def backward(case, of) -> Any:
    """Ours and cuDNN's gradients `of` images or filters, as makers of launches; y is the output's gradient."""
    *_, how = CASES[case]
    two = [[how.get(name, n)] * 2 for name, n in (("stride", 1), ("padding", 0), ("dilation", 1))]
    which = 0 if of == "images" else 1
    mask = [of == "images", of == "filters", False]
    theirs = torch.ops.aten.convolution_backward

    def ours(x, w, y):
        walk, into = walk_of(case, w), torch.empty_like(x if of == "images" else w)
        if of == "images":
            return lambda: gradient_of_images("conv2d", y, w, into, walk)

        def filters():
            gradient_of_filters("conv2d", x, y, into, walk)
            return into

        return filters

    return {"cudnn": lambda x, w, y: lambda: theirs(y, x, w, None, *two, False, [0, 0], 1, mask)[which], "ours": ours}


def measured(case, of, rounds, cuts) -> Any:
    """A comparison with cuDNN, and the multiplications."""
    x, w = drawn(case)
    makers = forward(case, cuts) if of == "forward" else backward(case, of)
    y = torch.randn_like(torch.nn.functional.conv2d(x, w, **CASES[case][-1]))
    close(case, makers["ours"](x, w, y)(), makers["cudnn"](x, w, y)())
    given = [(x, w, y)]
    for _ in range(max(1, math.ceil(L2_TIMES_TWO / (x.nbytes + y.nbytes))) - 1):
        given.append((*drawn(case), torch.randn_like(y)))
    contenders = {name: [make(*each) for each in given] for name, make in makers.items()}
    return compare(contenders, baseline="cudnn", rounds=rounds, pace=PACE), 2 * y.numel() * w[0].numel()


def run(options: argparse.Namespace) -> Result:
    torch.backends.cudnn.benchmark = True
    figures, clocks = {}, {}
    for of in options.passes:
        for case in options.cases:
            cuts = cuts_of(case, options.cuts) if options.cuts and of == "forward" else ()
            found, flops = measured(case, of, options.rounds, cuts)
            for name, timing in found.timings.items():
                rate, what = flops * 1e-6 / timing.median, f"{case}, {of}, {name}"
                figures[what] = Figure(rate, "TFLOP/s", True, peer=name != "ours")
                if name != "cudnn":
                    ratio, held = found.speed(name)
                    figures[f"{what}, of cuDNN"] = Figure(ratio, "of cuDNN", True, (held.low, held.high))
                    host = f"{timing.host:.1f}" if timing.host else "?"
                    print(f"{what}: {ratio:.3f}, {rate:.0f} TFLOP/s, {timing.median:.1f} us, host {host}", flush=True)
                clocks[what] = timing.clocks
            torch.cuda.empty_cache()
    return Result(figures, {"clocks": clocks})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--passes", nargs="+", choices=("forward", "images", "filters"), default=["forward"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cuts", type=int, default=0, help="how many cuts to time, of those the model finds best")


ENTRY = Entry("conv", "im2col convolutions beside cuDNN's", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
