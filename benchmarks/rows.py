# SPDX-License-Identifier: Apache-2.0
"""Kernels of rows beside a device copy and torch.compile, by the length of a row; 0.5 GiB of bf16 a matrix.

python -m benchmarks rows                              all, at all lengths
python -m benchmarks rows --ops softmax --lengths 4096 --peers

The share is of the copy's rate in the same run, of bytes that are read or written once each: 2 matrices for RMSNorm and
softmax forward, 1 for cross-entropy, 3 for RMSNorm backward. The entries are timed as they are called, in turns.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

import numba_cute as cute
from numba_cute.kernels.rows import norm, softmax
from numba_cute.testing import Pace

from . import harness
from .harness import Entry, Figure, Result

LENGTHS = (1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144)
ELEMENTS = 1 << 28
MATRICES = {"rmsnorm": 2, "rmsnorm backward": 3, "softmax": 2, "cross_entropy": 1}
PACE = Pace(turn=0.015, least=0.06, most=0.25)


def contenders(op: str, rows: int, length: int, peers: bool) -> dict[str, Any]:
    """The copy, this library's, and torch.compile's."""
    made = torch.Generator(device="cuda").manual_seed(0)

    def random(*shape: int) -> Any:
        return torch.randn(shape, device="cuda", generator=made, dtype=torch.float32).to(torch.bfloat16)

    x, y, w = random(rows, length), torch.empty(rows, length, device="cuda", dtype=torch.bfloat16), random(length)
    target = torch.randint(0, length, (rows,), device="cuda")
    f = torch.nn.functional
    found: dict[str, Any] = {"copy": lambda: y.copy_(x)}
    if op == "rmsnorm":
        found["ours"] = lambda: cute.kernels.rmsnorm(x, w, out=y)
        theirs = torch.compile(lambda x, w: f.rms_norm(x, (length,), w, 1e-6), dynamic=False)
        peer = lambda: theirs(x, w)  # noqa: E731
    elif op == "softmax":
        found["ours"] = lambda: cute.kernels.softmax(x, out=y)
        theirs = torch.compile(lambda x: x.softmax(-1), dynamic=False)
        peer = lambda: theirs(x)  # noqa: E731
    elif op == "cross_entropy":
        found["ours"] = lambda: softmax.CROSS_ENTROPY(x, target, -100)
        theirs = torch.compile(lambda x, t: f.cross_entropy(x, t, reduction="none"), dynamic=False)
        peer = lambda: theirs(x, target)  # noqa: E731
    else:
        dy = random(rows, length)
        mean, rstd = torch.empty(0, device="cuda"), (x.float() ** 2).mean(1).add(1e-6).rsqrt()
        found["ours"] = lambda: norm.BACKWARD_ENTRY(
            dy, x, w, mean, rstd, None, False, True, False, into=(y, None, None)
        )
        xg, wg = x.detach().requires_grad_(), w.detach().requires_grad_()
        if peers:
            theirs = torch.compile(lambda x, w: f.rms_norm(x, (length,), w, 1e-6), dynamic=False)(xg, wg)
        peer = lambda: torch.autograd.grad(theirs, (xg, wg), dy, retain_graph=True)  # noqa: E731
    return {**found, **({"torch.compile": peer} if peers else {})}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ops", nargs="+", choices=list(MATRICES), default=list(MATRICES))
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS))
    parser.add_argument("--peers", action="store_true", help="time torch.compile's too")


def run(options: argparse.Namespace) -> Result:
    figures, clocks = {}, {}
    for op in options.ops:
        for length in options.lengths:
            rows = max(1, ELEMENTS // length)
            launches = contenders(op, rows, length, options.peers)
            found = cute.testing.compare(launches, baseline="copy", rounds=5, pace=PACE, keep_going=True)
            bytes_of_copy = 4 * rows * length
            figures[f"{op}, {length}, copy"] = Figure(
                bytes_of_copy * 1e-6 / found["copy"].median, "TB/s", True, peer=True
            )
            for name in launches:
                if name != "copy" and name not in found.failed:
                    ratio, held = found.speed(name)
                    share = MATRICES[op] / 2  # of the copy's bytes
                    figures[f"{op}, {length}, {name}"] = Figure(
                        ratio * share, "of copy", True, (held.low * share, held.high * share), name != "ours"
                    )
            clocks[f"{op}, {length}"] = {name: t.clocks for name, t in found.timings.items()}
            del launches
    return Result(figures, {"clocks": clocks})


ENTRY = Entry("rows", "share of a device copy's rate, by the length of a row", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
