# SPDX-License-Identifier: Apache-2.0
"""How long work on several GPUs takes on paper: from the rates of NVLink, of the network and of a GPU's own GEMM.

    python -m benchmarks.scale      the tables of docs/several_gpus.md

A kernel that communicates while it computes takes as long as the longer of both, and what cannot overlap: the first
signal, and the first or last piece. Between hosts NCCL runs beside kernels, on data that are whole. Bytes are those
that a GPU sends; it receives as many. Nothing here is measured, but for the rates that are marked so in `H200`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The rates of a GPU. link: bytes a second to GPUs of its host, one way, through NVSwitch, to any of them alike.
    signal: seconds until another GPU of the host sees a flag. network: bytes a second to other hosts. hop: seconds of a
    step of NCCL's between hosts. flops: of a GEMM alone. memory: bytes a second of a GPU's own. gpus: of a host."""

    link: float
    signal: float
    network: float
    hop: float
    flops: float
    memory: float
    gpus: int = 8


H200 = Machine(link=300e9, signal=3.3e-6, network=50e9, hop=10e-6, flops=650e12, memory=4.3e12)
"""link, signal, flops, memory: measured (peers_rate, both ways; tests/several_gpus; gemm; bandwidth). network: a port
of 400 Gb/s for each GPU. hop: a guess at NCCL's steps."""


@dataclass(frozen=True)
class Work:
    """What one GPU does. flops: of its part. sent: bytes to GPUs of its host. pieces: in how many parts these go. read:
    bytes of its own memory that the multiplications cannot do without, as weights."""

    flops: float
    sent: float
    pieces: int
    read: float

    def compute(self, of: Machine) -> float:
        """Seconds of the multiplications alone: of little work on many weights, those of reading them."""
        return max(self.flops / of.flops, self.read / of.memory)

    def communicate(self, of: Machine) -> float:
        """Seconds of the communication alone."""
        return self.sent / of.link + of.signal

    def apart(self, of: Machine) -> float:
        """Seconds of one after the other."""
        return self.compute(of) + self.communicate(of)

    def together(self, of: Machine) -> float:
        """Seconds of both at once: the longer, and a piece of the shorter, with its signal, that nothing hides."""
        longer, shorter = sorted((self.compute(of), self.sent / of.link), reverse=True)
        return longer + shorter / self.pieces + of.signal


TILE = 128
"""Rows that are announced at once."""


def _pieces(rows: float) -> int:
    return max(1, math.ceil(rows / TILE))


