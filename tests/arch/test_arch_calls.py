# SPDX-License-Identifier: Apache-2.0
"""Every function of `arch`, called as its documentation says: in the simulator and through the assembler."""

from __future__ import annotations

import functools
import inspect
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced

F32, U32, U64, I32 = cute.Float32, cute.Uint32, cute.Uint64, cute.Int32
HALF = 0x3C003C00  # two ones, as f16
PAIR = (1.0, 2.0)


def places(memory):
    """What the calls work on: words of global and shared memory, barriers."""
    mine = memory.iterator + 128 * arch.block_idx()[0]
    ints = cute.recast_ptr(mine, dtype=U32)
    bars = arch.alloc_smem(cute.Int64, 4)
    words = arch.alloc_smem(U32, 64, 16)
    lane = arch.lane_idx()
    first = arch.elect_one()
    backend = cute.seam.current()

    def start():
        for i in range(3):
            arch.mbarrier_init(bars + i, 32 if i == 0 else 1)

    backend.when(first, start)
    (words + lane).store(U32(1))
    (words + (lane + 32)).store(U32(1))
    arch.mbarrier_init_fence()
    arch.sync_threads()
    once = lambda call: backend.when(first, call)  # noqa: E731
    return SimpleNamespace(
        g=ints + 64, h=mine + 65, f=mine + lane, s=words + lane, words=words, bars=bars,
        answer=arch.alloc_smem(U32, 4, 16), lane=lane, once=once, n=U32(5),
    )  # fmt: skip


def four(value):
    return tuple(cute.Int8(value) for _ in range(4))


def bytes_of(e):
    t = cute.make_rmem_tensor(4, cute.Int8)
    t.fill(3)
    return t.load()


def words_of(e):
    t = cute.make_rmem_tensor(1, U32)
    t.fill(0x76543210)
    return t.load()


def floats_of(e):
    t = cute.make_rmem_tensor(2, F32)
    t.fill(1.5)
    return t.load()


def done(*_):
    """Nothing: what a branch gives."""


def each(names, call):
    """`call(f, e)` of each of these functions."""
    return {name: functools.partial(call, getattr(arch, name)) for name in names}


INDICES = [
    "activemask", "aggr_smem_size", "block_dim", "block_idx", "block_idx_in_cluster", "block_in_cluster_dim",
    "block_in_cluster_idx", "clock", "clock64", "cluster_dim", "cluster_idx", "cluster_size", "dynamic_smem_size",
    "elect_one", "get_dyn_smem_size", "globaltimer", "globaltimer_lo", "grid_dim", "gridid", "lane_idx",
    "lanemask_eq", "lanemask_ge", "lanemask_gt", "lanemask_le", "lanemask_lt", "nsmid", "nwarpid", "physical_warp_id",
    "smid", "thread_idx", "total_smem_size", "warp_idx", "warpsize",
]  # fmt: skip
FENCES = [
    "cluster_arrive", "cluster_wait", "cp_async_bulk_commit_group", "cp_async_commit_group", "fence_acq_rel_cluster",
    "fence_acq_rel_cta", "fence_acq_rel_gpu", "fence_acq_rel_sys", "fence_view_async_shared",
    "griddepcontrol_launch_dependents", "griddepcontrol_wait", "mbarrier_init_fence", "sync_threads", "sync_warp",
]  # fmt: skip
ATOMICS = [f"atomic_{op}" for op in ("add", "and", "exch", "max", "min", "or", "xor")]

