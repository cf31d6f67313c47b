# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions that a kernel defines: by name, left out, and too many."""

PROGRAMS = """
=== one of two defaults is given
---
def f(x, y=2, z=30):
    return x * 100 + y * 10 + z
o[tid, 0] = f(1, 5)
o[tid, 1] = f(1)
o[tid, 2] = f(1, 2, 3)
=== one of two defaults of run time is given
---
def f(x, y=n, z=m):
    return x * 100 + y * 10 + z
o[tid, 0] = f(1, 9)
o[tid, 1] = f(1)
=== by name
---
def f(x, y=2, z=30):
    return x * 100 + y * 10 + z
o[tid, 0] = f(1, z=5)
o[tid, 1] = f(x=n)
o[tid, 2] = f(z=1, y=2, x=3)
=== by name alone
---
def f(x, *, z):
    return x * 100 + z
o[tid, 0] = f(1, z=5)
o[tid, 1] = f(z=n, x=1)
=== a lambda by name
---
f = lambda x, y=3: x * 100 + y
o[tid, 0] = f(y=1, x=2)
o[tid, 1] = f(x=2)
=== the rest of the arguments
---
def f(x, *r):
    return x * 100 + len(r) * 10 + sum(r)
o[tid, 0] = f(1, 2, 3)
o[tid, 1] = f(n)
=== the rest of the arguments is a tuple
---
def f(*r):
    return r == (n, m), r == [n, m]
x = f(n, m)
o[tid, 0] = 1 if x[0] else 0
o[tid, 1] = 1 if x[1] else 0
=== by name in a function that another calls
---
def f(x, y=2):
    return x * 100 + y
def g(x):
    return f(y=x, x=1) + f(x=x)
o[tid, 0] = g(n)
=== by name with a branch
---
def f(x, y=2):
    if x > 3:
        return x * 100 + y
    return y
o[tid, 0] = f(y=n, x=m)
o[tid, 1] = f(x=n)
=== too many
---
def f(x, y):
    return x * 100
o[tid, 0] = f(1, 2, 3)
=== too few
---
def f(x, y):
    return x * 100
o[tid, 0] = f(1)
=== one of another name
---
def f(x):
    return x * 100
o[tid, 0] = f(z=1)
=== one twice
---
def f(x, y):
    return x * 100
o[tid, 0] = f(1, x=1)
=== any names
---
def f(x, **r):
    return x * 100 + len(r)
o[tid, 0] = f(1, z=3)
"""
