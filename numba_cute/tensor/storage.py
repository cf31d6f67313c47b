# SPDX-License-Identifier: Apache-2.0
"""`cute.struct`: classes of shared memory (`MemRange`, `Align`), and classes of run-time values (`seam.struct`).

The annotations tell them apart. A class with a `MemRange`, an `Align` or another storage class among its annotations
describes memory: `SmemAllocator.allocate` gives room for one, and its members are pointers, ranges and storage again.
Any other class is a run-time struct. One whose fields are element types only may be used both ways.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .. import layout, seam
from ..dtypes import DType, Uint8
from ..layout import ComposedLayout, Layout, Swizzle
from ..seam import CuteError, Int, frozen, traced
from ..seam.ground.names import Named
from ..seam.ground.records import dataclass
from ..seam.guards import facade
from ..seam.guards.messages import how_static
from ..seam.marks.decorators import annotations_of, check_own_class
from .pointer import AddressSpace, Pointer
from .swizzled import of_elements, reach, swizzle_of
from .tensor import Tensor

__all__ = ["struct", "union"]

T = TypeVar("T")


def _power_of_two(x: Any) -> bool:
    return type(x) is int and x > 0 and x & (x - 1) == 0


@dataclass(frozen=True)
class Range:
    """`count` elements of `dtype`, aligned to one: `MemRange[dtype, count]`."""

    dtype: DType
    count: int

    def size_in_bytes(self) -> int:
        return self.count * self.dtype.width // 8

    @property
    def alignment(self) -> int:
        return max(1, self.dtype.width // 8)


@dataclass(frozen=True)
class Aligned:
    """`kind` at a multiple of `alignment` bytes: `Align[kind, alignment]`."""

    kind: Any
    alignment: int

    def size_in_bytes(self) -> int:
        return size_of(self.kind)


class MemRange:
    """`MemRange[dtype, count]`: room for `count` elements of `dtype` in a storage class.

    The member is a `MemRangeData`: `data_ptr()`, `get_tensor(layout, swizzle=…)`, `[i]`."""

    def __class_getitem__(cls, item: Any) -> Range:
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], DType):
            raise CuteError(f"MemRange[{item!r}]: give an element type and how many: MemRange[cute.Float16, 4096]")
        if type(item[1]) is not int or item[1] < 0:
            raise CuteError(
                f"MemRange[{item[0]!r}, {item[1]!r}]: the number of elements must be a static int >= 0"
                f"{how_static(item[1])}"
            )
        if item[0].width * item[1] % 8:
            raise CuteError(f"MemRange[{item[0]!r}, {item[1]}]: {item[0].width * item[1]} bits are not whole bytes")
        return Range(*item)


class Align:
    """`Align[member, bytes]`: a member of a storage class (an element type, a `MemRange`, or a storage class) at a
    multiple of `bytes`, a power of two up to 1024."""

    def __class_getitem__(cls, item: Any) -> Aligned:
        if not isinstance(item, tuple) or len(item) != 2:
            raise CuteError(f"Align[{item!r}]: give a member and its alignment: Align[MemRange[cute.Int64, 8], 16]")
        kind, alignment = item
        if not _is_member(kind):
            raise CuteError(f"Align[{kind!r}, …]: {_MEMBERS}")
        if not _power_of_two(alignment) or alignment > 1024:
            raise CuteError(f"Align[…, {alignment!r}]: the alignment must be a power of two, at most 1024 bytes")
        return Aligned(kind, max(alignment, alignment_of(kind)))


_MEMBERS = "a member of storage is an element type, MemRange[dtype, n], Align[member, bytes], or a storage class"


def _is_member(kind: Any) -> bool:
    return isinstance(kind, (DType, Range, Aligned)) or members_of(kind) is not None


def size_of(kind: Any) -> int:
    """Count the bytes of a member or a storage class."""
    if isinstance(kind, DType):
        return kind.bytes
    if isinstance(kind, (Range, Aligned)):
        return kind.size_in_bytes()
    return _laid_out(kind)[1]


def alignment_of(kind: Any) -> int:
    """Return the bytes of which the place of a member or a storage class must be a multiple."""
    if isinstance(kind, DType):
        return kind.bytes
    if isinstance(kind, (Range, Aligned)):
        return kind.alignment
    return _laid_out(kind)[2]


def members_of(cls: Any) -> dict[str, Any] | None:
    """Return the members, by name, of a storage class or of a run-time struct of element types; None for anything
    else."""
    if not isinstance(cls, type):
        return None
    found = cls.__dict__.get("__cute_members__")
    if found is None and seam.is_struct_class(cls):
        types = cls.__cute_types__  # type: ignore[attr-defined]
        found = types if types and all(isinstance(t, DType) for t in types.values()) else None
    return found


def _laid_out(cls: Any) -> tuple[dict[str, int], int, int]:
    """The members' offsets, the size and the alignment of a class: as C lays out a struct, or a
    union."""
    offsets, at, widest = {}, 0, 1
    if cls.__dict__.get("__cute_overlaid__", False):
        kinds = members_of(cls) or {}
        widest = max(map(alignment_of, kinds.values()))
        return dict.fromkeys(kinds, 0), -(-max(map(size_of, kinds.values())) // widest) * widest, widest
    for name, kind in (members_of(cls) or {}).items():
        align = alignment_of(kind)
        at = -(-at // align) * align
        offsets[name] = at
        at += size_of(kind)
        widest = max(widest, align)
    return offsets, -(-at // widest) * widest, widest


@frozen
class MemRangeData:
    """`count` elements of a storage object in shared memory, from `pointer` on. `r[i]` is an element."""

    pointer: Pointer
    count: int

    @property
    def dtype(self) -> DType:
        """The DType of the elements."""
        return self.pointer.dtype

    @property
    def _size(self) -> int:
        """The number of elements, by the name that files of the CuTe DSL ask."""
        return self.count

    def data_ptr(self) -> Pointer:
        """Return the Pointer to the first element."""
        return self.pointer

    def size_in_bytes(self) -> int:
        """Count the bytes of the whole range."""
        return self.count * self.dtype.width // 8

    def get_tensor(self, layout: Any, swizzle: Any = None, dtype: DType | None = None) -> Tensor:
        """View the memory as a tensor of a static `layout`. swizzle: one of the bytes of its addresses, which the
        tensor's pointer then has; a swizzled layout's own is of its elements, and stays in the layout, as for
        `SmemAllocator.allocate_tensor`. dtype: see the bytes as elements of another type."""
        return placed(self.pointer, self.size_in_bytes(), layout, swizzle, dtype)

    def __getitem__(self, index: Any) -> Any:
        return self._at(index).load()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._at(index).store(value)

    def _at(self, index: Int) -> Pointer:
        if isinstance(index, int) and not 0 <= index < self.count:
            raise CuteError(f"index {index} is outside the {self.count} elements of this MemRange")
        return self.pointer + index


@frozen
class ScalarMember(Pointer):
    """A member of an element type: the pointer to it. `storage.x = v` sets it, `storage.x.load()` reads it."""

    @property
    def ptr(self) -> Pointer:
        """The same as an ordinary Pointer."""
        return Pointer(*(getattr(self, f.name) for f in dataclasses.fields(Pointer)))


def placed(pointer: Pointer, nbytes: int, lay: Any, swizzle: Any, dtype: DType | None) -> Tensor:
    """Make the tensor of a range; an error if it does not fit, or cannot be swizzled there."""
    lay = static_layout(lay, "get_tensor")
    dtype = pointer.dtype if dtype is None else dtype
    need = bytes_of(lay, dtype, swizzle)
    if need > nbytes:
        by = f" where swizzle={swizzle} puts them" if need > bytes_of(lay, dtype) else ""
        raise CuteError(f"get_tensor: layout {lay} of {dtype} takes {need} bytes{by}, but the MemRange has {nbytes}")
    at = Pointer(dtype, pointer.space, pointer.address, 0, pointer.alignment)
    return swizzled_tensor(at, lay, swizzle, "get_tensor")


MOST_SHARED = 1 << 20
"""More bytes than the shared memory of any target has."""


def bytes_of(lay: Any, dtype: DType, swizzle: Any = None) -> int:
    """Count the bytes that a static layout of `dtype` takes in memory, wherever a swizzle of its bytes puts them."""
    size = -(-reach(lay) * dtype.width // 8)
    if not isinstance(swizzle, Swizzle) or not swizzle.bits or size % _mixed(swizzle) == 0:
        return size
    found = of_elements(swizzle, dtype)
    if (
        found is None or not isinstance(lay, Layout) or size > MOST_SHARED
    ):  # which is refused: each element is looked at
        return -(-size // _mixed(swizzle)) * _mixed(swizzle)
    return -(-reach(layout.make_composed_layout(found, 0, lay)) * dtype.width // 8)


def _mixed(swizzle: Swizzle) -> int:
    """The bytes within which a swizzle moves what it moves."""
    return swizzle.z_mask + (swizzle.z_mask & -swizzle.z_mask)


def static_layout(lay: Any, what: str) -> Layout | ComposedLayout:
    """Return a layout that shared memory can have, of one or of what makes one."""
    lay = lay if isinstance(lay, (Layout, ComposedLayout)) else layout.make_layout(lay)
    plain = lay.outer if isinstance(lay, ComposedLayout) else lay
    if not seam.is_static((plain.shape, plain.stride)):
        raise CuteError(f"{what}: layout {lay} must be static: the size of shared memory is{how_static(lay)}")
    return lay  # type: ignore[no-any-return]


def swizzled_tensor(pointer: Pointer, lay: Any, swizzle: Any, what: str) -> Tensor:
    """Make the tensor of `lay` at a pointer to shared memory, its addresses swizzled by `swizzle` (of bytes); a layout
    that is itself swizzled, of elements, stays as it is."""
    if swizzle is not None and swizzle.bits and swizzle_of(lay) is not None:
        raise CuteError(
            f"{what}: layout {lay} swizzles its elements, and swizzle={swizzle} the bytes of its addresses: give "
            "layout.outer with swizzle=, or the layout alone"
        )
    return Tensor(swizzled(pointer, swizzle), lay)


def swizzled(pointer: Pointer, swizzle: Any) -> Pointer:
    """Return the pointer a swizzle of its byte addresses. What it moves must stay in the memory: that must begin at a
    multiple of the bytes that are mixed, which only the simulator always sees; 16 bytes must be promised."""
    if swizzle is None or not swizzle.bits:
        return pointer
    mixed = _mixed(swizzle)
    known = pointer.alignment
    address = seam.known(pointer.address)
    if isinstance(address, int):
        known = max(known, address & -address)
    elif pointer.alignment % (1 << swizzle.base) == 0:
        known = mixed
    if known % mixed:
        raise CuteError(
            f"swizzle {swizzle}: its period is {swizzle.period} bytes, but the memory is aligned to "
            f"{known}; give byte_alignment=1024, or Align[MemRange[…], 1024]"
        )
    return Pointer(pointer.dtype, pointer.space, pointer.address, 0, pointer.alignment, swizzle)


class Storage(metaclass=Named):
    """The base of storage classes: one object in shared memory at `base`."""

    __cute_members__: ClassVar[dict[str, Any]] = {}
    __cute_overlaid__: ClassVar[bool] = False
    __cute_offsets__: ClassVar[dict[str, int]] = {}
    __cute_size__: ClassVar[tuple[int, int]] = (0, 1)

    base: Any

    @staticmethod
    def size_in_bytes() -> int:
        """Count the bytes of one object, padding included."""
        raise NotImplementedError

    @staticmethod
    def alignment() -> int:
        """Return the bytes of which its address must be a multiple."""
        raise NotImplementedError


def _member(storage: Any, name: str) -> Any:
    cls = type(storage)
    kind, base = cls.__cute_members__[name], storage.base
    offset = cls.__cute_offsets__[name]
    known = cls.__cute_size__[1] if offset == 0 else min(cls.__cute_size__[1], offset & -offset)
    return at(kind, base.address + offset if offset else base.address, max(known, alignment_of(kind)))


def at(kind: Any, address: Any, alignment: int) -> Any:
    """Return the object of a member kind or storage class at an address of shared memory."""
    if isinstance(kind, Aligned):
        return at(kind.kind, address, max(alignment, kind.alignment))
    if isinstance(kind, DType):
        return ScalarMember(kind, AddressSpace.smem, address, 0, alignment)
    if isinstance(kind, Range):
        return MemRangeData(Pointer(kind.dtype, AddressSpace.smem, address, 0, alignment), kind.count)
    made = storage_class(kind)
    return made(Pointer(Uint8, AddressSpace.smem, address, 0, max(alignment, alignment_of(kind))))


def _set_member(storage: Any, name: str, value: Any) -> None:
    cls = type(storage)
    plain = {n: k.kind if isinstance(k, Aligned) else k for n, k in cls.__cute_members__.items()}
    if not isinstance(plain.get(name), DType):
        legal = ", ".join(n for n, k in plain.items() if isinstance(k, DType)) or "none"
        raise CuteError(f"{cls.__name__}.{name} cannot be assigned; the members of an element type are: {legal}")
    getattr(storage, name).store(value)


def _make(cls: Any, members: dict[str, Any], methods: dict[str, Any], overlaid: bool = False) -> Any:
    """The storage class of these members, with the name of `cls`. overlaid: all of them at its first byte."""
    body: dict[str, Any] = {
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
        "__cute_members__": members,
        "__cute_overlaid__": overlaid,
        **methods,
    }
    body["__annotations__"] = {"base": Any}
    for member in members:
        body[member] = property(functools.partial(_member, name=member))
    made = type(cls.__name__, (Storage,), body)
    offsets, size, align = _laid_out(made)
    made.__cute_offsets__, made.__cute_size__ = offsets, (size, align)  # type: ignore[attr-defined]
    made.size_in_bytes = staticmethod(traced(lambda: size))  # type: ignore[attr-defined]
    made.alignment = staticmethod(traced(lambda: align))  # type: ignore[attr-defined]
    frozen(made)
    made.__setattr__ = _set_member  # type: ignore[method-assign,assignment]
    return made


def storage_class(cls: Any) -> Any:
    """Return the storage class of a member class: itself, or for a run-time struct of element types one of its
    fields."""
    if "__cute_members__" in cls.__dict__:
        return cls
    found = cls.__dict__.get("_cute_storage")
    if found is None:
        found = cls._cute_storage = _make(cls, members_of(cls) or {}, {})
    return found


def _struct(cls: type[T]) -> type[T]:
    """Make `cls` a class of shared memory, or of run-time values.

    With a `struct.MemRange[dtype, n]`, a `struct.Align[member, bytes]` or a storage class among its annotations it
    describes memory, laid out as C does: `smem.allocate(cls)` makes one, `cls.size_in_bytes()` counts its bytes;
    methods are traced. Otherwise it is a mutable class that kernels hold by reference: a field annotated with a `DType`
    is a run-time value of that type, any other field keeps what the constructor was given (objects by reference), and
    methods are jitted. A class of element types alone is such a class, and `allocate` takes it too.

        @cute.struct
        class SharedStorage:
            barriers: cute.struct.MemRange[cute.Int64, 8]
            a: cute.struct.Align[cute.struct.MemRange[cute.Float16, 4096], 1024]

    >>> @cute.struct
    ... class Storage:
    ...     barriers: cute.struct.MemRange[cute.Int64, 8]
    ...     a: cute.struct.Align[cute.struct.MemRange[cute.Float16, 64], 128]
    >>> Storage.size_in_bytes()
    256
    """
    check_own_class("struct", cls)
    kinds = _annotations(cls)
    if not any(isinstance(k, (Range, Aligned)) or _is_storage(k) for k in kinds.values()):
        made = seam.struct(cls)
        if members_of(made) is not None and "size_in_bytes" not in cls.__dict__:
            made.size_in_bytes = staticmethod(traced(lambda: size_of(made)))  # type: ignore[attr-defined]
        return made
    return _storage(cls, kinds, overlaid=False)  # type: ignore[no-any-return]


def _storage(cls: Any, kinds: dict[str, Any], overlaid: bool) -> Any:
    """Make the storage class that a user's class describes; CuteError says what of it is none."""
    for name, kind in kinds.items():
        if not _is_member(kind):
            raise CuteError(f"{cls.__name__}.{name}: {kind!r}: {_MEMBERS}")
        if name in cls.__dict__:
            raise CuteError(f"{cls.__name__}.{name} = {cls.__dict__[name]!r}: shared memory has no initial values")
        if hasattr(Storage, name) or name == "base":
            raise CuteError(f"{cls.__name__}.{name}: a member of storage cannot have this name")
    if cls.__bases__ != (object,):
        raise CuteError(f"{cls.__name__}: storage cannot be inherited; make {cls.__bases__[0].__name__} a member")
    methods = {k: v for k, v in vars(cls).items() if not k.startswith("__")}
    for name, x in methods.items():
        if isinstance(x, (Range, Aligned)):
            raise CuteError(
                f"{cls.__name__}.{name} = {x!r:.60}: a member is annotated; write `{name}: …`, with a colon"
            )
    if methods:
        return _make(cls, kinds, methods, overlaid)
    key = (cls.__module__, cls.__qualname__, cls.__doc__, tuple(kinds.items()), overlaid)
    if key not in _DESCRIBED:
        _DESCRIBED[key] = _make(cls, kinds, {}, overlaid)
    return _DESCRIBED[key]


