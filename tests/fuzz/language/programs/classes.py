# SPDX-License-Identifier: Apache-2.0
"""Classes: what an object answers of itself, and the methods that a class brings."""

PROGRAMS = """
=== operator of a plain class
class V:
    def __init__(self, n):
        self.n = n
    def __add__(self, other):
        return V(self.n + other.n)
---
o[tid, 0] = (V(n) + V(a[tid])).n
=== operator of a struct
@cute.struct
class V:
    n: cute.Int32
    def __add__(self, other):
        return V(self.n + other.n)
---
o[tid, 0] = (V(n) + V(a[tid])).n
=== operator of a dataclass
@dataclass
class V:
    n: int
    def __add__(self, other):
        return V(self.n + other.n)
---
o[tid, 0] = (V(n) + V(a[tid])).n
=== operator with a number
class V:
    def __init__(self, n):
        self.n = n
    def __mul__(self, k):
        return V(self.n * k)
---
o[tid, 0] = (V(n) * a[tid]).n
=== reflected operator
class V:
    def __init__(self, n):
        self.n = n
    def __radd__(self, k):
        return self.n + k
---
o[tid, 0] = a[tid] + V(n)
=== in-place operator
class V:
    def __init__(self, n):
        self.n = n
    def __iadd__(self, k):
        self.n += k
        return self
---
x = V(n)
y = x
x += a[tid]
o[tid, 0] = y.n
=== unary operators
class V:
    def __init__(self, n):
        self.n = n
    def __neg__(self):
        return V(-self.n)
    def __invert__(self):
        return ~self.n
    def __abs__(self):
        return abs(self.n)
---
x = V(a[tid])
o[tid, 0] = (-x).n
o[tid, 1] = ~x
o[tid, 2] = abs(x)
=== own equality
class V:
    def __init__(self, n):
        self.n = n
    def __eq__(self, other):
        return self.n == other.n
---
o[tid, 0] = 1 if V(n) == V(5) else 0
o[tid, 1] = 1 if V(n) == V(a[tid]) else 0
=== own inequality
class V:
    def __init__(self, n):
        self.n = n
    def __eq__(self, other):
        return self.n == other.n
---
o[tid, 0] = 1 if V(n) != V(a[tid]) else 0
=== dataclass equality
@dataclass
class V:
    n: int
    m: int
---
o[tid, 0] = 1 if V(n, 1) == V(5, 1) else 0
o[tid, 1] = 1 if V(n, 1) == V(a[tid], 1) else 0
=== dataclass equality of another class
@dataclass
class V:
    n: int
@dataclass
class W:
    n: int
---
o[tid, 0] = 1 if V(n) == W(n) else 0
=== plain equality is identity
class V:
    def __init__(self, n):
        self.n = n
---
o[tid, 0] = 1 if V(n) == V(n) else 0
=== ordering
class V:
    def __init__(self, n):
        self.n = n
    def __lt__(self, other):
        return self.n < other.n
---
o[tid, 0] = 1 if V(n) < V(a[tid]) else 0
=== call of an object
class V:
    def __init__(self, n):
        self.n = n
    def __call__(self, k):
        return self.n * k
---
v = V(n)
o[tid, 0] = v(a[tid])
=== item of an object
class V:
    def __init__(self, n):
        self.n = n
    def __getitem__(self, k):
        return self.n + k
---
v = V(n)
o[tid, 0] = v[a[tid]]
=== item set in an object
class V:
    def __init__(self, n):
        self.n = n
    def __setitem__(self, k, w):
        self.n = k * w
---
v = V(n)
v[2] = a[tid]
o[tid, 0] = v.n
=== length of an object
class V:
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return self.n
---
o[tid, 0] = len(V(n))
=== contains of an object
class V:
    def __init__(self, n):
        self.n = n
    def __contains__(self, k):
        return k < self.n
---
o[tid, 0] = 1 if a[tid] in V(n) else 0
=== truth of an object
class V:
    def __init__(self, n):
        self.n = n
    def __bool__(self):
        return self.n > 5
---
o[tid, 0] = 1 if V(a[tid]) else 0
o[tid, 1] = 1 if not V(a[tid]) else 0
=== truth of a plain object
class V:
    def __init__(self, n):
        self.n = n
---
x = V(n)
o[tid, 0] = 1 if x else 0
=== own setattr
class V:
    def __init__(self, n):
        self.n = n
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)
---
x = V(n)
o[tid, 0] = x.n
x.n = 4
o[tid, 1] = x.n
=== own getattr
class V:
    def __init__(self, n):
        self.n = n
    def __getattr__(self, name):
        return 17
---
x = V(n)
o[tid, 0] = x.n + x.other
=== property
class V:
    def __init__(self, n):
        self.n = n
    @property
    def double(self):
        return self.n * 2
---
o[tid, 0] = V(a[tid]).double
=== property with a branch
class V:
    def __init__(self, n):
        self.n = n
    @property
    def positive(self):
        if self.n < 0:
            return 0
        return self.n
---
o[tid, 0] = V(a[tid]).positive
=== property that is set
class V:
    def __init__(self, n):
        self._n = n
    @property
    def n(self):
        return self._n
    @n.setter
    def n(self, value):
        self._n = value * 3
---
x = V(n)
x.n = a[tid]
o[tid, 0] = x.n
=== static method
class V:
    @staticmethod
    def twice(k):
        return k * 2
---
o[tid, 0] = V.twice(a[tid])
=== class method
class V:
    def __init__(self, n):
        self.n = n
    @classmethod
    def of(cls, k):
        return cls(k * 2)
---
o[tid, 0] = V.of(a[tid]).n
=== class attribute
class V:
    K = 7
    def __init__(self, n):
        self.n = n
    def total(self):
        return self.n + self.K + V.K
---
o[tid, 0] = V(a[tid]).total() + V.K
=== class attribute shadowed
class V:
    k = 7
    def __init__(self, n):
        self.n = n
---
x = V(n)
o[tid, 0] = x.k
x.k = 9
o[tid, 1] = x.k + V.k
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
=== nested objects
class In:
    def __init__(self, k):
        self.k = k
class Out:
    def __init__(self, k):
        self.a = In(k)
        self.b = In(k + 1)
---
x = Out(n)
x.a.k += a[tid]
p = x.a
p.k += 1000
o[tid, 0] = x.a.k
o[tid, 1] = x.b.k
=== nested objects replaced
class In:
    def __init__(self, k):
        self.k = k
class Out:
    def __init__(self, k):
        self.a = In(k)
---
x = Out(n)
p = x.a
x.a = In(m)
p.k += 1
o[tid, 0] = x.a.k
o[tid, 1] = p.k
=== nested structs
@cute.struct
class In:
    k: cute.Int32
@cute.struct
class Out:
    a: In
    b: In
---
i = In(n)
x = Out(i, In(m))
i.k += a[tid]
o[tid, 0] = x.a.k
x.a.k += 5
o[tid, 1] = i.k
=== literal field set by a callee
class V:
    def __init__(self):
        self.n = 0
        self.done = False
def go(x, v):
    if v > 5:
        x.done = True
        x.n = v
---
x = V()
go(x, a[tid])
o[tid, 0] = x.n
o[tid, 1] = 1 if x.done else 0
=== literal field set in a loop
class V:
    def __init__(self):
        self.n = 0
    def step(self):
        self.n += 1
---
x = V()
for i in range(a[tid] & 7):
    x.step()
o[tid, 0] = x.n
=== literal field set by a lambda
class V:
    def __init__(self):
        self.n = 0
    def put(self, v):
        self.n = v
---
x = V()
put = lambda v: x.put(v)
put(a[tid])
o[tid, 0] = x.n
=== object as an argument of a class
class In:
    def __init__(self, k):
        self.k = k
class Out:
    def __init__(self, inner):
        self.inner = inner
---
i = In(n)
x = Out(i)
y = Out(i)
x.inner.k = a[tid]
o[tid, 0] = y.inner.k
o[tid, 1] = 1 if x.inner is y.inner else 0
=== hash of an object in a dict
class V:
    def __init__(self, n):
        self.n = n
---
x = V(n)
d = {1: x}
d[1].n = a[tid]
o[tid, 0] = x.n
=== counter of instances
class V:
    made = 0
    def __init__(self, n):
        V.made += 1
        self.n = n
---
x = V(n)
o[tid, 0] = x.n
=== object without fields
class V:
    def f(self, k):
        return k + 1
---
o[tid, 0] = V().f(a[tid])
=== mixed width field
class V:
    def __init__(self, n):
        self.n = n
---
x = V(cute.Int8(100))
x.n = x.n + cute.Int8(100)
o[tid, 0] = x.n
=== struct field wraps
@cute.struct
class V:
    n: cute.Int8
---
x = V(100)
x.n += 100
o[tid, 0] = x.n
=== field that changes its type
class V:
    def __init__(self, n):
        self.n = n
---
x = V(n)
x.n = x.n * 0.5
w[tid, 0] = x.n
=== field that becomes an object
class V:
    def __init__(self, n):
        self.n = n
---
x = V(None)
x.n = V(a[tid])
o[tid, 0] = x.n.n
=== optional field
class V:
    def __init__(self, n, bias=None):
        self.n, self.bias = n, bias
    def total(self):
        return self.n if self.bias is None else self.n + self.bias
---
o[tid, 0] = V(n).total() + V(n, a[tid]).total()
"""
