# SPDX-License-Identifier: Apache-2.0
"""The forms of layouts, swizzles, basis strides, pointers, tensors and register vectors."""

from __future__ import annotations

from typing import Any

from ... import layout
from ...dtypes import DType, Int32, Int64, Uint32, Uint64
from ...layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from ...seam import CuteError
from ...tensor.move import fits_a_thread
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.ssa import TensorSSA
from ...tensor.tensor import Tensor
from ...typed.descriptions import Constant, Description, Elements, Group, Object, RegisterFile, Scalar
from . import registry
from .fields import (
    Fields,
    Form,
    Quoted,
    Thing,
    Word,
    add_form,
    default_fields,
    fields_by_name,
    held,
    instance,
    is_constant,
    is_int,
    is_number,
)
from .reader import Reader
from .writer import is_bare, is_profile, published


def dtype_word(d: Description) -> Word | None:
    """Return an element type as types have it in the first place: f16; None for anything else."""
    return Word(registry.element_name(d.value)) if isinstance(d, Constant) and isinstance(d.value, DType) else None


def dtype_of(thing: Thing) -> Constant:
    """Return the element type that something in a type says, f16 or !f16."""
    if isinstance(thing, Word) and thing.given is None and thing.name in registry.ELEMENTS:
        return Constant(registry.ELEMENTS[thing.name])
    if isinstance(thing, Constant) and isinstance(thing.value, DType):
        return thing
    raise CuteError(f"{_said(thing)} is not an element type; they are {', '.join(registry.ELEMENTS)}")


def _said(thing: Thing) -> str:
    return repr(thing.name) if isinstance(thing, Word) else f"a {type(thing).__name__}" if thing is not None else "none"


def is_object(thing: Thing, *classes: type) -> bool:
    """Return whether this is the description of an object of one of these classes."""
    return isinstance(thing, Object) and thing.cls in classes


# ------------------------------------------------------------------ layouts


def _layout_head(fields: Fields) -> list[Thing] | None:
    return list(fields.values()) if is_profile(fields["shape"]) and is_profile(fields["stride"]) else None


def _whole(cls: type, what: str) -> Any:
    """The fields of the one object that a type says."""

    def implied(things: list[Thing]) -> Fields:
        (thing,) = things if len(things) == 1 else (None,)
        if isinstance(thing, Constant) and isinstance(thing.value, str):  # CuTe's own way, between quotes
            thing = Reader(thing.value).whole()
        if not is_object(thing, cls):
            raise CuteError(f"expected {what}")
        return fields_by_name(thing)  # type: ignore[arg-type]

    return implied


_LAYOUT = "a shape and strides, as in (64,128), (1,64), or a layout, (64,128):(1,64)"


def _layout_implied(things: list[Thing]) -> Fields:
    if len(things) == 2 and all(is_profile(t) for t in things if not isinstance(t, Word)):
        return {"shape": things[0], "stride": things[1]}
    return _whole(Layout, _LAYOUT)(things)  # type: ignore[no-any-return]


def _bare_head(cls: type) -> Any:
    def head(fields: Fields) -> list[Thing] | None:
        d = Object(cls, tuple(fields.values()))
        return [d] if is_bare(d) else None

    return head


add_form(Form(Layout, "numba_cute.layout", _layout_head, _layout_implied))
for _cls, _what in (
    (ComposedLayout, "a composed layout, as in S<3,4,3> o 0 o (8,64):(64,1)"),
    (Swizzle, "a swizzle, as in S<3,4,3>"),
    (ScaledBasis, "a basis stride, as in 1@0"),
):
    add_form(Form(_cls, registry.RENAMED[_cls.__name__], _bare_head(_cls), _whole(_cls, _what)))

# ------------------------------------------------------------------ pointers

_ADDRESS = {"generic": Scalar(Uint64), "gmem": Scalar(Int64), "smem": Scalar(Int32), "tmem": Scalar(Uint32)}
"""The address of a pointer of which nothing else is said."""


_MARKS = ("readonly", "multicast")
"""The fields of a pointer that are true of few, and then written by their names."""


