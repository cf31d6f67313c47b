# SPDX-License-Identifier: Apache-2.0
"""Kinds of change between two launches: of what a launch is given, and of what that is made of.

A case has a kernel, what its arguments are at each launch, and changes that are made one after the other. `silent`: no
byte differs then, and no kernel is another; of all others one does.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import pickle
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack
from numba_cute.seam import frozen

CASES = {}


class Case(NamedTuple):
    function: object
    args: object
    changes: list
    silent: bool = False


def made(name, silent=False):
    """Decorate what makes a case: it gives function, arguments and changes."""

    def note(make):
        def built():
            function, args, *changes = make()
            return Case(function, args, changes, silent)

        assert name not in CASES, name
        CASES[name] = built
        return make

    return note


def takes_one():
    def k(a):
        arch.thread_idx()

    return k


def takes_two():
    def k(a, b):
        arch.thread_idx()

    return k


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Pair(NamedTuple):
    """A tuple with names."""

    a: object
    b: object


@frozen
class Holds:
    """An object of the user's that never changes."""

    x: object


@frozen
class HoldsMore:
    x: object
    note: object = dataclasses.field(default=None, compare=False)


class Plain:
    def __init__(self, x):
        self.x = x


class Slotted:
    __slots__ = ("__weakref__", "x")

    def __init__(self, x):
        self.x = x


@dataclasses.dataclass
class Data:
    x: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    note: object = dataclasses.field(default=None, compare=False)


class Equal:
    """One that says that it is like any other."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


# Values that Python takes for one another, or that lie at the ends of types.
NUMBERS = [
    (1, True), (True, 1), (0, False), (1, 1.0), (1.0, 1), (0.0, -0.0), (-0.0, 0.0), (1.0, True), (1, -1),
    (1 << 63, 5), (5, 1 << 63), (1 << 63, -5), ((1 << 64) - 1, (1 << 63) - 1), (5, (1 << 31)), (2.5, float("nan")),
    (1, np.int8(1)), (np.int8(1), np.uint8(1)), (np.int64(1), np.uint64(1)), (1, np.uint64(1)), (1.0, np.float32(1.0)),
    (np.float32(1), np.float64(1)), (np.float16(1), np.float16(2)), (np.bool_(True), np.int8(1)), (1, 1 + 0j),
    (1j, 2j), (0j, complex(0.0, -0.0)), (Colour.RED, Colour.BLUE), (Number.ONE, 1), (Number.ONE, Number.TWO),
    (cute.Int32(1), cute.Int64(1)), (cute.Int32(1), cute.Uint32(1)), (cute.Int32(1), cute.Int32(2)),
    (cute.Float32(0.0), cute.Float32(-0.0)), (cute.Int32(8), cute.Int32(8).assumed(4)), (1, cute.Int32(1)),
    (cute.Boolean(True), cute.Boolean(False)), (cute.Uint64(1), cute.Uint64((1 << 64) - 1)), (1, None), (None, 0),
]  # fmt: skip
STATIC = [
    (1, True), (True, 1), (0.0, -0.0), (1, 1.0), (1.0, True), (1, 2), ("a", "b"), ("1", b"1"), (0j, complex(0.0, -0.0)),
    (Colour.RED, Colour.BLUE), (Number.ONE, 1), (np.float32(0.0), np.float32(-0.0)), (np.int32(1), np.int64(1)),
    (cute.Float32, cute.Float16), (cute.Int32(1), cute.Int32(2)), (cute.Int32(1), cute.Int64(1)), ((1, 2), (1, True)),
    (float("nan"), float("-nan")), (None, 0), (range(0, 3, 2), range(0, 4, 2)),
]  # fmt: skip


def texts(pair):
    """Names of a pair's values, the same in each process: without addresses."""
    return "_".join(f"{type(x).__name__}_{x!r}".split(" at 0x")[0][:40].replace(" ", "") for x in pair)


