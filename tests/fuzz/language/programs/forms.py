# SPDX-License-Identifier: Apache-2.0
"""Forms of classes: dataclasses, namespaces, named tuples, properties, inheritance, what a class says of itself."""

PROGRAMS = """
=== dataclass made by post init
@dataclass
class D:
    n: int
    k: int = 3
    total: int = field(init=False, default=0)
    def __post_init__(self):
        self.total = self.n * self.k
    def grow(self, v):
        self.total += v
        return self
---
x = D(a[tid])
y = D(n, k=2).grow(a[tid]).grow(1)
o[tid, 0] = x.total + x.k
o[tid, 1] = y.total
=== dataclass post init with a branch
@dataclass
class D:
    n: int
    big: int = 0
    def __post_init__(self):
        if self.n > 5:
            self.big = 1
---
x = D(a[tid])
o[tid, 0] = x.big + x.n
=== dataclass that holds one
@dataclass
class In:
    k: int
@dataclass
class Out:
    i: In
    n: int = 0
---
i = In(n)
x, y = Out(i), Out(i, 2)
x.i.k += a[tid]
o[tid, 0] = y.i.k
o[tid, 1] = 1 if x == Out(In(n + a[tid])) else 0
o[tid, 2] = 1 if x == y else 0
=== dataclass inherited
@dataclass
class A:
    n: int
    k: int = 1
    def f(self):
        return self.n * self.k
@dataclass
class B(A):
    j: int = 2
    def f(self):
        return super().f() + self.j
---
x = B(a[tid], j=n)
o[tid, 0] = x.f()
o[tid, 1] = 1 if isinstance(x, A) else 0
=== dataclass inherited with a branch
@dataclass
class A:
    n: int
    def f(self):
        if self.n > 5:
            return self.n
        return 1
@dataclass
class B(A):
    j: int = 2
    def f(self):
        if self.j > 1:
            return super().f() + self.j
        return 0
---
x = B(a[tid], j=n)
o[tid, 0] = x.f()
=== dataclass ordered
@dataclass(order=True)
class D:
    n: int
    k: int
---
o[tid, 0] = 1 if D(a[tid], 1) < D(n, 0) else 0
o[tid, 1] = 1 if D(n, a[tid]) >= D(n, 3) else 0
=== dataclass field without comparison
@dataclass
class D:
    n: int
    k: int = field(default=0, compare=False)
---
o[tid, 0] = 1 if D(n, a[tid]) == D(n, 1) else 0
o[tid, 1] = 1 if D(a[tid], 1) != D(n, 1) else 0
=== dataclass keyword only
@dataclass(kw_only=True)
class D:
    n: int
    k: int = 2
---
x = D(n=a[tid])
x.k += 1
o[tid, 0] = x.n * x.k
=== dataclass frozen in a key
@dataclass(frozen=True)
class D:
    n: int
    k: int
SHAPES = {D(1, 2): 40, D(2, 3): 50}
---
o[tid, 0] = SHAPES[D(2, 3)] + a[tid]
=== dataclass of static values picks code
@dataclass(frozen=True)
class Config:
    tile: int = 4
    deep: bool = True
C = Config(tile=3)
---
s = 0
for j in cute.range_constexpr(C.tile):
    s = s * 2 + a[tid + j]
if cute.const_expr(C.deep):
    s += 100
o[tid, 0] = s
=== dataclass replaced and the old one kept
@dataclass
class D:
    n: int
    k: int = 1
---
x = D(a[tid])
y = replace(x, k=n)
y.n += 1
o[tid, 0] = x.n * 100 + y.n
o[tid, 1] = y.k
=== dataclass asdict
@dataclass
class D:
    n: int
    k: int = 1
---
o[tid, 0] = dataclasses.asdict(D(a[tid]))['n']
=== dataclass match by fields
@dataclass
class D:
    n: int
    k: int = 1
---
x = D(a[tid])
o[tid, 0] = len(dataclasses.fields(x)) + x.n
=== namespace set in a helper
def step(s, v):
    if v > 5:
        s.hits += 1
    s.total += v
---
s = SimpleNamespace(hits=0, total=0)
for j in range(4):
    step(s, a[tid + j])
o[tid, 0] = s.hits
o[tid, 1] = s.total
=== namespace replaced in a loop
---
s = SimpleNamespace(x=n, y=m)
for j in range(a[tid] & 3):
    s.x, s.y = s.y, s.x + s.y
o[tid, 0] = s.x * 100 + s.y
=== namespace with keywords of a dict
---
s = SimpleNamespace(**{'k': a[tid], 'j': n})
o[tid, 0] = s.k * s.j
=== namespace vars
---
s = SimpleNamespace(k=a[tid], j=n)
o[tid, 0] = vars(s)['k']
=== named tuple made in a helper
class P(NamedTuple):
    x: int
    y: int = 2
    def area(self):
        return self.x * self.y
def made(v):
    if v > 5:
        return P(v, 3)
    return P(v)
---
p = made(a[tid])
o[tid, 0] = p.area()
x, y = p
o[tid, 1] = x * 10 + y
=== named tuple replaced
class P(NamedTuple):
    x: int
    y: int
---
p = P(a[tid], n)
q = p._replace(y=m)
o[tid, 0] = q.x * q.y + p.y
=== named tuple with a default
class P(NamedTuple):
    x: int
    y: int = 2
---
p = P(a[tid])
q = P(y=n, x=m)
o[tid, 0] = p.x * 10 + p.y
o[tid, 1] = q.x * 10 + q.y
o[tid, 2] = len(p)
=== named tuple compared
class P(NamedTuple):
    x: int
    y: int
---
o[tid, 0] = 1 if P(a[tid], n) == (7, n) else 0
o[tid, 1] = 1 if P(a[tid], n) < P(3, 1) else 0
=== named tuple of objects
class P(NamedTuple):
    x: object
    y: int
class V:
    def __init__(self, n):
        self.n = n
---
p = P(V(n), m)
p.x.n += a[tid]
q = P(p.x, 1)
o[tid, 0] = q.x.n
o[tid, 1] = 1 if q.x is p.x else 0
=== named tuple set
class P(NamedTuple):
    x: int
---
p = P(a[tid])
p.x = 3
o[tid, 0] = p.x
=== named tuple in a loop
P = namedtuple('P', 'x y')
---
p = P(n, m)
for j in range(a[tid] & 3):
    p = P(p.y, p.x + p.y)
o[tid, 0] = p.x * 100 + p.y
=== property that gives an object
class In:
    def __init__(self, k):
        self.k = k
class V:
    def __init__(self, n):
        self._i = In(n)
    @property
    def i(self):
        return self._i
---
x = V(n)
x.i.k += a[tid]
x.i.k += 1
o[tid, 0] = x.i.k
o[tid, 1] = 1 if x.i is x._i else 0
=== property with a setter that checks
class V:
    def __init__(self, n):
        self._n = n
    @property
    def n(self):
        return self._n
    @n.setter
    def n(self, v):
        if v > 10:
            v = 10
        self._n = v
---
x = V(n)
x.n = a[tid]
x.n += 2
o[tid, 0] = x.n
=== property of a base
class A:
    @property
    def twice(self):
        return self.n * 2
class B(A):
    def __init__(self, n):
        self.n = n
    @property
    def twice(self):
        return super().twice + 1
---
o[tid, 0] = B(a[tid]).twice
=== cached property
class V:
    def __init__(self, n):
        self.n = n
    @functools.cached_property
    def double(self):
        return self.n * 2
---
x = V(a[tid])
o[tid, 0] = x.double + x.double
=== property set on a read-only one
class V:
    def __init__(self, n):
        self._n = n
    @property
    def n(self):
        return self._n
---
x = V(n)
x.n = a[tid]
o[tid, 0] = x.n
=== base constructor
class A:
    def __init__(self, n):
        self.n = n
        self.calls = 0
    def f(self):
        self.calls += 1
        return self.n
class B(A):
    def __init__(self, n, k):
        super().__init__(n + 1)
        self.k = k
    def f(self):
        return super().f() * self.k
---
x = B(a[tid], n)
o[tid, 0] = x.f() + x.f()
o[tid, 1] = x.calls
=== template method
class A:
    def __init__(self, n):
        self.n = n
    def run(self, v):
        if v > 5:
            self.step(v)
        self.step(1)
        return self
    def step(self, v):
        self.n += v
class B(A):
    def step(self, v):
        self.n -= v
---
o[tid, 0] = A(n).run(a[tid]).n
o[tid, 1] = B(n).run(a[tid]).n
=== two bases
class A:
    def f(self):
        return 1
class B:
    def f(self):
        return 10
    def g(self):
        return self.n
class C(A, B):
    def __init__(self, n):
        self.n = n
---
x = C(a[tid])
o[tid, 0] = x.f() + x.g()
=== diamond
class A:
    def f(self, s):
        return s + 1
class B(A):
    def f(self, s):
        return super().f(s * 2)
class C(A):
    def f(self, s):
        return super().f(s * 3)
class D(B, C):
    def f(self, s):
        return super().f(s + 5)
---
o[tid, 0] = D().f(a[tid])
=== two classes in one name
class A:
    def __init__(self, n):
        self.n = n
    def f(self):
        return self.n
class B(A):
    def f(self):
        return self.n * 2
---
x = A(n)
if a[tid] > 5:
    x = B(m)
o[tid, 0] = x.f()
=== two classes in a tuple
class A:
    def __init__(self, n):
        self.n = n
    def f(self):
        return self.n
class B(A):
    def f(self):
        return self.n * 2
---
s = 0
for x in (A(n), B(a[tid]), A(m)):
    s = s * 3 + x.f()
o[tid, 0] = s
=== equality by a method with a branch
class V:
    def __init__(self, n, k):
        self.n, self.k = n, k
    def __eq__(self, other):
        if self.k > 3:
            return self.n == other.n
        return False
    def __hash__(self):
        return 3
---
x, y = V(a[tid], n), V(7, m)
o[tid, 0] = 1 if x == y else 0
o[tid, 1] = 1 if y == x else 0
o[tid, 2] = 1 if x != y else 0
=== equality with a number
class V:
    def __init__(self, n):
        self.n = n
    def __eq__(self, other):
        return self.n == other
---
x = V(a[tid])
o[tid, 0] = 1 if x == 7 else 0
o[tid, 1] = 1 if 7 == x else 0
o[tid, 2] = 1 if x in (3, 7) else 0
o[tid, 3] = 1 if 7 in (x, 2) else 0
=== equality with None
class V:
    def __init__(self, n):
        self.n = n
---
x = V(a[tid])
o[tid, 0] = 1 if x == None else 0
o[tid, 1] = 1 if x != None else 0
=== membership by own equality
class V:
    def __init__(self, n):
        self.n = n
    def __eq__(self, other):
        return self.n == other.n
---
x, y, z = V(n), V(m), V(a[tid])
o[tid, 0] = 1 if z in (x, y) else 0
o[tid, 1] = 1 if z not in [x, y] else 0
o[tid, 2] = [x, y].count(z) if False else 0
=== hash given by a class
class V:
    def __init__(self, n, k):
        self.n, self.k = n, k
    def __hash__(self):
        return 17
---
o[tid, 0] = hash(V(a[tid], n))
=== hash of fields
class V:
    def __init__(self, n):
        self.n = n
    def __hash__(self):
        return hash(self.n)
---
o[tid, 0] = hash(V(a[tid]))
=== hash of a frozen dataclass
@dataclass(frozen=True)
class D:
    n: int
---
o[tid, 0] = 1 if hash(D(3)) == hash(D(3)) else 0
=== own setattr that counts
class V:
    def __init__(self, n):
        object.__setattr__(self, 'n', n)
        object.__setattr__(self, 'sets', 0)
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        object.__setattr__(self, 'sets', self.sets + 1)
---
x = V(n)
x.n = a[tid]
x.n += 1
o[tid, 0] = x.n
o[tid, 1] = x.sets
=== own setattr inherited
class A:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)
class B(A):
    def __init__(self, n):
        self.n = n
---
x = B(a[tid])
o[tid, 0] = x.n
=== own getattribute
class V:
    def __init__(self, n):
        self.n = n
    def __getattribute__(self, name):
        return 5
---
o[tid, 0] = V(a[tid]).n
=== own delattr
class V:
    def __init__(self, n):
        self.n = n
---
x = V(a[tid])
del x.n
o[tid, 0] = 3
=== own new
class V:
    def __new__(cls, n):
        made = object.__new__(cls)
        made.n = n + 1
        return made
---
x = V(a[tid])
x.n *= 2
o[tid, 0] = x.n
=== alternative constructor
class V:
    def __init__(self, n, k):
        self.n, self.k = n, k
    @classmethod
    def of(cls, n):
        return cls(n, 2)
    @classmethod
    def checked(cls, n):
        if n > 5:
            return cls(n, 1)
        return cls(0, 9)
class W(V):
    pass
---
x, y = V.of(a[tid]), W.checked(a[tid])
o[tid, 0] = x.n * x.k
o[tid, 1] = y.n + y.k
o[tid, 2] = 1 if isinstance(y, W) else 0
=== static method with a branch
class V:
    @staticmethod
    def clip(x, hi=9):
        if x > hi:
            return hi
        return x
    def __init__(self, n):
        self.n = self.clip(n)
---
o[tid, 0] = V(a[tid]).n + V.clip(a[tid], hi=n)
=== constructor with a branch
class V:
    def __init__(self, n):
        self.n = n
        if n > 5:
            self.n = 5
---
x = V(a[tid])
o[tid, 0] = x.n
=== constructor with a loop
class V:
    def __init__(self, n):
        self.s = 0
        for j in range(n):
            self.s += j
---
o[tid, 0] = V(a[tid] & 7).s
=== constructor that calls a method
class V:
    def __init__(self, n):
        self.n = 0
        self.put(n)
    def put(self, v):
        self.n = v * 2
---
o[tid, 0] = V(a[tid]).n
=== constructor that calls a method with a branch
class V:
    def __init__(self, n):
        self.n = 0
        self.put(n)
    def put(self, v):
        if v > 5:
            self.n = v * 2
---
o[tid, 0] = V(a[tid]).n
=== field by a name known
class V:
    def __init__(self, n):
        self.n = n
---
x = V(n)
setattr(x, 'n', a[tid])
o[tid, 0] = getattr(x, 'n') + getattr(x, 'k', 3)
o[tid, 1] = 1 if hasattr(x, 'n') and not hasattr(x, 'k') else 0
=== class kept in a name
class A:
    def __init__(self, n):
        self.n = n
---
make = A
x = make(a[tid])
o[tid, 0] = x.n + make(n).n
o[tid, 1] = 1 if type(x) is make else 0
=== class chosen by a flag
class A:
    def __init__(self, n):
        self.n = n
class B:
    def __init__(self, n):
        self.n = n * 2
BIG = True
---
x = (B if BIG else A)(a[tid])
o[tid, 0] = x.n
=== class given to a helper
class A:
    def __init__(self, n):
        self.n = n
def made(cls, v):
    if v > 5:
        v = 5
    return cls(v)
---
x = made(A, a[tid])
x.n += 1
o[tid, 0] = x.n
o[tid, 1] = 1 if isinstance(x, A) else 0
=== made by its own class
class A:
    def __init__(self, n):
        self.n = n
    def next(self):
        return type(self)(self.n + 1)
    def other(self):
        return self.__class__(self.n * 2)
class B(A):
    pass
---
x = B(a[tid])
o[tid, 0] = x.next().n + x.other().n
o[tid, 1] = 1 if isinstance(x.next(), B) else 0
=== struct inherited
@cute.struct
class A:
    n: cute.Int32
    def step(self):
        if self.n > 5:
            self.n += 10
        return self
@cute.struct
class B(A):
    k: cute.Int32 = 3
    def step(self):
        super().step()
        self.k += 1
        return self
---
x = B(a[tid]).step().step()
o[tid, 0] = x.n
o[tid, 1] = x.k
=== struct with a property
@cute.struct
class A:
    n: cute.Int32
    @property
    def twice(self):
        return self.n * 2
    @property
    def clipped(self):
        if self.n > 5:
            return 5
        return self.n
---
x = A(a[tid])
o[tid, 0] = x.twice + x.clipped
=== struct with a static field picks code
@cute.struct
class A:
    stages: object
    n: cute.Int32
    def total(self):
        s = 0
        for j in cute.range_constexpr(self.stages):
            s += self.n + j
        return s
---
o[tid, 0] = A(3, a[tid]).total()
=== struct of an unknown field
@cute.struct
class A:
    n: cute.Int32
---
x = A(n)
x.k = a[tid]
o[tid, 0] = x.k
=== struct with own equality
@cute.struct
class A:
    n: cute.Int32
    def __eq__(self, other):
        return self.n == other.n
    def __hash__(self):
        return 4
---
x, y = A(a[tid]), A(7)
o[tid, 0] = 1 if x == y else 0
o[tid, 1] = 1 if x is y else 0
o[tid, 2] = 1 if x in (y,) else 0
=== struct compared without equality
@cute.struct
class A:
    n: cute.Int32
---
x, y = A(n), A(n)
o[tid, 0] = 1 if x == y else 0
o[tid, 1] = 1 if x == x else 0
=== flag set in a loop by a method
class V:
    def __init__(self):
        self.done = False
        self.n = 0
    def step(self, v):
        self.n += 1
        if v > 10:
            self.done = True
---
x = V()
j = 0
while not x.done and j < 8:
    x.step(a[j + tid])
    j += 1
o[tid, 0] = x.n
o[tid, 1] = 1 if x.done else 0
=== flag set by a function in a loop
class V:
    def __init__(self):
        self.done = False
        self.n = 0
def step(x, v):
    x.n += 1
    if v > 10:
        x.done = True
---
x = V()
for j in range(8):
    if not x.done:
        step(x, a[j + tid])
o[tid, 0] = x.n
o[tid, 1] = 1 if x.done else 0
=== field set by a function of a function
class V:
    def __init__(self):
        self.n = 0
def deep(x, v):
    x.n = v
def put(x, v):
    deep(x, v + 1)
---
x = V()
put(x, a[tid])
o[tid, 0] = x.n
=== field set by a closure
class V:
    def __init__(self):
        self.n = 0
def run(f, v):
    if v > 5:
        f(v)
---
x = V()
def put(v):
    x.n = v
run(put, a[tid])
o[tid, 0] = x.n
=== field set by a function of a table
class V:
    def __init__(self):
        self.n = 0
def put(x, v):
    x.n = v
OPS = (put,)
---
x = V()
OPS[0](x, a[tid])
o[tid, 0] = x.n
=== field of an inner object set by a function
class In:
    def __init__(self):
        self.n = 0
class Out:
    def __init__(self):
        self.i = In()
def put(x, v):
    x.i.n = v
---
x = Out()
put(x, a[tid])
o[tid, 0] = x.i.n
=== field set by a method of another object
class V:
    def __init__(self):
        self.n = 0
class W:
    def __init__(self, v):
        self.v = v
    def put(self, x):
        x.n = self.v
---
x = V()
W(a[tid]).put(x)
o[tid, 0] = x.n
=== field made in a helper and set in the kernel
class V:
    def __init__(self):
        self.n = 0
def made():
    return V()
---
x = made()
x.n = a[tid]
o[tid, 0] = x.n
=== field made in a helper and set by another
class V:
    def __init__(self):
        self.n = 0
def made():
    return V()
def put(x, v):
    if v > 5:
        x.n = v
---
x = made()
put(x, a[tid])
o[tid, 0] = x.n
=== field float set by a function
class V:
    def __init__(self):
        self.x = 0.0
def put(v, f):
    if f > 0.5:
        v.x = f
---
v = V()
put(v, a[tid] * 0.25)
w[tid, 0] = v.x
=== field int that a function makes a float
class V:
    def __init__(self):
        self.x = 0
def put(v, f):
    if f > 0.5:
        v.x = f
---
v = V()
put(v, a[tid] * 0.25)
w[tid, 0] = v.x
"""
