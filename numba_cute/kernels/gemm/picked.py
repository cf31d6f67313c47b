# SPDX-License-Identifier: Apache-2.0
"""Rows of A that an index names, copied before a product whose columns are many: TMA then loads what lies together.

In the kernel a warp gathers rows once for each tile of columns, by copies of 16 bytes; this gathers them once, at the
speed of memory. What an index has no row for becomes NaN, as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch

from .. import entry, tuning
from .indexed import VECTOR, of_product
from .operands import view
from .plan import modelled, plan

THREADS = 256
AHEAD = 4  # vectors that a thread has on their way


@cuda.jit(launch_bounds=THREADS)
def pick(source, index, made, rows, has, steps, vectors, each: cute.Constexpr):
    """rows: of `made`. has: rows of the source. steps: bytes from row to row of both. vectors: of a row. each: threads
    that copy a row."""
    arch.griddepcontrol_launch_dependents()  # the product, which waits until all is written
    thread, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    row = cute.Int32(block * (THREADS // each) + thread // each)
    if row < rows:
        number = cute.Int64(cute.make_tensor(index)[row])
        there = number >= 0 and number < has
        begin = cute.make_tensor(source).iterator.toint()
        if there:
            begin = begin + number * steps[0]
        end = cute.make_tensor(made).iterator.toint() + cute.Int64(row) * steps[1]
        words = cute.make_rmem_tensor((VECTOR // 4, AHEAD), cute.Int32)
        words.fill(-1)  # NaN of every type of floats
        for first in range(thread % each, vectors, each * AHEAD):
            for i in cute.range_constexpr(AHEAD):
                vector = cute.Int32(first + i * each)
                if there and vector < vectors:
                    cute.autovec_copy(_at(begin, vector), words[None, i])
            for i in cute.range_constexpr(AHEAD):
                vector = cute.Int32(first + i * each)
                if vector < vectors:
                    cute.autovec_copy(words[None, i], _at(end, vector))


@cute.jit
def _at(begin, vector):
    """Give a vector of a row that begins at an address."""
    place = cute.make_ptr(cute.Int32, begin + cute.Int64(vector) * VECTOR, cute.AddressSpace.gmem, VECTOR)
    return cute.make_tensor(place, cute.make_layout(VECTOR // 4))


def picking(source: Any, index: Any, made: Any) -> Any:
    """Plan made[i] = source[index[i]]. source, made: matrices of bytes, whose rows are multiples of 16 and begin
    there."""
    vectors, rows = made.shape[1] // VECTOR, made.shape[0]
    each = min(THREADS, 1 << max(0, math.ceil(math.log2(max(1, vectors / AHEAD)))))
    steps = tuple(cute.Int64(entry.strides(t)[0]) for t in (source, made))
    return entry.Work(
        pick, math.ceil(rows * each / THREADS), THREADS,
        static=(cute.Int32(rows), cute.Int64(source.shape[0]), steps, cute.Int32(vectors), each),
    )  # fmt: skip


PICK = entry.Planned(picking, "matmul")


def pays(a: Any, c: Any, rows: int, dtype: Any, sms: int, epilogue: Any, scatters: bool) -> bool:
    """Say whether copying rows first takes less time than gathering them in the kernel, by the model.

    a: (rows that there are, K), as the kernel has it. c: the result. rows: of the product. dtype: the operands'. sms:
    of the GPU. scatters: whether an index names C's rows. Of a GPU it knows what gathering a K tile takes at least
    (`gather`), in microseconds."""
    k, size = int(a.shape[-1]), a.element_size()
    if not k or k * size % VECTOR or a.stride(-1) != 1:
        return False
    known, c = tuning.numbers("matmul"), of_product(c, rows)
    spread, width = epilogue.spread if epilogue else 1, view(c).element_type.width
    slower = {n: max(time, known.gather) for n, time in known.k_tile.items()}
    gathers = SimpleNamespace(**{**vars(known), "k_tile": slower})
    inside = plan(c, k, dtype, sms, epilogue, width, named=True)
    before = plan(c, k, dtype, sms, epilogue, width, named=scatters)
    copy = known.launch + 2 * rows * k * size / known.memory
    return bool(
        modelled(before, c, k, dtype, sms, spread) + copy < modelled(inside, c, k, dtype, sms, spread, known=gathers)
    )


def first(launch: Callable[..., None], place: int) -> Callable[..., None]:
    """Give what copies the rows of A that an index names, and launches on these. place: the index's among what it takes
    after A."""
    torch = entry.pytorch()

    def run(a: Any, *others: Any) -> None:
        index = others[place]
        made = rows_like(a, index.shape[0])
        PICK((a.view(torch.uint8), index, made.view(torch.uint8)))
        launch(made, *others[:place], *others[place + 1 :])

    return run


def rows_like(a: Any, rows: int) -> Any:
    """Make room for so many rows of a matrix."""
    return a.new_empty((rows, a.shape[1]))
