# SPDX-License-Identifier: Apache-2.0
"""Options of ready-made kernels beside what PyTorch has in their place: bf16, called as they are.

python -m benchmarks entries
python -m benchmarks entries --cases mask blocks

"speed" is the peer's time divided by ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from numba import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from benchmarks import harness
from benchmarks.contests import Calls, beside, case_arguments, cases, close, random
from benchmarks.harness import Entry, Figure, Result
from numba_cute import kernels


def both(ours: Callable[[], Any], theirs: Callable[[], Any], **more: Callable[[], Any]) -> Calls:
    """Calls whose results are compared before they are timed."""
    calls = {"ours": ours, **more, "torch": theirs}
    for call in calls.values():
        close(call(), theirs())
    return calls


def product(m: int, n: int, k: int) -> Calls:
    a, b = random(m, k), random(k, n)
    return both(lambda: kernels.matmul(a, b), lambda: a @ b)


def gathered(rows: int, of: int) -> Calls:
    """Rows by an index times a square matrix of 4096."""
    x, w = random(of, 4096), random(4096, 4096)
    index = torch.randperm(of, device="cuda")[:rows]
    return both(lambda: kernels.matmul(x, w, rows_of_a=index), lambda: x[index] @ w)


def scattered(rows: int, of: int) -> Calls:
    x, w, out = random(rows, 4096), random(4096, 4096), random(of, 4096)
    index = torch.randperm(of, device="cuda")[:rows]
    theirs = out.clone()

    def put() -> Any:
        theirs[index] = x @ w
        return theirs

    return both(lambda: kernels.matmul(x, w, rows_of_c=index, out=out), put)


@cuda.jit
def in_document(batch, head, query, key, documents):  # type: ignore[no-untyped-def]
    return (query >= key) & (documents[query] == documents[key])


def documents(d: int, gradients: bool) -> Calls:
    """A causal mask of eight documents of 16384 tokens, of 16 heads."""
    rows, heads = 16384, 16
    q, k, v, do = (random(1, rows, heads, d) for _ in range(4))
    ends = torch.sort(torch.randperm(rows - 1, device="cuda")[:7] + 1).values
    document = torch.bucketize(torch.arange(rows, device="cuda"), ends, right=True).int()
    blocks = kernels.block_mask(in_document, None, None, rows, rows, aux=(document,))

    def seen(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (i >= j) & (document[i] == document[j])

    mask = create_block_mask(seen, None, None, rows, rows)
    compiled = torch.compile(flex_attention, dynamic=False)

    def flex(q: Any, k: Any, v: Any) -> Any:
        return compiled(*(x.transpose(1, 2) for x in (q, k, v)), block_mask=mask).transpose(1, 2)

    def of(attend: Any) -> Callable[[], Any]:
        if not gradients:
            return lambda: attend(q, k, v)
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        o = attend(*leaves)
        return lambda: torch.cat(torch.autograd.grad(o, leaves, do, retain_graph=True))

    how = {"mask": in_document, "mask_aux": (document,)}
    return both(
        of(lambda *x: kernels.flash_attention(*x, blocks=blocks)), of(flex),
        **{"ours, causal and the mask": of(lambda *x: kernels.flash_attention(*x, causal=True, **how))},
    )  # fmt: skip


def grown(batch: int, keys: int) -> Calls:
    """A token for each sequence, turned by its position, written to the cache, and its attention; 32 heads over 8."""
    q, new_k, new_v = random(batch, 1, 32, 128), random(batch, 1, 8, 128), random(batch, 1, 8, 128)
    k, v = random(batch, keys, 8, 128), random(batch, keys, 8, 128)
    lengths = torch.full((batch,), keys - 1, device="cuda", dtype=torch.int32)
    angle = torch.arange(keys, device="cuda")[:, None] * 1e4 ** -(torch.arange(64, device="cuda") / 64)
    cos, sin = angle.cos(), angle.sin()
    rows = torch.arange(batch, device="cuda")

    def turned(x: Any) -> Any:
        c, s = (t[lengths.long()][:, None, None] for t in (cos, sin))
        first, second = x.float().chunk(2, -1)
        return torch.cat((first * c - second * s, second * c + first * s), -1).bfloat16()

    def theirs() -> Any:
        k[rows, lengths] = turned(new_k)[:, 0]
        v[rows, lengths] = new_v[:, 0]
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            o = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (turned(q), k, v)), enable_gqa=True)
        return o.transpose(1, 2)

    def ours() -> Any:
        return kernels.attention_with_cache(q, k, v, new_k, new_v, lengths, rotary_cos=cos, rotary_sin=sin)

    return both(ours, theirs)


def stem(images: int, channels_last: bool) -> Calls:
    """ResNet's first convolution: 7 x 7 of 3 channels at a stride of 2."""
    order = torch.channels_last if channels_last else torch.contiguous_format
    x, w = (t.contiguous(memory_format=order) for t in (random(images, 3, 224, 224), random(64, 3, 7, 7)))
    how = {"stride": 2, "padding": 3}
    return both(lambda: kernels.conv2d(x, w, **how), lambda: F.conv2d(x, w, **how))


CASES: dict[str, Callable[[], Calls]] = {
    "matmul 4096 x 4096 x 4096": lambda: product(4096, 4096, 4096),
    "matmul 4096 x 4095 x 4096, odd N": lambda: product(4096, 4095, 4096),
    "matmul 4096 x 4096 x 4095, odd K": lambda: product(4096, 4096, 4095),
    "matmul of 8192 rows by an index": lambda: gathered(8192, 32768),
    "matmul to 8192 rows by an index": lambda: scattered(8192, 32768),
    **{f"blocks of documents, d{d}, {'gradients' if g else 'forward'}": (lambda d=d, g=g: documents(d, g))
       for d in (64, 128) for g in (False, True)},
    "attention_with_cache 32 x 4096": lambda: grown(32, 4096),
    "attention_with_cache 128 x 4096": lambda: grown(128, 4096),
    "conv2d 7 x 7 of 3 channels, NCHW": lambda: stem(128, False),
    "conv2d 7 x 7 of 3 channels, channels last": lambda: stem(128, True),
}  # fmt: skip


def measured(name: str, calls: Calls) -> dict[str, Figure]:
    return beside(name, calls, "torch")


def run(options: argparse.Namespace) -> Result:
    return cases(CASES, measured, options)


ENTRY = Entry("entries", "options of ready-made kernels beside PyTorch", run, case_arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
