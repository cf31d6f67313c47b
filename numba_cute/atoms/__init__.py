# SPDX-License-Identifier: Apache-2.0
"""Copy and matrix operations: what one is, its atom, its tiling over threads, and `copy` and `gemm`, which issue it."""
