# SPDX-License-Identifier: Apache-2.0
"""Register tensors: objects, of fixed length."""

PROGRAMS = """
=== filled and read
---
r = cute.make_rmem_tensor(4, cute.Int32)
r.fill(3)
r[1] = a[tid]
o[tid, 0] = r[0] + r[1]
=== alias
---
r = cute.make_rmem_tensor(2, cute.Int32)
s = r
s[0] = a[tid]
o[tid, 0] = r[0]
=== two of them
---
r = cute.make_rmem_tensor(2, cute.Int32)
s = cute.make_rmem_tensor(2, cute.Int32)
r[0] = n
s[0] = a[tid]
o[tid, 0] = r[0]
=== made by a helper twice
def make(v):
    r = cute.make_rmem_tensor(2, cute.Int32)
    r[0] = v
    return r
---
r = make(n)
s = make(a[tid])
o[tid, 0] = r[0] * 100 + s[0]
=== made by a helper with a branch twice
def make(v):
    r = cute.make_rmem_tensor(2, cute.Int32)
    r[0] = v
    if v > 5:
        r[0] = 5
    return r
---
r = make(n)
s = make(a[tid])
o[tid, 0] = r[0] * 100 + s[0]
=== double buffering in a loop
---
cur = cute.make_rmem_tensor(2, cute.Int32)
cur.fill(n)
for i in range(3):
    nxt = cute.make_rmem_tensor(2, cute.Int32)
    nxt[0] = cur[0] + i
    nxt[1] = cur[1] * 2
    cur[0] = 100
    cur = nxt
o[tid, 0] = cur[0] + cur[1]
=== swapped in a run-time loop
---
r = cute.make_rmem_tensor(2, cute.Int32)
s = cute.make_rmem_tensor(2, cute.Int32)
r.fill(1)
s.fill(2)
for i in range(a[tid] & 3):
    r, s = s, r
    r[0] += 10
o[tid, 0] = r[0] * 100 + s[0]
=== swapped in an unrolled loop
---
r = cute.make_rmem_tensor(2, cute.Int32)
s = cute.make_rmem_tensor(2, cute.Int32)
r.fill(1)
s.fill(n)
for i in cute.range_constexpr(3):
    r, s = s, r
    r[0] += 10
o[tid, 0] = r[0] * 100 + s[0]
=== chosen by a branch
---
r = cute.make_rmem_tensor(2, cute.Int32)
s = cute.make_rmem_tensor(2, cute.Int32)
r.fill(1)
s.fill(2)
t = r
if a[tid] > 5:
    t = s
t[0] = 50
o[tid, 0] = r[0] * 100 + s[0]
=== chosen by an expression
---
r = cute.make_rmem_tensor(2, cute.Int32)
s = cute.make_rmem_tensor(2, cute.Int32)
r.fill(1)
s.fill(2)
t = r if a[tid] > 5 else s
t[0] = 50
o[tid, 0] = r[0] * 100 + s[0]
=== in a list
---
rs = [cute.make_rmem_tensor(2, cute.Int32) for _ in range(2)]
rs[0].fill(1)
rs[1].fill(2)
rs[1][0] = a[tid]
o[tid, 0] = rs[0][0] * 100 + rs[1][0]
=== in an object
class V:
    def __init__(self):
        self.r = cute.make_rmem_tensor(2, cute.Int32)
        self.r.fill(0)
    def put(self, i, v):
        self.r[i] = v
---
x = V()
y = V()
x.put(0, n)
y.put(0, a[tid])
o[tid, 0] = x.r[0] * 100 + y.r[0]
=== run-time index
---
r = cute.make_rmem_tensor(4, cute.Int32)
for i in range(4):
    r[i] = i * n
o[tid, 0] = r[a[tid] & 3]
=== narrow elements
---
r = cute.make_rmem_tensor(2, cute.Int8)
r[0] = a[tid] * 20
o[tid, 0] = r[0]
o[tid, 1] = r[0] * 2
=== float elements
---
r = cute.make_rmem_tensor(2, cute.Float32)
r[0] = 0.1
r[0] += a[tid]
w[tid, 0] = r[0]
=== passed and changed
def add(r, v):
    for i in range(2):
        r[i] = r[i] + v
---
r = cute.make_rmem_tensor(2, cute.Int32)
r.fill(n)
add(r, a[tid])
o[tid, 0] = r[1]
=== made in a loop and used there
---
s = 0
for i in range(n):
    r = cute.make_rmem_tensor(2, cute.Int32)
    r[0] = i
    r[1] = a[tid]
    s += r[0] * r[1]
o[tid, 0] = s
=== kept from a loop
---
r = cute.make_rmem_tensor(1, cute.Int32)
r[0] = 7
kept = r
for i in range(3):
    r = cute.make_rmem_tensor(1, cute.Int32)
    r[0] = i + n
    if i == 0:
        kept = r
o[tid, 0] = kept[0]
=== identity
---
r = cute.make_rmem_tensor(1, cute.Int32)
s = r
t = cute.make_rmem_tensor(1, cute.Int32)
o[tid, 0] = 1 if r is s else 0
o[tid, 1] = 1 if r is t else 0
=== shape of two
---
r = cute.make_rmem_tensor((2, 3), cute.Int32)
for i in cute.range_constexpr(2):
    for j in cute.range_constexpr(3):
        r[i, j] = i * 10 + j + n
o[tid, 0] = r[1, 2]
"""
