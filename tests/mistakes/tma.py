# SPDX-License-Identifier: Apache-2.0
"""Mistakes with TMA: its atoms, partitions and copies."""

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.runtime import make_fake_tensor

from .form import mistake

F16 = cute.Float16
SW128 = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, F16)
TILE = cute.tile_to_shape(SW128, (64, 64), (0, 1))
HALF = cute.tile_to_shape(SW128, (32, 64), (0, 1))
LOAD, STORE = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
MADE = {}


def tiled(op=LOAD):
    if op not in MADE:
        source = make_fake_tensor(F16, (128, 128), (128, 1), assumed_align=16)
        MADE[op] = cpasync.make_tiled_tma_atom(op, source, TILE, (64, 64))
    return MADE[op]


def atom():
    return tiled()[0]


def coords():
    return tiled()[1]


def store_atom():
    return tiled(STORE)[0]


def shared():
    return utils.SmemAllocator().allocate_tensor(F16, TILE.outer, 1024, TILE.inner)


@mistake("tma_bar_ptr", atom, coords)
def load_without_a_barrier(tma, g):
    s = utils.SmemAllocator().allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    g = cute.local_tile(g, (64, 64), (0, 0))
    ps, pg = cpasync.tma_partition(tma, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    cute.copy(tma, pg, ps)  # wrong


@mistake("CopyBulkTensorTileG2SMulticastOp", atom, coords)
def multicast_by_an_ordinary_load(tma, g):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    bar = smem.allocate_array(cute.Int64, 1)
    g = cute.local_tile(g, (64, 64), (0, 0))
    ps, pg = cpasync.tma_partition(tma, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    cute.copy(tma, pg, ps, tma_bar_ptr=bar, mcast_mask=3)  # wrong


@mistake("but the atom copies", atom, coords)
def load_into_registers(tma, g):
    r = cute.make_rmem_tensor((64, 64), F16)
    cute.copy(tma, cute.local_tile(g, (64, 64), (0, 0)), r)  # wrong


@mistake("but the atom copies", atom, coords)
def load_of_tiles_that_are_not_partitioned(tma, g):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    bar = smem.allocate_array(cute.Int64, 1)
    cute.copy(tma, cute.local_tile(g, (64, 64), (0, 0)), s, tma_bar_ptr=bar)  # wrong


@mistake("must be the whole tile; group the tile", atom, coords)
def partition_without_groups(tma, g):
    s = utils.SmemAllocator().allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    g = cute.local_tile(g, (64, 64), (0, 0))
    ps, pg = cpasync.tma_partition(tma, 0, cute.make_layout(1), s, g)  # wrong
    cute.copy(tma, pg, ps)


@mistake("must both be the whole tile; group the tile", atom, coords)
def partition_of_a_smaller_tile(tma, g):
    s = cute.group_modes(utils.SmemAllocator().allocate_tensor(F16, HALF.outer, 1024, HALF.inner), 0, 2)
    g = cute.group_modes(cute.local_tile(g, (64, 64), (0, 0)), 0, 2)
    parts = cpasync.tma_partition(tma, 0, cute.make_layout(1), s, g)  # wrong
    cute.copy(tma, parts[1], parts[0])


@mistake("must both be the whole tile; group the tile", atom, coords)
def partition_by_a_number(tma, g):
    s = utils.SmemAllocator().allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    p = cpasync.tma_partition(tma, 0, 1, cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))  # wrong
    cute.copy(tma, p[1], p[0])


@mistake("copy: tma_bar_ptr and mcast_mask are for TMA loads; wait", store_atom, coords)
def store_with_a_barrier(tma, g):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    bar = smem.allocate_array(cute.Int64, 1)
    g = cute.local_tile(g, (64, 64), (0, 0))
    ps, pg = cpasync.tma_partition(tma, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    cute.copy(tma, ps, pg, tma_bar_ptr=bar)  # wrong


@mistake("must lie in shared memory", atom, coords)
def load_the_wrong_way_round(tma, g):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    bar = smem.allocate_array(cute.Int64, 1)
    g = cute.local_tile(g, (64, 64), (0, 0))
    ps, pg = cpasync.tma_partition(tma, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    cute.copy(tma, ps, pg, tma_bar_ptr=bar)  # wrong


@mistake("is not a tensor", atom, coords)
def load_of_a_pointer(tma, g):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    bar = smem.allocate_array(cute.Int64, 1)
    cute.copy(tma, s.iterator, s, tma_bar_ptr=bar)  # wrong


@mistake("SOp: a TMA atom is made by cpasync.make_tiled_tma_atom, on", atom, coords)
def atom_made_in_a_kernel(tma, g):
    cute.make_copy_atom(cpasync.CopyBulkTensorTileG2SOp(), F16)  # wrong


@mistake("use sm_90 or a later one as arch=, or an operation that sm_", atom, coords, arch="sm_80")
def load_on_ampere(tma, g):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(F16, TILE.outer, 1024, TILE.inner)
    bar = smem.allocate_array(cute.Int64, 1)
    g = cute.local_tile(g, (64, 64), (0, 0))
    ps, pg = cpasync.tma_partition(tma, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    cute.copy(tma, pg, ps, tma_bar_ptr=bar)  # wrong


@mistake("was called with other arguments")
def group_committed_with_an_argument(x):
    cute.arch.cp_async_bulk_commit_group(1)  # wrong
