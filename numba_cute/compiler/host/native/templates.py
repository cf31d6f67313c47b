# SPDX-License-Identifier: Apache-2.0
"""Templates: what a function of the host made of some arrays, as what it makes of others of their kinds.

Of a function's result only what speaks of an array's address differs from one array to the next: the address itself,
the pointer that holds it, tensor maps, and the objects around these. A template has all else as it was made, and makes
those anew, in machine code (casting.py). An object so made has, besides, what a launch of one like it packed.
"""

from __future__ import annotations

import ctypes
import dataclasses
import enum
from types import FunctionType
from typing import Any

from .... import dtypes, seam
from ....isa.facts.tensormap import TensorMapRecord
from ...bridge.exact import is_exact
from ...ground.numba_cuda import CUDADispatcher
from . import casting, launcher, packing
from .driver import replacing

MOST_TOLD = 8
"""Launches that an object remembers of those like it: it is packed for kernels in different ways."""


class Varied(Exception):
    """An error: a function's result cannot be made again, as it holds something whose origin is not known."""


class Given:
    """One of the objects that the function was given. which: array, or tensor."""

    def __init__(self, which: int) -> None:
        self.which = which


class Iterator:
    """The iterator of the tensor that the function was given."""


class Address:
    """The address of the array `which`, and `delta`."""

    def __init__(self, which: int, delta: int) -> None:
        self.which, self.delta = which, delta


class Items:
    """A tuple. items: what makes each, or what it is."""

    def __init__(self, items: list[tuple[bool, Any]]) -> None:
        self.items = items


class Packed:
    """The bytes of an object that a launch packed. data: of one. patches: the places of an address, or a tensor map;
    the address, as an Address and as it was, and the map or None."""

    def __init__(self, data: bytes, patches: list[tuple[int, Address, int, bytes | None]]) -> None:
        self.data, self.patches = data, patches


class Made:
    """An object of a class. fixed: its fields that no address changes. varied: the others. slots: whether they are
    slots. told: what launches packed of it, by the attribute that remembers it."""

    def __init__(self, cls: type, fixed: dict[str, Any], varied: dict[str, Any], slots: bool = False) -> None:
        self.cls, self.fixed, self.varied, self.slots = cls, fixed, varied, slots
        self.told: dict[str, Packed] = {}

    @property
    def launched(self) -> bool:
        """Say whether it is a tensor or an atom, which kernels take."""
        return bool({"iterator", "tensor_map"} & set(self.varied))

    @property
    def number(self) -> Address:
        """The address that it holds."""
        for name in ("iterator", "tensor_map", "address", "value"):
            inner = self.varied.get(name)
            if inner is not None:
                return (
                    inner
                    if isinstance(inner, Address)
                    else Address(0, 0)
                    if isinstance(inner, Iterator)
                    else inner.number
                )
        raise Varied


class Mark:
    """The origin of a cast object: which object of which template. address: of the template's words, for its result;
    otherwise 0."""

    __slots__ = ("address", "made", "template")

    def __init__(self, template: Template, made: Made) -> None:
        self.template, self.made = template, made
        self.address = template.address if made is template.result else 0

    def __deepcopy__(self, memo: Any) -> Mark:
        return self

    def __reduce__(self) -> Any:
        return type(None), ()  # no other process has the template


