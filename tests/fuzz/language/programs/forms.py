# SPDX-License-Identifier: Apache-2.0
"""Forms of classes: properties, inheritance, constructors, equality, hashes, what a class says of itself."""

PROGRAMS = """
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
"""
