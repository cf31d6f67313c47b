# SPDX-License-Identifier: Apache-2.0
"""Quack's top-k, forward and backward."""

import torch
from compared import compare, judge
from quack.topk import topk_bwd, topk_fwd

for m, n, k, dtype, softmax in [(128, 64, 4, torch.float32, False), (32, 256, 8, torch.bfloat16, True)]:
    torch.manual_seed(0)
    x = torch.randn(m, n, device="cuda", dtype=dtype)
    values, _ = torch.topk(x, k, dim=-1)
    if softmax:
        values = torch.softmax(values.float(), dim=-1).to(dtype)
    given, at = topk_fwd(x, k, softmax=softmax)
    compare(given, values, atol=1e-2, rtol=1e-2)
    found = torch.gather(x, 1, at.long())
    if softmax:
        found = torch.softmax(found.float(), dim=-1).to(dtype)
    compare(found, values, atol=1e-2, rtol=1e-2)
    dvalues = torch.randn(m, k, device="cuda", dtype=dtype)
    if softmax:
        wide, d = values.float(), dvalues.float()
        d = wide * (d - (d * wide).sum(dim=-1, keepdim=True))
    else:
        d = dvalues.float()
    dx = torch.zeros(m, n, device="cuda").scatter(1, at.long(), d).to(dtype)
    given = topk_bwd(dvalues, values if softmax else None, at, n, softmax=softmax)
    compare(given, dx, atol=1e-3, rtol=1e-3)

judge()
