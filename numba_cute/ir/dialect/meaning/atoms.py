# SPDX-License-Identifier: Apache-2.0
"""Layouts from (thread, value) to elements: how the threads of one instruction hold what it copies or multiplies.

They are those of CuTe's traits, by what a type says of an atom: None for an instruction that is not told here.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ....layout.layout import Layout
from .swizzled import recast


class CopyTraits(NamedTuple):
    """A copy: from (thread, value) to the elements of both sides, by the side that a tiled copy counts by."""

    reference: Layout
    source: Layout
    destination: Layout


class MmaTraits(NamedTuple):
    """A product: its extents M, N, K, and from (thread, value) to the elements of A, B and C; the threads that it
    takes."""

    extents: tuple[int, int, int]
    threads: int
    layouts: dict[str, Layout]


_WIDTH = re.compile(r"(?:bf|f|[su]?i)(\d+)")


def bits_of(element: str) -> int:
    """Count the bits of an element type as types write it: "f16", "bf16", "f8E4M3FN", "ui8"; 0 for none."""
    found = _WIDTH.match(element)
    return 32 if element == "tf32" else int(found[1]) if found else 0


# ------------------------------------------------------------------ copies


def plain_copy(element: str, bits: int | None) -> CopyTraits | None:
    """A thread copies `bits` in one piece: an element where they are not said."""
    width = bits_of(element)
    bits = width if bits is None else bits
    if not width or not bits or bits % width:
        return None
    one = Layout((1, bits // width), (0, 1))
    return CopyTraits(one, one, one)


_ROWS = {1: Layout(((8, 4), 128), ((128, 0), 1)), 2: Layout(((16, 2), 128), ((128, 0), 1)),
         4: Layout((32, 128), (128, 1))}  # fmt: skip
"""The rows of matrices of 8 x 8 elements of 16 bits, counted in bits, whose addresses the threads give."""
_PARTS = {1: Layout((32, 32), (32, 1)), 2: Layout((32, (32, 2)), (32, (1, 1024))),
          4: Layout((32, (32, 4)), (32, (1, 1024)))}  # fmt: skip
_TURNED = {1: Layout(((4, 8), (16, 2)), ((256, 16), (1, 128))),
           2: Layout(((4, 8), (16, 2, 2)), ((256, 16), (1, 128, 1024))),
           4: Layout(((4, 8), (16, 2, 4)), ((256, 16), (1, 128, 1024)))}  # fmt: skip


def matrices(element: str, count: int, turned: bool, load: bool) -> CopyTraits | None:
    """A warp loads or stores `count` matrices of 8 x 8 elements of 16 bits; turned: transposed on the way."""
    bits = bits_of(element)
    if count not in _ROWS or bits not in (8, 16, 32) or turned and bits != 16:
        return None
    memory, registers = (recast(x, bits, 1) for x in (_ROWS[count], (_TURNED if turned else _PARTS)[count]))
    return CopyTraits(registers, memory, registers) if load else CopyTraits(registers, registers, memory)


def tensor_memory(element: str, lanes: int, bits: int, repeat: int, load: bool) -> CopyTraits | None:
    """A warp loads or stores `lanes` lanes of tensor memory, `repeat` times `bits` of each."""
    row, width = bits * repeat, bits_of(element)
    if not row or width not in (8, 16, 32):
        return None
    memory = Layout((32, (row, lanes)), (0, (1, row)))
    if (lanes, bits) == (32, 32):
        registers = Layout((32, row), (row, 1))
    elif (lanes, bits) == (16, 256):
        registers = Layout(((4, 8), (64, 2, repeat)), ((64, row), (1, 8 * row, bits)))
    elif (lanes, bits) == (16, 128):
        registers = Layout(((4, 8), (32, 2, repeat)), ((32, row), (1, 8 * row, bits)))
    else:
        return None
    memory, registers = recast(memory, width, 1), recast(registers, width, 1)
    return CopyTraits(memory, memory, registers) if load else CopyTraits(memory, registers, memory)


def copy_traits(name: str, data: Any) -> CopyTraits | None:
    """Return the layouts of a copy atom. name, data: of its type, "atom.ldsm" and the fields as they are written."""
    if name == "atom.universal_copy":
        return plain_copy(data[0], data[1])
    if name == "atom.simt_async_copy":
        return plain_copy(data[0], data[2])
    if name == "atom.ldsm":
        element, mode, pattern, count, way = data
        return matrices(element, count, way == "t", True) if (mode, pattern) == ((8, 8), "u16") else None
    if name == "atom.stsm":
        element, mode, count, way = data
        return matrices(element, count, way == "t", False) if mode == (8, 8) else None
    if name in ("atom.tmem_load", "atom.tmem_store"):
        element, lanes, bits, repeat = data
        return tensor_memory(element, lanes, bits, repeat, name.endswith("load"))
    return None


# ------------------------------------------------------------------ products


def _words(threads: Any, strides: Any, rows: int, bits: int, k: int, both: bool) -> Layout:
    """An operand of which each thread holds words of 32 bits along K. rows: its extent along M or N; both: 8 rows
    further too."""
    width = 32 // bits
    shape, stride = [], []
    for s, d in ((width, rows), *(((2, 8),) if both else ()), (k // (4 * width), 4 * width * rows)):
        if s > 1:
            shape.append(s)
            stride.append(d)
    if not shape:
        return Layout((threads, 1), (strides, 0))
    values = (shape[0], stride[0]) if len(shape) == 1 else (tuple(shape), tuple(stride))
    return Layout((threads, values[0]), (strides, values[1]))


def _warp(extents: tuple[int, int, int], elements: tuple[str, ...]) -> MmaTraits | None:
    m, n, k = extents
    bits, other, sums = map(bits_of, elements)
    if (m, n) != (16, 8) or bits not in (4, 8, 16, 32) or other != bits or k % (128 // bits) or sums not in (16, 32):
        return None
    if bits < 8 and "f" in elements[0]:  # some are held in bytes
        return None
    width = 32 // bits
    a = _words((4, 8), (16 * width, 1), 16, bits, k, True)
    b = _words((4, 8), (8 * width, 1), 8, bits, k, False)
    return MmaTraits(extents, 32, {"A": a, "B": b, "C": Layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))})


def _warpgroup(extents: tuple[int, int, int], elements: tuple[str, ...], kind: str) -> MmaTraits | None:
    m, n, k = extents
    bits = bits_of(elements[0])
    if m != 64 or n % 8 or k * bits != 256 or bits not in (8, 16, 32):
        return None
    a = Layout((128, (m, k)), (0, (1, m)))
    if kind == "rs":
        a = _words((4, 8, 4), (64 * (32 // bits), 1, 16), 64, bits, k, True)
    b = Layout((128, (n, k)), (0, (1, n)))
    more = n // 8 > 1
    values = ((2, 2, n // 8), (64, 8, 512)) if more else ((2, 2), (64, 8))
    c = Layout(((4, 8, 4), values[0]), ((128, 1, 16), values[1]))
    return MmaTraits(extents, 128, {"A": a, "B": b, "C": c})


def _blocks(extents: tuple[int, int, int], blocks: int) -> MmaTraits | None:
    m, n, k = extents
    if m % blocks or n % blocks:
        return None
    m, n = m // blocks, n // blocks
    a = Layout((blocks, (m, k)), (m, (1, m * blocks)))
    b = Layout((blocks, (n, k)), (n, (1, n * blocks)))
    c = Layout((blocks, (m, n * blocks)), (m, (1, m * blocks)))
    return MmaTraits(extents, blocks, {"A": a, "B": b, "C": c})


def mma_traits(name: str, data: Any) -> MmaTraits | None:
    """Return the layouts of a matrix instruction. name, data: of its type, "sm80.mma" and the fields as they are
    written."""
    if name != "atom.universal_fma" and not name.endswith((".mma", ".mma_bs")):
        return None
    numbers = tuple(map(int, data[0].split("x")))
    if len(numbers) != 3 or min(numbers) < 1:
        return None
    extents = (numbers[0], numbers[1], numbers[2])
    if name == "atom.universal_fma" and extents == (1, 1, 1):
        one = Layout((1, 1), (0, 0))
        return MmaTraits(extents, 1, {"A": one, "B": one, "C": one})
    if name == "sm80.mma":
        return _warp(extents, data[1:4])
    if name == "sm90.mma":
        return _warpgroup(extents, data[3:6], data[6])
    return _blocks(extents, data[1]) if name in ("sm100.mma", "sm100.mma_bs") and data[1] in (1, 2) else None


__all__ = ["CopyTraits", "MmaTraits", "bits_of", "copy_traits", "mma_traits"]
