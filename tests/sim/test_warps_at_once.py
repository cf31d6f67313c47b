# SPDX-License-Identifier: Apache-2.0
"""What several warps do in one operation and one check is what each does by itself, and its races are found; ranges of
shared memory that are looked at as a whole; polls of several places in turn."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, seam
from numba_cute.isa.rows import matrix, sync
from numba_cute.runtime import from_dlpack
from numba_cute.sim import RaceError, launch, simulate
from numba_cute.sim.checks.races.tiles import Tiles
from numba_cute.sim.ground.access import Region

WARPS, FULL = 3, 0xFFFFFFFF


def run(kernel, args, block=32 * WARPS, smem=8192, grid=1, **options):
    simulated = simulate(kernel, **options)
    return simulated.once(*simulated.configured((grid, block, 0, smem)), [args], None)


def exchanges(out):
    t = cuda.threadIdx.x
    lane, word, at = t % 32, t * 0x01030507 % 0xFFFFFF, 1024 + 512 * (t // 32) + 16 * (t % 32)
    got = [sync.shfl_sync(word, by, clamp, mode=mode) for mode, by, clamp in
           (("idx", lane * 3, 31), ("up", 5, 0), ("down", lane % 7, 31), ("bfly", 3, 0x181F))]  # fmt: skip
    got += [
        sync.vote_ballot(word % 3 == 0),
        sync.redux_sync(word, op="max", type="u32"),
        sync.match_any(t // 5, width=32),
    ]
    got += [int(f(word % 5 != t // 32)) for f in (sync.vote_all, sync.vote_any, sync.vote_uni)]
    got += [*sync.match_all(t // 48, width=32)]
    if lane < 16:
        got[0] += sync.shfl_sync(word, lane ^ 1, 31, 0xFFFF, mode="idx")
    matrix.stmatrix(at, (word, word + 1, word + 2, word + 3), num=4, trans=True)
    sync.bar_sync(0)
    got += [*matrix.ldmatrix(addr=1024 + (at - 1024 + 512) % 1536, num=4, trans=False), matrix.movmatrix(word)]
    got += [*matrix.ldmatrix(addr=1024 + 16 * (lane % 16), num=2, trans=True)]  # all warps read the same rows
    for i, x in enumerate(got):
        seam.current().store(cute.Uint32, "gmem", out.iterator.address + 4 * (i * 32 * WARPS + t), (x,), 4)


def test_warps_at_once_give_what_each_gives(monkeypatch):
    monkeypatch.setattr(launch, "uses_library", lambda _: True)
    together, alone = (np.zeros((20, 32 * WARPS), np.uint32) for _ in range(2))
    assert run(exchanges, (from_dlpack(together),)).shared
    monkeypatch.setattr(launch, "why_alone", lambda *_: "a test")
    assert not run(exchanges, (from_dlpack(alone),)).shared
    assert together[:7].any(1).all() and (together == alone).all()


def stores(rows, waits):
    """Warps store to rows that they share or not, and load from those of the next with a barrier or without."""

    def kernel():
        t = cuda.threadIdx.x
        warp = t // 32 if rows == "own" else 0
        matrix.stmatrix(1024 + 512 * warp + 16 * (t % 32), (t, t, t, t), num=4, trans=False)
        if waits:
            sync.bar_sync(0)
        matrix.ldmatrix(addr=1024 + 512 * ((t // 32 + 1) % WARPS) + 16 * (t % 32), num=4, trans=False)
        if waits == "once":
            matrix.stmatrix(1024 + 512 * warp + 16 * (t % 32), (t, t, t, t), num=4, trans=False)

    return kernel


@pytest.mark.parametrize(
    "rows, waits, says",
    [("own", "always", ""), ("same", "always", "written"), ("own", "", "read"), ("own", "once", "written")],
)
def test_races_of_warps_at_once_are_found(monkeypatch, rows, waits, says):
    monkeypatch.setattr(launch, "uses_library", lambda _: True)
    if not says:
        assert run(stores(rows, waits), ()).shared
        return
    with pytest.raises(RaceError, match=f"is {says} by"):
        run(stores(rows, waits), ())


def test_tiles_say_what_bytes_would():
    size, rng = 64, np.random.default_rng(5)
    for _ in range(200):
        tiles, writers, readers = Tiles(), np.zeros(size, int), [set() for _ in range(size)]
        for who in range(1, 25):
            start, stop = sorted(rng.choice(size + 1, 2, replace=False).tolist())
            kind = rng.integers(3)
            if kind == 0:  # one access reads a range
                tiles.pattern((start, stop), Region(start, stop)).readers = who
                for read in readers[start:stop]:
                    read.add(who)
            elif any(p.around(start, stop) for p in tiles.within(start, stop)):
                continue
            else:  # one writes a range, as a whole or in pieces
                tiles.overwritten(start, stop)
                tiles.wrote(start, stop, who if kind == 1 else None)
                writers[start:stop] = who
                readers[start:stop] = [set() for _ in range(start, stop)]
        for start in range(0, size, 7):
            found = tiles.writers(start, start + 5)
            assert found is None or found == set(writers[start : start + 5].tolist())
        for at, read in enumerate(readers):  # of a pattern only the last is kept here
            kept = {p.readers for p in tiles.within(at, at + 1)}
            assert kept <= read and (not read or max(read) in kept)


@cuda.jit
def waits_for_two(flags, out, n):
    """Block 0 reads two flags in turn until both are set."""
    if cuda.threadIdx.x == 0:
        if cuda.blockIdx.x == 0:
            done = 0
            while done < 2:
                a = arch.load(flags.iterator, cute.Int32, sem="acquire", scope="gpu")
                b = arch.load(flags.iterator + 1, cute.Int32, sem="acquire", scope="gpu")
                done = (1 if a >= n else 0) + (1 if b >= n else 0)
            out[0] = done
        else:
            arch.atomic_add(flags.iterator + cuda.blockIdx.x % 2, 1, sem="release", scope="gpu")


@pytest.mark.parametrize("options", [{}, {"seed": 1}])
def test_several_places_are_polled_in_turn(options):
    flags, out = np.zeros(2, np.int32), np.zeros(1, np.int32)
    simulate(waits_for_two, **options)[5, 32](from_dlpack(flags), from_dlpack(out), 2)
    assert flags.tolist() == [2, 2] and out[0] == 2
