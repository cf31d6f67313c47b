# SPDX-License-Identifier: Apache-2.0
"""Numbers: widths, signs, division, shifts, conversions."""

_TYPES = ("Int8", "Int16", "Int32", "Int64", "Uint8", "Uint16", "Uint32", "Uint64")

PROGRAMS = """
=== floor division and remainder of negatives
---
k = a[tid]
o[tid, 0] = k // 4
o[tid, 1] = k % 4
o[tid, 2] = -k // 4
o[tid, 3] = k // -4
o[tid, 4] = k % -4
o[tid, 5] = (k - 50) // n
o[tid, 6] = (k - 50) % n
=== divmod
---
q, r = divmod(a[tid] - 20, n)
o[tid, 0] = q
o[tid, 1] = r
=== ceil_div of negatives
---
o[tid, 0] = cute.ceil_div(n - 200, 64)
o[tid, 1] = cute.ceil_div(cute.Int32(n - 200), 64)
o[tid, 2] = min(cute.ceil_div(cute.Int32(n - 200), 64), 5)
o[tid, 3] = cute.ceil_div(a[tid], 4)
o[tid, 4] = cute.ceil_div(-100, 64)
=== ceil_div of positives
---
o[tid, 0] = cute.ceil_div(n + 200, 64)
o[tid, 1] = cute.ceil_div(128, 64)
=== ceil_div of unsigned
---
o[tid, 0] = cute.ceil_div(cute.Uint32(n + 200), 64)
=== shifts
---
k = a[tid]
o[tid, 0] = k >> 1
o[tid, 1] = k << 3
o[tid, 2] = (k << 33) >> 30
o[tid, 3] = 1 << n
=== bits
---
k = a[tid]
o[tid, 0] = k & 6
o[tid, 1] = k | 9
o[tid, 2] = k ^ n
o[tid, 3] = ~k
=== powers
---
k = a[tid]
o[tid, 0] = k ** 2
o[tid, 1] = n ** m
w[tid, 0] = k ** 0.5 if k > 0 else 0.0
w[tid, 1] = 2.0 ** 3
=== true division
---
w[tid, 0] = a[tid] / 4
w[tid, 1] = n / m
=== float floor division
---
w[tid, 0] = (a[tid] + 0.5) // 2
w[tid, 1] = (a[tid] + 0.5) % 2
w[tid, 2] = -(a[tid] + 0.5) % 2.0
=== int of a float
---
o[tid, 0] = int(a[tid] * 0.3)
o[tid, 1] = int(-2.7)
=== float of an int
---
w[tid, 0] = float(a[tid])
=== bool arithmetic
---
k = a[tid] > 5
o[tid, 0] = k + 1
o[tid, 1] = k * n
o[tid, 2] = int(k) + (n > 2) + True
=== bool bits
---
p = a[tid] > 5
q = a[tid] < 20
o[tid, 0] = 1 if p & q else 0
o[tid, 1] = 1 if p ^ q else 0
o[tid, 2] = 1 if p | q else 0
=== abs and round
---
o[tid, 0] = abs(a[tid])
w[tid, 0] = abs(a[tid] * 0.5)
o[tid, 1] = round(a[tid] * 0.5)
=== min and max of widths
---
o[tid, 0] = min(cute.Int32(a[tid]), n)
o[tid, 1] = max(cute.Int8(3), a[tid])
w[tid, 0] = max(a[tid], 0.5)
=== math functions
---
o[tid, 0] = math.floor(a[tid] * 0.3)
o[tid, 1] = math.ceil(a[tid] * 0.3)
=== float32 rounds
---
x = cute.Float32(0.1)
w[tid, 0] = x
w[tid, 1] = x * x
w[tid, 2] = x * a[tid]
w[tid, 3] = x + 1
=== float32 and a literal
---
x = cute.Float32(0.1)
w[tid, 0] = x * 0.1
w[tid, 1] = x / 3
=== float32 of numpy
---
x = np.float32(0.1)
w[tid, 0] = x * np.float32(3)
=== float infinity
---
x = float("inf")
y = float("-inf")
w[tid, 0] = max(y, a[tid] * 1.0)
w[tid, 1] = min(x, a[tid] * 1.0)
=== large literals
---
o[tid, 0] = 4000000000 + a[tid]
o[tid, 1] = (1 << 40) + n
=== int32 wraps on store
---
r = cute.make_rmem_tensor(2, cute.Int32)
r[0] = 4000000000 + n
o[tid, 0] = r[0]
=== int8 wraps
---
o[tid, 0] = cute.Int8(n * 50)
o[tid, 1] = cute.Uint8(a[tid])
=== uint32 of a negative
---
o[tid, 0] = cute.Uint32(a[tid])
o[tid, 1] = cute.Uint32(a[tid]) // 2
=== unsigned compared with signed
---
o[tid, 0] = 1 if cute.Uint32(n) > a[tid] else 0
=== unsigned difference
---
o[tid, 0] = cute.Uint32(m) - cute.Uint32(n)
=== hash of widths
---
o[tid, 0] = cute.Int32(n) + cute.Int64(m) - cute.Int8(a[tid])
=== static arithmetic
---
K = 7
o[tid, 0] = -K // 2 + K % -3 + (K << 2) + ~K + n
=== static float arithmetic
---
w[tid, 0] = 0.1 + 0.2
w[tid, 1] = 7 // 2 * 0.5
=== comparisons of int and float
---
o[tid, 0] = 1 if a[tid] == 7.0 else 0
o[tid, 1] = 1 if a[tid] > 6.5 else 0
=== truth of numbers
---
o[tid, 0] = 1 if a[tid] else 0
o[tid, 1] = 1 if a[tid] * 0.5 else 0
o[tid, 2] = 1 if cute.Float32(0.0) else 0
o[tid, 3] = bool(a[tid])
=== augmented widths
---
k = cute.Int32(n)
k += a[tid]
k *= 3
k -= 1
k //= 2
k %= 7
k <<= 2
k >>= 1
k |= 8
k ^= 5
k &= 63
o[tid, 0] = k
=== loop sum in a width
---
k = cute.Int32(0)
for i in range(n):
    k += a[i]
o[tid, 0] = k
=== bit count
---
o[tid, 0] = (n).bit_length() if False else n
=== constants of numpy
---
o[tid, 0] = np.int32(7) + a[tid]
o[tid, 1] = np.int64(a[tid]) * 1000000007
=== unary in a lambda
---
neg = lambda x: -x
o[tid, 0] = neg(cute.Uint32(n))
o[tid, 1] = neg(cute.Int8(a[tid]))
=== division in a lambda
---
div = lambda x, y: x // y + x % y
o[tid, 0] = div(a[tid] - 20, n)
=== is of numbers
---
o[tid, 0] = 1 if n is None else 0
o[tid, 1] = 1 if n is not None else 0
=== int divided in an index
---
r = cute.make_rmem_tensor(8, cute.Int32)
for i in cute.range_constexpr(8):
    r[i] = i * 10
o[tid, 0] = r[(a[tid] - 40) % 8]
o[tid, 1] = r[(a[tid] + 64) // 16]
"""
for _t in _TYPES:
    PROGRAMS += f"""
=== unary of {_t}
---
x = cute.{_t}(a[tid])
o[tid, 0] = -x
o[tid, 1] = ~x
o[tid, 2] = +x
y = cute.{_t}(n)
o[tid, 3] = -y
o[tid, 4] = ~y
=== binary of {_t}
---
x = cute.{_t}(a[tid])
y = cute.{_t}(n)
o[tid, 0] = x + y
o[tid, 1] = x - y
o[tid, 2] = x * y
o[tid, 3] = x // y
o[tid, 4] = x % y
o[tid, 5] = x >> 1
o[tid, 6] = x & y
=== {_t} and an int
---
x = cute.{_t}(n)
w[tid, 0] = x + a[tid]
w[tid, 1] = x - 7
o[tid, 0] = x * 2
o[tid, 1] = x // 2
=== {_t} and a float
---
x = cute.{_t}(a[tid])
w[tid, 0] = x * 0.5
w[tid, 1] = x + cute.Float32(0.25)
w[tid, 2] = x / 4
=== mixed division
---
for j in range(4):
    x = cute.Uint64(a[j + tid] * 12345678901234567)
    y = cute.Int64(a[j + 4] - n) if a[j + 4] != n else cute.Int64(1)
    o[tid, 0] = x // y
    o[tid, 1] = x % y
    o[tid, 2] = y // x if x > 0 else 0
    o[tid, 3] = y % x if x > 0 else 0
    q, r = divmod(x, y)
    o[tid, 4] = q ^ r
    x //= y
    o[tid, 5] = x
    y %= 7
    o[tid, 6] = y
=== division by literals
---
x = cute.Uint64(a[tid]) 
o[tid, 0] = x // 4
o[tid, 1] = x % 4
o[tid, 2] = x // -4
o[tid, 3] = x % -4
o[tid, 4] = 100 // x if x != 0 else 5
q, r = divmod(x, 10)
o[tid, 5] = q
o[tid, 6] = r
=== powers exact
---
o[tid, 0] = (n + 3037000494) ** (m - 1)
o[tid, 1] = 3 ** (n * 7)
o[tid, 2] = cute.Uint64(3) ** (n * 8)
o[tid, 3] = (-n) ** n
o[tid, 4] = (m - 2) ** -n
o[tid, 5] = (m - 4) ** -n
o[tid, 6] = pow(n, m)
k = n + 3037000494
k **= m - 1
o[tid, 7] = k
=== extremes of unsigned
---
x = cute.Uint64(a[tid])
o[tid, 0] = max(x, 5)
o[tid, 1] = min(x, 5)
o[tid, 2] = max(x, cute.Uint64(n))
o[tid, 3] = min(7, x, 9)
=== extremes of unsigned and signed
---
x = cute.Uint64(a[tid])
o[tid, 0] = max(x, n)
=== mixed division in a helper
def f(x, y):
    return x // y, x % y, y // x, y % x
---
p, q, r, s = f(cute.Uint64(-3), cute.Int64(n))
o[tid, 0] = p
o[tid, 1] = q
o[tid, 2] = r
o[tid, 3] = s
=== static exponents
---
k = n + 3037000494
o[tid, 0] = k ** 2
o[tid, 1] = (n + 2097152) ** 3
o[tid, 2] = cute.Uint64(k) ** 2
o[tid, 3] = cute.Int32(n + 300000) ** 3
o[tid, 4] = k ** -1
o[tid, 5] = pow(k, 2)
k **= 2
o[tid, 6] = k
w[tid, 0] = n ** -2
w[tid, 1] = cute.Float32(1.1) ** 3
w[tid, 2] = 1.1 ** n
w[tid, 3] = (n * 1.0) ** 2
=== divmod round Uint64
---
x = cute.Uint64(a[tid])
q, r = divmod(x, n)
o[tid, 0] = q
o[tid, 1] = r
o[tid, 2] = round(x)
o[tid, 3] = int(x)
w[tid, 0] = float(x)
o[tid, 4] = 1 if bool(x) else 0
o[tid, 5] = math.floor(x)
o[tid, 6] = math.ceil(x)
o[tid, 7] = math.trunc(x)
"""
