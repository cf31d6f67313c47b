# SPDX-License-Identifier: Apache-2.0
"""The classes of objects and numbers in kernels: Python, the simulator and compiled code give the same answers."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.seam.marks.host_objects import as_argument
from tests.compiler.three_ways import compiled, results
from tests.native import Native

HEAD = """
import dataclasses, functools, operator
from types import SimpleNamespace
import numba_cute as cute
from numba import cuda
@dataclasses.dataclass
class P:
    x: object
    y: object
@dataclasses.dataclass(frozen=True)
class F:
    x: object
    y: object
class V:
    def __init__(self, n):
        self.n = n
class W(V):
    pass
class Eq:
    def __init__(self, n):
        self.n = n
    def __eq__(self, o):
        return self.n % 10 == o.n % 10
    def __hash__(self):
        return 7
class Box:
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return 3
    def __contains__(self, v):
        return v == self.n
    def __bool__(self):
        return self.n > 4
    def __getitem__(self, i):
        return self.n + i
class Cb:
    def __init__(self, n):
        self.n = n
    def __call__(self, v):
        return self.n + v
@cute.struct
class S:
    n: cute.Int32
    def get(self):
        return self.n
@cute.struct
class S2(S):
    def get2(self):
        return self.n * 2
"""

RIGHT = {
    "isinstance plain in kernel": ("", """
x = V(n)
o[0] = isinstance(x, V)
o[1] = isinstance(x, W)
o[2] = isinstance(x, (P, V))
o[3] = isinstance(W(n), V)
o[4] = isinstance(x, object)
o[5] = isinstance(SimpleNamespace(a=n), SimpleNamespace)"""),
    "isinstance in helper traced": ("""
def f(x):
    return 1 if isinstance(x, V) else 0
""", """
x = V(n)
o[0] = f(x)
o[1] = f(W(n)) + f(P(n, m)) * 2"""),
    "isinstance in helper branching": ("""
def f(x, n):
    if n > 2:
        return 1 if isinstance(x, V) else 0
    return 7
""", """
o[0] = f(V(n), n)
o[1] = f(P(n, m), n)"""),
    "super beyond the user's classes": ("""
class Base:
    def twice(self):
        return 2 * self.n
@dataclasses.dataclass
class Held(Base):
    n: object
class Init(Held):
    def __init__(self, n):
        super().__init__(n + 1)
class Alone(Base):
    def __init__(self, n):
        super().__init__()
        self.n = n""", """
o[0] = Init(n).twice()
o[1] = Alone(n).twice()"""),
    "struct isinstance": ("", """
s = S(n)
o[0] = isinstance(s, S)
o[1] = isinstance(S2(n), S)
o[2] = isinstance(s, S2)
o[3] = isinstance(s, V)"""),
    "struct isinstance traced": ("""
def f(x):
    return 1 if isinstance(x, S) else 0
""", """
o[0] = f(S(n))
o[1] = f(S2(n))"""),
    "type is": ("", """
x = V(n)
o[0] = type(x) is V
o[1] = type(x) is W
o[2] = type(W(n)) is V
o[3] = type(x) == V
o[4] = issubclass(type(W(n)), V)"""),
    "type is traced": ("""
def f(x):
    return type(x) is V
""", """
o[0] = f(V(n))
o[1] = f(W(n))"""),
    "__class__": ("""
def f(x):
    return x.__class__ is V
""", """
o[0] = f(V(n))
o[1] = f(W(n))
o[2] = V(n).__class__ is V"""),
    "class name": ("""
def f(x):
    return len(type(x).__name__)
""", """
o[0] = f(SimpleNamespace(a=n))
o[1] = f(V(n))"""),
    "identity": ("""
def f(x, y):
    return (x is y) * 1 + (x is x) * 10 + (x is not y) * 100
""", """
x = V(n)
y = V(n)
o[0] = x is x
o[1] = x is y
o[2] = f(x, x)
o[3] = f(x, y)
z = x
o[4] = z is x
o[5] = x is not y"""),
    "identity field": ("""
def f(s):
    return s.a is s.b
""", """
x = V(n)
s = SimpleNamespace(a=x, b=x)
t = SimpleNamespace(a=x, b=V(n))
o[0] = f(s)
o[1] = f(t)
o[2] = s.a is x
o[3] = s.a is s.b
o[4] = t.a is t.b"""),
    "eq default identity": ("", """
x = V(n)
y = V(n)
o[0] = x == x
o[1] = x == y
o[2] = x != y"""),
    "eq dataclass": ("", """
x = P(n, m)
o[0] = x == P(n, m)
o[1] = x == P(n, m + 1)
o[2] = x != P(n, m)
o[3] = P(1, 2) == P(1, 2)
o[4] = x == V(n)"""),
    "eq dataclass traced": ("""
