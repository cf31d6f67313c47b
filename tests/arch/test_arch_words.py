# SPDX-License-Identifier: Apache-2.0
"""Functions of `arch` on words of 64 bits, reductions within groups of lanes and of floats, packed sums by every
rounding, remote and relaxed expectations: against Python's integers and fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError, traced

BITS = (1 << 64) - 1


def tensor(array):
    return lambda place: from_dlpack(place(array), assumed_align=16)


@cuda.jit
def wide(a, b, counts, words, signed):
    i, _, _ = arch.thread_idx()
    counts[i, 0] = arch.popc(a[i], width=64)
    counts[i, 1] = arch.clz(a[i], 64)
    counts[i, 2] = arch.bfind(a[i], width=64)
    counts[i, 3] = arch.bfind(a[i], True, 64)
    words[i, 0] = arch.brev(a[i], 64)
    words[i, 1] = arch.bfe(a[i], i, 2 * i, width=64)
    words[i, 2] = arch.bfi(b[i], a[i], i, 20, 64)
    words[i, 3] = arch.mul_hi(a[i], b[i], width=64)
    signed[i, 0] = arch.bfe(a[i], 40, i, True, 64)
    signed[i, 1] = arch.mul_hi(a[i], b[i], True, width=64)


def test_words_of_64_bits(run, rng):
    a, b = rng.integers(0, 1 << 63, (2, 32), dtype=np.uint64) * 2 + 1
    a[:4] = 0, 1, BITS, 1 << 63
    a[4:12] >>= np.arange(8, dtype=np.uint64) * 7
    counts, words, signed = np.empty((32, 4), np.int32), np.empty((32, 4), np.uint64), np.empty((32, 2), np.int64)
    num = lambda x: x - (1 << 64) if x >> 63 else x  # noqa: E731
    want_counts, want_words, want_signed = [], [], []
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist())):
        s = num(x)
        want_counts.append(
            [x.bit_count(), 64 - x.bit_length(), x.bit_length() - 1, (~s if s < 0 else s).bit_length() - 1]
        )
        mask = ((1 << 20) - 1) << i
        inserted = x & ~mask | y << i & mask
        want_words.append([int(f"{x:064b}"[::-1], 2), x >> i & (1 << 2 * i) - 1, inserted, x * y >> 64])
        field = s >> 40 & (1 << i) - 1
        top = i and s >> min(39 + i, 63) & 1
        want_signed.append([field - (1 << i) * top, s * num(y) >> 64])

    def check():
        np.testing.assert_array_equal(counts, np.array(want_counts, np.int32))
        np.testing.assert_array_equal(words, np.array(want_words, np.uint64))
        np.testing.assert_array_equal(signed, np.array(want_signed, np.int64))

    args = [tensor(x) for x in (a, b, counts, words, signed)]
    run(wide, 1, 32, args, outputs=[counts, words, signed], check=check, arch="sm_80")


@traced
def product(a, b):
    return a * b


@cuda.jit
def groups(floats, ints, words, f, n, masks):
    i, _, _ = arch.thread_idx()
    f[i, 0] = arch.warp_reduction_sum(floats[i])
    f[i, 1] = arch.warp_reduction_max(floats[i], threads_in_group=4)
    f[i, 2] = arch.shuffle_sync_op(floats[i], 3, -1, 31, "bfly")
    n[i, 0] = arch.warp_reduction_sum(ints[i], threads_in_group=8)
    n[i, 1] = arch.warp_reduction_max(ints[i])
    n[i, 2] = arch.warp_reduction(ints[i], product, threads_in_group=2)
    masks[i, 0] = arch.match_sync(0xFFFFFFFF, words[i], width=64)
    masks[i, 1] = arch.match_sync(0xFFFFFFFF, words[i] & 0xFF, "all", 64)
    masks[i, 2] = arch.warp_redux_sync(ints[i], "umax")
    masks[i, 3] = arch.warp_redux_sync(ints[i], "umin")


def test_lanes_of_a_group_reduce_and_match(run, rng):
    floats = rng.integers(-50, 50, 32).astype(np.float32)
    ints = rng.integers(-50, 50, 32).astype(np.int32)
    words = (rng.integers(0, 3, 32).astype(np.uint64) << np.uint64(40)) | np.uint64(5)
    f, n, masks = np.empty((32, 3), np.float32), np.empty((32, 3), np.int32), np.empty((32, 4), np.uint32)

    def per(x, size, op):
        return np.repeat(op(x.reshape(-1, size), axis=1), size)

    lanes = np.arange(32)
    want_f = np.stack([per(floats, 32, np.sum), per(floats, 4, np.max), floats[lanes ^ 3]], 1)
    want_n = np.stack([per(ints, 8, np.sum), per(ints, 32, np.max), per(ints, 2, np.prod)], 1)
    same = ((words[:, None] == words[None]) << lanes.astype(np.uint64)).sum(1)
    unsigned = ints.view(np.uint32)
    rest = [np.full(32, v) for v in (BITS >> 32, unsigned.max(), unsigned.min())]

    def check():
        np.testing.assert_array_equal(f, want_f)
        np.testing.assert_array_equal(n, want_n)
        np.testing.assert_array_equal(masks, np.stack([same, *rest], 1).astype(np.uint32))

    args = [tensor(x) for x in (floats, ints, words, f, n, masks)]
    run(groups, 1, 32, args, outputs=[f, n, masks], check=check, arch="sm_80")


@cuda.jit
def float_extremes(x, got):
    i, _, _ = arch.thread_idx()
    got[i, 0] = arch.warp_redux_sync(x[i], "fmax")
    got[i, 1] = arch.warp_redux_sync(x[i], "min")
    got[i, 2] = arch.warp_redux_sync(x[i], "fmin", abs=True)
    got[i, 3] = arch.warp_redux_sync(x[i], "fmax", nan=True)


@pytest.mark.parametrize("special", [None, np.nan, -0.0, np.inf])
def test_floats_reduce_in_one_instruction(run, rng, special):
    x, got = rng.standard_normal(32).astype(np.float32), np.empty((32, 4), np.float32)
    if special is not None:
        x[5] = special
    with np.errstate(all="ignore"):
        want = [np.nanmax(x), np.nanmin(x), np.nanmin(np.abs(x)), np.nan if np.isnan(x).any() else x.max()]

    def check():
        np.testing.assert_array_equal(got, np.tile(np.array(want, np.float32), (32, 1)))

    run(float_extremes, 1, 32, [tensor(x), tensor(got)], outputs=[got], check=check, arch="sm_100a")


def packed_kernel(rnd):
    @cuda.jit
    def kernel(a, b, got):
        i, _, _ = arch.thread_idx()
        x, y = (a[i, 0], a[i, 1]), (b[i, 0], b[i, 1])
        add, sub = arch.add_packed_f32x2(x, y, rnd=rnd), arch.sub_packed_f32x2(x, y, rnd=rnd)
        mul, fma = arch.mul_packed_f32x2(x, y, rnd=rnd), arch.fma_packed_f32x2(x, y, x, rnd=rnd)
        got[i, 0], got[i, 1], got[i, 2], got[i, 3] = add[0], sub[0], mul[0], fma[0]
        got[i, 4], got[i, 5], got[i, 6], got[i, 7] = add[1], sub[1], mul[1], fma[1]

    return kernel


@pytest.mark.parametrize("rnd", ["rn", "rz", "rm", "rp"])
def test_packed_floats_are_rounded_as_asked(run, rng, rnd):
    a, b = (rng.standard_normal((2, 32, 2)) * np.exp2(rng.integers(-9, 9, (2, 32, 2)))).astype(np.float32)
    got = np.empty((32, 8), np.float32)

    def check():
        for i in range(32):
            for half in range(2):
                x, y = Fraction(float(a[i, half])), Fraction(float(b[i, half]))
                for k, exact in enumerate((x + y, x - y, x * y, x * y + x)):
                    g = got[i, 4 * half + k]
                    below, above = np.nextafter(g, np.float32(-np.inf)), np.nextafter(g, np.float32(np.inf))
                    assert Fraction(float(below)) < exact < Fraction(float(above))
                    error = exact - Fraction(float(g))
                    towards = -error if rnd == "rp" or (rnd == "rz" and exact < 0) else error
                    assert rnd == "rn" or towards >= 0
                    assert rnd != "rn" or 2 * abs(error) <= Fraction(float(above)) - Fraction(float(g)) or \
                        2 * abs(error) <= Fraction(float(g)) - Fraction(float(below))  # fmt: skip

    run(packed_kernel(rnd), 1, 32, [tensor(x) for x in (a, b, got)], outputs=[got], check=check, arch="sm_100a")


@cuda.jit
def expected_by_a_peer(got):
    """Block 1 says what block 0's barrier waits for, and stores it there."""
    i, _, _ = arch.thread_idx()
    bar, word = arch.alloc_smem(cute.Int64, 1), arch.alloc_smem(cute.Uint32, 1, 4)
    rank = arch.block_idx_in_cluster()
    if i == 0:
        arch.mbarrier_init(bar, 3)
        arch.mbarrier_init_fence()
    arch.cluster_arrive()
    arch.cluster_wait()
    if i == 0 and rank == 1:
        arch.mbarrier_expect_tx(bar, 4, peer_cta_rank_in_cluster=0)
        arch.mbarrier_arrive_and_expect_tx(bar, 0, 0, relaxed=True, scope="cluster")
        arch.mbarrier_arrive_and_expect_tx(bar, 0, peer_cta_rank_in_cluster=0)
        arch.store_async_dsmem(word, 77, bar, 0)
    if rank == 0:
        if i == 0:
            arch.mbarrier_arrive_and_expect_tx(bar, 0, scope="cluster")
        arch.mbarrier_wait(bar, 0)
        got[i] = word.load()
    arch.cluster_arrive_relaxed(aligned=False)
    arch.cluster_wait()


