# SPDX-License-Identifier: Apache-2.0
"""The simulator converts values where the front end does: in each copy of code, in each version of a function."""

import dis
from types import FunctionType

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.seam.ground.error import InternalError
from numba_cute.sim.python.arithmetic.number import from_python
from numba_cute.sim.python.jitted import conversions
from numba_cute.sim.python.jitted.rewrite import rewritten
from numba_cute.typed.meetings import Meeting, Version, Way
from tests.fuzz.language import engines

HEAD = """
@dataclass
class S:
    x: object
    y: object
    def picked(self, c):
        r = self.x
        if c > 1:
            r = self.y
        return r * r

def f(known, v, t):
    r = v
    if known <= 5:
        r = cute.Int64(v)
    if t > 1:
        r = v
    return r * r

def constant(known: cute.Constexpr, v, t):
    if cute.const_expr(known > 5):
        r = v
    else:
        r = cute.Int64(v)
    if t > 1:
        r = v
    return r * r

def most(first, *more):
    r = first
    for m in more:
        if m > r:
            r = m
    return r * r

def use(g, x, y):
    if x > 3:
        return g(x, y)
    return g(y, x)

def double(v):
    return v + v

def least(v):
    return cute.Int32(v * 0 - 2**31)

def either(v):
    if v > 3:
        return v
    return 2.5

@cuda.jit
def kernel(o, w, a, n, m):
    tid = cuda.threadIdx.x
    cute.const_expr(True)
"""

