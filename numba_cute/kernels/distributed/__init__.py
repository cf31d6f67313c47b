# SPDX-License-Identifier: Apache-2.0
"""Products, and attention, of several GPUs of a host: each one kernel in which communication overlaps multiplication,
tile by tile."""

from .attention import ring_attention, zigzag
from .launches import all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter
from .spaces import forget

__all__ = ["all_gather_matmul", "forget", "matmul_all_reduce", "matmul_reduce_scatter", "ring_attention", "zigzag"]
