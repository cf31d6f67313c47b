# SPDX-License-Identifier: Apache-2.0
"""Parts of the descriptions of objects: their fields by name, the defaults of fields that the text leaves out, and the
forms in which the types of some classes are written."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ... import dtypes, seam
from ...compiler.bridge.tree import fields_of
from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Foreign, Group, Object, Scalar, Struct
from .names import Lacking

Fields: TypeAlias = dict[str, Description]


@dataclass(frozen=True)
class Word:
    """A word among what a type says without names: `smem`, `SM90`. given: what stands in <> after it, or None."""

    name: str
    given: tuple[Thing, ...] | None = None


@dataclass(frozen=True)
class Listed:
    """Numbers between square brackets: [64,64,16]."""

    things: tuple[Thing, ...]


@dataclass(frozen=True)
class Quoted:
    """A layout between quotes, as the published types have it: "(64,128):(1,64)"."""

    description: Description


Thing: TypeAlias = Any
"""An unnamed part of a type: a Description, a Word, a Listed, or a Quoted one."""


@dataclass(frozen=True)
class Form:
    """The text form of the objects of a class: first some unnamed parts, then by name the fields that these do not
    imply.

    cls: the class. name: the type's, with its dialect. head: gives the first things for an object's fields; None if
    these cannot be said so (all fields are then said by name). implied: gives the fields that such things imply,
    besides the class's defaults; CuteError if they mean nothing. takes: whether an object with these fields is of this
    type, where a class has several. within: a field whose own fields are said by name in its place. tight: whether the
    first things stand without spaces between them.
    """

    cls: type
    name: str
    head: Callable[[Fields], list[Thing] | None]
    implied: Callable[[list[Thing]], Fields]
    takes: Callable[[Fields], bool] = lambda fields: True
    within: str | None = None
    tight: bool = False


FORMS: dict[str, Form] = {}
"""The forms by the names of the types; forms.py and atom_forms.py fill it."""
_OF_CLASS: dict[type, list[Form]] = {}


def add_form(form: Form) -> None:
    """Let objects of a class be written in this form; of several forms that take an object, in the first."""
    FORMS[form.name] = form
    _OF_CLASS.setdefault(form.cls, []).append(form)


def is_published(name: str) -> bool:
    """Return whether a type of this name is of a dialect that is not this library's."""
    return name.startswith(("cute.", "cute_nvgpu."))


def form_of(d: Object | Struct) -> Form | None:
    """Return the form of an object; None of one that is written by its fields alone."""
    forms = _OF_CLASS.get(d.cls)
    if forms is None:
        return None
    fields = fields_by_name(d)
    return next((f for f in forms if f.takes(fields)), None)


def has_forms(cls: type) -> bool:
    """Return whether objects of a class, or of one that it is made from, are written in a form of their own."""
    return any(base in _OF_CLASS for base in cls.__mro__)


def names_of(cls: type) -> tuple[str, ...]:
    """Return the names of the fields of a `frozen` or `struct` class that kernels hold."""
    return cls.__cute_fields__ if seam.is_struct_class(cls) else fields_of(cls)  # type: ignore[attr-defined]


def fields_by_name(d: Object | Struct) -> Fields:
    """Return the descriptions of the fields by name."""
    return dict(zip(fields_of(d.cls), d.fields)) if isinstance(d, Object) else dict(d.fields)


def instance(cls: type, fields: Fields) -> Object | Struct:
    """Describe an instance of a class: all of its `fields`."""
    if seam.is_struct_class(cls):
        return Struct(cls, tuple((name, fields[name]) for name in names_of(cls)))
    return Object(cls, tuple(fields[name] for name in names_of(cls)))


def described_value(value: Any) -> Description:
    """Describe a value of the host: what kernels hold of it."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return Group(tuple(map(described_value, value)))
    if seam.is_frozen_class(type(value)):
        return Object(type(value), tuple(described_value(getattr(value, f)) for f in fields_of(type(value))))
    if isinstance(value, dtypes.Scalar):
        return Scalar(value.dtype, value.divisor)
    return Constant(value)


@functools.cache
def default_fields(cls: type) -> Fields:
    """Return what a class's fields are where nothing is said of them: their defaults; of a `struct` class the numbers
    that are annotated with their type."""
    if not seam.is_struct_class(cls):
        known = {f.name: f.default for f in dataclasses.fields(cls)}
        return {n: described_value(v) for n, v in known.items() if v is not dataclasses.MISSING}
    found = {name: described_value(value) for name, value in cls.__cute_defaults__.items()}  # type: ignore[attr-defined]
    for name, annotation in cls.__cute_types__.items():  # type: ignore[attr-defined]
        if isinstance(annotation, dtypes.DType):
            found[name] = Scalar(annotation)
    return found


def lacking(d: Description) -> Lacking | None:
    """Return the first symbol in a description that nobody gave an object for; None if there is none."""
    if isinstance(d, (Constant, Foreign)):
        found = d.value if isinstance(d, Constant) else d.type
        return found if isinstance(found, Lacking) else None
    if isinstance(d, (Group, Object)):
        inner: Any = d.items if isinstance(d, Group) else d.fields
    else:
        inner = [value for _, value in d.fields] if isinstance(d, Struct) else ()
    return next(filter(None, map(lacking, inner)), None)


def is_constant(d: Description) -> bool:
    """Return whether a description says the whole value."""
    if isinstance(d, (Group, Object)):
        return all(map(is_constant, d.items if isinstance(d, Group) else d.fields))
    return isinstance(d, Constant)


def record_fields(value: Any) -> Fields | None:
    """Return what an immutable record, a frozen dataclass or a named tuple, is made of by name; None of anything else,
    and of one that its fields alone do not make again."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(f.name for f in dataclasses.fields(value))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        names = value._fields
    else:
        return None
    found = {name: described_value(getattr(value, name)) for name in names}
    try:
        same = record(type(value), found) == value
    except (TypeError, ValueError, CuteError):
        return None
    return found if same else None


def record(cls: Any, fields: Fields) -> Any:
    """Make the record of these fields."""
    return cls(**{name: held(d) for name, d in fields.items()})


def is_number(d: Description) -> bool:
    """Return whether a description is of an integer, known or not; a bool is none."""
    return isinstance(d, Scalar) and d.dtype.is_integer or is_int(d)


def is_int(d: Description | None) -> bool:
    """Return whether a description is of an int that is known; a bool is none."""
    return isinstance(d, Constant) and type(d.value) is int


def held(d: Description) -> Any:
    """Return an object as this description tells of it; numbers that are known only at run time are 0 as a
    `seam.Leaf`, and what is not a number is None."""
    if isinstance(d, Constant):
        return d.value
    if isinstance(d, Group):
        return tuple(map(held, d.items))
    if isinstance(d, Scalar):
        return dtypes.Scalar(d.dtype, 0, d.divisor)
    if not isinstance(d, Object):
        return None
    obj: Any = object.__new__(d.cls)
    for field in dataclasses.fields(d.cls):
        object.__setattr__(obj, field.name, None)
    for name, value in fields_by_name(d).items():
        object.__setattr__(obj, name, held(value))
    return obj
