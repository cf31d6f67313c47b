# SPDX-License-Identifier: Apache-2.0
"""Tuples, lists, dicts, and the builtins that walk over them."""

PROGRAMS = """
=== list captured by a namespace
---
x = []
s = SimpleNamespace(items=x)
x.append(5)
o[tid, 0] = len(s.items)
=== list in a tuple
---
x = [n]
t = (x, 1)
x.append(a[tid])
o[tid, 0] = len(t[0])
=== list alias
---
x = [n]
y = x
y.append(a[tid])
o[tid, 0] = len(x)
o[tid, 1] = x[-1]
=== list changed by a helper
def grow(x, v):
    x.append(v)
---
x = [n]
grow(x, a[tid])
o[tid, 0] = len(x)
o[tid, 1] = x[-1]
=== list item set
---
x = [n, m]
x[0] = a[tid]
o[tid, 0] = x[0] + x[1]
=== list item set by an alias
---
x = [n, m]
y = x
y[0] = a[tid]
o[tid, 0] = x[0]
=== list item set by a helper
def put(x, v):
    x[1] = v
---
x = [n, m]
put(x, a[tid])
o[tid, 0] = x[1]
=== list item set under a branch
---
x = [n, m]
if a[tid] > 5:
    x[0] = 100
o[tid, 0] = x[0]
=== list item set in a run-time loop
---
x = [n, m]
for i in range(a[tid] & 3):
    x[0] = x[0] + i
o[tid, 0] = x[0]
=== list of a closure
---
x = [0]
def put(v):
    x.append(v)
put(a[tid])
put(n)
o[tid, 0] = x[1] + x[2]
o[tid, 1] = len(x)
=== list in a partial
def count(x, k):
    return len(x) + k
---
x = [n]
g = partial(count, x)
x.append(m)
o[tid, 0] = g(a[tid])
=== list grows in a while
---
x = []
i = 0
while i < 3:
    x.append(n + i)
    i += 1
o[tid, 0] = x[0] + x[2]
o[tid, 1] = len(x)
=== list grows in a run-time loop
---
x = [0]
for i in range(a[tid] & 3):
    x.append(i)
o[tid, 0] = len(x)
=== list grows under a branch
---
x = [0]
if a[tid] > 5:
    x.append(1)
o[tid, 0] = len(x)
=== list grows in an unrolled loop
---
x = []
for i in cute.range_constexpr(4):
    x.append(a[tid] + i)
o[tid, 0] = x[3]
o[tid, 1] = sum(x)
=== list that ends
---
x = [n, m, a[tid]]
y = x.pop()
o[tid, 0] = y
o[tid, 1] = len(x)
=== list extended
---
x = [n]
x.extend([m, a[tid]])
x += [4]
o[tid, 0] = len(x)
o[tid, 1] = x[2]
=== list in-place add seen by an alias
---
x = [n]
y = x
x += [a[tid]]
o[tid, 0] = len(y)
=== list inserted
---
x = [n, m]
x.insert(0, a[tid])
o[tid, 0] = x[0]
=== list added and repeated
---
x = [n] + [m]
y = [a[tid]] * 3
o[tid, 0] = x[1] + y[2]
o[tid, 1] = len(y)
=== list is not a tuple
---
o[tid, 0] = 1 if [1, 2] == (1, 2) else 0
o[tid, 1] = 1 if [1, 2] == [1, 2] else 0
o[tid, 2] = 1 if [1, 2] is [1, 2] else 0
=== list of run-time values compared
---
o[tid, 0] = 1 if [n, m] == [5, 3] else 0
o[tid, 1] = 1 if [n, m] == [a[tid], 3] else 0
=== tuple compared
---
o[tid, 0] = 1 if (n, m) == (5, 3) else 0
o[tid, 1] = 1 if (n, m) < (5, a[tid]) else 0
=== list of lists
---
x = [[n, m], [a[tid], 4]]
x[1][0] += 1
o[tid, 0] = x[1][0] + x[0][1]
=== rows of one list
---
row = [0, 0]
x = [row, row]
x[0][1] = a[tid]
o[tid, 0] = x[1][1]
=== repeated list of a list
---
x = [[0]] * 2
x[0][0] = a[tid]
o[tid, 0] = x[1][0]
=== copies of lists
---
x = [n, m]
y = list(x)
z = x[:]
y[0] = a[tid]
z[1] = a[tid]
o[tid, 0] = x[0] + x[1]
o[tid, 1] = y[0] + z[0]
=== list copied
---
x = [n, m]
y = x.copy()
y[0] = a[tid]
o[tid, 0] = x[0]
=== slice set
---
x = [n, m, 4]
x[0:2] = [a[tid], 9]
o[tid, 0] = x[0] + x[1] + x[2]
=== item deleted
---
x = [n, m, 4]
del x[0]
o[tid, 0] = x[0]
o[tid, 1] = len(x)
=== list indexed at run time
---
x = [n, m, 4, 9]
o[tid, 0] = x[a[tid] & 3]
=== tuple indexed at run time
---
x = (n, m, 4, 9)
o[tid, 0] = x[a[tid] & 3]
=== tuple indexed at a negative run-time index
---
x = (n, m, 4, 9)
o[tid, 0] = x[-(tid + 1)]
=== list comprehension
---
x = [a[tid] + i for i in range(4)]
o[tid, 0] = x[3]
o[tid, 1] = sum(x)
=== list comprehension with a condition
---
x = [a[tid] + i for i in range(6) if i % 2 == 0]
o[tid, 0] = x[-1]
o[tid, 1] = len(x)
=== comprehension of two loops
---
x = [i * j + n for i in range(2) for j in range(3)]
o[tid, 0] = x[5]
o[tid, 1] = len(x)
=== comprehension does not leak
---
i = a[tid]
x = [i + n for i in range(3)]
o[tid, 0] = i + x[2]
=== comprehension over a run-time length
---
x = [i for i in range(a[tid] & 3)]
o[tid, 0] = len(x)
=== tuple of a generator
---
x = tuple(a[tid] * i for i in range(3))
o[tid, 0] = x[2]
=== sum of a generator
---
o[tid, 0] = sum(a[tid] * i for i in range(4))
=== append of a condition
---
x = [n, a[tid]]
x.append(m if 2 < x[0] <= n else tid)
x.insert(0, a[tid] and n)
o[tid, 0] = x[0] + x[3] * 100
=== a list of each round
---
s = 0
for i in range(n):
    x = [i, s]
    x.append(a[tid])
    s += sum(x) + max([v - i for v in (n, m)])
o[tid, 0] = s
=== a list of each round that grows on a way
---
s = 0
for i in range(n):
    x = [i]
    if i > 2:
        x.append(s)
    s += len(x)
o[tid, 0] = s
=== comprehension on a way
---
s = n
if a[tid] > 3 and sum([v * 2 for v in (n, m)]) > 7:
    s = sum([q + m for q in range(3)])
o[tid, 0] = s
=== returned by a function with a branch is not a tuple
def pair(n, m):
    x = [n, m]
    if n > 100:
        return [m, n]
    return x
---
o[tid, 0] = 1 if pair(n, m) == (n, m) else 2
o[tid, 1] = 1 if pair(n, m) == [n, m] else 2
if isinstance(pair(n, m), list):
    o[tid, 2] = 1
=== list or tuple
---
y = (n, m)
if a[tid] > 3:
    y = [n, m]
o[tid, 0] = 1 if y == (n, m) else 2
=== list or tuple by a second name
---
x, y = [n, m], (n, m)
if a[tid] > 3:
    y = x
o[tid, 0] = 1 if y == (n, m) else 2
=== list or tuple of an object
---
s = SimpleNamespace(x=[n, m])
y = s.x
if a[tid] > 3:
    y = (n, m)
o[tid, 0] = 1 if y == (n, m) else 2
=== list or tuple returned
def either(n, m, x):
    if x > 3:
        return [n, m]
    return (n, m)
---
o[tid, 0] = 1 if either(n, m, a[tid]) == (n, m) else 2
=== list, then tuple, then list
---
x = [n, m]
o[tid, 0] = 1 if x == (n, m) else 2
x = (n, m)
o[tid, 1] = 1 if x == (n, m) else 2
x = list(x)
o[tid, 2] = 1 if x == (n, m) else 2
=== a number of run time is the last of a tuple
---
o[tid, 0] = 5 in (2, n)
o[tid, 1] = 4 in (2, n)
=== what is not a number in a tuple of numbers
---
o[tid, 0] = None in (n, 2.5)
o[tid, 1] = "a" in (n, 2.5)
o[tid, 2] = (n, m) in (n, 2.5)
o[tid, 3] = SimpleNamespace(k=n) in (n, 2.5)
o[tid, 4] = None in [n, 2.5]
=== a tuple by another name is it
---
x = (n, m)
y = x
o[tid, 0] = 1 if x is y else 2
=== the last of a list is removed, and a list repeated
---
k = [1, 2, 3]
k.remove(3)
o[tid, 0] = len(k)
l = 2 * [n]
l.append(3)
o[tid, 1] = l[1]
o[tid, 2] = len(l)
=== what is left of a list grows
---
l = [1, 2, 3, n]
for i in range(2):
    l = l[1:]
    l.append(i)
    l.append(tid)
o[tid, 0] = len(l)
o[tid, 1] = l[3] * 10 + l[2]
"""
