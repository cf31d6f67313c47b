# SPDX-License-Identifier: Apache-2.0
"""Control flow: loops, early exits, conditions, and statements that kernels have or refuse."""

PROGRAMS = """
=== for with break
---
s = 0
for i in range(10):
    if i > a[tid]:
        break
    s += i
o[tid, 0] = s
=== for with continue
---
s = 0
for i in range(10):
    if i % 3 == 1:
        continue
    s += i * n
o[tid, 0] = s
=== for with else
---
s = 0
for i in range(10):
    if i == a[tid]:
        break
    s += i
else:
    s = -1
o[tid, 0] = s
=== while with else
---
i = 0
while i < 10:
    i += 3
    if i == a[tid]:
        break
else:
    i = -5
o[tid, 0] = i
=== while true
---
i = a[tid]
while True:
    i += 4
    if i > 20:
        break
o[tid, 0] = i
=== nested loops with breaks
---
s = 0
for i in range(5):
    for j in range(i):
        if j > (a[tid] & 3):
            break
        s += j + i
    else:
        s += 100
        continue
    s += 1000
o[tid, 0] = s
=== the loop's variable afterwards
---
i = 50
for i in range(a[tid] & 3):
    pass
o[tid, 0] = i
=== the unrolled loop's variable afterwards
---
for i in cute.range_constexpr(4):
    pass
o[tid, 0] = i + n * 0
=== the loop's variable assigned
---
s = 0
for i in range(6):
    i = i * 2
    s += i
o[tid, 0] = s + i + n * 0
=== unrolled with break
---
s = 0
for i in cute.range_constexpr(6):
    if i > a[tid]:
        break
    s += i
o[tid, 0] = s
=== unrolled with continue
---
s = 0
for i in cute.range_constexpr(6):
    if a[tid] > i:
        continue
    s += i
o[tid, 0] = s
=== unrolled with break at the end of every way
---
s = 0
for i in cute.range_constexpr(6):
    s += i + 1
    if a[tid] > 3:
        s += 10
        break
    else:
        s += 20
        break
o[tid, 0] = s
=== unrolled with a plain break
---
s = 0
for i in cute.range_constexpr(6):
    s += a[tid]
    break
o[tid, 0] = s
=== unrolled with loops on a way that returns
---
s = 0
for q, p in enumerate([(n, 2), (m, 3)]):
    if s > 3 and a[tid] > 2:
        k = 0
        while k < p[1]:
            k += 1
            if k == n:
                break
        o[tid, 0] = max([v - a[tid] + k for v in (n, m)])
        return
    for v in (q, p[0]):
        if v == 7:
            o[tid, 1] = sum([v * w1 for w1 in (q, m)])
            return
    s += a[tid] + p[1]
o[tid, 2] = sum((s, q))
=== unrolled with return at the end of every way
---
for i in cute.range_constexpr(6):
    o[tid, 0] = i
    if a[tid] > 3:
        o[tid, 1] = 10
        return
    else:
        return
=== unrolled with else
---
s = 0
for i in cute.range_constexpr(4):
    if i == a[tid]:
        break
    s += i
else:
    s = -1
o[tid, 0] = s
=== unrolled with a static break
---
s = 0
for i in cute.range_constexpr(6):
    if i == 3:
        break
    s += a[tid]
o[tid, 0] = s
=== unrolled with a negative step
---
s = 0
for i in cute.range_constexpr(6, 0, -2):
    s = s * 10 + i
o[tid, 0] = s + n * 0
=== unrolled over nothing
---
s = 4
for i in cute.range_constexpr(0):
    s += n
o[tid, 0] = s
=== range forms
---
s = 0
for i in range(2, n):
    s = s * 10 + i
for i in range(n, 0, -2):
    s = s * 10 + i
for i in range(n, 2):
    s += 1000
o[tid, 0] = s
=== range down over a run-time step
---
s = 0
for i in range(0, n * m, m):
    s = s * 3 + i
for i in range(10, 0, -m):
    s = s * 3 + i
o[tid, 0] = s
=== range with step zero
---
s = 0
for i in range(0, n, 0):
    s += 1
o[tid, 0] = s
=== range with a run-time step zero
---
s = 0
for i in range(0, n, a[3]):
    s += 1
o[tid, 0] = s
=== unrolled range with step zero
---
for i in cute.range_constexpr(0, 4, 0):
    o[tid, 0] = i
=== range with negative bounds
---
s = 0
for i in range(a[tid] - 10, a[tid] - 5):
    s += i
o[tid, 0] = s
=== range of narrow types
---
s = 0
for i in range(cute.Int32(n)):
    s += i
for i in range(cute.Int8(2), a[0]):
    s += i
for i in range(cute.Uint8(3)):
    s += i
o[tid, 0] = s
=== range of several widths
---
s = 0
for i in range(cute.Int32(1), n, cute.Int8(2)):
    s = s * 3 + i
for i in range(cute.Int64(1), cute.Int32(n)):
    s = s * 3 + i
o[tid, 0] = s
=== loop over a tuple of several widths
---
s = 0
for v in (n, cute.Int32(m), cute.Int8(4), a[tid]):
    s = s * 3 + v
o[tid, 0] = s
=== loop over a tuple of ints and floats
---
s = 0.0
for v in (n, 0.5, a[tid]):
    s = s * 3 + v
w[tid, 0] = s
=== loop over an array
---
s = 0
for i in range(len(a)):
    s += a[i]
o[tid, 0] = s
=== loop over an array's elements
---
s = 0
for v in a:
    s += v
o[tid, 0] = s
=== a range_constexpr that the next loop is not over
---
r = cute.range_constexpr(3)
for i in range(n):
    o[tid, 0] = i
=== a range_constexpr whose name is another's
---
r = cute.range_constexpr(3)
r = (n, m)
for i in r:
    o[tid, i] = i
=== a range_constexpr with a name
---
i = n
o[tid, 4] = i
i = cute.range_constexpr(2)
for i in i:
    o[tid, i] = i + n
=== a body so long that its jumps are
---
s = 0
for i in cute.range_constexpr(2):
    s += a[0] * 0 + a[1] * 0 + a[2] * 0 + a[3] * 0 + a[4] * 0 + a[5] * 0 + a[6] * 0 + a[7] * 0
    s += a[1] * 1 + a[2] * 1 + a[3] * 1 + a[4] * 1 + a[5] * 1 + a[6] * 1 + a[7] * 1 + a[8] * 1
    s += a[2] * 2 + a[3] * 2 + a[4] * 2 + a[5] * 2 + a[6] * 2 + a[7] * 2 + a[8] * 2 + a[9] * 2
    s += a[3] * 3 + a[4] * 3 + a[5] * 3 + a[6] * 3 + a[7] * 3 + a[8] * 3 + a[9] * 3 + a[10] * 3
    s += a[4] * 4 + a[5] * 4 + a[6] * 4 + a[7] * 4 + a[8] * 4 + a[9] * 4 + a[10] * 4 + a[11] * 4
    o[tid, i] = s
"""
