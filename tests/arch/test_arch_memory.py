# SPDX-License-Identifier: Apache-2.0
"""Memory through `arch`: order, scope and hints, atomics of every type in every space, reductions, static and dynamic
shared memory, a peer's memory, tensor memory and cancelled clusters. In kernels, against Python and NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, seam
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

F16, BF16, F32, F64 = cute.Float16, cute.BFloat16, cute.Float32, cute.Float64
S32, U32, S64, U64 = cute.Int32, cute.Uint32, cute.Int64, cute.Uint64


def given(array):
    return lambda place: from_dlpack(place(array), 16)


@cuda.jit
def hinted(source, halves, got, copied):
    i, _, _ = arch.thread_idx()
    p = source.iterator + 4 * i
    a, b, c, d = arch.load(p, F32, count=4, level1_eviction_priority="evict_first", level_prefetch_size="size_256b")
    got[i, 0] = a + 2 * b + 4 * c + 8 * d
    x, y = arch.load(p, F32, sem="relaxed", scope="gpu", count=2)
    got[i, 1] = x - y
    got[i, 2] = arch.load(p + 3, F32, cop="cv")
    got[i, 3] = arch.load(p + 2, F32, sem="acquire", scope="sys", level1_eviction_priority="evict_no_allocate")
    h = arch.load(halves.iterator + i, F16, cop="cg")
    arch.store(copied.iterator + 4 * i, (h, h, h, h), level1_eviction_priority="evict_last")
    arch.store(copied.iterator + 4 * i + 1, a, cop="cs")
    arch.store(copied.iterator + 4 * i + 2, h, sem="release", scope="gpu")


def test_loads_and_stores_take_hints_and_orders(run, rng):
    source, halves = rng.standard_normal((32, 4)).astype(np.float32), rng.standard_normal(32).astype(np.float16)
    got, copied = np.empty((32, 4), np.float32), np.empty((32, 4), np.float16)
    a, b, c, d = source.T
    want = np.stack([a + 2 * b + 4 * c + 8 * d, a - b, d, c], 1)

    def check():
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(copied, np.stack([halves, a.astype(np.float16), halves, halves], 1))

    run(hinted, 1, 32, [given(x) for x in (source, halves, got, copied)], outputs=[got, copied], check=check)


@cuda.jit
def handed_over(flag, data, got):
    """Block 0 publishes data with a release, the others wait for it with an acquire."""
    i, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    if block == 0:
        data[i] = 3 * i + 1
        arch.sync_threads()
        if i == 0:
            arch.store(flag.iterator, 1, sem="release", scope="gpu")
    else:
        if i == 0:
            while arch.load(flag.iterator, S32, sem="acquire", scope="gpu") == 0:
                pass
        arch.sync_threads()
        got[block - 1, i] = data[i]


def test_a_release_hands_data_to_an_acquire(run):
    flag, data, got = np.zeros(1, np.int32), np.zeros(64, np.int32), np.empty((2, 64), np.int32)

    def check():
        np.testing.assert_array_equal(got, np.tile(3 * np.arange(64) + 1, (2, 1)))

    run(handed_over, 3, 64, [given(x) for x in (flag, data, got)], outputs=[got], inouts=[flag, data], check=check)


@cuda.jit
def relaxed_hand_over(flag, data, got):
    i, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    if block == 0:
        data[i] = i
        arch.store(flag.iterator, 1, sem="relaxed", scope="gpu")
    else:
        while arch.load(flag.iterator, S32, sem="relaxed", scope="gpu") == 0:
            pass
        got[i] = data[i]


def test_a_relaxed_flag_hands_nothing_over():
    flag, data, got = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    with pytest.raises(cute.sim.RaceError):
        cute.simulate(relaxed_hand_over)[2, 1](*(from_dlpack(x) for x in (flag, data, got)))


KINDS = [(np.int32, S32), (np.uint32, U32), (np.int64, S64), (np.uint64, U64), (np.float32, F32), (np.float64, F64),
         (np.float16, F16), (ml_dtypes.bfloat16, BF16)]  # fmt: skip


@cuda.jit
def summed(cells, total):
    i, _, _ = arch.thread_idx()
    mine = arch.alloc_smem(cells.element_type, 1)
    if i == 0:
        mine.store(0)
    arch.sync_threads()
    arch.atomic_add(mine, 1, scope="cta")
    arch.atomic_add(cells.iterator, 2, sem="acq_rel")
    arch.atomic_add(cells.iterator + 1, 1, scope="cluster")
    arch.sync_threads()
    if i == 0:
        total[0] = mine.load()


@pytest.mark.parametrize("dtype", [k for k, _ in KINDS], ids=lambda k: np.dtype(k).name)
def test_sums_of_every_type_in_both_memories(run, dtype):
    cells, total = np.zeros(2, dtype), np.empty(1, dtype)

    def check():
        assert [float(x) for x in (*cells, *total)] == [128, 64, 64]

    run(summed, 1, 64, [given(cells), given(total)], outputs=[total], inouts=[cells], check=check)


@cuda.jit
def exchanged(words, wide, floats, old):
    i, _, _ = arch.thread_idx()
    old[i, 0] = cute.Int64(arch.atomic_exch(words.iterator + i, 7))
    old[i, 1] = cute.Int64(arch.atomic_cas(words.iterator + i, 7, 9))
    old[i, 2] = arch.atomic_exch(wide.iterator + i, -1)
    old[i, 3] = arch.atomic_cas(wide.iterator + i, 5, 6)
    old[i, 4] = arch.atomic_max(wide.iterator + i, i)
    arch.atomic_fmax(floats.iterator, cute.Float32(i) - 16)
    arch.atomic_fmin(floats.iterator + 1, cute.Float32(i) - 16)
    arch.atomic_fmax(floats.iterator + 2, cute.Float32(i), sign_bit=False)
    arch.atomic_max_float32(floats.iterator + 3, cute.Float32(i) * 2)
    arch.atomic_fmin(floats.iterator + 4, -cute.Float32(i) - 1, sign_bit=True)


def test_exchanges_give_what_was_there(run):
    words, wide = np.arange(32, dtype=np.int32) + 100, np.arange(32, dtype=np.int64) - (1 << 40)
    first, before = wide.copy(), words.copy()
    floats = np.array([-np.inf, np.inf, 3, 0, -2], np.float32)
    old, t = np.empty((32, 5), np.int64), np.arange(32)

    def check():
        np.testing.assert_array_equal(old, np.stack([before, 0 * t + 7, first, 0 * t - 1, 0 * t - 1], 1))
        np.testing.assert_array_equal(words, 0 * t + 9)
        np.testing.assert_array_equal(wide, np.maximum(t, -1))
        np.testing.assert_array_equal(floats, [15, -16, 31, 62, -32])

    args = [given(x) for x in (words, wide, floats, old)]
    run(exchanged, 1, 32, args, outputs=[old], inouts=[words, wide, floats], check=check)


@cuda.jit
def reduced(words, floats, pairs, halves):
    i, _, _ = arch.thread_idx()
    arch.red(words.iterator, i, op="add", dtype="s32")
    arch.red(words.iterator + 1, i, op="umax", dtype="s32", sem="release", scope="gpu")
    arch.red(words.iterator + 2, -i, op="min", dtype=cute.Int32, scope="cta")
    arch.red(words.iterator + 3, 1 << i, op="or", dtype="b32")
    arch.red(words.iterator + 4, 9, op="inc", dtype="u32")
    arch.red(floats.iterator, (1.0, 2.0, 3.0, 4.0), op="add", dtype="f32")
    arch.red(floats.iterator, cute.full((2, 2), 1.0, cute.Float32), op="add", dtype="f32")
    arch.red(pairs.iterator, 0x3C004000, op="add", dtype="f16x2")
    arch.red(halves.iterator, (1.0, 2.0, cute.Float32(i), 0.5), op="max", dtype="bf16")


def test_reductions_of_words_and_vectors(run):
    words, floats = np.zeros(5, np.int32), np.zeros(4, np.float32)
    pairs, halves = np.zeros(2, np.float16), np.zeros(4, ml_dtypes.bfloat16)
    view = pairs.view(np.uint32)

    def check():
        assert words.tolist() == [496, 31, -31, -1, 2] and floats.tolist() == [64, 96, 128, 160]
        assert view.view(np.float16).tolist() == [64, 32]
        assert halves.astype(float).tolist() == [1, 2, 31, 0.5]

    args = [given(words), given(floats), given(view), given(halves)]
    run(reduced, 1, 32, args, inouts=[words, floats, view, halves], check=check)


@cuda.jit
def static_and_dynamic(got):
    i, _, _ = arch.thread_idx()
    ints = arch.alloc_smem(cute.Int32, 64)
    floats = arch.alloc_smem(cute.Float32, 64, 128)
    dynamic = arch.get_dyn_smem(cute.Int32, 128)
    (ints + i).store(i)
    (floats + i).store(0.5)
    (dynamic + i).store(1000)
    arch.sync_threads()
    got[i] = (ints + (63 - i)).load() + cute.Int32(2 * (floats + i).load()) + (dynamic + (i ^ 1)).load()


def test_static_shared_memory_is_one_piece_for_each_line(run):
    got = np.empty(64, np.int32)

    def check():
        np.testing.assert_array_equal(got, 63 - np.arange(64) + 1001)

    run(static_and_dynamic, 1, 64, [given(got)], outputs=[got], check=check, smem=256)


@seam.traced
def two_of_one_line():
    first, second = (arch.alloc_smem(cute.Int32, 64) for _ in range(2))
    return first, second


@cuda.jit
def static_in_loops(got, rounds):
    i, _, _ = arch.thread_idx()
    total = 0
    for _ in range(rounds):
        first, second = two_of_one_line()
        (first + i).store(i)
        (second + i).store(1000)
        arch.sync_threads()
        total += (first + (63 - i)).load() + (second + (i ^ 1)).load()
        arch.sync_threads()
    got[i] = total


def test_static_shared_memory_is_another_for_each_call_that_traced_code_makes(run):
    """And the same each time that the kernel comes to its line."""
    got = np.empty(64, np.int32)

    def check():
        np.testing.assert_array_equal(got, 3 * (63 - np.arange(64) + 1000))

    run(static_in_loops, 1, 64, [given(got), np.int32(3)], outputs=[got], check=check)


@cute.cluster_shape(2, 1)
@cuda.jit
def sent(got):
    i, _, _ = arch.thread_idx()
    rank = arch.block_idx_in_cluster()
    smem = cute.utils.SmemAllocator()
    words = smem.allocate_array(cute.Int32, 32 * 8, 16)
    bar = smem.allocate_array(cute.Int64)
    if i == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, 32 * 28)
    arch.cluster_arrive()
    arch.cluster_wait()
    to = words + 8 * i
    arch.store_async_dsmem(to, 100 * rank + i, bar, 1 - rank)
    arch.store_async_dsmem((to + 2).align(8), (i, -i), bar, 1 - rank)
    arch.store_async_dsmem((to + 4).align(16), (1, 2, 3, 4 + i), bar, 1 - rank)
    arch.mbarrier_wait(bar, 0)
    for j in range(8):
        got[32 * rank + i, j] = arch.load(to + j, cute.Int32, ss="cta") if j != 1 else 0
    arch.cluster_arrive()
    arch.cluster_wait()


def test_words_are_sent_to_a_peer(run):
    got, t = np.empty((64, 8), np.int32), np.arange(32)
    want = [np.stack([100 * (1 - r) + t, 0 * t, t, -t, 0 * t + 1, 0 * t + 2, 0 * t + 3, 4 + t], 1) for r in (0, 1)]

    def check():
        np.testing.assert_array_equal(got, np.concatenate(want))

    run(sent, 2, 32, [given(got)], outputs=[got], check=check)


@cuda.jit
def tensor_memory(got):
    i, _, _ = arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    holder = smem.allocate_array(cute.Int32, 1, 16)
    if arch.warp_idx() == 0:
        arch.alloc_tmem(64, holder)
        arch.relinquish_tmem_alloc_permit()
    arch.sync_threads()
    first = arch.retrieve_tmem_ptr(cute.Float32, 16, holder)
    arch.fence_view_async_tmem_load()
    arch.fence_view_async_tmem_store()
    got[i] = first.toint() & 0xFFFF
    arch.sync_threads()
    if arch.warp_idx() == 0:
        arch.dealloc_tmem(first, 64)


def test_tensor_memory_is_taken_and_given_back(run):
    got = np.empty(64, np.uint32)

    def check():
        assert (got % 32 == 0).all() and len(set(got.tolist())) == 1

    run(tensor_memory, 1, 64, [given(got)], outputs=[got], check=check, arch="sm_100a")


@cuda.jit
def took_over(got):
    """Each block asks once for another that has not started, and counts itself and what it got."""
    i, _, _ = arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    answer = smem.allocate_array(cute.Int32, 4, 16)
    bar = smem.allocate_array(cute.Int64)
    if i == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if i == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 16)
        arch.issue_clc_query(bar, answer, multicast=False)
    arch.mbarrier_wait(bar, 0)
    x, _, _, valid = arch.clc_response(answer)
    if i == 0:
        arch.atomic_add(got.iterator + arch.block_idx()[0], 1)
        if valid != 0:
            arch.atomic_add(got.iterator + x, 1)


def test_every_block_runs_once_here_or_there(run):
    got = np.zeros(9, np.int32)

    def check():
        assert got.tolist() == [1] * 9

    run(took_over, 9, 32, [given(got)], inouts=[got], check=check, arch="sm_100a")


@cuda.jit
def mixed(halves, a, b, got, words):
    i, _, _ = arch.thread_idx()
    x, y, h = (a[i, 0], a[i, 1]), (b[i, 0], b[i, 1]), halves[i]
    got[i, 0], got[i, 1] = arch.add_packed_f32x2_bf16x2_f32x2(h, x)
    got[i, 2], got[i, 3] = arch.sub_packed_f32x2_f16x2_f32x2(h, x)
    got[i, 4], got[i, 5] = arch.fma_packed_f32x2_bf16x2_f32x2_f32x2(h, x, y)
    words[i, 0] = arch.add_packed_bf16x2_f32x2_f32x2(x, y)
    words[i, 1] = arch.sub_packed_f16x2_f32x2_f32x2(x, y)
    words[i, 2] = arch.exp2_packed_f16x2(h)
    words[i, 3] = arch.exp2_packed_bf16x2(h)


def cut(values, dtype, digits):
    """Towards zero, of numbers that the type holds normally."""
    step = np.exp2(np.floor(np.log2(np.abs(values))) - digits)
    return (np.trunc(values / step) * step).astype(dtype)


def test_pairs_of_different_types_are_computed_at_once(rng):
    """In the simulator: no assembler that compiles kernels offline knows sm_107f yet."""
    halves = rng.integers(0x3C00, 0x4200, (32, 2)).astype(np.uint16)  # moderate numbers of both types
    a, b = rng.uniform(1, 4, (2, 32, 2)).astype(np.float32)
    b -= 8
    got, words = np.zeros((32, 6), np.float32), np.zeros((32, 4), np.uint32)
    packed = np.ascontiguousarray(halves).view(np.uint32)[:, 0].copy()
    cute.simulate(mixed, arch="sm_107f")[1, 32](*(from_dlpack(x) for x in (packed, a, b, got, words)))
    brain, half = (halves.view(t).astype(np.float64) for t in (ml_dtypes.bfloat16, np.float16))
    p, q = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_array_equal(got, np.concatenate([brain + p, half - p, brain * p + q], 1).astype(np.float32))
    np.testing.assert_array_equal(words[:, :1].copy().view(ml_dtypes.bfloat16), cut(p + q, ml_dtypes.bfloat16, 7))
    np.testing.assert_array_equal(words[:, 1:2].copy().view(np.float16), cut(p - q, np.float16, 10))
    np.testing.assert_allclose(words[:, 2:3].copy().view(np.float16), np.exp2(half), rtol=2e-3)
    exact = np.exp2(brain)
    np.testing.assert_allclose(words[:, 3:].copy().view(ml_dtypes.bfloat16).astype(np.float64), exact, rtol=1e-2)


@cuda.jit
def too_new(x):
    arch.exp2_packed_bf16x2(1)


@cuda.jit
def wrong_space(x):
    arch.load(x.iterator, S32, ss="cluster")


@cuda.jit
def wrong_hint(x):
    arch.load(x.iterator, S32, cop="wt")


@cuda.jit
def both_hints(x):
    arch.store(x.iterator, 1, cop="wb", sem="release", scope="gpu")


@pytest.mark.parametrize(
    "kernel, target, why",
    [(too_new, "sm_80", "ex2_bf16x2 needs sm_90"), (wrong_space, "sm_90a", "ss 'cluster' names shared memory"),
     (wrong_hint, "sm_90a", "cop 'wt' is none of 'ca'"), (both_hints, "sm_90a", "leave one of them out")],
)  # fmt: skip
def test_what_the_target_has_not_is_refused(kernel, target, why):
    x = from_dlpack(np.zeros(4, np.int32))
    with pytest.raises(CuteError, match=why):
        cute.simulate(kernel, arch=target)[1, 1](x)
    with pytest.raises(CuteError, match=why):
        cute.compile(kernel, (x,), arch=target)


@cuda.jit
def swapped(got):
    """Each of two blocks writes to the other's memory, and reads what lies in it."""
    i, _, _ = arch.thread_idx()
    rank = arch.block_idx_in_cluster()
    smem = cute.utils.SmemAllocator()
    mine = smem.allocate_tensor(cute.Int32, cute.make_layout(32), 16)
    theirs = smem.allocate_tensor(cute.Int32, cute.make_layout(32), 16)
    mine[i] = 100 * rank + i
    arch.cluster_arrive()
    arch.cluster_wait()
    peer = rank ^ 1
    seen = arch.load(arch.map_dsmem_ptr(mine.iterator + i, peer), cute.Int32, ss="cluster")
    arch.store(arch.map_dsmem_ptr(theirs.iterator + i, peer), seen + 1, ss="cluster")
    arch.cluster_arrive()
    arch.cluster_wait()
    got[rank, i] = theirs[i]


def test_a_pointer_is_mapped_to_another_blocks_memory(run):
    got = np.zeros((2, 32), np.int32)

    def check():
        np.testing.assert_array_equal(got, np.arange(32) + 1 + np.array([[0], [100]]))

    run(swapped, 2, 32, [given(got)], outputs=[got], check=check, cluster=2)


def test_only_shared_memory_is_mapped():
    with pytest.raises(CuteError, match="must be a Pointer to shared memory"):
        arch.map_dsmem_ptr(from_dlpack(np.zeros(1, np.int32)).iterator, 1)
