# SPDX-License-Identifier: Apache-2.0
"""Losses with their gradients, and norms as models call them, beside torch.compile's: bf16, called as they are.

python -m benchmarks losses
python -m benchmarks losses --cases "linear_cross_entropy" --seconds 60

A loss is called and its gradients taken in one turn. Memory is the most that PyTorch's allocator held in a turn, beyond
what was there before. "speed" is the peer's time divided by ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks import harness
from benchmarks.contests import Calls, beside, case_arguments, cases, random
from benchmarks.harness import Entry, Figure, Result
from numba_cute import kernels


def with_gradients(loss: Any, *leaves: Any) -> Callable[[], Any]:
    return lambda: torch.autograd.grad(loss(*leaves), leaves)


def theirs(loss: Any, *leaves: Any) -> Callable[[], Any]:
    return with_gradients(torch.compile(loss, dynamic=False), *leaves)


def cross_entropy(columns: int) -> Calls:
    """2 ** 28 logits, with a tenth of the loss smoothed and the square of lse."""
    rows = 2**28 // columns
    x, target = random(rows, columns).requires_grad_(), torch.randint(0, columns, (rows,), device="cuda")

    def torch_loss(x: Any) -> Any:
        lse = x.float().logsumexp(-1)
        return F.cross_entropy(x.float(), target, label_smoothing=0.1) + 1e-4 * (lse * lse).mean()

    def loss(x: Any, **how: Any) -> Any:
        return kernels.cross_entropy(x, target, reduction="mean", label_smoothing=0.1, z_loss=1e-4, **how)

    kept = x.clone()  # no leaf, whose values may be lost
    inplace = with_gradients(lambda x: loss(x, inplace_backward=True), kept)
    return {"ours": with_gradients(loss, x), "ours in place": inplace, "torch.compile": theirs(torch_loss, x)}


def linear_cross_entropy(rows: int, depth: int, columns: int) -> Calls:
    x, w = random(rows, depth).requires_grad_(), (random(columns, depth) / depth**0.5).detach().requires_grad_()
    target = torch.randint(0, columns, (rows,), device="cuda")

    def torch_loss(x: Any, w: Any) -> Any:
        return F.cross_entropy((x @ w.T).float(), target)

    def ours(chunk: int | None) -> Callable[[], Any]:
        return with_gradients(lambda x, w: kernels.linear_cross_entropy(x, w, target, chunk_size=chunk), x, w)

    return {"ours": ours(None), **{f"ours, chunks of {c}": ours(c) for c in (1024, 2048, 4096, 8192)},
            "torch.compile": theirs(torch_loss, x, w)}  # fmt: skip


def heads_norm() -> Calls:
    """RMSNorm of 32 heads of 128 in packed q, k and v."""
    qkv, w = random(2**14, 96, 128), random(128)
    compiled = torch.compile(lambda x: F.rms_norm(x, (128,), w, 1e-6), dynamic=False)
    return {"ours": lambda: kernels.rmsnorm(qkv[:, :32], w), "torch.compile": lambda: compiled(qkv[:, :32])}


def groupnorm(images: int, channels: int, extent: int) -> Calls:
    x, w, b = random(images, channels, extent, extent).requires_grad_(), random(channels), random(channels)
    w, b = w.requires_grad_(), b.requires_grad_()
    dy = torch.randn_like(x)

    def of(norm: Any) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(norm(x, 32, w, b), (x, w, b), dy)

    return {"ours": of(kernels.groupnorm), "torch.compile": of(torch.compile(F.group_norm, dynamic=False))}


CASES: dict[str, Callable[[], Calls]] = {
    **{f"cross_entropy with options, {n}": (lambda n=n: cross_entropy(n)) for n in (1024, 8192, 32768, 131072, 262144)},
    "linear_cross_entropy 8192 x 4096 x 128256": lambda: linear_cross_entropy(8192, 4096, 128256),
    "linear_cross_entropy 32768 x 4096 x 128256": lambda: linear_cross_entropy(32768, 4096, 128256),
    "rmsnorm of packed heads of 128": heads_norm,
    "groupnorm 64 x 320 x 64 x 64": lambda: groupnorm(64, 320, 64),
    "groupnorm 8 x 128 x 512 x 512": lambda: groupnorm(8, 128, 512),
}


def held_by(call: Callable[[], Any]) -> float:
    """GiB that the allocator held at most in a call, beyond what was there."""
    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**30


def measured(name: str, calls: Calls) -> dict[str, Figure]:
    figures = beside(name, calls, "torch.compile")
    for who in calls:
        if f"{name}, {who}" in figures:
            figures[f"{name}, {who}, memory"] = Figure(held_by(calls[who]), "GiB", False, peer=who == "torch.compile")
    return figures


def run(options: argparse.Namespace) -> Result:
    return cases(CASES, measured, options)


ENTRY = Entry("losses", "losses with gradients, and norms as models call them", run, case_arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
