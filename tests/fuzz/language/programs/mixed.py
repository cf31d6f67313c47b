# SPDX-License-Identifier: Apache-2.0
"""Fields of many types, static and set; aliases, early exits, the order of changes; objects of the module."""

_V = """
class V:
    def __init__(self, x, k=0):
        self.x, self.k = x, k
    def add(self, v):
        self.x += v
        return self
"""

PROGRAMS = f"""
=== static fields that pick code
class C:
    def __init__(self, deep):
        self.deep = deep
    def f(self, v):
        if cute.const_expr(self.deep):
            r = cute.Uint8(v)
        else:
            r = cute.Uint32(v)
        return -r
---
o[tid, 0] = C(True).f(a[tid])
o[tid, 1] = C(False).f(a[tid])
=== static fields that pick code with a branch
class C:
    def __init__(self, deep):
        self.deep = deep
def f(c, v):
    if c.deep:
        r = cute.Uint8(200)
    else:
        r = cute.Uint32(200)
    if v > 3:
        r = -r
    return r
---
o[tid, 0] = f(C(True), a[tid])
o[tid, 1] = f(C(False), a[tid])
=== static fields of structs that pick code with a branch
@cute.struct
class C:
    deep: object
    n: cute.Int32
def f(c, v):
    if c.deep:
        r = cute.Uint8(200)
    else:
        r = cute.Uint32(200)
    if v > 3:
        r = -r
    return r
---
o[tid, 0] = f(C(True, 1), a[tid])
o[tid, 1] = f(C(False, 1), a[tid])
=== an object that changes between calls
{_V}
def half(v, c):
    if c > 3:
        return v.x // 2
    return v.k
---
x = V(a[tid], 1)
s = 0
for j in range(4):
    s = s * 3 + half(x, a[tid])
    x.add(j)
    x.k += 1
o[tid, 0] = s
=== aliases in one call
{_V}
def move(x, y, v):
    x.x -= v
    if v > 3:
        y.x += v
    return x.x - y.x
---
x, y = V(n), V(m)
o[tid, 0] = move(x, y, a[tid])
o[tid, 1] = move(x, x, a[tid])
o[tid, 2] = x.x * 100 + y.x
=== aliases in one call of traced code
{_V}
def move(x, y, v):
    before = y.x
    x.x = v
    return before * 100 + y.x
---
x, y = V(n), V(m)
o[tid, 0] = move(x, y, a[tid])
o[tid, 1] = move(x, x, a[tid] + 1)
=== aliases made by a condition
{_V}
---
x, y = V(n), V(m)
z = x
if a[tid] > 5:
    z = y
x.x += 1
z.x += 10
y.x += 100
o[tid, 0] = x.x
o[tid, 1] = y.x
o[tid, 2] = 1 if z is x else 2
=== aliases rotated in a loop
{_V}
---
x, y, z = V(1), V(2), V(3)
for j in range(a[tid] & 7):
    x, y, z = y, z, x
    x.x += 10 * j
o[tid, 0] = x.x * 10000 + y.x * 100 + z.x
=== aliases in a tuple taken by a run-time index
{_V}
---
x, y = V(n), V(m)
t = (x, y)
z = t[a[tid] & 1]
z.x += 100
o[tid, 0] = x.x
o[tid, 1] = y.x
=== swapped through a tuple in a field
{_V}
---
h = V((V(n), V(m)))
p, q = h.x
h.x = (q, p)
h.x[0].x += a[tid]
o[tid, 0] = p.x
o[tid, 1] = q.x
=== early exit out of two loops with an object
{_V}
def find(x, v, count):
    for i in range(count):
        for j in range(i):
            x.x += j
            if x.x > v:
                x.k = i * 10 + j
                return x
    return x
---
x = V(n)
y = find(x, a[tid], 6)
y.k += 1
o[tid, 0] = x.x
o[tid, 1] = x.k
=== early exit with one of two new objects
{_V}
def made(v):
    if v > 10:
        return V(v + n_)
    if v > 0:
        return V(v * 2)
    return V(0 - v)
n_ = 3
---
x, y = made(a[tid]), made(n)
x.x += 1
o[tid, 0] = x.x
o[tid, 1] = y.x
=== new or old object
{_V}
def made(x, v):
    if v > 5:
        return V(v, 9)
    return x
---
x = V(a[tid] * 0, a[tid] * 0)
y = made(x, a[tid])
y.k += 1
o[tid, 0] = x.k
o[tid, 1] = y.k
o[tid, 2] = 1 if x is y else 0
=== return out of a while with an object
{_V}
def run(x, v):
    while True:
        x.x += 3
        if x.x > v:
            return x
        x.k += 1
---
x = V(n)
o[tid, 0] = run(x, a[tid]).x
o[tid, 1] = x.k
=== objects carried through break and continue
{_V}
---
x, y = V(n), V(m)
for j in range(8):
    if a[(tid + j) & 15] < 0:
        continue
    x, y = y, x
    x.x += j
    if x.x > 12:
        y.k = j
        break
else:
    x.k = 77
o[tid, 0] = x.x * 100 + y.x
o[tid, 1] = x.k * 100 + y.k
=== an object in a while's condition
{_V}
---
x = V(a[tid])
steps = 0
while x.add(3).x < 20 and steps < 9:
    steps += 1
o[tid, 0] = x.x
o[tid, 1] = steps
=== order of what changes an object
{_V}
def bump(x):
    x.x += 1
    return x.x
---
x = V(n)
o[tid, 0] = x.x * 100 + bump(x) * 10 + x.x
o[tid, 1] = bump(x) - x.x * bump(x)
t = (bump(x), x.x, bump(x))
o[tid, 2] = t[0] * 100 + t[1] * 10 + t[2]
=== augmented field by a call that changes it
{_V}
def bump(x, v):
    x.x += v
    return x.x
---
x = V(n)
x.x += bump(x, a[tid])
o[tid, 0] = x.x
x.x = x.x + bump(x, 1)
o[tid, 1] = x.x
=== augmented object
class V:
    def __init__(self, x):
        self.x = x
    def __iadd__(self, v):
        self.x += v
        return self
    def __add__(self, v):
        return V(self.x + v)
---
x = V(n)
y = x
x += a[tid]
z = x + 1
z += 1
o[tid, 0] = y.x
o[tid, 1] = z.x
o[tid, 2] = 1 if x is y else 0
=== augmented field that is an object
class V:
    def __init__(self, x):
        self.x = x
    def __iadd__(self, v):
        self.x += v
        return self
---
h = SimpleNamespace(v=V(n))
k = h.v
h.v += a[tid]
o[tid, 0] = k.x
o[tid, 1] = 1 if h.v is k else 0
=== items of an object set and read
class R:
    def __init__(self):
        self.a, self.b = 0, 0
    def __getitem__(self, i):
        return self.a if i == 0 else self.b
    def __setitem__(self, i, v):
        if i == 0:
            self.a = v
        else:
            self.b = v
---
r = R()
r[0] = a[tid]
r[1] = r[0] * 2
r[1] += n
o[tid, 0] = r[0]
o[tid, 1] = r[1]
=== float fields and int fields of one class
{_V}
---
x, y = V(a[tid] * 0.5), V(a[tid])
x.add(n)
y.add(n)
w[tid, 0] = x.x
w[tid, 1] = y.x / 2
=== a field that is widened
{_V}
---
x = V(cute.Int32(n))
x.x = x.x + a[tid] * 1000000000
o[tid, 0] = x.x
=== a float32 field
{_V}
---
x = V(cute.Float32(0.1))
x.x = x.x + cute.Float32(a[tid])
w[tid, 0] = x.x
=== a bool field
class V:
    def __init__(self, c):
        self.on = c
    def flip(self):
        self.on = not self.on
---
x = V(a[tid] > 3)
x.flip()
x.flip()
x.flip()
o[tid, 0] = 1 if x.on else 0
=== an unsigned field
{_V}
---
x = V(cute.Uint32(1))
x.x = x.x - cute.Uint32(2)
o[tid, 0] = x.x
=== a text field picks code
class V:
    def __init__(self, mode):
        self.mode = mode
    def f(self, v):
        if self.mode == 'twice':
            return v * 2
        return v + 1
---
o[tid, 0] = V('twice').f(a[tid]) * 100 + V('one').f(a[tid])
=== a text field is set
class V:
    def __init__(self, mode):
        self.mode = mode
---
x = V('one')
x.mode = 'two'
o[tid, 0] = 1 if x.mode == 'two' else 0
=== a function field
class V:
    def __init__(self, f):
        self.f = f
    def run(self, v):
        return self.f(self.f(v))
def half(v):
    if v > 4:
        return v // 2
    return v
---
o[tid, 0] = V(half).run(a[tid]) * 100 + V(lambda v: v + 1).run(a[tid])
=== a function field is set
class V:
    def __init__(self, f):
        self.f = f
---
x = V(lambda v: v + 1)
x.f = lambda v: v * 2
o[tid, 0] = x.f(a[tid])
=== a class in a field
class A:
    def __init__(self, n):
        self.n = n
class F:
    def __init__(self, cls):
        self.cls = cls
    def make(self, v):
        return self.cls(v + 1)
---
o[tid, 0] = F(A).make(a[tid]).n
=== class attribute changed by an object
class V:
    step = 2
    def __init__(self, n):
        self.n = n
    def go(self):
        self.n += self.step
        self.step += 1
---
x, y = V(a[tid]), V(n)
x.go()
x.go()
y.go()
o[tid, 0] = x.n * 100 + y.n
o[tid, 1] = x.step * 10 + V.step
=== class attribute read through objects and classes
class V:
    step = 2
class W(V):
    step = 5
---
x, y = V(), W()
o[tid, 0] = x.step * 100 + y.step * 10 + W.step + a[tid]
=== class attribute set on the class
class V:
    step = 2
---
V.step = 5
o[tid, 0] = V.step + a[tid]
=== class attribute that is an object
class A:
    def __init__(self, n):
        self.n = n
class V:
    held = A(3)
---
o[tid, 0] = V.held.n + a[tid]
=== class attribute that is an object and is set
class A:
    def __init__(self, n):
        self.n = n
class V:
    held = A(3)
    def put(self, v):
        self.held.n = v
---
x = V()
x.put(a[tid])
o[tid, 0] = V.held.n
=== an object of the module comes out of a function
class A:
    def __init__(self, n):
        self.n = n
ONE = A(3)
def one():
    return ONE
def put(x, v):
    x.n = v
---
x = one()
put(x, a[tid])
o[tid, 0] = one().n
=== an object of the module is put into another
class A:
    def __init__(self, n):
        self.n = n
ONE = A(3)
class V:
    def __init__(self):
        self.a = ONE
---
x, y = V(), V()
x.a.n += a[tid]
o[tid, 0] = y.a.n
"""
