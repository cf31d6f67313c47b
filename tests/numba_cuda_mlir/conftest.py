# SPDX-License-Identifier: Apache-2.0
"""Tests of kernels of numba-cuda-mlir, where that is installed (the extra `mlir`)."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("numba_cuda_mlir") else ["test_*.py"]
