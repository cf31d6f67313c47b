# SPDX-License-Identifier: Apache-2.0
"""L2 cache policies: how they are made, and that copies which take one move what they say, by the right instruction."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import (
    CacheEvictionPriority,
    CopyG2ROp,
    CopyR2GOp,
    CopyS2ROp,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    StoreCacheMode,
)
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError, traced

THREADS, Order, S, E = 4, MemoryOrder, MemoryScope, CacheEvictionPriority


def copies(make):
    @cuda.jit
    def through(load, store, src, dst, fraction):
        """dst = src, a row for each thread, through registers, with a policy of `make`."""
        tidx, _, _ = arch.thread_idx()
        policy = make(src.iterator, fraction)
        mine, there = src[tidx, None], dst[tidx, None]
        r = cute.make_fragment_like(mine)
        cute.copy(load, mine, r, cache_policy=policy)
        cute.copy(store, r, there, cache_policy=policy)

    return through


@traced
def constant(ptr, fraction):
    return arch.createpolicy_fractional("evict_last")


@traced
def half(ptr, fraction):
    return arch.createpolicy_fractional("evict_first", fraction, "evict_first")


@traced
def a_range(ptr, fraction):
    return arch.createpolicy_range(ptr, 64, 128, "evict_last", "evict_first")


@traced
def converted(ptr, fraction):
    return arch.createpolicy_cvt(arch.createpolicy_fractional("evict_normal"))


def aligned(array, dtype):
    return lambda place: cute.recast_tensor(from_dlpack(place(array), assumed_align=16), dtype)


def run_through(run, rng, make, load, store, dtype=cute.Float32, bits=128):
    a = rng.integers(0, 100, (THREADS, bits // dtype.width)).astype(dtype.numpy)
    b = np.empty_like(a)
    atoms = [cute.make_copy_atom(op, dtype, bits) for op in (load, store)]
    args = [*atoms, aligned(a, dtype), aligned(b, dtype), np.float32(0.5)]
    run(copies(make), 1, THREADS, args, outputs=[b], check=lambda: np.testing.assert_array_equal(b, a))


@pytest.mark.parametrize("make", [constant, half, a_range], ids=lambda f: f.__name__)
def test_every_kind_of_policy_is_taken(run, rng, make):
    run_through(run, rng, make, CopyG2ROp(), CopyR2GOp())


@pytest.mark.parametrize(
    "load, store",
    [
        (CopyG2ROp(invariant=True), CopyR2GOp(Order.VOLATILE)),
        (CopyG2ROp(Order.ACQUIRE, S.GPU), CopyR2GOp(Order.RELEASE, S.SYS, E.EVICT_LAST)),
        (CopyG2ROp(Order.RELAXED, S.CLUSTER), CopyR2GOp(Order.RELEASE, S.CLUSTER)),
        (CopyG2ROp(load_cache_mode=LoadCacheMode.GLOBAL), CopyR2GOp(store_cache_mode=StoreCacheMode.STREAMING)),
        (CopyG2ROp(l2_prefetch_size=L2PrefetchSize.SIZE_64B, l1c_evict_priority=E.EVICT_FIRST), CopyR2GOp()),
    ],
    ids=range(5),
)
def test_a_policy_goes_with_every_other_hint(run, rng, load, store):
    run_through(run, rng, constant, load, store)


@pytest.mark.parametrize("dtype, bits", [(cute.Int8, 8), (cute.Float64, 64), (cute.Float16, 32)], ids=str)
def test_every_width_takes_a_policy(run, rng, dtype, bits):
    run_through(run, rng, constant, CopyG2ROp(), CopyR2GOp(), dtype, bits)


def ptx_of(make, load=None, store=None):
    atoms = [cute.make_copy_atom(op, cute.Float32, 128) for op in (load or CopyG2ROp(), store or CopyR2GOp())]
    arrays = [from_dlpack(np.zeros((4, 4), np.float32), assumed_align=16) for _ in range(2)]
    return cute.compile(copies(make), (*atoms, *arrays, np.float32(0.5)), arch="sm_90a").ptx


@pytest.mark.parametrize(
    "make, load, text",
    [
        (constant, CopyG2ROp(), "ld.global.L2::cache_hint.v4.b32"),
        (constant, CopyG2ROp(invariant=True), "ld.global.nc.L2::cache_hint.v4.b32"),
        (constant, CopyG2ROp(Order.ACQUIRE, S.GPU, L2PrefetchSize.SIZE_128B, E.EVICT_FIRST),
         "ld.acquire.gpu.global.L1::evict_first.L2::cache_hint.L2::128B.v4.b32"),
        (constant, CopyG2ROp(), "createpolicy.fractional.L2::evict_last.b64"),
        (constant, CopyG2ROp(), "st.global.L2::cache_hint.v4.b32"),
        (half, CopyG2ROp(), "createpolicy.fractional.L2::evict_first.L2::evict_first.b64"),
        (a_range, CopyG2ROp(), "createpolicy.range.global.L2::evict_last.L2::evict_first.b64"),
        (converted, CopyG2ROp(), "createpolicy.cvt.L2.b64"),
    ],
    ids=range(8),
)  # fmt: skip
def test_the_instruction_says_it(make, load, text):
    assert text in ptx_of(make, load)


@cuda.jit
def in_the_atom(src, dst):
    policy = arch.createpolicy_fractional("evict_first")
    load = cute.make_copy_atom(CopyG2ROp(), cute.Float32, num_bits_per_copy=128, cache_policy=policy)
    r = cute.make_fragment_like(src)
    cute.copy(load, src, r)
    cute.autovec_copy(r, dst)


def test_an_atom_made_in_the_kernel_may_hold_the_policy(run):
    a, b = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    args = [aligned(a, cute.Float32), aligned(b, cute.Float32)]
    run(in_the_atom, 1, 1, args, outputs=[b], check=lambda: np.testing.assert_array_equal(b, a))


WRONG = [
    (lambda p, f: arch.createpolicy_fractional("first"), "priority 'first' is none of 'evict_first', 'evict_normal'"),
    (lambda p, f: arch.createpolicy_fractional("evict_first", 0.5, "evict_last"), "secondary 'evict_last' is none of"),
    (lambda p, f: arch.createpolicy_fractional("evict_first", 0.0), "fraction 0.0 must be above 0 and at most 1"),
    (lambda p, f: arch.createpolicy_range(p, 200, 100, "evict_last"), "primary_size 200 must be at most total_size"),
    (lambda p, f: arch.createpolicy_range(p, 0, 1 << 32, "evict_last"), "total_size 4294967296 must be a number of"),
    (lambda p, f: arch.createpolicy_range(f, 0, 1, "evict_last"), "ptr .* must be a Pointer to global memory"),
]


@pytest.mark.parametrize("make, why", WRONG, ids=range(len(WRONG)))
def test_a_policy_that_cannot_be_is_refused(make, why):
    with pytest.raises(CuteError, match=why):
        ptx_of(traced(make))


def test_the_simulator_checks_what_is_known_at_run_time():
    arrays = [from_dlpack(np.zeros((4, 4), np.float32), assumed_align=16) for _ in range(2)]
    atoms = [cute.make_copy_atom(op, cute.Float32, 128) for op in (CopyG2ROp(), CopyR2GOp())]
    with pytest.raises(CuteError, match="fraction is 1.5: it must be above 0 and at most 1"):
        cute.simulate(copies(half))[1, 4](*atoms, *arrays, np.float32(1.5))


@cuda.jit
def of_shared_memory(load, src, dst):
    r = cute.make_fragment_like(src)
    cute.copy(load, src, r, cache_policy=arch.createpolicy_fractional("evict_first"))


def test_shared_memory_has_no_policy():
    arrays = [from_dlpack(np.zeros(4, np.float32), assumed_align=16) for _ in range(2)]
    with pytest.raises(CuteError, match="cache_policy is for TMA operations, and the atom's is CopyS2ROp"):
        cute.simulate(of_shared_memory)[1, 1](cute.make_copy_atom(CopyS2ROp(), cute.Float32, 128), *arrays)
