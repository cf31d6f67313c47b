# SPDX-License-Identifier: Apache-2.0
"""Call entries for the first time in a process, and tell of each what that took, and what it did that takes long: on
the GPU, or without one on one that is pretended (pretended.py).

    python -m tests.kernels.first_calls [NAME…]

A first call begins with the lookup of `kernels.NAME`, which loads the entry's modules, and ends when its last kernel is
handed to the driver. Before it `import numba_cute` and `kernels` are done, and the context with the toolkit's
libraries that it loads. Gradients are a first call of their own, as `loss.backward()` is.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from typing import Any

import torch
from numba.cuda import dispatcher
from numba.cuda.core import typed_passes
from numba.cuda.cudadrv import nvvm

from numba_cute import kernels
from numba_cute.compiler.host import disk_cache

HERE = torch.cuda.is_available()
BF16, F8, I8, I32, F32 = torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.int32, torch.float32


def empty(*shape: int, dtype: Any = BF16, grad: bool = False) -> Any:
    make = torch.empty if dtype.is_floating_point else torch.zeros  # to write the CPU's memory takes time
    return make(shape, dtype=dtype, device="cuda" if HERE else "cpu").requires_grad_(grad)


def ends(*rows: int) -> Any:
    return torch.tensor(rows, dtype=I32, device="cuda" if HERE else "cpu")


LAPS: list[float] = []
"""When the gradients of a call were asked for."""


def backward(made: Any) -> None:
    """Ask for the gradients of a result."""
    LAPS.append(time.process_time())
    (made[0] if isinstance(made, tuple) else made).sum().backward()


def heads(n: int = 1024, grad: bool = False) -> Any:
    return empty(1, n, 8, 128, grad=grad)


def causal(batch: Any, head: Any, query: Any, key: Any) -> Any:
    return key <= query


def image(channels: int, modes: int, grad: bool = False) -> Any:
    return torch.movedim(empty(2, *[16] * modes, channels), -1, 1).requires_grad_(grad)


def filters(outs: int, channels: int, modes: int, grad: bool = False) -> Any:
    return torch.movedim(empty(outs, *[3] * modes, channels), -1, 1).requires_grad_(grad)


def weights() -> Any:
    return kernels.int4_weights(empty(1024, 1024, dtype=I8), empty(1024, 8))


def microscaled() -> Any:
    """Multiply as Blackwell alone does, with a scale for each 32 elements."""
    scales = empty(512, 16, dtype=torch.float8_e8m0fnu)
    return kernels.blockscaled_gemm(empty(512, 512, dtype=F8), empty(512, 512, dtype=F8), scales, scales)


CALLS = {
    "softmax": lambda: kernels.softmax(empty(512, 4096)),
    "softmax, backward": lambda: backward(kernels.softmax(empty(512, 4096, grad=True))),
    "cross_entropy": lambda: backward(
        kernels.cross_entropy(empty(512, 4096, grad=True), empty(512, dtype=torch.int64))
    ),
    "linear_cross_entropy": lambda: kernels.linear_cross_entropy(
        empty(512, 512), empty(4096, 512), empty(512, dtype=torch.int64)
    ),
    "rmsnorm": lambda: kernels.rmsnorm(empty(512, 4096), empty(4096)),
    "rmsnorm, backward": lambda: backward(kernels.rmsnorm(empty(512, 4096, grad=True), empty(4096, grad=True))),
    "layernorm": lambda: kernels.layernorm(empty(512, 4096), empty(4096), empty(4096)),
    "groupnorm": lambda: kernels.groupnorm(empty(4, 64, 32, 32), 8, empty(64), empty(64)),
    "rotary": lambda: kernels.rotary(heads(), empty(1024, 64, dtype=F32), empty(1024, 64, dtype=F32)),
    "topk": lambda: kernels.topk(empty(512, 4096, dtype=F32), 8),
    "permute": lambda: kernels.permute(empty(64, 64, 64), (2, 0, 1)),
    "transpose": lambda: kernels.transpose(empty(512, 1024)),
    "matmul": lambda: kernels.matmul(empty(4096, 4096), empty(4096, 4096)),
    "matmul, backward": lambda: backward(kernels.matmul(empty(512, 512, grad=True), empty(512, 512, grad=True))),
    "matmul, batches": lambda: kernels.matmul(empty(4, 1, 512, 512), empty(3, 512, 512)),
    "grouped_gemm": lambda: kernels.grouped_gemm(empty(512, 512), empty(2, 512, 512), ends(200, 512)),
    "blockscaled_gemm": lambda: kernels.blockscaled_gemm(
        empty(512, 512, dtype=F8), empty(512, 512, dtype=F8), empty(512, 4, dtype=F32), empty(4, 4, dtype=F32)
    ),
    "mixed_gemm": lambda: kernels.mixed_gemm(empty(512, 1024), weights()),
    "int4_weights": weights,
    "flash_attention": lambda: kernels.flash_attention(heads(), heads(), heads()),
    "flash_attention, backward": lambda: backward(kernels.flash_attention(*[heads(grad=True) for _ in range(3)])),
    "attention_backward": lambda: kernels.attention_backward(
        *[heads()] * 4, heads(), empty(1, 8, 1024, dtype=F32), causal=True
    ),
    "attention_with_cache": lambda: kernels.attention_with_cache(
        heads(1), heads(512), heads(512), heads(1), heads(1), ends(100)
    ),
    "latent_attention": lambda: kernels.latent_attention(empty(2, 1, 16, 576), empty(2, 512, 576), scale=0.1),
    "block_mask": lambda: kernels.block_mask(causal, 1, None, 1024, 1024, device="cuda" if HERE else None),
    "conv1d": lambda: kernels.conv1d(image(64, 1), filters(64, 64, 1)),
    "conv2d": lambda: kernels.conv2d(image(64, 2), filters(64, 64, 2)),
    "conv2d, backward": lambda: backward(kernels.conv2d(image(64, 2, True), filters(64, 64, 2, True))),
    "conv3d": lambda: kernels.conv3d(image(64, 3), filters(64, 64, 3)),
    "conv_transpose1d": lambda: kernels.conv_transpose1d(image(64, 1), filters(64, 64, 1)),
    "conv_transpose2d": lambda: kernels.conv_transpose2d(image(64, 2), filters(64, 64, 2)),
    "conv_transpose3d": lambda: kernels.conv_transpose3d(image(64, 3), filters(64, 64, 3)),
}  # fmt: skip
"""What calls each entry that has a kernel, by the entry's name, and what more of it is called."""
WITHOUT = {"block_mask_from", "chunked_scales", "int4_weights_from_awq", "int4_weights_from_gptq", "warmup"}
"""Entries that launch nothing of their own, or on Blackwell alone."""


