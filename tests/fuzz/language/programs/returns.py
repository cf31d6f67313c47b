# SPDX-License-Identifier: Apache-2.0
"""Returns, generators, effects, functions as values."""

PROGRAMS = """
=== function that returns None
def f(x):
    pass
---
o[tid, 0] = 1 if f(n) is None else 0
=== function that returns None on a way
def f(x):
    if x > 5:
        return 1
---
r = f(a[tid])
o[tid, 0] = 1 if r is None else r
=== function that returns two types
def f(x):
    if x > 5:
        return 1
    return 0.5
---
w[tid, 0] = f(a[tid])
=== function that returns ints of two widths
def g(x):
    if x > 5:
        return cute.Int32(1)
    return x * 2
---
o[tid, 0] = g(a[tid])
=== function that returns a constant
def g():
    return 4
---
x = (n, m, 1, 2, 9)
o[tid, 0] = x[g()]
=== early returns
def g(x):
    if x > 10:
        return 1
    if x > 5:
        return 2
    while x < 0:
        x += 1
        if x == -2:
            return 3
    return 4
---
o[tid, 0] = g(a[tid])
=== early return of the body
---
o[tid, 0] = 1
if a[tid] > 5:
    return
o[tid, 0] = 2
=== return in a loop
---
for i in range(10):
    o[tid, 0] = i
    if i == a[tid]:
        return
o[tid, 1] = 5
=== return in an unrolled loop
---
for i in cute.range_constexpr(10):
    o[tid, 0] = i
    if i == a[tid]:
        return
o[tid, 1] = 5
=== generator
def three(x):
    yield x
    yield x + 1
    yield x + 2
---
s = 0
for v in three(a[tid]):
    s = s * 3 + v
o[tid, 0] = s
=== generator with a static loop
def steps(x):
    for i in range(3):
        yield x * i
---
s = 0
for v in steps(a[tid]):
    s += v
o[tid, 0] = s
o[tid, 1] = sum(steps(n))
=== generator with a run-time loop
def steps(x):
    for i in range(x):
        yield i
---
s = 0
for v in steps(a[tid] & 7):
    s += v
o[tid, 0] = s
=== generator as a tuple
def steps(x):
    for i in range(3):
        yield x * i
---
t = tuple(steps(a[tid]))
o[tid, 0] = t[2]
o[tid, 1] = len(t)
=== generator by next
def steps(x):
    for i in range(3):
        yield x * i
---
g = steps(a[tid])
next(g)
o[tid, 0] = next(g)
=== iterator by next
---
g = iter((n, m, a[tid]))
next(g)
o[tid, 0] = next(g)
=== generator from a generator
def steps(x):
    yield x
    yield from (x + 1, x + 2)
---
s = 0
for v in steps(a[tid]):
    s = s * 3 + v
o[tid, 0] = s
=== decorated function
def twice(g):
    def inner(x):
        return g(g(x))
    return inner
@twice
def inc(x):
    return x + 1
---
o[tid, 0] = inc(a[tid])
=== cached function
@functools.lru_cache(None)
def table(k):
    return k * 2
---
o[tid, 0] = table(4) + n
=== cached function of a run-time value
@functools.lru_cache(None)
def table(k):
    return k * 2
---
o[tid, 0] = table(a[tid])
=== function attribute
def g(x):
    return x * g.k
g.k = 4
---
o[tid, 0] = g(a[tid])
=== function attribute that is changed
def g(x):
    g.count += 1
    return x
g.count = 0
---
o[tid, 0] = g(a[tid])
=== global counter
count = 0
def g(x):
    global count
    count += 1
    return x + count
---
o[tid, 0] = g(n) + g(m)
=== global read twice
counter = [0]
def nxt():
    counter[0] += 1
    return counter[0]
---
o[tid, 0] = nxt() * 10 + nxt() + n * 0
=== iterator of the module
counter = iter(range(100))
def nxt():
    return next(counter)
---
o[tid, 0] = (nxt() * 0 + n)
=== device function
@cuda.jit(device=True)
def g(x):
    if x > 5:
        return x
    return x * 2
---
o[tid, 0] = g(a[tid])
=== cute jit function
@cute.jit
def g(x):
    if x > 5:
        return x
    return x * 2
---
o[tid, 0] = g(a[tid])
=== cute jit function that returns a tuple
@cute.jit
def g(x):
    return x, x * 2
---
p, q = g(a[tid])
o[tid, 0] = p + q
=== function chosen by a run-time condition
def f1(x):
    return x + 1
def f2(x):
    return x * 2
---
g = f1
if a[tid] > 5:
    g = f2
o[tid, 0] = g(n)
=== function chosen by a static condition
def f1(x):
    return x + 1
def f2(x):
    return x * 2
FIRST = True
---
g = f1 if FIRST else f2
o[tid, 0] = g(n)
=== function compared
def f1(x):
    return x + 1
---
g = f1
o[tid, 0] = 1 if g is f1 else 0
o[tid, 1] = 1 if g == f1 else 0
=== callable
def f1(x):
    return x + 1
---
o[tid, 0] = 1 if callable(f1) else 0
o[tid, 1] = 1 if callable(n) else 0
=== argument assigned
def g(x):
    x += 1
    return x
---
k = a[tid]
o[tid, 0] = g(k) * 100 + k
=== nested calls and order
def g(s, x):
    s.n = s.n * 10 + x
    return x
class S:
    def __init__(self):
        self.n = 0
---
s = S()
k = g(s, 1) + g(s, 2) * g(s, 3)
o[tid, 0] = s.n + n * 0
o[tid, 1] = k
=== order of arguments
def g(s, x):
    s.n = s.n * 10 + x
    return x
def h(x, y):
    return x - y
class S:
    def __init__(self):
        self.n = 0
---
s = S()
k = h(y=g(s, 1), x=g(s, 2))
o[tid, 0] = s.n + k + n * 0
=== lambda immediately
---
o[tid, 0] = (lambda x, y=2: x * y)(a[tid])
=== lambda in a dict
---
d = {"f": lambda x: x + n}
o[tid, 0] = d["f"](a[tid])
=== lambda in a namespace
---
k = a[tid]
s = SimpleNamespace(f=lambda x: x + k)
o[tid, 0] = s.f(n)
=== method as an argument
class V:
    def __init__(self, n):
        self.n = n
    def add(self, k):
        self.n += k
        return self.n
def apply(g, x):
    return g(x)
---
v = V(n)
apply(v.add, a[tid])
o[tid, 0] = v.n
=== closure over an object
class V:
    def __init__(self, n):
        self.n = n
---
v = V(n)
def g(k):
    v.n += k
    return v
g(1)
g(a[tid]).n += 100
o[tid, 0] = v.n
=== closure over a tensor
---
r = cute.make_rmem_tensor(4, cute.Int32)
def put(i, v):
    r[i] = v
put(0, n)
put(1, a[tid])
o[tid, 0] = r[0] + r[1]
=== docstring and pass
def g(x):
    'A docstring.'
    pass
    return x
---
o[tid, 0] = g(n)
=== annotated
def g(x: int, y: float = 0.5) -> float:
    z: int = x
    return z * y
---
w[tid, 0] = g(a[tid])
=== unused result with an effect
def g(s, x):
    s.n += x
    return s.n
class S:
    def __init__(self):
        self.n = 0
---
s = S()
g(s, a[tid])
o[tid, 0] = s.n
=== function with many returns of tuples
def g(x):
    if x > 5:
        return x, 1
    return 0, 2
---
p, q = g(a[tid])
o[tid, 0] = p * 10 + q
=== function returns static and run-time
def g(x):
    return 4, x
---
k, v = g(a[tid])
r = cute.make_rmem_tensor(k, cute.Int32)
r[k - 1] = v
o[tid, 0] = r[3]
=== an object, a new one twice, and one that the first holds
class W:
    def __init__(self, k):
        self.k = k
class V:
    def __init__(self, a, b):
        self.a = a
        self.b = b
def f(v, w, c):
    x = W(c)
    if c > 100:
        w.k += 3
    return v, x, x, v.b
---
v, w = V(W(n), W(m)), W(9)
p, q, r, s = f(v, w, tid)
p.b.k += 1
q.k += 2
r.k += 10
s.k += 100
p.a.k += 4
o[tid, 0] = v.a.k
o[tid, 1] = v.b.k
o[tid, 2] = q.k
o[tid, 3] = w.k
o[tid, 4] = r.k
=== an object that a loop changes for another, after what makes blocks
def f(x, y, k):
    z = x
    while k > 1:
        k = k - k ** k
        z = y
    return z
---
x, y = SimpleNamespace(k=n), SimpleNamespace(k=m)
f(x, y, tid + 1).k += 100
o[tid, 0] = x.k
o[tid, 1] = y.k
"""