def f(x, y):
    return (x == y) * 1 + (x != y) * 2
""", """
x = P(n, m)
o[0] = f(x, P(n, m))
o[1] = f(x, P(n, m + 1))
o[2] = f(x, V(n))"""),
    "eq own": ("", """
x = Eq(n)
o[0] = x == Eq(n + 10)
o[1] = x != Eq(n + 10)
o[2] = x == Eq(n + 1)"""),
    "eq own traced": ("""
def f(x, y):
    return (x == y) * 1 + (x != y) * 2
""", """
x = Eq(n)
o[0] = f(x, Eq(n + 10))
o[1] = f(x, Eq(n + 1))"""),
    "in tuple of objects": ("", """
x = V(n)
y = V(n)
z = V(n)
o[0] = x in (y, x)
o[1] = x in (y, z)
o[2] = x not in (y, z)"""),
    "in tuple of objects traced": ("""
def f(x, t):
    return x in t
""", """
x = V(n)
y = V(n)
o[0] = f(x, (y, x))
o[1] = f(x, (y, y))
o[2] = f(Eq(n), (Eq(n + 1), Eq(n + 10)))"""),
    "in dataclasses": ("", """
x = P(n, m)
o[0] = x in (P(m, n), P(n, m))
o[1] = x in (P(m, n), P(n, n))"""),
    "box": ("", """
b = Box(n)
o[0] = len(b)
o[1] = n in b
o[2] = m in b
o[3] = bool(b)
o[4] = 1 if b else 0
o[5] = b[2]
o[6] = not b"""),
    "box traced": ("""
def f(b, n, m):
    return len(b), n in b, m in b, b[2]
""", """
p, q, r, s = f(Box(n), n, m)
o[0] = p
o[1] = q
o[2] = r
o[3] = s"""),
    "bool default": ("""
def f(b):
    return 1 if b else 0
""", """
x = V(n)
o[0] = 1 if x else 0
o[1] = f(x)
o[2] = bool(x)
o[3] = not x"""),
    "bool len": ("""
class L:
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return 0
def f(b):
    return 1 if b else 0
""", """
x = L(n)
o[0] = 1 if x else 0
o[1] = f(x)
o[2] = len(x)"""),
    "hash": ("""
def f(x):
    return hash(x)
""", """
o[0] = hash(Eq(n))
o[1] = f(Eq(n))"""),
    "callable object": ("""
def f(g, v):
    return g(v)
""", """
c = Cb(n)
o[0] = c(m)
o[1] = f(c, m)
o[2] = callable(c)"""),
    "numbers isinstance": ("", """
o[0] = isinstance(n, int)
o[1] = isinstance(n, float)
o[2] = isinstance(n, bool)
o[3] = isinstance(n > 2, bool)
o[4] = isinstance(n > 2, int)
o[5] = isinstance(n * 0.5, float)
o[6] = isinstance(n, (float, int))"""),
    "numbers isinstance traced": ("""
def f(x):
    return isinstance(x, int) * 1 + isinstance(x, float) * 2 + isinstance(x, bool) * 4
""", """
o[0] = f(n)
o[1] = f(n * 0.5)
o[2] = f(n > 2)
o[3] = f(3)
o[4] = f(2.5)
o[5] = f(True)"""),
    "isinstance branch kinds": ("""
def f(x):
    if isinstance(x, int):
        return x + 1
    if isinstance(x, tuple):
        return x[0]
    if x is None:
        return 9
    return x.n
""", """
o[0] = f(n)
o[1] = f((m, 2))
o[2] = f(None)
o[3] = f(V(n))"""),
    "tuple isinstance": ("", """
t = (n, m)
o[0] = isinstance(t, tuple)
o[1] = isinstance(t, list)
o[2] = isinstance(n, tuple)
o[3] = isinstance([n, m], list)
o[4] = isinstance([n, m], tuple)"""),
    "issubclass": ("", """
o[0] = issubclass(W, V)
o[1] = issubclass(V, W)
o[2] = issubclass(type(V(n)), V)"""),
    "hasattr getattr": ("""
def f(x):
    return hasattr(x, "n") * 1 + hasattr(x, "q") * 2
""", """
x = V(n)
o[0] = hasattr(x, "n")
o[1] = hasattr(x, "q")
o[2] = f(x)
o[3] = getattr(x, "n")"""),
    "dataclass order": ("""
@dataclasses.dataclass(order=True)
class O:
    a: object
    b: object
def f(x, y):
    return x < y
""", """
o[0] = O(n, m) < O(n, n)
o[1] = f(O(n, m), O(m, n))"""),
    "frozen eq hash": ("", """
