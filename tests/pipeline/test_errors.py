# SPDX-License-Identifier: Apache-2.0
"""A pipeline that cannot work is refused where it is made, with the arithmetic."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import dtypes, pipeline, seam, utils
from numba_cute.pipeline import Agent, CooperativeGroup, MbarrierArray, NamedBarrier, PipelineOp, PipelineTmaStore
from numba_cute.pipeline.initial_sync import cluster_size
from numba_cute.tensor.pointer import AddressSpace, Pointer

ONE, TWO, MANY = (CooperativeGroup(Agent.Thread, n) for n in (1, 2, 64))
TMA = (PipelineOp.TmaLoad, ONE)


def storage(space=AddressSpace.smem, dtype=dtypes.Int64, alignment=8):
    return Pointer(dtype, space, 1024, 0, alignment)


def create(kind, **given):
    arguments = {"num_stages": 2, "producer_group": ONE, "consumer_group": ONE, "barrier_storage": storage()}
    return getattr(pipeline, f"Pipeline{kind}").create(**(arguments | given))


def multi(**given):
    arguments = {"num_stages": 2, "producer_group": ONE, "consumer_group_umma": ONE, "consumer_group_async": ONE}
    arguments |= {"tx_count": 16, "barrier_storage": storage()}
    return pipeline.PipelineTmaMultiConsumersAsync.create(**(arguments | given))


def layout(v, m, n):
    return cute.make_layout((v, m, n, 1))


def recast(op=PipelineOp.Composite):
    """Barriers that are not initialised: there is no kernel."""
    made = object.__new__(MbarrierArray)
    fields = {"barrier_storage": storage(), "num_stages": 2, "agent": (op, ONE), "tx_count": 0, "name": "x"}
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: CooperativeGroup("thread"), "agent 'thread'"),
        (lambda: CooperativeGroup(Agent.Thread, 0), "size 0 must be"),
        (lambda: CooperativeGroup(Agent.Thread, 33, 32), "33 = 1 * 32 + 1"),
        (lambda: MbarrierArray(storage(), 0, TMA, 128), "num_stages 0"),
        (lambda: MbarrierArray(storage(), 2, TMA, 0), "tx_count 0 bytes must be 1 to 1048575"),
        (lambda: MbarrierArray(storage(), 2, TMA, 1 << 20), "tx_count 1048576"),
        (lambda: MbarrierArray(storage(AddressSpace.gmem), 2, TMA, 8), "shared memory"),
        (lambda: MbarrierArray(storage(dtype=dtypes.Int32), 2, TMA, 8), "64-bit words"),
        (lambda: MbarrierArray(storage(alignment=4), 2, TMA, 8), "aligned to 4 bytes"),
        (lambda: MbarrierArray(storage(), 2, PipelineOp.TmaLoad, 8), "pair"),
        (lambda: NamedBarrier(16, 128), "barrier_id 16 must be 0 to 15"),
        (lambda: NamedBarrier(1, 100), "100 = 3 * 32 + 4"),
        (lambda: NamedBarrier(1, 0).arrive(), "num_threads 0"),
        (lambda: pipeline.TmaStoreFence(-1), "num_stages -1"),
        (lambda: PipelineTmaStore.create(num_stages=0, producer_group=ONE), "num_stages 0"),
        (lambda: pipeline.make_pipeline_state("producer", 2), "PipelineUserType"),
        (lambda: pipeline.agent_sync(Agent.Thread), "Agent.Warp, Agent.ThreadBlock"),
        (lambda: cluster_size((4, 8)), "size 32"),
        (lambda: MbarrierArray(storage(), 2, TMA, 100), "tx_count 100 = 6 * 16 + 4 bytes"),
        (lambda: MbarrierArray(storage(), 2, (PipelineOp.TmaStore, ONE)), "has no barrier"),
        (lambda: NamedBarrier(1, 64).arrive_and_drop(), "no count to take a thread from"),
        (lambda: pipeline.TmaStoreFence(2).arrive_and_drop(), "no count of arrivals"),
        (lambda: pipeline.TmaStoreFence(2).get_barrier(), "not a barrier"),
        (lambda: pipeline.TmaStoreFence(2).max(), "no count of arrivals"),
        (lambda: PipelineTmaStore(pipeline.TmaStoreFence(2), 2).consumer_wait(), "the TMA unit reads the stages"),
        (lambda: PipelineTmaStore(pipeline.TmaStoreFence(2), 2).consumer_release(), "producer_acquire waits instead"),
        (lambda: create("Async", producer_mask=16), "producer_mask 16 is outside the cluster: it is the rank of one"),
        (lambda: create("Async", consumer_mask=-1), "0 to 15"),
        (lambda: create("Async", num_stages=0), "num_stages 0 must be a static int of at least 1"),
        (lambda: create("Async", barrier_storage=7), "2 * num_stages = 4 64-bit words"),
        (lambda: create("Async", producer_group=32), "producer_group 32 is not a CooperativeGroup"),
        (lambda: create("CpAsync", producer_mask=1), "cp.async signals only barriers of its own CTA"),
        (lambda: create("TmaAsync", tx_count=24), "24 = 1 * 16 + 8"),
        (lambda: create("TmaAsync", tx_count=16, threads_per_arrival=64), "threads_per_arrival 64"),
        (lambda: create("TmaUmma", tx_count=16, cta_layout_vmnk=layout(2, 2, 3)), "consumer_group.size 1 must be 4"),
        (lambda: create("TmaUmma", tx_count=16, cta_layout_vmnk=layout(4, 1, 1)), "mode V is 4"),
        (lambda: create("AsyncUmma", consumer_group=MANY), "size 64 must be 1"),
        (lambda: create("UmmaAsync", producer_group=MANY), "producer_group.size 64 must be 1"),
        (lambda: create("ClcFetchAsync", tx_count=32), "1 response * 16 bytes"),
        (lambda: create("ClcFetchAsync", consumer_mask=4, cta_layout_vmnk=layout(1, 2, 2)), "0 to 3"),
        (lambda: multi(cta_layout_vmnk=layout(1, 2, 1)), "consumer_group_umma.size 1 must be 2"),
        (lambda: multi(cta_layout_vmnk=layout(1, 2, 1), consumer_group_umma=TWO), "not a multiple of 2"),
        (lambda: multi(consumer_group_umma=MANY), "consumer_group_umma.size 64 must be 1"),
        (lambda: recast().arrive(0), "does not say how to arrive"),
        (lambda: recast(PipelineOp.TCGen05Mma).arrive(0, 1 << 16), "mask 0x10000 must name 1 to 16 CTAs"),
        (lambda: recast(PipelineOp.TCGen05Mma).arrive(0, 1, 3), "cta_group 3"),
    ],
)
def test_wrong_configuration_is_refused(make, says):
    with pytest.raises(seam.CuteError) as e:
        make()
    assert says in str(e.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: p((4, 4), (1, 1, 1)), "is not (m, n, l)"),
        (lambda p: p((4, 0, 1), (1, 1, 1)), "mode below 1"),
        (lambda p: p((4, 4, 1), (2, 1, 2)), "cluster_shape_mnk (2, 1, 2)"),
        (lambda p: p((4, 4, 1), (1, 1, 1), 0), "swizzle_size 0"),
        (lambda p: p((4, 4, 1), (1, 1, 1)).get_grid_shape(0), "max_active_clusters 0"),
    ],
)
def test_wrong_schedule_is_refused(make, says):
    with pytest.raises(seam.CuteError) as e:
        make(utils.PersistentTileSchedulerParams)
    assert says in str(e.value)


class _Arithmetic:
    """The part of a backend that a schedule's order needs, on ints."""

    select = staticmethod(lambda c, a, b: a if c else b)
    compare = staticmethod(lambda op, a, b: a < b)


