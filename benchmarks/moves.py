# SPDX-License-Identifier: Apache-2.0
"""Transposes and permutes of `numba_cute.kernels`, as shares of the copy rate, beside torch, sustained and in turns.

python -m benchmarks moves
python -m benchmarks moves --rounds 3 --cases "bf16 transpose" "f32 5 modes"
"""

from __future__ import annotations

import torch

from benchmarks import harness
from benchmarks.harness import Entry, Figure, Result
from numba_cute.kernels import permute
from numba_cute.testing import Pace, compare

PACE = Pace(turn=0.06, least=0.4, most=1.0)
COPIED = 1 << 30  # bytes
CASES = {
    "f32 transpose": ((16384, 16384), (1, 0), torch.float32),
    "bf16 transpose": ((32768, 16384), (1, 0), torch.bfloat16),
    "u8 transpose": ((32768, 32768), (1, 0), torch.uint8),
    "bf16 transpose, odd": ((16383, 16381), (1, 0), torch.bfloat16),
    "bf16 heads (16, 4096, 32, 128)": ((16, 4096, 32, 128), (0, 2, 1, 3), torch.bfloat16),
    "bf16 NCHW to NHWC": ((64, 256, 128, 128), (0, 2, 3, 1), torch.bfloat16),
    "bf16 NHWC to NCHW": ((64, 128, 128, 256), (0, 3, 1, 2), torch.bfloat16),
    "f32 pixels of 3 to planes": ((64, 1024, 1024, 3), (0, 3, 1, 2), torch.float32),
    "f32 5 modes": ((32, 64, 32, 16, 128), (4, 1, 3, 0, 2), torch.float32),
}
"""A shape, the order of its modes, and its element type."""


def tensor(shape, dtype):
    if dtype.is_floating_point:
        return torch.randn(shape, device="cuda").to(dtype)
    return torch.randint(0, 250, shape, device="cuda", dtype=dtype)


def measured(name, rounds):
    """Shares of the copy rate of our kernel and of torch's, with their intervals."""
    shape, order, dtype = CASES[name]
    x = tensor(shape, dtype)
    out, theirs = (torch.empty([shape[m] for m in order], device="cuda", dtype=dtype) for _ in range(2))
    a = torch.randn(COPIED // 4, device="cuda")
    b = torch.empty_like(a)
    permute(x, order, out=out)
    theirs.copy_(x.permute(order))
    assert torch.equal(out.view(torch.uint8), theirs.view(torch.uint8)), name
    contenders = {
        "copy": [lambda: b.copy_(a)],
        "ours": [lambda: permute(x, order, out=out)],
        "torch": [lambda: theirs.copy_(x.permute(order))],
    }
    found = compare(contenders, baseline="copy", rounds=rounds, pace=PACE)
    scale = x.numel() * x.element_size() / COPIED
    return {who: [scale * v for v in (s, i.low, i.high)] for who in contenders for s, i in [found.speed(who)]}


def run(options) -> Result:
    figures = {}
    for name in options.cases:
        for who, (share, low, high) in measured(name, options.rounds).items():
            if who != "copy":
                figures[f"{name}, {who}"] = Figure(share, "of copy", True, (low, high), who != "ours")
        print(*(f"{k} {f.value:.3f}" for k, f in list(figures.items())[-2:]), flush=True)
        torch.cuda.empty_cache()
    return Result(figures)


def arguments(parser):
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)


ENTRY = Entry("moves", "transposes and permutes, as shares of the copy rate", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
