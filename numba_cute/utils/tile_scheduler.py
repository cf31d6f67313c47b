# SPDX-License-Identifier: Apache-2.0
"""Persistent tile schedulers: each cluster of a grid that fills the GPU once works through many output tiles."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..dtypes import Int32
from ..seam import CuteError, Int, current, frozen, quotient, remainder, struct, traced
from ..seam.guards.messages import how_static

__all__ = [
    "PersistentTileSchedulerParams", "StaticPersistentRuntimeTileScheduler", "StaticPersistentTileScheduler",
    "WorkTileInfo",
]  # fmt: skip


@frozen
class WorkTileInfo:
    """One piece of work: the CTA's tile coordinate `tile_idx`, (m, n, l) or nested as a kernel's own scheduler has it,
    and `is_valid_tile`, False where there is no such tile.

    In a cluster the tile may lie beyond the problem's last row or column of tiles: peers still need its copies.

    >>> utils.WorkTileInfo((1, 0, 0), True).tile_idx
    (1, 0, 0)
    """

    tile_idx: Any
    is_valid_tile: Any

    def __post_init__(self) -> None:
        if not isinstance(self.tile_idx, tuple):
            raise CuteError(f"WorkTileInfo: tile_idx {self.tile_idx!r}: give a coordinate, as (m, n, l)")


@frozen
class PersistentTileSchedulerParams:
    """The tiles of a problem and the order in which they are done; made on the host and passed to the kernel.

    problem_shape_ntile_mnl: tiles along M, N and the batch L; each an int (static) or Int32(n) (known at run time, so
    that the kernel need not be compiled again). cluster_shape_mnk: CTAs of a cluster, K being 1. swizzle_size: how many
    clusters along N (along M if `raster_along_m` is False) are done side by side before the order goes on along the
    other mode; groups that share operands in L2. The last group may be narrower.

    >>> params = utils.PersistentTileSchedulerParams((4, 2, 1), (1, 1, 1))
    >>> utils.StaticPersistentTileScheduler.get_grid_shape(params, 3)
    (1, 1, 3)
    """

    problem_shape_ntile_mnl: tuple[Int, Int, Int]
    cluster_shape_mnk: tuple[int, int, int]
    swizzle_size: int = 1
    raster_along_m: bool = True

    def __post_init__(self) -> None:
        name = "PersistentTileSchedulerParams"
        if not isinstance(self.problem_shape_ntile_mnl, tuple) or len(self.problem_shape_ntile_mnl) != 3:
            raise CuteError(f"{name}: problem_shape_ntile_mnl {self.problem_shape_ntile_mnl!r} is not (m, n, l)")
        if any(isinstance(n, int) and n < 1 for n in self.problem_shape_ntile_mnl):
            raise CuteError(f"{name}: problem_shape_ntile_mnl {self.problem_shape_ntile_mnl} has a mode below 1")
        c = self.cluster_shape_mnk
        if not isinstance(c, tuple) or len(c) != 3 or not all(isinstance(x, int) and x > 0 for x in c) or c[2] != 1:
            raise CuteError(
                f"{name}: cluster_shape_mnk {c!r} must be static (m, n, 1), of at least 1 each{how_static(c)}"
            )
        if not isinstance(self.swizzle_size, int) or self.swizzle_size < 1:
            raise CuteError(
                f"{name}: swizzle_size {self.swizzle_size!r} must be a static int of at least 1"
                f"{how_static(self.swizzle_size)}"
            )

    @property
    def problem_shape_ncluster_mnl(self) -> tuple[Any, Any, Any]:
        """The clusters along M, N and L: the tiles divided by the cluster's shape, rounded up."""
        m, n, batch = self.problem_shape_ntile_mnl
        cm, cn, _ = self.cluster_shape_mnk
        return quotient(m + (cm - 1), cm), quotient(n + (cn - 1), cn), batch

    @property
    def num_clusters(self) -> Any:
        """The number of pieces of work."""
        m, n, batch = self.problem_shape_ncluster_mnl
        return m * n * batch

    def get_grid_shape(self, max_active_clusters: int) -> tuple[int, int, int]:
        """Return the grid: a cluster's (m, n), times as many clusters as there is work for, at most
        `max_active_clusters`."""
        if max_active_clusters < 1:
            raise CuteError(f"get_grid_shape: max_active_clusters {max_active_clusters} must be at least 1")
        cm, cn, _ = self.cluster_shape_mnk
        return cm, cn, min(int(self.num_clusters), max_active_clusters)

    def decode(self, index: Int) -> tuple[Any, Any, Any]:
        """Return the cluster coordinate (m, n, l) of the `index`-th piece of work."""
        m, n, batch = self.problem_shape_ncluster_mnl
        layer: Any = 0
        if not (isinstance(batch, int) and batch == 1):
            layer, index = quotient(index, m * n), remainder(index, m * n)
        if self.raster_along_m:
            cn, cm = _grouped(index, n, m, self.swizzle_size)
        else:
            cm, cn = _grouped(index, m, n, self.swizzle_size)
        return cm, cn, layer


