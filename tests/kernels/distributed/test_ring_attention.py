# SPDX-License-Identifier: Apache-2.0
"""Attention over a sequence whose parts lie on several GPUs, in the simulator: right against float64, with all
checks; and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import numba_cute as cute
from benchmarks import machine_code
from numba_cute import CuteError
from numba_cute.kernels.attention.plan import Options
from numba_cute.kernels.distributed import attention, keys, keys_plan, plan

from .ranks import random, signals_of

SLOW = pytest.mark.slow
NARROW = {"tile": (64, 16)}


class Attended:
    """softmax(scale q k^T) v on each rank, over the keys of all. heads: of Q, and of K and V."""

    def __init__(
        self, ranks: int, rows: int, heads: tuple[int, int] = (1, 1), dims: tuple[int, int] = (64, 64), batch: int = 1,
        causal: bool = False, dtype: Any = cute.BFloat16, zigzag: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        (of_q, of_k), (d, dv) = heads, dims
        self.options = Options(1 / math.sqrt(d), right=0 if causal else None, **options)
        self.ranks, self.dtype, self.causal, self.zigzag = ranks, dtype, causal, zigzag
        shapes = (batch, rows, of_k, d), (batch, rows, of_k, dv)
        self.k, self.v = (cute.sim.symmetric(shape, dtype, ranks) for shape in shapes)
        self.peers = [cute.runtime.from_symmetric(t, assumed_align=16) for t in (self.k, self.v)]
        self.q, self.o = (
            [np.zeros((batch, rows, of_q, n), dtype.numpy) for _ in range(ranks)] for n in (d, dv)
        )  # fmt: skip
        self.lse = [np.zeros((batch, of_q, rows), np.float32) for _ in range(ranks)]
        self.rooms = [keys_plan.KeysRoom.numpy(ranks, *shapes, dtype) for _ in range(ranks)]
        self.signals = signals_of(plan.GATHER_SLOTS, ranks)

    def step(self, number: int, sms: int = 1, **options: Any) -> None:
        """One launch, of other elements each time, and its check."""
        for rank in range(self.ranks):
            for i, x in enumerate((self.q[rank], self.k.arrays[rank], self.v.arrays[rank])):
                x[...] = random(x.shape, self.dtype, 100 * number + 10 * rank + i)
            self.o[rank].fill(np.nan)
            self.lse[rank].fill(np.nan)
        plans = [
            keys_plan.ring_attention(q, *self.peers, o, lse, rank, signals, room, sms, self.options, zigzag=self.zigzag)
            for rank, (q, o, lse, signals, room) in enumerate(
                zip(self.q, self.o, self.lse, self.signals, self.rooms, strict=True)
            )
        ]
        kernel, _, grid, block = plans[0]
        given = [cute.sim.PerRank(*column) for column in zip(*(arguments for _, arguments, *_ in plans), strict=True)]
        cute.simulate(kernel, ranks=self.ranks, **options)[grid, block](*given)
        for rank in range(self.ranks):
            self.check(rank)

    def check(self, rank: int) -> None:
        """Compare a rank's part with float64."""
        q, o, lse = (x[rank].astype(np.float64) for x in (self.q, self.o, self.lse))
        k, v = (np.concatenate(t.arrays, 1).astype(np.float64).repeat(q.shape[2] // t.arrays[0].shape[2], 2)
                for t in (self.k, self.v))  # fmt: skip
        scores = self.options.scale * np.einsum("bqhd,bkhd->bhqk", q, k)
        if self.causal:
            at = [positions_of(r, self.ranks, q.shape[1], self.zigzag) for r in range(self.ranks)]
            scores[..., at[rank][:, None] < np.concatenate(at)] = -np.inf
        top = scores.max(-1, keepdims=True)
        p = np.exp(scores - top)
        want = np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), v)
        np.testing.assert_allclose(lse, (top + np.log(p.sum(-1, keepdims=True)))[..., 0], atol=2e-3)
        np.testing.assert_allclose(o, want, atol=2e-2, rtol=2e-2)


