# SPDX-License-Identifier: Apache-2.0
"""Lists and functions of sequences in kernels: as in Python, or refused."""

import pytest

import numba_cute as cute
from tests.compiler.three_ways import compiled, results

HEAD = """
import dataclasses, functools
from types import SimpleNamespace
import numba_cute as cute


class V:
    def __init__(self, n):
        self.n = n
"""

RIGHT = {
    "returned by a function that is compiled": ("""
def pair(n, m):
    if n > 100:
        return [m, n]
    return [n, m]
""", """
o[0] = 1 if pair(n, m) == (n, m) else 2
if pair(n, m) == [n, m] and isinstance(pair(n, m), list):
    o[1] = 1"""),
    "length known by types beside isinstance": ("", """
x = [n, cute.Int32(m)]
x.append(int(isinstance(n, tuple)) + cute.Int64(n))
if len(x) > 2:
    x.pop()
o[0] = len(x) * 100"""),
    "length known by types, beside hasattr": ("", """
x = [n, cute.Int32(m), n]
o[1] = int(hasattr(n, "nothing")) + cute.Int64(n)
if len(x) > 2:
    x.pop()
o[0] = len(x) * 100"""),
    "second name": ("", """
x = []
y = x
x.append(n)
o[0] = len(y)"""),
    "second name grows": ("", """
x = [n]
y = x
y.append(m)
o[0] = len(x)
o[1] = x[1]
o[2] = x is y"""),
    "item set aliased": ("", """
x = [n, m]
y = x
y[0] = 9
o[0] = x[0]"""),
    "closure": ("", """
x = [n]
def f():
    return len(x)
x.append(m)
o[0] = f()"""),
    "closure appends": ("", """
x = [n]
def f(v):
    x.append(v)
f(m)
o[0] = len(x)
o[1] = x[1]"""),
    "lambda closure": ("", """
x = [n]
f = lambda: x[-1]
x.append(m)
o[0] = f()"""),
    "list tuple compare": ("", """
o[0] = [1, 2] == (1, 2)
o[1] = [1, 2] is [1, 2]
o[2] = [1, 2] == [1, 2]
o[3] = [n, m] == [n, m]
o[4] = [n, m] != [n, n]
o[5] = [n] == [n, m]
o[6] = (n, m) == (n, m)"""),
    "growth methods": ("", """
x = [1, 2, 3]
x.extend([4, n])
x.insert(0, m)
o[0] = len(x)
p = x.pop()
o[1] = p
q = x.pop(0)
o[2] = q
x.remove(2)
o[3] = len(x)
o[4] = x[1]
x.reverse()
o[5] = x[0]
x.clear()
o[6] = len(x)"""),
    "iadd": ("", """
x = [n]
y = x
x += [m, 3]
o[0] = len(x)
o[1] = len(y)"""),
    "add": ("", """
x = [n]
y = x
x = x + [m]
o[0] = len(x)
o[1] = len(y)"""),
    "mul": ("", """
x = [n] * 3
o[0] = len(x)
o[1] = x[2]
x *= 2
o[2] = len(x)"""),
    "item assign": ("", """
x = [1, 2, n]
x[0] = m
x[-1] = 7
o[0] = x[0]
o[1] = x[2]"""),
    "item assign loop": ("", """
x = [0, 0, 0]
for i in cute.range_constexpr(3):
    x[i] = n + i
o[0] = x[0] + x[1] * 10 + x[2] * 100"""),
    "del item": ("", """
x = [1, 2, n]
del x[0]
o[0] = len(x)
o[1] = x[1]"""),
    "slice": ("", """
x = [1, 2, n, m]
y = x[1:3]
y.append(4)
o[0] = len(y)
o[1] = y[1]
o[2] = len(x)
o[3] = x[::-1][0]"""),
    "runtime if item set": ("", """
x = [1, 2]
if n > 2:
    x[0] = m
o[0] = x[0]"""),
    "runtime loop item set": ("", """
x = [0, 0]
for i in range(n):
    x[0] += i
o[0] = x[0]"""),
    "static range append": ("", """
x = []
for i in range(4):
    x.append(n * i)
o[0] = len(x)
o[1] = x[3]"""),
    "runtime index": ("", """
x = [n, m, 9]
o[0] = x[m - 1]"""),
    "in": ("", """
o[0] = n in [1, 2, 5]
o[1] = n in (1, 2, 3)
o[2] = n not in (1, 2, 3)
o[3] = 2 in (1, 2)"""),
    "star args list": ("""
def f(a, b):
    return a * 10 + b
""", """
x = [n, m]
o[0] = f(*x)"""),
    "tuple index runtime": ("", """
o[0] = (1, 5).index(n)"""),
    "tuple index traced": ("""
def f(v):
    return (1, 5).index(v)
""", """
o[0] = f(n)"""),
    "reversed": ("", """
t = (n, m, 1)
k = 0
for v in reversed(t):
    k = k * 10 + v
o[0] = k"""),
    "reversed list": ("", """
t = [n, m, 1]
k = 0
for v in reversed(t):
    k = k * 10 + v
o[0] = k"""),
    "enumerate start": ("", """
t = (n, m)
k = 0
for i, v in enumerate(t, start=3):
    k = k * 10 + i * v
o[0] = k
k = 0
for i, v in enumerate(t, 2):
    k = k * 10 + i * v
o[1] = k"""),
    "zip": ("", """
k = 0
for a, b in zip((n, m), [1, 2]):
    k = k * 10 + a * b
o[0] = k"""),
    "sorted static": ("", """
x = sorted((3, 1, 2))
o[0] = x[0]
o[1] = len(x)"""),
    "sum any all": ("", """
o[0] = sum((n, m, 1))
o[1] = any((n > 7, m > 2))
o[2] = all((n > 2, m > 7))
o[3] = sum([n, m], 10)
o[4] = any([n > 7, m > 7])
o[5] = sum([])"""),
    "unpack list": ("", """
a, b = [n, m]
o[0] = a * 10 + b
[c, d], e = (n, m), 2
o[1] = c + d + e"""),
    "swap items": ("", """
x = [n, m]
x[0], x[1] = x[1], x[0]
o[0] = x[0]
o[1] = x[1]"""),
    "list of objects": ("", """
l = [V(n), V(m)]
l[0].n += 1
t = 0
for v in l:
    t = t * 10 + v.n
o[0] = t"""),
    "list of objects appended": ("", """
l = []
for i in range(3):
    l.append(V(n + i))
l[1].n = 0
o[0] = l[0].n * 100 + l[1].n * 10 + l[2].n"""),
    "comprehension cond": ("", """
x = [v for v in (1, 2, 3, 4) if v % 2 == 0]
o[0] = len(x)
o[1] = x[1]"""),
    "list eq grown": ("", """
x = []
x.append(1)
x.append(n)
o[0] = x == [1, n]
o[1] = x == [1]"""),
    "bool of list": ("", """
x = []
o[0] = 1 if x else 0
x.append(n)
o[1] = 1 if x else 0
o[2] = not x"""),
    "list concat tuple refused": ("", """
x = [1] + [n]
o[0] = len(x)"""),
    "tuple() list()": ("", """
x = [n, m]
t = tuple(x)
x.append(1)
o[0] = len(t)
y = list(t)
y.append(2)
o[1] = len(y)
o[2] = len(t)"""),
    "list copy": ("", """
x = [n, m]
y = x.copy()
x.append(1)
o[0] = len(y)
z = list(x)
x.append(1)
o[1] = len(z)"""),
    "list in conditional object": ("""
def f(x, n):
    if n > 3:
        return x[0]
    return x[1]
""", """
o[0] = f([n, m], n)"""),
    "list while runtime read": ("", """
x = [n, m]
i = 0
while i < n:
    x[0] = x[0] + 1
    i += 1
o[0] = x[0]"""),
    "list assigned in both ways": ("", """
if n > 3:
    x = [1, n]
else:
    x = [2, m]
o[0] = x[0]"""),
    "isinstance list helper": ("""
def f(x):
    return isinstance(x, list) * 1 + isinstance(x, tuple) * 2
""", """
o[0] = f([n])
o[1] = f((n,))"""),
    "list sort": ("", """
x = [3, 1, 2]
x.sort()
o[0] = x[0]"""),
    "index count list": ("", """
x = [3, 1, 3]
o[0] = x.index(1)
o[1] = x.count(3)"""),
    "enumerate list of objects": ("", """
l = [V(n), V(m)]
t = 0
for i, v in enumerate(l):
    t += (i + 1) * v.n
o[0] = t"""),
    "print join": ("", """
o[0] = len([1, 2, *[n, m]])
t = (*[n], m)
o[1] = len(t)"""),
    "any all objects": ("", """
o[0] = any([])
o[1] = all([])
o[2] = any((0, n))"""),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_all_three_give_the_same(name):
    python, simulated, native = results(HEAD + RIGHT[name][0], RIGHT[name][1])
    assert simulated == python and native == python


REFUSED = {
    "or a tuple": ("need one type", "", """
x = (n, m)
if m > 2:
    x = [n, m]
o[0] = x[0]"""),
    "namespace holds": ('changes after line .* has handed it on', "", """
x = []
s = SimpleNamespace(items=x)
x.append(5)
o[0] = len(s.items)
o[1] = s.items[0]"""),
    "tuple holds": ('changes after line .* has handed it on', "", """
x = [n]
t = (x, m)
x.append(5)
o[0] = len(t[0])"""),
    "partial": ('changes after line .* has handed it on', """
def count(l):
    return len(l)
""", """
x = [n]
f = functools.partial(count, x)
x.append(m)
o[0] = f()"""),
    "namespace holds grow via field": ('a list changes where another function made it', "", """
x = []
s = SimpleNamespace(items=x)
s.items.append(n)
o[0] = len(x)
o[1] = x[0]"""),
    "helper append": ('a list changes where another function made it', """
def add(l, v):
    l.append(v)
""", """
x = [n]
add(x, m)
o[0] = len(x)
o[1] = x[-1]"""),
    "helper returns list": ('a list changes where another function made it', """
def mk(n):
    r = []
    for i in range(3):
        r.append(n + i)
    return r
""", """
x = mk(n)
x.append(m)
o[0] = len(x)
o[1] = sum(x)
o[2] = x[2]"""),
    "loop items lists": ('a list changes where another function made it', "", """
a = [n]
b = [m]
for l in (a, b):
    l.append(1)
o[0] = len(a)
o[1] = len(b)"""),
    "nested lists": ('a list changes where another function made it', "", """
g = [[], []]
g[0].append(n)
g[1].append(m)
g[1].append(1)
o[0] = len(g[0])
o[1] = len(g[1])
o[2] = g[1][0]"""),
    "object method appends": ('a list changes where another function made it', """
class Acc:
    def __init__(self):
        self.items = []
    def add(self, v):
        self.items.append(v)
        return self
    def total(self):
        return sum(self.items)
""", """
a = Acc()
a.add(n).add(m)
o[0] = a.total()
o[1] = len(a.items)"""),
    "dataclass default factory": ('a list changes where another function made it', """
@dataclasses.dataclass
class D:
    items: list = dataclasses.field(default_factory=list)
""", """
d = D()
d.items.append(n)
o[0] = len(d.items)
o[1] = len(D().items)"""),
    "grow in branching helper": ('a list changes where another function made it', """
def f(x, n):
    if n > 3:
        x.append(1)
    return n
""", """
x = [n]
f(x, n)
o[0] = len(x)"""),
    "while static append": ('a list grows in a loop', "", """
x = []
i = 0
while i < 3:
    x.append(n)
    i += 1
o[0] = len(x)"""),
    "runtime if append": ('elements on one way to here and', "", """
x = [1]
if n > 2:
    x.append(2)
o[0] = len(x)"""),
    "slice assign": ('one by one', "", """
x = [1, 2, n, m]
x[1:3] = [7]
o[0] = len(x)
o[1] = x[1]"""),
    "map": ('write a list', """
def dbl(v):
    return v * 2
""", """
k = 0
for a in map(dbl, (n, m)):
    k = k * 10 + a
o[0] = k
x = list(map(dbl, (n, m)))
o[1] = x[1]
o[2] = sum(map(lambda v: v + 1, (n, m)))"""),
    "sorted runtime": ('order must be static', "", """
x = sorted((n, m))
o[0] = x[0]"""),
    "min key": ('no such argument of `min`', "", """
o[0] = min((n, m), key=lambda v: -v)"""),
    "list tuple compare traced": ('`is` of two', """
def f(a, b):
    return (a == b) * 1 + (a is b) * 2
""", """
o[0] = f([1, 2], (1, 2))
o[1] = f([n, m], [n, m])
o[2] = f((n, m), (n, m))"""),
    "hash runtime": ('cannot be hashed', """
def f(v):
    return hash(v)
""", """
o[0] = f(n)"""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_as_in_python_is_refused(name):
    words, head, lines = REFUSED[name]
    with pytest.raises(cute.CuteError, match=words):
        compiled(HEAD + head, lines)
