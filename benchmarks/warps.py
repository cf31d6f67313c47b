# SPDX-License-Identifier: Apache-2.0
"""Kernels of mma.sync, code of sm_80, on the GPU that is here, beside others that multiply so: bf16, in turns.

python -m benchmarks warps
python -m benchmarks warps --cases "attention d128" conv

Attention's peer is FlashAttention 2, as PyTorch has it; that of grouped GEMMs is `matmul` by warps of as many rows;
that of convolutions is cuDNN, which may choose Hopper's own instructions. "speed" is the peer's time divided by ours.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import numba_cute as cute
from benchmarks import harness
from benchmarks.contests import Calls, beside, case_arguments, cases, close, random
from benchmarks.harness import Entry, Figure, Result
from numba_cute import kernels
from numba_cute.kernels.attention import gradients, warps_plan as attention_plan
from numba_cute.kernels.attention.plan import ALL, Options
from numba_cute.kernels.conv import tensors
from numba_cute.kernels.conv.gradients import gradient_of_filters
from numba_cute.kernels.conv.transposed import gradient_of_images
from numba_cute.kernels.gemm import grouped, warps_plan

TARGET = "sm_80"


def in_order(launches: list[Any]) -> Callable[[], None]:
    def go() -> None:
        for launch in launches:
            launch()

    return go


def attention(batch: int, rows: int, d: int, causal: bool) -> Calls:
    q, k, v = (random(batch, rows, 16, d) for _ in "qkv")
    o, lse = torch.empty_like(q), torch.empty(batch, 16, rows, device="cuda")
    options = Options(1 / math.sqrt(d), right=0 if causal else None)
    made = attention_plan.launches(q, k, v, o, lse, *ALL, None, None, None, None, TARGET, options, 0)
    ready = [cute.launch(kernel, grid=g, block=b).prepare(*args) for kernel, args, g, b in made]
    turned = [x.transpose(1, 2) for x in (q, k, v)]

    def theirs() -> Any:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(*turned, is_causal=causal)

    ours = in_order(ready)
    ours()
    close(o, theirs().transpose(1, 2))
    return {"ours": ours, "flash": theirs}


def attention_backward(batch: int, rows: int, d: int, causal: bool) -> Calls:
    q, k, v, do = (random(batch, rows, 16, d) for _ in range(4))
    given = [x.transpose(1, 2).detach().requires_grad_() for x in (q, k, v)]
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        o = F.scaled_dot_product_attention(*given, is_causal=causal)
    lse = torch.ops.aten._scaled_dot_product_flash_attention(*(x.detach() for x in given), 0.0, causal)[1]
    results = [torch.empty_like(x) for x in (q, k, v)]
    work = [torch.empty(s, device="cuda") for s in gradients.room(q, None, False)]
    arrays = (q, k, v, o.detach().transpose(1, 2).contiguous(), do, lse.contiguous(), *results)
    options = Options(1 / math.sqrt(d), right=0 if causal else None)
    todo = gradients.by_warps(arrays, work, options, gradients.More(), cute.target(TARGET))
    ours = in_order(
        [cute.launch(of.kernel, grid=of.grid, block=of.block, pdl=of.overlaps).prepare(*of.args) for of in todo]
    )

    def theirs() -> Any:
        return torch.autograd.grad(o, given, do.transpose(1, 2), retain_graph=True)

    ours()
    for got, want in zip(results, theirs(), strict=True):
        close(got, want.transpose(1, 2))
    return {"ours": ours, "flash": theirs}


def grouped_gemm(groups: int, rows: int, n: int, k: int) -> Calls:
    """Groups of as many rows, in each of the cuts; and all rows by one matrix, by `matmul` with the same cut's rule."""
    a, b = random(groups * rows, k), random(groups, n, k)
    ends = torch.arange(1, groups + 1, device="cuda", dtype=torch.int32) * rows
    out = torch.empty(groups * rows, n, device="cuda", dtype=torch.bfloat16)
    dtype, target = cute.BFloat16, cute.target(TARGET)
    dense = warps_plan.plan(out, k, dtype, 132, target)
    calls: Calls = {}
    for cut in warps_plan.CUTS:
        launch = grouped.plan(a, b, ends, out, cut=cut).launcher()
        calls[f"ours, {cut.tile[0]} x {cut.tile[1]}"] = lambda launch=launch: launch(a, b, ends, out)
    calls["dense"] = lambda: kernels.matmul(a, b[0].mT, out=out, cut=dense)
    return calls


CONV = {"14": (256, 256, 14, 256), "56": (256, 64, 56, 64)}


def conv(images: int, channels: int, extent: int, outs: int, of: str) -> Calls:
    """A filter of 3 x 3, in each of the cuts."""
    order = {"memory_format": torch.channels_last}
    x, w = (
        random(images, channels, extent, extent).contiguous(**order),
        random(outs, channels, 3, 3).contiguous(**order),
    )
    y = random(images, outs, extent, extent).contiguous(**order)
    walk, dx, dw = tensors.walk_of("conv2d", (3, 3), 1, 1, 1), torch.empty_like(x), torch.empty_like(w)
    backward = torch.ops.aten.convolution_backward
    mask = [of == "images", of == "filters", False]
    torch.backends.cudnn.benchmark = True

    def ours(cut: Any) -> Callable[[], Any]:
        if of == "forward":
            return lambda: kernels.conv2d(x, w, padding=1, cut=cut)
        if of == "images":
            return lambda: gradient_of_images("conv2d", y, w, dx, walk, cut)
        return lambda: gradient_of_filters("conv2d", x, y, dw, walk, cut)

    def theirs() -> Any:
        if of == "forward":
            return F.conv2d(x, w, padding=1)
        return backward(y, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask)

    return {**{f"ours, {c.tile[0]} x {c.tile[1]}": ours(c) for c in warps_plan.CUTS}, "cudnn": theirs}


CASES: dict[str, Callable[[], Calls]] = {
    **{f"{'attention' if f is attention else 'attention backward'} d{d}, {b} x 16 x {n}, {'causal' if c else 'all'}":
       (lambda f=f, d=d, b=b, n=n, c=c: f(b, n, d, c))
       for f in (attention, attention_backward) for d in (64, 128) for b, n in ((4, 4096), (1, 16384))
       for c in (False, True)},
    "grouped_gemm 8 x 1024 x 4096 x 4096": lambda: grouped_gemm(8, 1024, 4096, 4096),
    "grouped_gemm 64 x 128 x 2048 x 2048": lambda: grouped_gemm(64, 128, 2048, 2048),
    **{f"conv2d ResNet {name}, {of}": (lambda s=s, of=of: conv(*s, of))
       for name, s in CONV.items() for of in ("forward", "images", "filters")},
}  # fmt: skip


def measured(name: str, calls: Calls) -> dict[str, Figure]:
    return beside(name, calls, list(calls)[-1])


def run(options: argparse.Namespace) -> Result:
    return cases(CASES, measured, options)


ENTRY = Entry("warps", "kernels of sm_80's instructions beside others of the same", run, case_arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