def _pointer_words(fields: Fields, usual: bool = False) -> list[Thing] | None:
    """f16, smem, align<16>, S<3,4,3>, readonly, multicast. usual: whether the alignment of one element is left out."""
    dtype, space, alignment = dtype_word(fields["dtype"]), fields["space"], fields["alignment"]
    swizzle = fields["swizzle"]
    known = isinstance(space, Constant) and isinstance(space.value, AddressSpace) and is_int(alignment)
    if dtype is None or not known:
        return None
    words: list[Thing] = [dtype, Word(space.value.name)]  # type: ignore[union-attr]
    if not usual or alignment != _natural(fields["dtype"]):
        words.append(Word("align", (alignment,)))
    words += [swizzle] if is_object(swizzle, Swizzle) else []
    return words + [Word(name) for name in _MARKS if fields[name] == Constant(True)]


def _natural(dtype: Description) -> Description:
    """The alignment of a pointer of whose nothing is said in the published types: one element's."""
    return Constant(max(1, dtype.value.width // 8))  # type: ignore[union-attr]


def _pointer_fields(things: list[Thing], usual: bool = False) -> Fields:
    if len(things) < 2:
        raise CuteError("a pointer gives its element type and its memory, as in f16, smem, align<16>")
    dtype, space = dtype_of(things[0]), things[1]
    if not isinstance(space, Word) or space.name not in AddressSpace.__members__:
        raise CuteError(f"{_said(space)} is no memory; they are {', '.join(AddressSpace.__members__)}")
    found: Fields = {
        "dtype": dtype, "space": Constant(AddressSpace[space.name]), "offset": Constant(0),
        "alignment": _natural(dtype) if usual else Constant(1), "swizzle": Constant(None),
        **dict.fromkeys(_MARKS, Constant(False)),
    }  # fmt: skip
    if space.name in _ADDRESS:
        found["address"] = _ADDRESS[space.name]
    for thing in things[2:]:
        if isinstance(thing, Word) and thing.name == "align" and thing.given and len(thing.given) == 1:
            found["alignment"] = thing.given[0]
        elif isinstance(thing, Word) and thing.name in _MARKS and not thing.given:
            found[thing.name] = Constant(True)
        elif is_object(thing, Swizzle):
            found["swizzle"] = thing
        else:
            raise CuteError(
                f"{_said(thing)} says nothing of a pointer: after its memory there may stand align<16>, a swizzle, "
                f"{', '.join(_MARKS)}"
            )
    return found


def _published_head(fields: Fields) -> list[Thing] | None:
    return _pointer_words(fields, True)


def _published_pointer(things: list[Thing]) -> Fields:
    return _pointer_fields(things, True)


def exactly(cls: type, head: Any, implied: Any) -> Any:
    """Make a test of whether a published type says all that is known of an object."""

    def takes(fields: Fields) -> bool:
        things = head(fields)
        if things is None or any(Word(name) in things for name in _MARKS):
            return False
        said = default_fields(cls) | implied(things)
        return all(said.get(name) == d for name, d in fields.items())

    return takes


add_form(
    Form(
        Pointer, "cute.ptr", _published_head, _published_pointer,
        exactly(Pointer, _published_head, _published_pointer),
    )
)  # fmt: skip
add_form(Form(Pointer, "numba_cute.ptr", _pointer_words, _pointer_fields))

# ------------------------------------------------------------------ tensors


def _is_layout(thing: Thing) -> bool:
    return is_object(thing, Layout, ComposedLayout)


def _layout_of(things: list[Thing], what: str) -> tuple[list[Thing], Description]:
    """Return the parts before a layout, and the layout, which comes last."""
    last = things[-1] if things else None
    lay = last.description if isinstance(last, Quoted) else last
    if lay is None or not _is_layout(lay):
        raise CuteError(f"{what} ends with its layout, as in (64,128):(1,64)")
    return things[:-1], lay


def _memref_head(fields: Fields, usual: bool = False) -> list[Thing] | None:
    pointer, lay = fields["iterator"], fields["layout"]
    if not is_object(pointer, Pointer) or not _is_layout(lay) or not is_bare(lay):
        return None
    words = _pointer_words(fields_by_name(pointer), usual)  # type: ignore[arg-type]
    return None if words is None else [*words, Quoted(lay) if usual else lay]


def _memref_implied(things: list[Thing], usual: bool = False) -> Fields:
    words, lay = _layout_of(things, "a tensor")
    pointer = _pointer_fields(words, usual)
    if pointer["space"] == Constant(AddressSpace.rmem):
        dtype = pointer["dtype"].value  # type: ignore[union-attr]
        pointer["address"] = RegisterFile(dtype, _registers(lay, dtype))
    iterator = instance(Pointer, pointer)
    held(iterator).__post_init__()
    return {"iterator": iterator, "layout": lay}


def _registers(lay: Description, dtype: Any) -> int:
    """The registers that a tensor of this layout takes, if nothing else is said; 0 where that is not known."""
    if not is_constant(lay):
        return 0
    try:
        known = held(lay)
        count, size = int(layout.cosize(known)), int(layout.size(known))
    except CuteError:  # a composed layout whose parts do not fit
        return 0
    fits_a_thread("a tensor of rmem", max(count, size), dtype)
    return count


def _coord_head(fields: Fields) -> list[Thing] | None:
    return _iterator_head(fields, lambda d: is_profile(d))


def _other_head(fields: Fields) -> list[Thing] | None:
    return _iterator_head(fields, lambda d: isinstance(d, Object))


def _iterator_head(fields: Fields, takes: Any) -> list[Thing] | None:
    iterator, lay = fields["iterator"], fields["layout"]
    return [iterator, lay] if takes(iterator) and _is_layout(lay) and is_bare(lay) else None


def _iterator_implied(what: str) -> Any:
    def implied(things: list[Thing]) -> Fields:
        rest, lay = _layout_of(things, what)
        if len(rest) != 1 or isinstance(rest[0], Word):
            raise CuteError(f"{what} says what lies at its origin, then its layout")
        return {"iterator": rest[0], "layout": lay}

    return implied


def _at_pointer(fields: Fields) -> bool:
    return is_object(fields["iterator"], Pointer)


def _at_coordinate(fields: Fields) -> bool:
    return isinstance(fields["iterator"], Group) or is_number(fields["iterator"])


def _published_memref(fields: Fields) -> list[Thing] | None:
    return _memref_head(fields, True) if published(fields["layout"]) else None


def _published_memref_implied(things: list[Thing]) -> Fields:
    return _memref_implied(things, True)


def _published_coords(fields: Fields) -> list[Thing] | None:
    iterator, lay = fields["iterator"], fields["layout"]
    if not published(iterator, "int_tuple") or not _is_layout(lay) or not published(lay):
        return None
    return [Quoted(iterator), Quoted(lay)]


def _published_coords_implied(things: list[Thing]) -> Fields:
    if len(things) != 2 or not all(isinstance(t, Quoted) for t in things):
        raise CuteError('a coordinate tensor says what lies at its origin, then its layout, as in "(0,0)", "4:1@0"')
    return {"iterator": things[0].description, "layout": _layout_of(things, "a coordinate tensor")[1]}


for _name, _head, _implied in (
    ("cute.memref", _published_memref, _published_memref_implied),
    ("cute.coord_tensor", _published_coords, _published_coords_implied),
):
    add_form(Form(Tensor, _name, _head, _implied, exactly(Tensor, _head, _implied)))
add_form(Form(Tensor, "numba_cute.memref", _memref_head, _memref_implied, _at_pointer, within="iterator"))
add_form(Form(Tensor, "numba_cute.coord_tensor", _coord_head, _iterator_implied("a coordinate tensor"), _at_coordinate))
add_form(Form(Tensor, "numba_cute.tensor", _other_head, _iterator_implied("a tensor")))

# ------------------------------------------------------------------ register vectors


def is_shape(thing: Thing) -> bool:
    """Return whether this is an integer or a tuple of integers to any depth."""
    return all(map(is_shape, thing.items)) if isinstance(thing, Group) else is_number(thing)


def _vector_head(fields: Fields) -> list[Thing] | None:
    dtype, shape = dtype_word(fields["dtype"]), fields["shape"]
    return [dtype, shape] if dtype is not None and is_shape(shape) else None


def _vector_implied(things: list[Thing]) -> Fields:
    if len(things) != 2 or not is_shape(things[1]):
        raise CuteError("a vector gives its element type and its shape, as in f32, (8,4)")
    dtype, shape = dtype_of(things[0]), things[1]
    count = int(layout.size(held(shape))) if is_constant(shape) else 0
    return {"vector": Elements(dtype.value, count), "shape": shape, "dtype": dtype}


add_form(Form(TensorSSA, "numba_cute.vector", _vector_head, _vector_implied))
