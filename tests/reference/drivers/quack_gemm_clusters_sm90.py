# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication for sm90, in clusters of two CTAs."""

import torch
from compared import compare, judge
from gemms import problem, product
from quack.gemm import gemm

a, b, c = problem()
for cluster in ((2, 1), (1, 2)):
    d = torch.empty_like(c)
    gemm(a, b, d, c, None, tile_M=128, tile_N=128, cluster_M=cluster[0], cluster_N=cluster[1])
    compare(d, (product(a, b) + c.float()).to(d.dtype), atol=1e-1, rtol=1e-2)

judge()
