# SPDX-License-Identifier: Apache-2.0
"""Objects in objects: who holds which, through structs, classes, methods, loops and returns."""

_HELD = """
@cute.struct
class In:
    k: cute.Int32
    def add(self, v):
        self.k += v
        return self
@cute.struct
class Out:
    a: In
    n: cute.Int32
    def inner(self):
        return self.a
    def put(self, x):
        self.a = x
class P:
    def __init__(self, a, n=0):
        self.a, self.n = a, n
    def inner(self):
        return self.a
    def put(self, x):
        self.a = x
"""

PROGRAMS = f"""
=== a struct in two structs
{_HELD}
---
i = In(n)
x, y = Out(i, 1), Out(i, 2)
x.a.k += a[tid]
y.a.k += 100
o[tid, 0] = i.k
o[tid, 1] = 1 if x.a is y.a else 0
o[tid, 2] = 1 if x.a is i else 0
=== a struct's field replaced by another
{_HELD}
---
i, j = In(n), In(m)
x = Out(i, 1)
x.a = j
x.a.k += a[tid]
o[tid, 0] = i.k * 1000 + j.k
o[tid, 1] = 1 if x.a is j else 0
=== a struct's field replaced on one way
{_HELD}
---
i, j = In(n), In(m)
x = Out(i, 1)
if a[tid] > 5:
    x.a = j
x.a.k += 10
o[tid, 0] = i.k
o[tid, 1] = j.k
o[tid, 2] = 1 if x.a is j else 0
=== a struct's field swapped in a loop
{_HELD}
---
x, y = Out(In(n), 1), Out(In(m), 2)
for j in range(a[tid] & 3):
    t = x.a
    x.a = y.a
    y.a = t
    x.a.k += 10
o[tid, 0] = x.a.k
o[tid, 1] = y.a.k
=== a struct's field given back by a method
{_HELD}
---
x = Out(In(n), 1)
i = x.inner()
i.add(a[tid]).add(1)
o[tid, 0] = x.a.k
o[tid, 1] = 1 if x.inner() is i else 0
=== a struct's field set by a method
{_HELD}
---
x, i = Out(In(n), 1), In(m)
x.put(i)
i.k += a[tid]
o[tid, 0] = x.a.k
=== a struct's field set by a function under a condition
{_HELD}
def choose(x, i, v):
    if v > 5:
        x.a = i
    return x.a
---
x, i = Out(In(n), 1), In(m)
c = choose(x, i, a[tid])
c.k += 7
o[tid, 0] = x.a.k
o[tid, 1] = i.k
=== a struct in a struct in a struct
{_HELD}
@cute.struct
class Top:
    o: Out
    i: In
---
i = In(n)
x = Top(Out(i, 2), i)
x.o.a.k += a[tid]
x.i.k += 1000
o[tid, 0] = i.k
o[tid, 1] = 1 if x.o.a is x.i else 0
=== a struct in a tuple in a class
{_HELD}
---
i, j = In(n), In(m)
x = P((i, j))
x.a[0].k += a[tid]
p, q = x.a
q.k = p.k * 2
o[tid, 0] = i.k
o[tid, 1] = j.k
=== a made pair comes back whole
{_HELD}
def made(n, v):
    i = In(n)
    x = Out(i, 3)
    if v > 5:
        i.k += 50
    return x, i
---
x, i = made(n, a[tid])
i.k += 1
o[tid, 0] = x.a.k
o[tid, 1] = 1 if x.a is i else 0
=== a made pair comes back whole without a branch
{_HELD}
def made(n):
    i = In(n)
    return Out(i, 3), i
---
x, i = made(n)
i.k += a[tid]
o[tid, 0] = x.a.k
o[tid, 1] = 1 if x.a is i else 0
=== two made objects share one
{_HELD}
def made(n, v):
    i = In(n)
    x, y = Out(i, 1), Out(i, 2)
    if v > 3:
        x.n += 1
    return x, y
---
x, y = made(n, a[tid])
x.a.k += 100
o[tid, 0] = y.a.k
o[tid, 1] = 1 if x.a is y.a else 0
o[tid, 2] = x.n
=== an outer object that holds an argument comes back
{_HELD}
def around(i, v):
    x = Out(i, v)
    while x.n > 10:
        x.n -= 10
    return x
---
i = In(n)
x = around(i, a[tid])
x.a.k += 5
o[tid, 0] = i.k
o[tid, 1] = x.n
=== early exit with an inner object
{_HELD}
def first(xs, limit):
    for x in xs:
        if x.a.k > limit:
            return x.a
    return xs[0].a
---
x, y = Out(In(n), 1), Out(In(m), 2)
f = first((x, y), a[tid])
f.k += 1000
o[tid, 0] = x.a.k
o[tid, 1] = y.a.k
=== a chain of objects
{_HELD}
---
x = P(P(P(None, n), m), 1)
x.a.a.n += a[tid]
y = x.a
y.a.n *= 2
o[tid, 0] = x.a.a.n + y.n + x.n
=== a list of nodes
class Node:
    def __init__(self, v, next=None):
        self.v, self.next = v, next
---
head = None
for j in cute.range_constexpr(3):
    head = Node(a[tid] + j, head)
s, at = 0, head
while at is not None:
    s = s * 7 + at.v
    at = at.next
o[tid, 0] = s
=== an object that holds itself
class V:
    def __init__(self, n):
        self.n, self.me = n, None
---
x = V(n)
x.me = x
x.me.me.n += a[tid]
o[tid, 0] = x.n
=== a struct in a closure of a helper
{_HELD}
def apply(f, v):
    if v > 5:
        f(v)
    f(1)
---
x = Out(In(n), 0)
def put(v):
    x.a.k += v
    x.n += 1
apply(put, a[tid])
o[tid, 0] = x.a.k
o[tid, 1] = x.n
=== an inner object in a loop that runs at run time
{_HELD}
---
x = Out(In(n), 0)
i = x.a
for j in range(a[tid] & 7):
    x.a.add(j)
    i.k += 1
o[tid, 0] = x.a.k
o[tid, 1] = i.k
=== a copy is another
{_HELD}
def copied(x):
    return Out(In(x.a.k), x.n)
---
x = Out(In(n), 1)
y = copied(x)
y.a.k += a[tid]
o[tid, 0] = x.a.k
o[tid, 1] = y.a.k
o[tid, 2] = 1 if x.a is y.a else 0
=== copy of Python
import copy
{_HELD}
---
x = P(In(n), 1)
y = copy.copy(x)
y.a.k += a[tid]
y.n = 9
o[tid, 1] = 1 if y.a is x.a else 0
o[tid, 2] = y.n + x.n
o[tid, 0] = x.a.k * 100 + x.n
=== made in a loop around an old one
{_HELD}
---
i = In(n)
for j in range(3):
    x = Out(i, j)
    x.a.k += x.n + a[tid]
o[tid, 0] = i.k
=== made in a loop with a new one inside
{_HELD}
---
s = 0
for j in range(a[tid] & 7):
    x = Out(In(j), n)
    x.a.k += 1
    s = s * 3 + x.a.k
o[tid, 0] = s
=== made in a loop and its inner kept
{_HELD}
---
i = In(n)
s = 0
for j in range(3):
    x = Out(In(j), n)
    s += i.k
    i = x.a
    i.k += 10
o[tid, 0] = s + i.k
=== made in a loop and put into an older one
{_HELD}
---
x = P(In(n))
for j in range(3):
    x.a = In(x.a.k + a[tid])
o[tid, 0] = x.a.k
=== a struct's default is a number
@cute.struct
class V:
    n: cute.Int32
    k: cute.Int32 = 4
    def twice(self):
        return V(self.n * 2, k=self.k + 1)
---
x = V(a[tid]).twice().twice()
o[tid, 0] = x.n
o[tid, 1] = x.k
=== a struct's default is an object
@cute.struct
class In:
    k: cute.Int32
@cute.struct
class V:
    n: cute.Int32
    i: In = In(3)
---
x, y = V(n), V(m)
x.i.k += a[tid]
o[tid, 0] = y.i.k
=== an object of the module
class In:
    def __init__(self, k):
        self.k = k
ONE = In(5)
---
o[tid, 0] = ONE.k + a[tid]
=== an object of the module that is set
class In:
    def __init__(self, k):
        self.k = k
ONE = In(5)
---
ONE.k = a[tid]
o[tid, 0] = ONE.k
=== a struct of the module
@cute.struct
class In:
    k: cute.Int32
ONE = In(5)
---
o[tid, 0] = ONE.k + a[tid]
=== structs by identity in a tuple
{_HELD}
---
i, j = In(n), In(n)
x = Out(j, 1)
o[tid, 0] = 1 if x.a in (i, j) else 0
o[tid, 1] = (i, j).index(x.a) if False else 3
o[tid, 2] = 1 if x.a is not i else 0
=== a struct's register tensor is shared
class Tile:
    def __init__(self, r):
        self.r = r
    def put(self, j, v):
        self.r[j] = v
---
r = cute.make_rmem_tensor(4, cute.Int32)
x, y = Tile(r), Tile(r)
for j in cute.range_constexpr(4):
    x.put(j, a[tid] + j)
y.put(2, n)
o[tid, 0] = x.r[2] + x.r[3]
o[tid, 1] = 1 if x.r is y.r else 0
=== a struct that holds a class's object
class In:
    def __init__(self, k):
        self.k = k
@cute.struct
class Out:
    i: object
    n: cute.Int32
---
i = In(n)
x = Out(i, m)
x.i.k += a[tid]
i.k += 1
o[tid, 0] = x.i.k
o[tid, 1] = i.k
=== object of a round kept by a helper
class V:
    def __init__(self, k):
        self.k = k
class S:
    def __init__(self, x):
        self.x = x
def put(s, x):
    s.x = x
---
s = S(V(a[0]))
for i in range(n):
    x = V(a[i])
    if i == 1:
        put(s, x)
o[tid, 0] = s.x.k
=== object of a round kept by a function with a branch
class V:
    def __init__(self, k):
        self.k = k
class S:
    def __init__(self, x):
        self.x = x
def put(s, x, n):
    if n > 100:
        n += 1
    s.x = x
---
s = S(V(a[0]))
for i in range(n):
    x = V(a[i])
    if i == 1:
        put(s, x, n)
o[tid, 0] = s.x.k
=== object of a round given back by a compiled function of a partial
@cuda.jit(device=True)
def same(x):
    if x.k > 1000:
        x.k = 0
    return x
---
f = partial(same)
x = f(SimpleNamespace(k=n))
for i in range(n):
    y = SimpleNamespace(k=i)
    o[tid, 0] = x.k
    x = f(y)
=== object of a round in another one of a round
---
x = SimpleNamespace(a=SimpleNamespace(k=n))
for i in range(n):
    y = SimpleNamespace(k=i)
    o[tid, 0] = x.a.k
    x = SimpleNamespace(a=y)
=== identity asked by a method, and by a lambda
class A:
    def __init__(self, k):
        self.k = k
    def same(self, other):
        return self is other
class H:
    def __init__(self, a):
        self.a = a
def f(h, x):
    return (lambda: h.a is x)()
def g(a, b):
    return a.same(b), a.same(a)
---
x, y = A(n), A(n)
h = H(x)
o[tid, 0] = 1 if f(h, x) else 0
o[tid, 1] = 1 if f(h, y) else 0
p, q = g(x, y)
o[tid, 2] = 1 if p else 0
o[tid, 3] = 1 if q else 0
p, q = g(x, x)
o[tid, 4] = 1 if p else 0
=== object of a round held by what another holds that a function gives
@cuda.jit(device=True)
def inner(k):
    return SimpleNamespace(p=SimpleNamespace(k=k))
@cuda.jit(device=True)
def outer(k):
    return SimpleNamespace(q=SimpleNamespace(p=SimpleNamespace(k=k)))
@cuda.jit(device=True)
def held(x):
    y, z = inner(x.k), outer(x.k)
    y.p = x
    z.q = y
    return z
---
r = held(SimpleNamespace(k=n))
for i in range(4):
    x = SimpleNamespace(k=i + n)
    o[tid, i] = r.q.p.k
    r = held(x)
=== identity with an item, and with a result
class A:
    def __init__(self, k):
        self.k = k
def same(x):
    return x
def f(x, t):
    return x is t[1]
def g(x, y):
    return x is same(y)
---
x, y = A(n), A(n)
o[tid, 0] = 1 if f(x, (x, y)) else 0
o[tid, 1] = 1 if f(y, (x, y)) else 0
o[tid, 2] = 1 if g(x, x) else 0
o[tid, 3] = 1 if g(x, y) else 0
"""
