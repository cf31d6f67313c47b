# SPDX-License-Identifier: Apache-2.0
"""A list is not a tuple: where the two meet in an operator, and what gives a list."""

PROGRAMS = """
=== list plus tuple
---
x = [n] + (m,)
o[tid, 0] = x[1]
=== tuple plus list
---
x = (n,) + [m]
o[tid, 0] = x[1]
=== a list grows by a tuple
---
x = [n]
x += (m,)
o[tid, 0] = x[1]
=== a tuple grows by a list
---
x = (n,)
x += [m]
o[tid, 0] = x[1]
=== list before tuple
---
o[tid, 0] = 1 if [n] < (m,) else 0
=== lists in order
---
o[tid, 0] = 1 if [n] < [m] else 0
o[tid, 1] = 1 if [n, m] >= [n, m] else 0
=== list in tuples
---
o[tid, 0] = 1 if [n] in ((n,), (m,)) else 0
o[tid, 1] = 1 if [n] not in [[m], [n]] else 0
o[tid, 2] = 1 if (n,) in [[n], [m]] else 0
=== list looked for by a function
---
def f(items, v):
    return v in items
o[tid, 0] = 1 if f([[n], [m]], [n]) else 0
o[tid, 1] = 1 if f([[n], [m]], (n,)) else 0
o[tid, 2] = 1 if f(((n,), (m,)), [m]) else 0
=== sum of a list that an object holds
---
s = SimpleNamespace(l=[n])
y = s.l + [m]
o[tid, 0] = 1 if isinstance(y, list) else 0
o[tid, 1] = 1 if y == (n, m) else 0
o[tid, 2] = 1 if y == [n, m] else 0
=== sum of a list that an object holds and a tuple
---
s = SimpleNamespace(l=[n])
y = s.l + (m,)
o[tid, 0] = len(y)
=== part of a list that an object holds
---
s = SimpleNamespace(l=[n, m])
y = s.l[:1]
o[tid, 0] = 1 if isinstance(y, list) else 0
o[tid, 1] = 1 if y == (n,) else 0
=== copy of a list
---
x = [n, m]
t = x.copy()
o[tid, 0] = 1 if isinstance(t, list) else 0
o[tid, 1] = 1 if t == (n, m) else 0
t.append(3)
x[0] = 9
o[tid, 2] = len(x) * 10 + len(t) + t[0]
=== tuples of lists compared
---
o[tid, 0] = 1 if ([n], m) == ((n,), m) else 0
o[tid, 1] = 1 if ([n], m) == ([n], m) else 0
=== a list removed from tuples
---
t = [(1,), (2,)]
t.remove([2])
o[tid, 0] = len(t)
=== lists that a loop makes, looked for
---
t = []
for q in cute.range_constexpr(3):
    t.append([q, n])
o[tid, 0] = 1 if [1, n] in t else 0
o[tid, 1] = 1 if (1, n) in t else 0
t.insert(0, [m])
o[tid, 2] = 1 if isinstance(t[0], list) else 0
=== index of list in list
---
o[tid, 0] = [[n]].index([n])
=== sort key
---
x = [3, 1, 2]
x.sort(key=lambda v: -v)
o[tid, 0] = x[0]
"""
