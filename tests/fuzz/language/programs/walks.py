# SPDX-License-Identifier: Apache-2.0
"""The builtins that walk over tuples and lists, and unpacking."""

PROGRAMS = """
=== any and all
---
o[tid, 0] = 1 if any(a[tid] == v for v in (7, 12)) else 0
o[tid, 1] = 1 if all(a[tid] > v for v in (0, 5)) else 0
o[tid, 2] = 1 if any([]) else 0
o[tid, 3] = 1 if all(()) else 0
=== any of a list
---
o[tid, 0] = 1 if any([a[tid] > 5, n > 10]) else 0
=== enumerate
---
s = 0
for i, v in enumerate((n, m, a[tid])):
    s += i * v
o[tid, 0] = s
=== enumerate from a start
---
s = 0
for i, v in enumerate((n, m, a[tid]), start=2):
    s += i * v
for i, v in enumerate((n, m), 1):
    s += i * v
o[tid, 0] = s
=== zip
---
s = 0
for x, y in zip((n, m), (a[tid], 4)):
    s += x * y
o[tid, 0] = s
=== zip of unequal lengths
---
s = 0
for x, y in zip((n, m, 9), [a[tid], 4]):
    s += x * y
o[tid, 0] = s
=== reversed
---
s = 0
for v in reversed((n, m, a[tid])):
    s = s * 3 + v
o[tid, 0] = s
=== reversed list and range
---
s = 0
for v in reversed([n, m]):
    s = s * 3 + v
for i in reversed(range(4)):
    s = s * 2 + i
o[tid, 0] = s
=== map
---
t = tuple(map(lambda v: v * 2, (n, a[tid])))
o[tid, 0] = t[0] + t[1]
=== map in a loop
---
s = 0
for v in map(abs, (n, a[tid])):
    s += v
o[tid, 0] = s
=== filter
---
s = 0
for v in filter(lambda k: k > 2, (1, 2, 3, 4)):
    s += v * n
o[tid, 0] = s
=== sorted of static
---
t = sorted((3, 1, 2))
o[tid, 0] = t[0] * 100 + t[1] * 10 + t[2]
=== sorted with a key
---
t = sorted((3, 1, 2), key=lambda v: -v)
o[tid, 0] = t[0] * 100 + t[1] * 10 + t[2]
t = sorted((3, 1, 2), reverse=True)
o[tid, 1] = t[0]
=== sorted of run-time values
---
t = sorted((n, m, a[tid]))
o[tid, 0] = t[0]
=== min and max
---
o[tid, 0] = min(n, m, a[tid])
o[tid, 1] = max((n, m, a[tid]))
o[tid, 2] = max([n, a[tid]])
=== min with a key and default
---
o[tid, 0] = min((3, -4, 2), key=abs) + n
o[tid, 1] = max((), default=7)
=== sum with a start
---
o[tid, 0] = sum((n, m, a[tid]), 10)
o[tid, 1] = sum([])
=== reduce
---
o[tid, 0] = reduce(lambda x, y: x * 2 + y, (n, m, a[tid]))
o[tid, 1] = reduce(lambda x, y: x * 2 + y, (n, m), a[tid])
=== unpacking
---
x, y = n, a[tid]
(p, q), r = (x, m), y
o[tid, 0] = p * 100 + q * 10 + r
=== starred unpacking
---
x, *y = n, m, a[tid]
o[tid, 0] = x + y[1]
o[tid, 1] = len(y)
=== starred in a tuple
---
t = (n, m)
u = (*t, a[tid], *t)
o[tid, 0] = u[2] + u[4]
o[tid, 1] = len(u)
=== starred in the middle
---
x, *y, z = (n, m, 4, a[tid])
o[tid, 0] = z + len(y)
=== tuple slices
---
t = (n, m, a[tid], 4)
o[tid, 0] = t[1:][1] + t[:2][0] + t[::-1][0] + t[-1]
=== tuple repeated
---
t = (n, a[tid]) * 2
o[tid, 0] = t[3]
o[tid, 1] = len(t)
=== in a tuple
---
o[tid, 0] = 1 if a[tid] in (7, 12) else 0
o[tid, 1] = 1 if a[tid] not in (7, 12) else 0
o[tid, 2] = 1 if n in [1, 5] else 0
o[tid, 3] = 1 if 4 in (1, 2) else 0
=== in a range
---
o[tid, 0] = 1 if n in range(3, 9) else 0
=== count and index
---
o[tid, 0] = (1, 2, 1).count(1)
o[tid, 1] = (4, 5, 6).index(6)
=== count of run-time values
---
o[tid, 0] = (n, m, a[tid]).count(7)
=== in a tuple of several types
---
o[tid, 0] = 1 if n in (m, a[tid], tid) else 0
o[tid, 1] = 1 if a[tid] not in (n, 12.0, 7) else 0
=== walks of several types
---
s = 0
for v in (n, a[tid], tid):
    s = s * 3 + v
for i, (v, k) in enumerate(zip((n, tid), [a[tid], m])):
    s += i * v - k
o[tid, 0] = s
=== walk of no arguments
def least(v, *more):
    for x in more:
        v = min(v, x)
    return v if n_is(v) else -v

def n_is(v):
    if v > 2:
        return True
    return False
---
o[tid, 0] = least(n) + least(m, a[tid], n)
=== reduce by a closure
---
def g(q):
    return q + n
o[tid, 0] = reduce(lambda x, y: x * 2 + y + m, (n, g(3), a[tid]), 1)
=== list set later item while enumerated
---
x = [n, m, 4]
s = 0
for j, v in enumerate(x):
    x[2] = 100
    s += v * (j + 1)
o[tid, 0] = s
=== list set while zipped
---
x = [n, m, 4]
y = [1, 2, 3]
s = 0
for p, q in zip(x, y):
    y[2] = 50
    s += p * q
o[tid, 0] = s
=== list reversed while iterated
---
x = [n, m, 4]
s = 0
for v in reversed(x):
    x[0] = 70
    s = s * 100 + v
o[tid, 0] = s
=== list iterated by nested loops and set
---
x = [n, m]
s = 0
for p in x:
    for q in x:
        x[1] = x[1] + 1
        s = s * 7 + p * q
o[tid, 0] = s
o[tid, 1] = x[1]
=== list set under run-time condition while iterated
---
x = [n, m, 4]
s = 0
for v in x:
    if a[tid] > 5:
        x[2] = 100
    s += v
o[tid, 0] = s
=== in place zip
---
x = [n, m, 4]
y = [1, 2, 3]
for j, (p, q) in enumerate(zip(x, y)):
    x[j] = p * q
    y[j] = p + q
o[tid, 0] = x[0] * 100 + x[1] * 10 + x[2]
o[tid, 1] = y[0] * 100 + y[1] * 10 + y[2]
=== list made in unrolled loop and set in inner loop over it
---
s = 0
for j in cute.range_constexpr(2):
    x = [j, n, m]
    for v in x:
        x[2] = 9
        s = s * 3 + v
o[tid, 0] = s
=== list rebound and set while iterated
---
x = [n, m, 4]
s = 0
for v in x:
    x = [9, 9, 9]
    x[1] = 3
    s += v
o[tid, 0] = s
=== break in a loop over a list that is set
---
x = [n, m, 4, 7]
s = 0
for v in x:
    x[2] = 100
    if v == 100:
        break
    if v == 3:
        continue
    s += v
else:
    s = -1
o[tid, 0] = s
=== run-time loop inside a loop over list set
---
x = [n, m, 4]
s = 0
for v in x:
    for k in range(3):
        x[2] = x[2] + k
    s += v
o[tid, 0] = s
"""
