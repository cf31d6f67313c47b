# SPDX-License-Identifier: Apache-2.0
"""Generators: functions that yield, and expressions."""

PROGRAMS = """
=== over a static range
def evens(k):
    for j in cute.range_constexpr(k):
        yield j * 2
---
s = 0
for x in evens(4):
    s = s * 3 + x + a[tid]
o[tid, 0] = s
=== over arguments
def scaled(xs, k):
    for x in xs:
        yield x * k
---
s = 0
for x in scaled((n, m, a[tid]), 3):
    s = s * 2 + x
o[tid, 0] = s
=== with a condition at run time
def above(xs, limit):
    for x in xs:
        if x > limit:
            yield x
---
s = 0
for x in above((n, m, a[tid]), 4):
    s += x
o[tid, 0] = s
=== that is left early
def count(k):
    for j in cute.range_constexpr(k):
        yield j
---
s = 0
for x in count(6):
    if x > a[tid]:
        break
    s += x
o[tid, 0] = s
=== yield from
def both(x, y):
    yield from x
    yield from y
---
s = 0
for x in both((n, m), (a[tid], 2)):
    s = s * 3 + x
o[tid, 0] = s
=== yield from a generator
def ones(k):
    for j in cute.range_constexpr(k):
        yield j
def twice(k):
    yield from ones(k)
    yield 100
---
s = a[tid]
for x in twice(3):
    s = s * 2 + x
o[tid, 0] = s
=== expression in sum
---
o[tid, 0] = sum(a[tid] * j for j in range(4))
=== expression in max
---
o[tid, 0] = max(x * x for x in (n, a[tid], m))
=== expression in any
---
o[tid, 0] = 1 if any(x > 6 for x in (n, a[tid], m)) else 0
o[tid, 1] = 1 if all(x > 2 for x in (n, a[tid], m)) else 0
=== expression as a tuple
---
t = tuple(x + 1 for x in (n, a[tid], m))
o[tid, 0] = t[0] * t[1] + t[2]
=== expression in a for
---
s = 0
for x in (y * 2 for y in (n, a[tid])):
    s = s * 3 + x
o[tid, 0] = s
=== expression given to a helper
def total(xs):
    s = 0
    for x in xs:
        s = s * 2 + x
    return s
---
o[tid, 0] = total(x + 1 for x in (n, a[tid], m))
=== in a method
class V:
    def __init__(self, n):
        self.n = n
    def parts(self):
        yield self.n
        yield self.n + 1
---
x = V(a[tid])
s = 0
for p in x.parts():
    s = s * 3 + p
    x.n += 10
o[tid, 0] = s
=== of objects
class V:
    def __init__(self, n):
        self.n = n
def each(*xs):
    for x in xs:
        yield x
---
x, y = V(n), V(m)
for v in each(x, y):
    v.n += a[tid]
o[tid, 0] = x.n * 100 + y.n
=== unpacked
def pair(x):
    yield x
    yield x + 1
---
p, q = pair(a[tid])
o[tid, 0] = p * q
=== as a tuple
def pair(x):
    yield x
    yield x + 1
---
t = tuple(pair(a[tid]))
o[tid, 0] = t[0] * t[1]
=== by next
def pair(x):
    yield x
    yield x + 1
---
g = pair(a[tid])
p = next(g)
q = next(g)
o[tid, 0] = p * 10 + q
=== with enumerate and zip
def ones(k):
    for j in cute.range_constexpr(k):
        yield j
---
s = 0
for j, (x, y) in enumerate(zip(ones(3), (n, m, a[tid]))):
    s = s * 2 + j * x + y
o[tid, 0] = s
=== iter of an object
class V:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return iter((self.n, self.n + 1))
---
s = 0
for x in V(a[tid]):
    s = s * 3 + x
o[tid, 0] = s
=== iter of an object by yield
class V:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        yield self.n
        yield 7
---
s = 0
for x in V(a[tid]):
    s = s * 3 + x
o[tid, 0] = s
=== over a run-time range
def count(k):
    for j in range(k):
        yield j
---
s = 0
for x in count(n):
    s += x
o[tid, 0] = s
=== send
def echo():
    x = yield 1
    yield x
---
g = echo()
o[tid, 0] = next(g) + g.send(a[tid])
"""