PROGRAMS = {
    "what a function returns on two ways": """
    w[tid, 0] = either(n) * (1 << 61)
    w[tid, 1] = either(m) * (1 << 61)
""",
    "a variable that may not be set": """
    if n > 100:
        t = a[tid]
    if n > 200:
        t = a[1] * cute.Int64(3)
    if n > 150:
        o[tid, 0] = t
    o[tid, 1] = sum([t for t in range(3)])
""",
    "a variable of a closure that may not be set": """
    if n > 100:
        t = a[tid]
    if n > 200:
        t = a[1] * cute.Int64(3)
    def g(x):
        return x + t
    if n > 150:
        o[tid, 0] = g(2)
    o[tid, 1] = 5
""",
    "a loop over a tuple": """
    for k in (a[tid], cute.Int8(100), 2.5, n):
        x = k if tid > 1 else cute.Int8(90)
        w[tid, 0] += x / 2
        o[tid, 1] += int(x * x)
""",
    "a loop over two tuples": """
    for p, q in zip((a[tid], 2.5, n), (cute.Int8(100), n, cute.Int64(3))):
        x = p
        if tid > 1:
            x = q
        w[tid, 0] += x * x
        y = q if tid > 2 else p
        w[tid, 1] += y + y
""",
    "loops over tuples in each other": """
    for p in (a[tid], cute.Int8(100)):
        for e, q in enumerate((cute.Int8(100), 2.5)):
            x = p
            if tid > 1:
                x = q
            w[tid, e] += x * x
            for r in (p, q, n):
                y = r if tid > 2 else x
                w[tid, 2] += y + y
""",
    "a loop over a tuple that is left": """
    for p in (a[tid], cute.Int8(100), 2.5):
        x = p
        if tid == 2:
            x = n
        if x > 50:
            break
        w[tid, 0] += x * x
        if tid == 1:
            continue
        w[tid, 1] += x
    w[tid, 3] = x * x
""",
    "a closure in a loop that is copied": """
    def g(v, c):
        r = v
        if c > 1:
            r = cute.Int8(100)
        return r * r
    for p in (a[tid], cute.Int8(100), 2.5):
        w[tid, 0] += g(p, tid)
        w[tid, 1] += g(cute.Int8(3), tid)
    o[tid, 0] = g(3, tid)
    o[tid, 1] = g(n, tid)
""",
    "a closure in a closure": """
    def g(v):
        r = v
        if tid > 1:
            r = cute.Int8(100)
        return r * r
    def h(v):
        return g(v) + g(cute.Int8(100))
    o[tid, 0] = h(cute.Int8(90))
    o[tid, 1] = h(n)
    w[tid, 0] = h(2.5)
""",
    "a comprehension": """
    xs = [v * v if tid > 1 else cute.Int8(100) for v in (a[tid], cute.Int8(90), 2.5)]
    w[tid, 0] = xs[0] + xs[1] * xs[2]
    ys = [(p if tid > 1 else q) for p in (cute.Int8(100), n) for q in (cute.Int8(3), 2.5)]
    w[tid, 3] = ys[0] + ys[1] + ys[2] + ys[3]
    o[tid, 0] = ys[0] * ys[0]
""",
    "a function called with literals": """
    o[tid, 0] = f(7, cute.Int8(100), tid)
    o[tid, 1] = f(n, cute.Int8(100), tid)
    x = 7
    if tid > 2:
        x = 3
    o[tid, 2] = f(x, cute.Int8(100), tid)
    o[tid, 3] = f(3, cute.Int8(100), tid)
""",
    "a function called with constants": """
    o[tid, 0] = constant(7, cute.Int8(100), tid)
    o[tid, 1] = constant(3, cute.Int8(100), tid)
    for q in cute.range_constexpr(2):
        o[tid, 2 + q] = constant(5 + q, cute.Int8(100), tid)
    o[tid, 5] = constant(7, a[tid], tid)
""",
    "a function with *more": """
    o[tid, 0] = most(cute.Int8(100), cute.Int8(90))
    o[tid, 1] = most(cute.Int8(100), n, cute.Int8(3))
    o[tid, 2] = most(a[tid])
    w[tid, 0] = most(1, 2.5)
""",
    "a function that is traced once and compiled once": """
    o[tid, 0] = most(cute.Int8(100))
    o[tid, 1] = most(cute.Int8(100), n)
    o[tid, 2] = double(cute.Int8(100)) + double(n)
""",
    "fields of several types": """
    p = S(cute.Int8(100), n)
    q = S(n, cute.Int8(100))
    o[tid, 0] = p.picked(tid)
    o[tid, 1] = q.picked(tid)
""",
    "ways back by continue": """
    x = cute.Int8(100)
    for i in range(n):
        if i == 1:
            continue
        if i == 3:
            x = a[tid]
            continue
        x = x * 2
    o[tid, 0] = x * x
""",
    "the head of a loop behind a closure": """
    def g(v):
        if tid > 1:
            return v
        return 2.5
    x = cute.Int8(100)
    y = g(x)
    while y < 500:
        y = y * 2
        x = x + a[3]
    w[tid, 0] = y
    o[tid, 0] = x * x
""",
    "a closure that is handed on": """
    def g(p, q):
        r = p
        if tid > 1:
            r = q
        return r
    o[tid, 0] = use(g, cute.Int8(100), n)
    w[tid, 0] = use(g, 1.5, n)
    w[tid, 1] = use(g, n, n)
""",
    "a closure that is handed on and has two versions": """
    def g(p, q):
        r = p
        if tid > 1:
            r = q
        return r * (1 << 61)
    w[tid, 0] = use(g, 2.5, n)
    w[tid, 1] = use(g, n, n)
""",
    "a closure that is the last constant": """
    w[tid, m - m] = (lambda v: (v if v < 100 else 2.5) * (1 << 61))(n)
""",
    "choices on top of others": """
    x = (tid - 2 and (n * 0.25 if tid > 1 else n)) + (a[tid] if tid > 2 else 0.5) * (n if tid else a[3])
    y = ((a[tid] if tid > 2 else cute.Int8(3)) - 1) and int(0.75 if not tid else n)
    w[tid, 0] = x * x
    o[tid, 0] = y * y
""",
    "the greatest of a list": """
    xs = [cute.Int64(tid), cute.Int32(2000000000)]
    o[tid, 0] = max(xs) * 4
    xs.insert(0, max(xs))
    if tid > 1:
        xs = [xs[1], xs[2], xs[0]]
    o[tid, 1] = xs[0] * 4 + min(xs)
""",
    "what isinstance asks where a variable may not be set": """
    if n > 100:
        t = 3
    for q in range(2):
        if n > 200:
            t = 3
        o[tid, q] = double(q) if isinstance(n, int) else 5
""",
    "copies that convert nothing beside one that does": """
    for u in cute.range_constexpr(3):
        v = least(n)
        if cute.const_expr(u == 1):
            if tid > 1:
                v = cute.Int64(v)
        o[tid, u] = -v
""",
    "what an unrolled loop changes for its next round": """
    v = least(n)
    for u in cute.range_constexpr(4):
        o[tid, u] = -v
        if tid > 1:
            v = cute.Int64(v)
            continue
        if tid > 2:
            continue
""",
    "a round of a loop in a round, and what follows them": """
    v = least(n)
    for u in cute.range_constexpr(2):
        for i in cute.range_constexpr(3):
            if cute.const_expr(i == u + 1):
                if tid > i:
                    v = cute.Int64(v) if i > 1 else least(n)
                    continue
            w[tid, i] = -v
        else:
            if cute.const_expr(u > 0):
                if tid < 2:
                    v = cute.Int64(v)
        o[tid, u] = -v
""",
    "a closure inlined with a branch and without": """
    def g(u, wide):
        v = least(n)
        if cute.const_expr(wide):
            if tid > u:
                v = cute.Int64(v)
        o[tid, u] = -v
        return v
    w[tid, 0] = -g(0, True)
    w[tid, 1] = -g(1, False)
    w[tid, 2] = -g(2, True)
""",
    "layouts that meet": """
    lay = cute.make_layout((4, 2))
    pair = (lay, 1)
    for i in range(4):
        o[tid, i] = lay(5) + (0 if cute.is_static(lay) else 100)
        if i > tid:
            lay = cute.make_layout((4, 2), stride=(8, 1))
            pair = (lay, m)
    def g(x):
        return lay(x % 8) + 2
    w[tid, 0] = g(5 & 63)
    w[tid, 1] = pair[0](3) + pair[1]
    w[tid, 2] = 100 if cute.is_static(lay.shape) else 200
""",
    "a layout that meets others in one copy alone": """
    for u in cute.range_constexpr(2):
        lay = cute.make_layout((4, 2))
        if cute.const_expr(u == 1):
            if tid > 1:
                lay = cute.make_layout((4, 2), stride=(2, 1))
        o[tid, u] = lay(3) + (0 if cute.is_static(lay) else 100)
""",
    "a value on the stack beside a variable that is renamed": """
    v = a[1]
    x = SimpleNamespace(n=n)
    if not isinstance(x, SimpleNamespace):
        v = n
    i = a[11] and n
    o[tid, 0] = v + i
""",
    "a list of which elements are converted": """
    xs = [cute.Int8(100), cute.Int8(90)]
    if tid > 1:
        xs = [n, cute.Int8(3)]
    o[tid, 0] = xs[0] * xs[0]
    o[tid, 1] = xs[1] * xs[1]
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_have_the_types_of_compiled_code(name):
    simulated, compiled = engines._simulated(HEAD + PROGRAMS[name]), engines._compiled(HEAD + PROGRAMS[name])
    assert (simulated.error, compiled.error) == ("", "")
    assert simulated.values == compiled.values


def given_back(v):
    return v


def converting(came, to):
    """Return `given_back` with a conversion of what it returns."""
    at = next(i.offset for i in dis.get_instructions(given_back) if i.opname == "RETURN_VALUE")
    code, meeting = given_back.__code__, Meeting(Way(), at, None, False, came, to)
    found = conversions.Conversions({code: {Version((came,), frozenset({(code, frozenset({meeting}))}))}})
    return found.function(code, lambda plan: FunctionType(rewritten(code, plan), globals()))


def test_a_value_is_converted_as_the_front_end_says():
    assert repr(converting(cute.Int8, cute.Int64)(from_python(np.int8(100)))) == repr(from_python(np.int64(100)))


def test_a_value_that_the_front_end_does_not_expect_is_a_fault_of_ours():
    with pytest.raises(InternalError, match="is Float32 in the simulator, where the front end has Int8"):
        converting(cute.Int8, cute.Int64)(from_python(np.float32(1.5)))
