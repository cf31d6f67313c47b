# SPDX-License-Identifier: Apache-2.0
"""Multiply tiles in shared memory by a warp's mma.sync."""

from typing import Any

import numba_cute as cute
from numba_cute.seam import traced


class Operand:
    """Take an operand out of shared memory, one block of K after the other."""

    def __init__(self, copy: Any, thread: Any, shared: Any, fragment: Any) -> None:
        own = copy.get_slice(thread)
        self.copy, self.source, self.fragment, self.target = (
            copy, own.partition_S(shared), fragment, own.retile(fragment)
        )  # fmt: skip

    def fetch(self, k: int) -> None:
        """Take out a block, unless there is none."""
        if k < cute.size(self.fragment, mode=[2]):
            cute.copy(self.copy, self.source[None, None, k], self.target[None, None, k])


@traced
def multiply(tiled_mma: Any, copy_a: Any, copy_b: Any, thread: Any, a: Any, b: Any, acc: Any) -> None:
    """Add a b^T to `acc`, of operands in shared memory; a is in registers where copy_a is None. Each block of K is
    taken out while the one before it is multiplied."""
    mma = tiled_mma.get_slice(thread)
    of_b = Operand(copy_b, thread, b, tiled_mma.make_fragment_B(mma.partition_B(b)))
    given, held = [of_b], a
    if copy_a is not None:
        held = tiled_mma.make_fragment_A(mma.partition_A(a))
        given.append(Operand(copy_a, thread, a, held))
    for k in range(-1, cute.size(of_b.fragment, mode=[2])):
        for operand in given:
            operand.fetch(k + 1)
        if k >= 0:
            cute.gemm(tiled_mma, acc, held[None, None, k], of_b.fragment[None, None, k], acc)
