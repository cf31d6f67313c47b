# SPDX-License-Identifier: Apache-2.0
"""Who signals whom in a cluster: against a definition that looks at every CTA, for compact and for other layouts."""

import itertools

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, seam, utils
from numba_cute.nvgpu import cpasync
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack
from numba_cute.sim import SimError

from .hopper_kernels import WORDS, copy_slice

ONE = CooperativeGroup(Agent.Thread)
MODES = ((1, 0), (0, 1), (1, 1))
SEVERAL = ".*is another cluster than"
"""The note of kernels that make a pipeline for each of several clusters, to compare what they give."""
LAYOUTS = {  # CTAs: (shape, stride) of (V, M, N, K)
    4: [
        ((1, 2, 2, 1), (0, 1, 2, 0)), ((1, 2, 2, 1), (0, 2, 1, 0)), ((1, 4, 1, 1), (0, 1, 0, 0)),
        ((1, 1, 4, 1), (0, 0, 1, 0)), ((2, 2, 1, 1), (1, 2, 4, 4)), ((2, 1, 2, 1), (1, 2, 2, 4)),
        (((2,), 1, 2, 1), ((1,), 0, 2, 0)),
    ],
    6: [((1, 3, 2, 1), (0, 1, 3, 0)), ((1, 3, 2, 1), (0, 2, 1, 0)), ((2, 3, 1, 1), (1, 2, 0, 0))],
    8: [
        ((1, 2, 4, 1), (0, 1, 2, 0)), ((1, 2, 4, 1), (0, 4, 1, 0)), ((1, 4, 2, 1), (0, 1, 4, 0)),
        ((1, 4, 2, 1), (0, 2, 1, 0)), ((2, 2, 2, 1), (1, 2, 4, 0)), ((2, 2, 2, 1), (1, 4, 2, 0)),
        ((2, 1, 4, 1), (1, 0, 2, 0)), ((1, (2, 2), 2, 1), (0, (4, 1), 2, 0)),
    ],
}  # fmt: skip
PAIR = (2, (2,))
OTHER_PAIRS = ((2, 2, 2, 1), (4, 1, 2, 0))
"""Pairs that the matrix unit cannot form, and TMA does not mind."""


def ranks(shape, stride):
    """{(v, m, n): rank}, by counting through the modes, the first extent of each fastest."""

    def mode(extents, strides):
        if not isinstance(extents, tuple):
            return [i * strides for i in range(extents)]
        inner = [mode(e, s) for e, s in zip(extents, strides)]
        return [sum(reversed(x)) for x in itertools.product(*reversed(inner))]

    along = [mode(e, s) for e, s in zip(shape[:3], stride[:3])]
    at = itertools.product(*(range(len(x)) for x in along))
    return {c: sum(x[i] for x, i in zip(along, c)) for c in at}


def sharing(table, rank, modes, pairs):
    """The ranks of the CTAs that get the same tile of A as CTA `rank`, if A is multicast, or of B, if B is.

    pairs: of all v, and not of this CTA's alone.
    """
    at = next(c for c, r in table.items() if r == rank)

    def shares(c):
        same_v = pairs or c[0] == at[0]
        return same_v and (modes[0] and c[1] == at[1] or modes[1] and c[2] == at[2])

    return sorted(r for c, r in table.items() if shares(c))


def cases(layouts):
    return [(*layout, modes) for layout in layouts for modes in MODES]


def signal_kernel(size, every):
    count = len(every)

    @seam.traced
    def signal(i, tidx):
        shape, stride, modes = every[i]
        layout = cute.make_layout(shape, stride=stride)
        return pipeline.PipelineTmaAsync.init_empty_barrier_arrive_signal(layout, tidx, modes)

    @cute.cluster_shape(size)
    @cuda.jit
    def kernel(out):
        tidx, _, _ = arch.thread_idx()
        me = arch.block_idx_in_cluster()
        for i in cute.range_constexpr(count):
            rank, signals = signal(i, tidx)
            out[i, me, tidx] = rank if signals else -1

    return kernel


