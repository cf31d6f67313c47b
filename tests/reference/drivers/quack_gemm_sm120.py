# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication for sm120."""

import torch
from compared import compare, judge
from gemms import problem, product
from quack.gemm import gemm

a, b, c = problem()
d = torch.empty_like(c)
gemm(a, b, d, c, None, tile_M=128, tile_N=64, cluster_M=1, cluster_N=1)
compare(d, (product(a, b) + c.float()).to(d.dtype), atol=1e-1, rtol=1e-2)

judge()
