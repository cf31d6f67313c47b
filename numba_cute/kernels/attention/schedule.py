# SPDX-License-Identifier: Apache-2.0
"""The order in which attention's tiles are done: persistent, heads in sections that share L2, longest tiles first.

A warp of each CTA draws the number of its next tile from a counter, and tells the CTA's other warps by *tickets*:
numbers in shared memory, with two mbarriers each, by which it is told and heard.

    index = block_idx
    while index < order.tiles:
        block, head, batch = tile_at(index, order, …)
        …                                                      # the warp that draws:   # each other one:
        index = …                                              next_drawn(…, given)     next_told(…, seen)
"""

from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch

from .. import tuning

TICKETS = 2  # numbers that are told before they are heard


class Order(NamedTuple):
    """Holds the numbers that `tile_at` counts and divides by; `order_of` makes one. tiles: all of them. blocks:
    of a head. sections: those that are whole. per_section: tiles of a section. section, last: heads of a whole section,
    and of the one after them. heads: of a batch."""

    tiles: Any
    blocks: Any
    sections: Any
    per_section: Any
    section: Any
    last: Any
    heads: Any


def divisor_of(n):
    """Prepare a divisor of a kernel's numbers by n; n is not part of the kernel."""
    return cute.fast_divmod_create_divisor(cute.Int32(n))


def order_of(blocks, heads, batch, section):
    """Give the order of the tiles of `batch` times `heads` heads, of so many `blocks` each, by sections of heads."""
    every = heads * batch
    section = max(1, min(section, every))
    divisors = section * blocks, section, every % section, heads
    return Order(
        *map(cute.Int32, (blocks * every, blocks, every // section)),
        *(divisor_of(max(1, n)) for n in divisors),
    )


@cuda.jit
def divided(x, by):
    """Divide a number of at least 0, and below 2**32."""
    return cute.Int32(cute.Uint32(x) // cute.Uint32(by))


@cuda.jit
def tile_at(index, order, longest_first):
    """Give (block, head, batch) of the `index`-th tile of an `Order`. Sections of heads are done one after the other;
    in a section the heads are innermost, and blocks are counted from the last where `longest_first`."""
    which, rest = order.per_section.divmod(index)
    whole, full, last = which < order.sections, order.section, order.last
    width = cute.FastDivmodDivisor(
        cute.where(whole, full.divisor, last.divisor),
        cute.where(whole, full.multiplier, last.multiplier),
        cute.where(whole, full.shift, last.shift),
    )
    block, at = width.divmod(rest)
    of_batch, head = order.heads.divmod(which * full.divisor + at)
    if longest_first:
        block = order.blocks - 1 - block
    return cute.Int32(block), head, of_batch


@cuda.jit
def begin_tickets(told, warps):
    """Initialise the barriers of the tickets: `told`, 2 * TICKETS Int64 of shared memory. warps: those that hear of
    each number. One thread, before the CTA's barrier."""
    for i in cute.range_constexpr(TICKETS):
        arch.mbarrier_init(told + i, 1)
        arch.mbarrier_init(told + TICKETS + i, warps)


@cuda.jit
def draw(counter):
    """Draw a number from `counter`, an int32 that is 0 before the first (`tile_drawn` sets it back after the last).
    Only the warp's first lane has it, and not before it is asked for: what is done before costs no time."""
    drawn = cute.Int32(0)
    if arch.lane_idx() == 0:
        drawn = cute.Int32(arch.atomic_add(counter.iterator, 1))
    return drawn


@cuda.jit
def tile_drawn(drawn, counter, tiles, ctas):
    """Give the whole warp the tile of the number that its first lane drew from `counter`. tiles, ctas: as of
    `next_drawn`."""
    if arch.lane_idx() == 0:
        if drawn == cute.Int32(tiles - 1):
            arch.atomic_exch(counter.iterator, 0)
    return cute.Int32(arch.shuffle_sync(drawn, 0) + ctas)


@cuda.jit
def ticket_of(count):
    """Give the ticket of a number that `count` others came before, and the parity of its round."""
    rounds = cute.Uint32(count) // cute.Uint32(TICKETS)
    return cute.Int32(cute.Uint32(count) % cute.Uint32(TICKETS)), cute.Int32(rounds & 1)


@cuda.jit
def next_drawn(drawn, counter, tiles, ctas, tickets, told, given):
    """Give the tile of the number that was drawn, and tell the others. tiles: how many there are. ctas: those that
    draw; each does the tile of its own number first. tickets: TICKETS Int32 of shared memory. told: their barriers.
    given: how many numbers were told before. A whole warp."""
    place, parity = ticket_of(given)
    if arch.lane_idx() == 0:  # alone: nothing keeps a lane that came late from the phase after the next
        arch.mbarrier_wait(told + TICKETS + place, parity ^ 1)
        tickets[place] = drawn + ctas
        arch.mbarrier_arrive(told + place)
    return tile_drawn(drawn, counter, tiles, ctas)


@cuda.jit
def next_told(tickets, told, seen):
    """Give the tile of which the warp that draws has told, after the `seen` ones before. A whole warp."""
    place, parity = ticket_of(seen)
    arch.mbarrier_wait(told + place, parity)
    index = arch.make_warp_uniform(tickets[place])
    arch.sync_warp()
    if arch.elect_one():
        arch.mbarrier_arrive(told + TICKETS + place)
    return index


def section_of(keys, head_dims, bytes_each, group):
    """Give the number of query heads whose keys and values fit L2 together, the `l2` bytes that were best on the GPU: a
    power of two, times `group`."""
    room = tuning.numbers("flash_attention").l2 // max(1, keys * head_dims * bytes_each)
    return (1 << max(0, room.bit_length() - 1)) * group
