# SPDX-License-Identifier: Apache-2.0
"""The matrix: each pipeline, barrier and scheduler in a kernel that really uses it, over stages, producers, consumers,
clusters and uneven counts of rounds with zero among them. Tests, their 50 seeds and the stress on a GPU share it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from numba_cute import utils
from numba_cute.runtime import from_dlpack

from . import (
    hopper_kernels as hopper,
    pair_kernels as pairs,
    scheduler_kernels as schedules,
    sync_kernels as syncs,
    umma_kernels as umma,
)
from .hopper_kernels import WORDS

COUNTS = np.array([3, 0, 1, 6], np.int32)
SHAPES = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (4, 2))


@dataclass(frozen=True)
class Output:
    """What a kernel must leave in `array`, where `done`; `start` is what it finds there (None: poison)."""

    array: np.ndarray
    want: np.ndarray
    done: Any = True
    start: int | None = None
    atol: float = 0.0

    def right(self, got: Any) -> bool:
        return bool(np.all((np.abs(got - self.want) <= self.atol) | ~np.broadcast_to(self.done, got.shape)))


@dataclass(frozen=True)
class Case:
    """A launch and what it must give. arguments: as the fixture `run` takes them."""

    subject: str
    name: str
    kernel: Any
    grid: Any
    block: int
    arguments: list[Any]
    outputs: list[Output]
    arch: str = "sm_90a"
    facts: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.subject} {self.name}"


@dataclass(frozen=True)
class Cell:
    """A case that is not made yet: `make(rng, counts)` does."""

    subject: str
    facts: dict[str, Any]
    build: Callable[..., dict[str, Any]]
    arch: str = "sm_90a"

    @property
    def name(self) -> str:
        return ", ".join(f"{k} {'x'.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in self.facts.items())

    def __str__(self) -> str:
        return f"{self.subject}: {self.name}"

    def make(self, rng: np.random.Generator, counts: np.ndarray = COUNTS) -> Case:
        return Case(self.subject, self.name, arch=self.arch, facts=self.facts, **self.build(rng, counts, **self.facts))


def tensor(array: np.ndarray) -> Callable[..., Any]:
    return lambda place: from_dlpack(place(array))


def data(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-1000, 1000, shape, dtype=np.int32)


def rounds(counts: np.ndarray, dims: int) -> np.ndarray:
    """Which rounds of (blocks, rounds, …) are done at all, with `dims` dimensions."""
    done = np.arange(max(counts.max(), 1)) < counts[:, None]
    return done.reshape(done.shape + (1,) * (dims - 2))


def _words(rng: Any, counts: Any) -> tuple[Any, Output]:
    """(source, its words reversed plus 1)"""
    source = data(rng, len(counts), max(counts.max(), 1), WORDS)
    return source, Output(np.zeros_like(source), source[..., ::-1] + 1, rounds(counts, 3))


def _threads(kernel: Any, as_tensor: bool = True) -> Callable[..., dict[str, Any]]:
    def build(rng: Any, counts: Any, stages: int, producers: int, consumers: int) -> dict[str, Any]:
        source, out = _words(rng, counts)
        return {
            "kernel": kernel(stages, producers, consumers), "grid": (1, 1, len(counts)),
            "block": 32 * (producers + consumers), "outputs": [out],
            "arguments": [tensor(source) if as_tensor else source, out.array, counts],
        }  # fmt: skip

    return build


def _peer(rng: Any, counts: Any, stages: int, cluster: Any) -> dict[str, Any]:
    source, out = _words(rng, counts)
    return {"kernel": hopper.peer_kernel(stages), "grid": (2, 1, len(counts)), "block": 32, "outputs": [out],
            "arguments": [source, out.array, counts]}  # fmt: skip


def _store(rng: Any, counts: Any, stages: int, producers: int) -> dict[str, Any]:
    source, out = _words(rng, counts)
    return {"kernel": hopper.store_kernel(stages, producers), "grid": (1, 1, len(counts)), "block": 32 * producers,
            "outputs": [out], "arguments": [source, tensor(out.array), counts]}  # fmt: skip


def _multicast(rng: Any, counts: Any, stages: int, consumers: int, unit: int, cluster: Any) -> dict[str, Any]:
    m, n = cluster
    blocks, most = len(counts), max(counts.max(), 1)
    a, b = data(rng, blocks, m, most, WORDS), data(rng, blocks, n, most, WORDS)
    want = a[:, :, None] + b[:, None, :, :, ::-1]
    done = (np.arange(most) < counts[:, None])[:, None, None, :, None]
    out = Output(np.zeros_like(want), want, done)
    return {
        "kernel": hopper.tma_kernel(stages, consumers, cluster, unit), "grid": (m, n, blocks),
        "block": 32 * (consumers + 1), "outputs": [out], "arguments": [tensor(a), tensor(b), out.array, counts],
    }  # fmt: skip


def _order(rng: Any, counts: Any, stages: int, groups: int) -> dict[str, Any]:
    most = max(counts.max(), 1) * groups
    want = np.broadcast_to(np.arange(most, dtype=np.int32) % groups, (len(counts), stages, most))
    done = (np.arange(most) < groups * counts[:, None])[:, None]
    out = Output(np.zeros(want.shape, np.int32), want, done)
    return {"kernel": syncs.order_kernel(stages, groups), "grid": (1, 1, len(counts)), "block": 32 * groups,
            "outputs": [out], "arguments": [out.array, counts]}  # fmt: skip


def _pairs(kernel: Any, grid_x: int) -> Callable[..., dict[str, Any]]:
    """Kernels of two rows of words."""

    def build(rng: Any, counts: Any, stages: int, **_: Any) -> dict[str, Any]:
        source = data(rng, len(counts), 2, max(counts.max(), 1), WORDS)
        out = Output(np.zeros_like(source), source[..., ::-1] + 1, rounds(counts, 3)[:, None])
        return {"kernel": kernel(stages), "grid": (grid_x, 1, len(counts)), "block": 32, "outputs": [out],
                "arguments": [tensor(source), out.array, counts]}  # fmt: skip

    return build


def _drop(rng: Any, counts: Any, stages: int) -> dict[str, Any]:
    want = np.repeat(np.stack([counts, (counts + 1) // 2], axis=1), 32, axis=1)
    out = Output(np.zeros_like(want), want)
    return {"kernel": syncs.drop_kernel(stages), "grid": (1, 1, len(counts)), "block": 64, "outputs": [out],
            "arguments": [out.array, counts]}  # fmt: skip


def _static(rng: Any, counts: Any, tiles: Any, cluster: Any, swizzle: int, along_m: bool, blocks: int) -> Any:
    params = utils.PersistentTileSchedulerParams(tiles, (*cluster, 1), swizzle, along_m)
    out = Output(np.zeros(tiles, np.int32), np.ones(tiles, np.int32), start=0)
    return {"kernel": schedules.visit, "grid": params.get_grid_shape(blocks), "block": 1, "outputs": [out],
            "arguments": [out.array, params]}  # fmt: skip


def _endless(rng: Any, counts: Any, tiles: Any, blocks: int) -> dict[str, Any]:
    m, n, _ = tiles
    at = np.arange(6) * blocks + np.arange(blocks)[:, None]
    out = Output(np.zeros((blocks, 6, 4), np.int32), np.stack([at // n, at % n, at % m, at // m], axis=-1))
    params = utils.PersistentTileSchedulerParams(tiles, (1, 1, 1))
    return {"kernel": schedules.endless, "grid": (1, 1, blocks), "block": 1, "outputs": [out],
            "arguments": [out.array, params, np.int32(6)]}  # fmt: skip


GROUPS = {
    "mixed": [(128, 64, 32, 1), (300, 200, 65, 1), (1, 1, 1, 1), (129, 64, 96, 1)],
    "with empty ones": [(0, 64, 32, 1), (256, 128, 64, 1), (0, 0, 0, 1), (128, 64, 32, 1), (0, 1, 1, 1)],
}


def _grouped(rng: Any, counts: Any, groups: str, blocks: int) -> dict[str, Any]:
    sizes = np.array(GROUPS[groups], np.int32)
    params = utils.PersistentTileSchedulerParams((1, 1, utils.total_clusters(sizes, (128, 64, 32))), (1, 1, 1))
    want = np.zeros((len(sizes), 8, 8), np.int32)
    for g, (m, n, k, _) in enumerate(sizes):
        want[g, : -(-m // 128), : -(-n // 64)] = -(-k // 32)
    out = Output(np.zeros_like(want), want, start=0)
    return {"kernel": schedules.grouped, "grid": params.get_grid_shape(blocks), "block": 1, "outputs": [out],
            "arguments": [out.array, sizes, params, np.int32(len(sizes))]}  # fmt: skip


def _dynamic(rng: Any, counts: Any, stages: int, consumers: int, tiles: Any, cluster: Any) -> dict[str, Any]:
    params = utils.PersistentTileSchedulerParams(tiles, (*cluster, 1), 2, False)
    grid = params.get_grid_shape(3)
    out = Output(np.zeros(tiles, np.int32), np.ones(tiles, np.int32), start=0)
    work = int(params.num_clusters)  # every cluster draws until it is told that there is no more
    counter = Output(np.zeros(1, np.int32), np.full(1, work, np.int32), start=0)
    return {"kernel": schedules.counter_kernel(cluster, stages, consumers), "grid": grid, "block": 32 * consumers,
            "outputs": [out, counter], "arguments": [out.array, params, counter.array]}  # fmt: skip


def _clc(rng: Any, counts: Any, stages: int, consumers: int, tiles: Any, cluster: Any) -> dict[str, Any]:
    params = utils.ClcDynamicPersistentTileSchedulerParams(tiles, (*cluster, 1), 2, False)
    out = Output(np.zeros(tiles, np.int32), np.ones(tiles, np.int32), start=0)
    return {"kernel": schedules.clc_kernel(cluster, stages, consumers), "grid": params.get_grid_shape(),
            "block": 32 * consumers, "outputs": [out], "arguments": [out.array, params]}  # fmt: skip


STAGES = tuple(range(1, 9))
WARPS = tuple(itertools.product((1, 2, 3, 4), repeat=2))


def _spread(values: Any, i: int) -> Any:
    return values[i % len(values)]


def hopper_cells() -> Iterator[Cell]:
    """All that Hopper has. Every stage count with every kind of arrival; producers, consumers and clusters in turn, so
    that each value of one meets several of the others."""
    for i, s in enumerate(STAGES):
        for p, c in (_spread(WARPS, 5 * i + j) for j in range(5)):
            facts = {"stages": s, "producers": p, "consumers": c}
            yield Cell("PipelineAsync", facts, _threads(hopper.async_kernel))
            yield Cell("PipelineCpAsync", facts, _threads(hopper.cp_async_kernel))
        yield Cell("PipelineAsync", {"stages": s, "cluster": (2, 1)}, _peer)
        for p in (1, 2, 3, 4):
            yield Cell("PipelineTmaStore", {"stages": s, "producers": p}, _store)
            yield Cell("PipelineOrder", {"stages": s, "groups": p}, _order)
        for j, shape in enumerate(SHAPES):
            consumers, unit = _spread(((1, 32), (2, 32), (3, 32), (4, 32), (4, 128)), i + j)
            facts = {"stages": s, "consumers": consumers, "unit": unit, "cluster": shape}
            yield Cell("PipelineTmaAsync", facts, _multicast)
        yield Cell("MbarrierArray", {"stages": s, "cluster": (2, 1)}, _pairs(syncs.forms_kernel, 2))
        yield Cell("MbarrierArray", {"stages": s}, _pairs(syncs.cp_forms_kernel, 1))
        yield Cell("MbarrierArray.arrive_and_drop", {"stages": s}, _drop)
        if s < 8:  # two of the 15 barriers that are left for each stage
            p, c = _spread(WARPS, 3 * i + 1)
            facts = {"stages": s, "producers": p, "consumers": c}
            yield Cell("NamedBarrier", facts, _threads(syncs.named_kernel, False))
    yield from _schedules()


def _schedules() -> Iterator[Cell]:
    tiles = ((5, 3, 1), (2, 5, 2), (1, 1, 1))
    for i, (t, shape) in enumerate(itertools.product(tiles, ((1, 1), (2, 1), (2, 2)))):
        facts = {"tiles": t, "cluster": shape, "swizzle": 1 << i % 3, "along_m": i % 2 == 0, "blocks": 1 + i % 3}
        yield Cell("StaticPersistentTileScheduler", facts, _static)
    for blocks in (1, 2, 3):
        facts = {"tiles": (3, 2, 1), "blocks": blocks}
        yield Cell("StaticPersistentRuntimeTileScheduler", facts, _endless)
        for g in GROUPS:
            yield Cell("GroupedGemmTileSchedulerHelper", {"groups": g, "blocks": blocks}, _grouped)
    for i, s in enumerate(STAGES):
        facts = {"stages": s, "consumers": 1 + i % 4, "tiles": _spread(tiles, i), "cluster": _spread(SHAPES, i)}
        yield Cell("DynamicPersistentTileScheduler", facts, _dynamic)
        facts = {"stages": s, "consumers": 1 + (i + 1) % 4, "tiles": _spread(tiles, i), "cluster": _spread(SHAPES, i)}
        yield Cell("PipelineClcFetchAsync", facts, _clc, "sm_100a")


# ---------------------------------------------------------------- Blackwell


def _bf16(rng: Any, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)


def _stage_words(x: np.ndarray) -> np.ndarray:
    """(blocks, rows, 16) as the matrix unit reads it without a swizzle: 16-byte pieces of K, each (rows, 8)."""
    blocks, rows, k = x.shape
    return np.ascontiguousarray(x.reshape(blocks, rows, k // 8, 8).transpose(0, 2, 1, 3)).reshape(blocks, -1)


def _stages_of(a: np.ndarray, b: np.ndarray, ctas: int) -> np.ndarray:
    """The stages of each CTA as words, from A and B of (tiles, blocks, rows, 16)."""
    parts = []
    for c in range(ctas):
        mine, half = (x[:, :, c * x.shape[2] // ctas : (c + 1) * x.shape[2] // ctas] for x in (a, b))
        parts.append(
            np.concatenate([_stage_words(x.reshape(-1, *x.shape[2:])) for x in (mine, half)], axis=1).view(np.int32)
        )
    return np.stack(parts)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("tbmk,tbnk->tmn", a.astype(float), b.astype(float))


def _accumulated(want: np.ndarray, tiles: int) -> Output:
    return Output(np.zeros(want.shape, np.float32), want, tiles > 0, atol=1e-4)


def _async_umma(rng: Any, counts: Any, stages: int, tiles: int, blocks: int, ctas: int) -> dict[str, Any]:
    a = _bf16(rng, max(tiles, 1), blocks, umma.M * ctas, umma.K)
    b = _bf16(rng, max(tiles, 1), blocks, umma.N, umma.K)
    out = _accumulated(_product(a, b).reshape(-1, umma.N), tiles)
    return {"kernel": umma.threads_kernel(stages, ctas), "grid": ctas, "block": umma.THREADS, "outputs": [out],
            "arguments": [_stages_of(a, b, ctas), out.array, np.int32(tiles), np.int32(blocks)]}  # fmt: skip


def _both(rng: Any, counts: Any, stages: int, blocks: int, cluster: tuple[int, int]) -> dict[str, Any]:
    a, b = _bf16(rng, 1, max(blocks, 1), umma.M, umma.K), _bf16(rng, 1, max(blocks, 1), umma.N, umma.K)
    source, ctas = _stages_of(a, b, 1).ravel(), cluster[1]
    out = _accumulated(np.stack([_product(a, b)[0]] * ctas), blocks)
    sums = (source & 0xFFFF).reshape(-1, 64).sum(0) if blocks else np.zeros(64)
    sums = Output(np.zeros((ctas, 64), np.int32), np.stack([sums.astype(np.int32)] * ctas))
    return {"kernel": umma.both_kernel(stages, ctas), "grid": cluster, "block": umma.THREADS, "outputs": [out, sums],
            "arguments": [tensor(source), out.array, sums.array, np.int32(blocks)]}  # fmt: skip


def _tma_umma(
    rng: Any, counts: Any, stages: int, results: int, tiles: int, blocks: int, vmn: tuple[int, int, int]
) -> dict[str, Any]:
    v, m, n = vmn
    a = _bf16(rng, max(tiles, 1) * m * v * umma.M, blocks * umma.K)
    b = _bf16(rng, max(tiles, 1) * n * umma.N, blocks * umma.K)
    left = a.astype(float).reshape(-1, m, v * umma.M, blocks * umma.K)
    right = b.astype(float).reshape(-1, n, umma.N, blocks * umma.K)
    out = _accumulated(np.einsum("tmik,tnjk->tmnij", left, right), tiles)

    def atom(operand: int, part: int) -> Callable[..., Any]:
        return lambda place: pairs.atoms(from_dlpack(place(a)), from_dlpack(place(b)), vmn)[operand][part]

    return {"kernel": pairs.pair_kernel(stages, results, vmn), "grid": (v * m, n), "block": umma.THREADS,
            "outputs": [out], "arguments": [atom(0, 0), atom(0, 1), atom(1, 0), atom(1, 1), out.array, np.int32(tiles),
            np.int32(blocks)]}  # fmt: skip


VMN = ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 2, 2), (2, 2, 1), (2, 1, 2), (1, 4, 2), (2, 2, 2))


def blackwell_cells() -> Iterator[Cell]:
    """The pipelines of the matrix unit. PipelineUmmaAsync hands the results on in all of them."""
    for i, s in enumerate(STAGES):
        for j, vmn in enumerate((_spread(VMN, i), _spread(VMN, i + 3))):
            tiles, blocks = _spread(((2, 3), (1, 1), (3, 2), (0, 1)), i + j)
            facts = {"stages": s, "results": 1 + (i + j) % 2, "tiles": tiles, "blocks": blocks, "vmn": vmn}
            yield Cell("PipelineTmaUmma, PipelineUmmaAsync", facts, _tma_umma, "sm_100a")
        for ctas in (1, 2):
            tiles, blocks = _spread(((2, 3), (1, 1), (0, 1), (3, 2)), i + ctas)
            facts = {"stages": s, "tiles": tiles, "blocks": blocks, "ctas": ctas}
            yield Cell("PipelineAsyncUmma, PipelineUmmaAsync", facts, _async_umma, "sm_100a")
        facts = {"stages": s, "blocks": _spread((5, 1, 2), i), "cluster": (1, _spread((2, 1, 4), i))}
        yield Cell("PipelineTmaMultiConsumersAsync", facts, _both, "sm_100a")


def all_cells() -> list[Cell]:
    """The whole matrix."""
    return [*hopper_cells(), *blackwell_cells()]