HOPPER = {
    **each((*INDICES, *FENCES), lambda f, e: f()),
    **each(ATOMICS, lambda f, e: f(e.g, e.n, sem="acq_rel", scope="sys")),
    "atomic_cas": lambda e: arch.atomic_cas(e.g, cmp=e.n, val=3, sem="relaxed", scope="cta"),
    "atomic_fmax": lambda e: arch.atomic_fmax(e.h, 1.0, sign_bit=False, scope="gpu"),
    "atomic_fmin": lambda e: arch.atomic_fmin(e.h, F32(1.0), sign_bit=None),
    "atomic_max_float32": lambda e: arch.atomic_max_float32(e.h, F32(1.0), positive_only=False),
    "red": lambda e: (arch.red(e.g, e.n, op="umax", dtype=U32, sem="relaxed", scope="gpu"),
                      arch.red(e.h, 1.0, op="add", dtype="f32")),
    "load": lambda e: (arch.load(e.f, F32, sem="acquire", scope="gpu"),
                       arch.load(e.f, F32, cop="cg"), arch.load(e.s, U32, ss="cta"),
                       arch.load(e.f, F32, level1_eviction_priority="evict_first", level_prefetch_size="size_128b")),
    "store": lambda e: (arch.store(e.f, 1.0, cop="cs"), arch.store(e.s, e.n, ss="cta"),
                        arch.store(e.f, F32(2.0), sem="release", scope="sys")),
    "store_async_dsmem": lambda e: e.once(lambda: done(
        arch.mbarrier_arrive_and_expect_tx(e.bars + 2, 4),
        arch.store_async_dsmem(e.answer, e.n, e.bars + 2, peer_cta_rank=arch.block_idx_in_cluster()),
        arch.mbarrier_wait(e.bars + 2, 0))),
    "alloc_smem": lambda e: arch.alloc_smem(F32, 32, alignment=16),
    "get_dyn_smem": lambda e: arch.get_dyn_smem(F32, alignment=128),
    "barrier": lambda e: arch.barrier(barrier_id=1, number_of_threads=32),
    "barrier_arrive": lambda e: (arch.barrier_arrive(barrier_id=2, number_of_threads=64, aligned=False),
                                 arch.barrier(barrier_id=2, number_of_threads=64)),
    "cluster_arrive_relaxed": lambda e: (arch.cluster_arrive_relaxed(aligned=False), arch.cluster_wait()),
    "fence_proxy": lambda e: [arch.fence_proxy(*k) for k in (
        ("async",), ("async.global",), ("async.shared", "cta"), ("async.shared", "cluster"), ("alias",))],
    "mbarrier_init": lambda e: e.once(lambda: arch.mbarrier_init(e.bars + 3, cnt=1)),
    "mbarrier_arrive": lambda e: arch.mbarrier_arrive(e.bars),
    "mbarrier_wait": lambda e: arch.mbarrier_wait(mbar_ptr=e.bars, phase=0),
    "mbarrier_try_wait": lambda e: arch.mbarrier_try_wait(e.bars, 0),
    "mbarrier_test_wait": lambda e: arch.mbarrier_test_wait(e.bars, 0),
    "mbarrier_conditional_try_wait": lambda e: arch.mbarrier_conditional_try_wait(e.lane >= 0, e.bars, 0),
    "mbarrier_expect_tx": lambda e: e.once(lambda: done(
        arch.mbarrier_expect_tx(e.bars + 1, 0), arch.mbarrier_expect_tx(e.bars + 1, 0, arch.block_idx_in_cluster()))),
    "mbarrier_arrive_and_expect_tx": lambda e: e.once(lambda: done(
        arch.mbarrier_arrive_and_expect_tx(e.bars + 1, 0), arch.mbarrier_wait(e.bars + 1, 0),
        arch.mbarrier_arrive_and_expect_tx(e.bars + 1, bytes=0, relaxed=True, scope="cluster"),
        arch.mbarrier_wait(e.bars + 1, 1),
        arch.mbarrier_arrive_and_expect_tx(e.bars + 1, 0, peer_cta_rank_in_cluster=arch.block_idx_in_cluster()))),
    "cp_async_mbarrier_arrive_noinc": lambda e: arch.cp_async_mbarrier_arrive_noinc(e.bars),
    "cp_async_wait_group": lambda e: arch.cp_async_wait_group(0),
    "cp_async_bulk_wait_group": lambda e: (arch.cp_async_bulk_wait_group(0, read=True),
                                           arch.cp_async_bulk_wait_group(group=0)),
    "createpolicy_fractional": lambda e: arch.createpolicy_fractional("evict_first", 0.5),
    "createpolicy_range": lambda e: arch.createpolicy_range(e.g, 64, 128, "evict_last"),
    "createpolicy_cvt": lambda e: arch.createpolicy_cvt(0),
    "make_warp_uniform": lambda e: arch.make_warp_uniform(e.n),
    "shuffle_sync": lambda e: arch.shuffle_sync(e.n, 1, mask=-1, mask_and_clamp=31),
    "shuffle_sync_bfly": lambda e: arch.shuffle_sync_bfly(F32(1.0), offset=1, mask=-1, mask_and_clamp=31),
    "shuffle_sync_down": lambda e: arch.shuffle_sync_down(e.n, 1),
    "shuffle_sync_up": lambda e: arch.shuffle_sync_up(e.n, offset=1),
    "shuffle_sync_op": lambda e: arch.shuffle_sync_op(e.n, 3, 0xFFFFFFFF, 31, "bfly"),
    "vote_all_sync": lambda e: arch.vote_all_sync(e.lane < 10),
    "vote_any_sync": lambda e: arch.vote_any_sync(e.lane < 10),
    "vote_uni_sync": lambda e: arch.vote_uni_sync(e.lane < 10),
    "vote_ballot_sync": lambda e: arch.vote_ballot_sync(pred=e.lane < 10, mask=0xFFFFFFFF),
    "match_sync": lambda e: (arch.match_sync(0xFFFFFFFF, e.n), arch.match_sync(-1, e.n, kind="all"),
                             arch.match_sync(-1, U64(7), "any", 64), arch.match_sync(-1, U64(7), "all", 64)),
    "warp_redux_sync": lambda e: [arch.warp_redux_sync(e.n, kind=k) for k in (
        "add", "and", "max", "min", "or", "xor", "umin", "umax")],
    "warp_reduction": lambda e: arch.warp_reduction(e.lane, lambda a, b: a + b, threads_in_group=8),
    "warp_reduction_max": lambda e: (arch.warp_reduction_max(F32(1.0), threads_in_group=4),
                                     arch.warp_reduction_max(e.lane)),
    "warp_reduction_sum": lambda e: arch.warp_reduction_sum(F32(1.0)),
    **each(("popc", "clz", "brev", "bfind"), lambda f, e: (f(e.n), f(U64(7), width=64))),
    "bfe": lambda e: (arch.bfe(e.n, start=1, length=2), arch.bfe(U64(7), 1, 2, width=64)),
    "bfi": lambda e: (arch.bfi(e.n, 3, start=1, length=2), arch.bfi(U64(7), U64(1), 1, 2, 64)),
    "mul_hi": lambda e: (arch.mul_hi(e.n, e.n), arch.mul_hi(U64(7), U64(9), width=64)),
    "mul_wide": lambda e: arch.mul_wide(e.n, e.n),
    "mul24": lambda e: arch.mul24(e.n, e.n, hi=True),
    "mad24": lambda e: arch.mad24(e.n, e.n, 1, hi=False),
    **each(("add_cc", "addc", "sub_cc", "subc", "add_sat_int", "sub_sat_int"), lambda f, e: f(e.n, 1)),
    "mad_cc": lambda e: arch.mad_cc(e.n, 2, 1),
    "madc": lambda e: arch.madc(e.n, 2, 1),
    "lop3": lambda e: arch.lop3(e.n, 1, 2, lut=0xE8),
    "prmt": lambda e: arch.prmt(e.n, 1, 0x3210),
    "shf": lambda e: [arch.shf(e.n, 1, 3, kind=k) for k in ("l", "r", "clamp_left", "clamp_right")],
    "fmax": lambda e: arch.fmax(1.0, F32(2.0), nan=True),
    "fmin": lambda e: arch.fmin(F32(1.0), 2.0, abs=True, ftz=True),
    "rcp_approx": lambda e: arch.rcp_approx(F32(2.0)),
    "exp2": lambda e: arch.exp2(F32(2.0)),
    "fma_f16": lambda e: arch.fma_f16(cute.Float16(1), cute.Float16(2), cute.Float16(3)),
    "fma_bf16": lambda e: arch.fma_bf16(cute.BFloat16(1), cute.BFloat16(2), cute.BFloat16(3)),
    **each([f"{op}_packed_{t}x2" for op in ("add", "sub") for t in ("f16", "bf16")], lambda f, e: f(HALF, HALF)),
    **each(("fma_packed_f16x2", "fma_packed_bf16x2"), lambda f, e: f(HALF, HALF, HALF)),
    **each(("exp2_packed_f16x2", "exp2_packed_bf16x2"), lambda f, e: f(HALF)),
    "cvt_f32_tf32": lambda e: arch.cvt_f32_tf32(F32(1.5)),
    "cvt_f32x2_bf16x2": lambda e: arch.cvt_f32x2_bf16x2(floats_of(e)),
    "cvt_i8_bf16": lambda e: arch.cvt_i8_bf16(cute.Int8(3)),
    "cvt_i8x2_to_bf16x2": lambda e: arch.cvt_i8x2_to_bf16x2(four(3)[:2]),
    "cvt_i8x2_to_f32x2": lambda e: arch.cvt_i8x2_to_f32x2(four(3)[:2]),
    "cvt_i8x4_to_bf16x4": lambda e: arch.cvt_i8x4_to_bf16x4(four(3)),
    "cvt_i8x4_to_f32x4": lambda e: arch.cvt_i8x4_to_f32x4(four(3)),
    "cvt_i8_bf16_intrinsic": lambda e: arch.cvt_i8_bf16_intrinsic(bytes_of(e), 4),
    "cvt_i4_bf16_intrinsic": lambda e: arch.cvt_i4_bf16_intrinsic(words_of(e), 8, with_shuffle=True),
    "cvt_f4e2m1_f16_intrinsic": lambda e: arch.cvt_f4e2m1_f16_intrinsic(words_of(e), 8),
    "map_dsmem_ptr": lambda e: arch.map_dsmem_ptr(e.bars, peer_cta_rank=0),
    "nanosleep": lambda e: arch.nanosleep(sleep_time=20),
    "sext_unpacked_i4_i8_intrinsic": lambda e: arch.sext_unpacked_i4_i8_intrinsic(bytes_of(e), 4),
    **each(("setmaxregister_increase", "warpgroup_reg_alloc"), lambda f, e: f(240)),
    **each(("setmaxregister_decrease", "warpgroup_reg_dealloc"), lambda f, e: f(24)),
    "get_max_tmem_alloc_cols": lambda e: arch.get_max_tmem_alloc_cols("sm_100"),
    "get_min_tmem_alloc_cols": lambda e: arch.get_min_tmem_alloc_cols("sm_103"),
}  # fmt: skip


