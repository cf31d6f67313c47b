# SPDX-License-Identifier: Apache-2.0
"""Control flow: loops, early exits, conditions, and statements that kernels have or refuse."""

PROGRAMS = """
=== for with break
---
s = 0
for i in range(10):
    if i > a[tid]:
        break
    s += i
o[tid, 0] = s
=== for with continue
---
s = 0
for i in range(10):
    if i % 3 == 1:
        continue
    s += i * n
o[tid, 0] = s
=== for with else
---
s = 0
for i in range(10):
    if i == a[tid]:
        break
    s += i
else:
    s = -1
o[tid, 0] = s
=== while with else
---
i = 0
while i < 10:
    i += 3
    if i == a[tid]:
        break
else:
    i = -5
o[tid, 0] = i
=== while true
---
i = a[tid]
while True:
    i += 4
    if i > 20:
        break
o[tid, 0] = i
=== nested loops with breaks
---
s = 0
for i in range(5):
    for j in range(i):
        if j > (a[tid] & 3):
            break
        s += j + i
    else:
        s += 100
        continue
    s += 1000
o[tid, 0] = s
=== the loop's variable afterwards
---
i = 50
for i in range(a[tid] & 3):
    pass
o[tid, 0] = i
=== the unrolled loop's variable afterwards
---
for i in cute.range_constexpr(4):
    pass
o[tid, 0] = i + n * 0
=== the loop's variable assigned
---
s = 0
for i in range(6):
    i = i * 2
    s += i
o[tid, 0] = s + i + n * 0
=== unrolled with break
---
s = 0
for i in cute.range_constexpr(6):
    if i > a[tid]:
        break
    s += i
o[tid, 0] = s
=== unrolled with continue
---
s = 0
for i in cute.range_constexpr(6):
    if a[tid] > i:
        continue
    s += i
o[tid, 0] = s
=== unrolled with break at the end of every way
---
s = 0
for i in cute.range_constexpr(6):
    s += i + 1
    if a[tid] > 3:
        s += 10
        break
    else:
        s += 20
        break
o[tid, 0] = s
=== unrolled with a plain break
---
s = 0
for i in cute.range_constexpr(6):
    s += a[tid]
    break
o[tid, 0] = s
=== unrolled with return at the end of every way
---
for i in cute.range_constexpr(6):
    o[tid, 0] = i
    if a[tid] > 3:
        o[tid, 1] = 10
        return
    else:
        return
=== unrolled with else
---
s = 0
for i in cute.range_constexpr(4):
    if i == a[tid]:
        break
    s += i
else:
    s = -1
o[tid, 0] = s
=== unrolled with a static break
---
s = 0
for i in cute.range_constexpr(6):
    if i == 3:
        break
    s += a[tid]
o[tid, 0] = s
=== unrolled with a negative step
---
s = 0
for i in cute.range_constexpr(6, 0, -2):
    s = s * 10 + i
o[tid, 0] = s + n * 0
=== unrolled over nothing
---
s = 4
for i in cute.range_constexpr(0):
    s += n
o[tid, 0] = s
=== range forms
---
s = 0
for i in range(2, n):
    s = s * 10 + i
for i in range(n, 0, -2):
    s = s * 10 + i
for i in range(n, 2):
    s += 1000
o[tid, 0] = s
=== range down over a run-time step
---
s = 0
for i in range(0, n * m, m):
    s = s * 3 + i
for i in range(10, 0, -m):
    s = s * 3 + i
o[tid, 0] = s
=== range with step zero
---
s = 0
for i in range(0, n, 0):
    s += 1
o[tid, 0] = s
=== range with a run-time step zero
---
s = 0
for i in range(0, n, a[3]):
    s += 1
o[tid, 0] = s
=== unrolled range with step zero
---
for i in cute.range_constexpr(0, 4, 0):
    o[tid, 0] = i
=== range with negative bounds
---
s = 0
for i in range(a[tid] - 10, a[tid] - 5):
    s += i
o[tid, 0] = s
=== range of narrow types
---
s = 0
for i in range(cute.Int32(n)):
    s += i
for i in range(cute.Int8(2), a[0]):
    s += i
for i in range(cute.Uint8(3)):
    s += i
o[tid, 0] = s
=== range of several widths
---
s = 0
for i in range(cute.Int32(1), n, cute.Int8(2)):
    s = s * 3 + i
for i in range(cute.Int64(1), cute.Int32(n)):
    s = s * 3 + i
o[tid, 0] = s
=== loop over a tuple of several widths
---
s = 0
for v in (n, cute.Int32(m), cute.Int8(4), a[tid]):
    s = s * 3 + v
o[tid, 0] = s
=== loop over a tuple of ints and floats
---
s = 0.0
for v in (n, 0.5, a[tid]):
    s = s * 3 + v
w[tid, 0] = s
=== loop over an array
---
s = 0
for i in range(len(a)):
    s += a[i]
o[tid, 0] = s
=== loop over an array's elements
---
s = 0
for v in a:
    s += v
o[tid, 0] = s
=== conditional expression
---
o[tid, 0] = n if a[tid] > 5 else m if a[tid] > 0 else -1
=== conditional expression of int and float
---
w[tid, 0] = n if a[tid] > 5 else 0.5
=== conditional expression evaluates one side
class S:
    def __init__(self):
        self.n = 0
    def step(self, k):
        self.n += k
        return self.n
---
s = S()
k = s.step(1) if a[tid] > 5 else s.step(10)
o[tid, 0] = s.n + k * 100
=== and or values
---
k = a[tid] & 3
o[tid, 0] = k and n
o[tid, 1] = k or n
o[tid, 2] = (k and m) or 7
=== and or short circuits
class S:
    def __init__(self):
        self.n = 0
    def step(self, k):
        self.n += k
        return k > 5
---
s = S()
if a[tid] > 5 and s.step(1):
    s.n += 100
if a[tid] > 5 or s.step(10):
    s.n += 1000
o[tid, 0] = s.n
=== and or of static and run-time
---
k = a[tid]
o[tid, 0] = 0 and k
o[tid, 1] = 3 or k
o[tid, 2] = 3 and k
o[tid, 3] = None or k
=== not
---
k = a[tid] & 1
o[tid, 0] = not k
o[tid, 1] = 1 if not (k and n) else 0
=== chained comparisons
---
k = a[tid]
o[tid, 0] = 1 if 0 < k < 10 else 0
o[tid, 1] = 1 if 0 < k <= n != m else 0
o[tid, 2] = 1 if m < n < k < 100 else 0
=== chained comparison evaluates once
class S:
    def __init__(self):
        self.n = 0
    def step(self, k):
        self.n += k
        return self.n
---
s = S()
ok = 0 < s.step(a[tid]) < 10
o[tid, 0] = s.n
o[tid, 1] = 1 if ok else 0
=== walrus
---
s = 0
if (k := a[tid] + 1) > 5:
    s = k
o[tid, 0] = s + k
=== walrus in a while
---
i = 0
while (k := i * 3) < n + 4:
    i += 1
o[tid, 0] = k
=== walrus in a comprehension
---
x = [(last := a[tid] + i) for i in range(3)]
o[tid, 0] = last + x[0]
=== walrus in a condition of two
---
s = 0
if n > 2 and (k := a[tid]) > 5:
    s = k
o[tid, 0] = s
=== walrus static
---
if (k := 4) > 3:
    o[tid, 0] = k + n
=== assigned on one way
---
if n > 3:
    k = a[tid]
o[tid, 0] = k
=== unbound on the way taken
---
if n > 100:
    k = a[tid]
o[tid, 0] = k
=== retyped on one way
---
k = n
if a[tid] > 5:
    k = 0.5
w[tid, 0] = k
=== retyped in a loop
---
k = 0
for i in range(3):
    k = k * 0.5 + a[tid]
w[tid, 0] = k
=== none and int
---
k = None
if a[tid] > 5:
    k = n
o[tid, 0] = 1 if k is None else k
=== none that becomes static
---
k = None
if n is not None:
    k = 3
o[tid, 0] = k
=== static branch
FLAG = False
---
if FLAG:
    o[tid, 0] = undefined_name
else:
    o[tid, 0] = n
=== static branch by const_expr
---
if cute.const_expr(1 > 2):
    o[tid, 0] = undefined_name
else:
    o[tid, 0] = n
=== const_expr of a run-time value
---
if cute.const_expr(n > 2):
    o[tid, 0] = 1
=== range_constexpr of a run-time value
---
for i in cute.range_constexpr(n):
    o[tid, 0] = i
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