@SLOW
@pytest.mark.parametrize(
    "ranks, rows, heads, dims, batch, causal, steps, options",
    [
        (2, 16, (1, 1), (64, 64), 1, False, 2, NARROW),
        (2, 40, (2, 1), (64, 64), 1, True, 1, NARROW),
        (4, 24, (1, 1), (64, 64), 1, True, 1, NARROW),
        (3, 16, (1, 1), (64, 128), 2, False, 1, NARROW),
        (2, 16, (4, 4), (128, 128), 1, True, 1, {**NARROW, "section": 2}),
        (2, 72, (1, 1), (64, 64), 1, True, 1, {}),
    ],
    ids=str,
)
def test_queries_see_the_keys_of_all_ranks(ranks, rows, heads, dims, batch, causal, steps, options):
    attended = Attended(ranks, rows, heads, dims, batch, causal, **options)
    for step in range(steps):
        attended.step(step, 2)


@SLOW
@pytest.mark.parametrize(
    "ranks, rows, heads, dims, batch, steps, options",
    [
        (2, 48, (2, 1), (64, 64), 1, 2, NARROW),
        (2, 160, (1, 1), (64, 64), 1, 1, {"tile": (64, 64)}),
        (2, 130, (4, 2), (128, 128), 1, 1, {"tile": (64, 32), "section": 2}),
        (2, 384, (1, 1), (64, 64), 1, 1, {}),
        (3, 36, (4, 1), (64, 128), 2, 1, NARROW),
        (4, 24, (2, 1), (128, 128), 1, 2, NARROW),
        (8, 16, (1, 1), (64, 64), 1, 1, NARROW),
    ],
    ids=str,
)
def test_queries_see_in_zigzag_order_what_they_see_in_the_sequence(ranks, rows, heads, dims, batch, steps, options):
    attended = Attended(ranks, rows, heads, dims, batch, True, zigzag=True, **options)
    for step in range(steps):
        attended.step(step, 2)


@SLOW
def test_they_are_right_in_float16_and_in_any_order():
    attended = Attended(2, 24, causal=True, dtype=cute.Float16, **NARROW)
    for seed in range(2):
        attended.step(seed, seed=seed)
    Attended(2, 48, causal=True, dtype=cute.Float16, zigzag=True, **NARROW).step(2, seed=2)


@SLOW
@pytest.mark.parametrize("name, wrong", [("await_block", lambda self, *args: None), ("have_all", lambda self: True)])
def test_keys_that_are_not_waited_for_are_a_race(monkeypatch, name, wrong):
    monkeypatch.setattr(keys.Visited, name, wrong)
    with pytest.raises(cute.sim.SimError, match="race"):
        Attended(2, 16, **NARROW).step(0)


@SLOW
def test_a_second_chunk_is_not_there_when_the_first_is(monkeypatch):
    right = keys.Visited.await_block

    def early(self, n, chunk, head, b):
        second = self.of.second(chunk)
        right(self, n - second * self.of.per.divisor, chunk - second, head, b)

    monkeypatch.setattr(keys.Visited, "await_block", early)
    with pytest.raises(cute.sim.SimError, match="race"):
        Attended(2, 64, causal=True, zigzag=True, **NARROW).step(0)


@SLOW
@pytest.mark.parametrize(
    "name, wrong",
    [
        ("second", lambda self, chunk: 0),  # where a chunk is
        ("hop", lambda self, chunk: chunk),  # whose it is
        ("limit", lambda self, chunk, query, keys: keys),  # what is seen of it
    ],
)
def test_a_chunk_that_is_taken_for_another_is_found(monkeypatch, name, wrong):
    attended = Attended(2, 64, causal=True, zigzag=True, **NARROW)
    monkeypatch.setattr(keys.Keys, name, wrong)
    with pytest.raises((cute.sim.SimError, AssertionError)):
        attended.step(0)


def walk_of(rank, ranks, rows, tile_n, causal=True, zigzag=True):
    """What brings a rank's keys, as it is planned."""
    options = Options(1.0, right=0 if causal else None, tile=(64, tile_n))
    k = cute.runtime.from_symmetric(cute.sim.symmetric((1, rows, 2, 64), cute.Float16, ranks), assumed_align=16)
    q, lse = np.zeros((1, rows, 4, 64), np.float16), np.zeros((1, 4, rows), np.float32)
    room = keys_plan.KeysRoom.numpy(ranks, (1, rows, 2, 64), (1, rows, 2, 64), cute.Float16)
    signals = signals_of(plan.GATHER_SLOTS, ranks)[rank]
    kernel, arguments, *_ = keys_plan.ring_attention(q, k, k, q, lse, rank, signals, room, 1, options, zigzag=zigzag)
    return kernel, next(x for x in arguments if isinstance(x, keys.Keys))


