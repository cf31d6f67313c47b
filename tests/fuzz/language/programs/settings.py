# SPDX-License-Identifier: Apache-2.0
"""Structs; fields that methods, functions, closures and callers set."""

PROGRAMS = """
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
=== a method sets another object
class V:
    def __init__(self, k):
        self.k = k
class S:
    def __init__(self, k):
        self.j = k
    def put(self, other):
        other.k = self.j
---
x = V(3)
S(4).put(x)
o[tid, 0] = x.k
S(n).put(x)
o[tid, 1] = x.k
"""
