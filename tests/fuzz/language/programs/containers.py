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
=== list is no tuple
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
=== dict of static keys
---
d = {"x": n, "y": a[tid]}
o[tid, 0] = d["x"] + d["y"]
=== dict that is changed
---
d = {"x": n}
d["x"] += a[tid]
d["z"] = 4
o[tid, 0] = d["x"] + d["z"]
o[tid, 1] = len(d)
=== dict alias
---
d = {"x": n}
e = d
e["x"] = a[tid]
o[tid, 0] = d["x"]
=== dict changed by a helper
def put(d, v):
    d["x"] = v
---
d = {"x": n}
put(d, a[tid])
o[tid, 0] = d["x"]
=== dict changed under a branch
---
d = {"x": n}
if a[tid] > 5:
    d["x"] = 100
o[tid, 0] = d["x"]
=== dict grows under a branch
---
d = {"x": n}
if a[tid] > 5:
    d["y"] = 100
o[tid, 0] = len(d)
=== dict get
---
d = {5: 7}
o[tid, 0] = d.get(5, 9)
o[tid, 1] = d.get(6, 9)
=== dict get at a run-time key
---
o[tid, 0] = {5: 7}.get(n, 9)
=== dict at a run-time key
---
d = {0: n, 1: m, 3: 4, 7: 9, 12: 1, -3: 2}
o[tid, 0] = d[n - 5]
=== dict with True as a key
---
o[tid, 0] = {1: n, True: m}[1]
=== dict literal with a repeated key
---
o[tid, 0] = {1: n, 1: m}[1]
=== dict items
---
s = 0
d = {1: n, 2: a[tid]}
for k, v in d.items():
    s += k * v
for k in d:
    s += k
for v in d.values():
    s += v
o[tid, 0] = s
=== dict comprehension
---
d = {i: a[tid] + i for i in range(3)}
o[tid, 0] = d[2]
=== dict membership
---
d = {1: n}
o[tid, 0] = 1 if 1 in d else 0
o[tid, 1] = 1 if 2 in d else 0
=== dict global
TABLE = {"a": 3, "b": 4}
---
o[tid, 0] = TABLE["a"] * n
=== dict of functions
def f(x):
    return x + 1
def g(x):
    return x * 2
TABLE = {"f": f, "g": g}
---
o[tid, 0] = TABLE["f"](n) + TABLE["g"](a[tid])
=== dict merged
---
d = {"x": n} | {"y": a[tid]}
e = {**d, "z": 1}
o[tid, 0] = d["y"] + len(e)
=== dict as keywords
def f(x, y):
    return x * 10 + y
---
d = {"y": n, "x": a[tid]}
o[tid, 0] = f(**d)
=== list as arguments
def f(x, y):
    return x * 10 + y
---
t = [n, a[tid]]
o[tid, 0] = f(*t)
=== set
---
o[tid, 0] = 1 if n in {1, 5} else 0
=== list of functions
def f(x):
    return x + 1
def g(x):
    return x * 2
---
s = 0
for h in [f, g]:
    s += h(a[tid])
o[tid, 0] = s
=== list global
LIST = [3, 4, 5]
---
o[tid, 0] = LIST[1] + len(LIST)
=== list global indexed at run time
LIST = [3, 4, 5, 6]
---
o[tid, 0] = LIST[a[tid] & 3]
=== list global changed
LIST = [3, 4, 5]
---
LIST.append(1)
o[tid, 0] = len(LIST)
=== list global item set
LIST = [3, 4, 5]
---
LIST[0] = n
o[tid, 0] = LIST[0]
=== list returned
def make(v):
    return [v, v + 1]
---
x = make(a[tid])
x[0] = n
o[tid, 0] = x[0] + x[1]
=== list returned is the argument
def same(x):
    return x
---
x = [n, m]
y = same(x)
y[0] = a[tid]
o[tid, 0] = x[0]
=== truth of containers
---
o[tid, 0] = 1 if [] else 0
o[tid, 1] = 1 if (n,) else 0
o[tid, 2] = 1 if {} else 0
o[tid, 3] = 1 if not () else 0
=== list of two kinds
---
x = [n, 0.5, (1, a[tid])]
o[tid, 0] = x[2][1]
w[tid, 0] = x[1] * x[0]
=== loop over a list while it grows
---
x = [n, m]
s = 0
for v in x:
    s += v
    if len(x) < 4:
        x.append(1)
o[tid, 0] = s
=== strings
---
name = "abc"
o[tid, 0] = len(name)
o[tid, 1] = 1 if name == "abc" else 0
o[tid, 2] = 1 if "b" in name else 0
=== string formatted
---
key = f"x{1 + 1}"
o[tid, 0] = {"x2": n}[key]
"""
