# SPDX-License-Identifier: Apache-2.0
"""A device function that a kernel compiled is taken for another kernel as long as all that it may read is as it was."""

import dataclasses
import enum
import functools
import math
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.bridge import devices
from numba_cute.compiler.host.checking import check
from tests.compiler import test_static_values as static_values
from tests.compiler.test_static_values import NEW, OLD, WAYS, device, given, in_module, of_global, written

MORE = {}
"""Other ways to read a value, which are followed."""
NOT_FOLLOWED = {}
"""Ways to read one that cannot be followed: such a function is compiled anew for each kernel."""


def way(make):
    MORE[make.__name__] = make
    return make


def not_followed(make):
    NOT_FOLLOWED[make.__name__] = make
    return make


@pytest.fixture(autouse=True)
def nothing_taught(monkeypatch):
    """Other tests teach Numba functions, with which nothing is kept."""
    monkeypatch.setattr(devices, "registered", list)


@pytest.fixture
def made(monkeypatch):
    """The names of the device functions that are compiled."""
    names = []
    read = devices.reads_of
    monkeypatch.setattr(devices, "reads_of", lambda fn, *more: names.append(fn.__name__) or read(fn, *more))
    return names


def calling(function):
    """A new kernel that calls a device function."""

    @cuda.jit
    def kernel(out, n):
        out[0] = function(n)
        out[1] = cute.size(cute.make_layout(1))

    return kernel


@way
def a_name_of_pythons_that_becomes_a_global():
    space = in_module("def read():\n    return len((1, 2, 3, 4))")
    return space["read"], lambda: space.__setitem__("len", lambda x: NEW)


@way
def a_function_of_a_module():
    m = ModuleType("m")
    m.f = in_module("def f():\n    return 4")["f"]
    return written("m.f()", m=m)[0], lambda: setattr(m, "f", in_module("def f():\n    return 7")["f"])


@way
def a_module_that_a_closure_holds():
    m = ModuleType("m")
    m.N = OLD
    return (lambda: m.N), lambda: setattr(m, "N", NEW)


@way
def a_module_that_is_replaced():
    m, other = ModuleType("m"), ModuleType("m")
    m.N, other.N = OLD, NEW
    space = in_module("def read():\n    return m.N", m=m)
    return space["read"], lambda: space.__setitem__("m", other)


@way
def a_name_in_a_function_within_the_function():
    return of_global("def read():\n    def f(x):\n        return [N + i for i in range(x)]\n    return f(1)[0]")


@way
def an_attribute_of_an_object_in_a_tuple():
    c = SimpleNamespace(n=OLD)
    return written("t[1][0].n", t=(1, (c,)))[0], lambda: setattr(c, "n", NEW)


@way
def the_class_of_an_object():
    A, B = (type("C", (), {"__module__": "a_users", "n": n}) for n in (OLD, NEW))
    a = A()
    return written("a.n", a=a)[0], lambda: setattr(a, "__class__", B)


@way
def an_attribute_of_an_object_that_hides_its_classes():
    c = type("C", (), {"__module__": "a_users", "n": OLD})()
    return written("c.n", c=c)[0], lambda: setattr(c, "n", NEW)


@way
def what_a_property_reads():
    space = in_module(
        "class C:\n    @property\n    def n(self):\n        return N\ndef read():\n    return C().n", N=OLD
    )
    return space["read"], lambda: space.__setitem__("N", NEW)


@way
def a_cell_of_a_method():
    n = OLD

    def change():
        nonlocal n
        n = NEW

    def method(self):
        return n

    c = type("C", (), {"__module__": "a_users", "of": method})()
    return written("c.of()", c=c)[0], change


@way
def a_field_of_a_named_tuple():
    from collections import namedtuple

    C = namedtuple("C", "n")
    space = in_module("def read():\n    return c.n", c=C(OLD))
    return space["read"], lambda: space.__setitem__("c", C(NEW))


@way
def a_default_of_a_field():
    @dataclasses.dataclass
    class C:
        n: int = OLD

    C.__module__ = "a_users"

    @dataclasses.dataclass
    class D:
        n: int = NEW

    D.__module__ = "a_users"
    space = in_module("def read():\n    return C().n", C=C)
    return space["read"], lambda: space.__setitem__("C", D)


@way
def a_member_of_an_enumeration_of_ints():
    space = in_module("def read():\n    return int(E.A)", E=enum.IntEnum("E", {"A": OLD}))
    return space["read"], lambda: space.__setitem__("E", enum.IntEnum("E", {"A": NEW}))


@way
def the_sign_of_a_zero_in_an_object():
    space = in_module("def read():\n    return 7 if str(s.f) == '-0.0' else 4", s=SimpleNamespace(f=0.0))
    return space["read"], lambda: setattr(space["s"], "f", -0.0)


@way
def a_bool_for_an_int():
    s = SimpleNamespace(f=1)
    return written("4 if type(s.f) is int else 7", s=s)[0], lambda: setattr(s, "f", True)


@way
def a_key_of_a_dict():
    d = {1: 0}
    return written("4 if 1 in d else 7", d=d)[0], lambda: (d.clear(), d.update({2: 0}))


@way
def the_order_of_a_dict():
    d = {OLD: 1, NEW: 1}
    return written("list(d)[0]", d=d)[0], lambda: d.update({OLD: d.pop(OLD)})


@way
def a_set():
    s = {1}
    return written("4 if len(s) == 1 else 7", s=s)[0], lambda: s.add(2)


