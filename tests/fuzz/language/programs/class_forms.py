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
"""