class Template:
    """The steps that make the result of a function again. result: its parts, of the classes above. masks: for each
    array the bits of its address that must be 0. on_gpu: True if the arrays lie on a GPU, so that launches need not ask
    where."""

    def __init__(self, result: Made | Items, masks: list[int], on_gpu: bool) -> None:
        self.kept: list[Any] = []
        self.words = (ctypes.c_int64 * casting.TEMPLATE_WORDS)()
        self.address = ctypes.addressof(self.words)
        self.set(casting.MASKS, self.numbers(masks))
        self.set(casting.ARRAYS, len(masks))
        self.result, self.on_gpu = result, on_gpu
        self.children: list[Template] = []
        self._mark(result)
        self.build()

    def set(self, word: int, value: int) -> None:
        self.words[word // 8] = value

    def _mark(self, one: Any, whole: bool = True) -> None:
        """Mark the objects that launches may be told of, or functions given. whole: it is not a part of another."""
        if isinstance(one, Items):
            for varies, item in one.items:
                if varies:
                    self._mark(item, whole)
        elif isinstance(one, Made):
            if one.launched or (whole and not one.slots):
                one.fixed[launcher.MARK] = Mark(self, one)
            for inner in one.varied.values():
                self._mark(inner, False)

    def build(self) -> None:
        """Make the steps."""
        steps: list[list[int]] = []
        self._step(self.result, steps, {})
        block = (ctypes.c_int64 * (1 + casting.CAST_WORDS * len(steps)))(len(steps), *(w for s in steps for w in s))
        self.kept.append(block)
        self.set(casting.WORK, ctypes.addressof(block))

    def numbers(self, numbers: list[int]) -> int:
        """Keep some words, and return their address."""
        made = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        self.kept.append(made)
        return ctypes.addressof(made)

    def keep(self, obj: Any) -> int:
        self.kept.append(obj)
        return id(obj)

    def _step(self, one: Any, steps: list[list[int]], at: dict[int, int]) -> int:
        """Add the steps that make something; return the number of the last."""
        if id(one) in at:
            return at[id(one)]
        if isinstance(one, Address):
            made = [casting.NUMBER, one.delta, one.which, 0, 0]
        elif isinstance(one, Items):
            fields = [w for varies, item in one.items for w in self._field("", varies, item, steps, at)]
            made = [casting.TUPLE, self.numbers(fields), len(one.items), 0, 0]
        elif isinstance(one, Packed):
            made = self._packed(one)
        elif isinstance(one, Iterator):
            made = [casting.PART, self.keep("iterator"), 0, 0, 0]
        else:
            made = self._object(one, steps, at)
        steps.append(made)
        at[id(one)] = len(steps) - 1
        return len(steps) - 1

    def _field(self, name: str, varies: bool, value: Any, steps: list[list[int]], at: dict[int, int]) -> list[int]:
        if not varies:
            return [self.keep(name), casting.CONSTANT, self.keep(value)]
        if isinstance(value, Given):
            return [self.keep(name), casting.GIVEN_OBJECT, value.which]
        return [self.keep(name), casting.MADE, self._step(value, steps, at)]

    def _object(self, one: Made, steps: list[list[int]], at: dict[int, int]) -> list[int]:
        varied = {**one.varied, **one.told}
        fields = [w for name, value in varied.items() for w in self._field(name, True, value, steps, at)]
        if not one.slots:
            held = {**one.fixed, **dict.fromkeys(varied)}
            return [casting.OBJECT, self.keep(one.cls), self.numbers(fields), len(varied), self.keep(held)]
        fields += [w for name, value in one.fixed.items() for w in self._field(name, False, value, steps, at)]
        return [casting.SLOTTED, self.keep(one.cls), self.numbers(fields), len(varied) + len(one.fixed), 0]

    def _packed(self, one: Packed) -> list[int]:
        patches: list[int] = []
        for where, number, before, tensor_map in one.patches:
            held = last = replace = 0
            if tensor_map is not None:
                buffer = ctypes.create_string_buffer(2 * casting.MAP_BYTES)
                self.kept.append(buffer)
                held = ctypes.addressof(buffer)
                held += -held % packing.MAP
                ctypes.memmove(held, tensor_map, casting.MAP_BYTES)
                last, replace = before, replacing()
            patches += [where, number.which, number.delta, held, last, replace]
        data = ctypes.create_string_buffer(one.data, len(one.data))
        self.kept.append(data)
        return [casting.BYTES, ctypes.addressof(data), len(one.data), self.numbers(patches), len(one.patches)]

    def adopt(self, child: Template, function: Any, args: tuple[Any, ...]) -> None:
        """Take a template of what `function` makes of a tensor of this one and `args`."""
        child.set(casting.FUNCTION, child.keep(function))
        child.set(casting.COUNT, len(args))
        child.set(casting.GIVEN, child.numbers([child.keep(a) for a in args]))
        child.set(casting.NEXT, self.words[casting.CHILDREN // 8])
        self.children.append(child)
        self.set(casting.CHILDREN, child.address)


class Looking:
    """The search for the parts of a function's result. given: the arrays that it was made from, or the one tensor.
    bases, ends: where they begin and end. iterator: of the tensor."""

    def __init__(self, given: list[Any], bases: list[int], ends: list[int], iterator: Any = None) -> None:
        self.given, self.bases, self.ends, self.iterator = given, bases, ends, iterator
        self.masks = [0] * len(given)
        self.seen: list[tuple[Any, Made]] = []

    def result(self, x: Any) -> Any:
        """Return the steps that make `x`. Varied: they are not known, or no array is in it."""
        found = self.at(x)
        if not isinstance(found, (Made, Items)):
            raise Varied
        return found

    def at(self, x: Any) -> Any:
        """Return the step that makes `x`: `x` itself, if no address changes it."""
        for which, one in enumerate(self.given):
            if x is one:
                return Given(which)
        if self.iterator is not None and x is self.iterator:
            return Iterator()
        if seam.is_frozen_class(type(x)):
            return self._fields(x)
        if isinstance(x, dtypes.Scalar):
            if hasattr(x, "owner"):
                return self._address(x)
            self.at(x.value)
            return x
        if isinstance(x, tuple):
            items = [(found is not y, found) for y in x for found in (self.at(y),)]
            if not any(varies for varies, _ in items) and not hasattr(x, "__dict__"):
                return x
            if type(x) is tuple:
                return Items(items)
            raise Varied
        if isinstance(x, seam.Leaf) or not _is_plain(x):
            raise Varied
        if type(x) is int and any(first <= x < end for first, end in zip(self.bases, self.ends)):
            raise Varied  # an address, of which not all is known
        return x

    def _fields(self, x: Any) -> Any:
        fields = {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
        varied = {}
        record = fields.get("tensor_map")
        if isinstance(record, TensorMapRecord):
            varied["tensor_map"] = self._record(record, fields.get("source"))
        for name, value in fields.items():
            found = value if name in varied else self.at(value)
            if found is not value:
                varied[name] = found
        if not varied:
            return x
        made = Made(type(x), {n: v for n, v in fields.items() if n not in varied}, varied)
        self.seen.append((x, made))
        return made

    def _record(self, record: TensorMapRecord, source: Any) -> Made:
        """A tensor map. source: the tensor that it is of."""
        address = getattr(getattr(source, "iterator", None), "address", None)
        which = self._which(source if self.iterator is not None else getattr(address, "owner", None))
        self.masks[which] |= record.address_unit - 1
        fixed = {name: value for name, value in vars(record).items() if name != "address"}
        return Made(type(record), fixed, {"address": Address(which, int(record.address) - self.bases[which])})

    def _which(self, x: Any) -> int:
        for which, one in enumerate(self.given):
            if x is one:
                return which
        raise Varied

    def _address(self, x: Any) -> Made:
        which = self._which(x.owner)
        base = self.bases[which]
        fixed = {"dtype": x.dtype, "divisor": x.divisor}
        varied: dict[str, Any] = {"value": Address(which, x.value - base), "owner": Given(which)}
        if x.memory is None:
            fixed["memory"] = None
        else:
            varied["memory"] = Items([(True, Address(which, at - base)) for at in x.memory])
        return Made(type(x), fixed, varied, slots=True)

    def aligned(self, x: Any) -> None:
        """Note what is promised of addresses in a result of arrays: one that does not keep it is of another kind."""
        if isinstance(x, tuple):
            for y in x:
                self.aligned(y)
        elif seam.is_frozen_class(type(x)):
            address: Any = getattr(x, "address", None)
            alignment = getattr(x, "alignment", None)
            if hasattr(address, "owner") and type(alignment) is int:
                which = self._which(address.owner)
                if (address.value - self.bases[which]) % alignment:
                    raise Varied
                self.masks[which] |= alignment - 1
            for f in dataclasses.fields(x):
                self.aligned(getattr(x, f.name))

    def mark(self) -> None:
        """Mark what was looked at as what is made from now on."""
        for x, made in self.seen:
            if launcher.MARK in made.fixed:
                object.__setattr__(x, launcher.MARK, made.fixed[launcher.MARK])


def _is_plain(x: Any) -> bool:
    """Say whether something never changes: it is proved immutable; or it is a class, a member of an enumeration, a
    function that holds nothing, or a kernel, which count by identity."""
    if isinstance(x, FunctionType):
        return x.__closure__ is None and is_exact((x.__defaults__, tuple((x.__kwdefaults__ or {}).values())))
    if getattr(x, "__cute_kernel__", False):
        return x.__self__ is None
    return isinstance(x, (enum.Enum, type, CUDADispatcher)) or is_exact(x)


def learn(obj: Any, name: str, data: bytes, leaves: list[Any], offsets: list[int]) -> None:
    """Let objects like this one, if it was cast, have what a launch packed of it from the beginning.

    name: of the attribute. leaves: what stands in the data from each of the offsets on."""
    mark = getattr(obj, "__dict__", {}).get(launcher.MARK)
    if mark is None or not mark.template.on_gpu or name in mark.made.told or len(mark.made.told) >= MOST_TOLD:
        return
    known: dict[int, Address] = {}
    _addresses(obj, mark.made, known)
    patches: list[tuple[int, Address, int, bytes | None]] = []
    for leaf, at in zip(leaves, offsets, strict=True):
        is_map = isinstance(leaf, TensorMapRecord)
        if not is_map and not hasattr(leaf, "owner"):
            continue
        address = int(leaf.address) if is_map else leaf.value
        number = known.get(id(leaf)) or _nearby(obj, mark.made, address)
        if number is None or (is_map and not replacing()):
            return
        patches.append((at, number, address, data[at : at + casting.MAP_BYTES] if is_map else None))
    mark.made.told[name] = Packed(data, patches)
    mark.template.build()


def _addresses(x: Any, made: Any, known: dict[int, Address]) -> None:
    """Note of what address each part of an object is, by the part's identity. made: what makes the object."""
    if isinstance(made, Iterator):
        known[id(x.address)] = Address(0, 0)
    elif isinstance(made, Items):
        for y, (varies, item) in zip(x, made.items):
            if varies:
                _addresses(y, item, known)
    elif isinstance(made, Made):
        number = made.varied.get("value") or made.varied.get("address")
        if isinstance(number, Address):
            known[id(x)] = number
            return
        for name, inner in made.varied.items():
            _addresses(getattr(x, name), inner, known)


def _nearby(obj: Any, made: Made, address: int) -> Address | None:
    """The number of an address in what a launch made of a tensor or an atom, which is of one array."""
    if not made.launched:
        return None
    record = getattr(obj, "tensor_map", None)
    own = obj.iterator.address.value if record is None else int(record.address)
    return Address(made.number.which, made.number.delta + address - own)
