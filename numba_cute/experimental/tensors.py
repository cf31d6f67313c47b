# SPDX-License-Identifier: Apache-2.0
"""Tensors of a kernel that know of which argument they are a part, and where: what TMA and bounds ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import layout
from ..isa.facts.tensormap import TensorMapRecord
from ..layout import Layout
from ..nvgpu.hopper.tma_tiles import Tile
from ..seam import CuteError, divisor, frozen
from ..seam.ground.naming import described, shown
from ..tensor.beginnings import in_global_memory
from ..tensor.offsets import has_none
from ..tensor.tensor import Tensor, make_identity_tensor

__all__ = ["GlobalTensor", "TensorArray"]


@frozen
class Maps:
    """The tensor maps of an argument. forms: what each says; records: the maps themselves, in a kernel their addresses.
    wanted: while it is not known which maps a kernel asks for, which argument this is, and which search. made: whether
    this is not an argument but a tensor that the kernel made of a pointer, whose maps it makes too. room, room_bytes:
    of the first argument of a kernel that makes maps, the address of memory for them, and how much each block takes."""

    forms: tuple[Any, ...] = ()
    records: tuple[Any, ...] = ()
    wanted: Any = None
    made: bool = False
    room: Any = None
    room_bytes: int = 0


@frozen
class GlobalTensor(Tensor):
    """A tensor that is an argument of a kernel of `cute.experimental.kernel`, or a part of it.

    It is memory as any other tensor. What slices, divides and partitions give of it keeps the coordinates of its
    elements in the argument, so that `tma_load` and `tma_store` take it, and `copy` leaves out what lies outside.

    iterator, layout: as of a Tensor. maps: the argument's tensor maps. base: the argument as a Tensor, and places: a
    tensor of this one's shape, of the coordinates in it; None of both: this is the argument itself.

    >>> from numba_cute import experimental as ext
    >>> @ext.kernel
    ... def kernel(x):
    ...     part = cute.local_tile(x, (8,), (1,))
    ...     print(isinstance(part, ext.GlobalTensor))
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(np.zeros(32, np.int32), assumed_align=16))
    True
    """

    maps: Maps = Maps()
    base: Any = None
    places: Any = None

    @property
    def whole(self) -> Tensor:
        """The argument that it is a part of."""
        return Tensor(self.iterator, self.layout) if self.base is None else self.base

    @property
    def coordinates(self) -> Tensor:
        """A tensor of the same shape whose elements are coordinates in the argument."""
        return make_identity_tensor(self.layout.shape) if self.places is None else self.places

    def _ends(self, coord: Any) -> bool:
        """Say whether `coord` names one element: tiles may lie outside, for TMA and `copy` leave out the part that
        does."""
        return not has_none(coord)

    def _tracked(self, made: Tensor, again: Callable[[Tensor], Tensor]) -> Tensor:
        places = again(self.coordinates)
        if not _alike(layout.shape(places.layout), layout.shape(made.layout)):
            return made  # as coalesce may make it, whose modes follow the strides
        return GlobalTensor(made.iterator, made.layout, self.maps, self.whole, places)

    def __repr__(self) -> str:
        return f"GlobalTensor({self.iterator!r}, {self.layout})"


def _alike(a: Any, b: Any) -> bool:
    """Say whether two shapes have the same modes."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, tuple) or isinstance(b, tuple):
        return False
    return not (type(a) is int and type(b) is int) or a == b


def tile_of(t: Any, what: str, name: str, by_value: Any) -> Tile:
    """Give the part of an argument that TMA is to copy. Raises CuteError for any other tensor."""
    if not isinstance(t, GlobalTensor):
        raise CuteError(
            f"{what}: {name} {t!r} is not part of a tensor that is an argument of a kernel of "
            "cute.experimental.kernel, or that such a kernel makes of a pointer; take it by slices, "
            "divides or partitions of that tensor itself"
        )
    if by_value is not None and not isinstance(by_value, Layout):
        raise CuteError(
            f"{what}: cta_v_map {by_value!r} is not a layout of coordinates; make it by get_cta_v_map_ab or "
            "get_cta_v_map_c"
        )
    return Tile(t.whole, t.coordinates, by_value, t.maps)