def test_a_peer_says_what_a_barrier_expects(run):
    got = np.empty(32, np.uint32)

    def check():
        np.testing.assert_array_equal(got, 77)

    run(expected_by_a_peer, 2, 32, [tensor(got)], outputs=[got], check=check, cluster=2)


WRONG = [
    (lambda: arch.popc(3, width=16), "popc: width 16 must be 32 or 64"),
    (lambda: arch.match_sync(-1, 3, "any", 16), "match_sync: width 16 must be 32 or 64"),
    (lambda: arch.warp_reduction_sum(3, threads_in_group=12), "threads_in_group 12 must be a static power of two"),
    (lambda: arch.warp_redux_sync(1.0, "add"), "kind 'add' of a float must be fmin or fmax"),
    (lambda: arch.warp_redux_sync(1, "max", abs=True), "abs and nan are for floats"),
    (lambda: arch.shuffle_sync_op(1, 1, kind="left"), "kind 'left' is none of 'idx'"),
    (lambda: arch.add_packed_f32x2((1.0, 2.0), (1.0, 2.0), rnd="up"), "rnd 'up' must be"),
    (lambda: arch.cluster_arrive(aligned=2), "aligned 2 must be static"),
    (lambda: arch.mbarrier_arrive_and_expect_tx(8, 0, scope="gpu"), "scope 'gpu' must be"),
]


@pytest.mark.parametrize("call, why", WRONG, ids=[w[:40] for _, w in WRONG])
def test_what_cannot_be_is_refused(call, why):
    body = traced(call)

    def kernel():
        body()

    with pytest.raises(CuteError, match=why):
        cute.simulate(kernel)[1, 1]()
