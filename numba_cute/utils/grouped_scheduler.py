# SPDX-License-Identifier: Apache-2.0
"""Tiles of many problems of different sizes (a grouped GEMM), one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes, layout
from ..dtypes import Int32
from ..seam import CuteError, Int, frozen, quotient, remainder, struct, traced
from ..seam.guards.messages import how_static
from ..tensor.tensor import Tensor, make_tensor
from .tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
    WorkTileInfo,
    check_params,
    scheduled_work,
)

__all__ = [
    "GroupSearchResult", "GroupedGemmGroupSearchState", "GroupedGemmTileSchedulerHelper", "GroupedWorkTileInfo",
    "StaticPersistentGroupTileScheduler", "create_initial_search_state", "total_clusters",
]  # fmt: skip


@frozen
class GroupSearchResult:
    """The place of a piece of work: `group_idx`, the CTA's tile (`cta_tile_idx_m`, `cta_tile_idx_n`) in that group, the
    group's problem (`problem_shape_m`, `problem_shape_n`, `problem_shape_k`) and its `cta_tile_count_k`.

    >>> utils.GroupSearchResult(1, 0, 2, 256, 512, 64, 1).cta_tile_idx_n
    2
    """

    group_idx: Any
    cta_tile_idx_m: Any
    cta_tile_idx_n: Any
    problem_shape_m: Any
    problem_shape_n: Any
    problem_shape_k: Any
    cta_tile_count_k: Any


@struct
class GroupedGemmGroupSearchState:
    """The progress of a search: the group to look at next, the clusters before the group found last, and those up to
    its end.

    >>> sizes = cute.runtime.from_dlpack(np.array([[128, 64, 32, 1], [256, 128, 64, 1]], np.int32))
    >>> params = utils.PersistentTileSchedulerParams((1, 1, 5), (1, 1, 1))
    >>> def kernel(sizes):
    ...     state = utils.create_initial_search_state()
    ...     helper = utils.GroupedGemmTileSchedulerHelper(2, params, (128, 64, 32), state)
    ...     helper.delinearize_z((0, 0, 3), sizes)
    ...     print(helper.search_state.tile_count_prev_group, helper.search_state.tile_count_searched)
    >>> cute.simulate(kernel)[1, 1](sizes)
    1 5
    """

    start_group_idx: Int32
    tile_count_prev_group: Int32
    tile_count_searched: Int32


@traced
def create_initial_search_state() -> GroupedGemmGroupSearchState:
    """Make the state of a search that begins at the first group.

    >>> state = utils.create_initial_search_state()
    >>> state.start_group_idx, state.tile_count_searched
    (0, 0)
    """
    return GroupedGemmGroupSearchState(0, 0, 0)


@struct
class GroupedGemmTileSchedulerHelper:
    """The search that turns the linear index of a cluster over all groups into a group and a tile of it.

    The schedule is made for tiles (cluster m, cluster n, total): mode L of its work counts the clusters of all groups,
    as `total_clusters` counts them on the host. Indices must not decrease from call to call. Each thread searches by
    itself; the order within a group is along M first.

    problem_shape_mnkl: in its methods an array or tensor (groups, 4) of 32-bit integers: M, N, K and L = 1 of each
    group.

    >>> sizes = cute.runtime.from_dlpack(np.array([[128, 64, 32, 1], [256, 128, 64, 1]], np.int32))
    >>> params = utils.PersistentTileSchedulerParams((1, 1, 5), (1, 1, 1))
    >>> def kernel(sizes):
    ...     state = utils.create_initial_search_state()
    ...     helper = utils.GroupedGemmTileSchedulerHelper(2, params, (128, 64, 32), state)
    ...     found = helper.delinearize_z((0, 0, 3), sizes)
    ...     print(found.group_idx, found.cta_tile_idx_m, found.cta_tile_idx_n, found.cta_tile_count_k)
    >>> cute.simulate(kernel)[1, 1](sizes)
    1 0 1 2
    """

    group_count: int
    tile_sched_params: PersistentTileSchedulerParams
    cluster_tile_shape_mnk: tuple[int, int, int]
    search_state: GroupedGemmGroupSearchState

    @traced
    def clusters_of(self, m: Int, n: Int) -> tuple[Any, Any]:
        """Count the clusters of a problem along M and N, of `m` and `n` elements."""
        tile_m, tile_n, _ = self.cluster_tile_shape_mnk
        return quotient(m + (tile_m - 1), tile_m), quotient(n + (tile_n - 1), tile_n)

    @traced
    def tiles_k(self, k: Int) -> Any:
        """Count the tiles of a problem along K, of `k` elements."""
        tile_k = self.cluster_tile_shape_mnk[2]
        return quotient(k + (tile_k - 1), tile_k)

    @traced
    def cta_tile(self, index: Int, cta_m: Int, cta_n: Int, clusters_m: Int) -> tuple[Any, Any]:
        """Return the tile (m, n) of the CTA at (cta_m, cta_n) of the `index`-th cluster of its group, which has
        `clusters_m` clusters along M."""
        cm, cn, _ = self.tile_sched_params.cluster_shape_mnk
        at = dtypes.Uint32(index)  # behind the last tile there is none, and what is said of it nobody reads
        m, n = dtypes.Int32(remainder(at, clusters_m)), dtypes.Int32(quotient(at, clusters_m))
        return m * cm + cta_m, n * cn + cta_n

    def find_group(self, index: Int, problem_shape_mnkl: Any) -> Any:
        """Go on to the group that holds the `index`-th cluster, the last one at most, and return its number.
        problem_shape_mnkl: as for the class."""
        state = self.search_state
        while state.tile_count_searched <= index and state.start_group_idx < self.group_count:
            group = state.start_group_idx
            m, n = self.clusters_of(Int32(problem_shape_mnkl[group, 0]), Int32(problem_shape_mnkl[group, 1]))
            state.tile_count_prev_group = state.tile_count_searched
            state.tile_count_searched += m * n
            state.start_group_idx = group + 1
        return state.start_group_idx - 1

    def delinearize_z(self, cta_tile_coord: tuple[Int, Int, Int], problem_shape_mnkl: Any) -> GroupSearchResult:
        """Return the GroupSearchResult of `cta_tile_coord`, a work tile's `tile_idx`. problem_shape_mnkl: as for the
        class."""
        cta_m, cta_n, index = cta_tile_coord
        group = self.find_group(index, problem_shape_mnkl)
        m, n, k = (
            Int32(problem_shape_mnkl[group, 0]),
            Int32(problem_shape_mnkl[group, 1]),
            Int32(problem_shape_mnkl[group, 2]),
        )
        clusters_m, _ = self.clusters_of(m, n)
        tile_m, tile_n = self.cta_tile(index - self.search_state.tile_count_prev_group, cta_m, cta_n, clusters_m)
        return GroupSearchResult(group, tile_m, tile_n, m, n, k, self.tiles_k(k))

    def search_cluster_tile_count_k(
        self, cta_tile_coord: tuple[Int, Int, Int], problem_shape_mnkl: Any
    ) -> tuple[Any, Any]:
        """Return (tiles along K, group) of `cta_tile_coord`, a work tile's `tile_idx`: for warps that need no more.
        problem_shape_mnkl: as for the class."""
        group = self.find_group(cta_tile_coord[2], problem_shape_mnkl)
        return self.tiles_k(Int32(problem_shape_mnkl[group, 2])), group


def total_clusters(
    problem_sizes_mnkl: Sequence[tuple[Any, Any, Any, Any]], cluster_tile_shape_mnk: tuple[int, int, int]
) -> int:
    """Count the clusters of all groups, on the host: mode L of a grouped schedule's PersistentTileSchedulerParams.

    problem_sizes_mnkl: the sizes (M, N, K, L) of each group. cluster_tile_shape_mnk: a cluster's tile.

    >>> utils.total_clusters([(256, 256, 64, 1), (128, 128, 64, 1)], (128, 128, 64))
    5
    """
    tile_m, tile_n, _ = cluster_tile_shape_mnk
    return sum(-(-int(m) // tile_m) * -(-int(n) // tile_n) for m, n, *_ in problem_sizes_mnkl)


@frozen
class GroupedWorkTileInfo:
    """A piece of work of many problems: `tile_idx` (m, n, l) of the schedule, whether it is one (`is_valid_tile`), and
    where it lies in its group, `group_search_result`, a GroupSearchResult.

    >>> sizes = cute.runtime.from_dlpack(np.array([[128, 64, 32, 1], [256, 128, 64, 1]], np.int32))
    >>> params = utils.PersistentTileSchedulerParams((1, 1, 5), (1, 1, 1))
    >>> def kernel(sizes):
    ...     create, state = utils.StaticPersistentGroupTileScheduler.create, utils.create_initial_search_state()
    ...     scheduler = create(params, arch.block_idx(), arch.grid_dim(), (128, 64, 32), state, 2, sizes)
    ...     work = scheduler.initial_work_tile_info()
    ...     while work.is_valid_tile:
    ...         found = work.group_search_result
    ...         print(found.group_idx, found.cta_tile_idx_m, found.cta_tile_idx_n)
    ...         scheduler.advance_to_next_work()
    ...         work = scheduler.get_current_work()
    >>> cute.simulate(kernel)[1, 1](sizes)
    0 0 0
    1 0 0
    1 1 0
    1 0 1
    1 1 1
    """

    tile_idx: Any
    is_valid_tile: Any
    group_search_result: Any


@struct
class StaticPersistentGroupTileScheduler(StaticPersistentTileScheduler):
    """A static schedule over the tiles of many problems, that knows the group of each. `create` makes one for each warp
    that follows it.

    >>> sizes = cute.runtime.from_dlpack(np.array([[128, 64, 32, 1], [256, 128, 64, 1]], np.int32))
    >>> params = utils.PersistentTileSchedulerParams((1, 1, 5), (1, 1, 1))
    >>> def kernel(sizes):
    ...     create, state = utils.StaticPersistentGroupTileScheduler.create, utils.create_initial_search_state()
    ...     scheduler = create(params, arch.block_idx(), arch.grid_dim(), (128, 64, 32), state, 2, sizes)
    ...     work = scheduler.initial_work_tile_info()
    ...     while work.is_valid_tile:
    ...         found = work.group_search_result
    ...         print(found.group_idx, found.cta_tile_idx_m, found.cta_tile_idx_n)
    ...         scheduler.advance_to_next_work()
    ...         work = scheduler.get_current_work()
    >>> cute.simulate(kernel)[1, 1](sizes)
    0 0 0
    1 0 0
    1 1 0
    1 0 1
    1 1 1
    """

    helper: GroupedGemmTileSchedulerHelper
    problem_shape_mnkl: Tensor

    @staticmethod
    @traced
    def create(  # type: ignore[override]  # it has more parameters
        params: PersistentTileSchedulerParams,
        block_idx: tuple[Int, Int, Int],
        grid_dim: tuple[Int, Int, Int],
        cluster_tile_shape_mnk: tuple[int, int, int],
        initial_search_state: GroupedGemmGroupSearchState,
        group_count: Any,
        problem_shape_mnkl: Any,
    ) -> StaticPersistentGroupTileScheduler:
        """Make the scheduler of this CTA. params: as for `GroupedGemmTileSchedulerHelper`; where the device alone knows
        the sizes, mode L is at least the clusters of all groups, and what is beyond them is no valid tile. block_idx,
        grid_dim: as in `StaticPersistentTileScheduler.create`. cluster_tile_shape_mnk: a cluster's tile.
        initial_search_state: `create_initial_search_state()`. group_count: groups, at least 1. problem_shape_mnkl: a
        tensor or contiguous array (groups, 4) of 32-bit integers: M, N, K and L = 1 of each group. Raises CuteError for
        others."""
        what = "StaticPersistentGroupTileScheduler"
        check_params(what, params, PersistentTileSchedulerParams)
        ok = isinstance(cluster_tile_shape_mnk, tuple) and len(cluster_tile_shape_mnk) == 3
        if not ok or not all(type(x) is int for x in cluster_tile_shape_mnk):
            raise CuteError(
                f"{what}: cluster_tile_shape_mnk {cluster_tile_shape_mnk!r} must be static, (M, N, K)"
                f"{how_static(cluster_tile_shape_mnk)}"
            )
        sizes = problem_shape_mnkl
        if not isinstance(sizes, Tensor):
            sizes = make_tensor(sizes, layout.make_layout((group_count, 4), stride=(4, 1)))
        helper = GroupedGemmTileSchedulerHelper(group_count, params, cluster_tile_shape_mnk, initial_search_state)
        cm, cn, _ = params.cluster_shape_mnk
        x, y, z = (dtypes.Int32(i) for i in block_idx)
        clusters = dtypes.Int32(grid_dim[2])
        at = remainder(x, cm), remainder(y, cn)
        return StaticPersistentGroupTileScheduler(params, clusters, z, *at, 0, helper, sizes)

    @traced
    def _scheduled(self) -> WorkTileInfo:
        return scheduled_work(self)

    def get_current_work(self) -> GroupedWorkTileInfo:  # type: ignore[override]
        """Return the tile to do now, as a GroupedWorkTileInfo. Each thread that follows the schedule."""
        work = self._scheduled()
        found = self.helper.delinearize_z(work.tile_idx, self.problem_shape_mnkl)
        in_groups = self.current_work_linear_idx < self.helper.search_state.tile_count_searched
        return GroupedWorkTileInfo(work.tile_idx, work.is_valid_tile and in_groups, found)

    def initial_work_tile_info(self) -> GroupedWorkTileInfo:  # type: ignore[override]
        """Return the first tile, as a GroupedWorkTileInfo."""
        return self.get_current_work()
