# SPDX-License-Identifier: Apache-2.0
"""Dataclasses, namespaces and named tuples."""

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
"""
