# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies: of a few bytes by each lane, in bulk, and by tensor maps; whole destinations are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, seam
from numba_cute.isa import TABLE
from numba_cute.isa.form.instr import CP_ASYNC_GROUP, Instr
from numba_cute.nvgpu import cpasync

from . import inputs
from .matrices import drain, fill
from .program import Program, Uint32, Uint64, forms_for, tensor
from .values import ARCH

BARS = 128
"""Bytes at the start of shared memory that hold barriers."""


def address(memory: Any, words: Any) -> Any:
    """The address of a word of a tensor in global memory."""
    return Uint64((memory.iterator + words).toint())


# ------------------------------------------------------------------ cp.async


def small_copies() -> Program:
    """Each lane and case copies to 16 bytes of its own, waits for some of its groups, and for a barrier at last."""
    rows = [r for r in TABLE.values() if r.done_by == CP_ASYNC_GROUP]
    cases = [(row, case, given) for row in rows for case, given in forms_for(row, ARCH)]
    lanes = 32
    size = len(cases) * lanes * 4
    rng = np.random.default_rng(11)
    memory = rng.integers(0, 1 << 32, (1, size), dtype=np.uint32)
    sources = rng.integers(0, size // 4 - 1, (lanes, len(cases)), dtype=np.uint32)
    filled = rng.integers(0, 17, (lanes, len(cases)), dtype=np.uint32)

    @seam.traced
    def body(memory: Any, sources: Any, filled: Any, got: Any) -> None:
        b = seam.current()
        b.smem_needs(BARS + 4 * size)
        i, base = arch.thread_idx()[0], Uint32(b.smem_base())
        bar, data = base, base + BARS
        b.when(b.compare("==", i, 0), lambda: [isa.mbarrier_init(bar, Uint32(n)) for n in (lanes,)] and None)
        b.loop(0, size // 32, lambda j: b.store(Uint32, "smem", data + 4 * Uint32(i + 32 * j), (Uint32(0),), 4))
        isa.bar_sync(Uint32(0))
        policy = isa.createpolicy_l2(priority="evict_first")
        for n, (row, case, given) in enumerate(cases):
            to = data + (n * lanes + i) * 16
            source = address(memory, 4 * sources[i, n])
            extra = more(given, case, filled[i, n], policy)
            row(to, source, **extra, **case)
            isa.cp_async_commit_group()
            if n % 5 == 4:
                isa.cp_async_wait_group(n=n % 3)
        isa.cp_async_mbarrier_arrive(bar)
        isa.cp_async_mbarrier_arrive_noinc(bar)
        isa.mbarrier_wait_parity(bar, Uint32(0))
        isa.bar_sync(Uint32(0))
        b.loop(0, size // 32, lambda j: drain(b, got, data, i + 32 * j))

    @cuda.jit
    def copies(memory, sources, filled, got):
        body(memory, sources, filled, got)

    names = {r.name for r in rows} | {"cp_async_commit_group", "cp_async_wait_group", "cp_async_mbarrier_arrive",
                                      "cp_async_mbarrier_arrive_noinc"}  # fmt: skip
    return Program(
        "cp.async", copies, {"memory": memory, "sources": sources, "filled": filled},
        {"got": np.zeros((1, size), np.uint32)}, block=32, smem=BARS + 4 * size, rows=frozenset(names),
    )  # fmt: skip


def more(given: tuple[str, ...], case: dict[str, Any], filled: Any, policy: Any) -> dict[str, Any]:
    """The optional operands of a small copy."""
    b = seam.current()
    bound = Uint32(case["nbytes"])
    every = {
        "src_size": b.select(b.compare("<", filled, bound), filled, bound), "policy": policy,
        "ignore": b.compare("<", filled, 5),
    }  # fmt: skip
    return {name: every[name] for name in given}


# ------------------------------------------------------------------ bulk copies and reductions

CHUNK = 96
"""Bytes of one bulk copy."""


def finite(rng: np.random.Generator, kind: str, words: int) -> np.ndarray:
    """Words full of elements of a type, none of them NaN."""
    if kind in ("f16", "bf16"):
        half = rng.integers(0, 0x7800, 2 * words).astype(np.uint16) | (rng.integers(0, 2, 2 * words) << 15).astype("u2")
        return half.view(np.uint32)
    if kind in ("f32", "f64"):
        dtype = np.float32 if kind == "f32" else np.float64
        return (rng.standard_normal(4 * words // np.dtype(dtype).itemsize) * 1e3).astype(dtype).view(np.uint32)
    return inputs.any_words(rng, words)


def bulk_rows() -> list[Instr]:
    return [r for r in TABLE.values() if r.run.__module__.endswith(".bulk") and forms_for(r, ARCH)]


class Bulk:
    """In a cluster of two, CTA 0's thread issues each case in turn, into 96 bytes of its own in global memory or in the
    shared memory of either CTA, all of which both bring back."""

    def __init__(self) -> None:
        self.cases = [(row, case, given) for row in bulk_rows() for case, given in forms_for(row, ARCH)]
        words, rng = CHUNK // 4, np.random.default_rng(13)
        kinds = [case.get("type", "u32") for _, case, _ in self.cases]
        self.there, self.here = (np.concatenate([finite(rng, k, words) for k in kinds])[None] for _ in range(2))
        self.size = len(self.cases) * words
        self.bytes = BARS + 8 * self.size  # the sources, then the destinations

    def each_word(self, i: Any, then: Callable[[Any], None]) -> None:
        b = seam.current()
        b.loop(
            0, -(-self.size // 32), lambda j: b.when(b.compare("<", i + 32 * j, self.size), lambda: then(i + 32 * j))
        )

    def run(self, there: Any, here: Any, got: Any) -> None:
        b = seam.current()
        b.smem_needs(self.bytes)
        i, rank, base = arch.thread_idx()[0], arch.block_idx_in_cluster(), Uint32(b.smem_base())
        bar, source, target = base, base + BARS, base + BARS + 4 * self.size
        b.when(b.compare("==", i, 0), lambda: isa.mbarrier_init(bar, Uint32(1)))
        self.each_word(i, lambda at: fill(b, here, source, at))
        self.each_word(i, lambda at: fill(b, there, target, at))
        isa.fence_proxy_async()
        isa.fence_mbarrier_init()
        meet()
        arrivals = [0, 0]
        for n, (row, case, given) in enumerate(self.cases):
            receivers = [r for r in (0, 1) if receives(row, given, r)]
            for r in receivers:
                mine = b.compare("==", i + 32 * (rank ^ r), 0)
                b.when(mine, lambda: isa.mbarrier_arrive_expect_tx(bar, Uint32(CHUNK)))
            if 1 in receivers:
                meet()
            first = b.compare("==", i + 32 * rank, 0)
            b.when(first, lambda n=n, r=row, c=case, g=given: self.copy(n, r, c, g, there, base))
            for r in receivers:
                phase = Uint32(arrivals[r] & 1)
                b.when(b.compare("==", rank, r), lambda p=phase: isa.mbarrier_wait_parity(bar, p))
                arrivals[r] += 1
            if 1 in receivers:
                meet()
        isa.cp_async_bulk_wait_group(n=0, read=True)
        isa.cp_async_bulk_wait_group(n=0)
        meet()
        self.each_word(i, lambda at: put(b, got, rank, at, target))
        isa.bar_warp_sync()
        meet()
        b.when(b.compare("==", i, 0), lambda: isa.mbarrier_inval(bar))

    def copy(
        self, n: int, row: Instr, case: dict[str, Any], given: tuple[str, ...], there: Any, base: Any
    ) -> None:  # fmt: skip
        at = n * CHUNK
        source, target = base + BARS + at, base + BARS + 4 * self.size + at
        every = {
            "nbytes": Uint32(CHUNK), "policy": isa.createpolicy_l2(priority="evict_last"), "cta_mask": cute.Uint16(3),
            "bar": isa.mapa(base, Uint32(1)) if row.name.endswith("s2s") else base,
        }  # fmt: skip
        extra = {name: every[name] for name in ("nbytes", "bar", *given) if name in row.names}
        if "prefetch" in row.name:
            row(src=address(there, at // 4), **extra, **case)
        elif "g2s" in row.name:
            row(dst=target, src=address(there, at // 4), **extra, **case)
        elif row.name.endswith("s2s"):
            row(dst=isa.mapa(target, Uint32(1)), src=source, **extra, **case)
        else:
            row(dst=address(there, at // 4), src=source, **extra, **case)
            isa.cp_async_bulk_commit_group()


def meet() -> None:
    isa.cluster_arrive()
    isa.cluster_wait()


def put(b: Any, got: Any, rank: Any, at: Any, target: Any) -> None:
    got[rank, at] = b.load(Uint32, "smem", target + 4 * Uint32(at), 1, 4)[0]


def receives(row: Instr, given: tuple[str, ...], rank: int) -> bool:
    """Whether a copy completes bytes on the barrier of the CTA."""
    if "cta_mask" in given:
        return True
    return row.name.endswith("s2s") and rank == 1 or "g2s" in row.name and rank == 0


def bulk() -> Program:
    plan = Bulk()
    body = seam.traced(lambda there, here, got: plan.run(there, here, got))

    @cuda.jit
    def in_bulk(there, here, got):
        body(there, here, got)

    names = {r.name for r in bulk_rows()} | {"cp_async_bulk_commit_group", "cp_async_bulk_wait_group"}  # fmt: skip
    return Program(
        "bulk", in_bulk, {"there": plan.there, "here": plan.here}, {"got": np.zeros((2, plan.size), np.uint32)}, grid=2,
        block=32, cluster=2, smem=plan.bytes, changed=("there",), rows=frozenset(names),
    )  # fmt: skip


# ------------------------------------------------------------------ tensor maps

EXTENTS, BOX = (20, 5, 4, 3, 2), (8, 3, 2, 2, 2)
TENSOR_ROWS = (
    isa.cp_async_bulk_tensor_g2s, isa.cp_async_bulk_tensor_s2g, isa.cp_reduce_async_bulk_tensor_s2g,
    isa.cp_async_bulk_prefetch_tensor, isa.prefetch_tensormap,
)  # fmt: skip
"""In mode tile: tests/nvgpu/test_tma_im2col.py compares simulator and GPU with a NumPy im2col, byte for byte."""


def least(row: Instr, before: int) -> int:
    """The least coordinate of a box: a store that begins before the tensor is an illegal instruction."""
    return 0 if "s2g" in row.name else -before


class Boxes:
    """Boxes at random coordinates, partly outside the tensor: loads into pieces of shared memory, and stores and
    reductions, one after the other, into one tensor. In a cluster of two CTA 0's thread issues all; multicasts reach
    both."""

    def __init__(self, rank: int) -> None:
        self.extents, self.box = EXTENTS[:rank], BOX[:rank]
        self.nbytes = 4 * int(np.prod(self.box))
        self.pitch = -(-self.nbytes // 128) * 128
        rng = np.random.default_rng(17 + rank)
        self.steps = [
            (row, case, given) for row in TENSOR_ROWS for case, given in forms_for(row, ARCH)
            if case.get("rank", rank) == rank and case.get("mode", "tile") == "tile"
        ]  # fmt: skip
        self.at = [
            [
                4 * int(rng.integers(least(row, 1), 6)),
                *(int(rng.integers(least(row, 3), e + 2)) for e in self.extents[1:]),
            ]
            for row, _, _ in self.steps
        ]  # the innermost at a multiple of 16 bytes: anything else is an illegal instruction
        elements = int(np.prod(self.extents))
        self.source = rng.integers(0, 1 << 32, (1, elements), dtype=np.uint32)
        self.target = inputs.any_words(rng, elements)[None].copy()
        self.given = rng.integers(0, 1 << 32, (1, self.pitch // 4), dtype=np.uint32)
        self.size = len(self.steps) * self.pitch // 4
        self.bytes = 1024 + self.pitch + 4 * self.size

    def run(self, given: Any, got: Any, load: Any, save: Any) -> None:
        b = seam.current()
        b.smem_needs(self.bytes)
        i, rank, base = arch.thread_idx()[0], arch.block_idx_in_cluster(), Uint32(b.smem_base())
        bar, out, landing = base, base + 1024, base + 1024 + self.pitch
        mine, first = b.compare("==", i, 0), b.compare("==", i + 32 * rank, 0)
        b.when(mine, lambda: isa.mbarrier_init(bar, Uint32(1)))
        b.loop(0, self.pitch // 128, lambda j: fill(b, given, out, i + 32 * j))
        b.loop(0, self.size // 32, lambda j: b.store(Uint32, "smem", landing + 4 * Uint32(i + 32 * j), (Uint32(0),), 4))
        isa.fence_proxy_async()
        isa.fence_mbarrier_init()
        meet()
        arrivals = [0, 0]
        for n, (row, case, given) in enumerate(self.steps):
            receivers = [r for r in (0, 1) if receives(row, given, r)]
            for r in receivers:
                there = b.compare("==", i + 32 * (rank ^ r), 0)
                b.when(there, lambda: isa.mbarrier_arrive_expect_tx(bar, Uint32(self.nbytes)))
            if 1 in receivers:
                meet()
            b.when(first, lambda n=n, r=row, c=case, g=given: self.issue(n, r, c, g, load, save, base))
            for r in receivers:
                phase = Uint32(arrivals[r] & 1)
                b.when(b.compare("==", rank, r), lambda p=phase: isa.mbarrier_wait_parity(bar, p))
                arrivals[r] += 1
            isa.bar_warp_sync()
        b.loop(0, self.size // 32, lambda j: put(b, got, rank, i + 32 * j, landing))
        meet()
        b.when(mine, lambda: isa.mbarrier_inval(bar))

    def issue(
        self, n: int, row: Instr, case: dict[str, Any], given: tuple[str, ...], load: Any, save: Any, base: Any
    ) -> None:
        every = {
            "map": (save if "s2g" in row.name else load).tensor_map, "at": [cute.Int32(x) for x in self.at[n]],
            "policy": isa.createpolicy_l2(priority="evict_first"), "cta_mask": cute.Uint16(3),
        }  # fmt: skip
        values = {name: every[name] for name in ("map", "at", *given) if name in row.names}
        if "g2s" in row.name:
            row(dst=base + 1024 + self.pitch + n * self.pitch, bar=base, **values, **case)
        elif "s2g" in row.name:
            row(src=base + 1024, **values, **case)
            isa.cp_async_bulk_commit_group()
            isa.cp_async_bulk_wait_group(n=0)
        else:
            row(**values, **case)

    def atom(self, op: Any, array: np.ndarray) -> Any:
        def placed(place: Any) -> Any:
            whole = cute.make_tensor(tensor(array)(place).iterator, cute.make_layout(self.extents))
            return cpasync.make_tiled_tma_atom(op, whole, cute.make_layout(self.box), self.box)[0]

        return placed


def tensors(rank: int) -> Program:
    plan = Boxes(rank)
    body = seam.traced(lambda given, got, load, save: plan.run(given, got, load, save))

    @cuda.jit
    def boxes(source, target, given, got, load, save):
        body(given, got, load, save)

    def atoms(arrays: dict[str, np.ndarray]) -> list[Any]:
        ops = {"source": cpasync.CopyBulkTensorTileG2SOp(), "target": cpasync.CopyBulkTensorTileS2GOp()}
        return [plan.atom(op, arrays[name]) for name, op in ops.items()]

    return Program(
        f"tensor maps of rank {rank}", boxes, {"source": plan.source, "target": plan.target, "given": plan.given},
        {"got": np.zeros((2, plan.size), np.uint32)}, grid=2, block=32, cluster=2, smem=plan.bytes,
        changed=("target",), extra=atoms, rows=frozenset(r.name for r, _, _ in plan.steps),
    )  # fmt: skip


def programs() -> list[Program]:
    return [small_copies(), bulk(), *(tensors(rank) for rank in range(1, 6))]
