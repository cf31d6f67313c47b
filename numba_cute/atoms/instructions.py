# SPDX-License-Identifier: Apache-2.0
"""Split the tensors of a copy into the parts that single instructions copy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import layout, seam
from ..layout.int_tuple import text
from ..layout.pure import pure
from ..seam import CuteError
from ..seam.guards.messages import how_static
from ..tensor.move import MOST_INSTRUCTIONS
from ..tensor.pointer import Pointer
from ..tensor.swizzled import by_address
from ..tensor.tensor import Tensor, element
from .fragments import in_words

if TYPE_CHECKING:
    from .copy_atom import CopyAtom

Part = tuple[Tensor, Tensor, Any]
"""The part of one instruction: the source, the destination, and the predicate or None."""


def instructions(atom: CopyAtom, src: Tensor, dst: Tensor, pred: Tensor | None) -> list[Part]:
    """The parts of `src`, `dst` and `pred` that each instruction of `atom` copies, in the order of their modes."""
    lists = []
    for t, name, tv in ((src, "src", atom.layout_src_tv), (dst, "dst", atom.layout_dst_tv)):
        if not seam.is_static(t.shape):
            raise CuteError(
                f"copy: {name} has shape {t.shape}; it must be static: index its run-time modes{how_static(t.shape)}"
            )
        values = int(layout.size(tv, (1,)))
        if in_words(t, atom.value_type):
            values = values * atom.value_type.width // 32
        lists.append(_split(t, values, name, atom.op.partitioned))
    srcs, dsts = lists
    if len(srcs) != len(dsts):
        raise CuteError(
            f"copy: src of shape {src.shape} makes {len(srcs)} instructions, but dst of shape {dst.shape} {len(dsts)}: "
            f"partition both with {atom.op.partitioned}"
        )
    if pred is None:
        return [(s, d, None) for s, d in zip(srcs, dsts)]
    count = int(layout.size(pred.shape))
    if len(srcs) % count:
        raise CuteError(f"copy: pred has shape {pred.shape}, but there are {len(srcs)} instructions to guard")
    each = len(srcs) // count
    return [(s, d, truth(pred, i // each)) for i, (s, d) in enumerate(zip(srcs, dsts))]


def truth(pred: Tensor, i: int) -> Any:
    """Element `i` of a tensor of predicates."""
    at = element(pred, i)
    return at.load() if isinstance(at, Pointer) else at


def _split(t: Tensor, values: int, name: str, how: str) -> list[Tensor]:
    """The parts of `values` elements: mode 0 over all the others, or, where it holds more, over its own modes."""
    out = []
    for path in instruction_paths(t.layout, values, name, how):
        part = t
        for how_opened, coord in path:
            part = Tensor(part.iterator, _OPENED[how_opened](part.layout))[coord]
        out.append(part if isinstance(part.layout, layout.Layout) else Tensor(*by_address(part.iterator, part.layout)))
    return out


def _by_elements(lay: Any) -> Any:
    """A layout of one mode as one of its elements, each by itself."""
    if isinstance(lay, layout.ComposedLayout):
        return dataclasses.replace(lay, outer=_by_elements(lay.outer))
    return layout.Layout((1, layout.unwrap(lay.shape)), (0, layout.unwrap(lay.stride)))


_OPENED: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda lay: lay, "mode 0": lambda lay: lay[0], "elements": _by_elements,
}  # fmt: skip
"""By what is opened of a layout, how."""


@pure
def instruction_paths(lay: Any, values: int, name: str, how: str = "") -> tuple[tuple[tuple[str, Any], ...], ...]:
    """For each part its slices, one after the other: (what is opened first, of `_OPENED`, and the coordinate taken)."""
    opened = "nothing"
    if layout.rank(lay) == 1:
        if int(layout.size(lay)) == values:
            return ((),)
        inner = layout.unwrap(lay.shape)
        if values == 1 and not isinstance(inner, tuple):
            return tuple((("elements", (None, i)),) for i in range(int(layout.size(lay))))
        if not isinstance(inner, tuple) or len(inner) < 2:
            raise CuteError(
                f"copy: {name} has {layout.size(lay)} values, {lay}, but the atom copies {values}"
                + (f": partition src and dst with {how}" if how else "")
            )
        lay, opened = lay[0], "mode 0"
    paths: list[Any] = []
    count = int(layout.size(lay.shape[1:]))
    if count > MOST_INSTRUCTIONS:
        raise CuteError(
            f"copy: {name} of shape {text(lay.shape)} makes {count} instructions: copy it by tiles in a loop"
        )
    for i in range(count):
        coord = (None, *layout.idx2crd(i, lay.shape[1:]))
        rest = instruction_paths(layout.slice_(lay, coord), values, name, how)
        paths += [((opened, coord), *more) for more in rest]
    return tuple(paths)