_DESCRIBED: dict[Any, Any] = {}
"""The storage classes without methods: one that a host function describes at each call is one class, so that a kernel
that it launches is compiled once."""


def union(cls: type[T]) -> type[T]:
    """Make `cls` a class of shared memory whose members all begin at its first byte, so that it takes the room of the
    largest: for what is used one after the other, with a barrier between. Its annotations are those of a storage class
    (see `struct`), and it may be a member of one. CuteError: no members, or what no storage may have.

        @cute.union
        class Epilogue:
            operands: cute.struct.MemRange[cute.Float16, 8192]
            out: cute.struct.Align[cute.struct.MemRange[cute.Float32, 2048], 1024]

    >>> @cute.union
    ... class Shared:
    ...     operands: cute.struct.MemRange[cute.Float16, 64]
    ...     out: cute.struct.MemRange[cute.Float32, 64]
    >>> Shared.size_in_bytes()
    256
    """
    check_own_class("union", cls)
    kinds = _annotations(cls)
    if not kinds:
        raise CuteError(f"{cls.__name__}: a union has members: annotate them, as `a: cute.struct.MemRange[…, …]`")
    return _storage(cls, kinds, overlaid=True)  # type: ignore[no-any-return]


if TYPE_CHECKING:
    # A function has no `struct.MemRange` in an annotation, so here it is a class. mypy checks the calls of what it
    # decorates, and takes members of memory for Any; pyright takes what it decorates for Any.
    MYPY = False  # which mypy takes for true

    @seam.dataclass_transform()
    class _Structs(type): ...

    if MYPY:

        class struct(metaclass=_Structs):
            Align: ClassVar[Any]
            MemRange: ClassVar[Any]

            def __new__(cls, made: type[T]) -> Any: ...
    else:

        class struct:
            from typing import Annotated as Align, Annotated as MemRange

            def __new__(cls, made: type[T]) -> Any: ...
else:
    struct = _struct
    struct.__name__ = struct.__qualname__ = "struct"
    struct.MemRange, struct.Align = MemRange, Align


def _is_storage(kind: Any) -> bool:
    return isinstance(kind, type) and "__cute_members__" in kind.__dict__


def _annotations(cls: Any) -> dict[str, Any]:
    """A class's annotations as objects; those that are text may use the names where the class is defined."""
    own = cls.__dict__.get("__annotations__", {})
    if not any(isinstance(a, str) for a in own.values()):
        return dict(inspect.get_annotations(cls))
    frame = facade.caller(sys._getframe(2))
    scope = {**frame.f_globals, **frame.f_locals}
    return annotations_of(cls, globals=scope, locals=dict(vars(cls)))
