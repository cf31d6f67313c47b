# SPDX-License-Identifier: Apache-2.0
"""Products of several GPUs of a host, each one kernel in which communication overlaps multiplication tile by tile."""

from .launches import all_gather_matmul as all_gather_matmul, matmul_reduce_scatter as matmul_reduce_scatter
from .spaces import forget as forget
