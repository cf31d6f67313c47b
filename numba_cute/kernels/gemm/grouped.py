# SPDX-License-Identifier: Apache-2.0
"""A grouped GEMM: rows sorted by group, each group with a matrix of its own, as mixtures of experts need.

C[r] = A[r] @ B[g].T for the rows r of group g, with A (rows, K), B (groups, N, K) and C (rows, N). Where the groups
end stands on the device, and a group may have any number of rows: nothing is padded. A tile loads whatever rows follow
its group's last one, and does not store them: C's tensor map has two modes for rows, of which one ends after 64 rows.
A store whose box begins at row 64 - n of that mode writes the n rows that are left (`ragged_rows`).

Rows of A that an index names are gathered by a warp, and those of C stored by the warps that made them (`indexed.py`).
What an epilogue reads of a tile its warpgroup fetches before it multiplies.

The kernel is Hopper's; `warps_grouped.py` has the one for mma.sync, `umma_grouped.py` Blackwell's. Warps, stages and
tiles are like those of `dense`; the schedule (`groups.py`) and the two ends of the rows differ.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.seam import CuteError

from .. import entry, tuning
from . import multiply
from .cuts import Umma, Warps
from .epilogue import Epilogue, hook
from .exchange import ALONE
from .groups import GroupedTiles, hear, ragged_rows, tell
from .indexed import Named, by_index, gather_end, gather_tile, named_of
from .operands import (
    CONSUMER_REGISTERS,
    CONSUMER_WARPS,
    PRODUCER_REGISTERS,
    THREADS,
    check_rows,
    counter_beside,
    load_atom,
    mapped,
    most_clusters,
    some_clusters,
    tensor_of,
)  # fmt: skip
from .output import ROWS as STORE_ROWS, WARP_ROWS, Stores, of_warpgroup, partition
from .plan import in_halves, loads, mma_op, run_of, smem_layout

TILE_M, ROW = 128, 128  # ROW bytes along K, or of a piece of the output: one swizzle
GATHERER_REGISTERS = 56  # of a thread that loads, where rows are gathered: of 40 some were spilled
STAGES, FEWEST_STAGES, STORE_STAGES, PLACES = 4, 3, 2, 2
SMEM = (
    cute.target("sm_90a").smem_per_block - 512
)  # bytes for stages, slots and vectors: barriers and places have the rest
KINDS = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")


@cuda.jit(launch_bounds=(THREADS, 1))
def grouped(
    dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, columns, tiled_mma, store, a_layout, b_layout, c_layout,
    cluster, share_a, share_b, scales_a, scales_b, epilogue, counter, exchange, totals,
):  # fmt: skip
    gathers, scatters = mA is None, mC is None  # threads read A's rows, and write C's: the atom is a Rows
    tile_n, stages = cute.size(b_layout, mode=[0]), cute.size(a_layout, mode=[2])
    _, cluster_m, cluster_n, _ = cluster.shape
    ctas = cute.size(cluster)
    tidx, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    blocks, _, _ = arch.grid_dim()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    rank_m, rank_n = rank % cluster_m, rank // cluster_m
    if warp_idx == 0:
        if cute.const_expr(not gathers):
            cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
        if cute.const_expr(not scatters):
            cpasync.prefetch_descriptor(tma_c)

    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written A, B and the ends
    tiles = GroupedTiles(
        cute.make_tensor(ends), cluster_m * TILE_M, columns, block // ctas, blocks // ctas,
        counter=None if cute.const_expr(counter is None) else cute.make_tensor(counter),
        wide=None if cute.const_expr(exchange.wide is None) else exchange.wide // (tile_n * cluster_n),
    )  # fmt: skip
    if warp_idx == 1:
        tiles.spread()  # the ends come while the barriers are made

    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(dtype, a_layout.outer, 1024, a_layout.inner, "sA")
    sB = smem.allocate_tensor(dtype, b_layout.outer, 1024, b_layout.inner, "sB")
    sC = smem.allocate_tensor(c_dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    # How the accumulators leave, in pieces of 64 x ROW bytes: registers -> shared memory -> C
    store_n, slots = cute.size(c_layout, mode=[1]), cute.size(c_layout, mode=[2])
    stores_of_tile = tile_n // epilogue.spread // store_n
    vectors = epilogue.allocate(smem, store_n, 2 * stores_of_tile)
    barriers = smem.allocate_array(cute.Int64, 2 * stages * (1 + gathers), name="barriers")
    if cute.const_expr(exchange.brings or exchange.sends):
        others = exchange.begin(smem, tidx)
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, ctas * CONSUMER_WARPS),
        tx_count=(TILE_M * (not gathers) + tile_n) * ROW,
        barrier_storage=barriers,
        cta_layout_vmnk=cluster,
        tidx=tidx,
        name="mainloop",
    )
    producer, consumer = mainloop.make_participants()
    if cute.const_expr(gathers):
        gathered = pipeline.PipelineTmaAsync.create(
            num_stages=stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMER_WARPS),
            tx_count=None,
            barrier_storage=barriers + 2 * stages,
            tidx=tidx,
            name="gathered",
        )
    # Of each tile a warp finds the place, and tells the others: the group, its end, the tile's first row and column.
    places = smem.allocate_tensor(cute.Int32, cute.make_layout((4, PLACES)), 16, name="places")
    tells = pipeline.PipelineAsync.create(
        num_stages=PLACES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp, CONSUMER_WARPS + 1 + gathers),
        barrier_storage=smem.allocate_array(cute.Int64, 2 * PLACES, name="tells"),
        name="places",
    )
    teller, told = tells.make_participants()
    tile_k = 8 * ROW // dtype.width
    k_tiles = cute.ceil_div(mB.shape[1], tile_k)

    if warp_idx < 4:
        arch.setmaxregister_decrease(GATHERER_REGISTERS if cute.const_expr(gathers) else exchange.registers[0])
        if warp_idx == 0:
            gB = cute.local_tile(mB, (tile_n, tile_k), (None, None, None))
            tBsB, tBgB = partition(tma_b, sB, gB, rank_m, cluster_m)
            while True:
                group, _, row, n = hear(told, places)
                if group < 0:
                    break
                if cute.const_expr(exchange.brings):
                    others.await_tile(row)
                if cute.const_expr(not gathers):
                    gA = cute.local_tile(cute.domain_offset((row, 0), mA), (TILE_M, tile_k), (0, None))
                    tAsA, tAgA = partition(tma_a, sA, gA, rank_n, cluster_n)
                for k in range(tBgB.shape[2]):
                    stage = producer.acquire_and_advance()
                    if cute.const_expr(not gathers):
                        cute.copy(
                            tma_a, tAgA[None, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier,
                            mcast_mask=share_a,
                        )  # fmt: skip
                    cute.copy(
                        tma_b, tBgB[None, n, k, group], tBsB[None, stage.index],
                        tma_bar_ptr=stage.barrier, mcast_mask=share_b,
                    )  # fmt: skip
                    stage.commit()
            producer.tail()
        elif warp_idx == 1:
            while tiles.find():
                row = tiles.begin + (tiles.m * cluster_m + rank_m) * TILE_M
                tell(teller, places, tiles.group, tiles.end, row, tiles.n * cluster_n + rank_n)
                tiles.advance()
            tell(teller, places, -1, 0, 0, 0)
            teller.tail()
        elif cute.const_expr(gathers):
            if warp_idx == 2:
                ahead, filled = gathered.make_producer(), gathered.make_producer()
                under_way = cute.Int32(0)
                while True:
                    group, _, row, _ = hear(told, places)
                    if group < 0:
                        break
                    under_way = gather_tile(tma_a, ahead, filled, sA, row, cute.Int32(0), k_tiles, under_way)
                gather_end(ahead, filled, under_way)
        elif cute.const_expr(exchange.brings or exchange.sends):
            if warp_idx == 2:
                others.talk()
            if cute.const_expr(exchange.sends):
                others.add_early(totals, warp_idx - 2)
    else:
        arch.setmaxregister_increase(
            CONSUMER_REGISTERS + (PRODUCER_REGISTERS - GATHERER_REGISTERS) // 2
            if cute.const_expr(gathers)
            else exchange.registers[1]
        )
        group = cute.Int32((warp_idx - 4) // 4)  # which consumer warpgroup: rows 64 * group of the tile
        mma = tiled_mma.get_slice(cute.Int32(group * 128))
        tCrA = tiled_mma.make_fragment_A(mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(mma.partition_B(sB))
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_M, tile_n)))
        of_a = done_a = None
        if cute.const_expr(gathers):
            of_a, done_a = gathered.make_consumer(), gathered.make_consumer()
        sums_of_piece = 64 * store_n * epilogue.spread // 128
        sums = cute.make_tensor(acc.iterator, cute.make_layout((sums_of_piece, stores_of_tile)))
        sC_group = of_warpgroup(sC, group)
        stores = Stores.create(store, tiled_mma, sC, cute.Int32(tidx - 128), group, warp_idx % 4 == 0)
        if cute.const_expr(exchange.sends):
            others.await_room()

        while True:
            expert, end, row, n = hear(told, places)
            if expert < 0:
                break
            row += group * STORE_ROWS
            left = cute.max(cute.Int32(0), cute.min(cute.Int32(STORE_ROWS), cute.Int32(end - row)))
            if left > 0:
                if cute.const_expr(scatters):
                    rows_c = tma_c.part(row, end)
                if cute.const_expr(vectors is not None):
                    for piece in cute.range_constexpr(stores_of_tile):
                        column = cute.Int32(store_n * (stores_of_tile * n + piece))
                        place = epilogue.place(row, column, expert, tidx % 128, store_n)
                        epilogue.fetch(place, vectors, stores_of_tile * group + piece, tidx % 128, 128)
                if cute.const_expr(scales_a is None):
                    multiply.plainly(consumer, tiled_mma, acc, tCrA, tCrB, k_tiles, of_a, done_a)
                else:
                    own_row = cute.Int32(row + warp_idx % 4 * 16 + arch.lane_idx() // 4)
                    n_block = cute.Int32(n * (tile_n // multiply.BLOCK))
                    multiply.scaled(
                        consumer, tiled_mma, acc, tCrA, tCrB, k_tiles, cute.make_tensor(scales_a), own_row,
                        cute.make_tensor(scales_b), expert, n_block,
                    )  # fmt: skip
                if cute.const_expr(vectors is not None):
                    stores.together.arrive_and_wait()  # what the others fetched is there
                if cute.const_expr(exchange.sends):
                    others.sent_before(n * tile_n // exchange.wide)
                if cute.const_expr(not scatters):
                    gC = cute.local_tile(
                        cute.domain_offset((STORE_ROWS - left, 0, row + left), mC), (STORE_ROWS, store_n), (0, None, 0)
                    )
                    tCsC, tCgC = partition(tma_c, sC_group, gC)
                for piece in cute.range_constexpr(stores_of_tile):
                    slot = piece % slots
                    column = cute.Int32(store_n * (stores_of_tile * n + piece))
                    place = epilogue.place(row, column, expert, tidx % 128, store_n)
                    made = epilogue.apply(sums[None, piece], place, vectors, None, stores_of_tile * group + piece)
                    if cute.const_expr(scatters):
                        own = cute.local_tile(sC_group[None, None, slot], (WARP_ROWS, store_n), (warp_idx % 4, 0))
                        first = cute.Int32(warp_idx % 4 * WARP_ROWS)
                        stores.put_rows(made, slot, rows_c, own, first, column)
                    else:
                        there = tCgC[None, stores_of_tile * n + piece]
                        stores.put(made, slot, tma_c, tCsC[None, slot], there)
            else:  # these rows are another group's
                multiply.nothing(consumer, k_tiles, of_a, done_a)
        stores.tail()
        if cute.const_expr(exchange.sends):
            others.add_up(totals, warp_idx - 4)


class Cut(NamedTuple):
    """A cut of a problem's tiles. tile_n: columns of a CTA's. cluster: CTAs of a cluster along M and N. draws:
    whether CTAs draw tiles where groups end in half tiles; single ones."""

    tile_n: int = 256
    cluster: tuple[int, int] = (2, 1)
    draws: bool = False


def cut_of(rows, groups, n, room):
    """Choose the cut for so many rows in so many groups, and N columns. room: `room(ctas)` clusters of so many CTAs run
    at once."""
    known = tuning.numbers("grouped_gemm")
    if n <= known.narrow:
        return Cut(128, (1, 1), True)
    together = rows >= known.shared_rows * groups and room(2) > 0
    return Cut(256, (2, 1)) if together else Cut(256, (1, 1), True)


def plan(a, b, ends, c, scales_a=None, scales_b=None, cut=None, epilogue=None, rows=(None, None)):
    """Plan the launch for tensors as `grouped_gemm` and `blockscaled_gemm` take them. cut: a Cut, of `grouped_gemm` a
    Warps or an Umma too, or None for the one that is thought best for the GPU. epilogue: what becomes of the sums, or
    None. rows: the indices of A's rows and of C's, or None. What is launched takes a, b, ends, the scales if there are
    any, c, the epilogue's tensors, and the indices if there are any."""
    (groups, n, _), product = b.shape, rows_of(a, rows)
    if 0 in (product, groups, n):
        return lambda *tensors: None
    what = "grouped_gemm" if scales_a is None else "blockscaled_gemm"
    families = (entry.WARPGROUPS, entry.WARPS, entry.TENSOR_MEMORY) if scales_a is None else (entry.WARPGROUPS,)
    family = entry.check_target(what, a, *families)
    if family == entry.WARPS or isinstance(cut, Warps):
        from . import warps_grouped

        return warps_grouped.plan(a, b, ends, c, cut, epilogue, rows)
    check_rows(what, a=a, b=b, out=c)
    if family == entry.TENSOR_MEMORY or isinstance(cut, Umma):
        from . import umma_grouped

        return umma_grouped.plan(a, b, ends, c, cut, epilogue, rows)
    cut = cut or cut_of(product, groups, n, functools.partial(most_clusters, a))
    tile_n, (cluster_m, cluster_n), draws = cut
    ctas = cluster_m * cluster_n
    if tile_n not in (128, 256) or ctas not in (1, 2, 4) or (draws and ctas > 1):
        raise CuteError(f"{what}: {cut}: tile_n is 128 or 256, a cluster has 1, 2 or 4 CTAs, and only single ones draw")
    if rows[0] is not None and cluster_n > 1:
        raise CuteError(f"{what}: {cut}: A's rows are named by an index, and no CTAs share what is gathered: give 1")
    columns = math.ceil(n / (tile_n * cluster_n))
    most_tiles = (product // (TILE_M * cluster_m) + min(groups, product)) * columns
    clusters = max(1, min(some_clusters(f"{what}: {cut}", most_clusters(a, ctas), ctas), most_tiles))
    given, indices = epilogue.tensors if epilogue else [], [r for r in rows if r is not None]
    scales = () if scales_a is None else (scales_a, scales_b)
    scaled = len(scales)
    ready = _all_rows(a) if ends is None else None
    form, count, named = epilogue and epilogue.form, len(given), (rows[0] is not None, rows[1] is not None)

    def arguments(a, b, ends, *others):
        scales, c, others = others[:scaled], others[scaled], others[scaled + 1 :]
        others, counter = (others[:-1], others[-1]) if draws else (others, None)
        kinds = entry.element_type(a), entry.element_type(c)
        own = Epilogue.of(form, others[:count]) if form else None
        a, c, of_a, of_c, _ = named_of(a, c, named, others[count:])
        return arguments_of(cut, columns, kinds, a, b, ends, c, scales, own, (of_a, of_c), counter)

    tensors = (a, b, ends, *scales, c, *given, *indices)
    beside = counter_beside if draws else None
    return mapped(grouped, (clusters * ctas, 1, 1), (ctas, 1, 1), tensors, arguments, ready, beside)


def rows_of(a, rows):
    """Count the product's rows. rows: the indices of A's rows and of C's, or None."""
    return int(next((r.shape[0] for r in rows if r is not None), a.shape[0]))


def arguments_of(
    cut, columns, kinds, a, b, ends, c, scales, epilogue, rows, counter, exchange=ALONE, totals=None
):  # fmt: skip
    """Give the kernel's arguments. cut: a Cut. columns: tiles of clusters along N. kinds: the types of A and of C. a,
    b, ends, c: as `grouped_gemm` takes them; with the product's rows, where they are named. scales: those of A and B,
    or nothing. epilogue: or None. rows: a Named of A's rows and of C's, of C's a Rows too, or None. counter: of single
    CTAs. exchange, totals: with other GPUs, and what it adds up to."""
    tile_n, (cluster_m, cluster_n), _ = cut
    scales_a, scales_b = scales or (None, None)
    dtype, c_dtype = kinds
    spread, (groups, n, _), m = epilogue.spread if epilogue else 1, b.shape, int(a.shape[0])
    b_mode = 2 if entry.strides(b)[2] == 1 else 1
    tB = tensor_of(b, b_mode)
    tB = cute.make_tensor(tB.iterator, cute.select(tB.layout, mode=[1, 2, 0]))  # N, K, groups
    k_major, n_major = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
    op = mma_op(dtype, multiply.BLOCK if scales else tile_n, k_major, k_major if b_mode == 2 else n_major)
    tiled_mma = cute.make_tiled_mma(op, (TILE_M // 64, 1, 1))
    tile_k, store_n = 8 * ROW // dtype.width, 8 * ROW // c_dtype.width
    run = run_of(b_mode - 1, n // 2, store_n, tile_n // (2 * cluster_m)) if spread == 2 else None
    made = hook(epilogue, m, n // spread, False, run, groups)
    pieces = tile_n // spread // store_n
    slots = min(STORE_STAGES, pieces)
    stages = stages_of(tile_n, slots, made.layout(STORE_ROWS, store_n, 2 * pieces), exchange.memory)
    a_layout = smem_layout(dtype, 1, TILE_M, tile_k, stages)
    b_layout = smem_layout(dtype, b_mode - 1, tile_n, tile_k, stages, run=run)
    c_layout = smem_layout(c_dtype, 1, TILE_M, store_n, slots)
    store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), c_dtype)
    tA, tC, (of_a, of_c) = tensor_of(a, 1), tensor_of(c, 1), rows
    tma_a, mA = load_atom(tA, a_layout, (TILE_M, tile_k), cluster_n) if of_a is None else (by_index(tA, of_a, m), None)
    if run is None:
        tma_b, mB = load_atom(tB, b_layout, (tile_n, tile_k), cluster_m)
    else:
        whole = math.ceil(n / tile_n) * tile_n
        across = run, 2, cute.Int32(whole // (2 * run))
        tma_b, mB = loads(
            in_halves(tB, n // 2, run), dtype, b_layout, (tile_n, tile_k), cluster_m, (across, b.shape[2])
        )
    if isinstance(of_c, Named):
        of_c = by_index(tC, of_c, m)
    tma_c, mC = (of_c, None) if of_c is not None else cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), ragged_rows(tC, STORE_ROWS), smem_layout(c_dtype, 1, STORE_ROWS, store_n),
        (STORE_ROWS, store_n),
    )  # fmt: skip
    share_a, share_b = (None if count == 1 else (1 << count) - 1 for count in (cluster_n, cluster_m))
    return (
        dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, cute.Int32(columns), tiled_mma, store, a_layout,
        b_layout, c_layout, cute.make_layout((1, cluster_m, cluster_n, 1)), share_a, share_b, scales_a, scales_b,
        made, counter, exchange, totals,
    )  # fmt: skip


def stages_of(tile_n, slots, vectors, beside=0):
    """Count the stages that shared memory has room for, up to STAGES. slots: of C. vectors: the layout of what an
    epilogue reads, or None. beside: bytes that an exchange takes."""
    read = 0 if vectors is None else cute.size_in_bytes(cute.Float32, vectors)
    stages = min(STAGES, (SMEM - slots * TILE_M * ROW - read - beside) // ((TILE_M + tile_n) * ROW))
    if stages < FEWEST_STAGES:
        raise CuteError(
            f"grouped_gemm: the epilogue's vectors take {read} bytes of a tile of {tile_n} columns, for which shared "
            "memory has no room: give it fewer"
        )
    return stages


def _all_rows(a):
    """Make the end of the only group of A's rows, where they are."""
    if hasattr(a, "data_ptr"):
        return entry.pytorch().tensor([a.shape[0]], dtype=entry.pytorch().int32, device=a.device)
    return np.array([a.shape[0]], np.int32)


def check_groups(what, a, b, ends, kinds, optional=False):
    """Refuse matrices that are not rows by groups, each with a matrix of its own."""
    entry.check(what, "a", a, dtypes=kinds, rank=2)
    entry.check(what, "b", b, dtypes=(entry.type_name(a),), rank=3, shape=(None, None, a.shape[1]), last=False, like=a)
    entry.check(what, "ends", ends, dtypes=("int32",), rank=1, shape=(b.shape[0],), like=a, optional=optional)
    if not a.shape[1]:
        raise CuteError(f"{what}: a is {entry.described(a)}; K must not be 0")
    along_k = entry.strides(b)[2] == 1 or b.shape[2] == 1
    if not along_k and (entry.strides(b)[1] != 1 or entry.type_name(a).startswith("float8")):
        rule = "along K" if entry.type_name(a).startswith("float8") else "along N or K"
        raise CuteError(f"{what}: b is {entry.described(b)}; it must be contiguous {rule}: give b.contiguous()")
