# SPDX-License-Identifier: Apache-2.0
"""Copies, shifts, loads and stores of tensor memory in kernels, which run in the simulator and through the compiler."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, pipeline, seam, utils
from numba_cute.isa.facts.bits import encode_address
from numba_cute.isa.rows.tcgen05_mma import Tcgen05Descriptor, Tcgen05Instruction
from numba_cute.pipeline import Agent, CooperativeGroup, MbarrierArray, PipelineOp

ONE = CooperativeGroup(Agent.Thread)
WORDS = 128 * 8
"""Of a source of 128 rows of 32 bytes."""
ROWS = Tcgen05Descriptor(leading=128, stride=256).encode()
REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


def placed(rows):
    """(rows, 32 bytes) as words: 8 rows of 16 bytes follow each other, then their other 16."""
    return np.ascontiguousarray(rows).view(np.int32).reshape(-1, 8, 2, 4).transpose(0, 2, 1, 3).ravel()


@seam.traced
def allocate(slot, ctas):
    isa.tcgen05_alloc(slot.address, 64, cta_group=ctas)
    isa.tcgen05_fence_before()


@seam.traced
def free(slot, ctas):
    isa.tcgen05_dealloc(slot.load(), 64, cta_group=ctas)


@seam.traced
def after():
    isa.tcgen05_fence_after()


@seam.traced
def before():
    isa.tcgen05_fence_before()


@seam.traced
def quarter(slot, warp):
    return slot.load() + ((warp % 4 * 32) << 16)


def words_of(fragment, count):
    return seam.Regs(fragment.iterator.address, dtypes.Uint32, 0, count)


@seam.traced
def load(fragment, address, shape, num, pack):
    isa.tcgen05_ld(dst=words_of(fragment, REGISTERS[shape] * num), taddr=address, shape=shape, num=num, pack=pack)
    isa.tcgen05_wait_ld()


@seam.traced
def store(fragment, address, shape, num, unpack):
    isa.tcgen05_st(address, words_of(fragment, REGISTERS[shape] * num), shape=shape, num=num, unpack=unpack)
    isa.tcgen05_wait_st()


@seam.traced
def issue(slot, shared, steps, ctas):
    """One elected lane issues some of the steps below, by their names."""
    source = dtypes.Uint64(encode_address(shared.iterator.address)) + ROWS
    more = dtypes.Uint64(encode_address(shared.iterator.address + 4 * WORDS)) + ROWS

    def copy():
        isa.tcgen05_cp(slot.load(), source, shape="128x256b", cta_group=ctas)

    def shift():
        for lane in (0, 32, 64, 96):
            isa.tcgen05_shift(slot.load() + (lane << 16), cta_group=ctas)
        isa.tcgen05_cp(slot.load() + (31 << 16), more, shape="4x256b", cta_group=ctas)

    def multiply():
        word = Tcgen05Instruction(d=1, a=1, b=1, n=16 * ctas, m=128 * ctas).encode()
        isa.tcgen05_mma_ts(slot.load() + 32, slot.load(), more, word, False, cta_group=ctas, kind="f16")

    def each():
        for name in steps.split():
            {"copy": copy, "shift": shift, "multiply": multiply}[name]()

    seam.current().when(isa.elect_sync(), each)


def kernel_of(ctas, steps, later, first, columns):
    """steps, later: what the matrix unit does, with one wait between the two. Gives `columns` of each lane from column
    `first` on."""

    @cute.cluster_shape(ctas, 1)
    @cuda.jit
    def kernel(data, out):
        tidx, _, _ = arch.thread_idx()
        warp, rank = arch.make_warp_uniform(arch.warp_idx()), arch.block_idx_in_cluster()
        smem = utils.SmemAllocator()
        shared = smem.allocate_tensor(cute.Int32, cute.make_layout(2 * WORDS), 1024)
        slot = smem.allocate_array(cute.Int32, 1)
        done = MbarrierArray(smem.allocate_array(cute.Int64, 2), 2, (PipelineOp.TCGen05Mma, ONE))
        fragment = cute.make_rmem_tensor(columns, cute.Uint32)
        pipeline.pipeline_init_arrive((ctas, 1))
        pipeline.pipeline_init_wait((ctas, 1))
        if warp == 0:
            allocate(slot, ctas)  # both CTAs have started
        arch.sync_threads()
        after()
        for w in range(tidx, 2 * WORDS, 128):
            shared[w] = data[rank, w]
        arch.fence_proxy("async.shared", space="cta")
        before()
        arch.cluster_arrive()
        arch.cluster_wait()
        after()
        if warp == 0 and rank == 0:
            issue(slot, shared, steps, ctas)
            done.arrive(0, (1 << ctas) - 1 if ctas > 1 else None, ctas)
        done.wait(0, 0)
        after()
        if warp == 0 and rank == 0:
            issue(slot, shared, later, ctas)
            done.arrive(1, (1 << ctas) - 1 if ctas > 1 else None, ctas)
        done.wait(1, 0)
        after()
        load(fragment, quarter(slot, warp) + first, "32x32b", columns, False)
        for j in cute.range_constexpr(columns):
            out[rank, tidx, j] = fragment[j]
        before()
        arch.cluster_arrive()
        arch.cluster_wait()
        if warp == 0:
            free(slot, ctas)

    return kernel


@pytest.mark.parametrize("ctas", [1, 2])
def test_what_was_copied_is_shifted_and_its_last_lanes_renewed(run, rng, ctas):
    rows = rng.integers(0, 256, (ctas, 128, 32)).astype(np.uint8)
    more = rng.integers(0, 256, (ctas, 128, 32)).astype(np.uint8)
    data = np.stack([np.concatenate([placed(r), placed(x)]) for r, x in zip(rows, more)])
    out = np.zeros((ctas, 128, 8), np.uint32)

    def check():
        want = np.roll(rows, -1, axis=1)
        want[:, 31::32] = more[:, :4]
        np.testing.assert_array_equal(out, want.view(np.uint32))

    kernel = kernel_of(ctas, "copy", "shift", 0, 8)
    run(kernel, ctas, 128, [data, out], outputs=[out], check=check, arch="sm_100a")


@pytest.mark.parametrize("ctas", [1, 2])
def test_an_operand_that_was_copied_is_multiplied_without_a_wait(run, rng, ctas):
    a = rng.standard_normal((ctas, 128, 16)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((ctas, 128, 16)).astype(ml_dtypes.bfloat16)
    data = np.stack([np.concatenate([placed(x), placed(y)]) for x, y in zip(a, b)])
    out = np.zeros((ctas, 128, 16 * ctas), np.uint32)

    def check():
        columns = b[:, :16].reshape(16 * ctas, 16).astype(np.float64)
        np.testing.assert_allclose(out.view(np.float32), a.astype(np.float64) @ columns.T, rtol=1e-5, atol=1e-5)

    kernel = kernel_of(ctas, "copy multiply", "", 32, 16 * ctas)
    run(kernel, ctas, 128, [data, out], outputs=[out], check=check, arch="sm_100a")


def moved(shape, num, packed):
    """A kernel that stores numbers in one shape, and loads them as 16-lane blocks beside, and lane by lane."""
    count, columns = REGISTERS[shape] * num, 16

    @cuda.jit
    def kernel(data, back, out):
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        smem = utils.SmemAllocator()
        slot = smem.allocate_array(cute.Int32, 1)
        fragment = cute.make_rmem_tensor(count, cute.Uint32)
        whole = cute.make_rmem_tensor(columns, cute.Uint32)
        if warp == 0:
            allocate(slot, 1)
        arch.sync_threads()
        after()
        for j in cute.range_constexpr(columns):
            whole[j] = cute.Uint32(0)
        store(whole, quarter(slot, warp), "32x32b", columns, False)
        for j in cute.range_constexpr(count):
            fragment[j] = cute.Uint32(data[tidx, j])
        store(fragment, quarter(slot, warp), shape, num, packed)
        load(fragment, quarter(slot, warp), shape, num, packed)
        for j in cute.range_constexpr(count):
            back[tidx, j] = fragment[j]
        load(whole, quarter(slot, warp), "32x32b", columns, False)
        for j in cute.range_constexpr(columns):
            out[tidx, j] = whole[j]
        before()
        arch.sync_threads()
        if warp == 0:
            free(slot, 1)

    return kernel


@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
@pytest.mark.parametrize("shape, num", [("16x64b", 4), ("16x128b", 2), ("16x256b", 1), ("16x32bx2", 4), ("32x32b", 8)])
def test_registers_come_back_as_they_were_stored(run, rng, shape, num, packed):
    count = REGISTERS[shape] * num
    data = rng.integers(1, 1 << 31, (128, count), dtype=np.int32)
    back, out = np.zeros((128, count), np.uint32), np.zeros((128, 16), np.uint32)

    def check():
        np.testing.assert_array_equal(back, data)
        halves = np.stack([data & 0xFFFF, data >> 16], axis=-1) if packed else data
        for warp in range(4):  # the same numbers, in the warp's own lanes; `test_tensor_copies` says where
            mine = slice(32 * warp, 32 * warp + 32)
            got = out[mine]
            np.testing.assert_array_equal(np.sort(got[got != 0]), np.sort(halves[mine][halves[mine] != 0]))

    run(moved(shape, num, packed), 1, 128, [data, back, out], outputs=[back, out], check=check, arch="sm_100a")


def test_a_warp_of_a_block_of_two_dimensions_reaches_its_own_lanes(run):
    @cuda.jit
    def kernel(out):
        lane, warp, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        slot = smem.allocate_array(cute.Int32, 1)
        fragment = cute.make_rmem_tensor(1, cute.Uint32)
        if warp == 0:
            allocate(slot, 1)
        arch.sync_threads()
        after()
        fragment[0] = cute.Uint32(100 * warp + lane)
        store(fragment, quarter(slot, warp), "32x32b", 1, False)
        load(fragment, quarter(slot, warp), "32x32b", 1, False)
        out[warp, lane] = fragment[0]
        before()
        arch.sync_threads()
        if warp == 0:
            free(slot, 1)

    out = np.zeros((4, 32), np.uint32)

    def check():
        np.testing.assert_array_equal(out, 100 * np.arange(4)[:, None] + np.arange(32))

    run(kernel, 1, (32, 4), [out], outputs=[out], check=check, arch="sm_100a")