@pytest.mark.parametrize("along_m", [True, False])
@pytest.mark.parametrize("group", [1, 2, 4, 8])
@pytest.mark.parametrize("tiles", [(1, 1, 1), (5, 3, 1), (16, 7, 2), (9, 9, 3)])
def test_schedule_visits_every_cluster_once_and_keeps_groups_together(tiles, group, along_m):
    params = utils.PersistentTileSchedulerParams(tiles, (2, 1, 1), group, along_m)
    m, n, batch = params.problem_shape_ncluster_mnl
    with seam.running(_Arithmetic()):
        order = [params.decode(i) for i in range(m * n * batch)]
    assert sorted(order) == [(x, y, z) for x in range(m) for y in range(n) for z in range(batch)]
    grouped = np.array([c[1] if along_m else c[0] for c in order]).reshape(batch, -1)
    assert (np.diff(grouped // group, axis=1) >= 0).all(), "a group is finished before the next begins"


def test_grid_is_no_larger_than_the_work():
    params = utils.PersistentTileSchedulerParams((3, 2, 1), (2, 1, 1))
    assert params.get_grid_shape(66) == (2, 1, 4)
    assert params.get_grid_shape(3) == (2, 1, 3)
    for scheduler in (utils.StaticPersistentTileScheduler, utils.DynamicPersistentTileScheduler):
        assert scheduler.get_grid_shape(params, 3) == (2, 1, 3)
    with pytest.raises(cute.CuteError, match="is not a ClcDynamicPersistentTileSchedulerParams"):
        utils.ClcDynamicPersistentTileScheduler.get_grid_shape(params)


def test_two_warps_that_multiply_for_a_stage_commit_each(monkeypatch):
    made = {}

    def barriers(name, num_stages, storage, producer, consumer, *rest):
        made["arrivals"] = consumer[1].size
        raise StopIteration

    monkeypatch.setattr("numba_cute.pipeline.umma.make_barriers", barriers)
    for make, counted in (create, 2), (multi, 3):
        group = {"consumer_group" if make is create else "consumer_group_umma": TWO}
        with pytest.raises(StopIteration):
            make(**({"kind": "TmaUmma", "tx_count": 16} if make is create else {}), **group)
        assert made["arrivals"] == counted
