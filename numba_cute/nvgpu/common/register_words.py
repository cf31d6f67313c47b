# SPDX-License-Identifier: Apache-2.0
"""Fragments as the 32-bit registers that instructions take."""

from __future__ import annotations

from collections.abc import Callable

from ... import seam
from ...layout import Layout, crd2idx, size
from ...layout.pure import pure
from ...seam import CuteError
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor


def words(t: Tensor, num: int, what: str) -> tuple[seam.Regs, ...]:
    """Give the registers of `num` words that a lane holds: one span, or where they lie apart one for each word. Raises
    CuteError, with `what` before it, if `t` is not so."""
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.rmem:
        raise CuteError(f"{what}: {t!r} must be registers")
    per = 32 // p.dtype.width
    offsets = _offsets(t.layout)
    if len(offsets) != num * per:
        raise CuteError(f"{what}: {t!r} has {len(offsets)} elements, but a lane holds {num * per}")
    if offsets == tuple(range(offsets[0], offsets[0] + num * per)):
        return (seam.Regs(p.address, p.dtype, p.offset + offsets[0], num * per),)
    for w in range(0, num * per, per):
        if offsets[w : w + per] != tuple(range(offsets[w], offsets[w] + per)):
            raise CuteError(f"{what}: {t!r} must be words of {per} consecutive elements; retile the fragment")
    return tuple(seam.Regs(p.address, p.dtype, p.offset + at, per) for at in offsets[::per])


@pure
def _offsets(lay: Layout) -> tuple[int, ...]:
    return tuple(int(crd2idx(i, lay)) for i in range(int(size(lay))))


def into(t: Tensor, num: int, what: str, load: Callable[[seam.Regs], None]) -> None:
    """Let `load` write `num` words to the registers of `t`, by way of others where they lie apart. what: as for
    `words`."""
    spans = words(t, num, what)
    if len(spans) == 1:
        load(spans[0])
        return
    backend, per = seam.current(), spans[0].count
    file = backend.registers(spans[0].dtype, num * per)
    load(seam.Regs(file, spans[0].dtype, 0, num * per))
    for i, to in enumerate(spans):
        backend.unvector(backend.vector(seam.Regs(file, to.dtype, i * per, per)), to)


def gathered(t: Tensor, num: int, what: str) -> seam.Regs:
    """Give the `num` words of `t` as one span, gathered where they lie apart. what: as for `words`."""
    spans = words(t, num, what)
    if len(spans) == 1:
        return spans[0]
    backend, per = seam.current(), spans[0].count
    file = backend.registers(spans[0].dtype, num * per)
    for i, at in enumerate(spans):
        backend.unvector(backend.vector(at), seam.Regs(file, at.dtype, i * per, per))
    return seam.Regs(file, spans[0].dtype, 0, num * per)