class Counted:
    """What Numba and libNVVM were asked for: kernels that were compiled, functions whose types were inferred, and
    launches whose arguments' types chose a kernel."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("compiled", "typed", "chosen", "digested"), 0)
        nvvm.compile_ir = self.counting("compiled", nvvm.compile_ir)
        typed_passes.type_inference_stage = self.counting("typed", typed_passes.type_inference_stage)
        dispatcher.CUDADispatcher.compile = self.counting("chosen", dispatcher.CUDADispatcher.compile)
        disk_cache.fingerprint = self.counting("digested", disk_cache.fingerprint)

    def counting(self, name: str, function: Any) -> Any:
        def counted(*given: Any, **named: Any) -> Any:
            self.counts[name] += 1
            return function(*given, **named)

        return counted


def told(name: str, counted: Counted) -> dict[str, Any]:
    """Call an entry, and say what that was. milliseconds: of the processor, of the call and of its gradients. loaded:
    modules, of others and, counted, of this library."""
    before, counts = set(sys.modules), dict(counted.counts)
    LAPS.clear()
    LAPS.append(time.process_time())
    getattr(kernels, name.partition(",")[0])
    CALLS[name]()
    LAPS.append(time.process_time())
    took = [round(1e3 * (end - begin), 1) for begin, end in itertools.pairwise(LAPS)]
    new = sys.modules.keys() - before
    loaded = sorted(m for m in new if not m.startswith("numba_cute"))
    done = {n: count - counts[n] for n, count in counted.counts.items()}
    return {"name": name, "milliseconds": took, **done, "modules": len(new) - len(loaded), "loaded": loaded}


def main(names: list[str]) -> None:
    """Call entries one after another, each for the first time."""
    counted = Counted()
    if HERE:
        torch.zeros(1, device="cuda")
        where: Any = contextlib.nullcontext()
    else:
        from .pretended import pretended

        where = pretended()
    with where:
        for name in names or CALLS:
            print(json.dumps(told(name, counted)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
