# SPDX-License-Identifier: Apache-2.0
"""Attention of one query over a cache, by how much of a copy's rate keys and values are read; beside cuDNN.

python -m benchmarks attention_decode                         bf16, 32 heads over 8 of keys and values, d 128
python -m benchmarks attention_decode --sizes 32x4096 --page 64 --ragged
python -m benchmarks attention_decode --splits 1 2 4 8        numbers of splits beside the one that is chosen

The share is of the bytes a second that a device copy reads and writes in the same run. All are launched from CUDA
graphs, as those who serve models do. Caches that are small beside L2 are taken in turns, so that none is found there.
"""

import argparse

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks import harness
from benchmarks.attention import size
from benchmarks.harness import Entry, Figure, Result
from numba_cute.kernels import flash_attention
from numba_cute.testing import Pace, compare

LEAST = 256 << 20  # bytes that launches read before they read the same again


class Cache:
    """Keys and values of sequences, in pages if `page` is given, with lengths of their own if `ragged`."""

    def __init__(self, batch, keys, kv_heads, d, page, ragged):
        self.pages = None
        self.k, self.v = (torch.randn(batch, keys, kv_heads, d, device="cuda", dtype=torch.bfloat16) for _ in "kv")
        self.lengths = torch.full((batch,), keys, device="cuda", dtype=torch.int32) if page or ragged else None
        if ragged:
            made = torch.Generator().manual_seed(0)
            self.lengths.copy_(torch.randint(keys // 8, keys + 1, (batch,), generator=made))
        if page:
            self.pages = torch.randperm(batch * keys // page, device="cuda").int().reshape(batch, -1)
        read = batch * keys if self.lengths is None else int(self.lengths.sum())
        self.bytes = read * kv_heads * d * 4

    def attend(self, q, out, splits, page):
        k, v = (x.view(-1, page, *x.shape[2:]) if page else x for x in (self.k, self.v))
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
        found[name] = [c.attend(q, out, splits, options.page) for c in caches]
    if not options.page and not options.ragged:
        found["cudnn"] = [theirs(c) for c in caches]
    return found, source.numel() * 2


def measured(batch, keys, options):
    room = batch * keys * options.kv_heads * options.dim * 4
    caches = [
        Cache(batch, keys, options.kv_heads, options.dim, options.page, options.ragged)
        for _ in range(max(1, -(-LEAST // room)))
    ]
    q = torch.randn(batch, options.queries, options.heads, options.dim, device="cuda", dtype=torch.bfloat16)
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
    how = f"{', pages of ' + str(options.page) if options.page else ''}{', ragged' if options.ragged else ''}"
    heads = f"{options.heads}/{options.kv_heads} heads"
    name = f"d{options.dim}, {heads}, {batch} x {options.queries} over {keys}{how}"
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
    for batch, keys in options.sizes:
        more, detail = measured(batch, keys, options)
        figures |= more
        details |= detail
        torch.cuda.empty_cache()
    return Result(figures, {"comparisons": details})


SIZES = [(32, 4096), (32, 32768), (64, 8192), (128, 4096), (1, 32768), (8, 8192)]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=size, nargs="+", default=SIZES, help="BATCHxKEYS")
    parser.add_argument("--dim", type=int, default=128, help="head dimension")
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8, help="heads of keys and values")
    parser.add_argument("--page", type=int, default=0, help="keys of a page")
    parser.add_argument("--ragged", action="store_true", help="lengths from an eighth of the keys to all")
    parser.add_argument("--splits", type=int, nargs="*", default=[], help="numbers of splits")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.05, help="seconds")


ENTRY = Entry("attention_decode", "attention of few queries: share of a copy's rate", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
