# SPDX-License-Identifier: Apache-2.0
"""A cluster as `cta_layout_vmnk` numbers its CTAs: whose copies reach whom, and who leads a pair.

The layout maps a CTA's coordinate (V, M, N, K) to its rank, in whatever order: nothing here supposes compact strides.
V counts the CTAs that multiply together. A's tile is one for all CTAs of the same m, to which it is multicast (they
lie along N); B's is one for all of the same n.
"""

from __future__ import annotations

from typing import Any

from .. import dtypes, layout
from ..isa.rows.special import sreg_cluster
from ..layout import Layout
from ..seam import CuteError, current, is_static
from ..seam.ground.records import dataclass
from ..seam.guards.messages import how_static
from .known import check_cluster, cluster_size

V, M, N = 0, 1, 2


@dataclass(frozen=True)
class Cluster:
    """The CTAs of a cluster along each mode, v, m and n. Make one with `cluster_of`."""

    layout: Layout
    v: int
    m: int
    n: int

    @property
    def size(self) -> int:
        return self.v * self.m * self.n

    def reached(self, modes: tuple[int, int]) -> int:
        """Count the CTAs (pairs, where two multiply together) that the copies of one reach, itself included: those of A
        if `modes[0]`, those of B if `modes[1]`."""
        return (self.n if modes[0] else 1) + (self.m if modes[1] else 1) - 1

    def sharing(self, modes: tuple[int, int], pairs: bool) -> Any:
        """Return the ranks, a bit each, of the CTAs that copies of this one reach or come from.

        modes: as for `reached`. pairs: both CTAs of each pair, and not only those of this one's v.
        """
        mine = cluster_rank() - self.part(V) if pairs else cluster_rank()
        v = (V,) if pairs else ()
        # Counted from the first CTA that shares, and not by adding up the other coordinates: of a cluster along one
        # mode the compiler would then know the mask, and compare lanes again in the loop that releases.
        a = self._bits(*v, N) << (mine - self.part(N)) if modes[0] else 0
        b = self._bits(*v, M) << (mine - self.part(M)) if modes[1] else 0
        return b if not modes[0] else a if not modes[1] else a | b

    def leads(self) -> Any:
        """Return whether this CTA is the first of those that multiply together."""
        return True if self.v == 1 else current().compare("==", self.part(V), 0)

    def leader(self) -> Any:
        """Return the rank of the first CTA of those that multiply together with this one."""
        return cluster_rank() - self.part(V)

    def together(self) -> Any:
        """Return the ranks, a bit each, of the CTAs that multiply together with this one."""
        return self._bits(V) << self.leader()

    def part(self, mode: int) -> Any:
        """Return what this CTA's coordinate along a mode adds to its rank."""
        if (self.v, self.m, self.n)[mode] == 1:
            return dtypes.Int32(0)
        return dtypes.Int32(self.layout[mode](self.layout.get_hier_coord(cluster_rank())[mode]))

    def _bits(self, *modes: int) -> Any:
        """The ranks, a bit each, of the CTAs along some modes through the one of rank 0."""
        ranks = {0}
        for mode in (self.layout[i] for i in modes):
            ranks = {r + mode(i) for r in ranks for i in range(layout.size(mode))}
        return dtypes.Int32(sum(1 << r for r in ranks))


def cluster_of(what: str, cta_layout_vmnk: Layout | None, pairs: bool = False) -> Cluster:
    """Return the cluster of a layout, or that of a single CTA for None; refuse anything else.

    pairs: whether the matrix unit takes part, which knows pairs of CTAs of the ranks 2i and 2i + 1 alone.
    """
    if cta_layout_vmnk is None:
        return Cluster(layout.make_layout((1, 1, 1, 1)), 1, 1, 1)
    check_cluster(what, "cta_layout_vmnk", cta_layout_vmnk)
    shape = getattr(cta_layout_vmnk, "shape", None)
    if not isinstance(cta_layout_vmnk, Layout) or not isinstance(shape, tuple) or len(shape) != 4:
        raise CuteError(
            f"{what}: cta_layout_vmnk {cta_layout_vmnk} needs four modes (V, M, N, K), as in "
            "make_layout((1, *cluster_shape_mnk))"
        )
    v, m, n, k = (cluster_size(extent) for extent in shape)
    if k != 1:
        raise CuteError(f"{what}: cta_layout_vmnk {cta_layout_vmnk}: mode K is {k}, and must be 1")
    size = v * m * n
    ranks = [cta_layout_vmnk(i) for i in range(size)] if is_static(cta_layout_vmnk.stride) else []
    if sorted(ranks) != list(range(size)):
        raise CuteError(
            f"{what}: cta_layout_vmnk {cta_layout_vmnk} must give each of the {size} CTAs a rank of its own, 0 to "
            f"{size - 1}" + (f", and gives {', '.join(map(str, ranks))}" if ranks else ": its strides must be static")
        )
    if pairs and v > 2:
        raise CuteError(f"{what}: cta_layout_vmnk {cta_layout_vmnk}: mode V is {v} and must be 1 or 2")
    if pairs and v == 2 and cta_layout_vmnk(1) != 1:
        raise CuteError(
            f"{what}: cta_layout_vmnk {cta_layout_vmnk}: the stride of mode V is {cta_layout_vmnk(1)} and must be 1: "
            "the matrix unit pairs the CTAs of ranks 2i and 2i + 1"
        )
    return Cluster(cta_layout_vmnk, v, m, n)


def check_modes(what: str, mcast_mode_mn: Any) -> None:
    """Refuse `mcast_mode_mn` unless it says of A and of B whether it is multicast, and one of them is."""
    modes = mcast_mode_mn if isinstance(mcast_mode_mn, tuple) else ()
    if len(modes) != 2 or not all(isinstance(x, int) and x in (0, 1) for x in modes):
        raise CuteError(
            f"{what}: mcast_mode_mn {mcast_mode_mn!r} must be two static numbers, each 0 or 1"
            f"{how_static(mcast_mode_mn)}"
        )
    if not any(modes):
        raise CuteError(
            f"{what}: mcast_mode_mn {mcast_mode_mn!r} multicasts nothing: (1, 0) for A alone, to the CTAs of the same "
            "m, (0, 1) for B alone, to those of the same n, or (1, 1); without a cluster leave it out"
        )


def cluster_rank() -> Any:
    """Return this CTA's rank in its cluster."""
    return dtypes.Int32(sreg_cluster(register="cluster_ctarank"))
