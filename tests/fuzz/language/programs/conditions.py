# SPDX-License-Identifier: Apache-2.0
"""Conditions: expressions, comparisons, the walrus, types of names by way."""

PROGRAMS = """
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
=== which object a number is
---
b = n > 3
o[tid, 0] = 1 if b is True else 0
=== which object a parameter is
def f(x, flag):
    if flag is True:
        return x
    return -x
---
o[tid, 0] = f(n, n > 3)
=== which object a static parameter is
def f(x, flag, k):
    if flag is True:
        return x
    return -x if k is None else 0
---
o[tid, 0] = f(n, True, None)
o[tid, 1] = f(n, False, None)
o[tid, 2] = f(n, False, 3)
"""