def work_at(params: PersistentTileSchedulerParams, index: Int, valid: Any, cta_m: Int, cta_n: Int) -> WorkTileInfo:
    """Return the `index`-th piece of work of the CTA at (cta_m, cta_n) of its cluster, if `valid`."""
    cm, cn, _ = params.cluster_shape_mnk
    at_m, at_n, at_l = params.decode(current().select(valid, index, 0))  # past the end, the last group has no width
    return WorkTileInfo((at_m * cm + cta_m, at_n * cn + cta_n, at_l), valid)


def scheduled_work(scheduler: Any) -> WorkTileInfo:
    """Return the piece of work that a static schedule stands at."""
    valid = current().compare("<", scheduler.current_work_linear_idx, scheduler.params.num_clusters)
    return work_at(scheduler.params, scheduler.current_work_linear_idx, valid, scheduler.cta_m, scheduler.cta_n)


def check_params(what: str, params: Any, kind: type) -> None:
    if not isinstance(params, kind):
        raise CuteError(f"{what}: params {params!r} is not a {kind.__name__}")


def _grouped(index: Any, extent: Any, other: Any, group: int) -> tuple[Any, Any]:
    """(x, y) of the `index`-th place: x runs within groups of `group`, then y over `other`, then the next group."""
    which, rest = quotient(index, other * group), remainder(index, other * group)
    if group == 1:
        return which, rest
    first = which * group
    left = extent - first
    width = min(left, group) if isinstance(left, int) else _least(left, group)
    return first + remainder(rest, width), quotient(rest, width)


def _least(a: Any, b: Any) -> Any:
    ask = current()
    return ask.select(ask.compare("<", a, b), a, b)


@struct
class StaticPersistentTileScheduler:
    """A schedule that gives each cluster its tiles: the first by its place in the grid, then always as many further as
    there are clusters. Each warp that follows it keeps its own; `create` makes one.

    >>> params = utils.PersistentTileSchedulerParams((3, 2, 1), (1, 1, 1))
    >>> def kernel():
    ...     scheduler = utils.StaticPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim())
    ...     work = scheduler.initial_work_tile_info()
    ...     while work.is_valid_tile:
    ...         print(work.tile_idx[0], work.tile_idx[1])
    ...         scheduler.advance_to_next_work()
    ...         work = scheduler.get_current_work()
    >>> cute.simulate(kernel)[1, 1]()
    0 0
    1 0
    2 0
    0 1
    1 1
    2 1
    """

    params: PersistentTileSchedulerParams
    num_persistent_clusters: Int32
    current_work_linear_idx: Int32
    cta_m: Int32
    cta_n: Int32
    num_tiles_executed: Int32

    @staticmethod
    @traced
    def create(
        params: PersistentTileSchedulerParams, block_idx: tuple[Int, Int, Int], grid_dim: tuple[Int, Int, Int]
    ) -> StaticPersistentTileScheduler:
        """Make the scheduler of this CTA. params: a PersistentTileSchedulerParams. block_idx, grid_dim:
        `arch.block_idx()` and `arch.grid_dim()` of a grid of the shape that `params.get_grid_shape` gives."""
        check_params("StaticPersistentTileScheduler", params, PersistentTileSchedulerParams)
        cm, cn, _ = params.cluster_shape_mnk
        x, y, z = (dtypes.Int32(i) for i in block_idx)
        clusters = dtypes.Int32(grid_dim[2])
        return StaticPersistentTileScheduler(params, clusters, z, remainder(x, cm), remainder(y, cn), 0)

    @staticmethod
    def get_grid_shape(params: PersistentTileSchedulerParams, max_active_clusters: int) -> tuple[int, int, int]:
        """Return `params.get_grid_shape(max_active_clusters)`, the grid to launch. On the host."""
        check_params("get_grid_shape", params, PersistentTileSchedulerParams)
        return params.get_grid_shape(max_active_clusters)

    @traced
    def get_current_work(self) -> WorkTileInfo:
        """Return the tile to do now, as a WorkTileInfo."""
        return scheduled_work(self)

    @traced
    def initial_work_tile_info(self) -> WorkTileInfo:
        """Return the first tile, as a WorkTileInfo."""
        return self.get_current_work()

    @traced
    def advance_to_next_work(self, *, advance_count: Int = 1) -> None:
        """Go on to the next tile, or to the `advance_count`-th from here."""
        self.current_work_linear_idx = self.current_work_linear_idx + self.num_persistent_clusters * advance_count
        self.num_tiles_executed = self.num_tiles_executed + 1


