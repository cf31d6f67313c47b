# SPDX-License-Identifier: Apache-2.0
"""How many arrivals a CooperativeGroup is, of each agent and in each pipeline."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, seam, utils
from numba_cute.pipeline import Agent, CooperativeGroup, MbarrierArray, PipelineOp

ONE, WARP = CooperativeGroup(Agent.Thread), CooperativeGroup(Agent.Warp)
AGENTS = {  # of blocks of 64 threads, in clusters of 2: (group, the threads whose arrivals complete a phase)
    "threads": (CooperativeGroup(Agent.Thread, 40), 40),
    "a warp": (WARP, 32),
    "two warps": (CooperativeGroup(Agent.Warp, 2), 64),
    "the block": (CooperativeGroup(Agent.ThreadBlock), 64),
    "two blocks": (CooperativeGroup(Agent.ThreadBlock, 2), 128),
    "the cluster": (CooperativeGroup(Agent.ThreadBlockCluster), 128),
}


def arrive_kernel(group, threads):
    """At CTA 0's barriers `threads` threads arrive, and one less; out: whether each is complete."""

    @cute.cluster_shape(2)
    @cuda.jit
    def kernel(out):
        tidx, _, _ = arch.thread_idx()
        rank = arch.block_idx_in_cluster()
        bars = MbarrierArray(utils.SmemAllocator().allocate_array(cute.Int64, 2), 2, (PipelineOp.AsyncThread, group))
        pipeline.pipeline_init_arrive((2, 1))
        pipeline.pipeline_init_wait((2, 1))
        if 64 * rank + tidx < threads:
            bars.arrive(0, 0)
        if 64 * rank + tidx < threads - 1:
            bars.arrive(1, 0)
        arch.cluster_arrive()
        arch.cluster_wait()
        if rank == 0 and tidx == 0:
            out[0] = 1 if bars.try_wait(0, 0) else 0
            out[1] = 1 if bars.try_wait(1, 0) else 0

    return kernel


@pytest.mark.parametrize("agent", AGENTS)
def test_a_phase_is_complete_when_every_thread_of_a_group_has_arrived(run, agent):
    out = np.zeros(2, np.int32)

    def check():
        assert out.tolist() == [1, 0]

    run(arrive_kernel(*AGENTS[agent]), 2, 64, [out], outputs=[out], check=check)


def empties(kind, cluster=1, size_of=None, **given):
    """A kernel that makes a pipeline and tells how many arrivals empty a stage. size_of: its consumers, of a run-time
    size."""
    create, sides = getattr(pipeline, f"Pipeline{kind}").create, {"producer_group": ONE} | given

    @seam.traced
    def make(n):
        more = {} if size_of is None else {"consumer_group": size_of(n)}
        return create(num_stages=1, **sides, **more)

    @cute.cluster_shape(cluster)
    @cuda.jit(launch_bounds=256)
    def kernel(out, n):
        size = make(n).sync_object_empty.cg.size
        if arch.thread_idx()[0] == 0 and arch.block_idx()[0] == 0:
            out[0] = size

    return kernel


def layout(v, m, n):
    return cute.make_layout((v, m, n, 1))


def initialised(ptx):
    """The arrival counts that a kernel's PTX gives its barriers, where they are constants."""
    constants = dict(re.findall(r"mov\.\w+\s+(%\w+), (\d+);", ptx))
    return [int(constants[r]) for r in re.findall(r"mbarrier\.init\S+ \[%\w+\], (%\w+);", ptx)]


WARPS, THREADS = CooperativeGroup(Agent.Warp, 2), CooperativeGroup(Agent.Thread, 64)
COUNTED = [  # (pipeline, its cluster, mcast_mode_mn, the consumers of a CTA, arrivals)
    ("TmaAsync", (1, 1, 1), (1, 1), WARPS, 2),
    ("TmaAsync", (1, 1, 1), (1, 1), THREADS, 2),
    ("TmaAsync", (1, 2, 2), (1, 1), WARPS, 2 * 3),
    ("TmaAsync", (1, 2, 4), (1, 0), WARPS, 2 * 4),
    ("TmaAsync", (1, 2, 4), (0, 1), THREADS, 2 * 2),
    ("TmaAsync", (2, 2, 2), (1, 1), WARPS, 2 * 3),
    ("TmaUmma", (1, 1, 1), (1, 1), WARP, 1),
    ("TmaUmma", (1, 2, 4), (1, 1), WARP, 5),
    ("TmaUmma", (2, 1, 4), (1, 0), WARP, 4),
    ("TmaUmma", (2, 2, 2), (0, 1), ONE, 2),
    ("TmaMultiConsumersAsync", (1, 1, 1), (1, 1), WARPS, 1 + 2),
    ("TmaMultiConsumersAsync", (1, 2, 2), (1, 1), THREADS, 3 + 2 * 3),
    ("TmaMultiConsumersAsync", (2, 1, 2), (1, 0), WARPS, 2 + 2 * 2 * 2),
]


