# SPDX-License-Identifier: Apache-2.0
"""Facts about a launch that are known while a kernel is compiled or simulated, and the checks that need them."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, Int, Leaf, current_or
from ..seam.guards.messages import how_static
from .group import MAX_CLUSTER, Agent, CooperativeGroup, counted, known_arrivals


def known_cluster() -> int | None:
    """Count the CTAs of a cluster of this kernel, where that is known."""
    known = getattr(current_or(None), "known_launch", None)
    shape = None if known is None else known()[0]
    return None if shape is None else shape[0] * shape[1] * shape[2]


def known_threads() -> int | None:
    """Return the most threads that a CTA of this kernel has, where that is known."""
    known = getattr(current_or(None), "known_launch", None)
    return None if known is None else known()[1]


def check_cluster(what: str, argument: str, shape: Any) -> None:
    """Refuse a `shape` that is another cluster than the kernel's, where that is known."""
    have = known_cluster()
    if shape is None or have is None:
        return
    size = cluster_size(shape)
    if size != have:
        product = " * ".join(map(str, current_or(None).known_launch()[0]))
        raise CuteError(
            f"{what}: {argument} {shape} has {size} CTAs, but the kernel's clusters have {product} = {have}: its masks "
            "would name CTAs outside the cluster"
            if size > have
            else f"{what}: {argument} {shape} has {size} CTAs, but the kernel's clusters have {product} = {have}"
        )


def check_arrivals(what: str, side: str, group: Any, each: int, ctas: int, unit: str, times: int = 1) -> None:
    """Refuse a phase that needs more arrivals than there are units that arrive once each.

    each: threads of a unit (1, or 32 for a warp). ctas: how many CTAs' units arrive. times: how many such groups there
    are, which all arrive at different phases.
    """
    threads, wanted = known_threads(), known_arrivals(group)
    if wanted is None:
        _check_blocks(what, side, group, ctas)
        return
    if threads is None:
        return
    most = threads // each * ctas
    if wanted * times > most:
        units = f"{threads} threads" if each == 1 else f"{threads} / {each} = {threads // each} {unit}s"
        raise CuteError(
            f"{what}: {counted(side, group)}"
            + (f" * {times} groups = {wanted * times}" if times > 1 else "")
            + f" arrivals never occur: a block has {units}"
            + (f", and {ctas} CTAs arrive, {most} arrivals in all" if ctas > 1 else "")
        )


def _check_blocks(what: str, side: str, group: CooperativeGroup, ctas: int) -> None:
    """The same for a group that is counted in CTAs or clusters."""
    each = {Agent.ThreadBlock: 1, Agent.ThreadBlockCluster: known_cluster()}.get(group.agent)
    if each is None or isinstance(group.size, Leaf):
        return
    if group.size * each > ctas:
        raise CuteError(
            f"{what}: {counted(side, group)}: the threads of {group.size * each} CTAs are waited for: {ctas} arrive"
        )


def check_elected(what: str, side: str, group: Any, remedy: str = "") -> None:
    """Refuse a group whose warps arrive with one elected lane but that counts anything but these lanes. remedy:
    another one."""
    if not isinstance(group, CooperativeGroup):
        return
    if group.agent is not Agent.Thread:
        warps = group.size if group.agent is Agent.Warp else "how many warps"
        raise CuteError(
            f"{what}: {counted(side, group)} arrivals never occur: one lane of each warp arrives here: "
            f"CooperativeGroup(Agent.Thread, {warps}){remedy}"
        )


def check_ranks(what: str, **ranks: Any) -> None:
    """Refuse a static rank outside of the cluster, or of every cluster if the kernel's is not known."""
    have = known_cluster()
    for name, rank in ranks.items():
        if isinstance(rank, int) and not 0 <= rank < (have or MAX_CLUSTER):
            whose = f"the kernel's clusters have {have} CTA{'s' * (have != 1)}" if have else "a cluster has at most 16"
            raise CuteError(
                f"{what}: {name} {rank} is outside the cluster: it is the rank of one CTA, 0 to "
                f"{(have or MAX_CLUSTER) - 1} ({whose})"
            )


def check_mask(what: str, mask: Int | None) -> None:
    """Refuse a static mask that names no CTA, or one outside of the cluster."""
    if not isinstance(mask, int):
        return
    if not 0 < mask < 1 << MAX_CLUSTER:
        raise CuteError(f"{what}: mask {mask:#x} must name 1 to {MAX_CLUSTER} CTAs: 1 to 0xffff")
    have = known_cluster()
    if have is not None and mask >> have:
        ranks = [i for i in range(MAX_CLUSTER) if mask >> i & 1]
        raise CuteError(
            f"{what}: mask {mask:#x} names CTAs {', '.join(map(str, ranks))}, but the kernel's clusters have {have}: "
            f"1 to {(1 << have) - 1:#x}"
        )


def cluster_size(shape: Any) -> int:
    """Count the CTAs of a cluster of this shape: None, an int, a tuple, or a layout."""
    if shape is None:
        return 1
    if hasattr(shape, "shape"):
        shape = shape.shape
    size = 1
    for extent in shape if isinstance(shape, tuple) else (shape,):
        size *= cluster_size(extent) if isinstance(extent, tuple) else extent
    if not isinstance(size, int) or not 1 <= size <= MAX_CLUSTER:
        raise CuteError(
            f"cluster shape {shape!r}: its size {size!r} must be static and 1 to {MAX_CLUSTER} CTAs{how_static(size)}"
        )
    return size