@struct
class StaticPersistentRuntimeTileScheduler(StaticPersistentTileScheduler):
    """A schedule whose end only the kernel knows: `is_valid_tile` is always True, and the cluster's coordinate is not
    limited along the mode that is not `inner_mode`; the kernel maps it to its problem, or stops.

    inner_mode: the mode (0: M, 1: N) that the linear index runs through first, as wide as `params` says. tile_idx is
    then the coordinate of the cluster, and not of the CTA in it.

    >>> params = utils.PersistentTileSchedulerParams((2, 2, 1), (1, 1, 1))
    >>> def kernel():
    ...     create = utils.StaticPersistentRuntimeTileScheduler.create
    ...     scheduler = create(params, arch.block_idx(), arch.grid_dim(), 1)
    ...     for _ in range(3):
    ...         work = scheduler.get_current_work()
    ...         print(work.tile_idx[0], work.tile_idx[1], work.is_valid_tile)
    ...         scheduler.advance_to_next_work()
    >>> cute.simulate(kernel)[1, 1]()
    0 0 True
    0 1 True
    1 0 True
    """

    inner_mode: int = 1

    @staticmethod
    @traced
    def create(
        params: PersistentTileSchedulerParams,
        block_idx: tuple[Int, Int, Int],
        grid_dim: tuple[Int, Int, Int],
        inner_mode: int = 1,
    ) -> StaticPersistentRuntimeTileScheduler:
        """Make the scheduler of this CTA. params, block_idx, grid_dim: as in `StaticPersistentTileScheduler.create`.
        inner_mode: 0 (M) or 1 (N), as for the class."""
        check_params("StaticPersistentRuntimeTileScheduler", params, PersistentTileSchedulerParams)
        if inner_mode not in (0, 1):
            raise CuteError(f"StaticPersistentRuntimeTileScheduler: inner_mode {inner_mode!r} must be 0 (M) or 1 (N)")
        cm, cn, _ = params.cluster_shape_mnk
        x, y, z = (dtypes.Int32(i) for i in block_idx)
        clusters = dtypes.Int32(grid_dim[2])
        at = remainder(x, cm), remainder(y, cn)
        return StaticPersistentRuntimeTileScheduler(params, clusters, z, *at, 0, inner_mode)

    @traced
    def get_current_work(self) -> WorkTileInfo:
        """Return the cluster to do now, as a WorkTileInfo that is always valid."""
        m, n, _ = self.params.problem_shape_ncluster_mnl
        index = self.current_work_linear_idx
        along = n if self.inner_mode == 1 else m
        which, rest = quotient(index, along), remainder(index, along)
        at = (which, rest, 0) if self.inner_mode == 1 else (rest, which, 0)
        return WorkTileInfo(at, True)

    @traced
    def initial_work_tile_info(self) -> WorkTileInfo:
        """Return the first cluster, as a WorkTileInfo."""
        return self.get_current_work()
