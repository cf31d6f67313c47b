# SPDX-License-Identifier: Apache-2.0
"""Refuse what exceeds a target's limits, in the same words while a kernel is compiled and simulated."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...seam import CuteError
from .targets import LARGEST_CLUSTER, Target, named

_ALIGNED = 1024
"""The alignment of dynamic shared memory, in bytes: static memory, which comes first, is padded to it."""
_PARTITIONS, _WARP, _WARPGROUP = 4, 32, 128
_STEP, _SMEM_UNIT = 8, 128
"""The units in which the registers of a thread, and the bytes of a CTA's shared memory, are given out."""
_FEWEST = 24
"""The fewest registers of a thread that setmaxnreg asks for."""


class LaunchWarning(UserWarning):
    """A launch is given other than what was asked, so that it is right.

    >>> issubclass(cute.LaunchWarning, UserWarning)
    True
    """


def enough_smem(given: int, need: int) -> int:
    """Return the bytes of dynamic shared memory of a launch that is given some, 0 to have it computed, and whose kernel
    allocates `need`: with a LaunchWarning where these are more."""
    if 0 < given < need:
        warnings.warn(
            f"smem={given}: the kernel's allocations take {need} bytes of dynamic shared memory, and it is launched "
            f"with these; pass smem={need}, or 0 to have it computed", LaunchWarning, stacklevel=2,
        )  # fmt: skip
    return max(given, need)


