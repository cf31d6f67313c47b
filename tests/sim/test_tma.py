# SPDX-License-Identifier: Apache-2.0
"""TMA in the simulator against NumPy: every rank, swizzles, out-of-bounds elements, stores, reductions, multicast."""

from dataclasses import replace

import numpy as np
import pytest
from numba import cuda

from numba_cute import dtypes
from numba_cute.isa.facts.tensormap import TensorMapRecord
from numba_cute.isa.facts.tensormap_bits import BYTES, pack
from numba_cute.isa.rows import bulk, fence, mbarrier, special, sync, tensormap_update, tma
from numba_cute.seam import CuteError
from numba_cute.sim import OutOfBoundsError, simulate

from .maps import map_of as record

BAR, BUF = 1024, 2048


def make_load(rank, nbytes):
    def load(source, at, raw):
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
            mbarrier.mbarrier_arrive_expect_tx(BAR, nbytes)
            tma.cp_async_bulk_tensor_g2s(BUF, source, at, BAR, rank=rank)
            mbarrier.mbarrier_wait_parity(BAR, 0)
            bulk.cp_async_bulk_s2g(raw.ctypes.data, BUF, nbytes)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    return load


def box_of(a, at, box, fill=0, steps=None):
    """The box in plain Python: innermost first coordinates, out-of-bounds filled."""
    steps = steps or (1,) * len(box)
    shape = tuple(-(-n // s) for n, s in zip(reversed(box), reversed(steps)))
    out = np.full(shape, fill, a.dtype)
    for i in np.ndindex(*shape):
        where = tuple(c + k * s for c, k, s in zip(reversed(at), i, reversed(steps)))
        if all(0 <= w < n for w, n in zip(where, a.shape)):
            out[i] = a[where]
    return out


@pytest.mark.parametrize(
    ("shape", "box", "at"),
    [
        ((64,), (16,), (8,)),
        ((64,), (16,), (-4,)),
        ((8, 32), (16, 4), (4, 2)),
        ((8, 32), (16, 4), (24, 6)),
        ((8, 32), (16, 4), (-4, -1)),
        ((8, 32), (16, 4), (32, 0)),
        ((4, 5, 8), (8, 3, 2), (0, 4, 3)),
        ((3, 2, 4, 8), (8, 2, 2, 2), (0, 1, 1, 2)),
        ((2, 3, 2, 4, 8), (8, 2, 1, 2, 1), (0, 3, 1, 2, 1)),
    ],
    ids=str,
)
def test_load_of_each_rank_and_out_of_bounds(shape, box, at, rng):
    a = rng.integers(1, 1000, shape, np.int32)
    raw = np.full(int(np.prod(box)) * 4, 0xA5, np.uint8)
    simulate(make_load(len(shape), raw.nbytes))[1, 32, 0, 4096](record(a, box), at, raw)
    np.testing.assert_array_equal(raw.view(np.int32).reshape(box[::-1]), box_of(a, at, box))


@pytest.mark.parametrize("at", [(3, 0), (-5, 0), (2, 2)], ids=str)
def test_an_innermost_coordinate_within_16_bytes_is_refused_as_hardware_does(at, rng):
    a = rng.integers(1, 1000, (8, 32), np.int32)
    with pytest.raises(CuteError, match=f"innermost coordinate {at[0]} .*use a multiple of 4 elements"):
        simulate(make_load(2, 256))[1, 32, 0, 4096](record(a, (16, 4)), at, np.zeros(256, np.uint8))


def test_element_strides_and_nan_fill(rng):
    a = rng.standard_normal((16, 8)).astype(np.float32)
    r = record(a, (8, 8), element_strides=(1, 3), oob_fill="nan")
    assert r.box_bytes == 8 * 3 * 4
    raw = np.zeros(r.box_bytes, np.uint8)
    simulate(make_load(2, raw.nbytes))[1, 32, 0, 4096](r, (4, 11), raw)
    want = box_of(a, (4, 11), (8, 8), np.nan, (1, 3))
    np.testing.assert_array_equal(raw.view(np.float32).reshape(3, 8), want)


ROUNDED = {  # as an H200 loads them by a map of tf32
    "0x1.001p0": "0x1p0", "0x1.002p0": "0x1p0", "0x1.003p0": "0x1.004p0", "0x1.005p0": "0x1.004p0",
    "0x1.006p0": "0x1.008p0", "0x1.007p0": "0x1.008p0", "0x1.00ap0": "0x1.008p0", "-0x1.002p0": "-0x1p0",
    "-0x1.006p0": "-0x1.008p0", "0x1.ffff16p127": "inf", "0x1.006p-126": "0x1.008p-126", "0x1p-130": "0x1p-130",
    "0x1p-149": "0x0p0", "inf": "inf", "nan": "nan",
}  # fmt: skip


def test_a_map_of_tf32_rounds_what_it_loads():
    a = np.array([*map(float.fromhex, ROUNDED), 0], np.float32)
    r = replace(record(a, (16,)), dtype=dtypes.TFloat32)
    raw = np.zeros(r.box_bytes, np.uint8)
    simulate(make_load(1, raw.nbytes))[1, 32, 0, 4096](r, (0,), raw)
    want = np.array([*map(float.fromhex, ROUNDED.values()), 0], np.float32)
    np.testing.assert_array_equal(raw.view(np.float32), want)


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
def test_swizzles_permute_16_byte_chunks(swizzle, rng):
    width = {"none": 64, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    a = rng.integers(0, 255, (32, width), np.uint8)
    raw = np.zeros(a.nbytes, np.uint8)
    simulate(make_load(2, raw.nbytes))[1, 32, 0, 8192](record(a, (width, 32), swizzle=swizzle), (0, 0), raw)
    flat = a.reshape(-1)
    mask = {"none": 0, "32B": 1, "64B": 3, "128B": 7}[swizzle]
    for offset in range(0, a.nbytes, 16):
        there = offset ^ ((offset >> 7 & mask) << 4)
        np.testing.assert_array_equal(raw[there : there + 16], flat[offset : offset + 16])


@pytest.mark.parametrize("reduce", [None, "add", "max"])
def test_store_writes_only_what_is_inside(reduce, rng):
    a = rng.integers(-50, 50, (10, 24), np.int32)
    box = rng.integers(-50, 50, (8, 16), np.int32)
    want, part = a.copy(), box[:4, :8]
    old = want[6:, 16:].copy()
    want[6:, 16:] = part if reduce is None else {"add": np.add, "max": np.maximum}[reduce](old, part)

    def kernel(source, target):
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
            mbarrier.mbarrier_arrive_expect_tx(BAR, 512)
            tma.cp_async_bulk_tensor_g2s(BUF, source, (0, 0), BAR, rank=2)
            mbarrier.mbarrier_wait_parity(BAR, 0)
            if reduce is None:
                tma.cp_async_bulk_tensor_s2g(target, (16, 6), BUF, rank=2)
            else:
                tma.cp_reduce_async_bulk_tensor_s2g(target, (16, 6), BUF, rank=2, op=reduce)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    simulate(kernel)[1, 32, 0, 4096](record(box, (16, 8)), record(a, (16, 8)))
    np.testing.assert_array_equal(a, want)


@pytest.mark.parametrize("at", [(-4, 0), (0, -1), (16, -8)], ids=str)
@pytest.mark.parametrize("reduce", [None, "add"])
def test_a_store_cannot_begin_before_the_tensor(reduce, at, rng):
    a = np.zeros((10, 24), np.int32)

    def kernel(target):
        if cuda.threadIdx.x == 0:
            if reduce is None:
                tma.cp_async_bulk_tensor_s2g(target, at, BUF, rank=2)
            else:
                tma.cp_reduce_async_bulk_tensor_s2g(target, at, BUF, rank=2, op=reduce)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0)

    with pytest.raises(CuteError, match="cannot begin before it.* use coordinates of 0 or more"):
        simulate(kernel, checks=False)[1, 32, 0, 4096](record(a, (16, 8)))


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_multicast_delivers_and_counts_in_each_cta(seed, rng):
    a = rng.integers(0, 100, (4, 32), np.int32)

    def kernel(source, out):
        rank = special.sreg_cluster(register="cluster_ctarank")
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
        sync.cluster_arrive()
        sync.cluster_wait()
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 4 * 256)
            at = (0, rank)
            tma.cp_async_bulk_tensor_g2s(BUF + 256 * rank, source, at, BAR, cta_mask=15, rank=2)
            mbarrier.mbarrier_wait_parity(BAR, 0)
            bulk.cp_async_bulk_s2g(out.ctypes.data + 1024 * rank, BUF, 1024)
            tma.cp_async_bulk_commit_group()
            tma.cp_async_bulk_wait_group(n=0, read=True)
        sync.cluster_arrive()
        sync.cluster_wait()

    out = np.zeros((4, 4, 64), np.int32)
    a = np.concatenate([a, a], 1)
    simulate(kernel, cluster=4, seed=seed)[4, 32, 0, 4096](record(a, (64, 1)), out)
    np.testing.assert_array_equal(out, np.broadcast_to(a, (4, 4, 64)))


def test_misaligned_destination(rng):
    a = np.zeros((8, 64), np.float16)

    def kernel(source):
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_init(BAR, 1)
            tma.cp_async_bulk_tensor_g2s(BUF + 64, source, (0, 0), BAR, rank=2)

    with pytest.raises(CuteError, match="must be a multiple of 128"):
        simulate(kernel)[1, 32, 0, 4096](record(a, (64, 8), swizzle="128B"))


def copies_of(row):
    def kernel(a, source):
        if cuda.threadIdx.x == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
            mbarrier.mbarrier_arrive_expect_tx(BAR, 1024)
            tma.cp_async_bulk_tensor_g2s(BUF, source, (0, row), BAR, rank=2)
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel


def test_addresses_of_a_map_are_of_64_bits():
    a = np.arange(8 * 64, dtype=np.float16).reshape(8, 64)
    around = TensorMapRecord(dtypes.Float16, a.ctypes.data, (64, 8, (1 << 30) + 1), (128, 1 << 34), (64, 8, 1))
    load, raw = make_load(3, 1024), np.zeros(1024, np.uint8)
    simulate(lambda a, source, at, raw: load(source, at, raw))[1, 32, 0, 8192](a, around, (0, 0, 1 << 30), raw)
    np.testing.assert_array_equal(raw.view(np.float16), a.ravel())


def test_a_map_larger_than_its_array_may_copy_what_lies_in_it():
    a = np.zeros((8, 64), np.float16)
    r = TensorMapRecord(dtypes.Float16, a.ctypes.data, (64, 9), (128,), (64, 8))
    simulate(copies_of(0))[1, 32, 0, 8192](a, r)
    with pytest.raises(OutOfBoundsError, match="which is 128 bytes beyond .* reaches 128 bytes beyond the end of a"):
        simulate(copies_of(8))[1, 32, 0, 8192](a, r)


GOOD = dict(dtype=dtypes.Float16, address=4096, dims=(64, 32), strides_bytes=(128,), box=(64, 8), swizzle="128B")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(dims=(64,) * 6, strides_bytes=(128,) * 5, box=(8,) * 6), "rank 6"),
        (dict(address=4104), "0x1008 is not a multiple of 16"),
        (dict(strides_bytes=(120,)), "stride of dimension 1 is 120 bytes"),
        (dict(strides_bytes=(1 << 40,)), "below 2\\^40"),
        (dict(strides_bytes=()), "must have 1 entries"),
        (dict(dims=(64, 0)), r"dims\[1\] is 0"),
        (dict(dims=(64, (1 << 32) + 1)), r"dims\[1\] is 4294967297"),
        (dict(box=(64, 257)), r"box\[1\] is 257"),
        (dict(box=(4, 8)), "= 8 bytes; it must be a multiple of 16"),
        (dict(box=(128, 8)), "256 bytes, more than the 128 of swizzle '128B'"),
        (dict(element_strides=(1, 9)), r"element_strides\[1\] is 9"),
        (dict(element_strides=(2, 1)), r"element_strides\[0\] is 2"),
        (dict(swizzle="256B"), "swizzle '256B' is none of"),
        (dict(interleave="64B"), "interleave .64B."),
        (dict(oob_fill="one"), "oob_fill 'one'"),
        (dict(l2_promotion="512B"), "l2_promotion '512B'"),
        (dict(dtype=dtypes.Int16, oob_fill="nan"), "needs a floating-point dtype"),
    ],
    ids=lambda x: "" if isinstance(x, str) else next(iter(x)),
)
def test_a_tensor_map_that_the_driver_would_refuse(change, words):
    assert TensorMapRecord(**GOOD).box_bytes == 1024
    with pytest.raises(CuteError, match=words):
        TensorMapRecord(**{**GOOD, **change})


