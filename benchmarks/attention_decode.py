# SPDX-License-Identifier: Apache-2.0
"""Attention of one query over a cache, by how much of a copy's rate keys and values are read; beside cuDNN.

python -m benchmarks attention_decode                         bf16, 32 heads over 8 of keys and values, d 128
python -m benchmarks attention_decode --cases 32x4096 32x4096x64 32x4096x16xragged
python -m benchmarks attention_decode --splits 1 2 4 8        numbers of splits beside the one that is chosen

The share is of the bytes a second that a device copy reads and writes in the same run. All are launched from CUDA
graphs, as those who serve models do. Caches that are small beside L2 are taken in turns, so that none is found there.
"""

import argparse
from typing import NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks import harness
from benchmarks.harness import Entry, Figure, Result
from numba_cute.kernels import flash_attention
from numba_cute.testing import Pace, compare

LEAST = 256 << 20  # bytes that launches read before they read the same again


class Case(NamedTuple):
    """A cache. page: keys of a page, 0 if there are none. ragged: whether sequences have lengths of their own, from an
    eighth of the keys to all."""

    batch: int
    keys: int
    page: int = 0
    ragged: bool = False

    def __str__(self):
        return f"{', pages of ' + str(self.page) if self.page else ''}{', ragged' if self.ragged else ''}"


def case(text):
    """A case from "32x4096", "32x4096x64" or "32x4096x64xragged"."""
    *numbers, last = [*text.split("x"), ""] if not text.endswith("xragged") else text.split("x")
    if not 2 <= len(numbers) <= 3 or not all(n.isdigit() for n in numbers):
        raise argparse.ArgumentTypeError(f"{text}: BATCHxKEYS[xPAGE][xragged]")
    return Case(*map(int, numbers), **({"ragged": True} if last else {}))


class Cache:
    """Keys and values of a case's sequences."""

    def __init__(self, case, kv_heads, d):
        batch, keys, page, ragged = case
        self.pages, self.page = None, page
        self.k, self.v = (torch.randn(batch, keys, kv_heads, d, device="cuda", dtype=torch.bfloat16) for _ in "kv")
        self.lengths = torch.full((batch,), keys, device="cuda", dtype=torch.int32) if page or ragged else None
        if ragged:
            made = torch.Generator().manual_seed(0)
            self.lengths.copy_(torch.randint(keys // 8, keys + 1, (batch,), generator=made))
        if page:
            self.pages = torch.randperm(batch * keys // page, device="cuda").int().reshape(batch, -1)
        read = batch * keys if self.lengths is None else int(self.lengths.sum())
        self.bytes = read * kv_heads * d * 4

    def attend(self, q, out, splits):
        k, v = (x.view(-1, self.page, *x.shape[2:]) if self.page else x for x in (self.k, self.v))
        options = {"seqused_k": self.lengths, "page_table": self.pages, "num_splits": splits}
        return lambda: flash_attention(q, k, v, out=out, **options)


def contenders(caches, q, out, options):
    """Launches, of each cache."""

    def theirs(cache):
        turned = [x.transpose(1, 2) for x in (q, cache.k, cache.v)]
        return lambda: torch.nn.functional.scaled_dot_product_attention(*turned, enable_gqa=True)

    source = torch.empty(LEAST // 2, device="cuda", dtype=torch.int8)
    target = torch.empty_like(source)
    found = {"copy": [lambda: target.copy_(source)]}
    for splits in (0, *options.splits):
        name = f"ours, {splits} splits" if splits else "ours"
        found[name] = [c.attend(q, out, splits) for c in caches]
    if caches[0].lengths is None:
        found["cudnn"] = [theirs(c) for c in caches]
    return found, source.numel() * 2


def measured(case, options):
    room = case.batch * case.keys * options.kv_heads * options.dim * 4
    caches = [Cache(case, options.kv_heads, options.dim) for _ in range(max(1, -(-LEAST // room)))]
    q = torch.randn(case.batch, options.queries, options.heads, options.dim, device="cuda", dtype=torch.bfloat16)
    pace = Pace(turn=options.turn, least=6 * options.turn, most=20 * options.turn)
    launches, copied = contenders(caches, q, torch.empty_like(q), options)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION), torch.cuda.stream(stream):
        found = compare(
            launches, baseline="copy", rounds=options.rounds, pace=pace, keep_going=True, stream=stream, graphs=True
        )
    for who, why in found.failed.items():
        print(f"{who}: {why}", flush=True)
    heads = f"{options.heads}/{options.kv_heads} heads"
    name = f"d{options.dim}, {heads}, {case.batch} x {options.queries} over {case.keys}{case}"
    figures = {f"{name}: copy": Figure(copied * 1e-6 / found["copy"].median, "TB/s", True, peer=True)}
    for who in launches:
        if who != "copy" and who not in found.failed:
            ratio, held = found.speed(who)
            share = caches[0].bytes / copied
            figures[f"{name}: {who}"] = Figure(
                ratio * share, "of copy", True, (held.low * share, held.high * share), who == "cudnn"
            )
            print(f"{name}: {who}: {ratio * share:.3f} of copy, {found[who].median:.1f} us", flush=True)
    return figures, {name: found.as_dict()}


def run(options):
    figures, details = {}, {}
    for case in options.cases:
        more, detail = measured(case, options)
        figures |= more
        details |= detail
        torch.cuda.empty_cache()
    return Result(figures, {"comparisons": details})


CASES = [
    *(Case(*size) for size in ((32, 4096), (32, 32768), (64, 8192), (128, 4096), (1, 32768), (8, 8192))),
    Case(32, 8192, 16), Case(32, 16384, 64, True), Case(128, 4096, 64, True),
]  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=case, nargs="+", default=CASES, help="BATCHxKEYS[xPAGE][xragged]")
    parser.add_argument("--dim", type=int, default=128, help="head dimension")
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8, help="heads of keys and values")
    parser.add_argument("--splits", type=int, nargs="*", default=[], help="numbers of splits")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.05, help="seconds")


ENTRY = Entry("attention_decode", "attention of few queries: share of a copy's rate", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
