# SPDX-License-Identifier: Apache-2.0
"""Fields of objects: objects in objects, types of fields, what callees set."""

PROGRAMS = """
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
=== list set where a tuple was
class V:
    def __init__(self, t):
        self.t = t
---
x = V((n, m))
x.t = [m, n]
o[tid, 0] = (x.t + (1,))[0]
=== tuple set where a list was
class V:
    def __init__(self, t):
        self.t = t
---
x = V([n, m])
x.t = (m, n)
o[tid, 0] = (x.t + (1,))[0]
=== an inner object of a namespace
---
s = SimpleNamespace(a=SimpleNamespace(k=n), n=1)
t = SimpleNamespace(a=s.a, n=2)
s.a.k += a[tid]
t.a.k += t.n
o[tid, 0] = s.a.k
o[tid, 1] = 1 if s.a is t.a else 0
=== struct that holds a register tensor
@cute.struct
class Tile:
    r: object
    n: cute.Int32
---
r = cute.make_rmem_tensor(4, cute.Int32)
x = Tile(r, n)
for j in cute.range_constexpr(4):
    r[j] = a[tid] * j
x.r[1] = 50
o[tid, 0] = r[1] + x.r[3]
"""
