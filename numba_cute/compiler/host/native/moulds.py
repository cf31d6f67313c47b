# SPDX-License-Identifier: Apache-2.0
"""Moulds: what a function of the host made of one array, as what it makes of another of that kind.

Of a function's result only what speaks of the array's address differs from one array to the next: the address itself,
the pointer that holds it, tensor maps, and the objects around these. A mould has all else as it was made, and makes
those anew, in machine code (casting.py). So `from_dlpack` and `make_tiled_tma_atom` take a microsecond at each launch
of arrays of a kind that they know. An object so made has, besides, what a launch of one like it packed.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from numba.cuda.cudadrv.devicearray import DeviceNDArray

from .... import dtypes, seam
from ....isa.facts.tensormap import TensorMapRecord
from ....seam.casting import CASTING, run
from . import arrays, casting, launcher, packing
from .driver import replacing

MOST_MOULDS, MOST_CHILDREN, MOST_TOLD = 2048, 64, 8
_ARRAY, _ITERATOR = object(), object()


class _Varied(Exception):
    """What a function gave cannot be made again: it holds something whose origin is not known."""


class _Number:
    """The array's address, and `delta`."""

    def __init__(self, delta: int) -> None:
        self.delta = delta


class _Pair:
    def __init__(self, *numbers: _Number) -> None:
        self.numbers = numbers


class _Bytes:
    """What a launch packed of an object. data: of one. patches: (where, how far from the address, tensor map or
    None)."""

    def __init__(self, data: bytes, patches: list[tuple[int, int, bytes | None]], base: int) -> None:
        self.data, self.patches, self.base = data, patches, base


class _Object:
    """An object of a class. fixed: its fields that no address changes. varied: the others. slots: whether they are
    slots. delta: of a tensor map."""

    def __init__(self, cls: type, fixed: dict[str, Any], varied: dict[str, Any], slots: bool = False) -> None:
        self.cls, self.fixed, self.varied, self.slots = cls, fixed, varied, slots
        self.told: dict[str, _Bytes] = {}
        self.delta = 0


class Mark:
    """What an object was cast from: which object of which mould. address: the mould's words."""

    __slots__ = ("address", "made", "mould")

    def __init__(self, mould: Mould, made: _Object) -> None:
        self.mould, self.made, self.address = mould, made, mould.address

    def __deepcopy__(self, memo: Any) -> Mark:
        return self

    def __reduce__(self) -> Any:
        return type(None), ()  # no other process has the mould


