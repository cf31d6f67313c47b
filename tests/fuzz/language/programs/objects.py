# SPDX-License-Identifier: Apache-2.0
"""Objects: identity, aliasing, mutation, returns."""

V = """
class V:
    def __init__(self, n):
        self.n = n
    def bump(self, v):
        self.n += v
        return self
    def clamp(self, hi):
        if self.n > hi:
            self.n = hi
        return self
"""
C = """
@cute.struct
class V:
    n: cute.Int32
    def bump(self, v):
        self.n += v
        return self
    def clamp(self, hi):
        if self.n > hi:
            self.n = hi
        return self
"""
D = """
@dataclass
class V:
    n: int
    def bump(self, v):
        self.n += v
        return self
    def clamp(self, hi):
        if self.n > hi:
            self.n = hi
        return self
"""
BODIES = """
=== chained
---
x = V(n)
x.bump(1).bump(2)
o[tid, 0] = x.n
=== chained with branch
---
x = V(n + tid)
x.clamp(6).bump(2).clamp(7)
o[tid, 0] = x.n
=== alias
---
x = V(n)
y = x
y.n = a[tid]
o[tid, 0] = x.n
=== alias is
---
x = V(n)
y = x
z = V(n)
o[tid, 0] = 1 if x is y else 0
o[tid, 1] = 1 if x is z else 0
o[tid, 2] = 1 if x is not z else 0
=== isinstance
---
x = V(n)
o[tid, 0] = 1 if isinstance(x, V) else 0
o[tid, 1] = 1 if isinstance(x, int) else 0
o[tid, 2] = 1 if isinstance(x, (int, V)) else 0
=== type is
---
x = V(n)
o[tid, 0] = 1 if type(x) is V else 0
=== returned argument
def pick(x, v):
    if v > 10:
        x.n = 1
    return x
---
x = V(n)
y = pick(x, a[tid])
y.n += 5
o[tid, 0] = x.n
=== returned one of two
def pick(x, y, v):
    if v > 5:
        return x
    return y
---
x = V(n)
y = V(m)
z = pick(x, y, a[tid])
z.n += 100
o[tid, 0] = x.n
o[tid, 1] = y.n
o[tid, 2] = 1 if z is x else 0
=== chosen by expression
---
x = V(n)
y = V(m)
z = x if a[tid] > 5 else y
z.n += 100
o[tid, 0] = x.n
o[tid, 1] = y.n
=== chosen by if
---
x = V(n)
y = V(m)
z = x
if a[tid] > 5:
    z = y
z.n += 100
o[tid, 0] = x.n
o[tid, 1] = y.n
=== made by a helper
def make(v):
    return V(v * 2)
---
x = make(n)
y = make(m)
x.n += 1
o[tid, 0] = x.n
o[tid, 1] = y.n
o[tid, 2] = 1 if x is y else 0
=== made by a helper with a branch
def make(v):
    r = V(v)
    if v > 4:
        r.n = 40
    return r
---
x = make(n)
y = make(m)
x.n += 1
o[tid, 0] = x.n
o[tid, 1] = y.n
=== passed and changed
def change(x, v):
    x.n = v
---
x = V(n)
change(x, a[tid])
o[tid, 0] = x.n
=== in a tuple
---
x = V(n)
t = (x, m)
t[0].n = a[tid]
o[tid, 0] = x.n
=== in a list
---
x = V(n)
t = [x, x]
t[1].n = a[tid]
o[tid, 0] = x.n
o[tid, 1] = t[0].n
=== in a namespace
---
x = V(n)
s = SimpleNamespace(x=x)
s.x.n = a[tid]
o[tid, 0] = x.n
x.n += 1
o[tid, 1] = s.x.n
=== in a closure
---
x = V(n)
def put(v):
    x.n = v
put(a[tid])
o[tid, 0] = x.n
=== two in a loop over a tuple
---
x = V(n)
y = V(m)
for z in (x, y):
    z.n += a[tid]
o[tid, 0] = x.n
o[tid, 1] = y.n
=== changed in a run-time loop
---
x = V(n)
for i in range(a[tid] & 7):
    x.n += i
o[tid, 0] = x.n
=== swapped
---
x = V(n)
y = V(m)
x, y = y, x
x.n += 10
o[tid, 0] = x.n
o[tid, 1] = y.n
=== swapped in a loop
---
x = V(n)
y = V(m)
for i in range(a[tid] & 3):
    x, y = y, x
    x.n += 10
o[tid, 0] = x.n
o[tid, 1] = y.n
=== made in a dynamic loop
---
cur = V(n)
for i in range(3):
    nxt = V(cur.n + i)
    cur.n += 100
    cur = nxt
o[tid, 0] = cur.n
=== made in a dynamic loop and kept
---
first = V(n)
last = first
for i in range(n):
    x = V(i)
    if i == 1:
        last = x
o[tid, 0] = last.n
=== made in a dynamic loop and dropped
---
s = 0
for i in range(a[tid] & 7):
    x = V(i)
    x.bump(2)
    s += x.n
o[tid, 0] = s
=== made in an unrolled loop
---
xs = [V(i) for i in range(3)]
for i in cute.range_constexpr(3):
    xs[i].n += n
o[tid, 0] = xs[0].n
o[tid, 1] = xs[2].n
=== replaced in a branch
---
x = V(n)
y = x
if a[tid] > 5:
    x = V(m)
x.n += 10
o[tid, 0] = x.n
o[tid, 1] = y.n
=== equality of itself
---
x = V(n)
o[tid, 0] = 1 if x == x else 0
=== in a tuple by identity
---
x = V(n)
y = V(m)
o[tid, 0] = 1 if x in (y, x) else 0
o[tid, 1] = 1 if x in (y,) else 0
=== returned in a tuple
def two(x, y):
    return y, x
---
x = V(n)
y = V(m)
p, q = two(x, y)
p.n += 50
o[tid, 0] = x.n
o[tid, 1] = y.n
=== returned in a tuple after a branch
def two(x, y, v):
    if v > 5:
        v = 5
    return y, x, v
---
x = V(n)
y = V(m)
p, q, v = two(x, y, a[tid])
p.n += 50
o[tid, 0] = x.n
o[tid, 1] = y.n
o[tid, 2] = v
=== early return of the object
def find(x, v):
    for i in range(5):
        if x.n + i > v:
            x.n = i
            return x
    return x
---
x = V(n)
find(x, a[tid]).n += 1000
o[tid, 0] = x.n
"""


def _of(kind: str, head: str) -> str:
    out = ""
    for block in BODIES.split("\n=== ")[1:]:
        name, _, rest = block.partition("\n")
        helpers, _, body = rest.partition("---\n")
        out += f"\n=== {kind} {name}\n{head}{helpers}---\n{body}"
    return out


PROGRAMS = _of("plain", V) + _of("struct", C) + _of("data", D)
