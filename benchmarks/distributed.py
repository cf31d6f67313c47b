# SPDX-License-Identifier: Apache-2.0
"""Products of several GPUs in one kernel each, beside NCCL followed by cuBLAS, in turns, for the shapes of a 70B model
cut over the ranks; attention over a sequence cut over the ranks, beside NCCL followed by our attention; and beside the
larger of communication alone and multiplication alone, which is what is left of a time if all of the smaller one is
hidden (overlap).

    python -m benchmarks distributed [--ranks 2] [--cases "gather 4096 up" …] [--rounds 5]
    torchrun --nproc-per-node 2 -m benchmarks.distributed --rounds 3

Needs two GPUs and torch. Times are the slowest rank's, bfloat16, of CUDA graphs that make some calls in a row, so that
the host costs nothing; with --eager, of calls from Python.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import statistics
import sys
import time
from typing import Any

from benchmarks.harness import Entry, Figure, Result

# (columns of the result, extent summed over), and which of them the ranks share.
LAYERS = {"up": (28672, 8192), "qkv": (10240, 8192), "down": (8192, 28672), "out": (8192, 8192)}
HEADS = {"grouped": (64, 8, 128), "many": (16, 16, 128)}  # of Q, of K and V, and their dimension
ROWS = (2048, 4096, 8192)
CASES = [
    f"{kind} {m} {layer}"
    for kind, layers in (("gather", ("up", "qkv")), ("scatter", ("down", "out")))
    for layer in layers
    for m in ROWS
] + [f"reduce {m} {layer} {shots}" for m, layer in ((256, "out"), (2048, "down")) for shots in ("one_shot", "two_shot")]
MOE = {"wide": (7168, 2048, 8, 32), "few": (4096, 14336, 2, 8)}  # hidden, inner, experts of a token, experts of a rank
CASES += [f"{kind} {m} {layer}" for kind in ("dispatch", "combine") for layer in MOE for m in (2048, 4096)]
CASES += [f"ring {m} {layer}{order}" for layer in HEADS for m in (8192, 32768) for order in ("", " causal", " zigzag")]
TURN = 8.0  # milliseconds that a turn of one contender takes, about
PATIENCE = 25
"""Seconds that one case may take: then the process says where it is, and ends."""


class Rank:
    """One of the processes that measure."""

    def __init__(self) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        dist.init_process_group("nccl", device_id=self.device)
        torch.manual_seed(self.rank)

    def warm_up(self) -> None:
        """Multiply for a second: the first case had waited for the GPU's clocks."""
        a, end = self.random(8192, 8192), time.monotonic() + 1
        while time.monotonic() < end:
            self.torch.matmul(a, a)
            self.torch.cuda.synchronize()

    def say(self, *words: Any) -> None:
        """Print, on the first rank."""
        if self.rank == 0:
            print(*words, flush=True)

    def random(self, *shape: int) -> Any:
        return self.torch.randn(shape, device=self.device, dtype=self.torch.bfloat16)

    def gather(self, m: int, n: int, k: int) -> tuple[dict[str, Any], Any, Any]:
        """Contenders for all rows @ b, and the results of ours and NCCL's."""
        import torch.distributed._symmetric_memory as symm_mem

        from numba_cute.kernels import matmul
        from numba_cute.kernels.distributed import all_gather_matmul

        torch, dist, n = self.torch, self.dist, n // self.world
        a = symm_mem.empty((m // self.world, k), dtype=torch.bfloat16, device=self.device)
        a.copy_(self.random(*a.shape))
        b = self.random(n, k).mT
        whole = torch.empty(m, k, dtype=torch.bfloat16, device=self.device)
        ours, theirs = (torch.empty(m, n, dtype=torch.bfloat16, device=self.device) for _ in range(2))

        def nccl() -> None:
            dist.all_gather_into_tensor(whole, a)
            torch.matmul(whole, b, out=theirs)

        return {
            "ours": lambda: all_gather_matmul(a, b, out=ours),
            "NCCL, cuBLAS": nccl,
            "NCCL alone": lambda: dist.all_gather_into_tensor(whole, a),
            "cuBLAS alone": lambda: torch.matmul(whole, b, out=theirs),
            "our GEMM alone": lambda: matmul(whole, b, out=theirs),
        }, ours, theirs  # fmt: skip

    def scatter(self, m: int, n: int, k: int) -> tuple[dict[str, Any], Any, Any]:
        """Contenders for this rank's rows of the sum of a @ b, and the results of ours and NCCL's."""
        from numba_cute.kernels import matmul
        from numba_cute.kernels.distributed import matmul_reduce_scatter

        torch, dist, k = self.torch, self.dist, k // self.world
        a, b = self.random(m, k), self.random(n, k).mT
        whole = torch.empty(m, n, dtype=torch.bfloat16, device=self.device)
        ours, theirs = (torch.empty(m // self.world, n, dtype=torch.bfloat16, device=self.device) for _ in range(2))

        def nccl() -> None:
            torch.matmul(a, b, out=whole)
            dist.reduce_scatter_tensor(theirs, whole)

        return {
            "ours": lambda: matmul_reduce_scatter(a, b, out=ours),
            "NCCL, cuBLAS": nccl,
            "NCCL alone": lambda: dist.reduce_scatter_tensor(theirs, whole),
            "cuBLAS alone": lambda: torch.matmul(a, b, out=whole),
            "our GEMM alone": lambda: matmul(a, b, out=whole),
        }, ours, theirs  # fmt: skip

    def reduce(self, m: int, n: int, k: int, shots: str) -> tuple[dict[str, Any], Any, Any]:
        """Contenders for the sum of a @ b on all ranks, and the results of ours and NCCL's."""
        from numba_cute.kernels import matmul
        from numba_cute.kernels.distributed import matmul_all_reduce

        torch, dist, k = self.torch, self.dist, k // self.world
        a, b = self.random(m, k), self.random(n, k).mT
        ours, theirs, spare = (torch.empty(m, n, dtype=torch.bfloat16, device=self.device) for _ in range(3))

        def nccl() -> None:
            torch.matmul(a, b, out=theirs)
            dist.all_reduce(theirs)

        return {
            "ours": lambda: matmul_all_reduce(a, b, algorithm=shots, out=ours),
            "NCCL, cuBLAS": nccl,
            "NCCL alone": lambda: dist.all_reduce(spare),
            "cuBLAS alone": lambda: torch.matmul(a, b, out=spare),
            "our GEMM alone": lambda: matmul(a, b, out=spare),
        }, ours, theirs  # fmt: skip

    def ring(self, m: int, heads: int, kv_heads: int, d: int, order: str = "") -> tuple[dict[str, Any], Any, Any]:
        """Contenders for attention of this rank's queries to all keys, and the results of ours and NCCL's. m: rows of
        all ranks. order: "causal" in the order of the ranks, "zigzag", which is causal too, or neither."""
        import torch.distributed._symmetric_memory as symm_mem

        from numba_cute.kernels import flash_attention
        from numba_cute.kernels.distributed import ring_attention

        torch, dist, rows, masked = self.torch, self.dist, m // self.world, bool(order)
        q, shape = self.random(1, rows, heads, d), (1, rows, kv_heads, d)
        k, v = (symm_mem.empty(shape, dtype=torch.bfloat16, device=self.device) for _ in range(2))
        k.copy_(self.random(*shape))
        v.copy_(self.random(*shape))
        every_k, every_v = (torch.empty((1, m, kv_heads, d), dtype=k.dtype, device=self.device) for _ in range(2))
        ours, theirs = (torch.empty_like(q) for _ in range(2))
        half, cut = rows // 2, ((0, rows, (self.rank + 1) * rows if masked else m),)
        if order == "zigzag":
            cut = (0, half, (self.rank + 1) * half), (half, rows, (2 * self.world - self.rank) * half)

        def bring() -> None:
            dist.all_gather_into_tensor(every_k[0], k[0])
            dist.all_gather_into_tensor(every_v[0], v[0])

        def in_order(x: Any) -> Any:
            """The keys of all ranks as the sequence has them."""
            if order != "zigzag":
                return x
            first, second = x.view(self.world, 2, half, kv_heads, d).unbind(1)
            return torch.cat([first, second.flip(0)]).view(x.shape)

        def attend(k: Any = every_k, v: Any = every_v) -> None:
            for begin, end, seen in cut:
                flash_attention(q[:, begin:end], k[:, :seen], v[:, :seen], causal=masked, out=theirs[:, begin:end])

        def nccl() -> None:
            bring()
            attend(in_order(every_k), in_order(every_v))

        how = "zigzag" if order == "zigzag" else "contiguous"
        return {
            "ours": lambda: ring_attention(q, k, v, causal=masked, order=how, out=ours),
            "NCCL, our attention": nccl,
            "NCCL alone": bring,
            "our attention alone": attend,
        }, ours, theirs  # fmt: skip

    def moe(self, m: int, hidden: int, inner: int, topk: int, own: int) -> Any:
        """Make experts, tokens of this rank, their choices and weights, and matrices; and for NCCL the order of rows to
        send, how many go to and come of each rank, the order by expert of those that come, and where experts end."""
        from numba_cute.kernels.distributed import ExpertParallel

        torch, dist, count = self.torch, self.dist, own * self.world
        it = ExpertParallel(m, hidden, topk, count, capacity=min(2, self.world) * m * topk)
        it.x.copy_(self.random(m, hidden))
        indices = torch.rand(m, count, device=self.device).argsort(1)[:, :topk].contiguous()
        weights = torch.rand(m, topk, device=self.device)
        to, order = indices.flatten().sort(stable=True)
        counts = to.bincount(minlength=count).view(self.world, own)
        come = torch.empty_like(counts)
        dist.all_to_all_single(come, counts)
        sends, comes = counts.sum(1).tolist(), come.sum(1).tolist()
        expert = torch.arange(own, device=self.device).repeat(self.world).repeat_interleave(come.flatten())
        by_expert = expert.argsort(stable=True)
        ends = come.sum(0).cumsum(0).to(torch.int32)
        return it, indices, weights, (order, sends, comes, by_expert, ends)

    def dispatch(self, m: int, hidden: int, inner: int, topk: int, own: int) -> tuple[dict[str, Any], Any, Any]:
        """Contenders for the first product of experts, gate and value, of m tokens of each rank; NCCL knows how many
        rows come. Results: sums of this rank's rows, of which there are as many and which lie in another order."""
        from numba_cute.kernels import grouped_gemm

        torch, dist = self.torch, self.dist
        it, indices, _, (order, sends, comes, by_expert, ends) = self.moe(m, hidden, inner, topk, own)
        w = self.random(own, 2 * inner, hidden) * hidden**-0.5
        rows = sum(comes)
        ours = torch.zeros(it.extents.capacity, 2 * inner, dtype=w.dtype, device=self.device)
        sent, came = (torch.empty(n, hidden, dtype=w.dtype, device=self.device) for n in (sum(sends), rows))
        spare, theirs = torch.empty(rows, 2 * inner, dtype=w.dtype, device=self.device), []

        def bring() -> None:
            dist.all_to_all_single(came, sent, comes, sends)

        def nccl() -> None:
            torch.index_select(it.x, 0, order // topk, out=sent)
            bring()
            theirs[:] = [grouped(came[by_expert], w, ends)]

        return {
            "ours": lambda: it.dispatch_matmul(it.x, indices, w, out=ours),
            "NCCL, torch's grouped": nccl,
            "NCCL alone": bring,
            "torch's grouped alone": lambda: grouped(came, w, ends),
            "our GEMM alone": lambda: grouped_gemm(came, w, ends, out=spare),
        }, (lambda: sums_of(ours, ends)), (lambda: sums_of(theirs[0], ends))  # fmt: skip

    def combine(self, m: int, hidden: int, inner: int, topk: int, own: int) -> tuple[dict[str, Any], Any, Any]:
        """Contenders for the second product of experts, whose rows go back to be added up; NCCL knows how many."""
        from numba_cute.kernels import grouped_gemm

        torch, dist = self.torch, self.dist
        it, indices, weights, (order, sends, comes, by_expert, ends) = self.moe(m, hidden, inner, topk, own)
        first = self.random(own, inner, hidden) * hidden**-0.5
        w, rows = self.random(own, hidden, inner) * inner**-0.5, sum(comes)
        h = it.dispatch_matmul(it.x, indices, first)
        own_h = torch.empty(rows, inner, dtype=w.dtype, device=self.device)
        own_h.copy_(grouped(self.exchanged(it, order, topk, sends, comes)[by_expert], first, ends))
        ours, theirs = (torch.empty(m, 1, hidden, dtype=w.dtype, device=self.device) for _ in range(2))
        made, back = (torch.empty(n, hidden, dtype=w.dtype, device=self.device) for n in (rows, sum(sends)))
        by_rank, by_token, shares = by_expert.argsort(), order.argsort(), weights.to(w.dtype)[:, None]

        def bring() -> None:
            dist.all_to_all_single(back, made, sends, comes)

        def nccl() -> None:
            torch.index_select(grouped(own_h, w, ends), 0, by_rank, out=made)
            bring()
            torch.bmm(shares, back[by_token].view(m, topk, hidden), out=theirs)

        return {
            "ours": lambda: it.matmul_combine(h, w, weights, out=ours[:, 0]),
            "NCCL, torch's grouped": nccl,
            "NCCL alone": bring,
            "torch's grouped alone": lambda: grouped(own_h, w, ends),
            "our GEMM alone": lambda: grouped_gemm(own_h, w, ends, out=made),
        }, ours, theirs  # fmt: skip

    def exchanged(self, it: Any, order: Any, topk: int, sends: Any, comes: Any) -> Any:
        """Give the rows that come to this rank, by NCCL."""
        came = self.torch.empty(sum(comes), it.x.shape[1], dtype=it.x.dtype, device=self.device)
        self.dist.all_to_all_single(came, it.x[order // topk], comes, sends)
        return came

    def time(self, calls: Any, count: int) -> float:
        """Microseconds of a call, of so many that `calls` makes, on the slowest rank."""
        torch, dist = self.torch, self.dist
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        torch.cuda.synchronize()
        dist.barrier()
        events[0].record()
        calls()
        events[1].record()
        torch.cuda.synchronize()
        slowest = torch.tensor([1e3 * events[0].elapsed_time(events[1]) / count], device=self.device)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return float(slowest)

    def repeated(self, call: Any, count: int, eager: bool) -> Any:
        """Give what makes a call so many times in a row: from Python, or by a CUDA graph, which costs the host
        nothing."""

        def calls() -> None:
            for _ in range(count):
                call()

        if eager:
            return calls
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, capture_error_mode="thread_local"):
            calls()
        graph.replay()
        return graph.replay

    def measure(self, case: str, rounds: int, eager: bool) -> dict[str, float]:
        """Median microseconds of each contender."""
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        kind, m, layer, *how = case.split()
        layers = {"ring": HEADS, "dispatch": MOE, "combine": MOE}.get(kind, LAYERS)
        contenders, ours, theirs = getattr(self, kind)(int(m), *layers[layer], *how)
        for name, call in contenders.items():
            call()
            self.torch.cuda.synchronize()
            if name == "ours":
                self.say(f"{case}: ran")
        contenders["ours"]()
        contenders[theirs_of(contenders)]()
        self.torch.cuda.synchronize()
        ours, theirs = (x() if callable(x) else x for x in (ours, theirs))
        off = (ours.double() - theirs.double()).norm() / theirs.double().norm()
        assert float(off) < 6e-3, f"{case}: rank {self.rank}: off by {float(off)}"
        repeated = {}
        for name, call in contenders.items():
            took = self.time(self.repeated(call, 2, eager=True), 2)
            count = max(2, min(50, round(1e3 * TURN / took)))
            repeated[name] = self.repeated(call, count, eager), count
        found: dict[str, list[float]] = {name: [] for name in contenders}
        for turn in range(rounds):
            for name in sorted(contenders, reverse=turn % 2 == 1):
                found[name].append(self.time(*repeated[name]))
        medians = {name: statistics.median(times) for name, times in found.items()}
        times = ", ".join(f"{n} {t:.1f} us" for n, t in medians.items())
        ratio = medians[theirs_of(medians)] / medians["ours"]
        self.say(f"{case}: off {float(off):.1e}; {times}; {ratio:.3f} times as fast; overlap {overlap(medians):.3f}")
        self.torch.cuda.synchronize()
        self.dist.barrier()
        return medians


def grouped(a: Any, b: Any, ends: Any) -> Any:
    """Multiply rows by their group's matrix, by torch. b: (groups, N, K)."""
    import torch

    return torch._grouped_mm(a, b.mT, offs=ends)


def sums_of(h: Any, ends: Any) -> Any:
    """Add up the rows of each group, and their squares: whatever order they lie in."""
    import torch

    parts = [part.double() for part in torch.tensor_split(h, ends.tolist())[:-1]]
    return torch.stack([f(part).sum(0) for part in parts for f in (torch.abs, torch.square)])


def overlap(times: dict[str, float]) -> float:
    """Give the larger of communication and multiplication alone, each the faster one's, as a share of our time."""
    multiply = min(t for name, t in times.items() if name.endswith(" alone") and name != "NCCL alone")
    return max(times["NCCL alone"], multiply) / times["ours"]


def theirs_of(contenders: dict[str, Any]) -> str:
    """Name the one that communicates by NCCL first and multiplies then."""
    return next(name for name in contenders if name.startswith("NCCL, "))


def main(given: list[str]) -> None:
    parser = argparse.ArgumentParser()
    arguments(parser)
    options = parser.parse_args(given)
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)
    one = Rank()
    one.say(f"{one.world} ranks are there")
    one.warm_up()
    from numba_cute.kernels.distributed import forget

    for case in options.cases:
        times = one.measure(case, options.rounds, options.eager)
        one.say(json.dumps({"case": case, "times": times}))
        forget()
        one.torch.cuda.empty_cache()
    faulthandler.cancel_dump_traceback_later()
    one.dist.barrier()
    one.dist.destroy_process_group()


# ---------------------------------------------------------------------- the benchmark
def run(options: argparse.Namespace) -> Result:
    """Start the ranks; gives their figures."""
    from numba import cuda

    from benchmarks.ranks import start

    if len(cuda.gpus) < options.ranks:
        raise RuntimeError(f"distributed needs {options.ranks} GPUs, and here are {len(cuda.gpus)}")
    given = ["--rounds", str(options.rounds), *["--eager"] * options.eager, "--cases", *options.cases]
    ended = start("benchmarks.distributed", given, options.ranks, timeout=options.seconds, show=True)
    lines = [json.loads(line) for said in ended.said for line in said.splitlines() if line.startswith('{"case"')]
    if not lines:
        raise RuntimeError(f"the ranks gave no times{'' if ended.in_time else ' in time'}:\n{ended.text[-6000:]}")
    figures = {}
    for line in lines:
        times = line["times"]
        for name, us in times.items():
            figures[f"{line['case']}, {name}"] = Figure(us, "us", peer=name != "ours")
        figures[f"{line['case']}, overlap"] = Figure(overlap(times), "", more_is_better=True)
    return Result(figures, {"ranks": options.ranks})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ranks", type=int, default=2, help="GPUs")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--eager", action="store_true", help="call from Python, rather than replay CUDA graphs")
    parser.add_argument("--seconds", type=float, default=240, help="that all may take")


ENTRY = Entry("distributed", "products and attention of several GPUs, beside NCCL and cuBLAS", run, arguments, gpu=True)

if __name__ == "__main__":
    main(sys.argv[1:])
