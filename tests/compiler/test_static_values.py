# SPDX-License-Identifier: Apache-2.0
"""What a kernel reads while it is compiled may change between two kernels of one process: the new one is new.

Each way below makes a reader of a value, and says how the value is changed. A kernel calls the reader, and another one
calls it in a function that Numba must compile; both run on this machine's processor.
"""

import dataclasses
import enum
import functools
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.bridge import devices
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.seam import traced
from tests.native import Native

OLD, NEW = 4, 7
WAYS = {}


def way(make):
    WAYS[make.__name__] = make
    return make


def in_module(source, **names):
    """The names of a module of its own, which its code reads as globals."""
    space = {"__name__": "a_users", "cute": cute, "cuda": cuda, "traced": traced, "functools": functools, **names}
    exec(source, space)
    return space


def of_global(source, **names):
    """A way by a module's function `read`; the change sets its global N."""
    space = in_module(source, N=OLD, **names)
    return space["read"], lambda: space.__setitem__("N", NEW)


def written(result, **names):
    """A way whose `read` gives an expression, and whose change sets N."""
    return of_global(f"def read():\n    return {result}", **names)


@way
def a_global():
    return written("N")


@way
def a_global_of_a_global_function():
    return of_global("def inner():\n    return N\ndef read():\n    return inner()")


@way
def a_function_that_is_replaced():
    space = in_module("def inner():\n    return 4\ndef read():\n    return inner()")
    return space["read"], lambda: space.__setitem__("inner", lambda: NEW)


@way
def code_that_is_replaced():
    space = in_module("def read():\n    return 4\ndef other():\n    return 7")
    return space["read"], lambda: setattr(space["read"], "__code__", space["other"].__code__)


@way
def a_class_attribute():
    C = type("C", (), {"n": OLD})
    return written("C.n", C=C)[0], lambda: setattr(C, "n", NEW)


@way
def an_attribute_of_a_base_class():
    A = type("A", (), {"n": OLD})
    B = type("B", (A,), {})
    return written("B.n", B=B)[0], lambda: setattr(B, "n", NEW)


@way
def an_instance_attribute():
    c = type("C", (), {"__module__": "a_users"})()
    c.n = OLD
    return written("c.n", c=c)[0], lambda: setattr(c, "n", NEW)


@way
def a_namespace():
    s = SimpleNamespace(a=SimpleNamespace(n=OLD))
    return written("s.a.n", s=s)[0], lambda: setattr(s.a, "n", NEW)


@way
def an_item_of_a_dict():
    d = {"tile": OLD}
    return written("d['tile']", d=d)[0], lambda: d.update(tile=NEW)


@way
def an_item_of_a_dict_in_a_dict():
    d = {"a": {3: OLD}}
    return written("d['a'].get(3, 0)", d=d)[0], lambda: d["a"].update({3: NEW})


@way
def an_item_of_a_list():
    x = [1, OLD]
    return written("x[1]", x=x)[0], lambda: x.__setitem__(1, NEW)


@way
def the_length_of_a_list():
    x = [0] * OLD
    return written("len(x)", x=x)[0], lambda: x.extend([0] * (NEW - OLD))


@way
def tuples_in_a_tuple():
    space = in_module("def read():\n    return T[1][0]", T=(1, (OLD, 2)))
    return space["read"], lambda: space.__setitem__("T", (1, (NEW, 2)))


@way
def a_closure_cell():
    n = OLD

    def read():
        return n

    def change():
        nonlocal n
        n = NEW

    return read, change


@way
def a_closure_of_a_closure():
    read, change = a_closure_cell()
    return lambda: read() + 0, change


@way
def a_default():
    def read(n=OLD):
        return n

    return read, lambda: setattr(read, "__defaults__", (NEW,))


@way
def a_keyword_default():
    def read(*, n=OLD):
        return n

    return read, lambda: setattr(read, "__kwdefaults__", {"n": NEW})


@way
def a_function_attribute():
    space = in_module("def read():\n    return read.n")
    space["read"].n = OLD
    return space["read"], lambda: setattr(space["read"], "n", NEW)