@pytest.mark.parametrize("size", LAYOUTS)
def test_each_consumer_warp_signals_the_ctas_whose_copies_reach_it(run, size):
    every = cases(LAYOUTS[size] + ([OTHER_PAIRS] if size == 8 else []))
    out = np.zeros((len(every), size, 64 if size == 4 else 32), np.int32)

    def check():
        for (shape, stride, modes), of_case in zip(every, out):
            table = ranks(shape, stride)
            for rank, lanes in enumerate(of_case):
                for warp in lanes.reshape(-1, 32):
                    got = sorted(warp[warp >= 0].tolist())
                    assert got == sharing(table, rank, modes, False), f"{shape}:{stride}, {modes}, CTA {rank}"

    run(signal_kernel(size, every), size, out.shape[2], [out], outputs=[out], check=check)


def test_the_definition_gives_what_is_known_by_hand():
    square = ranks((1, 2, 2, 1), (0, 1, 2, 0))
    assert [sharing(square, r, (1, 0), False) for r in range(4)] == [[0, 2], [1, 3], [0, 2], [1, 3]]
    turned = ranks((1, 2, 4, 1), (0, 4, 1, 0))
    assert sharing(turned, 0, (1, 1), False) == [0, 1, 2, 3, 4]


def matrix_unit_kernel(size, every):
    count = len(every)

    @seam.traced
    def make(i, storage):
        shape, stride, modes = every[i]
        layout = cute.make_layout(shape, stride=stride)
        reached = len(sharing(ranks(shape, stride), 0, modes, True)) // (2 if shape[0] in PAIR else 1)
        commits = CooperativeGroup(Agent.Thread, reached)
        given = {"num_stages": 1, "producer_group": ONE, "tx_count": 128, "barrier_storage": storage}
        given |= {"cta_layout_vmnk": layout, "mcast_mode_mn": modes, "defer_sync": True}
        loads = pipeline.PipelineTmaUmma.create(consumer_group=commits, **given)
        given |= {"consumer_group_umma": commits, "consumer_group_async": commits, "barrier_storage": storage + 2}
        return loads, pipeline.PipelineTmaMultiConsumersAsync.create(**given)

    @cute.cluster_shape(size)
    @cuda.jit
    def kernel(out):
        tidx, _, _ = arch.thread_idx()
        me, smem = arch.block_idx_in_cluster(), utils.SmemAllocator()
        for i in cute.range_constexpr(count):
            loads, both = make(i, smem.allocate_array(cute.Int64, 4))
            if tidx == 0:
                out[i, me, 0] = loads.consumer_mask
                out[i, me, 1] = 1 if loads.is_leader_cta else 0
                out[i, me, 2] = both.consumer_mask
                out[i, me, 3] = 1 if both.is_leader_cta else 0
            out[i, me, 4 + tidx] = both.consumer_dst_rank_async if both.is_signaling_thread else -1

    return kernel


@pytest.mark.parametrize("size", LAYOUTS)
def test_commits_tell_both_ctas_of_each_pair_whose_copies_reach_this_one(run, size):
    every = cases(LAYOUTS[size] if size < 8 else LAYOUTS[size][1::2])
    out = np.zeros((len(every), size, 4 + 32), np.int32)

    def check():
        for (shape, stride, modes), of_case in zip(every, out):
            table = ranks(shape, stride)
            leaders = [r for c, r in table.items() if c[0] == 0]
            for rank, got in enumerate(of_case):
                want = sharing(table, rank, modes, True)
                facts = [sum(1 << r for r in want), int(rank in leaders)]
                assert got[:4].tolist() == facts * 2, f"{shape}:{stride}, {modes}, CTA {rank}"
                assert sorted(got[4:][got[4:] >= 0].tolist()) == want

    run.expected = SEVERAL
    run(matrix_unit_kernel(size, every), size, 32, [out], outputs=[out], check=check, arch="sm_100a")


def pairs_kernel(size, every):
    count = len(every)

    @seam.traced
    def make(i, storage):
        shape, stride = every[i]
        given = {"num_stages": 1, "producer_group": ONE, "consumer_group": ONE, "defer_sync": True}
        given["cta_layout_vmnk"] = cute.make_layout(shape, stride=stride)
        operands = pipeline.PipelineAsyncUmma.create(barrier_storage=storage, **given)
        return operands, pipeline.PipelineUmmaAsync.create(barrier_storage=storage + 2, **given)

    @cute.cluster_shape(size)
    @cuda.jit
    def kernel(out):
        tidx, _, _ = arch.thread_idx()
        me, smem = arch.block_idx_in_cluster(), utils.SmemAllocator()
        for i in cute.range_constexpr(count):
            operands, results = make(i, smem.allocate_array(cute.Int64, 4))
            if tidx == 0:
                out[i, me, 0], out[i, me, 1] = operands.producer_mask, operands.consumer_mask
                out[i, me, 2], out[i, me, 3] = results.consumer_mask, results.producer_mask

    return kernel


