# SPDX-License-Identifier: Apache-2.0
"""Functions: arguments, closures, lambdas, partials, generators, returns."""

PROGRAMS = """
=== lambda
---
g = lambda x: x * 2 + n
o[tid, 0] = g(a[tid])
=== what a function wraps
def inner(x, y=2):
    return x * y
@functools.wraps(inner)
def outer(x):
    if x > 5:
        return inner(x, 3)
    return x
---
o[tid, 0] = outer(a[tid])
o[tid, 1] = outer.__wrapped__(a[tid])
o[tid, 2] = outer.__wrapped__(a[tid], n)
=== decorated functions
def gives(k):
    def deco(f):
        @functools.wraps(f)
        def g(x):
            return f(x, k)
        return g
    return deco
def counts(f):
    @functools.wraps(f)
    def g(*xs, by=1):
        s = f(*xs)
        if s > 20:
            s -= by
        return s
    return g
@gives(7)
def one(x, y):
    return x * y + 1
@gives(3)
def two(x, y, z=4):
    if x > 5:
        return x + y + z
    return x - y
@counts
def three(x, y=2):
    return x * y
---
o[tid, 0] = one(a[tid])
o[tid, 1] = two(a[tid])
o[tid, 2] = three(a[tid], by=2)
o[tid, 3] = three(a[tid], 5)
=== decorated methods
def twice(f):
    @functools.wraps(f)
    def g(self, x):
        return f(self, x, 2)
    return g
class P:
    def __init__(self, n):
        self.n = n
    @twice
    def plus(self, x, by):
        if x > 5:
            self.n += by
        return self.n + x * by
    @twice
    def __call__(self, x, by, more=1):
        return self.n - x * by + more
---
p = P(n)
o[tid, 0] = p.plus(a[tid])
o[tid, 1] = p(a[tid])
o[tid, 2] = p.n
=== reduce of functools
---
o[tid, 0] = functools.reduce(operator.add, (n, m, a[tid]), 10)
o[tid, 1] = functools.reduce(max, (n, a[tid], m))
o[tid, 2] = functools.reduce(min, [n, a[tid]], 3)
o[tid, 3] = functools.reduce(lambda x, y: x * 10 + y, (1, n, a[tid]))
=== lambda as an argument
def apply(g, x):
    return g(x)
---
o[tid, 0] = apply(lambda x: x + 1, a[tid])
=== lambda over a run-time value as an argument
def apply(g, x):
    return g(x)
---
k = a[tid]
o[tid, 0] = apply(lambda x: x + k, n)
=== lambda as an argument of a function with a branch
def apply(g, x):
    if x > 5:
        return g(x)
    return x
---
o[tid, 0] = apply(lambda x: x + 1, a[tid])
=== lambda over a run-time value to a function with a branch
def apply(g, x):
    if x > 5:
        return g(x)
    return x
---
k = a[tid + 1]
o[tid, 0] = apply(lambda x: x + k, a[tid])
=== lambda over a run-time value to a loop
def apply(g, x):
    s = 0
    for i in range(x):
        s += g(i)
    return s
---
k = a[tid + 1]
o[tid, 0] = apply(lambda x: x + k, a[tid] & 7)
=== closure that is not used
---
k = a[tid]
def g(x):
    return x + k
o[tid, 0] = k
=== closure used under a branch
---
k = a[tid]
def g(x):
    return x + k
if n > 2:
    o[tid, 0] = g(n)
=== closure sees a later value
---
k = n
def g():
    return k
k = a[tid]
o[tid, 0] = g()
=== closure in a loop sees the last value
---
gs = []
for i in cute.range_constexpr(3):
    gs.append(lambda: i)
o[tid, 0] = gs[0]() + n * 0
=== closure with a default in a loop
---
gs = []
for i in cute.range_constexpr(3):
    gs.append(lambda i=i: i)
o[tid, 0] = gs[0]() + gs[2]() * 10 + n * 0
=== closure changes a run-time loop's variable
---
s = 0
for i in range(a[tid] & 7):
    g = lambda x: x + i
    s += g(n)
o[tid, 0] = s
=== nonlocal
---
k = n
def add(x):
    nonlocal k
    k += x
add(a[tid])
add(1)
o[tid, 0] = k
=== nonlocal in a run-time loop
---
k = n
def add(x):
    nonlocal k
    k += x
for i in range(a[tid] & 7):
    add(i)
o[tid, 0] = k
=== nonlocal passed to a function
def apply(g):
    g(2)
    g(3)
---
k = n
def add(x):
    nonlocal k
    k += x
apply(add)
o[tid, 0] = k
=== closure returned
def adder(k):
    def add(x):
        return x + k
    return add
---
o[tid, 0] = adder(n)(a[tid])
=== closure returned with a branch
def adder(k):
    def add(x):
        if x > k:
            return x
        return x + k
    return add
---
o[tid, 0] = adder(n)(a[tid])
=== closure of two levels
---
k = a[tid]
def outer(x):
    def inner(y):
        return y + k + x
    return inner(1)
o[tid, 0] = outer(n)
=== closure with early returns
---
k = n
def g(x):
    if x < 0:
        return -1
    for i in range(x):
        if i > k:
            return i
    return 100
o[tid, 0] = g(a[tid])
=== recursion
def fact(x):
    return 1 if x <= 1 else x * fact(x - 1)
---
o[tid, 0] = fact(4)
=== recursion at run time
def down(x):
    if x <= 0:
        return 0
    return x + down(x - 1)
---
o[tid, 0] = down(a[tid] & 7)
=== partial
def f(x, y):
    return x * 10 + y
---
g = partial(f, n)
o[tid, 0] = g(a[tid])
=== partial by name
def f(x, y, z=1):
    return x * 100 + y * 10 + z
---
g = partial(f, z=a[tid])
o[tid, 0] = g(n, m)
o[tid, 1] = g(n, y=m, z=2)
=== partial of a partial
def f(x, y, z):
    return x * 100 + y * 10 + z
---
g = partial(partial(f, n), m)
o[tid, 0] = g(a[tid])
=== partial as an argument
def f(x, y):
    return x * 10 + y
def apply(g, v):
    if v > 5:
        return g(v)
    return 0
---
o[tid, 0] = apply(partial(f, n), a[tid])
=== defaults
def f(x, y=3, z=4):
    return x * 100 + y * 10 + z
---
o[tid, 0] = f(a[tid]) + f(n, z=1)
=== mutable default
def f(x, seen=[]):
    seen.append(1)
    return x + len(seen)
---
o[tid, 0] = f(n) + f(n)
=== star arguments
def f(*xs):
    s = 0
    for x in xs:
        s = s * 10 + x
    return s
---
o[tid, 0] = f(n, m, a[tid])
o[tid, 1] = f()
=== star arguments with a branch
def f(x, *xs):
    if x > 5:
        return x + len(xs)
    return xs[0]
---
o[tid, 0] = f(a[tid], m, n)
=== keyword arguments
def f(x, **named):
    return x * named["k"]
---
o[tid, 0] = f(n, k=a[tid])
=== empty keywords
def f(x):
    return x
---
o[tid, 0] = f(n, **{})
=== keyword only
def f(x, *, k):
    return x - k
---
o[tid, 0] = f(n, k=a[tid])
=== positional only
def f(x, /, k):
    return x - k
---
o[tid, 0] = f(n, k=a[tid])
=== arguments by name in another order
def f(x, y):
    return x * 10 + y
---
o[tid, 0] = f(y=n, x=a[tid])
=== missing argument
def f(x, y):
    return x * 10 + y
---
o[tid, 0] = f(n)
=== named parameters after any number
def first(limit, scale=3, *values, default=7):
    for v in values:
        if v > limit:
            return v * scale
    return default
---
o[tid, 0] = first(a[tid]) + first(a[tid], n) * 100
o[tid, 1] = first(a[tid], n, m, default=a[tid])
o[tid, 2] = first(a[tid], n, m, 9)
=== nonlocal of a constant, passed to a function
def apply(g, v):
    return g(v) + g(8)
---
k = 0
def add(x):
    nonlocal k
    k = (k + x) % 300
    return x
o[tid, 0] = apply(add, n)
o[tid, 1] = k
=== nonlocal in a function of one passed to a function
def apply(g, v):
    return g(v) + g(8)
---
k = 0
def add(x):
    def more():
        nonlocal k
        k += x
    more()
    return x
o[tid, 0] = apply(add, n)
o[tid, 1] = k
=== closure over a constant, then a walk of what it gave
def chosen(g, v):
    if v > 3:
        return g(v)
    return v
---
k = chosen(lambda q: q * 2, n)
for i, v in enumerate((k, a[tid]), 1):
    o[tid, 0] += i * v
=== built-in functions of static numbers
---
o[tid, 0] = max(2, 3) + min(4, 5) + abs(-3) + sum((1, 2, 3)) + max((1, 2))
o[tid, 1] = max(n, m) + min(n, 5) + abs(-n) + sum((n, 2, 3)) + max((n, 2))
=== a default known at run time, and one that is not
def f(x):
    def g(a, b=x, c=4):
        return a + b * c
    return g
---
g = f(n)
o[tid, 0] = g(3)
h = (g, g)
o[tid, 1] = h[1](1)
=== calls before, in and after a loop over a tuple
class V:
    def __init__(self, k):
        self.k = k
def put(x):
    x.k += 1
def run(x):
    put(x)
    for i, y in enumerate((1, 2.5)):
        put(x)
    put(x)
---
x = V(n)
put(x)
for i, y in enumerate((1, 2.5, n)):
    put(x)
run(x)
o[tid, 0] = x.k
=== one of two partials that hold a truth value
def f(flag, x):
    return x * 2 if flag else x
---
p = partial(f, True) if n > 3 else partial(f, False)
o[tid, 0] = p(n)
q = partial(f, True) if n < 3 else partial(f, n > 3)
o[tid, 1] = q(m)
"""