@way
def a_module_attribute():
    m = ModuleType("m")
    m.N = OLD
    return written("m.N", m=m)[0], lambda: setattr(m, "N", NEW)


@way
def an_attribute_of_a_module_in_a_module():
    m, inner = ModuleType("m"), ModuleType("inner")
    m.inner, inner.N = inner, OLD
    return written("m.inner.N", m=m)[0], lambda: setattr(inner, "N", NEW)


@way
def a_local_import():
    import sys

    m = sys.modules["a_users_params"] = ModuleType("a_users_params")
    m.N = OLD
    read = in_module("def read():\n    from a_users_params import N\n    return N")["read"]
    return read, lambda: setattr(m, "N", NEW)


@way
def globals_by_name():
    return written("globals()['N']")


@way
def getattr_by_name():
    m = ModuleType("m")
    m.N = OLD
    return written("getattr(m, 'N')", m=m)[0], lambda: setattr(m, "N", NEW)


@way
def an_argument_of_a_partial():
    space = in_module("def of(n):\n    return n", n=OLD)
    space["p"] = functools.partial(space["of"], OLD)
    exec("def read():\n    return p()", space)
    return space["read"], lambda: space.__setitem__("p", functools.partial(space["of"], NEW))


@way
def a_property():
    C = type("C", (), {"__module__": "a_users", "n": property(lambda self: OLD)})
    return written("c.n", c=C())[0], lambda: setattr(C, "n", property(lambda self: NEW))


@way
def a_static_method():
    C = type("C", (), {"n": staticmethod(lambda: OLD)})
    return written("C.n()", C=C)[0], lambda: setattr(C, "n", staticmethod(lambda: NEW))


@way
def a_class_method():
    C = type("C", (), {"k": OLD, "n": classmethod(lambda cls: cls.k)})
    return written("C.n()", C=C)[0], lambda: setattr(C, "k", NEW)


@way
def a_method_that_a_subclass_overrides():
    A = type("A", (), {"__module__": "a_users", "n": lambda self: OLD})
    B = type("B", (A,), {"__module__": "a_users"})
    return written("b.n()", b=B())[0], lambda: setattr(B, "n", lambda self: NEW)


@way
def getattr_of_a_class():
    C = type("C", (), {"__module__": "a_users", "__getattr__": lambda self, name: OLD})
    return written("c.anything", c=C())[0], lambda: setattr(C, "__getattr__", lambda self, name: NEW)


@way
def a_member_of_an_enumeration():
    space = in_module("def read():\n    return E.A.value", E=enum.Enum("E", {"A": OLD}))
    return space["read"], lambda: space.__setitem__("E", enum.Enum("E", {"A": NEW}))


@dataclasses.dataclass
class Config:
    n: int = OLD


@way
def a_field_of_a_dataclass():
    c = Config()
    return written("c.n", c=c)[0], lambda: setattr(c, "n", NEW)


@dataclasses.dataclass(frozen=True)
class Named:
    name: str
    n: int = dataclasses.field(default=OLD, compare=False)


@way
def an_object_that_equals_the_last():
    space = in_module("def of(c):\n    return c.n\ndef read():\n    return of(c)", c=Named("a"))
    return space["read"], lambda: space.__setitem__("c", Named("a", NEW))


@way
def cute_jit():
    return of_global("@cute.jit\ndef read():\n    return N")


@way
def a_device_function():
    return of_global("@cuda.jit(device=True)\ndef read():\n    return N")


@way
def a_device_function_of_one_signature():
    with compiling_for("sm_90a"):
        space = in_module("@cuda.jit('int64(int64)', device=True)\ndef of(x):\n    return x + N", N=OLD)
    exec("@cute.jit\ndef read():\n    return of(0)", space)
    return space["read"], lambda: space.__setitem__("N", NEW)


@way
def a_traced_function_of_the_users():
    return of_global("@traced\ndef read():\n    return N")


@way
def a_lambda():
    return of_global("read = lambda: N")


@way
def a_nested_function():
    return of_global("def read():\n    def inner():\n        return N\n    return inner()")


