# SPDX-License-Identifier: Apache-2.0
"""What cannot work with the cluster or the block of a launch is refused where that is known: with the arithmetic."""

import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup, MbarrierArray, NamedBarrier, PipelineOp

ONE = CooperativeGroup(Agent.Thread)


def group(size):
    return CooperativeGroup(Agent.Thread, size)


def creating(kind, **given):
    """A kernel that makes one pipeline; groups of size 1 where none is given."""
    named = {"producer_group": ONE, "consumer_group": ONE} | given
    create = getattr(pipeline, f"Pipeline{kind}").create

    def make(storage):
        return create(num_stages=2, barrier_storage=storage, **named)

    make.__cute_traced__ = True

    @cuda.jit
    def kernel():
        make(utils.SmemAllocator().allocate_array(cute.Int64, 4))

    return kernel


def using(body):
    body.__cute_traced__ = True

    @cuda.jit
    def kernel():
        body(utils.SmemAllocator().allocate_array(cute.Int64, 4))

    return kernel


def commit(mask):
    return lambda storage: MbarrierArray(storage, 2, (PipelineOp.TCGen05Mma, ONE)).arrive(0, mask, 1)


def signal(rank):
    return lambda storage: MbarrierArray(storage, 2, (PipelineOp.AsyncThread, ONE)).arrive(0, rank)


def turns(storage, members):
    make = pipeline.PipelineOrder.create
    return make(depth=1, length=3, group_id=0, producer_group=members, barrier_storage=storage)


def layout(v, m, n):
    return cute.make_layout((v, m, n, 1))


CLUSTER = {  # kernels with clusters of (2, 1)
    "a rank": (
        creating("Async", producer_mask=2),
        "producer_mask 2 is outside the cluster: it is the rank of one CTA, 0",
    ),
    "a consumer's rank": (creating("CpAsync", consumer_mask=7), "0 to 1 (the kernel's clusters have 2 CTAs)"),
    "a signalled rank": (using(signal(3)), "dst_rank 3 is outside the cluster"),
    "a mask": (using(commit(0b1110)), "mask 0xe names CTAs 1, 2, 3, but the kernel's clusters have 2: 1 to 0x3"),
    "a layout": (
        creating("TmaAsync", tx_count=16, consumer_group=group(3), cta_layout_vmnk=layout(1, 2, 2)),
        "has 4 CTAs, but the kernel's clusters have 2 * 1 * 1 = 2: its masks would name CTAs outside the cluster",
    ),
    "a smaller layout": (
        creating("TmaUmma", tx_count=16, cta_layout_vmnk=layout(1, 1, 1)),
        "has 1 CTAs, but the kernel's clusters have 2 * 1 * 1 = 2",
    ),
    "an init": (using(lambda s: pipeline.pipeline_init_arrive((4, 1))), "cluster_shape_mn (4, 1) has 4 CTAs"),
}
BLOCK = {  # blocks of 64 threads
    "threads": (
        creating("Async", consumer_group=group(65)),
        "consumer_group.size 65 arrivals never occur: a block has 64",
    ),
    "copying threads": (creating("CpAsync", producer_group=group(128)), "producer_group.size 128 arrivals never occur"),
    "warps": (
        creating("TmaAsync", tx_count=16, consumer_group=group(3)),
        "consumer_group.size 3 arrivals never occur: a block has 64 / 32 = 2 warps",
    ),
    "warpgroups": (
        creating("TmaAsync", tx_count=16, consumer_group=group(1), threads_per_arrival=128),
        "a block has 64 / 128 = 0 warpgroups",
    ),
    "results": (creating("UmmaAsync", consumer_group=group(128)), "consumer_group.size 128 arrivals never occur"),
    "operands": (creating("AsyncUmma", producer_group=group(96)), "producer_group.size 96 arrivals never occur"),
    "followers": (creating("ClcFetchAsync", consumer_group=group(96)), "consumer_group.size 96 arrivals never occur"),
    "turns": (
        using(lambda s: turns(s, group(32))),
        "PipelineOrder.create: producer_group.size 32 * 3 groups = 96 arrivals never occur: a block has 64 threads",
    ),
    "a named barrier": (using(lambda s: NamedBarrier(1, 128).sync()), "num_threads 128 never arrive: a block has 64"),
    "a seventeenth barrier": (using(lambda s: NamedBarrier(16, 64).sync()), "barrier_id 16 must be 0 to 15"),
    "no stages": (using(lambda s: MbarrierArray(s, 0, (PipelineOp.AsyncThread, ONE))), "num_stages 0 must be"),
}


@pytest.mark.parametrize("case", CLUSTER)
def test_ranks_and_masks_outside_the_cluster(case):
    kernel, says = CLUSTER[case]
    for refuse in (
        lambda: cute.simulate(kernel, cluster=(2, 1), arch="sm_100a")[(2, 1), 128](),
        lambda: cute.compile(cute.cluster_shape(2, 1)(kernel), (), arch="sm_100a"),
    ):
        with pytest.raises(cute.CuteError) as e:
            refuse()
        assert says in str(e.value)


@pytest.mark.parametrize("case", BLOCK)
def test_more_arrivals_than_the_block_has(case):
    kernel, says = BLOCK[case]
    for refuse in (
        lambda: cute.simulate(kernel, arch="sm_100a")[1, 64](),
        lambda: cute.compile(cuda.jit(kernel.py_func, launch_bounds=(64, 2)), (), arch="sm_100a"),
    ):
        with pytest.raises(cute.CuteError) as e:
            refuse()
        assert says in str(e.value)


@pytest.mark.filterwarnings("ignore:.*is made and never used")
def test_what_is_not_known_is_not_refused():
    cute.compile(creating("Async", producer_mask=3, consumer_group=group(1024)), ())
    given = {"producer_mask": 3, "consumer_mask": 0, "consumer_group": group(512)}
    cute.simulate(creating("Async", **given), cluster=(4, 1))[(4, 1), 128]()
