# SPDX-License-Identifier: Apache-2.0
"""Lanes that run together give, to the bit, what they give one by one; and say the same when something is wrong."""

import math
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, seam
from numba_cute.isa.rows import copy_async, matrix, mbarrier, mma, sync
from numba_cute.sim import OutOfBoundsError, SimError, SimWarning, launch, simulate
from numba_cute.sim.hardware.grid import Cluster
from numba_cute.sim.lanes.convoy import Convoy

from ..fuzz.lanes import Walk
from . import gemm_kernel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import reduce  # noqa: E402

import ampere_gemm  # noqa: E402
import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402


def launched(kernel, grid, block, args, smem=0, **options):
    """Run it, without checks if none are asked for; gives the run."""
    simulated = simulate(kernel, **{"checks": False, **options})
    return simulated.once(*simulated.configured((grid, block, 0, smem)), [tuple(args)], simulated.seed)


@pytest.fixture(autouse=True)
def plain_kernels_too(monkeypatch):
    monkeypatch.setattr(launch, "uses_library", lambda _: True)


@pytest.fixture
def both(monkeypatch):
    """`both(kernel, grid, block, arrays, …)` runs it on copies both ways, and gives the arrays that came out."""

    def run(kernel, grid, block, arrays, **options):
        together, checked, alone = ([a.copy() if isinstance(a, np.ndarray) else a for a in arrays] for _ in range(3))
        assert launched(kernel, grid, block, together, **options).shared
        if kernel is not spin_lock:  # which lacks a fence
            launched(kernel, grid, block, checked, checks=True, **options)
        with monkeypatch.context() as m:
            m.setattr(launch, "why_alone", lambda *_: "a test")
            assert not launched(kernel, grid, block, alone, **options).shared
        for a, b, c in zip(together, alone, checked if kernel is not spin_lock else alone):
            assert not isinstance(a, np.ndarray) or a.tobytes() == b.tobytes() == c.tobytes()
        return together

    return run


def branches(x, out):
    i = cuda.grid(1)
    if i >= out.size:
        return
    v = x[i]
    if i % 3 == 0:
        v = v * 2 if i & 1 else v - 1
    elif v > 0.5 and i % 5 < 3:
        v += out[i]
    out[i] = v


def trip_counts(x, out):
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t % 7):
        total += x[t + i]
        if total > 2:
            break
    n = t
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        total += 1
    out[t] = total


