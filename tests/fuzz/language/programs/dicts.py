# SPDX-License-Identifier: Apache-2.0
"""Dicts, and containers as arguments and globals."""

PROGRAMS = """
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
=== dict asked in all ways
---
d = {"p": n, "q": a[tid]}
o[tid, 0] = len(d) + int("q" in d) * 10 + int("r" not in d) * 100 + d.get("r", 7) + d.get("p")
for k in d:
    o[tid, 1] += d[k]
for k in d.keys():
    o[tid, 1] += d[k] * 3
for k, v in d.items():
    o[tid, 2] += v * len(k)
for v in d.values():
    o[tid, 3] += v
=== dict that nobody asks
---
d = {"p": n}
o[tid, 0] = m
=== dict of what changes later
---
k = n
d = {"p": k, "q": a[tid]}
k = m
for v in d.values():
    o[tid, 0] += v
o[tid, 1] = d["p"]
=== keys of one hash
---
o[tid, 0] = {-1: n, -2: m}[-2]
o[tid, 1] = -1 in {-2: n}
=== dict float key
---
d = {1: m}
o[tid, 0] = d[1.0]
=== dict unread unhashable
---
d = {[1]: 2}
o[tid, 0] = n
=== dict unread runtime
---
d = {n: 2}
o[tid, 0] = n
"""
