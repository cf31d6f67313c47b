# SPDX-License-Identifier: Apache-2.0
"""Hints, and, further down, what goes into the holes.

python examples/puzzles/answers.py 7           a hint
python examples/puzzles/answers.py 7 --show    the answer
"""

import sys
from pathlib import Path

HINTS = {
    1: "One step to the right is the next number; one step down is a whole row on.",
    2: "A stride for each of the four extents: ((row in a block, block down), (column in a block, block right)).",
    3: "mode= takes a list of modes, in the order that you want.",
    4: "A tiler is a tuple: an extent for each mode.",
    5: "How far apart are the same values of two neighbouring threads, and how far two values of one thread?",
    6: "How many numbers are there?",
    7: "64 threads are two warps. Which barrier is the block's?",
    8: "The bank of a word is its number modulo 32. 32 rows should be 32 different numbers modulo 32.",
    9: "Both the row and the column have 5 bits. The row's are the upper ones: how far up?",
    10: "The newest group is row k + 1's, closed in this round, and row k's is the one before.",
    11: "Three warps of 32 threads.",
    12: "A float16 has 2 bytes.",
    13: "Phases count from 0, and only the lowest bit is kept. In round i the reader wants phase i to have ended.",
    14: "Threads write by the generic proxy, TMA reads by the async proxy. The simulator's report has the line.",
    15: "It is counted in arrivals: one lane of each warp that consumes.",
    16: "Another lane of the warp may still read the stage.",
    17: "The blocks stride through the tiles together.",
    18: "The ranks are 0 to 3, and 4 is 0 again.",
    19: "It must not read registers that nothing was written to.",
    20: "exp(x - highest) times what is exp(x - top)?",
}
ANSWERS = {
    1: "(8, 1)",
    2: "((1, 4), (2, 8))",
    3: "[1, 0]",
    4: "(2, 4)",
    5: "(1, 8)",
    6: "i < x.shape[0]",
    7: "arch.sync_threads()",
    8: "33",
    9: "(5, 0, 5)",
    10: "1",
    11: "96",
    12: "64 * 2",
    13: "i % 2",
    14: 'arch.fence_proxy("async.shared", space="cta")',
    15: "2",
    16: "arch.sync_warp()",
    17: "blocks",
    18: "(rank + 1) % 4",
    19: "k > 0",
    20: "highest - top",
}


def files():
    """The puzzles by number."""
    return {int(f.name[:2]): f for f in sorted(Path(__file__).parent.glob("[0-9]*.py"))}


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    if number not in HINTS:
        sys.exit(__doc__)
    print(ANSWERS[number] if "--show" in sys.argv else HINTS[number])
