# SPDX-License-Identifier: Apache-2.0
"""Static numbers are Python's: what Python raises, and what 64 bits do not hold, is refused at its line."""

PROGRAMS = """
=== static floordiv zero
---
o[tid, 0] = 1 // 0
=== static truediv zero
---
w[tid, 0] = 1.0 / 0.0
=== static zero by names
---
k = 0
j = 7
o[tid, 0] = j // k
=== static divmod zero
---
q, r = divmod(7, 0)
o[tid, 0] = q
=== static shift negative
---
o[tid, 0] = 1 << -1
=== static zero power
---
w[tid, 0] = 0.0 ** -1
=== int of nan
---
o[tid, 0] = int(float("nan"))
=== int of inf
---
o[tid, 0] = int(float("inf"))
=== floor of inf
---
o[tid, 0] = math.floor(float("inf"))
=== sqrt of negative
---
w[tid, 0] = math.sqrt(-1.0)
=== log of zero
---
w[tid, 0] = math.log(0.0)
=== exp too large
---
w[tid, 0] = math.exp(1000.0)
=== pow too large
---
w[tid, 0] = 10.0 ** 400
=== static wrap pow
---
o[tid, 0] = 2**70 // 2**68
=== static wrap by names
---
k = 2**62
j = k * 4
o[tid, 0] = 1 if j > k else 0
=== static wrap add
---
k = 2**63 - 1
o[tid, 0] = 1 if k + 1 > 0 else 0
=== round half two
---
w[tid, 0] = round(a[tid] * 0.125, 2)
=== ceil_div uint32 run-time
---
x = cute.Uint32(n) - 6
o[tid, 0] = cute.ceil_div(cute.Uint32(x), cute.Uint32(2**31))
=== high bit by names
---
k = 63
x = cute.Uint64(n) | cute.Uint64(1 << k)
o[tid, 0] = x >> cute.Uint64(60)
o[tid, 1] = (1 << k) >> 60
o[tid, 2] = 1 if (1 << k) > n else 0
=== negative exponent by names
---
k = 2
j = -1
w[tid, 0] = k ** j
=== overflow in unrolled loop
---
s = 1
for j in cute.range_constexpr(70):
    s = s * 2
o[tid, 0] = s >> 60
=== fault in a dead branch
Z = 0
---
if Z:
    o[tid, 0] = 1 // Z
else:
    o[tid, 0] = 2
x = 8 // Z if Z else 3
o[tid, 1] = x
=== fault in an unrolled branch
---
s = 0
for j in cute.range_constexpr(4):
    s += 8 // j if j else 1
o[tid, 0] = s
=== wraps at run time
---
x = cute.Int64(2**62)
for j in range(3):
    x = x * 2
o[tid, 0] = x
s = 2**62
for j in range(n):
    s += 2**62
o[tid, 1] = s
"""
