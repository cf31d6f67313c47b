# SPDX-License-Identifier: Apache-2.0
"""Operators of objects in Python's order: a derived class's reflected method first, += that falls back to +."""

PROGRAMS = """
=== traced operators
class C:
    def __init__(self, x):
        self.x = x
    def __add__(self, k):
        return self.x + k
    def __iadd__(self, k):
        self.x += k
        return self
    def __neg__(self):
        return self.x + 2
    def __pos__(self):
        return self.x + 3
    def __invert__(self):
        return self.x + 4
    def __getitem__(self, i):
        return self.x * i
    def __setitem__(self, i, v):
        self.x = i * v
    def __call__(self, k=2):
        return self.x - k
    def __len__(self):
        return 7
    def __bool__(self):
        return False
    def __contains__(self, v):
        return v == self.x
def f1(c):
    c += 3
    return c.x
def f2(c):
    return -c * 10000 + +c * 100 + ~c
def f3(c):
    c[2] = 4
    return c[3]
def f4(c):
    return c() * 100 + c(k=1)
def f5(c):
    return len(c) * 100 + (1 if c else 2) + (10 if not c else 20)
def f6(c):
    return 1 if 5 in c else 0
---
c = C(n)
o[tid, 0] = f1(c)
o[tid, 1] = f2(c)
o[tid, 2] = f3(c)
o[tid, 3] = f4(c)
o[tid, 4] = f5(c)
c.x = n
o[tid, 5] = f6(c)
o[tid, 6] = c.x
=== traced iadd falls to add
class C:
    def __init__(self, x):
        self.x = x
    def __add__(self, k):
        return C(self.x + k)
def f(c):
    d = c
    c += 3
    return c.x * 100 + d.x
---
o[tid, 0] = f(C(n))
=== traced reflected first
class A:
    def __init__(self, x):
        self.x = x
    def __add__(self, v):
        return 1
    def __lt__(self, v):
        return True
class B(A):
    def __radd__(self, v):
        return 2
    def __gt__(self, v):
        return False
class D(A):
    pass
def f(a, b):
    return a + b
def g(a, b):
    return 1 if a < b else 0
---
o[tid, 0] = f(A(n), B(m))
o[tid, 1] = f(B(n), A(m))
o[tid, 2] = f(A(n), D(m))
o[tid, 3] = g(A(n), B(m))
o[tid, 4] = g(A(n), D(m))
=== traced not implemented
class A:
    def __init__(self, x):
        self.x = x
    def __add__(self, v):
        return NotImplemented
    def __lt__(self, v):
        return NotImplemented
class B:
    def __init__(self, x):
        self.x = x
    def __radd__(self, v):
        return self.x + v.x
    def __gt__(self, v):
        return True
def f(a, b):
    return (a + b) * 10 + (1 if a < b else 0)
---
o[tid, 0] = f(A(n), B(m))
o[tid, 1] = A(n) + B(m)
=== same class has only the reflected one
class A:
    def __init__(self, x):
        self.x = x
    def __radd__(self, v):
        return 7
---
o[tid, 0] = A(n) + A(m)
=== same class has only the reflected comparison
class A:
    def __init__(self, x):
        self.x = x
    def __gt__(self, v):
        return self.x > v.x
---
o[tid, 0] = 1 if A(n) < A(m) else 0
=== inherited reflected is not first
class A:
    def __init__(self, x):
        self.x = x
    def __add__(self, v):
        return 1
    def __radd__(self, v):
        return 2
class B(A):
    pass
class D(A):
    def __radd__(self, v):
        return 3
---
o[tid, 0] = A(n) + B(m)
o[tid, 1] = A(n) + D(m)
o[tid, 2] = D(n) + A(m)
o[tid, 3] = 5 + B(m)
=== all augmented
class A:
    def __init__(self, x):
        self.x = x
    def __sub__(self, v):
        return A(self.x - v)
    def __mul__(self, v):
        return A(self.x * v)
    def __floordiv__(self, v):
        return A(self.x // v)
    def __mod__(self, v):
        return A(self.x % v)
    def __and__(self, v):
        return A(self.x & v)
    def __or__(self, v):
        return A(self.x | v)
    def __xor__(self, v):
        return A(self.x ^ v)
    def __lshift__(self, v):
        return A(self.x << v)
    def __rshift__(self, v):
        return A(self.x >> v)
    def __pow__(self, v):
        return A(self.x ** v)
    def __matmul__(self, v):
        return A(self.x * 100 + v)
---
c = A(n)
d = c
c -= 1
c *= 7
c //= 2
c %= 9
c |= 16
c ^= 5
c &= 127
c <<= 2
c >>= 1
c **= 2
c @= m
o[tid, 0] = c.x
o[tid, 1] = d.x
=== number augmented by an object
class A:
    def __init__(self, x):
        self.x = x
    def __radd__(self, v):
        return v * 10 + self.x
---
k = n
k += A(m)
o[tid, 0] = k
=== augmented own and and or
class A:
    def __init__(self, x):
        self.x = x
    def __iand__(self, v):
        self.x &= v
        return self
    def __ior__(self, v):
        self.x |= v
        return self
    def __ilshift__(self, v):
        self.x <<= v
        return self
    def __imatmul__(self, v):
        self.x = v
        return self
    def __ipow__(self, v):
        self.x = self.x ** v
        return self
---
c = A(n)
d = c
c &= 7
c |= 8
c <<= 1
c **= 2
o[tid, 0] = d.x
c @= m
o[tid, 1] = d.x
=== call default
class C:
    def __init__(self, k):
        self.k = k
    def __call__(self, x, y=4):
        return self.k + x * y
---
c = C(n)
o[tid, 0] = c(1)
o[tid, 1] = c(1, y=m)
"""
