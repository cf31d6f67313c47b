# SPDX-License-Identifier: Apache-2.0
"""CuTe for Numba: layouts, tensors, TMA, tensor cores and pipelines in plain ``@cuda.jit`` kernels."""
