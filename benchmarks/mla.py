# SPDX-License-Identifier: Apache-2.0
"""Attention of new queries over a latent cache (MLA), beside torch's, FlashMLA and FlashInfer where they are installed.

python -m benchmarks mla                                  bf16, 512 + 64 columns, pages of 64
python -m benchmarks mla --cases 128x1x128x4096 64x2x128x8192x64xragged
python -m benchmarks mla --variants                       ours without multicast
python -m benchmarks mla --splits 1 2 4                   numbers of splits beside the one that is chosen

A case is BATCHxQUERIESxHEADSxKEYS[xPAGE][xragged]; page 0 is a contiguous cache. Of each contender TFLOP/s (2 x (576 +
512) a query, head and key) and GB/s of the cache, q and o, and of which bound it has how much: of the bytes a second
that a device copy reads and writes in the same run, or of 989 TFLOP/s, whichever takes longer. Launches come from CUDA
graphs; caches small beside L2 are taken in turns. torch's SDPA has heads as queries of one head, and is not causal.
"""

import argparse
from typing import NamedTuple

import torch

from benchmarks import harness
from benchmarks.harness import Entry, Figure, Result
from numba_cute.kernels import entry, latent_attention
from numba_cute.kernels.attention import latent_plan
from numba_cute.kernels.attention.plan import bound, room
from numba_cute.kernels.gemm.operands import counter_of
from numba_cute.testing import Pace, compare

LATENT, ROPE, SCALE = 512, 64, 192**-0.5
PEAK = 989e12  # of dense products of 16 bits a second, by NVIDIA's sheet
LEAST = 256 << 20  # bytes that launches read before they read the same again


class Case(NamedTuple):
    """What is attended. page: keys of a page, 0 if there are none. ragged: whether sequences have lengths of their own,
    from an eighth of the keys to all."""

    batch: int
    queries: int
    heads: int
    keys: int
    page: int = 64
    ragged: bool = False

    def __str__(self):
        ends = f"{', pages of ' + str(self.page) if self.page else ''}{', ragged' if self.ragged else ''}"
        return f"{self.batch} x {self.queries} x {self.heads} heads over {self.keys}{ends}"


def case(text):
    """A case of its text."""
    *numbers, last = [*text.split("x"), ""] if not text.endswith("xragged") else text.split("x")
    if not 4 <= len(numbers) <= 5 or not all(n.isdigit() for n in numbers):
        raise argparse.ArgumentTypeError(f"{text}: BATCHxQUERIESxHEADSxKEYS[xPAGE][xragged]")
    return Case(*map(int, numbers), **({"ragged": True} if last else {}))


