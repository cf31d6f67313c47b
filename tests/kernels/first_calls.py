# SPDX-License-Identifier: Apache-2.0
"""Call entries for the first time in a process, and tell of each what that took, whether it compiled, and which
modules it loaded: on the GPU, or without one on one that is pretended (pretended.py).

    python -m tests.kernels.first_calls [NAME…]
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import Any

import torch
from numba.cuda.cudadrv import nvvm

from numba_cute import kernels

HERE = torch.cuda.is_available()
BF16, F8, I8, I32, F32 = torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.int32, torch.float32


def empty(*shape: int, dtype: Any = BF16, grad: bool = False) -> Any:
    make = torch.empty if dtype.is_floating_point else torch.zeros  # to write the CPU's memory takes time
    return make(shape, dtype=dtype, device="cuda" if HERE else "cpu").requires_grad_(grad)


def ends(*rows: int) -> Any:
    return torch.tensor(rows, dtype=I32, device="cuda" if HERE else "cpu")


def backward(made: Any) -> None:
    """Ask for the gradients of a result."""
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


def told(name: str, compiled: list[Any]) -> dict[str, Any]:
    """Call an entry, and say what that was. milliseconds: of the processor, of the entry's import and of its call."""
    before, count, took = set(sys.modules), len(compiled), []
    for do in (lambda: getattr(kernels, name.partition(",")[0]), CALLS[name]):
        began = time.process_time()
        do()
        took.append(round(1e3 * (time.process_time() - began), 1))
    loaded = sorted(m for m in sys.modules.keys() - before if not m.startswith("numba_cute"))
    return {"name": name, "milliseconds": took, "compiled": len(compiled) - count, "loaded": loaded}


def main(names: list[str]) -> None:
    """Call entries one after another, each for the first time."""
    compiled: list[Any] = []
    compile_ir = nvvm.compile_ir
    nvvm.compile_ir = lambda *given, **named: compiled.append(1) or compile_ir(*given, **named)
    if HERE:
        torch.zeros(1, device="cuda")
        where: Any = contextlib.nullcontext()
    else:
        from .pretended import pretended

        where = pretended()
    with where:
        for name in names or CALLS:
            print(json.dumps(told(name, compiled)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