def taken_smem(dynamic: int, static: int) -> int:
    """Return the bytes that a CTA takes of `dynamic` and `static` shared memory together."""
    return -(-static // _ALIGNED) * _ALIGNED + dynamic if dynamic else static


def too_much_smem(target: Target, dynamic: int, static: int) -> str | None:
    """Write the message for more shared memory than a CTA of the target has; None if it has as much."""
    if static > target.smem_static:
        return (
            f"shared memory: {static} bytes static (cuda.shared.array, alloc_smem) exceed the {target.smem_static} "
            f"bytes of a CTA on {target.name}, which has {target.smem_per_block} with dynamic ones: use SmemAllocator"
        )
    if taken_smem(dynamic, static) > target.smem_per_block:
        return (
            f"shared memory: {dynamic} bytes dynamic and {static} static exceed the {target.smem_per_block} bytes of a "
            f"CTA on {target.name}; use fewer stages or smaller tiles"
        )
    return None


def check_smem(target: Target, dynamic: int, static: int = 0) -> None:
    """Raise a CuteError if a CTA of the target has not so much shared memory."""
    said = too_much_smem(target, dynamic, static)
    if said is not None:
        raise CuteError(said)


def check_block(target: Target, block: Sequence[int], bounds: Any = None) -> None:
    """Raise a CuteError if the target has no such block. bounds: the kernel's `launch_bounds`, None for none."""
    _check_extents(target, "block", block, target.block)
    threads = math.prod(block)
    if threads > target.threads_per_block:
        raise CuteError(
            f"block {tuple(block)}: {threads} threads exceed the {target.threads_per_block} of a CTA on {target.name}"
        )
    most, exact = threads_of(bounds), getattr(bounds, "block", None)
    if exact is not None and (*block, 1, 1)[:3] != exact:
        raise CuteError(
            f"block {tuple(block)}: the kernel is compiled for blocks of {exact} alone, as `.launch(block={exact})` "
            "asked for; launch such blocks, or give `.launch` max_number_threads too"
        )
    if most is not None and threads > most:
        raise CuteError(
            f"block {tuple(block)}: {threads} threads exceed the {most} for which the kernel is compiled "
            f"(launch_bounds={bounds!r}); raise these, or launch smaller blocks"
        )


def check_grid(target: Target, grid: Sequence[int]) -> None:
    """Raise a CuteError if the target has no such grid."""
    _check_extents(target, "grid", grid, target.grid)


def _check_extents(target: Target, what: str, extents: Sequence[int], most: Sequence[int]) -> None:
    if any(n > m for n, m in zip(extents, most)):
        raise CuteError(f"{what} {tuple(extents)}: {target.name} takes at most {tuple(most)} along x, y and z")


def check_cluster(target: Target, cluster: Sequence[int]) -> None:
    """Raise a CuteError if the target has no such clusters: of one CTA all have."""
    ctas = math.prod(cluster)
    if ctas <= target.cluster_size:
        return
    if target.cluster_size == 1:
        raise CuteError(
            f"cluster {tuple(cluster)}: {target.name} has no clusters; launch without, or use sm_90 or later"
        )
    raise CuteError(f"cluster {tuple(cluster)}: {ctas} CTAs exceed the {target.cluster_size} of {target.name}")


def check_any_cluster(cluster: Sequence[int]) -> None:
    """Raise a CuteError if no target has such clusters."""
    ctas = math.prod(cluster)
    if ctas > LARGEST_CLUSTER:
        raise CuteError(f"cluster={tuple(cluster)!r}: {ctas} CTAs; the hardware has at most {LARGEST_CLUSTER}")


def check_fallback(cluster: Sequence[int], fallback: Sequence[int]) -> None:
    """Raise a CuteError if clusters of the shape `cluster` cannot stand for whole ones of the shape `fallback`."""
    if any(p % f for p, f in zip(cluster, fallback)):
        raise CuteError(
            f"launch: cluster {cluster} is not a multiple of fallback_cluster {fallback} along each axis: the driver "
            "makes one preferred cluster in the place of whole others"
        )


def check_launch(
    target: Target, options: Any, *, grid: Any, block: Any, cluster: Any = None, smem: int = 0,
    cooperative: bool = False, fallback_cluster: Any = None,
) -> None:  # fmt: skip
    """Raise a CuteError if the target has no such launch of a kernel. options: those of its `cuda.jit`. grid, block,
    cluster, fallback_cluster: an int or up to three. smem: bytes of dynamic shared memory. cooperative: all CTAs run at
    once. Where there is a fallback, clusters that the target has not are never made."""
    check_grid(target, _extents(grid))
    check_block(target, _extents(block), options.get("launch_bounds"))
    check_cluster(target, _extents(fallback_cluster or cluster or 1))
    check_options(target, options)
    check_smem(target, smem)
    if cooperative:
        check_cooperative(target, grid, block, smem)


def threads_in(block: Any) -> int:
    """Count the threads of a block, an int or up to three."""
    return math.prod(_extents(block))


def _extents(given: Any) -> tuple[int, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


# ---------------------------------------------------------------- CTAs at once


def blocks_on_sm(target: Target, threads: int, smem: int = 0, registers: int = 0) -> tuple[int, str]:
    """Return how many CTAs an SM holds at once, and why it holds no more (cuda_occupancy.h). threads, smem: of a CTA.
    registers: of a thread, 0 if they are not known."""
    warps = -(-threads // _WARP)
    taken = -(-(smem + target.smem_reserved) // _SMEM_UNIT) * _SMEM_UNIT
    room = {
        f"each has {threads} threads": target.threads_per_sm // (warps * _WARP),
        "an SM takes no more": target.blocks_per_sm,
        f"each has {smem} bytes of shared memory": target.smem_per_sm // taken,
    }
    if registers:
        of_warp = -(-registers // _STEP) * _STEP * _WARP
        whole = target.registers_per_sm // _PARTITIONS // of_warp * _PARTITIONS
        room[f"each has {registers} registers a thread"] = whole // warps
    least = min(room, key=lambda what: room[what])
    return room[least], least


def ctas_at_once(target: Target, threads: int, smem: int = 0, registers: int = 0) -> tuple[int, str] | None:
    """Return how many CTAs the largest known GPU of a target holds at once, and why no more; None if none is known.
    threads, smem: of a CTA. registers: of a thread, 0 if they are not known."""
    if not target.products:
        return None
    gpu = max(target.products, key=lambda p: p.sms)
    each, why = blocks_on_sm(target, threads, smem, registers)
    return each * gpu.sms, f"{each} on each of the {gpu.sms} SMs of {gpu.name}, since {why}"


class NoRoomAtOnce(CuteError):
    """A cooperative launch of more CTAs than a GPU holds at once."""


def check_cooperative(target: Target, grid: Any, block: Any, smem: int = 0, registers: int = 0) -> None:
    """Raise a NoRoomAtOnce if no known GPU of the target holds all CTAs of a grid at once. grid, block: an int or up to
    three. smem: bytes of a CTA, static ones too. registers: of a thread, 0 if they are not known."""
    ctas, room = math.prod(_extents(grid)), ctas_at_once(target, threads_in(block), smem, registers)
    if room is not None and ctas > room[0]:
        raise NoRoomAtOnce(
            f"cooperative launch: all {ctas} CTAs of the grid are to run at once, and no known GPU of {target.name} "
            f"holds more than {room[0]} of them: {room[1]}; launch fewer, each of which does the work of several"
        )


_GRID_GROUP = "cudaCGGetIntrinsicHandle"
"""The function that a kernel's PTX calls if it asks for the group of its grid, whose launches are cooperative."""


def check_made(made: Any, grid: Any, block: Any, smem: int = 0, cooperative: bool = False) -> None:
    """Raise a CuteError if there is no room for a launch of a compiled kernel (`cute.compile`). grid, block: an int or
    up to three. smem: bytes of dynamic shared memory, 0 for what the kernel needs. cooperative: all CTAs run at once.
    """
    target, used = named(made.arch), made.resources
    dynamic = smem or used.dynamic_shared
    check_smem(target, dynamic, used.shared)
    check_used(target, used.registers, threads_in(block))
    if cooperative or _GRID_GROUP in made.ptx:
        check_cooperative(target, grid, block, taken_smem(dynamic, used.shared), used.registers)


# ---------------------------------------------------------------- registers


class BlockBounds(tuple[int, ...]):
    """`launch_bounds` of a kernel all of whose blocks have one known shape (PTX .reqntid): the threads of a block and,
    unless that is None, the `blocks` that are to be on an SM at once. block: the shape."""

    block: tuple[int, int, int]

    def __new__(cls, block: tuple[int, int, int], blocks: int | None = None) -> BlockBounds:
        made = super().__new__(cls, (math.prod(block), *(() if blocks is None else (blocks,))))
        made.block = block
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockBounds) and self.block == other.block and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.block, *self))

    def __repr__(self) -> str:
        return f"{tuple(self)!r} of blocks {self.block}"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.block, blocks_of(self)


class MostRegisters(NamedTuple):
    """Stands in for `launch_bounds` where only `max_registers` is given. each: the registers that a thread of a kernel
    with setmaxnreg begins with (ptxas 13.0 heeds the limit there, and nowhere else)."""

    each: int


def bounds_of(options: Any) -> Any:
    """Return what the options of `cuda.jit` say of a kernel's registers: its `launch_bounds`, or a MostRegisters."""
    bounds, most = options.get("launch_bounds"), options.get("max_registers")
    return MostRegisters(most) if bounds is None and isinstance(most, int) and most > 0 else bounds


def threads_of(bounds: Any) -> int | None:
    """Return the most threads of a block that `launch_bounds` names."""
    if isinstance(bounds, MostRegisters):
        return None
    return bounds[0] if isinstance(bounds, (tuple, list)) and bounds else bounds if isinstance(bounds, int) else None


def blocks_of(bounds: Any) -> int | None:
    """Return how many blocks are to be on an SM at once, which `launch_bounds` names."""
    return bounds[1] if isinstance(bounds, (tuple, list)) and len(bounds) > 1 else None


def takes_setmaxnreg(bounds: Any) -> bool:
    """Say whether the assembler takes setmaxnreg: it ignores it (C7508) where `launch_bounds` names threads alone, for
    then it does not know with how many registers a thread begins."""
    return threads_of(bounds) is None or blocks_of(bounds) is not None


def registers_for(target: Target, threads: int, blocks: int = 1) -> int:
    """Return how many registers each thread may have if `blocks` blocks of `threads` threads are on an SM."""
    warps = -(-threads // _WARP) * blocks
    each = target.registers_per_sm // _PARTITIONS // -(-warps // _PARTITIONS) // _WARP
    return each // _STEP * _STEP


def check_options(target: Target, options: Any) -> None:
    """Raise a CuteError if the target has no blocks or registers such as the options of `cuda.jit` name."""
    bounds, registers = options.get("launch_bounds"), options.get("max_registers")
    threads = threads_of(bounds)
    if threads is not None and not 1 <= threads <= target.threads_per_block:
        raise CuteError(
            f"launch_bounds={bounds!r}: {threads} threads; a CTA on {target.name} has 1 to {target.threads_per_block}"
        )
    if not isinstance(registers, int):
        return
    if registers > target.registers_per_thread:
        raise CuteError(
            f"max_registers={registers}: a thread on {target.name} has at most {target.registers_per_thread} registers"
        )
    room = registers_for(target, threads or 1)
    if threads is not None and registers > room:
        raise CuteError(
            f"max_registers={registers} with launch_bounds={bounds!r}: {threads} threads have {room} of the "
            f"{target.registers_per_block} registers of a CTA on {target.name} each; lower one of them"
        )


def check_used(target: Target, registers: int, threads: int) -> None:
    """Raise a CuteError if a CTA has not so many registers for each of so many threads."""
    room = registers_for(target, threads)
    if registers > room:
        raise CuteError(
            f"registers: the kernel takes {registers} for each of {threads} threads, and the "
            f"{target.registers_per_block} of a CTA on {target.name} are {room} each; give it launch_bounds, or launch "
            "smaller blocks"
        )


def launched_registers(target: Target, threads: int, bounds: Any = None) -> int:
    """Return the registers of each thread when a kernel begins that uses setmaxnreg: as many as there are for blocks
    of that size. bounds: as `bounds_of` gives it."""
    if isinstance(bounds, MostRegisters):
        return min(256, bounds.each)
    most = threads_of(bounds) or threads
    return min(256, registers_for(target, most, blocks_of(bounds) or 1))


def check_direction(begins: int, before: int | None, count: int, *, grows: bool) -> None:
    """Raise a CuteError if setmaxnreg lowers the registers of a thread upwards, or raises them downwards, which is
    undefined. begins: the most with which it can have begun. before: what it asked for last; None of the first time,
    when it may have begun with fewer."""
    held = begins if before is None and not grows else before
    if held is not None and (count < held if grows else count > held):
        raise CuteError(
            f"setmaxnreg: a warpgroup {'raises' if grows else 'lowers'} its registers from {held} to {count}; "
            "use the other of setmaxnreg.inc and .dec"
        )


def too_many_registers(target: Target, asked: Sequence[int], threads: int, bounds: Any = None) -> str | None:
    """Write the message for warpgroups that ask for more registers than their block has; None if it has as many. asked:
    the registers a thread of each. threads: of the block."""
    each = launched_registers(target, threads, bounds)
    have, need = each * _WARPGROUP * len(asked), _WARPGROUP * sum(asked)
    if need <= have:
        return None
    listed = ", ".join(map(str, asked[:-1])) + f" and {asked[-1]}"
    return (
        f"setmaxnreg: the warpgroups ask for {listed} registers a thread, {need} in all, and a CTA of {threads} "
        f"threads begins with {have} on {target.name} ({each} each), so that one waits for ever: ask for fewer, or "
        "give launch_bounds with fewer threads or blocks"
    )


def check_registers(target: Target, asked: Sequence[int], threads: int, bounds: Any = None) -> None:
    """Raise a CuteError if warpgroups ask for more registers than their block has, as `too_many_registers`."""
    said = too_many_registers(target, asked, threads, bounds)
    if said is not None:
        raise CuteError(said)


def check_setmaxnreg(target: Target, count: int, threads: int, bounds: Any = None) -> None:
    """Raise a CuteError if a warpgroup can never have `count` registers a thread: not even while all others have the
    fewest. threads: of the block."""
    groups = threads // _WARPGROUP
    each = launched_registers(target, threads, bounds)
    pool, least = each * _WARPGROUP * groups, (groups - 1) * _WARPGROUP * _FEWEST
    if groups and least + _WARPGROUP * count > pool:
        raise CuteError(
            f"setmaxnreg: {count} registers a thread of one warpgroup, and {_FEWEST} of {groups - 1} others, exceed "
            f"the {pool} with which a CTA of {threads} threads begins on {target.name} ({each} each): ask for fewer, "
            "or give launch_bounds with fewer threads or blocks"
        )
