# SPDX-License-Identifier: Apache-2.0
"""Values that nobody defined: they may be computed with, copied between registers and dropped, but not used.

A lane that shuffles from one outside the mask gets such a value, and so does who reads registers or a local array that
nobody wrote. Correct kernels do that as a matter of course: a predicated copy leaves some elements of a fragment as
they were, and the whole fragment is converted before the elements that count are stored. Storing such a value,
branching on it or indexing with it is the error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ....dtypes import DType, from_numpy
from ....isa.form.instr import WGMMA_GROUP, Instr
from ....seam import Leaf
from ...ground.report import DivergenceError, Place, SimError, UninitializedReadError, place_of, who
from .number import Number, elements, typed

POISON = (0xFF, 0x7B, 0xFB)
"""Bytes of what may be in place of an undefined value: NaN, and large numbers of both signs in every type."""


class Why(Protocol):
    """The reason why a value is undefined."""

    def error(self, place: Place, how: str) -> SimError:
        """Return the error for a use of it at a line. how: the kind of use."""


class OutsideMask(NamedTuple):
    """A shuffle from a lane that the mask does not name."""

    text: str

    def error(self, place: Place, how: str) -> SimError:
        return DivergenceError(self.text)


class Made(NamedTuple):
    """The place where registers (or a local array) were made. name: the variable, or "". layout: theirs, if it is
    known."""

    what: str
    name: str
    dtype: Any
    place: Place
    layout: Any

    def element(self, at: int) -> str:
        """One element in words: "element (1, 2) of the registers `acc`"."""
        where = str(at)
        shape = getattr(self.layout, "shape", None)
        if shape is not None and isinstance(shape, tuple):
            # of several coordinates that share an element, the first
            where = next((str(c) for c, i in _coordinates(self.layout) if i == at), where)
        return f"element {where} of {self.what}" + (f" `{self.name}`" if self.name else "")


def _coordinates(layout: Any) -> Iterator[tuple[Any, int]]:
    from ....layout import crd2idx, idx2crd, size

    for i in range(int(size(layout))):
        yield idx2crd(i, layout.shape), int(crd2idx(i, layout))


class Never(NamedTuple):
    """An element that this thread never wrote. read: where it was read. by: the matrix instruction through which the
    value went, if one, and role: "acc" if as an accumulator."""

    made: Made
    at: int
    thread: Any
    read: Place
    by: Instr | None = None
    role: str = ""

    def error(self, place: Place, how: str) -> SimError:
        made = self.made
        lines = [
            f"uninitialised: {who([self.thread])} uses {made.element(self.at)}, which it has never written; made at "
            f"{made.place}"
        ]
        if self.by:
            does = "accumulates onto" if self.role == "acc" else "multiplies by"
            lines.append(f"  {self.by.name} {does} it at {self.read}")
        elif self.read != place:
            lines.append(f"  it is read at {self.read}")
        what = "it" if self.read == place and not self.by else "what comes of it"
        return UninitializedReadError("\n".join([*lines, f"  {what} {how} at {place}", f"  fix: {self._fix()}"]))

    def _fix(self) -> str:
        name = self.made.name or ("acc" if self.role == "acc" else "fragment")
        if self.role == "acc":
            clear = f"clear the accumulator before the first multiply ({name}.fill(0)"
            asynchronous = self.by is not None and self.by.done_by == WGMMA_GROUP
            no = ", or ACCUMULATE False for the first k block" if asynchronous else ""
            return f"{clear}{no})"
        if self.made.what == "the local array":
            return "set it first: cuda.local.array leaves its elements undefined"
        return (
            f"write it first ({name}.fill(0), or a copy that nothing leaves out), or do this only where the copy's "
            f"predicate is true"
        )


class Undefined(Leaf):
    """A scalar that is undefined. What computing with it gives is itself; whoever needs its value gets the error.

    kind: "bool", "int" or "float", as Python has it."""

    __array_ufunc__ = None  # NumPy's scalars leave the operation to this class
    __slots__ = ("why", "kind")

    def __init__(self, why: Why, kind: str = "float") -> None:
        self.why, self.kind = why, kind

    def _itself(self, *_: Any) -> Undefined:
        return self

    def __repr__(self) -> str:
        return "undefined"

    def __format__(self, spec: str) -> str:
        return "undefined"


def used(value: Undefined, how: str) -> SimError:
    """The error of using a value at the line that runs now."""
    e = value.why.error(place_of(sys._getframe(1)), how)
    e.undefined = value  # type: ignore[attr-defined]
    return e


def _use(how: str) -> Any:
    def __call__(self: Undefined, *_: Any, **__: Any) -> Any:  # a name that places do not mention
        raise used(self, how)

    return __call__


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Undefined, f"__{_name}__", Undefined._itself)
    setattr(Undefined, f"__r{_name}__", Undefined._itself)
for _name in ("neg", "pos", "abs", "invert", "round", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Undefined, f"__{_name}__", Undefined._itself)
Undefined.__hash__ = None  # type: ignore[assignment]
for _name, _how in (("bool", "decides a branch"), ("index", "is an index, an address or a count")):
    setattr(Undefined, f"__{_name}__", _use(_how))
for _name in ("int", "float", "complex", "array", "len", "iter", "trunc", "floor", "ceil"):
    setattr(Undefined, f"__{_name}__", _use("is used"))


class Partial:
    """A vector of registers (`Backend.vector`) of which some elements are undefined.

    array: the elements. why: by element, those that are undefined."""

    __slots__ = ("array", "why")

    def __init__(self, array: Any, why: dict[int, Why]) -> None:
        self.array, self.why = array, why

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: int) -> Any:
        if at in self.why:
            return Undefined(self.why[at], number_kind(self.array.dtype))
        return typed(from_numpy(self.array.dtype), elements(self.array[at : at + 1])[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def number_kind(dtype: Any) -> str:
    """The kind of scalar that Python has for an element type."""
    if isinstance(dtype, DType):
        return {"uint": "int"}.get(dtype.kind, dtype.kind)
    if isinstance(dtype, type) and issubclass(dtype, Number):
        return number_kind(dtype.dtype)
    return {"b": "bool", "i": "int", "u": "int"}.get(np.dtype(dtype).kind, "float")