@way
def a_decorated_function():
    source = """
def plus(fn):
    @functools.wraps(fn)
    def call(*args):
        return fn(*args) + M
    return call
@plus
def read():
    return 2
"""
    space = in_module(source, M=OLD - 2)
    return space["read"], lambda: space.__setitem__("M", NEW - 2)


@way
def bounds_of_a_loop():
    source = "def read():\n    n = 0\n    for i in cute.range_constexpr(N):\n        n += 1\n    return n"
    return of_global(source)


@way
def a_shape():
    return of_global("def read():\n    return cute.size(cute.make_layout((N, 1)))")


@way
def a_layout():
    space = in_module("def read():\n    return cute.size(L)", L=cute.make_layout(OLD))
    return space["read"], lambda: space.__setitem__("L", cute.make_layout(NEW))


@way
def an_element_type():
    space = in_module("def read():\n    return T.width // 8 + 3", T=cute.Int8)
    return space["read"], lambda: space.__setitem__("T", cute.Float32)


@way
def a_conditional_expression():
    space = in_module("def read():\n    return 7 if FLAG else 4", FLAG=False)
    return space["read"], lambda: space.__setitem__("FLAG", True)


@way
def const_expr():
    space = in_module("def read():\n    if cute.const_expr(FLAG):\n        return 7\n    return 4", FLAG=0)
    return space["read"], lambda: space.__setitem__("FLAG", 1)


@way
def an_assertion():
    space = in_module("def read():\n    assert N == K\n    return N", N=OLD, K=OLD)
    return space["read"], lambda: space.update(N=NEW, K=NEW)


@way
def a_string():
    space = in_module("def read():\n    return len(S)", S="four")
    return space["read"], lambda: space.__setitem__("S", "seven..")


@way
def a_number_of_numpy():
    space = in_module("def read():\n    return int(N)", N=np.int32(OLD))
    return space["read"], lambda: space.__setitem__("N", np.int32(NEW))


@way
def an_array_of_numpy():
    a = np.array([1, OLD])
    return written("int(a[1])", a=a)[0], lambda: a.__setitem__(1, NEW)


@way
def a_float():
    space = in_module("def read():\n    return int(F * 2)", F=2.0)
    return space["read"], lambda: space.__setitem__("F", 3.5)


@way
def the_sign_of_zero():
    space = in_module("def of(f):\n    return 7 if str(f) == '-0.0' else 4\ndef read():\n    return of(F)", F=0.0)
    return space["read"], lambda: space.__setitem__("F", -0.0)


@cute.struct
class Counted:
    n: cute.Int32

    def plus(self):
        return self.n + SIZE[0]

    @property
    def size(self):
        return SIZE[0]


SIZE = (OLD,)


def change_size():
    global SIZE
    SIZE = (NEW,)


@way
def a_method_of_a_struct():
    return cute.jit(lambda: Counted(0).plus()), change_size


@way
def a_property_of_a_struct():
    return cute.jit(lambda: Counted(0).size), change_size


def device(read):
    @cute.jit
    def compiled(n):
        if n > 2:
            return read()
        return read() + 1

    return compiled


def kernels(read, compiled):
    @cuda.jit
    def called(out, n):
        out[0] = read()
        out[1] = cute.size(cute.make_layout(1))

    @cuda.jit
    def jitted(out, n):
        out[0] = compiled(n)

    return called, jitted


def given(kernel):
    out = np.zeros(2, np.int64)
    Native(kernel, (out, 3)).run(1, out, 3)
    return int(out[0])


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (i % 2)) for i, n in enumerate(WAYS)])
def test_a_new_kernel_reads_what_is_now(name, monkeypatch):
    global SIZE
    monkeypatch.setattr(devices, "registered", list)  # other tests teach Numba functions, with which nothing is kept
    SIZE = (OLD,)
    read, change = WAYS[name]()
    compiled = device(read)
    assert [given(k) for k in kernels(read, compiled)] == [OLD] * 2
    change()
    assert [given(k) for k in kernels(read, compiled)] == [NEW] * 2