class Mould:
    """How the result of a function is made again. result: what it is made of, one of the classes above. mask: bits of
    the address that must be 0. on_gpu: whether the array lies on a GPU, so that launches need not ask where."""

    def __init__(self, result: _Object, mask: int, on_gpu: bool) -> None:
        self.words = (ctypes.c_int64 * casting.MOULD_WORDS)()
        self.words[casting.MASK // 8] = mask
        self.result, self.on_gpu, self.mask = result, on_gpu, mask
        self.children: list[Mould] = []
        self.kept: list[Any] = []
        self.address = ctypes.addressof(self.words)
        self._mark(result)
        self.build()

    def _mark(self, one: Any) -> None:
        """Mark the objects that launches may be told of, or functions given."""
        if isinstance(one, _Object):
            if {"iterator", "tensor_map"} & set(one.varied):  # a tensor or an atom
                one.fixed[launcher.MARK] = Mark(self, one)
            for inner in one.varied.values():
                self._mark(inner)

    def build(self) -> None:
        """Make the steps."""
        steps: list[list[int]] = []
        self._step(self.result, steps, {})
        block = (ctypes.c_int64 * (1 + casting.CAST_WORDS * len(steps)))(len(steps), *(w for s in steps for w in s))
        self.kept.append(block)
        self.words[casting.WORK // 8] = ctypes.addressof(block)

    def _words(self, numbers: list[int]) -> int:
        made = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
        self.kept.append(made)
        return ctypes.addressof(made)

    def _id(self, obj: Any) -> int:
        self.kept.append(obj)
        return id(obj)

    def _step(self, one: Any, steps: list[list[int]], at: dict[int, int]) -> int:
        """Add the steps that make something; return the number of the last."""
        if id(one) in at:
            return at[id(one)]
        if isinstance(one, _Number):
            made = [casting.NUMBER, one.delta, 0, 0, 0]
        elif isinstance(one, _Pair):
            first, second = (self._step(n, steps, at) for n in one.numbers)
            made = [casting.PAIR, first, second, 0, 0]
        elif isinstance(one, _Bytes):
            made = self._bytes(one)
        elif one is _ITERATOR:
            made = [casting.PART, self._id("iterator"), 0, 0, 0]
        else:
            made = self._object(one, steps, at)
        steps.append(made)
        at[id(one)] = len(steps) - 1
        return len(steps) - 1

    def _object(self, one: _Object, steps: list[list[int]], at: dict[int, int]) -> list[int]:
        fields: list[int] = []
        for name, value in {**one.varied, **one.told}.items():
            given = value is _ARRAY
            number = 0 if given else self._step(value, steps, at)
            fields += [self._id(name), casting.GIVEN_OBJECT if given else casting.MADE, number]
        if not one.slots:
            held = {**one.fixed, **dict.fromkeys(one.varied), **dict.fromkeys(one.told)}
            return [casting.OBJECT, self._id(one.cls), self._words(fields), len(fields) // 3, self._id(held)]
        for name, value in one.fixed.items():
            fields += [self._id(name), casting.CONSTANT, self._id(value)]
        return [casting.SLOTTED, self._id(one.cls), self._words(fields), len(fields) // 3, 0]

    def _bytes(self, one: _Bytes) -> list[int]:
        patches: list[int] = []
        for where, delta, tensor_map in one.patches:
            held = last = replace = 0
            if tensor_map is not None:
                buffer = ctypes.create_string_buffer(2 * casting.MAP_BYTES)
                self.kept.append(buffer)
                held = ctypes.addressof(buffer)
                held += -held % packing.MAP
                ctypes.memmove(held, tensor_map, casting.MAP_BYTES)
                last, replace = one.base + delta, replacing()
            patches += [where, delta, held, last, replace]
        data = ctypes.create_string_buffer(one.data, len(one.data))
        self.kept.append(data)
        return [casting.BYTES, ctypes.addressof(data), len(one.data), self._words(patches), len(one.patches)]

    def adopt(self, child: Mould, function: Any, args: tuple[Any, ...]) -> None:
        """Take a mould of what `function` makes of a tensor of this one and `args`."""
        child.words[casting.FUNCTION // 8] = child._id(function)
        child.words[casting.COUNT // 8] = len(args)
        child.words[casting.GIVEN // 8] = child._words([child._id(a) for a in args])
        child.words[casting.NEXT // 8] = self.words[casting.CHILDREN // 8]
        self.children.append(child)
        self.words[casting.CHILDREN // 8] = ctypes.addressof(child.words)


class _Looking:
    """What an object is made of. given: the array or tensor that it was made of. iterator: that tensor's. base: the
    array's address."""

    def __init__(self, given: Any, iterator: Any, base: int) -> None:
        self.given, self.iterator, self.base = given, iterator, base
        self.mask = 0
        self.seen: list[tuple[Any, _Object]] = []

    def at(self, x: Any) -> Any:
        """What makes `x`: `x` itself, if no address changes it. _Varied: it is not known."""
        if x is self.given:
            return _ARRAY
        if self.iterator is not None and x is self.iterator:
            return _ITERATOR
        if isinstance(x, TensorMapRecord):
            self.mask |= x.address_unit - 1
            found = self._object(x, vars(x), ("address",))
            found.varied["address"] = _Number(int(x.address) - self.base)
            found.delta = int(x.address) - self.base
            return found
        if seam.is_static_class(type(x)):
            return self._object(x, {f.name: getattr(x, f.name) for f in dataclasses.fields(x)})
        if isinstance(x, dtypes.Scalar):
            return self._address(x) if hasattr(x, "owner") else x
        if isinstance(x, tuple):
            if any(self.at(y) is not y for y in x):
                raise _Varied
            return x
        if isinstance(x, seam.Leaf) or not _is_plain(x):
            raise _Varied
        return x

    def _object(self, x: Any, fields: dict[str, Any], addresses: tuple[str, ...] = ()) -> Any:
        fixed, varied = {}, {}
        for name, value in fields.items():
            found = None if name in addresses else self.at(value)
            if found is value:
                fixed[name] = value
            elif name not in addresses:
                varied[name] = found
        if not varied and not addresses:
            return x
        made = _Object(type(x), fixed, varied)
        self.seen.append((x, made))
        return made

    def mark(self) -> None:
        """Mark what was looked at as what is made from now on."""
        for x, made in self.seen:
            if launcher.MARK in made.fixed:
                object.__setattr__(x, launcher.MARK, made.fixed[launcher.MARK])

    def _address(self, x: Any) -> _Object:
        if x.owner is not self.given or x.memory is None:
            raise _Varied
        first, end = x.memory
        varied = {"value": _Number(x.value - self.base), "owner": _ARRAY}
        varied["memory"] = _Pair(_Number(first - self.base), _Number(end - self.base))
        return _Object(type(x), {"dtype": x.dtype, "divisor": x.divisor}, varied, slots=True)


def _is_plain(x: Any) -> bool:
    """Whether something says itself whole what it is: a number, a name, an element type, a member of an enumeration."""
    return x is None or isinstance(x, (bool, int, float, str, dtypes.DType, seam.StaticEnum, type))


def _alike(a: Any, b: Any) -> bool:
    """Whether two arguments of one class are the same to a function, which may look at all that is static in them."""
    return bool(seam.is_static(a) and seam.is_static(b) and a == b)


class Moulds:
    """All moulds of a process, and what it takes to find them."""

    def __init__(self) -> None:
        self._kept: list[Any] = [_alike, self._array, self._derived]
        self._state = (ctypes.c_int64 * casting.STATE_WORDS)()
        for place, function in zip((casting.ALIKE, casting.SLOW_ARRAY, casting.SLOW_DERIVED), self._kept):
            self._state[place // 8] = id(function)
        self._classes: dict[type, Any] = {}
        self._roots: list[Mould] = []
        self._before: list[Mould] = []  # one may be at work
        self._described: dict[Any, Mould] = {}
        self._cast_at = launcher.function("cast_at", (0, self))

    @property
    def address(self) -> int:
        return ctypes.addressof(self._state)

    def _array(self, function: Callable[..., Any], x: Any, align: Any) -> Any:
        """Run a function of an array, and leave a mould of what it made."""
        made = function(x, align)
        view = arrays.view_of(x) if _is_known(x) else None
        if view is not None and view.strides and view.data and type(made.iterator.address.owner) is type(x):
            shape, strides = ([ctypes.c_int64.from_address(at + 8 * i).value for i in range(view.ndim)]
                              for at in (view.shape, view.strides))  # fmt: skip
            base = view.data + view.byte_offset
            if shape == list(x.shape) and strides == list(x.stride()) and base == int(x.data_ptr()):
                self._take(made, x, align, view, base, [n for both in zip(shape, strides) for n in both])
        return made

    def _take(self, made: Any, x: Any, align: Any, view: Any, base: int, form: list[int]) -> None:
        mould = self._mould(made, x, base, view.device_type == arrays.CUDA)
        if mould is None:
            return
        word = view.code | view.bits << 8 | view.lanes << 16
        where = view.device_type | view.device_id << 32
        facts = mould._id(type(x)), word, where, view.ndim, mould._words(form), mould._id(align)
        mould.words[casting.ARRAY_CLASS // 8 : casting.ALIGN // 8 + 1] = list(facts)
        self._know(type(x), x)
        bucket = casting.ROOTS // 8 + _bucket(word, form)
        mould.words[casting.NEXT // 8] = self._state[bucket]
        self._state[bucket] = ctypes.addressof(mould.words)

    def _mould(self, made: Any, x: Any, base: int, on_gpu: bool) -> Mould | None:
        """A mould of a tensor that was made of an array whose memory begins at `base`; None if there can be none."""
        looking = _Looking(x, None, base)
        try:
            found = looking.at(made)
        except _Varied:
            return None
        if not isinstance(found, _Object) or self._state[casting.TENSOR // 8] not in (0, id(type(made))):
            return None
        mould = Mould(found, looking.mask | made.iterator.alignment - 1, on_gpu)
        looking.mark()
        self._kept.append(type(made))
        self._state[casting.TENSOR // 8] = id(type(made))
        if len(self._roots) >= MOST_MOULDS:
            self.forget()
        self._roots.append(mould)
        return mould

    def described(self, function: Callable[..., Any], info: Any, align: Any) -> Any:
        """Give what a function makes of what was found of an array: of one without DLPack's exchange functions."""
        x = info.owner
        device = arrays.device_of(x)
        if arrays.exchange_of(x) is not None or not (type(x) is DeviceNDArray or device is not None):
            return function(info, align)
        key = type(x), device, info.dtype, info.shape, info.strides, info.readonly, type(align), align
        mould = self._described.get(key)
        if mould is not None:
            made = self._cast_at(mould.address, x, info.address)
            if made is not None:
                return made
        made = function(info, align)
        if mould is None:
            mould = self._mould(made, x, info.address, True)
            if mould is not None:
                self._described[key] = mould
        return made

    def forget(self) -> None:
        """Cast from no mould any more that there is now."""
        self._described.clear()
        for i in range(casting.BUCKETS):
            self._state[casting.ROOTS // 8 + i] = 0
        self._before, self._roots = self._roots, []

    def _know(self, cls: type, x: Any) -> None:
        """Know how arrays of a class are viewed."""
        if cls in self._classes:
            return
        functions = arrays.exchange_of(x)
        assert functions is not None
        words = (ctypes.c_int64 * casting.KIND_WORDS)(self._state[casting.KINDS // 8], id(cls), functions[0])
        self._classes[cls] = words
        self._state[casting.KINDS // 8] = ctypes.addressof(words)

    def _derived(self, function: Callable[..., Any], of: Any, *args: Any) -> Any:
        """Run a function of a tensor, and leave a mould of what it made, if there is one of the tensor."""
        made = function(of, *args)
        mark = getattr(of, "__dict__", {}).get(launcher.MARK)
        if mark is None or id(type(of)) != self._state[casting.TENSOR // 8]:
            return made
        parent = mark.mould
        if len(parent.children) < MOST_CHILDREN and seam.is_static(args):
            looking = _Looking(of, of.iterator, of.iterator.address.value)
            try:
                hash(args)
                found = looking.at(made)
            except (_Varied, TypeError):
                return made
            if isinstance(found, _Object):
                parent.adopt(Mould(found, looking.mask, parent.on_gpu), function, args)
                looking.mark()
                self._know_classes(args)
        return made

    def _know_classes(self, x: Any) -> None:
        """Know the fields of the static classes in a function's arguments."""
        if isinstance(x, tuple):
            for y in x:
                self._know_classes(y)
        elif seam.is_static_class(type(x)):
            if type(x) not in self._classes:
                names = tuple(f.name for f in dataclasses.fields(x))
                words = (ctypes.c_int64 * casting.CLASS_WORDS)(
                    self._state[casting.CLASSES // 8], id(type(x)), id(names)
                )
                self._classes[type(x)] = words, names
                self._state[casting.CLASSES // 8] = ctypes.addressof(words)
            for f in dataclasses.fields(x):
                self._know_classes(getattr(x, f.name))


def _is_known(x: Any) -> bool:
    """Whether an array is one whose elements may be written, and which says its strides in elements."""
    return arrays.exchange_of(x) is not None and callable(getattr(x, "data_ptr", None)) and callable(x.stride)


def _bucket(word: int, form: list[int]) -> int:
    """As `bucket_of` of casting.py."""
    mixed = word + len(form) // 2
    for i in range(len(form) - 2, -1, -2):
        mixed = (mixed * 31 + form[i]) * 31 + form[i + 1]
    mixed = (mixed + (1 << 63)) % (1 << 64) - (1 << 63)
    mixed ^= (mixed >> 8) ^ (mixed >> 16)
    return mixed & (casting.BUCKETS - 1)


def learn(obj: Any, name: str, data: bytes, leaves: list[Any], offsets: list[int]) -> None:
    """Let objects like this one, if it was cast, have what a launch packed of it from the beginning.

    name: of the attribute. leaves: what stands in the data from each of the offsets on."""
    mark = getattr(obj, "__dict__", {}).get(launcher.MARK)
    if mark is None or not mark.mould.on_gpu or name in mark.made.told or len(mark.made.told) >= MOST_TOLD:
        return
    record = getattr(obj, "tensor_map", None)
    base = obj.iterator.address.value if record is None else int(record.address) - mark.made.varied["tensor_map"].delta
    patches: list[tuple[int, int, bytes | None]] = []
    for leaf, at in zip(leaves, offsets, strict=True):
        if isinstance(leaf, TensorMapRecord):
            if not replacing():
                return
            patches.append((at, int(leaf.address) - base, data[at : at + casting.MAP_BYTES]))
        elif hasattr(leaf, "owner"):
            patches.append((at, leaf.value - base, None))
    mark.made.told[name] = _Bytes(data, patches, base)
    mark.mould.build()


_PATIENCE = 16
"""Objects that are made as they always were before there are moulds: machine code takes longer to make."""


class _Patience:
    """Runs functions, and counts how often."""

    def __init__(self) -> None:
        self.left = _PATIENCE

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            moulds()
        return function(*args)


def begin() -> None:
    """Have moulds soon: kernels are launched more than once."""
    if CASTING.array is run:
        CASTING.array = CASTING.derived = _Patience()


@functools.cache
def moulds() -> Moulds:
    """The process's moulds, which functions of the host use from now on."""
    made = Moulds()
    state = (made.address, made)
    CASTING.array, CASTING.derived = (launcher.function(name, state) for name in ("cast_array", "cast_derived"))
    CASTING.described = made.described
    return made
