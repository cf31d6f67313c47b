# SPDX-License-Identifier: Apache-2.0
"""A variable is read where it stands: what a later operand sets, by `nonlocal` or a walrus, changes no earlier one."""

PROGRAMS = """
=== nonlocal tuple
---
k = n
def g():
    nonlocal k
    k += 100
    return k
t = (k, g(), k)
o[tid, 2] = t[0]
o[tid, 3] = t[2]
=== nonlocal call args
def f(a, b):
    return a * 1000 + b
---
k = n
def g():
    nonlocal k
    k += 100
    return k
o[tid, 0] = f(k, g())
o[tid, 1] = k * 2 + g() * k
=== nonlocal compare
---
k = n
def g():
    nonlocal k
    k += 100
    return k
o[tid, 0] = 1 if k == g() else 0
o[tid, 1] = 1 if k < g() < k else 0
=== nonlocal index
---
k = 0
def g():
    nonlocal k
    k += 1
    return k
r = cute.make_rmem_tensor(4, cute.Int32)
for i in range(4):
    r[i] = i
r[k] = g()
o[tid, 0] = r[0] * 1000 + r[1] * 100 + r[2] * 10 + r[3]
r[k] += g()
o[tid, 1] = r[0] * 1000 + r[1] * 100 + r[2] * 10 + r[3]
=== nonlocal aug
---
k = n
def g():
    nonlocal k
    k += 100
    return 1
k += g()
o[tid, 0] = k
=== walrus add
---
k = n
o[tid, 0] = k + (k := m)
o[tid, 1] = k
t = (k, (k := 9), k)
o[tid, 2] = t[0] * 100 + t[1] * 10 + t[2]
=== walrus branch
---
k = n
o[tid, 0] = k + ((k := m) if a[tid] > 5 else 7)
o[tid, 1] = k
=== walrus loop
---
k = n
for i in range(3):
    k = k * 2 + (k := i)
o[tid, 0] = k
=== nonlocal cond
---
k = n
def g():
    nonlocal k
    k += 100
    return k
x = k if g() > 3 else 0
o[tid, 0] = x
o[tid, 1] = k and g()
y = [k, g(), k]
o[tid, 2] = y[0]
=== nonlocal swap
---
k = n
j = m
def g():
    nonlocal k
    k += 100
    return k
j, i = k, g()
o[tid, 0] = j
o[tid, 1] = i
=== nonlocal object
class C:
    def __init__(self, n):
        self.n = n
---
c = C(n)
def g():
    nonlocal c
    c = C(m)
    return c.n
o[tid, 0] = c.n + g() * 10
=== nonlocal star
---
k = n
def g():
    nonlocal k
    k += 100
    return k
o[tid, 0] = max(k, g()) - min(k, g())
=== nonlocal not inlined
---
k = n
def g(x):
    nonlocal k
    if x > 3:
        k += 100
        return 1
    return 2
o[tid, 0] = k + g(n) * 1000
o[tid, 1] = k + g(m) * 1000
=== nonlocal two levels
---
def outer(z):
    k = z
    def g():
        nonlocal k
        k += 100
        return k
    return k + g()
o[tid, 0] = outer(n)
o[tid, 1] = outer(m) + outer(n) * 1000
=== nonlocal two levels shared
---
k = n
def outer():
    def g():
        nonlocal k
        k += 100
        return k
    return k + g() * 1000
o[tid, 0] = k + outer()
=== nonlocal across blocks
---
k = n
def g():
    nonlocal k
    k += 100
    return k
o[tid, 0] = k + (g() if a[tid] > 5 else 7)
o[tid, 1] = k
t = (k, g() if a[tid] > 5 else 8, k)
o[tid, 2] = t[0]
o[tid, 3] = t[2]
=== nonlocal loop
---
k = n
def g(x):
    nonlocal k
    k += x
    return k
s = 0
for i in range(3):
    s = s * 10 + k - g(i)
    k -= 1
o[tid, 0] = s
o[tid, 1] = k
=== walrus in closure
---
def f(x):
    if (k := x + 1) > 5 and k < 100:
        return k
    return k + (k := 3)
o[tid, 0] = f(n)
o[tid, 1] = f(m)
"""