def test_a_lane_of_the_warp_that_copies_a_map_to_global_memory_may_acquire_it(rng):
    rows, out = rng.integers(0, 99, 64).astype(np.int32), np.zeros(64, np.int32)
    raw = np.zeros(3 * BYTES, np.uint8)
    start = -raw.ctypes.data % BYTES
    map = raw[start : start + BYTES]
    packed = pack(TensorMapRecord(dtypes.Int32, rows.ctypes.data, (64,), (), (64,))).view(np.int32)

    def kernel(map, packed, rows, out):
        t, words = cuda.threadIdx.x, cuda.shared.array(0, np.int32)
        words[1024 // 4 + t] = packed[t]
        if t == 0:
            mbarrier.mbarrier_init(BAR, 1)
            fence.fence_mbarrier_init()
            mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
        cuda.syncwarp()
        tensormap_update.tensormap_cp_fenceproxy(map.ctypes.data, BUF, scope="gpu")
        if t == 0:
            tensormap_update.fence_proxy_tensormap_acquire(map.ctypes.data, scope="gpu")
            tma.cp_async_bulk_tensor_g2s(BUF + 1024, map.ctypes.data, (0,), BAR, rank=1)
        mbarrier.mbarrier_wait_parity(BAR, 0)
        for i in (t, t + 32):
            out[i] = words[2048 // 4 + i]

    simulate(kernel)[1, 32, 0, 8192](map, packed, rows, out)
    np.testing.assert_array_equal(out, rows)
