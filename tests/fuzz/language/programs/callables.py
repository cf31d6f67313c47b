# SPDX-License-Identifier: Apache-2.0
"""Functions as values: closures over objects, keyword-only parameters, partials, bound methods, nested functions."""

_V = """
@cute.struct
class V:
    n: cute.Int32
    def add(self, k):
        self.n += k
        return self
class W:
    def __init__(self, n):
        self.n = n
    def add(self, k):
        self.n += k
        return self
    def grow(self, k):
        if self.n > 6:
            self.n += 2 * k
        else:
            self.n += k
"""

PROGRAMS = f"""
=== closure over a struct handed to a helper
{_V}
def twice(f, v):
    return f(v) + f(v + 1)
---
x = V(n)
def put(v):
    x.n += v
    return x.n
o[tid, 0] = twice(put, a[tid])
o[tid, 1] = x.n
=== closure over a struct handed to a helper with a branch
{_V}
def twice(f, v):
    if v > 3:
        return f(v) + f(v + 1)
    return f(v)
---
x = V(n)
def put(v):
    x.n += v
    return x.n
o[tid, 0] = twice(put, a[tid])
o[tid, 1] = x.n
=== closure over a struct handed to a helper with a loop
{_V}
def repeat(f, count):
    for j in range(count):
        f(j)
---
x = V(n)
repeat(lambda j: x.add(j), a[tid] & 7)
o[tid, 0] = x.n
=== closure over two objects
{_V}
def call(f, v):
    if v > 5:
        f(v)
---
x, y = V(n), W(m)
def move(v):
    x.n -= v
    y.n += v
call(move, a[tid])
o[tid, 0] = x.n
o[tid, 1] = y.n
=== closure that gives an object back
{_V}
def call(f, v):
    r = f(v)
    if v > 5:
        r.n += 100
    return r
---
x, y = W(n), W(m)
r = call(lambda v: x if True else y, a[tid])
r.n += 1
o[tid, 0] = x.n
o[tid, 1] = 1 if r is x else 0
=== closure in an object
{_V}
---
x = V(n)
s = SimpleNamespace(f=lambda v: x.add(v))
s.f(a[tid]).add(1)
o[tid, 0] = x.n
=== closure over an object that is replaced
{_V}
---
x = W(n)
def put(v):
    x.n += v
put(1)
y = x
x = W(m)
put(a[tid])
o[tid, 0] = x.n
o[tid, 1] = y.n
=== keyword only after star
def total(*values, scale=1, base):
    s = base
    for v in values:
        s += v * scale
    return s
---
o[tid, 0] = total(a[tid], n, base=m)
o[tid, 1] = total(a[tid], n, m, scale=2, base=1)
=== keyword only after star with a branch
def total(*values, scale=1, base=0):
    s = base
    for v in values:
        if v > 3:
            s += v * scale
    return s
---
o[tid, 0] = total(a[tid], n, base=m)
o[tid, 1] = total(a[tid], n, m, scale=2)
o[tid, 2] = total(a[tid])
=== keyword only after star in a jit function
@cute.jit
def total(*values, scale=1, base=0):
    s = base
    for v in values:
        if v > 3:
            s += v * scale
    return s
---
o[tid, 0] = total(a[tid], n, base=m)
o[tid, 1] = total(a[tid], n, m, scale=2)
=== keyword only in a method
class V:
    def __init__(self, n):
        self.n = n
    def put(self, *values, by=1):
        for v in values:
            if v > self.n:
                self.n += v * by
        return self
---
x = V(n).put(a[tid], 7, by=2).put(3)
o[tid, 0] = x.n
=== keyword only with a branch
def f(x, *, k, j=2):
    if x > 5:
        return x * k
    return x * j
---
o[tid, 0] = f(a[tid], k=n)
o[tid, 1] = f(a[tid], j=m, k=7)
=== star arguments of objects
{_V}
def bump(v, *xs, last=None):
    for x in xs:
        if v > 5:
            x.n += v
    if last is not None:
        last.n += 1
---
x, y, z = V(n), V(m), W(1)
bump(a[tid], x, y, last=z)
o[tid, 0] = x.n * 100 + y.n
o[tid, 1] = z.n
=== star and keywords handed on
def inner(x, y, *, k=1):
    return x * y + k
def outer(*args, **named):
    return inner(*args, **named)
---
o[tid, 0] = outer(a[tid], n, k=m)
o[tid, 1] = outer(a[tid], n)
=== star handed on with a branch
def inner(x, y):
    if x > y:
        return x
    return y * 2
def outer(*args):
    return inner(*args)
---
o[tid, 0] = outer(a[tid], n)
=== partial of a method
{_V}
---
x = V(n)
f = partial(x.add, a[tid])
f()
f()
o[tid, 0] = x.n
=== partial of a method with a branch
{_V}
def call(f, v):
    if v > 3:
        f()
    f()
---
x = W(n)
call(partial(x.grow, a[tid]), a[tid])
o[tid, 0] = x.n
=== partial that holds an object
{_V}
def put(x, v, k=1):
    if v > 3:
        x.n += v * k
    return x
---
x = V(n)
f = partial(put, x, k=2)
y = f(a[tid])
y.n += 1
o[tid, 0] = x.n
o[tid, 1] = 1 if y is x else 0
=== bound method in a tuple
{_V}
---
x, y = W(n), W(m)
for f in (x.add, y.add, x.grow):
    f(a[tid])
o[tid, 0] = x.n
o[tid, 1] = y.n
=== bound method chosen at run time
{_V}
---
x, y = W(n), W(m)
f = x.add if a[tid] > 5 else y.add
f(10)
o[tid, 0] = x.n
o[tid, 1] = y.n
=== bound method of a struct handed to a helper
{_V}
def call(f, v):
    if v > 3:
        f(v)
    return f(1)
---
x = V(n)
r = call(x.add, a[tid])
o[tid, 0] = x.n
o[tid, 1] = 1 if r is x else 0
=== bound method kept in a field
{_V}
---
x = W(n)
s = SimpleNamespace(step=x.add, k=1)
s.step(a[tid])
s.step(s.k)
o[tid, 0] = x.n
=== method of a class by its object
{_V}
---
x = W(n)
W.add(x, a[tid])
f = W.grow
f(x, 1)
o[tid, 0] = x.n
=== nested function two deep
{_V}
---
x = V(n)
def outer(v):
    def inner(w):
        x.n += w
        return v
    return inner(v) + inner(1)
o[tid, 0] = outer(a[tid])
o[tid, 1] = x.n
=== nested function in a helper
def total(v, count):
    s = 0
    def add(w):
        nonlocal s
        s += w
    for j in range(count):
        add(v + j)
    return s
---
o[tid, 0] = total(a[tid], n)
=== nested function with a default from outside
def made(k):
    def f(x, j=k):
        return x * j
    return f
---
f, g = made(n), made(m)
o[tid, 0] = f(a[tid]) + g(a[tid], 2)
=== nested function that calls another
---
def square(v):
    return v * v
def both(v, w):
    if v > w:
        return square(v) - square(w)
    return square(w)
o[tid, 0] = both(a[tid], n)
=== function given to itself
def run(f, depth, v):
    return v if depth == 0 else f(f, depth - 1, v * 2 + 1)
---
o[tid, 0] = run(run, 3, a[tid])
=== functions composed
def compose(*fs):
    def all_of(x):
        for f in fs:
            x = f(x)
        return x
    return all_of
---
k = a[tid]
f = compose(lambda x: x + k, lambda x: x * 2, abs)
o[tid, 0] = f(n)
=== curried
---
add = lambda x: lambda y: x + y
o[tid, 0] = add(a[tid])(n)
=== function in a table by a static key
def one(x): return x + 1
def two(x):
    if x > 3:
        return x * 2
    return x
OPS = {{'one': one, 'two': two}}
---
o[tid, 0] = OPS['one'](a[tid]) + OPS['two'](a[tid])
=== walrus in a comprehension over a tuple
---
t = tuple(y * 2 for x in (n, m, a[tid]) if (y := x + 1) is not None)
o[tid, 0] = sum(t)
=== walrus in a list comprehension
---
s = [y := x + a[tid] for x in (1, 2, 3)]
o[tid, 0] = s[0] * s[2] + y
=== walrus in a call
---
o[tid, 0] = max(k := a[tid] + 1, 3) + k
=== callable object as an argument
class Scale:
    def __init__(self, k):
        self.k, self.calls = k, 0
    def __call__(self, x):
        self.calls += 1
        return x * self.k
def apply(f, v):
    if v > 5:
        return f(f(v))
    return f(v)
---
f = Scale(n)
o[tid, 0] = apply(f, a[tid])
o[tid, 1] = f.calls
=== method that takes a function
class Acc:
    def __init__(self):
        self.s = 0
    def each(self, f, count):
        for j in range(count):
            self.s += f(j)
        return self
---
k = a[tid]
o[tid, 0] = Acc().each(lambda j: j * k, n).s
=== operator functions
---
o[tid, 0] = operator.add(a[tid], n) * operator.mul(m, 2)
o[tid, 1] = operator.neg(a[tid]) + operator.floordiv(a[tid], m)
=== attrgetter
---
get = operator.attrgetter('k')
o[tid, 0] = get(SimpleNamespace(k=a[tid]))
=== property of a function's result
{_V}
def pick(x, y, c):
    return x if c else y
---
x, y = W(n), W(m)
pick(x, y, a[tid] > 5).n += 100
o[tid, 0] = x.n
o[tid, 1] = y.n
=== argument of a helper assigned
def clip(x, lo=-2, hi=8):
    if x < lo:
        x = lo
    if x > hi:
        x = hi
    return x
---
o[tid, 0] = clip(a[tid]) + clip(a[tid], hi=n)
=== default that is an object
class V:
    def __init__(self, n):
        self.n = n
ONE = V(7)
def f(v, x=ONE):
    return v + x.n
---
o[tid, 0] = f(a[tid])
=== default that is a function
def f(v, g=abs):
    return g(v)
---
o[tid, 0] = f(a[tid]) + f(a[tid], lambda x: -x)
=== partial that is given by place what it holds by name
def f(a, b=2, c=3):
    return a * 100 + b * 10 + c
---
o[tid, 0] = partial(f, b=n)(1, 2)
=== partial that names what it holds again
def f(a, b=2, c=3):
    return a * 100 + b * 10 + c
---
o[tid, 0] = partial(f, b=n)(1, b=m, c=4)
=== singledispatch
@functools.singledispatch
def f(x):
    return 1
@f.register(float)
def g(x):
    return 2
---
o[tid, 0] = f(n) * 10 + f(0.5)
=== partialmethod
class C:
    def __init__(self, x):
        self.x = x
    def f(self, k, j):
        return self.x * k + j
    g = functools.partialmethod(f, 3)
---
o[tid, 0] = C(n).g(m)
"""
