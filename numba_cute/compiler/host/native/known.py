# SPDX-License-Identifier: Apache-2.0
"""The templates of a process: what functions of arrays and of tensors leave behind, and how that is found again.

So `from_dlpack` and `make_tiled_tma_atom` take a microsecond at each launch, of arrays of kinds that they know.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any

from .... import config, seam
from ....seam.ground.packages import LIBRARY
from ....seam.ground.records import dataclass
from ....seam.hooks.casting import CASTING, FUNCTIONS, OfArrays, cast_by, run
from ...bridge.exact import exact, is_exact
from ...bridge.holdings import MISSING
from ...bridge.reads import ITEMS, HostReads
from ...bridge.walking import Unfollowed
from . import arrays, casting, launcher, oracle, reading
from .templates import Looking, Template, Varied
from .trusted import CASTS, LAUNCHES

MOST_TEMPLATES, MOST_CHILDREN = 1024, 64
"""The most templates of a function of arrays, and of a tensor."""


def alike(a: Any, b: Any) -> bool:
    """Say whether two arguments are the same to a function, which may look at all that is in them."""
    return is_known(a) and is_known(b) and exact(a, ours=True) == exact(b, ours=True)


def is_known(x: Any) -> bool:
    """Say whether an argument is proved immutable."""
    return is_exact(x, ours=True)


class Viewed:
    """An array as DLPack's exchange functions view it. word: its element type. where: its device. form: extents and
    strides, by turns. base: where it begins."""

    def __init__(self, view: Any) -> None:
        self.on_gpu = view.device_type == arrays.CUDA
        self.word = view.code | view.bits << 8 | view.lanes << 16
        self.where, self.dims = view.device_type | view.device_id << 32, view.ndim
        self.base = (view.data or 0) + view.byte_offset
        self.bytes = max(1, view.bits * view.lanes // 8)
        self.shape, self.strides = view.shape[: view.ndim], view.strides[: view.ndim]
        self.form = [n for both in zip(self.shape, self.strides) for n in both]

    @property
    def end(self) -> int:
        """Return the address of its end."""
        return int(self.base + self.bytes * (1 + sum((n - 1) * abs(d) for n, d in zip(self.shape, self.strides) if n)))


def viewed(x: Any) -> Viewed | None:
    """The view of an array that is written by anybody, and says what it is as its exchange functions do; None for any
    other object."""
    if arrays.exchange_of(x) is None or not (callable(getattr(x, "data_ptr", None)) and callable(x.stride)):
        return None
    view = arrays.view_of(x)
    if view is None or not (view.data and view.shape and view.strides):
        return None
    found = Viewed(view)
    same = found.shape == list(x.shape) and found.strides == list(x.stride()) and found.base == int(x.data_ptr())
    return found if same else None


_TELL_ADDRESSES = frozenset((
    "address", "ctypes", "data", "data_ptr", "device_ctypes_pointer", "device_pointer", "gpu_data", "memory", "owner",
    "pointer", "ptr", "storage", "storage_offset", "toint", "untyped_storage", "value",
))  # fmt: skip
"""Attributes that tell where an array lies, of arrays and of what is made of them."""
_OF_POINTERS = frozenset(("int", "float", "bool", "str", "format", "divmod", "hex", "bin", "oct"))
"""Functions that tell it of a pointer."""
_MOST_CHANGES = 8
"""The number of changes in what a function reads, after which it runs each time."""


class Reading:
    """The reads of a function besides its arguments: nothing that changes, if it is this library's own.

    function: the Python. words: of the function, where machine code looks. ours: whether it is this library's."""

    def __init__(self, function: Any, words: Any) -> None:
        self._function, self._words = function, words
        self.ours = _is_ours(function)
        self._left = _MOST_CHANGES
        self._reads: HostReads | None = None
        self._kept: list[Any] = []

    def is_followed(self, forget: Callable[[], None]) -> bool:
        """Say whether all that is read is known now. forget: is called where it is another than it was."""
        if self.ours or (self._reads is not None and self._reads.hold()):
            return True
        forget()
        self._reads = None
        if self._left == 0:
            return False
        self._left -= 1
        try:
            found = HostReads(self._function)
        except Unfollowed:
            self._left = 0
            return False
        if _tells_addresses(found.names):
            self._left = 0
            return False
        self._reads = found
        self._tell(found)
        return True

    def still(self) -> bool:
        """Say whether it is as it was before the function ran."""
        return self.ours or (self._reads is not None and self._reads.hold())

    def _tell(self, found: HostReads) -> None:
        """Let machine code look at the places that were found, or ask."""
        flat: list[int] = []
        before, self._kept = self._kept, [found]
        for p in found.places:
            if p.kind == ITEMS:
                items = (ctypes.c_int64 * max(1, len(p.value)))(*map(id, p.value))
                self._kept.append(items)
                flat += [p.kind, id(p.holder), len(p.value) // 2, ctypes.addressof(items)]
            else:
                flat += [p.kind, id(p.holder), id(p.name), 0 if p.value is MISSING else id(p.value)]
        places, holds = (ctypes.c_int64 * max(1, len(flat)))(*flat), found.hold
        self._kept += (places, holds, before)
        self._words[reading.PLACES // 8] = ctypes.addressof(places)
        self._words[reading.PLACE_COUNT // 8] = len(found.places)
        self._words[reading.HOLDS // 8] = 0 if found.all_in_places else id(holds)


def _tells_addresses(names: set[str]) -> bool:
    """Say whether code that uses these names may turn an array's address into a number."""
    return bool(names & _TELL_ADDRESSES or ("iterator" in names and names & _OF_POINTERS))


def _is_ours(function: Any) -> bool:
    """Say whether a function is this library's, including the ready-made kernels': these read nothing that changes."""
    held = getattr(function, "__globals__", {}).get("__name__", "")
    return str(held).partition(".")[0] == LIBRARY


class Function:
    """The templates of a function of arrays. call: what is called in its place. ran: how often that ran Python."""

    def __init__(self, of: OfArrays, templates: Templates) -> None:
        self._function, self._templates = of.function, templates
        self.ran = 0
        slow = self._slowly
        self.words = (ctypes.c_int64 * casting.FUNCTION_WORDS)(0, 0, 0, templates.address, id(slow))
        self._reading = Reading(of.function, self.words)
        self._kept, self._before = [], []  # type: ignore[var-annotated]  # one may be at work
        self.call = launcher.function("cast_of_arrays", (ctypes.addressof(self.words), self.words, slow, templates))

    @property
    def python(self) -> Any:
        """The function itself."""
        return self._function

    def _slowly(self, *args: Any, **named: Any) -> Any:
        """Run the function, and leave a template of what it made."""
        self.ran += 1
        followed = self._reading.is_followed(self.forget)
        made = self._function(*args, **named)
        if followed and not named and self._reading.still():
            self._note(made, args)
        return made

    def _note(self, made: Any, args: tuple[Any, ...]) -> None:
        views = [viewed(a) if arrays.exchange_of(a) is not None else None for a in args]
        given = [a for a, v in zip(args, views) if v is not None]
        static = [a for a, v in zip(args, views) if v is None]
        if not given or len({id(x) for x in given}) < len(given):
            return
        known = is_known if self._reading.ours else is_exact
        if _has_array(static) or not all(map(known, static)):
            return
        template = self._templates.template(made, given, [v for v in views if v is not None], static)
        if template is None:
            return
        for x in given:
            self._templates.know(x)
        words, mixed = [], len(args)
        for a, v in zip(args, views):
            if v is None:
                words += [0, template.keep(a), 0, 0, 0, 0, 0]
                continue
            aligned = v.base % casting.ALIGNMENT == 0
            words += [template.keep(type(a)), 0, v.word, v.where, v.dims, template.numbers(v.form), int(aligned)]
            mixed = _mixed(mixed, v)
        template.set(casting.COUNT, len(args))
        template.set(casting.GIVEN, template.numbers(words))
        self._keep(template, mixed)

    def _keep(self, template: Template, mixed: int) -> None:
        mixed = (mixed + (1 << 63)) % (1 << 64) - (1 << 63)
        bucket = casting.ROOTS // 8 + ((mixed ^ (mixed >> 8) ^ (mixed >> 16)) & (casting.BUCKETS - 1))
        if len(self._kept) >= MOST_TEMPLATES:
            self.forget()
        self._kept.append(template)
        template.set(casting.NEXT, self.words[bucket])
        self.words[bucket] = template.address

    def forget(self) -> None:
        """Cast from no template any more that there is now."""
        for i in range(casting.BUCKETS):
            self.words[casting.ROOTS // 8 + i] = 0
        self._before, self._kept = self._kept, []


def _has_array(x: Any) -> bool:
    """Say whether there is an array among arguments, or in tuples of them: one that machine code would not look for."""
    return any(map(_has_array, x)) if isinstance(x, (list, tuple)) else arrays.exchange_of(x) is not None


def _mixed(mixed: int, v: Viewed) -> int:
    """As `mixed_with` of casting.py."""
    mixed = mixed * 31 + v.word + v.dims
    for i in range(len(v.form) - 2, -1, -2):
        mixed = (mixed * 31 + v.form[i]) * 31 + v.form[i + 1]
    return mixed


_NEGATIVE = sys.intern("is_neg")
"""The method of torch's tensors that says whether their memory holds the numbers with the other sign."""


class Templates:
    """The templates of all functions, as machine code knows them."""

    def __init__(self) -> None:
        self._kept: list[Any] = [alike, self._derived]
        self._state = (ctypes.c_int64 * casting.STATE_WORDS)()
        for place, function in zip((casting.ALIKE, casting.SLOW_DERIVED), self._kept):
            self._state[place // 8] = id(function)
        self.address = ctypes.addressof(self._state)
        self._classes: dict[type, Any] = {}
        self._described: dict[Any, Template] = {}
        self._cast_at = launcher.function("cast_at", (0, self))
        self.derived = launcher.function("cast_derived", (self.address, self))

    def template(self, made: Any, given: list[Any], views: list[Any], static: Any = ()) -> Template | None:
        """A template of what was made of some arrays; None if there can be none."""
        looking = Looking(given, [v.base for v in views], [v.end for v in views])
        try:
            found = looking.result(made)
            looking.aligned(made)
        except Varied:
            return None
        if hasattr(made, "iterator"):
            if self._state[casting.TENSOR // 8] == 0:
                self._kept.append(type(made))
                self._state[casting.TENSOR // 8] = id(type(made))
        template = Template(found, looking.masks, all(v.on_gpu for v in views))
        looking.mark()
        self._know_classes(tuple(static))
        return template

    def know(self, x: Any) -> None:
        """Know how arrays of a class are viewed."""
        if type(x) not in self._classes:
            functions = arrays.exchange_of(x)
            assert functions is not None
            words = (ctypes.c_int64 * casting.KIND_WORDS)(
                self._state[casting.KINDS // 8],
                id(type(x)),
                functions[0],
                id(_NEGATIVE) if hasattr(x, _NEGATIVE) else 0,
            )
            self._classes[type(x)] = words
            self._state[casting.KINDS // 8] = ctypes.addressof(words)

    def _know_classes(self, x: Any) -> None:
        """Know the fields of the frozen classes in a function's arguments."""
        if isinstance(x, tuple):
            for y in x:
                self._know_classes(y)
        elif seam.is_frozen_class(type(x)):
            if type(x) not in self._classes:
                names = tuple(f.name for f in dataclasses.fields(x))
                words = (ctypes.c_int64 * casting.CLASS_WORDS)(
                    self._state[casting.CLASSES // 8], id(type(x)), id(names)
                )
                self._classes[type(x)] = words, names
                self._state[casting.CLASSES // 8] = ctypes.addressof(words)
            for f in dataclasses.fields(x):
                self._know_classes(getattr(x, f.name))

    def described(self, function: Callable[..., Any], info: Any, align: Any) -> Any:
        """Give what a function makes of what was found of an array: of one without DLPack's exchange functions."""
        x = info.owner
        device = arrays.device_of(x)
        if arrays.exchange_of(x) is not None or not (type(x) in arrays.OF_NUMBA or device is not None):
            return function(info, align)
        key = type(x), device, info.dtype, info.shape, info.strides, info.readonly, type(align), align
        template = self._described.get(key)
        if template is not None:
            made = self._cast_at(template.address, x, info.address)
            if made is not None:
                return made
        made = function(info, align)
        if template is None and info.address:
            template = self.template(made, [x], [_Described(info.address)])
            if template is not None:
                if len(self._described) >= MOST_TEMPLATES:
                    self._described.pop(next(iter(self._described)))
                self._described[key] = template
        return made

    def _derived(self, function: Callable[..., Any], of: Any, *args: Any) -> Any:
        """Run a function of a tensor, and leave a template of what it made, if there is one of the tensor."""
        made = function(of, *args)
        mark = getattr(of, "__dict__", {}).get(launcher.MARK)
        if mark is None or not mark.address or id(type(of)) != self._state[casting.TENSOR // 8]:
            return made
        parent = mark.template
        if len(parent.children) < MOST_CHILDREN and is_known(args):
            base = of.iterator.address.value
            looking = Looking([of], [base], [base], of.iterator)
            try:
                found = looking.result(made)
            except Varied:
                return made
            parent.adopt(Template(found, looking.masks, parent.on_gpu), function, args)
            looking.mark()
            self._know_classes(args)
        return made


@dataclass
class _Described:
    """The memory of an array that attributes describe: its address, on a GPU."""

    base: int
    on_gpu: bool = True

    @property
    def end(self) -> int:
        return self.base


_PATIENCE = 16
"""Objects that are made as they always were before there are templates: machine code takes longer to make."""


class _Patience:
    """Runs functions, and counts how often."""

    def __init__(self) -> None:
        self.left = _PATIENCE

    def __call__(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        self.left -= 1
        if self.left == -1 and CASTS.holds:
            templates()
        return function(*args, **named)


def begin() -> None:
    """Have templates soon: kernels are launched more than once."""
    if CASTING.derived is run and LAUNCHES.holds:
        CASTING.derived = patience = _Patience()

        def wait(one: OfArrays) -> None:
            one.cast = functools.partial(patience, one.function)

        for one in list(FUNCTIONS):
            wait(one)


@functools.cache
def templates() -> Templates:
    """The process's templates, which functions of the host use from now on."""
    made = Templates()

    def tell(one: OfArrays) -> None:
        one.templates = function = Function(one, made)  # type: ignore[attr-defined]
        one.cast = oracle.comparing(function) if config.current().check_launches else function.call

    CASTING.derived, CASTING.described = made.derived, made.described
    cast_by(tell)
    return made
