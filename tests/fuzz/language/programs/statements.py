# SPDX-License-Identifier: Apache-2.0
"""Statements that kernels have or refuse, and mixed control flow."""

PROGRAMS = """
=== try except
---
k = 0
try:
    k = a[tid]
except ValueError:
    k = 1
o[tid, 0] = k
=== try except Exception around a run-time branch
def g(v):
    try:
        if v > 5:
            return 1
        return 2
    except Exception:
        return 3
---
o[tid, 0] = g(a[tid])
=== try except of a bool
def g(v):
    try:
        k = 1 if v > 5 else 2
    except Exception:
        k = 3
    return k
---
o[tid, 0] = g(a[tid])
=== try except of a static failure
TABLE = {}
def g(v):
    try:
        return TABLE["x"]
    except KeyError:
        return v
---
o[tid, 0] = g(a[tid])
=== try finally
def g(v):
    try:
        return v
    finally:
        pass
---
o[tid, 0] = g(a[tid])
=== raise under a run-time condition
---
if a[tid] > 1000:
    raise ValueError("large")
o[tid, 0] = n
=== assert that holds
---
assert n > 2
assert 1 + 1 == 2
o[tid, 0] = n
=== assert that fails statically
---
assert 1 + 1 == 3, "no"
o[tid, 0] = n
=== with a context
@contextlib.contextmanager
def noted(x):
    yield x
---
with noted(n) as k:
    o[tid, 0] = k
=== with an own context
class W:
    def __enter__(self):
        return 4
    def __exit__(self, *args):
        return False
---
with W() as k:
    o[tid, 0] = k + n
=== match
---
match n:
    case 5:
        o[tid, 0] = 1
    case _:
        o[tid, 0] = 2
=== del of a name
---
k = a[tid]
del k
o[tid, 0] = n
=== import in the body
---
import math as mm
o[tid, 0] = mm.floor(2.5) + n
=== global assigned
G = 4
---
global G
G = n
o[tid, 0] = G
=== global read
G = 4
T = (1, 2, 3)
---
o[tid, 0] = G * n + T[1] + len(T)
=== print
---
print("hello", n)
o[tid, 0] = n
=== print in a helper
def g(x):
    print("g", x)
    return x
---
o[tid, 0] = g(n)
=== augmented on an array
---
o[tid, 0] = 1
o[tid, 0] += a[tid]
o[tid, 0] *= 2
o[tid, 1] = o[tid, 0]
=== many assignment targets
---
x = y = a[tid]
x += 1
o[tid, 0] = x * 100 + y
=== assignment order
---
i = 0
r = cute.make_rmem_tensor(4, cute.Int32)
r[0] = 0
r[1] = 0
r[2] = 0
i, r[i] = 2, n
o[tid, 0] = r[2]
o[tid, 1] = r[0]
=== deep early exit
---
s = 0
for i in range(4):
    for j in range(4):
        if i * j == a[tid] & 3:
            s += 1
            continue
        if i + j > 5:
            break
        while s < 20:
            s += 3
            if s % 2:
                break
        else:
            s += 100
o[tid, 0] = s
=== nested unrolled and run-time loops
---
s = 0
for i in cute.range_constexpr(3):
    for j in range(a[tid] & 3):
        if j == i:
            continue
        s += i * 10 + j
    if s > 30:
        break
o[tid, 0] = s
=== static counter in a run-time while
---
i = 0
k = 3
while k > 0:
    k -= 1
    i += a[tid]
o[tid, 0] = i
=== static value changed in a run-time loop
---
k = 1
for i in range(a[tid] & 7):
    k = k * 2
o[tid, 0] = k
=== flag in a loop
---
found = False
for i in range(10):
    if i == a[tid]:
        found = True
o[tid, 0] = 1 if found else 0
=== string statement and ellipsis
---
'a string'
...
o[tid, 0] = n
=== pass in branches
---
if a[tid] > 5:
    pass
else:
    o[tid, 0] = n
"""
