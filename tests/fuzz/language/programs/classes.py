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
"""
