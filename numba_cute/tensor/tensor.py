# SPDX-License-Identifier: Apache-2.0
"""Tensors: an iterator (what lies at the origin) and a layout (where the rest lies from there)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from .. import dtypes, layout, seam
from ..dtypes import DType
from ..layout import ComposedLayout, IntTuple, Layout
from ..layout.int_tuple import values
from ..layout.leaves import known as known_layout, valued
from ..layout.recast import recast_elements
from ..seam import CuteError, InIR, frozen, traced
from ..seam.ground.naming import described
from ..seam.guards.messages import how_static
from ..seam.hooks.casting import derived
from . import dynamic
from .address import Address
from .at_once import elements_at_once, pointer_at
from .beginnings import array_view, in_global_memory, is_origin, layout_of, origin, start_of
from .move import filling, fits_a_thread, move
from .offsets import add, check_coord, has_none, needs_64_bits, placed, places, sliced, wide_offset
from .operators import NotThat, no_operand, refuse_operators, settable
from .pointer import AddressSpace, Pointer, element_type_of, recast_ptr
from .ssa import TensorSSA, gives_tensors
from .swizzled import by_address, part_of, reach, swizzled_once

__all__ = [
    "Tensor", "domain_offset", "make_fragment", "make_fragment_like", "make_identity_tensor", "make_rmem_tensor",
    "make_rmem_tensor_like", "make_tensor", "recast_tensor",
]  # fmt: skip

ATOMICS: dict[str, Callable[..., Any]] = {}
"""By the names of `numba.cuda.atomic`, what they do to the element at a pointer: arch.atomic fills this in."""


@frozen
class Tensor(InIR):
    """A tensor: `iterator` at the origin and the `layout` of the rest.

    The iterator is a Pointer, a coordinate (a tuple or an integer: the tensor's elements are then coordinates, as of an
    identity or a TMA tensor), or a matrix descriptor. `t[i, j]` loads or stores one element, or gives the coordinate;
    `t[None, k]` is the tensor that keeps the modes marked None.

    >>> x = cute.runtime.from_dlpack(np.zeros((4, 8), np.float32))
    >>> x
    Tensor(ptr<Float32, gmem, align 4>, (4,8):(8,1))
    >>> x.layout
    (4,8):(8,1)
    """

    iterator: Any
    layout: Any
    __cute_checks_arguments__: ClassVar[bool] = True

    def __post_init__(self) -> None:
        kind = type(self.layout)
        if kind is not Layout and kind is not ComposedLayout:
            raise CuteError(f"Tensor: layout {described(self.layout)}: give a layout; make_tensor takes a shape")
        if type(self.iterator) is not Pointer and not is_origin(self.iterator):
            raise CuteError(f"Tensor: iterator {described(self.iterator)}: give a Pointer or a coordinate")
        if kind is ComposedLayout:
            swizzled_once(self.iterator, self.layout)

    @property
    def shape(self) -> Any:
        """The extents of the layout's modes."""
        return self.layout.shape

    @property
    def stride(self) -> Any:
        """The strides of the layout's modes."""
        return self.layout.stride

    @property
    def has_coordinates(self) -> bool:
        """True if the elements are coordinates, not memory or descriptors."""
        return isinstance(self.iterator, (tuple, int, seam.Leaf))

    @property
    def element_type(self) -> DType:
        """The DType of the elements; Int32 of coordinates."""
        if self.has_coordinates:
            return dtypes.Int32
        return self.iterator.dtype  # type: ignore[no-any-return]

    @element_type.setter
    def element_type(self, dtype: DType) -> None:
        """Have the memory hold elements of another type, `dtype`, under the same layout. On the host."""
        if not isinstance(dtype, DType):
            raise CuteError(f"element_type = {described(dtype)}: give an element type, as cute.Float8E4M3FN")
        if not isinstance(self.iterator, Pointer):
            raise CuteError(f"element_type = {dtype}: the elements of {self!r} are coordinates, or descriptors")
        self._changed(Tensor(recast_ptr(self.iterator, dtype=dtype), self.layout), "element_type = …")

    @property
    def dtype(self) -> DType:
        """The same as `element_type`."""
        return self.element_type

    @property
    def _dtype(self) -> DType:  # by this name files of the CuTe DSL reach it
        return self.element_type

    @property
    def memspace(self) -> AddressSpace:
        """The AddressSpace of the memory; an error for coordinates and descriptors."""
        if not isinstance(self.iterator, Pointer):
            raise seam.UnknownName(f"memspace: {self!r} has no memory; its elements are coordinates or descriptors")
        return self.iterator.space

    def __getitem__(self, coord: Any) -> Any:
        at = pointer_at(self, coord)
        if at is not None:
            return at.load()
        given = coord
        lay, coord = _located(self, coord)
        coord = _checked(given, coord, lay, self._ends(coord))
        if has_none(coord):
            return _slice(self, lay, coord, given)
        at = _element(self, lay, coord)
        return at.load() if isinstance(at, Pointer) else at

    def __setitem__(self, coord: Any, value: Any) -> None:
        at = pointer_at(self, coord)
        if at is not None:
            at.store(value)
            return
        given = coord
        lay, coord = _located(self, coord)
        coord = _checked(given, coord, lay, isinstance(self.iterator, Pointer))
        if has_none(coord):
            part = _slice(self, lay, coord, given)
            part.store(value) if isinstance(value, TensorSSA) else part.fill(value)
            return
        at = _element(self, lay, coord)
        if not isinstance(at, Pointer):
            raise CuteError(f"{self!r}[{coord}] = …: the tensor's elements are coordinates and cannot be set")
        at.store(value)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the elements in coordinate order, on the host; the shape is static."""
        if seam.current_or(None) is not None:
            raise CuteError(f"{self!r} cannot be iterated over: its elements are t[i], i in range(cute.size(t))")
        return (self[i] for i in range(static_size(self, "iteration")))

    def load(self) -> TensorSSA:
        """Load all elements as one immutable vector in registers, in colexicographic order; the layout is static."""
        count = static_size(self, "load")
        held = elements_at_once(self)
        if held is not None:
            return TensorSSA(held[0][held[1]], self.shape, self.element_type)
        regs = self if dense(self) else make_rmem_tensor_like(self)
        if regs is not self:
            move(self.iterator, self.layout, regs.iterator, regs.layout)
        vector = seam.current().vector(span(regs, count))
        if not dense(regs):
            vector = seam.current().take(vector, places(regs.layout))
        return TensorSSA(vector, self.shape, self.element_type)

    def store(self, value: TensorSSA) -> None:
        """Set all elements from `value`, a TensorSSA of the same number of elements and the same type; the layout is
        static."""
        count = static_size(self, "store")
        if not isinstance(value, TensorSSA):
            raise CuteError(f"store: {value!r} is not a TensorSSA; use t.fill(x), or t[i, j] = x for one element")
        if layout.size(value.shape) != count:
            raise CuteError(f"store: value of shape {value.shape} does not fit a tensor of shape {self.shape}")
        if value.dtype != self.element_type:
            raise CuteError(f"store: {value.dtype} into {self.element_type} elements; convert with .to(dtype)")
        held = elements_at_once(self, writes=True)
        if held is not None:
            held[0][held[1]] = value.vector
            return
        regs = self if dense(self) else make_rmem_tensor_like(self)
        vector = value.vector
        if not dense(regs):
            at = places(regs.layout)
            vector = seam.current().take(vector, tuple(sorted(range(count), key=at.__getitem__)))
        seam.current().unvector(vector, span(regs, count))
        if regs is not self:
            move(regs.iterator, regs.layout, self.iterator, self.layout)

    def fill(self, value: Any) -> None:
        """Set every element to `value`; the layout is static."""
        count = static_size(self, "fill")
        if self.memspace is AddressSpace.rmem and reach(self.layout) == count:
            seam.current().fill(span(self, count), value)
            return
        held = elements_at_once(self, writes=True)
        if held is not None:
            held[0][held[1]] = seam.current().pack(self.element_type, (value,))
            return
        firsts, put = filling(self.iterator, self.layout, count, value)
        for i in firsts:
            put(element(self, i))

    def _ends(self, coord: Any) -> bool:
        """Say whether `coord` must lie within the shape: where memory ends."""
        return isinstance(self.iterator, Pointer)

    def _relaid(self, change: Callable[[Any], Any]) -> Tensor:
        """The same memory under the layout that `change` makes of this one."""
        return self._tracked(Tensor(self.iterator, change(self.layout)), lambda other: other._relaid(change))

    def _tracked(self, made: Tensor, again: Callable[[Tensor], Tensor]) -> Tensor:
        """`made`, a part or a view of this tensor, with what else is known of it. again: does the same to another
        tensor of this one's shape. For tensors that know more than memory and a layout (experimental.GlobalTensor)."""
        return made

    @property
    def leading_dim(self) -> Any:
        """Return the mode whose stride is static 1: its index, a tuple of indices where modes are nested, None if there
        is none. As `cute.leading_dim(shape, stride)`."""
        return layout.leading_dim(self.shape, self.stride)

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> Tensor:
        """Make all extents and strides run-time values, but for the stride 1 of mode `leading_dim` (default: the mode
        that has it); gives the tensor itself. On the host; one compiled kernel then serves all shapes."""
        return self._changed(derived(_dynamic, self, leading_dim), "mark_layout_dynamic")

    def mark_compact_shape_dynamic(self, mode: int, stride_order: Any = None, divisibility: int = 1) -> Tensor:
        """Make the extent of `mode` a run-time value, and the strides that depend on it; gives the tensor itself. On
        the host.

        stride_order: the modes from the outermost to the innermost (default: by their strides). divisibility: a number
        that divides the extent, which is checked.
        """
        made = derived(_shape_dynamic, self, mode, stride_order, divisibility)
        return self._changed(made, "mark_compact_shape_dynamic")

    def _changed(self, made: Tensor, what: str) -> Tensor:
        """This tensor, which has become as `made`: on the host alone, where who made it has named it."""
        if seam.current_or(None) is not None:
            raise CuteError(f"{what}: a tensor is changed on the host, before the launch, and not in a kernel")
        vars(self).clear()  # with what is remembered of it
        vars(self).update(vars(made))
        return self

    def __cute_allocations__(self) -> list[tuple[int, int, str, Any, bool]]:
        """(address, bytes, name, owner, whether it is read-only) of the memory that this tensor refers to. owner:
        None of an address that is a mere number."""
        address, nbytes = extent(self)
        if not nbytes:
            return []
        held = self.iterator.address
        held.checked(simulated=True)
        owner = None
        if isinstance(held, Address):
            owner = held.owner
            address, nbytes = held.within(address, nbytes)
        return [(address, nbytes, "", owner, self.iterator.readonly)]

    def __cute_atomic__(self, op: str, coord: Any, *values: Any) -> Any:
        """Do what `cuda.atomic.<op>(t, coord, *values)` does."""
        coord = check_coord(coord, self.layout, isinstance(self.iterator, Pointer))
        if has_none(coord) or not isinstance(self.iterator, Pointer):
            raise CuteError(f"cuda.atomic.{op}: {self!r} at {coord} is not an element in memory")
        if op not in ATOMICS:
            known = ", ".join(ATOMICS)
            raise CuteError(f"cuda.atomic.{op}: of a tensor's elements there are {known}; pass an array")
        return ATOMICS[op](element(self, coord), *values)

    def __eq__(self, other: object) -> bool:
        """Return whether the other is the same memory under the same layout."""
        if isinstance(other, Tensor):
            return bool((self.iterator, self.layout) == (other.iterator, other.layout))
        if other is None or isinstance(other, (str, type)):
            return NotImplemented
        raise no_operand(self, "{} == x")

    def __bool__(self) -> bool:
        raise CuteError(
            f"{self!r} has no truth value: load it, and ask cute.any_(t.load()) or cute.all_(t.load()); whether there "
            "is a tensor is `t is not None`"
        )

    def __float__(self) -> float:
        raise NotThat(f"{self!r} is not a number: t[i] is one of its elements")

    __int__ = __index__ = __float__

    def __contains__(self, x: Any) -> bool:
        raise CuteError(f"{self!r}: `x in t` is cute.any_(t.load() == x)")

    def __len__(self) -> int:
        raise NotThat(f"{self!r} has no len(): its size is cute.size(t), and cute.size(t, mode=[0]) that of a mode")

    def __repr__(self) -> str:
        return f"Tensor({self.iterator!r}, {self.layout})"


