# SPDX-License-Identifier: Apache-2.0
"""The classes and functions that random programs use: written once for a program, with its own numbers.

Integers are cut to some thousands; a float is a small multiple of a quarter, so that no sum or product is rounded.
"""

PLAIN = """
class V(Base):
    def __init__(self, n, k):
        self.n = n
        self.k = k
"""
DATA = """
@dataclass
class V(Base):
    n: int
    k: int = 2
"""
STRUCT = """
@cute.struct
class V:
    n: cute.Int64
    k: cute.Int64
"""
BASE = """
WIDTH, TABLE, FLAG = {width}, (2, -3, {c0}), {flag}

class Base:
    WIDTH = {width}
    def total(self):
        return self.n * 2 + self.k
"""
METHODS = """
    def bump(self, by):
        self.n = (self.n + by) % 997
        return self

    def clamp(self, most):
        if self.n > most:
            self.n = most
            return self
        self.k += 1
        return self

    def pull(self, other):
        self.n, other.n = other.n, self.n
        return other

    def count(self, upto):
        s = 0
        for q in range(upto & 7):
            if q == self.k:
                {leave}
            s += q + self.n
        return s

    def either(self, other, v):
        return self if v > {c0} else other

    @property
    def both(self):
        return self.n + self.k

    @staticmethod
    def mixed(x, y={c1}):
        return x * 3 - y

    def __getitem__(self, i):
        return self.n if i == 0 else self.k

    def __call__(self, v):
        return self.n * 2 - v

    def __contains__(self, v):
        return v == self.n or v == self.k

    def __lt__(self, other):
        return self.n < other.n
"""
HOLDER = """
class Narrow(V):
    def clamp(self, most):
        self.k = (self.k + most) % 11
        return super().clamp(most + 1)

class H:
    def __init__(self, left, right, n):
        self.left = left
        self.right = right
        self.n = n

    def turn(self, v):
        if v > {c1}:
            self.left, self.right = self.right, self.left
        return self.left

    def set(self, other):
        self.left = other
        self.n = (self.n + other.n) % 500
"""
FUNCTIONS = """
def pick(x, y, v):
    if v > {c0}:
        return x
    return y

def work(x, v):
    while v > {c1}:
        v -= {c1} + 3
        x.n = (x.n + v) % 61
        if x.n == {c0}:
            return x.n - v
    return v

def two(x, y, v):
    return y, x, v + 1

def apply(g, v):
    return g(v) + g({c0})

def chosen(g, v):
    if v > {c0}:
        return g(v)
    return v

def ends(v, lo={c0}, hi={c1}, *more):
    if v < lo:
        return lo - len(more)
    for x in more:
        if x > hi:
            return x
    return min(v, hi + {c0})

def scaled(v, *, by={c0}, most=400):
    v *= by
    return v if v < most else most

def first(limit, *values, default={c1}):
    for v in values:
        if v > limit:
            return v
    return default

def steps(r, v):
    for q in range(3):
        if r[q] == v:
            continue
        r[q] = (r[q] + v) % 89
    else:
        v += 1
    return v

def summed(items, start=0):
    for q, v in enumerate(items):
        start += q * v
    return start
"""
