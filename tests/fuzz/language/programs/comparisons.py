# SPDX-License-Identifier: Apache-2.0
"""Numbers of other types beside each other: compared by their values, divided and rounded up, counted to."""

PROGRAMS = """
=== 64 bits of both signs
---
x = cute.Uint64(2**53 + n)
y = cute.Int64(2**53 + n - 1)
o[tid, 0] = (1 if x > y else 0) + (2 if x == y else 0) + (4 if x != y else 0)
o[tid, 3] = (8 if y < x else 0) + (16 if y >= x else 0)
o[tid, 1] = 1 if cute.Uint64(2**63) == -2**63 else 0
o[tid, 2] = 1 if x in (2**53 + 4, 1) else 0
=== an unsigned one and negative ones of every width
---
x = cute.Uint64(n)
o[tid, 0] = 1 if x > cute.Int8(-1) else 0
o[tid, 1] = 1 if x != a[1] else 0
o[tid, 2] = 1 if cute.Int16(5) == x else 0
o[tid, 3] = 1 if 0 <= x < 6 else 0
o[tid, 4] = 1 if a[tid] <= x else 0
=== both signs in a function
def f(x, y):
    return 1 if x > y else 2 if x == y else 3
---
o[tid, 0] = f(cute.Uint64(2**53 + n), 2**53 + n - 1)
o[tid, 1] = f(n, cute.Uint64(n))
o[tid, 2] = f(a[1], cute.Uint64(n))
o[tid, 3] = f(cute.Uint64(n), -1)
=== the greater of a NaN
---
x = math.inf * (n - 5)
y = 1.0 * m
w[tid, 0] = max(x, y) + max(y, x)
w[tid, 1] = min(x, y) + min(y, x)
=== the greater of a NaN among more
---
x = math.inf * (n - 5)
y = 1.0 * m
w[tid, 0] = max((x, y))
w[tid, 1] = max(x, y, 2.0)
w[tid, 2] = min(y, x, 2.0)
w[tid, 3] = max(x, n)
=== the greater zero
---
x = 0.0 * m
y = -x
w[tid, 0] = max(x, y)
w[tid, 1] = max(y, x)
w[tid, 2] = min(x, y)
w[tid, 3] = min(y, x)
=== negative numbers rounded up by a run-time divisor
---
o[tid, 0] = cute.ceil_div(a[1], m)
o[tid, 1] = cute.ceil_div(-20, m)
o[tid, 2] = cute.ceil_div(cute.Int8(-7), cute.Int8(2))
o[tid, 3] = cute.ceil_div(20, m)
=== rounded up at the end of a type
---
x = cute.Int32(2147483640 + m)
o[tid, 0] = cute.ceil_div(x, 16)
o[tid, 1] = cute.ceil_div(x, cute.Int32(m + 100))
o[tid, 2] = cute.ceil_div(-x, 16)
o[tid, 3] = cute.ceil_div(cute.Int32(2147483647), cute.Int32(2))
o[tid, 4] = cute.ceil_div(m + (2**63 - 9), 1000)
=== a range of a float
---
for i in range(2.5 * m):
    o[tid, 0] = i
=== a range to a static float
---
for i in cute.range(0, 2.5):
    o[tid, 0] = i
=== enumerate from a run-time number
---
for i, x in enumerate((n, m), n):
    o[tid, 0] = i + x
=== large comparisons
---
for j in range(4):
    x = cute.Int64(9007199254740992) + a[j + tid]
    f = 9007199254740992.0 + a[j + 4]
    o[tid, 0] = (o[tid, 0] * 2 + (1 if x < f else 0)) & 0xFFFF
    o[tid, 1] = (o[tid, 1] * 2 + (1 if x == f else 0)) & 0xFFFF
    o[tid, 2] = (o[tid, 2] * 2 + (1 if f <= x else 0)) & 0xFFFF
    o[tid, 3] = (o[tid, 3] * 2 + (1 if f != x else 0)) & 0xFFFF
    o[tid, 4] = (o[tid, 4] * 2 + (1 if x > f else 0)) & 0xFFFF
    o[tid, 5] = (o[tid, 5] * 2 + (1 if f > x else 0)) & 0xFFFF
=== ends of the range
---
x = cute.Int64(9223372036854775807) - n + 5
f = 9223372036854775807.0 + (n - 5)
o[tid, 0] = 1 if x < f else 0
o[tid, 1] = 1 if x == f else 0
o[tid, 2] = 1 if x != f else 0
y = cute.Uint64(18446744073709551615) - cute.Uint64(n - 5)
g = 18446744073709551615.0 + (n - 5)
o[tid, 3] = 1 if y < g else 0
o[tid, 4] = 1 if y >= g else 0
z = cute.Int64(-9223372036854775807) - n + 4
o[tid, 6] = 1 if z < -1e300 * n else 0
o[tid, 7] = 1 if x < float("inf") * n else 0
=== against nan and single
---
f = float("nan") + n
o[tid, 0] = 1 if n < f else 0
o[tid, 1] = 1 if n != f else 0
o[tid, 2] = 1 if n == f else 0
o[tid, 3] = 1 if n == cute.Float32(5) else 0
o[tid, 4] = 1 if cute.Float32(16777216) < n + 16777212 else 0
o[tid, 5] = 1 if n < 5.5 else 0
=== in a helper
def f(x, y):
    return 1 if x == y else 0
---
o[tid, 0] = f(n + 9007199254740988, 9007199254740992.0 + (n - 5))
"""