@pytest.mark.parametrize("size", LAYOUTS)
def test_threads_of_a_pair_signal_its_leader_and_commits_signal_both(run, size):
    every = [layout for layout in LAYOUTS[size] if layout[0][0] in PAIR]
    out = np.zeros((len(every), size, 4), np.int32)

    def check():
        for (shape, stride), of_case in zip(every, out):
            for (_, m, n), rank in (table := ranks(shape, stride)).items():
                pair = [table[0, m, n], table[1, m, n]]
                assert of_case[rank].tolist() == [pair[0], sum(1 << r for r in pair)] * 2, f"{shape}:{stride}"

    run.expected = SEVERAL
    run(pairs_kernel(size, every), size, 32, [out], outputs=[out], check=check, arch="sm_100a")


def multicast_kernel(shape, stride, modes, stated, counts=False):
    """C[m, n] += A[m, i] + B[n, i], words reversed, over rounds i: `modes` says whose tiles each CTA fetches a part of,
    for all that share them; whole tiles otherwise. stated: the modes that the pipeline is told. counts: whether it
    counts the arrivals itself."""
    layout = cute.make_layout(shape, stride=stride)
    table = ranks(shape, stride)
    _, m, n, _ = shape
    wide, tall = (n if modes[0] else 1), (m if modes[1] else 1)
    arrivals = CooperativeGroup(Agent.Thread, len(sharing(table, 0, stated, False)))
    consumers = CooperativeGroup(Agent.Warp) if counts else arrivals

    @cute.cluster_shape(m * n)
    @cuda.jit
    def kernel(a, b, out, rounds):
        tidx, _, _ = arch.thread_idx()
        me = arch.make_warp_uniform(arch.block_idx_in_cluster())
        at = layout.get_flat_coord(me)
        row, column = at[1], at[2]
        mask_a = cpasync.create_tma_multicast_mask(layout, at, 2) if modes[0] else 1 << me
        mask_b = cpasync.create_tma_multicast_mask(layout, at, 1) if modes[1] else 1 << me
        smem = utils.SmemAllocator()
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=2, producer_group=ONE, consumer_group=consumers, tx_count=8 * WORDS, cta_layout_vmnk=layout,
            mcast_mode_mn=stated, enable_multicast_signaling=counts, name="tiles",
        )  # fmt: skip
        s_a = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, 2)), 128)
        s_b = smem.allocate_tensor(cute.Int32, cute.make_layout((WORDS, 2)), 128)
        if tidx >= 32:
            producer = pipe.make_producer()
            for i in range(rounds):
                stage = producer.acquire_and_advance()
                to_a, to_b = s_a[None, stage.index], s_b[None, stage.index]
                first_a, first_b = column % wide * (WORDS // wide), row % tall * (WORDS // tall)
                copy_slice(to_a, a[row, i, None], first_a, WORDS // wide, stage.barrier, mask_a)
                copy_slice(to_b, b[column, i, None], first_b, WORDS // tall, stage.barrier, mask_b)
            producer.tail()
        else:
            consumer = pipe.make_consumer()
            for i in range(rounds):
                stage = consumer.wait_and_advance()
                for w in range(tidx, WORDS, 32):
                    out[row, column, i, w] = s_a[w, stage.index] + s_b[WORDS - 1 - w, stage.index]
                arch.sync_warp()
                stage.release()
        arch.cluster_arrive()
        arch.cluster_wait()

    return kernel


TILES = [((1, 2, 2, 1), (0, 1, 2, 0)), ((1, 2, 2, 1), (0, 2, 1, 0)), ((1, 2, 4, 1), (0, 4, 1, 0))]
ROUNDS = 4


def problem(rng, shape):
    _, m, n, _ = shape
    a, b = (rng.integers(-1000, 1000, (k, ROUNDS, WORDS), dtype=np.int32) for k in (m, n))
    out = np.zeros((m, n, ROUNDS, WORDS), np.int32)
    return a, b, out, a[:, None] + b[None, :, :, ::-1]


@pytest.mark.parametrize(
    ("shape", "stride", "modes"),
    [
        pytest.param(*tiles, modes, marks=pytest.mark.slow if tiles is TILES[2] and modes != (1, 1) else ())
        for tiles in TILES
        for modes in MODES
    ],
)
def test_stages_are_not_overwritten_before_all_that_share_them_have_released_them(run, rng, shape, stride, modes):
    a, b, out, want = problem(rng, shape)
    args = [lambda place: from_dlpack(place(a)), lambda place: from_dlpack(place(b)), out, np.int32(ROUNDS)]
    kernel = multicast_kernel(shape, stride, modes, modes, stride == TILES[1][1])
    run(kernel, shape[1] * shape[2], 64, args, outputs=[out], check=lambda: np.testing.assert_array_equal(out, want))


@pytest.mark.parametrize("modes", [(1, 0), (0, 1)])
def test_the_other_operands_mode_is_a_race_or_a_deadlock(rng, modes):
    """What these kernels would do if the modes were swapped."""
    shape, stride = TILES[0]
    a, b, out, _ = problem(rng, shape)
    kernel = multicast_kernel(shape, stride, modes, modes[::-1])
    with pytest.raises(SimError, match="tiles|copy|s_a|s_b"):
        cute.simulate(kernel)[4, 64](from_dlpack(a), from_dlpack(b), out, np.int32(ROUNDS))


def refused(kind, arch, **given):
    """What the simulator and the compiler say of a pipeline in a cluster of 4."""
    create, group = getattr(pipeline, f"Pipeline{kind}").create, CooperativeGroup(Agent.Thread, 2)

    def make():
        sides = (
            {"consumer_group": group}
            if "Multi" not in kind
            else {f"consumer_group_{x}": group for x in ("umma", "async")}
        )
        create(num_stages=1, producer_group=ONE, tx_count=128, **sides, **given)

    make.__cute_traced__ = True

    @cute.cluster_shape(4)
    @cuda.jit
    def kernel():
        make()

    said = []
    for engine in (lambda: cute.simulate(kernel, arch=arch)[4, 32](), lambda: cute.compile(kernel, (), arch=arch)):
        with pytest.raises(cute.CuteError) as e:
            engine()
        said.append(str(e.value).splitlines()[0])
    assert said[0] == said[1]
    return said[0]


KINDS = [("TmaAsync", "sm_90a"), ("TmaUmma", "sm_100a"), ("TmaMultiConsumersAsync", "sm_100a")]


@pytest.mark.parametrize("modes", [(0, 0), (1,), (2, 0), (1, -1), 1])
@pytest.mark.parametrize(("kind", "arch"), KINDS)
def test_modes_that_multicast_nothing_or_are_none_are_refused(kind, arch, modes):
    layout = cute.make_layout((1, 2, 2, 1))
    said = refused(kind, arch, cta_layout_vmnk=layout, mcast_mode_mn=modes)
    assert f"mcast_mode_mn {modes!r} " in said
    assert ("multicasts nothing" if modes == (0, 0) else "each 0 or 1") in said
    with pytest.raises(cute.CuteError, match="mcast_mode_mn"):
        pipeline.PipelineTmaAsync.init_empty_barrier_arrive_signal(layout, 0, modes)


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        (cute.make_layout((1, 2, 2, 1), stride=(0, 1, 1, 0)), "a rank of its own, 0 to 3, and gives 0, 1, 1, 2"),
        (cute.make_layout((1, 2, 2, 1), stride=(0, 1, 4, 0)), "gives 0, 1, 4, 5"),
        (cute.make_layout((1, 2, 2, 1), stride=(0, 0, 2, 0)), "gives 0, 0, 2, 2"),
        (cute.make_layout((1, 2, 1, 2)), "mode K is 2, and must be 1"),
        (cute.make_layout((2, 2)), "needs four modes (V, M, N, K)"),
    ],
)
@pytest.mark.parametrize(("kind", "arch"), KINDS)
def test_layouts_that_do_not_number_the_ctas_are_refused(kind, arch, layout, says):
    assert says in refused(kind, arch, cta_layout_vmnk=layout)


@pytest.mark.parametrize(("kind", "arch"), KINDS[1:])
def test_pairs_that_the_matrix_unit_cannot_form_are_refused(kind, arch):
    layout = cute.make_layout((2, 2, 1, 1), stride=(2, 1, 0, 0))
    assert "the stride of mode V is 2 and must be 1" in refused(kind, arch, cta_layout_vmnk=layout)