for _i, _pair in enumerate(NUMBERS):
    for _form, _of in {"argument": lambda v: (v,), "item": lambda v: ((v, 2),)}.items():
        if _form == "item" and any(isinstance(x, enum.Enum) for x in _pair):
            continue

        def _number(pair=_pair, of=_of):
            held = [pair[0]]
            return (
                takes_one(), lambda: of(held[0]), lambda: held.__setitem__(0, pair[1]),
                lambda: held.__setitem__(0, pair[0]),
            )  # fmt: skip

        made(f"number_{_i}_{_form}_{texts(_pair)}")(_number)

HOLDERS = {
    "static": Holds, "static_more": lambda x: HoldsMore(1, x), "plain": Plain, "data": Data,
    "namespace": lambda x: SimpleNamespace(x=x), "nested": lambda x: Plain(Plain(x)), "list": lambda x: Plain([x, 1]),
    "tuple": lambda x: Plain((x, 1)), "tuple_of_static": lambda x: (Holds(x), 1),
    "partial": lambda x: functools.partial(_gives, n=x),
    "default": lambda x: _with_default(x), "closure": lambda x: _closing(x),
}  # fmt: skip


def _gives(v, n=0):
    return n


def _with_default(x):
    def f(v, n=x):
        return n

    return f


def _closing(x):
    def f(v):
        return x

    return f


def set_in(obj, value):
    """Set what a holder holds, where it can be set."""
    if isinstance(obj, functools.partial):
        obj.keywords["n"] = value
    elif isinstance(obj, Plain) and isinstance(obj.x, Plain):
        obj.x.x = value
    elif isinstance(obj, Plain) and isinstance(obj.x, list):
        obj.x[0] = value
    elif isinstance(obj, Plain) and isinstance(obj.x, tuple):
        obj.x = (value, 1)
    elif hasattr(obj, "__closure__") and obj.__closure__:
        obj.__closure__[0].cell_contents = value
    elif hasattr(obj, "__defaults__"):
        obj.__defaults__ = (value,)
    else:
        obj.x = value


MUTABLE = ("plain", "data", "namespace", "nested", "list", "tuple", "partial", "default", "closure")
FEW = (
    (1, True),
    (0.0, -0.0),
    (1, 1.0),
    (1, 2),
    (cute.Int32(1), cute.Int32(2)),
    (cute.Int32(1), 1),
    (cute.Float32, cute.Float16),
)

for _name, _make in HOLDERS.items():
    for _i, _pair in enumerate(STATIC if _name == "static" else FEW):

        def _anew(make=_make, pair=_pair):
            held = [pair[0]]
            return (
                takes_one(), lambda: (make(held[0]),), lambda: held.__setitem__(0, pair[1]),
                lambda: held.__setitem__(0, pair[0]),
            )  # fmt: skip

        if _name not in ("default", "closure"):  # each is another function
            made(f"made_anew_{_name}_{_i}_{texts(_pair)}")(_anew)
        if _name in MUTABLE:

            def _same(make=_make, pair=_pair):
                obj = make(pair[0])
                return (
                    takes_one(), lambda: (obj,), lambda: set_in(obj, pair[1]), lambda: set_in(obj, pair[0]),
                )  # fmt: skip

            def _as_default(make=_make, pair=_pair):
                obj = make(pair[0])

                def k(a, b=obj):
                    arch.thread_idx()

                return k, lambda: (3,), lambda: set_in(obj, pair[1]), lambda: set_in(obj, pair[0])

            made(f"changed_{_name}_{_i}_{texts(_pair)}")(_same)
            made(f"changed_default_{_name}_{_i}_{texts(_pair)}")(_as_default)

for _i, _pair in enumerate(NUMBERS):
    if not any(isinstance(x, (complex, np.complex64)) for x in _pair):

        def _default(pair=_pair):
            def k(a, b=pair[0]):
                arch.thread_idx()

            return (
                k,
                lambda: (3,),
                lambda: setattr(k, "__defaults__", (pair[1],)),
                lambda: setattr(k, "__defaults__", (pair[0],)),
            )

        made(f"default_{_i}_{texts(_pair)}")(_default)