def tensor_memory(e):
    arch.alloc_tmem(64, e.words, is_two_cta=False)
    arch.relinquish_tmem_alloc_permit()
    arch.sync_warp()
    p = arch.retrieve_tmem_ptr(F32, alignment=16, ptr_to_buffer_holding_addr=e.words)
    arch.fence_view_async_tmem_load()
    arch.fence_view_async_tmem_store()
    arch.tcgen05_fence_before_thread_sync()
    arch.tcgen05_fence_after_thread_sync()
    arch.dealloc_tmem(p, 64, is_two_cta=None)


def cancelled(e):
    def ask():
        arch.mbarrier_arrive_and_expect_tx(e.bars + 2, 16)
        arch.issue_clc_query(e.bars + 2, e.answer, multicast=False)
        arch.mbarrier_wait(e.bars + 2, 0)
        arch.clc_response(e.answer)

    e.once(ask)


BLACKWELL = {
    **dict.fromkeys(
        ("alloc_tmem", "relinquish_tmem_alloc_permit", "retrieve_tmem_ptr", "fence_view_async_tmem_load",
         "fence_view_async_tmem_store", "tcgen05_fence_before_thread_sync", "tcgen05_fence_after_thread_sync",
         "dealloc_tmem"), tensor_memory),
    **dict.fromkeys(("issue_clc_query", "clc_response"), cancelled),
    **each([f"{op}_packed_f32x2" for op in ("add", "sub", "mul")],
           lambda f, e: (f(PAIR, PAIR), f(PAIR, PAIR, rnd="rz", ftz=True))),
    "fma_packed_f32x2": lambda e: (arch.fma_packed_f32x2(PAIR, (F32(1.0), 2.0), PAIR),
                                   arch.fma_packed_f32x2(PAIR, PAIR, PAIR, rnd="rm")),
    "warp_redux_sync": lambda e: [arch.warp_redux_sync(F32(1.5), k, abs=a, nan=n)
                                  for k in ("fmax", "fmin", "max", "min") for a in (None, True) for n in (None, True)],
}  # fmt: skip
HALVES = [(op, t) for op in ("add", "sub") for t in ("f16", "bf16")]
MIXED = {
    **each([f"{op}_packed_f32x2_{t}x2_f32x2" for op, t in HALVES], lambda f, e: f(HALF, PAIR)),
    **each([f"{op}_packed_{t}x2_f32x2_f32x2" for op, t in HALVES], lambda f, e: f(PAIR, PAIR)),
    **each([f"fma_packed_f32x2_{t}x2_f32x2_f32x2" for t in ("f16", "bf16")], lambda f, e: f(HALF, PAIR, PAIR)),
}
ALONE = ("setmaxregister_increase", "setmaxregister_decrease", "warpgroup_reg_alloc", "warpgroup_reg_dealloc",
         "mbarrier_arrive", "mbarrier_wait", "cp_async_mbarrier_arrive_noinc", "cluster_arrive", "cluster_wait",
         "barrier_arrive")  # fmt: skip
