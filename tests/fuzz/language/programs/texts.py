# SPDX-License-Identifier: Apache-2.0
"""Texts of what is known only at run time, which a kernel may tell and not decide by."""

PROGRAMS = """
=== text of a run-time number
def f(k):
    return 1 if f"{k}" == "5" else 0
---
o[tid, 0] = f(n)
=== text of a run-time number with repr
def f(k):
    return len(f"{k!r}")
---
o[tid, 0] = f(n * 100)
=== text of an object that holds one
class C:
    def __init__(self, x):
        self.x = x
    def __str__(self):
        return f"C{self.x}"
def f(c):
    return 1 if str(c) == "C5" else 0
---
o[tid, 0] = f(C(n))
=== repr of a dataclass
@dataclass
class C:
    x: int
def f(c):
    return 1 if repr(c) == "C(x=5)" else 0
---
o[tid, 0] = f(C(n))
=== text of a tuple
def f(c):
    return 1 if str((c, 1)) == "(5, 1)" else 0
---
o[tid, 0] = f(n)
=== text by percent
def f(c):
    return 1 if "%s" % c == "5" else 0
---
o[tid, 0] = f(n)
=== text by percent tuple
def f(c):
    return 1 if "%s %s" % (c, 1) == "5 1" else 0
---
o[tid, 0] = f(n)
=== text of static in helper
def f(k):
    names = {"n1": 4, "n2": 5}
    return names[f"n{k}"]
---
o[tid, 0] = f(1) * 10 + f(2)
=== text in a message
def f(k):
    if k is None:
        raise ValueError(f"bad {k}")
    assert k is not None, f"bad {k}"
    return k
---
o[tid, 0] = f(n)
=== text in a message that is raised
def f(k, t):
    if t > 3:
        raise ValueError(f"bad {k} of {t}")
    return k
---
o[tid, 0] = f(n, 4)
=== text of a tensor
def f(r):
    return len(str(r)) * 0 + r[0]
---
r = cute.make_rmem_tensor(1, cute.Int32)
r[0] = n
o[tid, 0] = f(r)
=== fstring in body
---
s = f"x{n}"
o[tid, 0] = 1 if s == "x5" else 0
=== str in body
---
o[tid, 0] = 1 if str(n) == "5" else 0
=== static text
---
k = 4
o[tid, 0] = 1 if f"x{k}" == "x4" else 0
"""
