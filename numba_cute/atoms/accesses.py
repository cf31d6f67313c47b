# SPDX-License-Identifier: Apache-2.0
"""Accesses to memory as the rows `ld` and `st` have them, of a vector of elements in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import isa, seam
from ..dtypes import Uint8, Uint16, Uint32, Uint64
from ..seam import CuteError, Regs
from ..tensor.pointer import AddressSpace, Pointer, physical

GLOBAL = (AddressSpace.gmem, AddressSpace.generic)


def words_of(bits: int, dtype: Any, what: str) -> tuple[Any, int]:
    """Return the type and number of the words that move so many bits of elements; an error for parts of bytes."""
    if bits % 8:
        raise CuteError(f"copy: {bits // dtype.width} elements of {dtype} are no whole bytes, which {what} moves")
    words = {8: Uint8, 16: Uint16}.get(bits, Uint64 if dtype.width == 64 else Uint32)
    return words, bits // words.width


def loaded(row: Any, there: Pointer, regs: Regs, what: str, **statics: Any) -> None:
    """Load registers by a row of the instruction table that loads `count` words of `width` bits."""
    b = seam.current()
    words, count = words_of(regs.count * regs.dtype.width, regs.dtype, what)
    held = Regs(b.registers(words, count), words, 0, count)
    got = row(physical(there, words.width // 8 * count), width=words.width, count=count, **statics)
    for i, word in enumerate(got if isinstance(got, tuple) else (got,)):
        b.write(Regs(held.file, words, i, 1), words(word))
    b.unvector(b.bitcast(b.vector(held), regs.dtype), regs)


def stored(row: Any, regs: Regs, there: Pointer, what: str, **statics: Any) -> None:
    """Store registers by a row that stores `count` words of `width` bits."""
    b = seam.current()
    words, count = words_of(regs.count * regs.dtype.width, regs.dtype, what)
    held = Regs(b.registers(words, count), words, 0, count)
    b.unvector(b.bitcast(b.vector(regs), words), held)
    carrier = Uint16 if words is Uint8 else words
    values = [carrier(b.read(Regs(held.file, words, i, 1))) for i in range(count)]
    row(physical(there, words.width // 8 * count), values, width=words.width, count=count, **statics)


def hinted_access(src: Pointer, dst: Pointer, evict: str) -> Callable[[Pointer, Pointer, int], None]:
    """Return what moves a vector with a priority in L1: one side lies in global memory."""
    if (src.space in GLOBAL) == (dst.space in GLOBAL):
        raise CuteError(
            f"autovec_copy: l1c_evict_priority is for accesses to global memory, on one side; src is in "
            f"{src.space.name} and dst in {dst.space.name}"
        )
    hint: dict[str, Any] = {
        "space": "global",
        "sem": None,
        "scope": None,
        "cop": None,
        "evict": evict,
        "prefetch": None,
    }
    what = f"an access with {evict}"

    def access(a: Pointer, b: Pointer, width: int) -> None:
        here = b if src.space in GLOBAL else a
        backend, plain = seam.current(), here.space is AddressSpace.rmem
        address, offset = (here.address, here.offset) if plain else (backend.registers(here.dtype, width), 0)
        regs = Regs(address, here.dtype, offset, width)
        if src.space in GLOBAL:
            loaded(isa.ld, a, regs, what, **hint)
            if not plain:
                b.store_vector(tuple(backend.lane(backend.vector(regs), i) for i in range(width)))
        else:
            if not plain:
                backend.unvector(backend.pack(here.dtype, a.load_vector(width)), regs)
            stored(isa.st, regs, b, what, **hint)

    return access