class Problem:
    """A cache, queries and where the result goes."""

    def __init__(self, case):
        self.case, d = case, LATENT + ROPE
        self.flat = torch.randn(case.batch, case.keys, d, device="cuda", dtype=torch.bfloat16)
        self.cache = self.flat.view(-1, case.page, d) if case.page else self.flat
        self.q = torch.randn(case.batch, case.queries, case.heads, d, device="cuda", dtype=torch.bfloat16)
        self.out = self.q.new_empty(*self.q.shape[:-1], LATENT)
        self.lengths = torch.full((case.batch,), case.keys, device="cuda", dtype=torch.int32)
        if case.ragged:
            made = torch.Generator().manual_seed(0)
            self.lengths.copy_(torch.randint(case.keys // 8, case.keys + 1, (case.batch,), generator=made))
        self.pages = None
        if case.page:
            count = case.batch * case.keys // case.page
            self.pages = torch.randperm(count, device="cuda").int().view(case.batch, -1)
        read = int(self.lengths.sum())
        self.bytes = 2 * (read * d + self.q.numel() + self.out.numel())
        self.flops = 2 * read * case.queries * case.heads * (d + LATENT)
        self.causal = case.queries > 1

    def ours(self, splits=0):
        options = {"seqused_k": self.lengths, "page_table": self.pages, "causal": self.causal, "num_splits": splits}
        return lambda: latent_attention(self.q, self.cache, scale=SCALE, out=self.out, **options)

    def variant(self, **options):
        """A launch whose plan is told what it else chooses."""
        q, sms, given = self.q, entry.multiprocessors(self.q), (self.lengths, self.pages)
        splits = latent_plan.best_splits(q, self.cache, *given, sms)
        work = q.new_empty(room(q, self.out, splits), dtype=torch.float32) if splits > 1 else None
        lse = torch.empty(self.case.batch, self.case.heads, self.case.queries, device="cuda")
        made = latent_plan.Options(SCALE, LATENT, self.causal, splits, **options)
        todo = latent_plan.launches(q, self.cache, self.out, lse, counter_of(q), sms, made, *given, work)

        def launch():
            for kernel, args, grid, block in todo:
                bound(kernel, grid, block, entry.stream_of(q))(*args)

        return launch

    def torch(self):
        q, k = self.q.view(self.case.batch, 1, -1, LATENT + ROPE), self.flat[:, None]
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, k[..., :LATENT], scale=SCALE)

    def flash_mla(self):
        import flash_mla

        group = self.case.queries * self.case.heads
        plan = flash_mla.get_mla_metadata(self.lengths, group, 1)
        given = self.q, self.cache[:, :, None], self.pages, self.lengths, LATENT, *plan
        return lambda: flash_mla.flash_mla_with_kvcache(*given, softmax_scale=SCALE, causal=self.causal)

    def flashinfer(self):
        import flashinfer

        batch, queries, heads = self.case[:3]
        wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(
            torch.empty(128 << 20, dtype=torch.int8, device="cuda"), backend="fa3"
        )
        at = [torch.arange(0, batch + 1, device="cuda", dtype=torch.int32) * n for n in (queries, self.pages.shape[1])]
        wrapper.plan(
            *at, self.pages.flatten(), self.lengths, heads, LATENT, ROPE, self.case.page, self.causal, SCALE,
            self.q.dtype, self.q.dtype,
        )  # fmt: skip
        q = self.q.view(-1, heads, LATENT + ROPE)
        given = *q.split([LATENT, ROPE], -1), *self.cache.split([LATENT, ROPE], -1)
        return lambda: wrapper.run(*given)


def contenders(problems, options):
    """Launches, of each problem."""
    source = torch.empty(LEAST // 2, device="cuda", dtype=torch.int8)
    target = torch.empty_like(source)
    makers = {"ours": Problem.ours}
    for splits in options.splits:
        makers[f"ours, {splits} splits"] = lambda p, splits=splits: p.ours(splits)
    if options.variants:
        makers["ours, no multicast"] = lambda p: p.variant(cluster=1)
    if not problems[0].case.ragged:
        makers["torch"] = Problem.torch
    if problems[0].pages is not None:
        makers |= {"flash_mla": Problem.flash_mla, "flashinfer": Problem.flashinfer}
    found = {"copy": [lambda: target.copy_(source)]}
    for name, make in makers.items():
        try:
            found[name] = [make(p) for p in problems]
        except ImportError as e:
            print(f"{name}: {e}", flush=True)
    return found, source.numel() * 2


def right(problem):
    """Fail unless ours agrees with products in float32."""
    problem.ours()()
    b = problem.case.batch - 1
    own = problem.flat[b] if problem.pages is None else problem.cache[problem.pages[b].long()].flatten(0, 1)
    own, last = own[: int(problem.lengths[b])].float(), problem.q[b, -1].float()  # the last query sees all
    want = (last @ own.mT * SCALE).softmax(-1) @ own[:, :LATENT]
    assert (problem.out[b, -1].float() - want).norm() <= 0.02 * want.norm()


def measured(case, options):
    room_of_one = case.batch * case.keys * (LATENT + ROPE) * 2
    problems = [Problem(case) for _ in range(max(1, -(-LEAST // room_of_one)))]
    right(problems[0])
    pace = Pace(turn=options.turn, least=6 * options.turn, most=20 * options.turn)
    launches, copied = contenders(problems, options)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        found = compare(
            launches, baseline="copy", rounds=options.rounds, pace=pace, keep_going=True, stream=stream, graphs=True
        )
    for who, why in found.failed.items():
        print(f"{who}: {why}", flush=True)
    rate = copied / found["copy"].median  # bytes a microsecond
    figures, (bytes_, flops) = {}, (problems[0].bytes, problems[0].flops)
    by_memory, by_products = bytes_ / rate, flops / PEAK * 1e6
    name, which = f"{case}", "memory" if by_memory >= by_products else "products"
    for who in launches:
        if who != "copy" and who not in found.failed:
            took, peer = found[who].median, not who.startswith("ours")
            share = max(by_memory, by_products) / took
            figures[f"{name}: {who}"] = Figure(share, f"of the bound of {which}", True, None, peer)
            print(
                f"{name}: {who}: {took:.1f} us, {flops / took * 1e-6:.0f} TFLOP/s, {bytes_ / took * 1e-3:.0f} GB/s, "
                f"{share:.3f} of the bound of {which}", flush=True,
            )  # fmt: skip
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
    *(Case(*size) for size in (
        (128, 1, 128, 4096), (128, 2, 128, 8192), (64, 1, 64, 8192), (128, 1, 16, 4096), (16, 1, 128, 8192),
        (1, 1, 128, 32768),
    )),
    Case(128, 1, 128, 4096, 0), Case(64, 1, 128, 8192, 64, True),
]  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=case, nargs="+", default=CASES, help="BATCHxQUERIESxHEADSxKEYS[xPAGE][xragged]")
    parser.add_argument("--splits", type=int, nargs="*", default=[], help="numbers of splits")
    parser.add_argument("--variants", action="store_true", help="ours with other plans too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.05, help="seconds")


ENTRY = Entry("mla", "attention over a latent cache: share of its bound", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