@made("defaults_one_of_two")
def _():
    def k(a, b=1, c=2):
        arch.thread_idx()

    given = [(3, 4)]
    return (
        k, lambda: given[0], lambda: setattr(k, "__defaults__", (1, 5)), lambda: given.__setitem__(0, (3,)),
        lambda: setattr(k, "__defaults__", (6, 5)), lambda: given.__setitem__(0, (3, 4, 7)),
    )  # fmt: skip


@made("annotated")
def _():
    def k(a: cute.Int32, b: cute.Float32, c: cute.Uint64, d: cute.Boolean):
        arch.thread_idx()

    given = [(1, 0.5, 5, True)]
    others = [
        (-1, 0.1, 1 << 63, False), (True, 1, 7, 1), (1 << 31, 1e300, -1, 0), (2.5, float("nan"), 2.0, 3),
        (cute.Int64(5), np.float64(2), np.int8(-1), True), (-0.0, -0.0, 0, 0.0),
    ]  # fmt: skip
    return (k, lambda: given[0], *(lambda o=o: given.__setitem__(0, o) for o in others))


CONSTANTS = (
    (3, 4), (1, True), (True, False), (1 << 40, -1), (cute.Float32, cute.Float16), (len, min), (_gives, _closing),
    (cute.make_layout(4), cute.make_layout(8)),
)  # fmt: skip
for _i, (_a, _b) in enumerate(CONSTANTS):

    @made(f"constexpr_{_i}_{texts((_a, _b))}")
    def _(a=_a, b=_b):
        def k(a, n: cute.Constexpr):
            arch.thread_idx()

        held = [a]
        return k, lambda: (3, held[0]), lambda: held.__setitem__(0, b), lambda: held.__setitem__(0, a)

# ---------------------------------------------------------------- tensors, atoms, layouts


def tensor(address, shape=(4,), dtype=cute.Float32, stride=None):
    pointer = cute.make_ptr(dtype, address, cute.AddressSpace.gmem)
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


OBJECTS = {
    "address": (tensor(0x1000), tensor(0x2000)), "shape": (tensor(0x1000), tensor(0x1000, (8,))),
    "dtype": (tensor(0x1000), tensor(0x1000, dtype=cute.Int32)),
    "rank": (tensor(0x1000, (4, 4)), tensor(0x1000, (16,))),
    "stride": (tensor(0x1000, (4,), stride=(1,)), tensor(0x1000, (4,), stride=(2,))),
    "layout": (cute.make_layout((4, 8)), cute.make_layout((8, 4))),
    "layout_dynamic": (cute.make_layout((4, cute.Int32(8))), cute.make_layout((4, cute.Int32(9)))),
    "layout_less_static": (cute.make_layout((4, 8)), cute.make_layout((4, cute.Int32(8)))),
    "layout_width": (cute.make_layout((4, cute.Int32(8))), cute.make_layout((4, cute.Int64(8)))),
    "layout_divisor": (cute.make_layout((4, cute.Int32(8))), cute.make_layout((4, cute.Int32(8).assumed(8)))),
    "pointer": (cute.make_ptr(cute.Float32, 0x100, cute.AddressSpace.gmem),
                cute.make_ptr(cute.Float32, 0x100, cute.AddressSpace.gmem, assumed_align=16)),
    "swizzle": (cute.make_swizzle(1, 4, 3), cute.make_swizzle(2, 4, 3)), "type": (cute.Float32, cute.Float16),
    "function": (len, min), "member": (Colour.RED, Colour.BLUE),
}  # fmt: skip
for _name, _pair in OBJECTS.items():
    for _form, _of in {
        "alone": lambda v: (v,),
        "in_a_tuple": lambda v: ((v, 1),),
        "in_a_named_tuple": lambda v: (Pair(v, 1),),
        "held": lambda v: (Holds(v),),
    }.items():
        if _name == "member" and "tuple" in _form:
            continue

        @made(f"object_{_name}_{_form}")
        def _(pair=_pair, of=_of):
            held = [pair[0]]
            return (
                takes_one(),
                lambda: of(held[0]),
                lambda: held.__setitem__(0, pair[1]),
                lambda: held.__setitem__(0, pair[0]),
            )