@pytest.mark.parametrize(("kind", "shape", "modes", "group", "want"), COUNTED)
def test_multicast_signaling_counts_the_arrivals_of_the_threads_of_one_cta(kind, shape, modes, group, want):
    sides = {"consumer_group": group}
    if "Multi" in kind:
        sides = {"consumer_group_umma": WARP, "consumer_group_async": group}
    size, arch, out = int(np.prod(shape)), "sm_90a" if kind == "TmaAsync" else "sm_100a", np.zeros(1, np.int32)
    kernel = empties(
        kind, size, tx_count=128, cta_layout_vmnk=layout(*shape), mcast_mode_mn=modes, enable_multicast_signaling=True,
        **sides,
    )  # fmt: skip
    cute.simulate(kernel, arch=arch)[size, 64](out, np.int32(0))
    assert out[0] == want
    assert initialised(cute.compile(kernel, (out, np.int32(0)), arch=arch).ptx) == [1, want]


@pytest.mark.parametrize("agent", [Agent.Thread, Agent.Warp])
def test_a_size_may_be_known_only_at_run_time(agent):
    kernel, out = empties("Async", size_of=lambda n: CooperativeGroup(agent, n)), np.zeros(1, np.int32)
    cute.simulate(kernel)[1, 64](out, np.int32(2))
    assert out[0] == 2
    assert "mbarrier.init" in cute.compile(kernel, (out, np.int32(2))).ptx


REFUSED = {  # blocks of 64 threads: (pipeline, arguments, what is said)
    "too many warps": ("Async", {"consumer_group": CooperativeGroup(Agent.Warp, 3)},
                       "consumer_group.size 3 * 32 (Agent.Warp) = 96 arrivals never occur: a block has 64 threads"),
    "too many blocks": ("CpAsync", {"consumer_group": CooperativeGroup(Agent.ThreadBlock, 2)},
                        "consumer_group.size 2 (Agent.ThreadBlock): the threads of 2 CTAs are waited for: 1 arrive"),
    "a warp that copies": ("TmaAsync", {"tx_count": 128, "producer_group": WARP, "consumer_group": ONE},
                           "producer_group.size 1 * 32 (Agent.Warp) = 32 arrivals never occur: one lane of each warp "
                           "arrives here: CooperativeGroup(Agent.Thread, 1)"),
    "warps that release with one lane": ("TmaAsync", {"tx_count": 128, "consumer_group": WARPS},
                                         "CooperativeGroup(Agent.Thread, 2), or enable_multicast_signaling=True"),
    "a block that releases with one lane": ("TmaAsync", {"tx_count": 128, "consumer_group": AGENTS["the block"][0]},
                                            "CooperativeGroup(Agent.Thread, how many warps)"),
    "a warp that asks": ("ClcFetchAsync", {"producer_group": WARP, "consumer_group": ONE},
                         "producer_group.size 1 * 32 (Agent.Warp) = 32 arrivals never occur"),
    "a warp that multiplies": ("TmaUmma", {"tx_count": 128, "consumer_group": WARP},
                               "consumer_group.size 1 * 32 (Agent.Warp) = 32 must be 1"),
    "a warp whose results": ("UmmaAsync", {"producer_group": WARP, "consumer_group": ONE},
                             "producer_group.size 1 * 32 (Agent.Warp) = 32 must be 1"),
    "readers of results": ("UmmaAsync", {"consumer_group": CooperativeGroup(Agent.Warp, 4)},
                           "consumer_group.size 4 * 32 (Agent.Warp) = 128 arrivals never occur"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_arrivals_that_never_come_are_refused_with_the_arithmetic(case):
    kind, given, says = REFUSED[case]
    kernel, out = empties(kind, **given), np.zeros(1, np.int32)
    bounded = cuda.jit(kernel.py_func, launch_bounds=64)
    for refuse in (
        lambda: cute.simulate(kernel, arch="sm_100a")[1, 64](out, np.int32(0)),
        lambda: cute.compile(bounded, (out, np.int32(0)), arch="sm_100a"),
    ):
        with pytest.raises(cute.CuteError) as e:
            refuse()
        assert says in str(e.value)


def test_a_group_larger_than_a_phase_can_count_is_refused():
    with pytest.raises(cute.CuteError, match=r"size 32768 \* 32 \(Agent.Warp\) = 1048576 arrivals are more than"):
        CooperativeGroup(Agent.Warp, 1 << 15)