settable(Tensor, "element_type")
refuse_operators(Tensor)


def _dynamic(t: Tensor, leading_dim: int | None) -> Tensor:
    return Tensor(t.iterator, dynamic.layout_dynamic(t.layout, leading_dim))


def _shape_dynamic(t: Tensor, mode: int, stride_order: Any, divisibility: int) -> Tensor:
    return Tensor(t.iterator, dynamic.compact_shape_dynamic(t.layout, mode, stride_order, divisibility))


def extent(t: Tensor) -> tuple[int, int]:
    """Return the first address of what a tensor of the host refers to, and how many bytes that is; 0 of no memory."""
    p = t.iterator
    if not _linear(t) or not isinstance(p.address, dtypes.Scalar):
        return 0, 0
    shape, stride = layout.flatten_to_tuple(t.shape), layout.flatten_to_tuple(t.stride)
    if any(int(s) == 0 for s in shape):
        return 0, 0
    reach = [(int(s) - 1) * int(d) * p.dtype.width for s, d in zip(shape, stride)]
    low = sum(r for r in reach if r < 0) // 8
    high = -(-(sum(r for r in reach if r > 0) + p.dtype.width) // 8)
    return int(p.address) + low, high - low


def static_size(t: Tensor, what: str) -> int:
    if not seam.is_static(t.shape):
        raise CuteError(f"{what}: the shape {t.shape} must be static; slice a static tile first{how_static(t.shape)}")
    return int(layout.size(t.shape))


def dense(t: Tensor) -> bool:
    """Return whether `t` is in registers, its elements next to each other in coordinate order."""
    if not _linear(t) or t.iterator.space is not AddressSpace.rmem:
        return False
    flat = layout.coalesce(t.layout)
    return layout.size(flat) == 1 or flat.stride in (1, (1,))


def span(t: Tensor, count: int) -> seam.Regs:
    p = t.iterator
    return seam.Regs(p.address, p.dtype, p.offset, count)


def _checked(given: Any, coord: Any, lay: Any, bounded: bool) -> Any:
    """`coord`, as `check_coord`; one of run time beyond the shape only where a check of the simulator does not mind.
    given: it, with its types."""
    try:
        return check_coord(coord, lay, bounded)
    except CuteError as e:
        tell = getattr(seam.current_or(None), "leaves_shape", None)
        if tell is None or seam.is_static(given):
            raise
        tell(e)
        return check_coord(coord, lay)


def _located(t: Tensor, coord: Any) -> tuple[Any, Any]:
    """The layout and a coordinate by which an offset is computed: of what lies in memory only the address counts, which
    needs no types where the numbers are known; what is made of coordinates keeps theirs."""
    if isinstance(t.iterator, tuple):
        return t.layout, coord
    if seam.computes_on_host():
        return valued(t.layout), values(coord)
    return known_layout(t.layout), seam.known(coord)


def element(t: Tensor, coord: IntTuple) -> Any:
    """Return the iterator at one coordinate."""
    return _element(t, *_located(t, coord))


def _element(t: Tensor, lay: Any, coord: Any) -> Any:
    start = t.iterator
    if type(lay) is ComposedLayout:
        start, lay = by_address(start, lay)
    wide = needs_64_bits(start, lay)
    return add(start, wide_offset(coord, lay.shape, lay.stride) if wide else placed(lay, coord))


def _linear(t: Tensor) -> bool:
    return isinstance(t.layout, Layout) and isinstance(t.iterator, Pointer)


def slice_tensor(t: Tensor, coord: IntTuple) -> Tensor:
    """Keep the modes of `t` marked None in `coord`, at the others' place."""
    return _slice(t, *_located(t, coord), coord)


def _slice(t: Tensor, lay: Any, coord: Any, given: Any) -> Tensor:
    """lay, coord: for the offset. given: with its types, of which are the strides of a part of a swizzled layout."""
    if type(lay) is ComposedLayout:
        made = Tensor(*part_of(t.iterator, t.layout, given))
    elif needs_64_bits(t.iterator, lay):
        made = Tensor(add(t.iterator, wide_offset(coord, lay.shape, lay.stride)), layout.slice_(t.layout, coord))
    else:
        rest, offset = sliced(lay, coord)
        made = Tensor(add(t.iterator, offset), rest if lay is t.layout else layout.slice_(t.layout, coord))
    return t._tracked(made, lambda other: slice_tensor(other, given))


# Making tensors


@traced
def make_tensor(iterator: Any, layout: Any = None) -> Tensor:
    """Make a tensor. iterator: a Pointer, a coordinate tuple, a descriptor, or in a kernel an array: the tensor is in
    shared memory if `cuda.shared.array` gave it, whose `alignment` it has. layout: a Layout, or a shape, then compact
    and column-major; of an array it may be left out: its own shape and strides.

    >>> cute.make_tensor(cute.make_ptr(cute.Float16, 4096, cute.AddressSpace.gmem), cute.make_layout((4, 8)))
    Tensor(ptr<Float16, gmem, align 2>, (4,8):(1,4))
    """
    view = array_view(iterator)
    if layout is None:
        if view is None:
            raise CuteError(
                f"make_tensor: layout is missing; only an array has its own layout, and {iterator!r} is not an array"
            )
        return Tensor(start_of(view), layout_of(view))
    made = Tensor(start_of(view) if view is not None else origin(iterator), _layout(layout))
    tell = getattr(seam.current_or(None), "made_tensor", None)
    return made if tell is None or not in_global_memory(made) else tell(made)


def _layout(x: Any) -> Any:
    return x if isinstance(x, (Layout, ComposedLayout)) else layout.make_layout(x)


@traced
def make_rmem_tensor(layout_or_shape: Any, dtype: DType) -> Tensor:
    """Make a tensor of `dtype` elements in this thread's registers, its contents undefined. layout_or_shape: static.

    >>> def kernel():
    ...     print(cute.make_rmem_tensor((2, 4), cute.Float32).layout)
    >>> cute.simulate(kernel)[1, 1]()
    (2,4):(1,2)
    """
    lay = _layout(layout_or_shape)
    if not layout.is_static(lay):
        raise CuteError(
            f"make_rmem_tensor: layout {lay} must be static, for registers cannot be indexed at run time"
            f"{how_static(lay)}"
        )
    dtype = element_type_of(dtype, "make_rmem_tensor")
    fits_a_thread("make_rmem_tensor", int(layout.size(lay)), dtype)  # where elements share registers
    file = seam.current().registers(dtype, fits_a_thread("make_rmem_tensor", reach(lay), dtype))
    return Tensor(Pointer(dtype, AddressSpace.rmem, file, 0, 16), lay)


@gives_tensors
def _in_registers(x: TensorSSA) -> Tensor:
    held: Tensor = make_rmem_tensor(x.shape, x.element_type)
    held.store(x)
    return held


@traced
def make_fragment(layout_or_shape: Any, dtype: DType) -> Tensor:
    """Call `make_rmem_tensor(layout_or_shape, dtype)`: its older name.

    >>> def kernel():
    ...     print(cute.make_fragment((2, 4), cute.Float32).layout)
    >>> cute.simulate(kernel)[1, 1]()
    (2,4):(1,2)
    """
    return make_rmem_tensor(layout_or_shape, dtype)


def like_layout(src: Any) -> Layout:
    """Return a compact layout of the same shape: mode 0 first, the other modes in the order of their strides."""
    lay = src.layout if isinstance(src, Tensor) else src
    if not isinstance(lay, Layout):
        return layout.make_layout(lay.shape if isinstance(lay, ComposedLayout) else lay)
    if layout.rank(lay) < 2 or layout.is_basis(lay.stride) or not seam.is_static(lay.stride):
        return layout.make_layout(lay.shape)
    rest = layout.make_ordered_layout(lay.shape[1:], lay.stride[1:])
    whole: Layout = layout.tiled_product(layout.make_layout(lay.shape[0]), rest)
    return whole


@traced
def make_rmem_tensor_like(src: Any, dtype: DType | None = None) -> Tensor:
    """Make a tensor in registers of the shape (and order) of `src`, a tensor or a layout; `dtype` defaults to the
    tensor's.

    >>> x = cute.make_identity_tensor((2, 4))
    >>> def kernel():
    ...     print(cute.make_rmem_tensor_like(x, cute.Float32).layout)
    >>> cute.simulate(kernel)[1, 1]()
    (2,4):(1,2)
    """
    if dtype is None and not isinstance(src, Tensor):
        raise CuteError("make_rmem_tensor_like: src is a layout, so dtype must be given")
    return make_rmem_tensor(like_layout(src), dtype or src.element_type)


@traced
def make_fragment_like(src: Any, dtype: DType | None = None) -> Tensor:
    """Call `make_rmem_tensor_like(src, dtype)`: its older name.

    >>> x = cute.make_identity_tensor((2, 4))
    >>> def kernel():
    ...     print(cute.make_fragment_like(x, cute.Float32).layout)
    >>> cute.simulate(kernel)[1, 1]()
    (2,4):(1,2)
    """
    return make_rmem_tensor_like(src, dtype)


@traced
def make_identity_tensor(shape: IntTuple) -> Tensor:
    """Make the tensor of `shape` whose element at each coordinate is that coordinate: an integer where the shape is
    one.

    >>> cute.make_identity_tensor((4, 8))[2, 5]
    (2, 5)
    """
    lay = layout.make_identity_layout(shape)
    return Tensor(layout.repeat_like(0, lay.shape), lay)


@traced
def recast_tensor(src: Tensor, dtype: DType, swizzle_: Any = None) -> Tensor:
    """View the memory of `src` as elements of `dtype`, all of it: the contiguous mode, of static stride 1, grows or
    shrinks, and where elements become wider it and the other strides must divide. swizzle_: default, its own.

    >>> t = cute.make_tensor(cute.make_ptr(cute.Float16, 4096, assumed_align=16), cute.make_layout((8, 4)))
    >>> cute.recast_tensor(t, cute.Float32).layout
    (4,4):(1,4)
    """
    if not isinstance(src, Tensor) or not isinstance(src.iterator, Pointer):
        raise CuteError(f"recast_tensor: {src!r} is not a tensor in memory")
    dtype = element_type_of(dtype, "recast_tensor")
    p = src.iterator
    lay = recast_elements(dtype.width, p.dtype.width, src.layout)
    return Tensor(recast_ptr(p, swizzle_ if swizzle_ is not None else p.swizzle, dtype), lay)


@traced
def domain_offset(coord: IntTuple, tensor: Any) -> Any:
    """Move the origin of `tensor` to its coordinate `coord`; of a layout, return (layout, offset).

    >>> cute.domain_offset((2, 1), cute.make_identity_tensor((4, 8)))[0, 0]
    (2, 1)
    """
    if not isinstance(tensor, Tensor):
        return layout.domain_offset(coord, tensor)
    if isinstance(tensor.layout, ComposedLayout):
        moved, offset = layout.domain_offset(coord, tensor.layout)
        return Tensor(add(tensor.iterator, offset), moved)
    moved = Tensor(element(tensor, check_coord(coord, tensor.layout)), tensor.layout)
    return tensor._tracked(moved, lambda other: domain_offset(coord, other))
