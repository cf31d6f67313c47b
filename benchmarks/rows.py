# SPDX-License-Identifier: Apache-2.0
"""Kernels of rows beside a device copy and PyTorch's, by the length of a row; half a GiB of bf16 a matrix.

python -m benchmarks rows                                    all, at all lengths
python -m benchmarks rows --ops softmax --lengths 4096
python -m benchmarks rows --resume --seconds 36              what the file lacks, for so long
python -m benchmarks rows --warm                             compile all, and measure nothing

The share is of the copy's rate in the same run, of bytes that are read or written once each. Forwards are timed as they
are called, with their results given; gradients as autograd calls them, which makes their results. The peer is what
torch.compile makes of PyTorch's function, at some lengths, or where none is generated (top-k) that function. Top-k's
lengths stand with k: 4096/32.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable
from typing import Any

import torch

import numba_cute as cute
from numba_cute.kernels.rows import norm, softmax, topk
from numba_cute.testing import Pace

from . import harness
from .harness import Entry, Figure, Result

ELEMENTS = 1 << 28
LENGTHS = (1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144)
SOME = (1024, 4096, 16384, 65536, 262144)
PEERS = (4096, 65536)
CHOSEN = {64: 8, 256: 8, 1024: 8, 4096: 32, 8192: 128, 32768: 128, 65536: 64, 131072: 128}
"""The k of top-k, by the length of a row."""
DEVICE = "cuda"
PACE = Pace(turn=0.012, least=0.05, most=0.15)

Launches = dict[str, Callable[[], Any]]


def random(*shape: int) -> Any:
    return torch.randn(shape, device=DEVICE).to(torch.bfloat16)


def leaf(x: Any) -> Any:
    return x.detach().requires_grad_()


@functools.cache
def compiled(function: Any) -> Any:
    return torch.compile(function, dynamic=False)


def rms(x: Any, w: Any) -> Any:
    return torch.nn.functional.rms_norm(x, w.shape, w, 1e-6)


def layer(x: Any, w: Any) -> Any:
    return torch.nn.functional.layer_norm(x, w.shape, w, w, 1e-5)


def probabilities(x: Any) -> Any:
    return x.softmax(-1)


def losses(x: Any, target: Any) -> Any:
    return torch.nn.functional.cross_entropy(x, target, reduction="none")


def turned(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.float().chunk(2, -1)
    c, s = cos[:, None].float(), sin[:, None].float()
    return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)


def backward(function: Any, given: Any, dy: Any) -> Callable[[], Any]:
    """The backward of a compiled function, alone."""
    leaves = [leaf(t) if t.is_floating_point() else t for t in given]
    y, wanted = function(*leaves), [t for t in leaves if t.requires_grad]
    return lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True)


def forward_launches(op: str, rows: int, n: int, y: Any, x: Any) -> Launches:
    """Ours and the peer of a forward."""
    if op == "softmax":
        theirs = compiled(probabilities)
        return {"ours": lambda: cute.kernels.softmax(x, out=y), "torch.compile": lambda: theirs(x)}
    if op == "cross_entropy":
        target, theirs = torch.randint(0, n, (rows,), device=DEVICE), compiled(losses)
        ours = lambda: softmax.CROSS_ENTROPY(x, target, -100, 0.0, 0.0, False)  # noqa: E731
        return {"ours": ours, "torch.compile": lambda: theirs(x, target)}
    if op == "rotary":  # 32 heads of 128
        x, y = x.view(-1, 32, 128), y.view(-1, 32, 128)
        cos, sin = random(len(x), 64), random(len(x), 64)
        theirs = compiled(turned)
        return {"ours": lambda: cute.kernels.rotary(x, cos, sin, out=y), "torch.compile": lambda: theirs(x, cos, sin)}
    if op == "topk":
        out = x.new_empty(rows, CHOSEN[n]), torch.empty(rows, CHOSEN[n], device=DEVICE, dtype=torch.int64)
        ours = lambda: topk.FORWARD_ENTRY(x, CHOSEN[n], False, into=out)  # noqa: E731
        return {"ours": ours, "torch": lambda: torch.topk(x, CHOSEN[n])}
    w, rms_norm = random(n), op == "rmsnorm"
    theirs = compiled(rms if rms_norm else layer)
    ours = (lambda: cute.kernels.rmsnorm(x, w, out=y)) if rms_norm else (lambda: cute.kernels.layernorm(x, w, w, out=y))
    return {"ours": ours, "torch.compile": lambda: theirs(x, w)}


def backward_launches(op: str, rows: int, n: int, y: Any, x: Any, peers: bool) -> Launches:
    """Ours and the peer of a backward."""
    dy, w = random(rows, n), random(n)
    if op == "softmax backward":
        x.copy_(x.softmax(-1))
        ours: Any = lambda: softmax.SOFTMAX_BACKWARD(dy, x, into=(y,))  # noqa: E731
        given: Any = (probabilities, (x,), dy)
    elif op == "cross_entropy backward":
        target, dloss = torch.randint(0, n, (rows,), device=DEVICE), torch.rand(rows, device=DEVICE)
        lse = x.logsumexp(-1).float()
        ours = lambda: softmax.CROSS_ENTROPY_BACKWARD(x, target, lse, dloss, -100, 0.0, 0.0, into=(y,))  # noqa: E731
        given = (losses, (x, target), dloss.to(x.dtype))
    else:
        centred = op == "layernorm backward"
        mean, rstd = (torch.rand(rows, device=DEVICE) for _ in range(2))
        ours = lambda: norm.BACKWARD_ENTRY(  # noqa: E731
            dy, x, w, mean, rstd, None, 0.0, centred, True, centred, into=(y, None, None)
        )
        given = (layer if centred else rms, (x, w), dy)
    if not peers:
        return {"ours": ours}
    return {"ours": ours, "torch.compile": backward(compiled(given[0]), *given[1:])}


OPS = {
    "rmsnorm": (2, LENGTHS), "softmax": (2, LENGTHS), "cross_entropy": (1, LENGTHS), "rmsnorm backward": (3, LENGTHS),
    "topk": (1, tuple(CHOSEN)), "layernorm": (2, SOME), "layernorm backward": (3, SOME), "softmax backward": (3, SOME),
    "cross_entropy backward": (2, SOME), "rotary": (2, (4096,)),
}  # fmt: skip
"""The matrices that an operation reads and writes, and lengths of rows."""


def matrices(op: str, n: int) -> float:
    """How many matrices an operation reads and writes: also the cosines and sines, and what top-k gives."""
    return OPS[op][0] + {"rotary": 128 / 4096, "topk": 5 * CHOSEN.get(n, 0) / n}.get(op, 0)


def contenders(op: str, rows: int, n: int, peers: bool) -> Launches:
    """The copy, this library's, and PyTorch's."""
    torch.manual_seed(0)
    x = random(rows, n)
    y = torch.empty_like(x)
    made = backward_launches(op, rows, n, y, x, peers) if "backward" in op else forward_launches(op, rows, n, y, x)
    source = torch.empty_like(x)
    return {"copy": lambda: y.copy_(source), **{k: v for k, v in made.items() if peers or k == "ours"}}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ops", nargs="+", choices=list(OPS), default=list(OPS))
    parser.add_argument("--lengths", nargs="+", type=int, help="of these alone")
    parser.add_argument("--no-peers", action="store_true", help="leave PyTorch out")
    parser.add_argument("--seconds", type=float, help="stop before the next point after so many")
    parser.add_argument("--resume", action="store_true", help="keep what the file has, and measure what it lacks")
    parser.add_argument("--warm", action="store_true", help="call each once, and measure nothing")


def held(options: argparse.Namespace) -> dict[str, Figure]:
    """The figures of the file that is resumed."""
    file = options.results / f"rows_{harness.place(harness.machine(), ENTRY)}.json"
    if not options.resume or not file.exists():
        return {}
    return {name: Figure(**f) for name, f in json.loads(file.read_text())["figures"].items()}


def measured(op: str, n: int, peers: bool) -> dict[str, Figure]:
    """The figures of an operation at a length."""
    rows = max(1, ELEMENTS // n)
    launches = contenders(op, rows, n, peers)
    found = cute.testing.compare(launches, baseline="copy", rounds=5, pace=PACE, keep_going=True)
    name = f"{op}, {n}" + (f"/{CHOSEN[n]}" if op == "topk" else "")
    figures = {f"{name}, copy": Figure(4e-6 * rows * n / found["copy"].median, "TB/s", True, peer=True)}
    for who in launches:
        if who != "copy" and who not in found.failed:
            ratio, interval = found.speed(who)
            share = matrices(op, n) / 2  # of the copy's bytes
            figures[f"{name}, {who}"] = Figure(
                ratio * share, "of copy", True, (interval.low * share, interval.high * share), who != "ours"
            )
    return figures


def run(options: argparse.Namespace) -> Result:
    figures, begin = held(options), time.monotonic()
    points = [(op, n) for op in options.ops for n in OPS[op][1] if options.lengths is None or n in options.lengths]
    for op, n in points:
        if options.warm:
            for launch in contenders(op, ELEMENTS // n, n, n in PEERS and not options.no_peers).values():
                launch()
        elif not any(name.startswith((f"{op}, {n},", f"{op}, {n}/")) for name in figures):
            if options.seconds and time.monotonic() - begin > options.seconds:
                break
            now = measured(op, n, (n in PEERS or op == "topk") and not options.no_peers)
            print(*(f"{name} {f.value:.3f}" for name, f in now.items()), sep="; ", flush=True)
            figures |= now
    return Result(figures)


ENTRY = Entry("rows", "share of a device copy's rate, by the length of a row", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