def arithmetic(x, out):
    t = cuda.threadIdx.x
    a = x[t]
    b = float(a) - 0.5
    c = min(max(b, -0.25), 0.25) + abs(b) + round(b * 8) + int(b * 100) % 7 + (t // 3) * 1.5 - t % -5
    d = math.sqrt(abs(b)) + math.floor(b) + math.sqrt(a) + np.float32(t) / np.float32(3)
    e = (t << 3 ^ 21) & ~t | (t >> 1)
    f = cuda.fma(a, a, a) + cuda.popc(t) + cuda.clz(np.int32(t)) + cuda.selp(t % 2 == 0, 1.0, -1.0)
    out[t] = c + d * e + f + (-0.0 if t % 2 else 0.0) * 0 + bool(t & 4) + divmod(t, 7)[1]
    out[t + 64] = 0.0 if t % 2 else -0.0
    out[t + 128] = math.copysign(1.0, (t % 2 - 1) * 0.0) + t**2


def integers_wrap(x, out):
    t = cuda.threadIdx.x
    h = np.uint32(2166136261)
    for i in range(4):
        h = np.uint32(int(h ^ np.uint32(t + i)) * 16777619 % (1 << 32))
    out[t] = float(h % 1024) + float(cute.Int8(t * 37)) + float(cute.Uint32(-t))


def exchanges(x, out):
    t = cuda.threadIdx.x
    v = x[t]
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
    v += cuda.shfl_sync(0xFFFFFFFF, x[t], (t * 7) % 32) + cuda.shfl_xor_sync(0xFFFFFFFF, v, 3)
    votes = cuda.ballot_sync(0xFFFFFFFF, t % 3 == 0) & 0xFFFF
    if t % 32 < 16:
        v += cuda.shfl_up_sync(0xFFFF, v, 1) + cuda.any_sync(0xFFFF, t == 3)
    else:
        v -= cuda.shfl_down_sync(0xFFFF0000, v, t % 4) + cuda.match_any_sync(0xFFFF0000, t % 4) % 1000
    cuda.syncwarp()
    out[t] = v + votes + cuda.all_sync(0xFFFFFFFF, t >= 0) + cuda.laneid + cuda.lanemask_lt() % 97


def local_arrays(x, out):
    t = cuda.threadIdx.x
    seen = cuda.local.array(8, numba.float32)
    grid = cuda.local.array((2, 3), numba.int32)
    for i in range(8):
        seen[i] = x[(t * i) % 64]
    for i in range(2):
        for j in range(3):
            grid[i, j] = i * t + j
    k = t % 5
    seen[k] += seen[(k + t) % 8] if t % 2 else grid[t % 2, t % 3]
    total = np.float32(0)
    for i in range(len(seen)):
        total += seen[i] * grid[i % 2, 2]
    out[t] = total


def shared_and_votes(x, out):
    t = cuda.threadIdx.x
    tile = cuda.shared.array((8, 8), numba.float32)
    count = cuda.shared.array(1, numba.int32)
    if t == 0:
        count[0] = 0
    tile[t // 8, t % 8] = x[t]
    cuda.syncthreads()
    if x[t] > 0.5:
        cuda.atomic.add(count, 0, 1)
    many = cuda.syncthreads_count(x[t] > 0.5)
    every = cuda.syncthreads_and(x[t] >= 0) + cuda.syncthreads_or(x[t] > 2)
    out[t] = tile[t % 8, t // 8] + many + every + count[0]


def spin_lock(x, out):
    t = cuda.threadIdx.x
    waits = True
    while waits:
        if cuda.atomic.cas(out, 100, 0.0, 1.0) == 0.0:
            out[101] += t
            cuda.threadfence()
            cuda.atomic.exch(out, 100, 0.0)
            waits = False
    cuda.atomic.max(out, 102, t)
    cuda.atomic.add(out, t % 4, 1.0)


def whole_grid(x, out):
    i = cuda.grid(1)
    out[i] = x[i % 64] + i
    cuda.cg.this_grid().sync()
    total = np.float32(0)
    if i % 2:
        total = out[(i + 40) % 128]
    cuda.cg.this_grid().sync()
    out[i] += total


def strides(x, out):
    """Ranges whose bounds differ between lanes, and often not how many rounds they have."""
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t, 64, 32):
        total += x[i] * i
        if x[i] > 0.75:
            break
    for i in range(t, t + 3):
        for j in range(i % 4, 4):
            if (i + j) % 5 == 3:
                continue
            total += x[(i + j) % 64]
    for i in range(t % 3, 40 - t % 2, t % 7 + 1):
        total = total * 2 + i
    for i in reversed(range(t % 4, t % 4 + 5)):
        total = total * 2 - i
    for i in range(3 - t % 5):
        total += i
    for i in range(20 + t, t, -9):
        total -= x[i % 64]
    out[t] = total + len(range(t // 16, 9))


def structs(x, out):
    t = cuda.threadIdx.x
    walk = Walk(t, 0)
    while walk.at < 40:
        walk.go(t % 5 + 1)
        if walk.steps > 12:
            break
    out[t] = walk.at * 100 + walk.steps


def tensors(x, out):
    t, _, _ = arch.thread_idx()
    src, dst = cute.make_tensor(x, cute.make_layout((8, 8))), cute.make_tensor(out, cute.make_layout((8, 8)))
    mine = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    for i in cute.range_constexpr(4):
        mine[i] = src[(t + i) % 8, t // 8] if t % 3 else src[t % 8, i]
    if arch.elect_one():
        mine[0] = cute.Float32(-1)
    both = mine.load() * mine.load() + cute.Float32(t)
    dst[t % 8, t // 8] = both[0] + both[3] + arch.shuffle_sync_bfly(mine[1], 1)


def hand_over(x, out):
    """Half a warp waits at an mbarrier for the other half, several times."""
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_init(1024, 8)
        mbarrier.mbarrier_init(1032, 24)
    cuda.syncthreads()
    for i in range(3):
        if t % 32 < 8 and t < 32:
            out[t + i] = x[t] * i
            mbarrier.mbarrier_arrive(1024)
            mbarrier.mbarrier_wait_parity(1032, i % 2)
        elif t < 32:
            mbarrier.mbarrier_wait_parity(1024, i % 2)
            out[t + 32] += out[t % 8 + i]
            mbarrier.mbarrier_arrive(1032)
    sync.bar_sync(3, 64)


def meets_from_a_branch(x, out):
    """A warp waits in a branch of its own, for which the other one has to go on without it."""
    t = cuda.threadIdx.x
    if t >= 32:
        sync.bar_sync(1, 64)
        out[t] = x[t] + 1
    if t < 32:
        sync.bar_sync(1, 64)
        out[t] = x[t] + 2


def integers_of_all_types(x, out):
    """What is computed for a block at once, at the ends of the types, and where an operator has a rule of its own."""
    t = cuda.threadIdx.x
    a, b, w = cute.Int8(t * 5 - 128), cute.Uint32(t * 123456789), cute.Uint64(t) - cute.Uint64(3)
    out[t] = a * 3 + (a << (t % 70 - 3)) % 1009 + ((a >> (t % 9)) & 77) + a // (t % 5 - 2) + a % (t % 4)
    out[t + 64] = (
        (b * 2654435 >> 20) + (w >> 40) % 13 + (w < b) + (a < t) + (w == w // 1) + (b ^ 5) % 7 + cute.Int8(b) // 3
    )
    y = (x[t] - cute.Float32(0.5)) * cute.Float32(t % 3 - 1)
    for i in range(7, t % 9, -2):
        y = max(y, -y / cute.Float32(i)) + min(cute.Float32(0.0), -cute.Float32(0.0) * i)
    out[t + 128] = y / cute.Float32(t % 4 + 1) + cute.Float64(b) + cute.Float32(w % 1000)


KERNELS = [branches, trip_counts, strides, arithmetic, integers_wrap, exchanges, local_arrays, shared_and_votes,
           spin_lock, structs, tensors, hand_over, meets_from_a_branch, integers_of_all_types]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_a_kernel_gives_the_same_both_ways(both, rng, kernel):
    out = both(kernel, 1, 64, [rng.random(128).astype(np.float32), np.zeros(192, np.float32)], smem=1024)[1]
    assert out.any()


@pytest.mark.parametrize("threads", [1, 31, 33, 100])
def test_blocks_of_part_of_a_warp(both, rng, threads):
    arrays = [rng.random(300).astype(np.float32), np.zeros(3 * threads - 1, np.float32)]
    if threads > 1:
        both(branches, 3, threads, arrays)
    else:
        assert not launched(branches, 3, 1, arrays).shared  # there is nobody to share with


def test_a_cooperative_grid(both, rng):
    both(whole_grid, 2, 64, [rng.random(64).astype(np.float32), np.zeros(128, np.float32)])


def test_wgmma_tma_and_clusters(monkeypatch):
    results = []
    for why_alone in (launch.why_alone, lambda *_: "a test"):
        monkeypatch.setattr(launch, "why_alone", why_alone)
        results.append(gemm_kernel.run(200, 256, 72, np.random.default_rng(3), checks=False)[0])
    np.testing.assert_array_equal(*results)


def matrices(a, b, out):
    """A tile by cp.async, ldmatrix and mma.sync."""
    t = cuda.threadIdx.x
    warp, lane = t // 32, t % 32
    smem = 1024 + 1024 * warp
    copy_async.cp_async(smem + 16 * lane, a.ctypes.data + 512 * warp + 16 * lane, nbytes=16, cache="cg")
    if lane < 16:
        copy_async.cp_async(smem + 512 + 16 * lane, b.ctypes.data + 16 * lane, nbytes=16, cache="cg")
    copy_async.cp_async_commit_group()
    copy_async.cp_async_wait_group(n=0)
    sync.bar_warp_sync()
    acc = seam.Regs(seam.current().registers(cute.Float32, 4), cute.Float32, 0, 4)
    seam.current().fill(acc, 0.5 * warp)
    left = matrix.ldmatrix(addr=smem + 32 * (lane % 16) + 16 * (lane // 16), num=4, trans=False)
    right = matrix.ldmatrix(addr=smem + 512 + 32 * (lane % 8) + 16 * (lane // 8 % 2), num=2, trans=False)
    mma.mma_f32(acc, left, right, k=16, a_type="bf16", b_type="bf16")
    values = seam.current().vector(acc)
    for i in range(4):
        out[warp, lane, i] = values[i]


def test_cp_async_ldmatrix_and_mma(both, rng):
    a, b = (rng.standard_normal((rows, 16)).astype(cute.BFloat16.numpy) for rows in (32, 8))
    out = np.zeros((2, 32, 4), np.float32)

    got = both(matrices, 1, 64, [a, b, out], smem=2048, arch="sm_80")[2]
    want = a.astype(np.float64) @ b.astype(np.float64).T
    rows, columns = np.arange(32) // 4, 2 * (np.arange(32) % 4)
    np.testing.assert_allclose(got[0, :, 0], want[rows, columns], rtol=1e-5)
    np.testing.assert_allclose(got[1, :, 3], want[16 + 8 + rows, columns + 1] + 0.5, rtol=1e-5)


def run_ampere():
    a, b, c = gemm_host.problem(40, 72, 72, cute.BFloat16)
    args, grid = ampere_gemm.arguments(a, b, c, "bf16")
    return launched(ampere_gemm.gemm, grid, ampere_gemm.THREADS, args, arch="sm_80"), c


def run_reduce():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((3, 500)).astype(np.float32), np.zeros(3, np.float32)]
    args, grid = reduce.arguments(*arrays)[:2]
    return launched(reduce.root_mean_square, grid, reduce.THREADS, args), arrays[1]


def run_hopper():
    a, b, c = gemm_host.problem(256, 256, 128, cute.BFloat16)
    args, grid = hopper_gemm.arguments(a, b, c, cute.BFloat16, most_clusters=1)[:2]
    return launched(hopper_gemm.gemm, grid, hopper_gemm.THREADS, args), c


@pytest.mark.slow
@pytest.mark.parametrize("example", [run_ampere, run_reduce, run_hopper], ids=lambda f: f.__name__)
def test_an_example_gives_the_same_both_ways(monkeypatch, example):
    run, together = example()
    assert run.shared
    monkeypatch.setattr(launch, "why_alone", lambda *_: "a test")
    run, alone = example()
    assert not run.shared and together.tobytes() == alone.tobytes()


# What is wrong is said as if the lanes had run one by one, on memory as it was.


def out_of_bounds(x, out):
    t = cuda.threadIdx.x
    out[t] += 1
    cuda.syncthreads()
    mbarrier.mbarrier_init(1 << 17 if t == 40 else 1024 + 8 * t, 1)


def indexes_a_tuple(x, out):
    t = cuda.threadIdx.x
    out[t] += 1
    cuda.syncthreads()
    out[t] += (1, 2, 3)[t - 40]


def misses_a_barrier(x, out):
    out[cuda.threadIdx.x] += 1
    if cuda.threadIdx.x != 35:
        sync.bar_sync(1, 64)


@pytest.mark.parametrize(
    ("kernel", "error"),
    [(out_of_bounds, OutOfBoundsError), (indexes_a_tuple, cute.CuteError), (misses_a_barrier, SimError)],
)
def test_errors_are_those_of_single_lanes(monkeypatch, kernel, error):
    found = []
    for why_alone in (launch.why_alone, lambda *_: "a test"):
        monkeypatch.setattr(launch, "why_alone", why_alone)
        out = np.zeros(64)
        with pytest.raises(error) as caught:
            launched(kernel, 1, 64, [np.zeros(1), out], smem=4096)
        found.append((str(caught.value), out.tolist()))
    assert found[0] == found[1]


# Kernels that leave a trace of their own run lane by lane.


def test_a_fault_of_lanes_together_is_a_warning_and_no_wrong_result(monkeypatch, rng):
    monkeypatch.setattr(Convoy, "of_array", None)
    x, out, want = rng.random(64).astype(np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    with pytest.warns(SimWarning, match="tensors: the lanes of a warp could not run together.*TypeError"):
        launched(tensors, 1, 64, (x, out))
    simulate(tensors, seed=0)[1, 64](x, want)
    np.testing.assert_array_equal(out, want)


def test_lanes_that_part_all_the_time_go_on_one_by_one(rng):
    def kernel(out):
        t = cuda.threadIdx.x
        n = 0
        while n < 8 * t:
            n += 1
        out[t] = n

    out = np.zeros(256)
    assert not launched(kernel, 1, 256, [out]).shared
    np.testing.assert_array_equal(out, 8 * np.arange(256))


def comes(out):
    """Which warp came first, second, …"""
    if cuda.threadIdx.x % 32 == 0:
        out[cuda.atomic.add(out, 8, 1)] = cuda.threadIdx.x // 32


def test_seeds_order_warps_whose_lanes_run_together():
    orders = set()
    for seed in (1, 2, 3, 4):
        x, y, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32), np.zeros(9, np.int32)
        assert launched(tensors, 1, 256, (x, y), seed=seed).shared
        assert launched(comes, 1, 256, (out,), seed=seed).shared
        assert sorted(out[:8]) == list(range(8)) and y.any()
        orders.add(tuple(out[:8]))
    assert len(orders) > 2


@pytest.mark.parametrize("options", [{"seed": 8}, {"trace": cute.sim.Trace()}], ids=lambda o: next(iter(o)))
def test_some_orders_and_traces_are_of_single_lanes(options):
    simulated = simulate(branches, **{"checks": False, **options})
    assert launch.why_alone(simulated, (32, 1, 1), simulated.seed, None)


def stridden(x, out):
    for i in range(cuda.threadIdx.x, out.size, cuda.blockDim.x):
        out[i] = x[i]


def test_lanes_that_begin_apart_stay_together(monkeypatch, rng):
    spawned = []
    spawn = Cluster.spawn
    monkeypatch.setattr(
        Cluster, "spawn", lambda self, convoy: spawned.append(len(convoy.members)) or spawn(self, convoy)
    )
    x, out = rng.random(200), np.zeros(200)
    assert launched(stridden, 1, 64, [x, out], checks=True).shared
    assert (out == x).all() and spawned == [64, 8]  # these have a round more


def test_a_warp_that_does_one_thing_costs_a_lane(rng):
    """Steps of the log, which count what is really done: uniform work is done once for the warp."""
    steps = []

    class Counted(launch.LaneBackend):
        def load(self, *args):
            steps.append(args)
            return super().load(*args)

    def kernel(x, out):
        t, _, _ = arch.thread_idx()
        src, dst = cute.make_tensor(x, cute.make_layout(320)), cute.make_tensor(out, cute.make_layout(320))
        for i in range(10):
            dst[t + 32 * i] = src[t + 32 * i] * 2

    x, out = rng.random(320).astype(np.float32), np.zeros(320, np.float32)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(launch, "LaneBackend", Counted)
        assert launched(kernel, 1, 32, [x, out]).shared
    np.testing.assert_array_equal(out, x * 2)
    assert len(steps) == 10