@way
def the_shape_of_an_array():
    a = np.arange(28)
    return written("7 if len(a.shape) == 2 else 4", a=a)[0], lambda: setattr(a, "shape", (4, 7))


@way
def a_device_function_that_a_device_function_calls():
    source = "@cuda.jit(device=True)\ndef inner(n):\n    return n + N\n@cute.jit\ndef read():\n    return inner(0)"
    return of_global(source)


@way
def a_decorators_function():
    return of_global("def decorated(fn):\n    return traced(fn)\n@decorated\ndef read():\n    return N")


@way
def an_argument_of_a_partial_of_a_method():
    c = type("C", (), {"__module__": "a_users", "of": lambda self, n: n + self.n})()
    c.n = OLD - 1
    return written("p()", p=functools.partial(c.of, 1))[0], lambda: setattr(c, "n", NEW - 1)


@way
def a_global_through_a_default():
    return of_global("def f():\n    return N\ndef read(f=f):\n    return f()")


@way
def a_function_that_a_partial_bears():
    p = functools.partial(int)
    p.of = in_module("def f():\n    return N", N=OLD)["f"]
    return written("p.of()", p=p)[0], lambda: p.of.__globals__.__setitem__("N", NEW)


@way
def a_method_of_a_member_of_an_enumeration():
    source = (
        "class E(enum.Enum):\n    A = 1\n    def of(self):\n        return N\na = E.A\ndef read():\n    return a.of()"
    )
    return of_global(source, enum=enum)


@way
def the_last_of_several_slots():
    c = in_module("class C:\n    __slots__ = ('m', 'n')")["C"]()
    c.m, c.n = 0, OLD
    return written("c.n", c=c)[0], lambda: setattr(c, "n", NEW)


@way
def a_function_that_is_the_last_argument():
    source = "def f():\n    return N\n@cute.jit\ndef inner(n, f):\n    return f()\ndef read():\n    return inner(0, f)"
    return of_global(source)


@way
def what_a_static_method_reads():
    return of_global("class C:\n    @staticmethod\n    def of():\n        return N\ndef read():\n    return C.of()")


@way
def what_a_method_of_an_object_in_an_argument_reads():
    return of_global("""
class C:
    def __init__(self, k):
        self.k = k
    def of(self):
        return N + 0 * self.k
def of(x):
    return x.of()
@cute.jit
def inner(n, f):
    return f()
def read():
    return inner(0, functools.partial(of, C(cuda.threadIdx.x)))""")


@way
def what_makes_the_default_of_a_field():
    source = """
def of():
    return N
@dataclasses.dataclass(init=False)
class C:
    n: int = dataclasses.field(default_factory=of)
del of
def read():
    return dataclasses.fields(C)[0].default_factory()"""
    return of_global(source, dataclasses=dataclasses)


@way
def a_shape_of_numbers_of_math():
    space = in_module("def read():\n    return math.gcd(N, 28)", N=OLD, math=math)
    return space["read"], lambda: space.__setitem__("N", NEW)


@way
def a_module_that_is_handed_on():
    m = ModuleType("m")
    m.N = OLD
    space = in_module("def of(m):\n    return m.N\ndef read():\n    return of(m)", m=m)
    return space["read"], lambda: setattr(m, "N", NEW)


@way
def a_module_in_a_tuple():
    m = ModuleType("m")
    m.N = OLD
    return written("t[0].N", t=(m,))[0], lambda: setattr(m, "N", NEW)


@way
def the_dict_of_a_module():
    m = ModuleType("m")
    m.N = OLD
    return written("m.__dict__['N']", m=m)[0], lambda: setattr(m, "N", NEW)


@not_followed
def the_globals_of_a_function():
    space = in_module("def other():\n    return 0", N=OLD)
    return written("f.__globals__['N']", f=space["other"])[0], lambda: space.__setitem__("N", NEW)


@way
def what_a_module_gives_by_a_function():
    m = ModuleType("m")
    m.value = OLD
    m.__getattr__ = lambda name: m.value
    return written("m.N", m=m)[0], lambda: setattr(m, "value", NEW)


@not_followed
def an_environment():
    import os

    os.environ["A_USERS_N"] = str(OLD)
    return written("int(os.environ['A_USERS_N'])", os=os)[0], lambda: os.environ.update(A_USERS_N=str(NEW))


@not_followed
def a_function_that_remembers():
    space = in_module("@functools.cache\ndef of():\n    return N\ndef read():\n    return of()", N=OLD)
    return space["read"], lambda: (space.__setitem__("N", NEW), space["of"].cache_clear())


@pytest.mark.parametrize("name", [n for n in {**MORE, **NOT_FOLLOWED} if n not in WAYS])
def test_what_changed_is_read_anew(name):
    """Of the ways of test_static_values too, which that holds."""
    read, change = {**MORE, **NOT_FOLLOWED}[name]()
    function = device(read)
    assert given(calling(function)) == OLD
    change()
    assert given(calling(function)) == NEW


@pytest.mark.parametrize("name", {**WAYS, **MORE, **NOT_FOLLOWED})
def test_what_did_not_change_is_taken_again_where_it_is_followed(name, made):
    static_values.SIZE = (OLD,)
    function = device({**WAYS, **MORE, **NOT_FOLLOWED}[name]()[0])
    for time in range(2):
        check(calling(function), (np.zeros(2, np.int64), 3), "sm_90a")
        assert ("compiled" in made) is (time == 0 or name in NOT_FOLLOWED)
        made.clear()