class TensorArray(tuple):  # type: ignore[type-arg]
    """Tensors alike, one of which a kernel of `cute.experimental.kernel` takes by an index that is known only at run
    time: `tensors[i]`, with TMA of its parts as of any argument. So an array of pointers becomes the tensors that it
    points to; each brings its own tensor maps, 128 bytes of the kernel's parameters for each of the array's forms.

    tensors: in global memory, of one element type and alignment, whose layouts have the same static extents and
    strides; extents and strides that are known only at run time may differ. On the host; `len` of it is static. Raises
    CuteError for others, or none. No instruction.

    >>> from numba_cute import experimental as ext
    >>> arrays = [np.full(32, i, np.int32) for i in range(3)]
    >>> @ext.kernel
    ... def kernel(many, i):
    ...     print(many[i][0])
    >>> many = ext.TensorArray([cute.runtime.from_dlpack(a, assumed_align=16) for a in arrays])
    >>> cute.simulate(kernel)[1, 1](many, np.int32(2))
    2
    """

    def __new__(cls, tensors: Any) -> TensorArray:
        if not isinstance(tensors, (tuple, list)):
            raise CuteError(f"TensorArray: tensors {described(tensors)}: give a tuple or list of tensors")
        made = super().__new__(cls, tensors)
        for i, t in enumerate(made):
            if type(t) is not Tensor or not in_global_memory(t):
                raise CuteError(
                    f"TensorArray: tensor {i} {shown(t)} must be a tensor in global memory, as by from_dlpack"
                )
            if _skeleton(t) != _skeleton(made[0]):
                raise CuteError(
                    f"TensorArray: tensor {i} {t!r} is not like the first one, {made[0]!r}: element type, alignment "
                    "and all that is static of their layouts must be the same; mark_layout_dynamic leaves extents open"
                )
        if not made:
            raise CuteError("TensorArray: give one tensor or more")
        return made


def _skeleton(t: Tensor) -> Any:
    """Return the part of a tensor that a kernel's code depends on."""
    p = t.iterator
    return p.dtype, p.space, p.alignment, p.readonly, _static_part((t.layout.shape, t.layout.stride))


def _static_part(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_static_part, x))
    return x if type(x) is int else (x.dtype, divisor(x))


class Arguments:
    """The conversion of a launch's arguments to those of the kernel: its tensors in global memory become
    GlobalTensors."""

    def made(self, tensor: Tensor) -> Any:
        """Give a tensor that the kernel made of a pointer as its parts know it."""
        return GlobalTensor(tensor.iterator, tensor.layout, Maps(made=True)) if type(tensor) is Tensor else tensor

    def plain(self, arg: Any) -> Any:
        """Give an argument as Numba knows its type."""
        return tuple(arg) if type(arg) is TensorArray else arg

    def seeking(self, args: Any, serial: int) -> Any:
        """Give arguments that say who asks for a map. serial: of the search."""
        return tuple(
            _each(a, (i,), lambda t, place: _made(t, Maps(wanted=(place, serial)))) for i, a in enumerate(args)
        )

    def bringing(self, args: Any, forms: dict[Any, tuple[Any, ...]], room: tuple[Any, int] | None = None) -> Any:
        """Give arguments that bring maps. forms: of each argument, by its place. room: the address of memory for maps
        that the kernel makes, and how much each block has; the first tensor brings it."""
        made = [_each(a, (i,), lambda t, place: _bringing(t, forms.get(place, ()))) for i, a in enumerate(args)]
        if room is not None:
            _first(made, room)
        return tuple(made)

    def room(self, arg: Any) -> Any:
        """Give the memory for maps that an argument brings, as `bringing` has it; None if it brings none."""
        return (arg.maps.room, arg.maps.room_bytes) if isinstance(arg, GlobalTensor) and arg.maps.room_bytes else None


def _each(arg: Any, place: tuple[int, ...], change: Callable[[Tensor, tuple[int, ...]], Any]) -> Any:
    """The argument with its tensors of global memory changed, those in tuples too."""
    if type(arg) is tuple:
        return tuple(_each(a, (*place, i), change) for i, a in enumerate(arg))
    if type(arg) is TensorArray:  # one place: all bring the same maps
        return tuple(change(t, place) for t in arg)
    return change(arg, place) if type(arg) is Tensor and in_global_memory(arg) else arg


def _first(args: list[Any], room: tuple[Any, int]) -> None:
    """Let the first tensor of a kernel's arguments bring `room`."""
    at = next((i for i, a in enumerate(args) if isinstance(a, GlobalTensor)), None)
    if at is None:
        raise CuteError(
            "this kernel makes tensor maps, and needs memory for them, which its first tensor in global memory brings: "
            "give it a tensor as an argument"
        )
    t = args[at]
    args[at] = _made(t, replace(t.maps, room=room[0], room_bytes=room[1]))


def _made(t: Tensor, maps: Maps) -> GlobalTensor:
    return GlobalTensor(t.iterator, t.layout, maps)


def _bringing(t: Tensor, forms: tuple[Any, ...]) -> GlobalTensor:
    """The tensor with its maps; a tensor remembers them, so that each is made once."""
    known: dict[Any, GlobalTensor] = t.__dict__.setdefault("_cute_bringing", {})
    if forms not in known:
        records: tuple[TensorMapRecord, ...] = tuple(form.record(t) for form in forms)
        known[forms] = _made(t, Maps(forms, records))
    return known[forms]


ARGUMENTS = Arguments()
