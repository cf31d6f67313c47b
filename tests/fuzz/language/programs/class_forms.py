# SPDX-License-Identifier: Apache-2.0
"""Classes: bases, questions about them, dataclasses, namespaces, enumerations."""

PROGRAMS = """
=== inheritance
class Base:
    def __init__(self, n):
        self.n = n
    def value(self):
        return self.n
    def twice(self):
        return self.value() * 2
class V(Base):
    def value(self):
        return self.n + 1
---
o[tid, 0] = V(a[tid]).twice()
o[tid, 1] = 1 if isinstance(V(n), Base) else 0
o[tid, 2] = 1 if isinstance(Base(n), V) else 0
=== super
class Base:
    def __init__(self, n):
        self.n = n
    def value(self):
        return self.n
class V(Base):
    def __init__(self, n, m):
        super().__init__(n)
        self.m = m
    def value(self):
        return super().value() + self.m
---
o[tid, 0] = V(a[tid], m).value()
=== super in a struct
@cute.struct
class Base:
    n: cute.Int32
    def value(self):
        return self.n
@cute.struct
class V(Base):
    def value(self):
        return super().value() + 1
---
o[tid, 0] = V(n).value()
=== abstract choice by isinstance
class A:
    def __init__(self, n):
        self.n = n
class B:
    def __init__(self, n):
        self.n = n
def what(x):
    if isinstance(x, A):
        return x.n
    return -x.n
---
o[tid, 0] = what(A(n)) * 100 + what(B(m))
=== type name
class V:
    def __init__(self, n):
        self.n = n
---
o[tid, 0] = len(type(V(n)).__name__)
o[tid, 1] = 1 if V(n).__class__ is V else 0
=== isinstance of numbers
---
o[tid, 0] = 1 if isinstance(n, int) else 0
o[tid, 1] = 1 if isinstance(n, float) else 0
o[tid, 2] = 1 if isinstance(n * 0.5, float) else 0
o[tid, 3] = 1 if isinstance(n > 2, bool) else 0
o[tid, 4] = 1 if isinstance(3, int) else 0
=== isinstance of tuples and lists
---
o[tid, 0] = 1 if isinstance((n, m), tuple) else 0
o[tid, 1] = 1 if isinstance([n, m], tuple) else 0
o[tid, 2] = 1 if isinstance([n, m], list) else 0
=== type of a number
---
o[tid, 0] = 1 if type(n) is int else 0
=== hasattr and getattr
class V:
    def __init__(self, n):
        self.n = n
---
x = V(n)
o[tid, 0] = 1 if hasattr(x, "n") else 0
o[tid, 1] = 1 if hasattr(x, "q") else 0
o[tid, 2] = getattr(x, "n")
o[tid, 3] = getattr(x, "q", 3)
=== setattr
class V:
    def __init__(self, n):
        self.n = n
---
x = V(n)
setattr(x, "n", a[tid])
o[tid, 0] = x.n
=== dataclass with defaults
@dataclass
class V:
    n: int
    m: int = 4
    k: int = 5
---
o[tid, 0] = V(n).m + V(n, 1, k=a[tid]).k
=== dataclass default factory
@dataclass
class V:
    n: int
    items: list = field(default_factory=list)
---
o[tid, 0] = len(V(n).items)
=== dataclass post init
@dataclass
class V:
    n: int
    def __post_init__(self):
        self.m = self.n * 2
---
o[tid, 0] = V(a[tid]).m
=== dataclass replace
@dataclass
class V:
    n: int
    m: int = 4
---
o[tid, 0] = replace(V(n), m=a[tid]).m
=== frozen dataclass
@dataclass(frozen=True)
class V:
    n: int
---
x = V(a[tid])
o[tid, 0] = x.n
=== frozen dataclass set
@dataclass(frozen=True)
class V:
    n: int
---
x = V(a[tid])
x.n = 4
o[tid, 0] = x.n
=== slots
class V:
    __slots__ = ("n",)
    def __init__(self, n):
        self.n = n
---
x = V(a[tid])
x.n += 1
o[tid, 0] = x.n
=== named tuple
class P(NamedTuple):
    x: int
    y: int
---
p = P(n, a[tid])
o[tid, 0] = p.x * 10 + p.y + p[1]
x, y = p
o[tid, 1] = y
=== namespace
---
s = SimpleNamespace(x=n, y=m)
s.x += a[tid]
o[tid, 0] = s.x + s.y
=== namespace with a new field
---
s = SimpleNamespace(x=n)
s.z = a[tid]
o[tid, 0] = s.x + s.z
=== namespace with a function
def twice(k):
    return k * 2
---
s = SimpleNamespace(f=twice)
o[tid, 0] = s.f(a[tid])
=== namespace equality
---
o[tid, 0] = 1 if SimpleNamespace(x=n) == SimpleNamespace(x=5) else 0
=== enum
class K(Enum):
    A = 1
    B = 2
def f(k, v):
    if k is K.A:
        return v
    return -v
---
o[tid, 0] = f(K.A, n) + f(K.B, a[tid])
o[tid, 1] = K.B.value
=== int enum
class K(IntEnum):
    A = 1
    B = 2
---
o[tid, 0] = K.B + a[tid]
=== method taken as a value
class V:
    def __init__(self, n):
        self.n = n
    def add(self, k):
        self.n += k
        return self.n
---
x = V(n)
g = x.add
g(2)
o[tid, 0] = g(a[tid])
o[tid, 1] = x.n
=== method of the class
class V:
    def __init__(self, n):
        self.n = n
    def add(self, k):
        return self.n + k
---
x = V(n)
o[tid, 0] = V.add(x, a[tid])
=== getattr of a name that a compiled function is given
class V:
    def __init__(self, k):
        self.k = k
def at(x, name):
    if x.k > 1000:
        x.k = 0
    return getattr(x, name)
---
o[tid, 0] = at(V(n), "k")
=== property that sets a constant
class V:
    def __init__(self, q):
        self._n = q
    @property
    def k(self):
        return self._n
    @k.setter
    def k(self, v):
        self._n = v + 1
class W:
    k = 4
    def __init__(self, q):
        self.q = q
---
x = V(3)
x.k = 7
o[tid, 0] = x.k
x.k = n
o[tid, 1] = x.k
y = W(2)
y.k += 1
o[tid, 2] = y.k + W(1).k
=== super of a class beside
class A:
    def __init__(self, k):
        self.k = k
    def go(self, x):
        return self.k + x
class B(A):
    pass
class M(A):
    def go(self, x):
        if x > 3:
            return super().go(x) * 3
        return super().go(x) * 2
class C(B, M):
    def go(self, x):
        if x > 3:
            return super().go(x) + 1
        return super().go(x) + 2
---
c = C(n)
o[tid, 0] = c.go(tid)
o[tid, 1] = c.go(n)
=== class attributes that a method sets
class V:
    step = 2
    size = 3
    def __init__(self, k):
        self.k = k
    def go(self):
        self.step += 1
        self.size += self.k
---
x = V(n)
x.go()
x.go()
o[tid, 0] = x.step
o[tid, 1] = x.size
o[tid, 2] = V(1).step
=== members that a function gives
class E(IntEnum):
    A = 1
    B = 2
class F(Enum):
    A = 1
    B = 2
def f(x):
    return E.B
def g(x):
    return F.B
---
o[tid, 0] = 1 if f(n) is E.B else 0
o[tid, 1] = 1 if g(n) is F.B else 0
o[tid, 2] = f(n).value
x = f(n)
o[tid, 3] = 1 if x is not E.A else 0
o[tid, 4] = 1 if E.A is x else 0
=== super, and fields that are None
class A:
    def __init__(self, k):
        self.k = k
        self.none = None
class B(A):
    def __init__(self, k):
        super().__init__(k)
        self.inner = A(k)
    def go(self, x):
        if x > 3:
            x += 1
        if self.inner.none is None:
            x += 2
        return x if self.none is None else 3
---
o[tid, 0] = B(n).go(tid) + B(n).go(n)
=== dataclass with an equality of its own
@dataclass
class V:
    k: int
    j: int
    def __eq__(self, other):
        return self.k % 4 == other.k % 4
---
x, y = V(n, n), V(n + 4, tid)
o[tid, 0] = 1 if x == y else 0
o[tid, 1] = 1 if x != y else 0
=== equality and length by a device function
class V:
    def __init__(self, k):
        self.k = k
    @cute.jit
    def __eq__(self, other):
        return self.k % 4 == other.k % 4
    @cute.jit
    def __len__(self):
        return self.k
---
o[tid, 0] = 1 if V(n) == V(n + 4) else 0
o[tid, 1] = 1 if V(n - 5) else 0
=== fields are asked for equality in their order
class F:
    def __init__(self, k):
        self.k = k
    def __eq__(self, other):
        return self.k < other.k
@dataclass
class V:
    f: F
---
x, y = V(F(n)), V(F(n + 1))
o[tid, 0] = 1 if x == y else 0
o[tid, 1] = 1 if y == x else 0
x, y = SimpleNamespace(f=F(n)), SimpleNamespace(f=F(n + 1))
o[tid, 2] = 1 if x == y else 0
o[tid, 3] = 1 if y == x else 0
=== the right side is asked for what the left does not know
class A:
    def __init__(self, k):
        self.k = k
class B:
    def __init__(self, k):
        self.k = k
    def __ne__(self, other):
        return self.k == 5
class E:
    def __init__(self, k):
        self.k = k
    def __eq__(self, other):
        return other * (1 << 62) == self.k
---
o[tid, 0] = 1 if A(n) != B(n) else 0
o[tid, 1] = 1 if A(n) != B(n + 1) else 0
o[tid, 2] = 1 if n != B(n + 1) else 0
o[tid, 3] = 1 if n == E(1 << 62) else 0
o[tid, 4] = 1 if n != E(1 << 62) else 0
=== an object that a device function was given is compared
@dataclass
class V:
    k: int
@cute.jit
def step(b):
    if b.k > 3:
        b.k += 1
def f(a, k):
    b = V(k)
    step(b)
    return a == b, b == a
---
x, y = f(V(n + 1), n)
o[tid, 0] = 1 if x else 0
o[tid, 1] = 1 if y else 0
x, y = f(V(n), n)
o[tid, 2] = 1 if x else 0
=== a descriptor of the user's
class Twice:
    def __get__(self, of, cls):
        if of is None:
            return 4
        return of.n * 2 + cls.K
class C:
    twice = Twice()
    K = 3
    def __init__(self, n):
        self.n = n
---
c = C(n)
o[tid, 0] = c.twice
c.n = m
o[tid, 1] = c.twice
"""