@made("object_copied", silent=True)
def _():
    lay = cute.make_layout((4, cute.Int32(8)))
    held = [lay]
    return (
        takes_one(), lambda: (held[0],), lambda: held.__setitem__(0, copy.copy(lay)),
        lambda: held.__setitem__(0, copy.deepcopy(lay)), lambda: held.__setitem__(0, pickle.loads(pickle.dumps(lay))),
    )  # fmt: skip


@made("array_copied_deeply")
def _():
    t = from_dlpack(np.arange(8, dtype=np.float32))
    held = [t]
    return takes_one(), lambda: (held[0],), lambda: held.__setitem__(0, copy.deepcopy(t))


class Kept:
    def __init__(self, n):
        self.n = n

    def method(self, v):
        return v


@made("method_of_an_object")
def _():
    obj = Kept(cute.Int32(3))
    return takes_one(), lambda: (obj.method,), lambda: setattr(obj, "n", cute.Int32(4)), lambda: setattr(obj, "n", 5)


@made("a_new_attribute")
def _():
    obj = Plain(1)
    return takes_one(), lambda: (obj,), lambda: setattr(obj, "y", cute.Int32(4)), lambda: delattr(obj, "y")


@made("an_object_of_another_class")
def _():
    obj = Plain(1)
    return takes_one(), lambda: (obj,), lambda: setattr(obj, "__class__", Kept)


@made("equal_objects")
def _():
    held = [Equal(1)]
    return (
        takes_one(),
        lambda: (held[0],),
        lambda: held.__setitem__(0, Equal(2)),
        lambda: held.__setitem__(0, Equal(True)),
    )


@made("equal_objects_held")
def _():
    held = [Holds(Equal(1))]
    return takes_one(), lambda: (held[0],), lambda: held.__setitem__(0, Holds(Equal(2)))


@made("code_of_a_function")
def _():
    def f(v):
        return 1

    def g(v):
        return 2

    return takes_one(), lambda: (f,), lambda: setattr(f, "__code__", g.__code__)


@made("keyword_default_of_a_function")
def _():
    def f(v, *, n=1):
        return n

    return (
        takes_one(),
        lambda: (f,),
        lambda: f.__kwdefaults__.update(n=2),
        lambda: setattr(f, "__kwdefaults__", {"n": 3}),
    )


@made("closure_of_a_closure")
def _():
    inner = _closing(1)
    outer = _closing(inner)
    return takes_one(), lambda: (outer,), lambda: set_in(inner, 2), lambda: set_in(inner, cute.Int32(2))


@made("object_in_a_closure")
def _():
    obj = Plain(1)
    fn = _closing(obj)
    return takes_one(), lambda: (fn,), lambda: setattr(obj, "x", 2), lambda: setattr(obj, "x", 2.0)


@made("list_in_a_closure")
def _():
    held = [1]
    fn = _closing(held)
    return takes_one(), lambda: (fn,), lambda: held.append(2), lambda: held.__setitem__(0, True)


@made("function_held_by_an_object")
def _():
    fn = _closing(1)
    obj = Holds(fn)
    return takes_one(), lambda: (obj,), lambda: set_in(fn, 2), lambda: set_in(fn, cute.Int32(2))


@made("partial_held_by_an_object")
def _():
    p = functools.partial(_gives, n=1)
    obj = Holds(p)
    return takes_one(), lambda: (obj,), lambda: set_in(p, 2), lambda: set_in(p, cute.Int32(2))


@made("partial_with_a_new_keyword")
def _():
    p = functools.partial(_gives)
    return takes_one(), lambda: (p,), lambda: p.keywords.update(n=2), lambda: p.keywords.update(n=cute.Int32(3))