@cute.jit
def visited(walk, query, rows):
    """Each place: whether a tile of this query visits it, the block there, the rank that it is of, and where the keys
    end that the query sees."""
    found = []
    for place in range(int(walk.before())):
        n, chunk = walk.block_at(place)
        of = walk.peer(walk.hop(chunk))
        found.append((place >= int(walk.first(query)), int(n), int(of), int(walk.limit(chunk, query, rows))))
    return found


@cute.jit
def unasked(walk, first, last, rows, tile_n):
    """Visit the blocks of some queries as the kernel does, own keys causal; gives where the block ends, and where the
    keys that all see, at the places at which it does not ask what is seen."""
    found = []
    at = (last + tile_n) // tile_n + int(walk.before()) - 1
    ask_at = at
    for place in range(at - 1, int(walk.first(last)) - 1, -1):
        n, chunk = walk.block_at(place)
        limit = first + 1 if int(chunk) < 0 else int(walk.limit(chunk, first, rows))
        if place <= ask_at:
            ask_at = int(walk.next_of(place, n, chunk, limit // tile_n))
        else:
            found.append(((int(n) + 1) * tile_n, limit))
    return found


@cute.jit
def brought(walk):
    return int(walk.pieces())


def positions_of(rank, ranks, rows, zigzag):
    """Where a rank's rows are in the sequence."""
    chunks = np.arange(rows * ranks).reshape(-1, rows // 2)
    return np.concatenate([chunks[rank], chunks[-1 - rank]] if zigzag else [chunks[2 * rank], chunks[2 * rank + 1]])


@pytest.mark.parametrize("zigzag", [False, True])
@pytest.mark.parametrize("ranks, rows, tile_n", [(2, 64, 16), (2, 72, 32), (3, 40, 48), (4, 34, 16), (8, 32, 16)])
def test_the_walk_sees_each_key_once_that_is_not_after_the_query(ranks, rows, tile_n, zigzag):
    work = []
    for rank in range(ranks):
        _, walk = walk_of(rank, ranks, rows, tile_n, zigzag=zigzag)
        at, seen = positions_of(rank, ranks, rows, zigzag), 0
        for query in (0, rows // 2 - 1, rows // 2, rows - 1):
            found = [*at[at <= at[query]]]
            for visits, n, of, limit in visited(walk, query, rows):
                found += [*positions_of(of, ranks, rows, zigzag)[n * tile_n : min((n + 1) * tile_n, limit)]]
                assert visits or limit == 0
            assert sorted(found) == [*range(at[query] + 1)]
            assert all(end <= limit for end, limit in unasked(walk, max(0, query - 40), query, rows, tile_n))
            seen += len(found)
        work.append(seen)
    assert (max(work) == min(work)) == zigzag


def test_in_zigzag_order_no_more_travels_than_is_seen_and_the_kernel_is_the_same():
    whole = brought(walk_of(0, 4, 256, 64, causal=False)[1])
    for rank in range(4):
        kernel, walk = walk_of(rank, 4, 256, 64)
        assert brought(walk) * 6 == whole * (rank + 2 * (3 - rank))
        other, walk = walk_of(rank, 4, 256, 64, zigzag=False)
        assert brought(walk) * 3 == whole * rank and kernel is other


@SLOW
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dims", [(64, 64), (64, 256), (128, 128), (192, 192), (256, 256)])
def test_all_is_held_in_registers_and_products_wait_for_no_walk(dims, causal):
    attended = Attended(2, 528, (2, 1), dims, causal=causal)
    given = attended.q[0], *attended.peers, attended.o[0], attended.lse[0], 0, attended.signals[0], attended.rooms[0]
    kernel, arguments, _, block = keys_plan.ring_attention(*given, 1, attended.options)
    made = cute.compile(kernel, arguments, arch="sm_90a")
    r = made.resources
    assert block == 384 and r.group_registers == (56, 224)
    assert not made.notes and (r.spill_stores, r.spill_loads, r.local) == (0, 0, 0)
    loop = machine_code.main_loop(machine_code.read(made.sass))
    products = [i for i, x in enumerate(loop) if x.kind == "tensor"]
    assert not [x.text for x in loop[: products[-1]] if "WIDE" in x.text]  # what divides: a walk that asks for a place


def test_a_block_has_room_beside_what_is_brought():
    for d, dv in ((64, 64), (128, 128), (192, 128), (256, 256)):
        q, k, v = (np.empty((1, 4096, heads, n), np.float16) for heads, n in ((8, d), (2, d), (2, dv)))
        for right in (None, 0):
            form, options = keys_plan.ring_form(q, k, v, Options(1.0, right=right))
            assert form.ring and form.groups == 2 and form.registers == (56, 224)
            assert (form.cluster, options.tile, form.left) == (1, (form.tile_m, form.tile_n), False)
            assert keys_plan.smem_of(form) + keys_plan.USUAL.memory <= keys_plan.SMEM
            with pytest.raises(CuteError, match="no room for tiles"):
                keys_plan.ring_form(q, k, v, Options(1.0, right=right, tile=(128, 512)))


def test_blocks_are_large_and_leave_little_of_a_gpus_keys():
    for right, sizes in ((None, [128, 144, 176, 176]), (0, [128] * 4)):
        made = [np.empty((1, rows, 2, 128), np.float16) for rows in (128, 1000, 1024, 4096)]
        assert [keys_plan.ring_form(x, x, x, Options(1.0, right=right))[0].tile_n for x in made] == sizes


def test_heads_are_brought_together_that_fill_pieces_and_whose_tiles_are_done_side_by_side():
    q, k = np.empty((1, 256, 16, 64), np.float16), np.empty((1, 256, 16, 64), np.float16)
    form, _ = keys_plan.ring_form(q, k, k, Options(1.0))
    assert [keys_plan.heads_together(form, n, 16, 256) for n in (1, 4, 5, 16, 32)] == [4, 4, 8, 16, 16]
    assert keys_plan.heads_together(form, 1, 6, 256) == 6  # of which nothing but all fills pieces


def parts(rows=16, heads=2, d=64, dv=64, dtype=np.float16):
    return [np.zeros((1, rows, n, of), dtype) for n, of in ((2 * heads, d), (heads, d), (heads, dv))]


def test_parts_that_fit_are_taken():
    for given in (parts(), parts(17, 3, 128, 64), parts(8, 1, 256, 256)):
        attention.check_parts("ring_attention", *given, None)
        attention.check_parts("ring_attention", *given, np.zeros((*given[0].shape[:3], given[2].shape[3]), np.float16))


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda q, k, v: (q[:, :8], k, v), r"k is .*; its shape must be \(1, 8, any, 64\)"),
        (lambda q, k, v: (q, k, v[:, :, :1]), r"v is .*; its shape must be \(1, 16, 2, any\)"),
        (lambda q, k, v: (q, k[..., :32].copy(), v), r"k is .*; its shape must be \(1, 16, any, 64\)"),
        (lambda q, k, v: (q.astype(np.float32), k, v), "its elements must be bfloat16 or float16"),
        (lambda q, k, v: (q, k.astype(np.float32), v), "k is .*its elements must be float16"),
        (lambda q, k, v: (q[0], k, v), "q is .*it must have 4 modes"),
        (lambda q, k, v: (q[..., :32].copy(), k[..., :32].copy(), v), "head dimension is 32 of q and 64 of v"),
        (lambda q, k, v: (q[:, :, :3].copy(), k, v), "q has 3 heads, which is not a multiple of the 2"),
        (lambda q, k, v: (q, np.zeros((1, 2, 16, 64), q.dtype).transpose(0, 2, 1, 3), v), "k is .*must be contiguous"),
        (lambda q, k, v: (q[:, :0], k[:, :0], v[:, :0]), "give some elements"),
        (lambda q, k, v: (np.zeros((1, 16, 4, 65), q.dtype)[..., :64], k, v), "q is .*multiples of 16 bytes"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(change, said):
    with pytest.raises(CuteError, match=f"^ring_attention: .*{said}"):
        attention.check_parts("ring_attention", *change(*parts()), None)


def test_tensors_elsewhere_are_refused_and_told_of_the_simulator():
    torch = pytest.importorskip("torch")
    with pytest.raises(CuteError, match="give tensors on the rank's GPU. In the simulator"):
        attention.check_place("ring_attention", torch.zeros(2))
    with pytest.raises(CuteError, match="torch.distributed is not initialized"):
        attention.ring_attention(*(torch.zeros(1, 16, 2, 64, dtype=torch.float16) for _ in range(3)))