o[0] = F(n, m) == F(n, m)
o[1] = F(1, 2) == F(1, 2)
o[2] = F(n, m) is F(n, m)"""),
    "simplenamespace eq": ("", """
o[0] = SimpleNamespace(a=n) == SimpleNamespace(a=n)
o[1] = SimpleNamespace(a=n) == SimpleNamespace(a=m)"""),
    "struct eq is": ("", """
x = S(n)
y = S(n)
o[0] = x == y
o[1] = x is x
o[2] = x is y
o[3] = x == x"""),
    "none eq object": ("", """
x = V(n)
o[0] = x == None
o[1] = x is None
o[2] = x != None
o[3] = x is not None"""),
    "match class": ("""
def f(x):
    match x:
        case V(n=k):
            return k
        case P(x=a, y=b):
            return a + b
    return 0
""", """
o[0] = f(V(n))"""),
    "singledispatch-like type(self)": ("""
class T:
    def __init__(self, n):
        self.n = n
    def twice(self):
        return type(self)(self.n * 2)
""", """
o[0] = T(n).twice().n
o[1] = type(T(n))(m).n"""),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_all_three_give_the_same(name):
    python, simulated, native = results(HEAD + RIGHT[name][0], RIGHT[name][1])
    assert simulated == python and native == python


REFUSED = {
    "type of numbers": ('ask isinstance', """
def f(x):
    return (type(x) is int) * 1 + (type(x) is float) * 2 + (type(x) is bool) * 4
""", """
o[0] = f(n)
o[1] = f(n * 0.5)
o[2] = f(n > 2)
o[3] = f(3)
o[4] = type(n) is int
o[5] = type(n) is float"""),
    "setattr user": ("A has its own __setattr__", """
class A:
    def __init__(self, n):
        self.n = n
    def __setattr__(self, k, v):
        object.__setattr__(self, k, v * 2)
""", """
a = A(n)
o[0] = a.n
a.n = m
o[1] = a.n"""),
    "hash of a place": ("the object's place in memory", "", """
o[0] = hash(V(n))"""),
    "hash of run time": ('cannot be hashed', "", """
o[0] = hash(F(n, m))"""),
    "frozen": ('frozen', "", """
x = F(n, m)
x.x = 3"""),
    "in without contains": ('no `__contains__`', "", """
o[0] = n in V(n)"""),
    "len without len": ('len', "", """
o[0] = len(V(n))"""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_as_in_python_is_refused(name):
    words, head, lines = REFUSED[name]
    with pytest.raises(cute.CuteError, match=words):
        compiled(HEAD + head, lines)


class Tile:
    def __init__(self, n):
        self.n = n


class Wide(Tile):
    """One of another class."""


def asked(tile):
    return isinstance(tile, Wide) * 10 + isinstance(tile, Tile)


@cute.kernel
def of_argument(out, tile):
    out[0] = isinstance(tile, Tile)
    out[1] = isinstance(tile, Wide)
    out[2] = asked(tile)
    out[3] = type(tile) is Wide


@pytest.mark.parametrize("tile", (Tile(3), Wide(3)), ids=("itself", "derived"))
def test_an_argument_has_its_class(tile):
    outs = [np.zeros(4, np.int64) for _ in range(2)]
    cute.simulate(of_argument)[1, 1](outs[0], tile)
    args = outs[1], as_argument(tile)
    Native(of_argument, args).run(1, *args)
    wide = type(tile) is Wide
    assert outs[0].tolist() == outs[1].tolist() == [1, wide, 10 * wide + 1, wide]


class Plain:
    def __init__(self, x):
        self.x = x


@dataclasses.dataclass
class Record:
    x: object


@cute.struct
class Struct:
    x: object


def negative(v, c):
    if c > 3:
        r = v.x
    else:
        r = cute.Uint8(1)
    result = -r  # no `return -r`, which some Pythons compile into each way: the ways would not meet
    made = result
    return made


@pytest.mark.parametrize("cls", [Plain, Record, Struct, SimpleNamespace])
def test_a_function_is_typed_anew_for_objects_of_a_class_whose_fields_have_other_types(cls):
    @cuda.jit
    def kernel(out, c):
        cute.const_expr(True)
        out[0] = negative(cls(x=cute.Uint8(200)), c)
        out[1] = negative(cls(x=cute.Uint32(200)), c)
        out[2] = negative(cls(x=cute.Int32(200)), c)

    simulated, computed = np.zeros(3, np.int64), np.zeros(3, np.int64)
    cute.simulate(kernel)[1, 1](simulated, 2)
    Native(kernel, (computed, 2)).run(1, computed, 2)
    assert list(simulated) == list(computed) == [255, 2**32 - 1, -1]
