# SPDX-License-Identifier: Apache-2.0
"""Products, experts and attention of several GPUs of a host: kernels in which communication overlaps multiplication,
tile by tile."""

from .attention import ring_attention, zigzag
from .experts import ExpertParallel
from .launches import all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter
from .spaces import forget

__all__ = [
    "ExpertParallel",
    "all_gather_matmul",
    "forget",
    "matmul_all_reduce",
    "matmul_reduce_scatter",
    "ring_attention",
    "zigzag",
]