"""What needs company, or a warpgroup: see `together`."""


def together(e):
    arch.mbarrier_arrive(e.bars)
    arch.mbarrier_wait(e.bars, 0)
    arch.cp_async_mbarrier_arrive_noinc(e.bars)
    arch.mbarrier_wait(mbar_ptr=e.bars, phase=1)
    arch.cluster_arrive(aligned=True)
    arch.cluster_wait()
    arch.cluster_arrive(aligned=False)
    arch.cluster_wait()


def kernel_of(calls):
    @traced
    def body(memory):
        e = places(memory)
        for call in dict.fromkeys(calls):
            call(e)

    @cuda.jit
    def kernel(memory):
        body(memory)

    return kernel


@cuda.jit(launch_bounds=(256, 1))
def warpgroups(memory):
    warp = arch.warp_idx()
    if warp < 4:
        arch.setmaxregister_decrease(24)
        arch.warpgroup_reg_dealloc(24)
    else:
        arch.setmaxregister_increase(240)
        arch.warpgroup_reg_alloc(240)
    if warp == 0:
        arch.barrier_arrive(barrier_id=1, number_of_threads=64)
    if warp == 1:
        arch.barrier(barrier_id=1, number_of_threads=64)


PLAIN = [HOPPER[n] for n in HOPPER if n not in ALONE]
GROUPS = {
    "words": (kernel_of(PLAIN[: len(PLAIN) // 2]), "sm_90a", 32),
    "more words": (kernel_of(PLAIN[len(PLAIN) // 2 :]), "sm_90a", 32),
    "together": (kernel_of([together]), "sm_90a", 32),
    "warpgroups": (warpgroups, "sm_90a", 256),
    "blackwell": (kernel_of(BLACKWELL.values()), "sm_100a", 32),
}


@pytest.mark.parametrize("group", GROUPS)
def test_every_function_can_be_called(run, group):
    kernel, target, threads = GROUPS[group]
    memory = np.ones(256, np.float32)
    args = [lambda place: from_dlpack(place(memory), 16)]
    run(kernel, 2, threads, args, inouts=[memory], arch=target, cluster=2)  # st.async is for clusters


def test_functions_of_sm_107_can_be_called():
    """In the simulator: `cute.compile` has no sm_107 yet (tests/isa/test_assembles.py assembles the rows)."""
    cute.simulate(kernel_of(MIXED.values()), arch="sm_107f")[1, 32](from_dlpack(np.ones(256, np.float32), 16))


def test_no_function_is_left_out():
    functions = {n for n in arch.__all__ if inspect.isroutine(getattr(arch, n)) or callable(getattr(arch, n))}
    assert functions == {*HOPPER, *BLACKWELL, *MIXED, "inline_ptx"}  # the last in test_inline_ptx.py