def all_gather_matmul(m: int, n: int, k: int, ranks: int, width: int = 2) -> Work:
    """A (m, k), of whose rows each rank has as many, gathered and multiplied by the rank's (k, n / ranks)."""
    pieces, read = _pieces(m / ranks) * (ranks - 1), k * n * width / ranks
    return Work(2 * m * n * k / ranks, (ranks - 1) * m // ranks * k * width, pieces, read)


def matmul_reduce_scatter(m: int, n: int, k: int, ranks: int, width: int = 2) -> Work:
    """(m, k / ranks) times (k / ranks, n), added up over the ranks, each of which keeps as many rows."""
    pieces, read = _pieces(m / ranks) * (ranks - 1), k * n * width / ranks
    return Work(2 * m * n * k / ranks, (ranks - 1) * m // ranks * n * width, pieces, read)


def matmul_all_reduce(m: int, n: int, k: int, ranks: int, width: int = 2, shots: int = 2) -> Work:
    """The same, and all ranks keep all. shots: 1: each sends all of its product to all; 2: rows are added up by one
    rank each, which sends the sums to all."""
    sent = (ranks - 1) * m * n * width if shots == 1 else 2 * ((ranks - 1) * m // ranks * n * width)
    pieces, read = _pieces(m / (1 if shots == 1 else ranks)) * (ranks - 1), k * n * width / ranks
    return Work(2 * m * n * k / ranks, sent, pieces, read)


def dispatch(tokens: int, chosen: int, hidden: int, inner: int, ranks: int, width: int = 2) -> Work:
    """Each rank's tokens go to the experts chosen, spread evenly over the ranks, which multiply by (hidden, inner): 8
    experts on each."""
    away = tokens * chosen * (ranks - 1) // ranks
    read = 8 * hidden * inner * width
    return Work(2 * tokens * chosen * hidden * inner, away * hidden * width, _pieces(away), read)


def ring_attention(sequence: int, heads: int, kv_heads: int, size: int, ranks: int, width: int = 2) -> Work:
    """Attention, not causal, of a sequence spread over the ranks: each rank's K and V go round all others."""
    mine = sequence // ranks
    sent = (ranks - 1) * 2 * mine * kv_heads * size * width
    return Work(4 * mine * sequence * heads * size, sent, _pieces(mine) * (ranks - 1), 0)


@dataclass(frozen=True)
class Step:
    """A training step of a model whose layers are split over the GPUs of a host, and whose weights, gradients and
    optimiser over the hosts (as FSDP does it). parameters: of the model. layers: in how many parts weights are fetched.
    tokens: of a host. hosts: how many."""

    parameters: float
    layers: int
    tokens: int
    hosts: int

    def compute(self, of: Machine) -> float:
        """Seconds of the multiplications: 6 a parameter and token."""
        return 6 * self.parameters * self.tokens / (of.gpus * of.flops)

    def sent(self, of: Machine) -> float:
        """Bytes that a GPU sends to other hosts: weights twice (forward and backward), gradients once, of bf16."""
        return 3 * 2 * self.parameters / of.gpus * (self.hosts - 1) / self.hosts

    def network(self, of: Machine) -> float:
        """Seconds of NCCL between the hosts: of its bytes, and of a tree of hops for each layer."""
        hops = 3 * self.layers * math.ceil(math.log2(self.hosts)) if self.hosts > 1 else 0
        return self.sent(of) / of.network + hops * of.hop

    def together(self, of: Machine) -> float:
        """Seconds of both at once; what is fetched for the first layer, and added up for the last, nothing hides."""
        longer, shorter = sorted((self.compute(of), self.network(of)), reverse=True)
        return longer + shorter / self.layers


# ---------------------------------------------------------------------- tables
TOKENS, HIDDEN, FFN, HEADS, KV_HEADS, SIZE, LAYERS = 8192, 8192, 28672, 64, 8, 128, 80
"""Of a model of 70 billion parameters."""


def works(ranks: int) -> dict[str, Work]:
    """The rows of the table of one host."""
    return {
        f"all-gather + GEMM, {TOKENS} x {HIDDEN} by {2 * FFN}": all_gather_matmul(TOKENS, 2 * FFN, HIDDEN, ranks),
        f"GEMM + reduce-scatter, {TOKENS} x {FFN} by {HIDDEN}": matmul_reduce_scatter(TOKENS, HIDDEN, FFN, ranks),
        f"GEMM + all-reduce (two-shot), {TOKENS} x {FFN} by {HIDDEN}": matmul_all_reduce(TOKENS, HIDDEN, FFN, ranks),
        f"GEMM + all-reduce (one-shot), 64 x {FFN} by {HIDDEN}": matmul_all_reduce(64, HIDDEN, FFN, ranks, shots=1),
        "dispatch + grouped GEMM, 4096 tokens to 8 experts, 7168 by 2048": dispatch(4096, 8, 7168, 2048, ranks),
        f"ring attention, {1 << 17} tokens, {HEADS} heads ({KV_HEADS} of K and V)": ring_attention(
            1 << 17, HEADS, KV_HEADS, SIZE, ranks
        ),
    }


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f}"


def of_a_host(of: Machine = H200, ranks: Iterable[int] = (2, 4, 8)) -> str:
    """The table of 2 to 8 GPUs of a host, in Markdown."""
    lines = [
        "| work of each GPU | GPUs | MB sent | compute, µs | communicate, µs | one after the other | at once | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in works(2):
        for n in ranks:
            w = works(n)[name]
            hidden = max(w.compute(of), w.communicate(of)) / w.together(of)
            lines.append(
                f"| {name} | {n} | {w.sent / 1e6:,.0f} | {_us(w.compute(of))} | {_us(w.communicate(of))} | "
                f"{_us(w.apart(of))} | {_us(w.together(of))} | {hidden:.2f} |"
            )
    return "\n".join(lines)


def of_hosts(of: Machine = H200, hosts: Iterable[int] = (8, 32, 128, 512, 1024)) -> str:
    """The table of 8 to 1,024 hosts, in Markdown."""
    lines = [
        "| tokens of a host | hosts | GPUs | GB that a GPU sends | compute, s | NCCL, s | at once, s | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for tokens in (65536, 8192):
        for n in hosts:
            step = Step(70e9, LAYERS, tokens, n)
            lines.append(
                f"| {tokens:,} | {n:,} | {n * of.gpus:,} | {step.sent(of) / 1e9:.1f} | {step.compute(of):.2f} | "
                f"{step.network(of):.2f} | {step.together(of):.2f} | {step.compute(of) / step.together(of):.2f} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(of_a_host())
    print()
    print(of_hosts())
