# SPDX-License-Identifier: Apache-2.0
"""Groups that lie one after the other along a mode of one problem (a grouped GEMM of tokens sorted by expert): the
group and the place of each tile."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..dtypes import Int32
from ..layout import make_layout
from ..seam import CuteError, Int, current, frozen, quotient, struct, traced
from ..seam.guards.messages import how_static
from ..tensor.tensor import Tensor, make_rmem_tensor, make_tensor

__all__ = [
    "ContiguousGroupSearchState", "ContiguousGroupWorkTileInfo", "contiguous_group_search",
    "create_initial_contiguous_group_search_state", "make_contiguous_group_work_tile_info",
]  # fmt: skip


@struct
class ContiguousGroupSearchState:
    """The state of a search: the group of the tile searched last, counted from 1 (one more than there are: it is beyond
    them), where the tile begins along the searched mode, and where its group ends."""

    cur_group_idx: Int32
    cur_start: Int32
    cur_boundary: Int32


@frozen
class ContiguousGroupWorkTileInfo:
    """A CTA's tile: its place along M in tiles (`cta_coord_m`), where it begins along N in elements (`coord_n`), its
    group (`group_idx`), the elements from there to the group's end (`distance_to_boundary`), and whether it is one
    (`is_valid_tile`)."""

    cta_coord_m: Any
    coord_n: Any
    group_idx: Any
    distance_to_boundary: Any
    is_valid_tile: Any


@traced
def create_initial_contiguous_group_search_state() -> ContiguousGroupSearchState:
    """Make the state of a search that has not begun."""
    return ContiguousGroupSearchState(0, 0, 0)


@traced
def contiguous_group_search(
    cluster_tile_shape_mnk: tuple[int, int, int], group_count: Int, cluster_tile_coord: Int,
    search_state: ContiguousGroupSearchState, cumsum: Any, mode_idx: int = 1,
) -> ContiguousGroupSearchState:  # fmt: skip
    """Find the group of a cluster's tile, and where in the problem it begins: in `search_state`, which is returned.

    cluster_tile_shape_mnk: a cluster's tile. group_count: groups. cluster_tile_coord: the tile's number along the mode,
    counted over all groups, each of whole tiles. cumsum: an array or tensor of group_count + 1 integers, where each
    group begins and the last one ends. mode_idx: the mode, 0 (M) or 1 (N). Each thread searches by itself. Raises
    CuteError for other tiles."""
    ok = isinstance(cluster_tile_shape_mnk, tuple) and len(cluster_tile_shape_mnk) == 3 and mode_idx in (0, 1)
    if not ok or type(cluster_tile_shape_mnk[mode_idx]) is not int:
        raise CuteError(
            f"contiguous_group_search: cluster_tile_shape_mnk {cluster_tile_shape_mnk!r} must be static, (M, N, K), "
            f"and mode_idx {mode_idx!r} 0 or 1"
            f"{how_static(cluster_tile_shape_mnk)}"
        )
    offsets = cumsum if isinstance(cumsum, Tensor) else make_tensor(cumsum, make_layout(group_count + 1))
    b, tile = current(), cluster_tile_shape_mnk[mode_idx]
    state, index = search_state, dtypes.Int32(cluster_tile_coord)
    state.cur_group_idx = dtypes.Int32(group_count) + 1
    state.cur_start, state.cur_boundary = dtypes.Int32(0), dtypes.Int32(0)
    seen = make_rmem_tensor(1, Int32)  # the tiles of the groups before
    seen[0] = Int32(0)

    def look(group: Any) -> None:
        begin, end = (dtypes.Int32(offsets[group + i]) for i in (0, 1))
        before = dtypes.Int32(seen[0])
        after = before + quotient(end - begin + (tile - 1), tile)

        def found() -> None:
            state.cur_group_idx = dtypes.Int32(group) + 1
            state.cur_start = begin + (index - before) * tile
            state.cur_boundary = end

        inside = b.compare("<", index, after)
        b.when(inside, lambda: b.when(b.compare(">=", index, before), found))
        seen[0] = after

    b.loop(0, group_count, look)
    return state


@traced
def make_contiguous_group_work_tile_info(group_count: Int, tile_info: Tensor) -> ContiguousGroupWorkTileInfo:
    """Read a CTA's tile as a scheduling warp wrote it: a ContiguousGroupWorkTileInfo.

    group_count: groups. tile_info: four Int32: the tile along M, where it begins along N, the group, and the elements
    from there to the group's end. Any thread, which has waited for it."""
    m, n, group, distance = (dtypes.Int32(tile_info[i]) for i in range(4))
    return ContiguousGroupWorkTileInfo(m, n, group, distance, current().compare("<", group, group_count))
