# SPDX-License-Identifier: Apache-2.0
"""Count the reads and writes of shared memory's banks for the lanes of a warp."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

BANKS, BANK = 32, 4
"""The banks, and the bytes that one gives each time."""


def passes(accesses: Sequence[tuple[int, int]]) -> int:
    """Count how often shared memory is accessed for the lanes of a warp: a bank gives one word each time, and accesses
    of 8 and 16 bytes go by half and quarter warps. accesses: of each lane the address and the bytes."""
    widest = max(n for _, n in accesses)
    lanes = max(1, BANKS * BANK // max(widest, BANK))
    found = 0
    for at in range(0, len(accesses), lanes):
        words = {w for a, n in accesses[at : at + lanes] for w in range(a // BANK, -(-(a + n) // BANK))}
        found += max(Counter(w % BANKS for w in words).values())
    return found


def least_passes(accesses: Sequence[tuple[int, int]]) -> int:
    """Count how often it would be without conflicts."""
    return -(-sum(n for _, n in accesses) // (BANKS * BANK))
